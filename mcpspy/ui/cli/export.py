"""`mcpspy export`: convert sessions to the formats of other tools."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from mcpspy.analysis.export import FORMATS, ExportFormat, RecordedSession, of_suffix
from mcpspy.analysis.export.base import StreamedSession, UserViews
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Entry, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.atomic import save
from mcpspy.io.recording.piped import is_piped
from mcpspy.io.recording.reader import Recording, RecordingState, read_header_of
from mcpspy.io.settings import table
from mcpspy.io.telemetry.options import PROTOCOLS, SIGNALS
from mcpspy.ui.cli.arguments import counted_back, query_of, recordings, title_of
from mcpspy.ui.cli.options import (
    CACERT,
    FOLDER,
    HEADERS,
    UNSAFE_REGEX,
    Argument,
    Option,
    Repeated,
    Switch,
    only_with,
)
from mcpspy.ui.cli.parser import read_unsafe_regex
from mcpspy.ui.model.filter_items import exchange_filter, exchange_matches
from mcpspy.ui.text.terminal import Output, scanned

EPILOG = (
    """\
examples:
  mcpspy export weather -o weather.har              for the browser's developer tools
  mcpspy export last -q 'tool:forecast' -o bug.md   a document for a bug report
  mcpspy export last -o bug.html --script sales.py  with its columns and views
  mcpspy export before.jsonl after.jsonl --format csv | mlr --icsv --opprint sort -nr latency_ms
  mcpspy export last --endpoint http://localhost:4318 --header 'x-token: ${TOKEN}'
  mcpspy export --follow --endpoint http://localhost:4317 --protocol grpc

formats:
"""
    + "".join(f"  {each.name:9} {each.suffix:10}  {each.about}\n" for each in FORMATS.values())
    + """
SESSION is a file, a folder of recordings, `last`, a session name, or the beginning of a
session id (default: last). QUERY selects exchanges by their request or response, and
messages outside exchanges: tool:NAME, status:error, >200ms, … (see docs/filter.md).
docs/export.md describes the content of each format.

--endpoint and --follow need the OpenTelemetry SDK: pip install 'mcpspy[otel]'. With --follow,
the default are all sessions that are live or begin later (docs/telemetry.md).

exit codes: 0; 2 usage error, not a recording, or invalid filter; 3 not readable, not
writable, or not sent
"""
)

STDOUT = "-"


_COLLECTOR = "--endpoint URL"

OPTIONS = (
    Argument("sessions", "SESSION", "sessions to export, - for stdin (default: last)", nargs="*"),
    Option("--format", None, "output format (default: from the suffix of FILE, else html)", choices=list(FORMATS)),
    Option("-o --output", "FILE", "write to this file (default: stdout; without --format, a page next to the recording)"),
    Switch("--force", "overwrite FILE if it exists; recordings are never overwritten",
        requires="--output FILE"),
    Option("-q --filter", "QUERY", "export only matching exchanges, e.g. 'tool:x >200ms'"),
    UNSAFE_REGEX,
    Repeated("--script", "FILE", "html: Python file with columns and views (docs/scripting.md)"),
    Option("--endpoint", "URL", "send spans to this OpenTelemetry collector"),
    Switch("--follow", "send spans, metrics and logs while sessions are recorded", excludes=("--filter",)),
    Option("--protocol", None, "--endpoint: protocol of OTLP (default: http)", choices=PROTOCOLS,
        requires=_COLLECTOR),
    *only_with(_COLLECTOR, HEADERS),
    CACERT.but(requires=_COLLECTOR),
    Option("--signals", "LIST", f"--follow: send only these (default: {','.join(SIGNALS)})",
        requires="--follow"),
    Switch("--background", "--follow: be the exporter that the setting `telemetry` starts, one per user",
        requires="--follow"),
    Option("--config", "FILE", "--follow: settings file (default: mcpspy.toml in the user's config folder)",
        requires="--follow"),
    FOLDER,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    form = _format(args)
    if args.script and form.name != "html":
        raise UsageError(f"--script: {form.name} has no columns and views", "use --format html")
    if args.follow:
        from mcpspy.ui.cli.export_telemetry import follow

        return follow(args)
    query = query_of(args.filter, allow_unsafe=read_unsafe_regex(args))
    paths = list(recordings(args.sessions, args.dir))
    is_chosen = any(each is not None for each in (args.format, args.output, args.endpoint))
    output = args.output if is_chosen else _next_to(paths)
    if len(paths) > 1 and not form.several:
        several = ", ".join(each.name for each in FORMATS.values() if each.several)
        raise UsageError(
            f"export: --format {form.name} takes one session, not {len(paths)}",
            f"{several} take several",
        )
    sessions = _Sessions(paths, query, _user_views(args) if form.name == "html" else None)
    if args.endpoint is not None:
        from mcpspy.ui.cli.export_telemetry import send_spans

        shown, sent = send_spans(args, sessions)
        Output().line(sanitize(f"{shown}: {sent} spans sent, {sessions.summary}"))
        return 0
    pieces = form.exporter()(sessions.streamed() if form.streams else sessions)
    if output in (None, STDOUT):
        _print(pieces)
    else:
        if args.force:
            _refuse_recording(Path(output))
        way_out = "choose another name or use --force" if args.output else "use --output FILE"
        size = save(output, pieces, force=args.force, way_out=way_out)
        Output().line(sanitize(f"{output}: {sessions.summary}, {size:,} bytes"))
    if not sessions.exchanges:
        sys.stderr.write(f"mcpspy: nothing to export: {sessions.summary}\n")
    return 0


def _user_views(args: argparse.Namespace) -> UserViews | None:
    """Return the user's columns and views; None without any. Raise UsageError or CannotStart."""
    settings = table("views")
    if not args.script and not settings:
        return None
    from mcpspy.ui.views.extension import Extension

    return Extension(args.script, settings, shows_images=False).for_export()


