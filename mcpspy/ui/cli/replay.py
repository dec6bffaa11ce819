"""`mcpspy replay`: send the requests of a recorded client to a live server, and compare the responses.

Holds the options, the choice of the run that is reported, the lines on stderr, and the exit code. `mcpspy diff`
compares the sessions.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from mcpspy.analysis.diff import ChangeSeverity, SessionDiff
from mcpspy.analysis.load import LoadResult
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Note
from mcpspy.core.recording.origin import REPLAY
from mcpspy.core.replay.carry_hints import suggestions
from mcpspy.core.replay.plan import plans
from mcpspy.core.replay.player import TIMEOUT, PlayerOptions
from mcpspy.core.replay.subset import needed, reduced
from mcpspy.core.replay.substitution import rule
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, INCOMPLETE, CannotStart, UsageError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.recorder import RecordingTarget, say
from mcpspy.ui.cli.arguments import query_of, read_endpoint, read_headers_of, recording_path
from mcpspy.ui.cli.diff import comparison, is_text_printed, read_comparison, report
from mcpspy.ui.cli.options import (
    CERTIFICATES,
    COMMAND,
    HEADERS,
    LAKE,
    RECORDING,
    REDACTION,
    Argument,
    Option,
    Repeated,
    Switch,
    duration,
    only_with,
)
from mcpspy.ui.cli.parser import read_unsafe_regex, reading, recorded, speed
from mcpspy.ui.cli.replay_load import FORMATS, LOAD, LoadTest, read_load
from mcpspy.ui.model.filter_items import exchange_item
from mcpspy.ui.model.replayed import compared, read_recorded
from mcpspy.ui.report import load as load_report
from mcpspy.ui.text.terminal import Output, StatusLine

if TYPE_CHECKING:
    from mcpspy.io.client import ServerTarget
    from mcpspy.io.load import LoadOptions
    from mcpspy.io.recording.atomic import Replacement
    from mcpspy.io.replay import ReplayOptions, ReplayRun

EPILOG = """\
examples:
  mcpspy replay weather.jsonl -- python weather.py
  mcpspy replay last --upstream http://localhost:3001/mcp --header 'Authorization: Bearer x'
  mcpspy replay weather.jsonl --filter 'tool:forecast' --ignore-path '/result/**/updated' -- python weather.py
  mcpspy replay weather.jsonl --carry '/result/content/0/text=session (\\w+)' -- python weather.py
  mcpspy replay weather.jsonl --update -- python weather.py
  mcpspy replay weather.jsonl --clients 8 --repeat 10 -- python weather.py
  mcpspy replay last --rate 50 --duration 1min --fail-if 'p95>200ms' --upstream http://localhost:3001/mcp

Sends the recorded client's messages to the server in their causal order, and compares
the responses. A stdio recording can be replayed over HTTP, and the reverse. --clients, --rate,
--duration and --fail-if run a load test. RECORDING is a file, `last`, a session name, the
beginning of a session id, or lake:SESSION.

