"""`mcpspy replay`: play a recorded client against a live server, and compare."""

from __future__ import annotations

import argparse
import math
import os
from time import monotonic
from typing import TYPE_CHECKING

from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Note
from mcpspy.core.replay.plan import plans
from mcpspy.core.replay.player import TIMEOUT, PlayerOptions
from mcpspy.core.replay.subset import needed, reduced
from mcpspy.core.replay.substitution import SubstitutionRule, rule
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording, find
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.ui.cli import redact_options
from mcpspy.ui.cli.arguments import query_of, read_endpoint, read_headers
from mcpspy.ui.cli.diff_options import configure_comparison, options_of
from mcpspy.ui.cli.options import CERTIFICATES, RECORDING, VARIABLE, describe, speed
from mcpspy.ui.cli.replay_report import compared, complain, raise_failure, tell, update
from mcpspy.ui.filter_items import exchange_item
from mcpspy.ui.terminal import StatusLine

if TYPE_CHECKING:
    from mcpspy.io.client import ServerTarget

TAKES_COMMAND = True

EPILOG = """\
examples:
  mcpspy replay weather.jsonl -- python weather.py
  mcpspy replay last --upstream http://localhost:3001/mcp --header 'Authorization: Bearer x'
  mcpspy replay weather.jsonl --filter 'tool:forecast' --ignore '/result/**/updated' -- python weather.py
  mcpspy replay weather.jsonl --carry '/result/content/0/text=session (\\w+)' -- python weather.py
  mcpspy replay weather.jsonl --update -- python weather.py
  mcpspy replay weather.jsonl --clients 8 --repeat 10 -- python weather.py

Says to the server what the recorded client said, in the same order of causes, and
compares what comes back. A stdio recording may be played over HTTP, and the other way
round. RECORDING is a file, `last`, a session's name, or its id.

exit codes: 0 the same; 1 different, or the server went away; 2 usage; 3 there is no
server, or it never answered; 130 Ctrl-C, after a report on what was done until then
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recording", metavar="RECORDING", help="what the client said, and what it heard")
    parser.add_argument(
        "command", metavar="-- COMMAND", nargs="*", help="the server to start, and its arguments; or:"
    )
    options = {
        "--upstream": ("URL", "the server's endpoint: http:// or https://"),
        "--header": (
            "'NAME: VALUE'",
            f"with --upstream: send this header, too; {VARIABLE}; may be given more than once",
        ),
        "--sse": (None, "with --upstream: it speaks HTTP+SSE (known by a path that ends in sse)"),
        **CERTIFICATES,
        "-q --filter": ("QUERY", "only these requests, and what they need"),
        "--carry": (
            "POINTER[=REGEX]",
            (
                "a value in answers that the client gives back later, as in /result/structuredContent/session;"
                " with REGEX, its group in a text"
            ),
        ),
        "--secret": (
            "NAME=VARIABLE",
            (
                "put this variable of the environment where the recording has a placeholder: NAME is the "
                "placeholder's tag, or the key it stands under; may be given more than once"
            ),
        ),
    }
    describe(parser, options, repeated=("--header", "--carry", "--secret"))
    parser.add_argument(
        "--concurrency",
        choices=["recorded", "serial"],
        default="recorded",
        help="recorded: what was asked at once is asked at once (default); serial: one request after the other",
    )
    pauses = "0: as fast as the server answers (default), 1: with the client's pauses, 2: with half of them"
    parser.add_argument("--speed", metavar="N", type=speed, default=0.0, help=pauses)
    answer = "seconds for each answer (default: 30)"
    parser.add_argument("--timeout", metavar="S", type=_seconds, default=TIMEOUT, help=answer)
    parser.add_argument("--repeat", metavar="N", type=_count, default=1, help="play it so many times")
    most = "play so many at once; says how fast it went"
    parser.add_argument("--clients", metavar="N", type=_count, default=1, help=most)
    update = "put the new session in the recording's place; the old one is kept as .bak"
    describe(parser, {"--update": (None, update), **RECORDING})
    redact_options.configure(parser)
    configure_comparison(parser)


def main(args: argparse.Namespace) -> int:
    options_of(args)  # What is wrong with them is said before anything starts.
    carry = tuple(_rule(text) for text in args.carry)
    secrets = dict(_secret(text) for text in args.secret)
    query = query_of(args.filter)
    _check(args)
    target = _target(args)
    path = find(args.recording, args.dir)
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    session.end()
    if recording.torn:
        complain(f"{path}: the last line is torn ({recording.torn} bytes, left out)")
    if query is not None:
        session = reduced(session, needed(session, _wanted(session, query)))
    wanted = plans(session)
    if not wanted:
        raise UsageError(f"{path}: no client says anything in it", "so there is nothing to play")

    from mcpspy.io.recording.atomic import Replacement
    from mcpspy.io.replay import ReplayInterrupted, ReplayOptions, run

    where = RecordingTarget()
    redact_options.record(where, args, "replay")
    if args.update and any(
        isinstance(change.what, Note) and change.what.kind == "part" for change in session.changes
    ):
        raise UsageError(f"{path}: a recording in several parts", "--update replaces one file")
    replacement = Replacement(path) if args.update else None
    if replacement is not None:
        where.record = str(replacement.new)
    status = StatusLine()
    asked = ReplayOptions(
        target,
        wanted,
        PlayerOptions(
            speed=args.speed,
            timeout=args.timeout,
            serial=args.concurrency == "serial",
            carry=carry,
            secrets=secrets,
        ),
        where,
        name=recording.header.name,
        repeat=args.repeat,
        clients=args.clients,
        watch=status.show,
    )
    begun = monotonic()
    try:
        try:
            with status:
                runs, code = run(asked), 0
        except ReplayInterrupted as interrupted:
            runs, code = interrupted.played, 128 + interrupted.number
        if not runs:
            return code
        raise_failure(runs)
        seconds = monotonic() - begun
        judged = [(played, compared(session, played, args)) for played in runs]
        found = tell(judged, args, carry, seconds)
        if replacement is None or code:
            return code or found
        return update(replacement, judged[0], args)
    finally:
        if replacement is not None:
            replacement.discard()


def _wanted(session: Session, query: Query) -> set[int]:
    query.end = session.last_at
    wanted = {
        exchange.number
        for exchange in session.exchanges
        if exchange.request.side == CLIENT and query.matches(exchange_item(exchange))
    }
    if not wanted:
        raise UsageError(
            sanitize(f"--filter {query.text}: no request is like that"), "mcpspy show lists them"
        )
    return wanted


def _check(args: argparse.Namespace) -> None:
    if args.update:
        for given, flag in (
            (args.filter, "--filter"),
            (args.record, "--record"),
            (args.no_record, "--no-record"),
            (args.repeat > 1, "--repeat"),
            (args.clients > 1, "--clients"),
        ):
            if given:
                raise UsageError(f"replay: --update and {flag} exclude each other")
    if args.upstream is None:
        for given, flag in (
            (args.header, "--header"),
            (args.sse, "--sse"),
            (args.cacert, "--cacert"),
            (args.insecure, "--insecure"),
        ):
            if given:
                raise UsageError(f"replay: {flag} goes with --upstream")


def _target(args: argparse.Namespace) -> ServerTarget:
    from mcpspy.io.client import ServerAddress, ServerCommand

    if args.command and args.upstream is not None:
        raise UsageError("replay: a command and --upstream", "one server at a time")
    if args.command:
        return ServerCommand(args.command)
    if args.upstream is None:
        raise UsageError("replay: which server?", "mcpspy replay RECORDING -- COMMAND, or --upstream URL")
    read_endpoint("replay: --upstream", args.upstream)
    headers = read_headers("replay: --header", args.header)
    return ServerAddress(args.upstream, headers, args.cacert, args.insecure, True if args.sse else None)


def _secret(text: str) -> tuple[str, str]:
    name, equals, variable = text.partition("=")
    if not (name and equals and variable):
        raise UsageError("replay: --secret takes NAME=VARIABLE", "like api_key=EXAMPLE_KEY")
    if variable not in os.environ:
        raise UsageError(f"replay: --secret {name}: the variable {variable} is not set")
    return name, os.environ[variable]


def _rule(text: str) -> SubstitutionRule:
    try:
        return rule(text)
    except ValueError as error:
        raise UsageError(
            sanitize(f"replay: --carry {text}: {error}"), "like /result/content/0/text=session (\\w+)"
        ) from None


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text} is no count: 1 and up")
    return int(text)
