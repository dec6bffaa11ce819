"""`mcpspy export`: sessions in the formats of other tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

from mcpspy.analysis.export import FORMATS, ExportFormat, RecordedSession, of_suffix
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.io.recording.reader import Recording, RecordingState, read_header_of
from mcpspy.ui.cli.arguments import counted_back, query_of, read_headers, recordings, title_of
from mcpspy.ui.cli.options import CACERT, FOLDER, VARIABLE, describe
from mcpspy.ui.filter_items import exchange_filter
from mcpspy.ui.terminal import Output, scanned

EPILOG = (
    """\
examples:
  mcpspy export weather -o weather.har              for the browser's developer tools
  mcpspy export last -q 'tool:forecast' -o bug.md   a document to read, or to paste
  mcpspy export before.jsonl after.jsonl --format csv | mlr --icsv --opprint sort -nr latency_ms
  mcpspy export last --endpoint http://localhost:4318 --header 'x-token: ${TOKEN}'

formats:
"""
    + "".join(f"  {each.name:9} {each.suffix:10}  {each.about}\n" for each in FORMATS.values())
    + """
SESSION is a file, a folder of them, `last`, a session's name, or its id (the beginning
will do); without one, the last session. QUERY chooses exchanges, by what is said in either
of the two messages, and what belongs to none: tool:NAME, status:error, >200ms …;
docs/filter.md has them all, docs/export.md what each format holds.

exit codes: 0; 2 usage, not a recording, a filter that cannot be read; 3 cannot be read,
written or sent
"""
)

STDOUT = "-"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sessions", metavar="SESSION", nargs="*", help="what to export (default: last)")
    parser.add_argument(
        "--format", choices=list(FORMATS), help="what to write (default: what FILE ends in says)"
    )
    options = {
        "-o --output": ("FILE", "the file to write (default: -, stdout)"),
        "--force": (None, "replace FILE if it is there; never a recording"),
        "-q --filter": ("QUERY", "only what this finds, as in 'tool:x >200ms'"),
        "--endpoint": ("URL", "send spans to this OpenTelemetry collector"),
        "--header": ("'NAME: VALUE'", f"send this to it, too; {VARIABLE}"),
        **CACERT,
        **FOLDER,
    }
    describe(parser, options, repeated=("--header",))


def main(args: argparse.Namespace) -> int:
    form = _format(args)
    query = query_of(args.filter)
    paths = list(recordings(args.sessions, args.dir))
    if len(paths) > 1 and not form.several:
        several = ", ".join(each.name for each in FORMATS.values() if each.several)
        raise UsageError(f"{form.name} holds one session, and these are {len(paths)}", f"{several} hold more")
    sessions = _Sessions(paths, query)
    if args.endpoint is not None:
        _send(args, sessions)
        return 0
    pieces = form.exporter()(sessions)
    if args.output in (None, STDOUT):
        _print(pieces)
    else:
        if args.force:
            _refuse_recording(Path(args.output))
        size = save(args.output, pieces, force=args.force, way_out="name another, or --force")
        Output().line(sanitize(f"{args.output}: {sessions.summary}, {size:,} bytes"))
    if not sessions.exchanges:
        sys.stderr.write(f"mcpspy: nothing to export: {sessions.summary}\n")
    return 0


def _format(args: argparse.Namespace) -> ExportFormat:
    """Return the format of the options; raise UsageError if it is not clear, or an option does not fit it."""
    is_file = args.output not in (None, STDOUT)
    if args.endpoint is not None:
        if args.output is not None or args.format not in (None, "otlp"):
            raise UsageError("--endpoint sends spans, and writes no file", "without --output, --format otlp")
        return FORMATS["otlp"]
    if args.header or args.cacert is not None:
        raise UsageError("--header and --cacert are for --endpoint URL")
    if args.force and not is_file:
        raise UsageError("--force is for --output FILE")
    if args.format is not None:
        return FORMATS[args.format]
    form = of_suffix(args.output) if is_file else None
    if form is None:
        what = f"{args.output}: which format?" if is_file else "which format?"
        raise UsageError(sanitize(what), f"--format {'|'.join(FORMATS)}, or a FILE that ends like one")
    return form


class _Sessions:
    """The selected sessions, each read when it is reached, and the number of their selected requests."""

    def __init__(self, paths: Iterable[tuple[str, Path]], query: Query | None) -> None:
        self._paths = paths
        self._query = query
        self.exchanges = 0
        self.count = 0

    def __iter__(self) -> Iterator[RecordedSession]:
        for which, path in self._paths:
            recorded = _read(which, path, self._query)
            self.count += 1
            self.exchanges += sum(1 for _ in recorded.exchanges())
            yield recorded

    @property
    def summary(self) -> str:
        requests = f"{self.exchanges or 'no'} request{'s' * (self.exchanges != 1)}"
        found = " that the filter finds" if self._query is not None else ""
        return f"{requests}{found} in {self.count} session{'s' * (self.count != 1)}"


def _read(which: str, path: Path, query: Query | None) -> RecordedSession:
    """Return a session as it is now."""
    recording = Recording(path)
    # Before it is read: a session that ends meanwhile was live, and its requests may still be answered.
    is_live = recording.state is RecordingState.LIVE
    counted_back(query, path, recording.header)
    session = Session(recording.header)
    with closing(scanned(path, is_live=is_live)) as blocks:
        for block in blocks:
            session.add_all(map(read_entry, block.lines))
    if not is_live:
        session.end()
    return RecordedSession(recording.header, title_of(which), session.changes, exchange_filter(query))


def _refuse_recording(path: Path) -> None:
    """Raise UsageError if a recording would be replaced: it cannot be made again."""
    try:
        read_header_of(path)
    except (UsageError, CannotStart):
        return
    raise UsageError(sanitize(f"{path}: a recording, and those are never replaced"), "name another")


def _print(pieces: Iterable[str]) -> None:
    """Write to stdout; sanitize on a terminal."""
    if sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.write("\n".join(sanitize(line.rstrip("\r")) for line in piece.split("\n")))
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def _send(args: argparse.Namespace, sessions: _Sessions) -> None:
    from mcpspy.analysis.export.otlp import batches
    from mcpspy.io.client.base import ServerAddress
    from mcpspy.io.otlp_sender import send, traces_url

    headers = read_headers("--header", args.header)
    sent = send(ServerAddress(traces_url(args.endpoint), headers, args.cacert), batches(sessions))
    if sent.rejected:
        why = f": {sent.why}" if sent.why else ""
        raise CannotStart(
            sanitize(
                f"{args.endpoint}: {sent.rejected} of {sent.spans + sent.rejected} spans were rejected{why}"
            )
        )
    Output().line(sanitize(f"{args.endpoint}: {sent.spans} spans sent, {sessions.summary}"))