exit codes: 0 same; 1 different, the server ended early, or --fail-if is met; 2 usage error; 3 the server
cannot be reached or never responds; 4 same, but RECORDING is incomplete; 130 Ctrl-C, after a report on the completed requests
"""


_ALONE = "--filter --record --no-record --force --repeat --clients --rate --duration --ramp --fail-if".split()


OPTIONS = (
    Argument("recording", "RECORDING", "the session to replay"),
    Argument("command", COMMAND, "the server to start, and its arguments", nargs="*",
        excludes=("--upstream",)),
    Option("--upstream", "URL", "URL of a running server: http:// or https://"),
    *only_with("--upstream", HEADERS),
    Switch("--sse", "--upstream: use HTTP+SSE (default if the path ends in sse)", requires="--upstream"),
    *(option.but(requires="--upstream") for option in CERTIFICATES),
    Option("-q --filter", "QUERY", "replay only matching requests, and the requests that they depend on"),
    Repeated("--carry", "POINTER[=REGEX]",
        "carry a value from a response into later requests, e.g. /result/structuredContent/session; with "
        "REGEX, its group in a text", read=reading(rule, "use /result/content/0/text=session (\\w+)")),
    Repeated("--secret", "NAME=VARIABLE",
        "replace a redaction placeholder by this environment variable; NAME is the placeholder's tag or the "
        "key of the value"),
    Option("--concurrency", None,
        "recorded: send concurrent requests concurrently (default); serial: one request at a time",
        choices=["recorded", "serial"], default="recorded"),
    Option("--speed", "N", "0: no pauses (default), 1: the client's pauses, 2: half of them", read=speed,
        default=0.0),
    Option("--timeout", "TIME", "time to wait for each response: 30, 500ms, 5min (default: 30)",
        read=duration, default=TIMEOUT),
    *LOAD,
    Switch("--update", "replace the recording with the new session; the old one becomes .bak",
        excludes=_ALONE),
    *RECORDING,
    LAKE,
    Switch("--force", "--record: replace an existing recording; the old one becomes .bak",
        requires="--record FILE"),
    *REDACTION,
    *comparison(*FORMATS),
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    carry = tuple(args.carry)
    secrets = dict(_secret(text) for text in args.secret)
    query = query_of(args.filter, allow_unsafe=read_unsafe_regex(args))
    load = read_load(args)
    target = _target(args)
    path = recording_path(args.recording, args.dir, args.lake)
    session, is_incomplete = _recorded(path)
    if query is not None:
        session = reduced(session, needed(session, _matching(session, query)))
    steps = plans(session)
    if not steps:
        raise UsageError(f"{path}: contains no messages of a client", "record a session with requests")

    from mcpspy.io.recording.atomic import Replacement
    from mcpspy.io.replay import ReplayOptions

    where = recorded(RecordingTarget(), args, (*RECORDING, *REDACTION))
    # With --update, the new session has the place of the old one, also under its name.
    where.origin = session.header.origin if args.update and session.header is not None else REPLAY
    if args.update and any(
        isinstance(change.what, Note) and change.what.kind == "part" for change in session.changes
    ):
        raise UsageError(
            f"{path}: --update cannot replace a recording in several parts",
            "record the new session with --record",
        )
    replacement = Replacement(path) if args.update else _overwritten(args, load)
    if replacement is not None:
        where.record = str(replacement.new)
    status = StatusLine()
    serial = args.concurrency == "serial"
    options = ReplayOptions(
        target,
        steps,
        PlayerOptions(speed=args.speed, timeout=args.timeout, serial=serial, carry=carry, secrets=secrets),
        where,
        name=session.header.name if session.header is not None else "",
        repeat=args.repeat or 1,
        watch=status.show if load is None else None,
    )
    try:
        if load is None:
            code = _run(options, session, args, replacement, status)
        else:
            title = f"{path.name} · {options.name}"
            code = _run_load(LoadTest(options, load, args, title), session, args, replacement)
        return code or (INCOMPLETE if is_incomplete else 0)
    finally:
        if replacement is not None:
            replacement.discard()


def _run(
    options: ReplayOptions,
    session: Session,
    args: argparse.Namespace,
    replacement: Replacement | None,
    status: StatusLine,
) -> int:
    """Replay once or several times, and report the comparison; return the exit code."""
    from mcpspy.io.replay import ReplayInterrupted, ReplayStopped, run

    started = monotonic()
    try:
        with status:
            runs, code = run(options), 0
    except ReplayInterrupted as interrupted:
        runs, code = interrupted.played, 128 + interrupted.number
    except ReplayStopped as stopped:
        runs, code = stopped.played, stopped.exit_code
        warn(str(stopped))
    if not runs:
        return code
    raise_failure(runs)
    latencies = LoadResult()
    latencies.seconds = monotonic() - started
    for played in runs:
        latencies.add_run(played.sent, played.unsent, played.stopped, started=started, delay=0.0)
    results = [(played, _compared(session, played, args)) for played in runs]
    title = str(replacement.old) if replacement is not None and args.force else None
    findings = _report(results, args, latencies, title)
    if replacement is not None and args.force:
        _put_in_place(replacement)
    if replacement is None or args.force or code:
        return code or findings
    return _update(replacement, *results[0])


def _run_load(
    test: LoadTest, session: Session, args: argparse.Namespace, replacement: Replacement | None
) -> int:
    signal = test.run()
    if not test.collected:
        return 128 + (signal or 0)
    raise_failure(test.collected)
    findings = test.report(lambda run: _is_same(run, _compared(session, run, args), args))
    if replacement is not None:
        _put_in_place(replacement)
    for run in test.collected:
        if run.path is not None and replacement is None:
            warn(f"recorded to {run.path}")
    return findings if signal is None else 128 + signal


def _recorded(path: Path) -> tuple[Session, bool]:
    """Return the recorded session, and True if it lacks something, with a warning. Raises UsageError without any
    response.
    """
    session, warnings = read_recorded(path)
    for warning in warnings:
        warn(warning)
    return session, bool(warnings)


def _overwritten(args: argparse.Namespace, load: LoadOptions | None) -> Replacement | None:
    """Return the recording that --record and --force replace, None if there is none; raise UsageError."""
    if not args.force:
        return None
    if load is None and (args.repeat or 1) > 1:  # A load test records one run.
        raise UsageError("replay: --force and --repeat exclude each other", "each run is a recording")
    path = Path(args.record)
    if path.is_dir() or not path.exists():
        return None
    if Recording(path).state is RecordingState.LIVE:
        raise UsageError(sanitize(f"--record {path}: a live session"), "use another name")

    from mcpspy.io.recording.atomic import Replacement

    return Replacement(path)


def _put_in_place(replacement: Replacement) -> None:
    """Replace the recording that --record and --force name."""
    backup = replacement.put_in_place(None)
    warn(f"recorded to {replacement.old}; {backup} is the old recording")


def raise_failure(runs: list[ReplayRun]) -> None:
    """Raise CannotStart if the server failed in every run."""
    first = runs[0]
    if first.failed is None or not all(played.failed for played in runs):
        return
    _print_stderr(first)
    hint = "use --header 'Authorization: Bearer …' to send a token"
    raise CannotStart(sanitize(first.failed), hint if "HTTP 401" in first.failed else "")


def warn(line: str) -> None:
    sys.stdout.flush()  # In order with the report, even if both streams are one file.
    say(sanitize(line))


def _matching(session: Session, query: Query) -> set[int]:
    """Return the numbers of the client's requests that match the filter; raise UsageError if none does."""
    query.end = session.last_at
    matching = {
        exchange.number
        for exchange in session.exchanges
        if exchange.request.side == CLIENT and query.matches(exchange_item(exchange))
    }
    if not matching:
        raise UsageError(
            sanitize(f"--filter {query.text}: matches no request"), "mcpspy show lists the requests"
        )
    return matching