def _format(args: argparse.Namespace) -> ExportFormat:
    """Return the format; raise UsageError if it is unknown, or an option does not apply to it."""
    is_file = args.output not in (None, STDOUT)
    if args.endpoint is not None or args.follow:
        if args.output is not None or args.format not in (None, "otlp"):
            option = "--endpoint" if args.endpoint is not None else "--follow"
            raise UsageError(f"{option} excludes --output and any --format but otlp")
        return FORMATS["otlp"]
    if args.force and not is_file:
        raise UsageError("--force requires --output FILE")
    if args.format is not None:
        return FORMATS[args.format]
    if args.output is None:
        return FORMATS["html"]
    form = of_suffix(args.output) if is_file else None
    if form is None:
        missing = f"--output {args.output}: unknown suffix" if is_file else "export: missing --format"
        if is_file and os.path.isdir(args.output):
            raise UsageError(sanitize(f"--output {args.output}: a folder"), "name a file in it")
        raise UsageError(sanitize(missing), f"use --format with one of {', '.join(FORMATS)}")
    return form


def _next_to(paths: Sequence[tuple[str, Path]]) -> str:
    """Return the name of the page next to the only session. Raise UsageError for several, and for stdin."""
    if len(paths) != 1 or is_piped(paths[0][0]) or paths[0][0] == "stdin":
        raise UsageError("export: missing --format", f"use --format with one of {', '.join(FORMATS)}")
    return str(paths[0][1].with_suffix(".html"))


class _Sessions:
    """The selected sessions, each read on demand, and the number of their selected requests."""

    def __init__(
        self, paths: Iterable[tuple[str, Path]], query: Query | None, user_views: UserViews | None = None
    ) -> None:
        self._paths = paths
        self._user_views = user_views
        self._query = query
        self.exchanges = 0
        self.count = 0

    def __iter__(self) -> Iterator[RecordedSession]:
        for name, path in self._paths:
            recorded = _read(name, path, self._query)._replace(user_views=self._user_views)
            self.count += 1
            self.exchanges += sum(1 for _ in recorded.exchanges())
            yield recorded

    def streamed(self) -> Iterator[StreamedSession]:
        """Yield the sessions for formats that stream. Their requests are counted while they are read."""
        for _, path in self._paths:
            recording, is_live = _opened(path, self._query)
            self.count += 1
            entries = partial(_entries, path, is_live)
            yield StreamedSession(recording.header, entries, self._keeps, is_live=is_live)

    def _keeps(self, exchange: Exchange) -> bool:
        is_kept = self._query is None or exchange_matches(self._query, exchange)
        self.exchanges += is_kept
        return is_kept

    @property
    def summary(self) -> str:
        requests = f"{self.exchanges or 'no'} request{'s' * (self.exchanges != 1)}"
        found = " matching the filter" if self._query is not None else ""
        return f"{requests}{found} in {self.count} session{'s' * (self.count != 1)}"


def _read(name: str, path: Path, query: Query | None) -> RecordedSession:
    """Return the current state of a session."""
    recording, is_live = _opened(path, query)
    session = Session(recording.header).add_all(_entries(path, is_live))
    if not is_live:
        session.end()
    return RecordedSession(
        recording.header, title_of(name), session.changes, exchange_filter(query, session.changes), is_live
    )


def _opened(path: Path, query: Query | None) -> tuple[Recording, bool]:
    """Return a recording, and whether it is live; set its end in a filter that counts back from it."""
    recording = Recording(path)
    # Before the read: a session that ends during the read counts as live, with pending requests.
    is_live = recording.state is RecordingState.LIVE
    counted_back(query, path, recording.header)
    return recording, is_live


def _entries(path: Path, is_live: bool, again: bool = False) -> Iterator[Entry]:
    """Yield the entries of a recording, with progress; report an incomplete last line once."""
    with closing(scanned(path, is_live=is_live or again)) as blocks:
        for block in blocks:
            yield from map(read_entry, block.lines)


def _refuse_recording(path: Path) -> None:
    """Raise UsageError if the file is a recording: a lost recording cannot be recreated."""
    try:
        read_header_of(path)
    except (UsageError, CannotStart):
        return
    raise UsageError(sanitize(f"{path}: recordings are never overwritten"), "choose another name")


def _print(pieces: Iterable[str]) -> None:
    """Write to stdout; sanitize on a terminal."""
    if sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.write("\n".join(sanitize(line.rstrip("\r")) for line in piece.split("\n")))
        return
    for piece in pieces:
        sys.stdout.buffer.write(piece.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