def _target(args: argparse.Namespace) -> ServerTarget:
    from mcpspy.io.client import ServerAddress, ServerCommand

    if args.command:
        return ServerCommand(args.command)
    if args.upstream is None:
        raise UsageError(
            "replay: missing the server", "use mcpspy replay RECORDING -- COMMAND, or --upstream URL"
        )
    read_endpoint("--upstream", args.upstream)
    sent = read_headers_of(args.header, args.header_env)
    return ServerAddress(args.upstream, sent, args.cacert, args.insecure, True if args.sse else None)


def _secret(text: str) -> tuple[str, str]:
    name, equals, variable = text.partition("=")
    if not (name and equals and variable):
        raise UsageError("--secret: not a valid secret", "use NAME=VARIABLE, e.g. api_key=EXAMPLE_KEY")
    if variable not in os.environ:
        raise UsageError(f"--secret {name}: environment variable {variable} is not set")
    return name, os.environ[variable]


def _compared(session: Session, played: ReplayRun, args: argparse.Namespace) -> SessionDiff:
    """Compare a run with the recorded results of the requests that it sent."""
    return compared(
        session,
        played.session,
        played.sent,
        read_comparison(args),
        is_complete=not played.unsent,
        carried=played.substitutions if args.carry else (),
    )


def _report(
    results: list[tuple[ReplayRun, SessionDiff]],
    args: argparse.Namespace,
    latencies: LoadResult,
    title: str | None,
) -> int:
    """Report the first run that is different, or else the last; return the exit code.

    `title` is the name of the new session if it is not its present path.
    """
    different = [result for result in results if not _is_same(*result, args)]
    played, difference = different[0] if different else results[-1]
    titles = sanitize(str(args.recording)), sanitize(title or played.path or "(not recorded)")
    code = report(difference, titles, args)
    for warning in dict.fromkeys(played.warnings):
        warn(warning)
    for producer, suggestion in suggestions(played.sent, tuple(args.carry)):
        warn(f"{producer}, and the value differs in this run: try --carry '{suggestion}'")
    unsent = "1 request was" if played.unsent == 1 else f"{played.unsent} requests were"
    if played.stopped is not None:
        warn(f"stopped: {played.stopped}; {unsent} not sent")
        _print_stderr(played)
    elif played.unsent:
        warn(f"{unsent} not sent")
    if len(results) > 1:
        warn(f"{len(different)} of {len(results)} runs are different")
        if is_text_printed(args):
            output = Output()
            for line in load_report.lines(latencies):
                output.line(line)
    if played.path is not None and not args.update and title is None:
        warn(f"recorded to {played.path}")
    return FINDINGS if different else code


def _is_same(played: ReplayRun, difference: SessionDiff, args: argparse.Namespace) -> bool:
    """Return whether every request was sent, and every response is as recorded."""
    return not played.unsent and played.stopped is None and difference.is_same(ChangeSeverity(args.fail_on))


def _update(replacement: Replacement, played: ReplayRun, difference: SessionDiff) -> int:
    """Replace the recording by the new session if that is complete and different; return the exit code."""
    if played.stopped is not None or played.unsent:
        warn(f"{replacement.old} is unchanged: the new session is incomplete")
        return FINDINGS
    if not difference.changes:
        warn(f"{replacement.old} is unchanged: no differences")
        return 0
    backup = replacement.put_in_place(played.path)
    warn(f"{replacement.old} is now the new session; {backup} is the old one")
    return 0


def _print_stderr(played: ReplayRun) -> None:
    if played.last_words:
        warn("end of the server's stderr:")
        for line in played.last_words:
            warn(f"  {line}")
