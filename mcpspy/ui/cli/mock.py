"""`mcpspy mock`: serve a recording as the server it was made from."""

from __future__ import annotations

import argparse

from mcpspy.core.mock.responses import INTERNAL_ERROR, METHOD_NOT_FOUND
from mcpspy.core.mock.selector import MatchMode, Selector
from mcpspy.core.mock.session import MockOptions
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.mock.stdio import EndedBySignal, end_by_signals, serve
from mcpspy.io.recording.reader import find
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.arguments import ignored_parameter, listen_address, read_endpoint, read_headers
from mcpspy.ui.cli.options import FOLDER, VARIABLE, describe, speed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.io.mock.upstream import RealServer

TAKES_COMMAND = True

EPILOG = """\
examples:
  mcpspy mock weather.jsonl
  mcpspy mock last --match lenient --ignore /params/arguments/now
  mcpspy mock probe.jsonl session.jsonl --strict
  mcpspy mock weather.jsonl --http 8809
  mcpspy mock weather.jsonl --on-miss forward --append more.jsonl -- node server.js

Put it where the server's command stands: the command becomes "mcpspy", the arguments
"mock" and the file. Serves on stdin and stdout until stdin is closed, or with --http
on 127.0.0.1 until SIGTERM or Ctrl-C, whatever the recording was made on. What was
asked for and not recorded is an error for the client, and a line on stderr.

RECORDING is a file, `last`, a session's name, or its id (the beginning will do).

exit codes: 0; 1 with --strict, if a request was not recorded or a recorded one was not
asked for; 2 usage, not a recording; 3 cannot be read, the port is taken; 143 (on stdio)
ended by SIGTERM
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "recordings", metavar="RECORDING", nargs="+", help="what to serve; of the same, the last counts"
    )
    http = {
        "--http": ("[HOST:]PORT", "serve over HTTP, to any number of clients; 0 takes a free port"),
        "--allow-host": ("NAME", "with --http: let requests in that name this host, too"),
    }
    describe(parser, http, repeated=("--allow-host",))
    parser.add_argument(
        "--match",
        choices=[str(match) for match in MatchMode],
        default=str(MatchMode.EXACT),
        help="what has to be the same: all (default), all or the only one of its tool or uri, the method alone",
    )
    ignore = {
        "--ignore": ("POINTER", "what may differ, as in /params/arguments/now; may be given more than once")
    }
    describe(parser, ignore, repeated=ignore)
    parser.add_argument(
        "--on-exhausted",
        choices=["repeat", "error"],
        default="repeat",
        help="when a request comes more often than it was recorded: the last answer again (default), or a miss",
    )
    parser.add_argument(
        "--on-miss",
        choices=["error", "method-not-found", "forward"],
        default="error",
        help="what is answered to what was not recorded: -32603 (default), -32601, or what the real server says",
    )
    real = {
        "--upstream": ("URL", "the real server, for --on-miss forward"),
        "--header": (
            "'NAME: VALUE'",
            f"sent to --upstream with every request; {VARIABLE}; may be given more than once",
        ),
        "--append": (
            "FILE",
            "record what the real server says to a new file, to be served beside the others",
        ),
    }
    describe(parser, real, repeated=("--header",))
    factor = "0: at once (default), 1: in the recorded time, 2: in half of it"
    parser.add_argument("--speed", metavar="N", type=speed, default=0.0, help=factor)
    rest = {
        "--strict": (None, "exit with 1 if a request was not recorded, or a recorded one was not asked for"),
        "--merge": (None, "make one server of recordings of several"),
        **FOLDER,
    }
    describe(parser, rest)
    parser.usage = f"{parser.prog} [options] RECORDING… [-- COMMAND …]"


def main(args: argparse.Namespace) -> int:
    ignored = [ignored_parameter(f"mock: --ignore {text}", text) for text in args.ignore]
    served = RecordingsLoader([find(which, args.dir) for which in args.recordings], ignored, merge=args.merge)
    real = _real(args)
    options = MockOptions(
        match=MatchMode(args.match),
        repeats=args.on_exhausted == "repeat",
        miss=METHOD_NOT_FOUND if args.on_miss == "method-not-found" else INTERNAL_ERROR,
        forwards=real is not None,
        speed=args.speed,
    )
    if args.http is not None:
        selectors, code = _serve_http(served, options, args, real), 0
    else:
        selectors, code = _serve(served, options, real)
    if args.strict:
        served.recordings()  # The client may have left before the whole file was read.
        if _report_strict(selectors):
            return FINDINGS
    return code


def _real(args: argparse.Namespace) -> RealServer | None:
    """Return the real server that the options name, None without --on-miss forward. Raises UsageError."""
    used = {
        "--append": args.append,
        "--header": args.header,
        "--upstream": args.upstream,
        "-- COMMAND": args.command,
    }
    if args.on_miss != "forward":
        for option in filter(used.get, used):
            raise UsageError(f"mock: {option} is for --on-miss forward")
        return None
    if bool(args.upstream) == bool(args.command):
        raise UsageError(
            "mock: --on-miss forward asks one server", "--upstream URL, or -- COMMAND at the end"
        )
    # Not at the top: without a real server the mock does not wait for asyncio.
    from mcpspy.io.client import ServerAddress, ServerCommand
    from mcpspy.io.mock.upstream import RealServer
    from mcpspy.io.session_name import session_name

    if args.command:
        if args.header:
            raise UsageError("mock: --header is for --upstream")
        return RealServer(ServerCommand(args.command), session_name(args.command), args.append)
    upstream = read_endpoint("mock: --upstream", args.upstream)
    headers = read_headers("mock: --header", args.header)
    return RealServer(ServerAddress(args.upstream, headers), upstream.host, args.append)


def _serve(
    served: RecordingsLoader, options: MockOptions, real: RealServer | None
) -> tuple[list[Selector], int]:
    end_by_signals()
    try:
        return [serve(served, options, _warn, real)], 0
    except EndedBySignal as ended:
        return [] if ended.selector is None else [ended.selector], 128 + ended.number


def _serve_http(
    served: RecordingsLoader, options: MockOptions, args: argparse.Namespace, real: RealServer | None
) -> list[Selector]:
    host, port = listen_address("mock: --http", args.http)
    # Not at the top: on stdio the mock does not wait for aiohttp.
    import asyncio

    from mcpspy.io.http.listener import listening
    from mcpspy.io.mock import http

    def read_on() -> bool:
        is_more = served.read_on()
        for line in served.take_warnings():
            _warn(line)
        return is_more

    with listening(host, port, "another port, or 0 for any that is free") as listener:
        if host not in LOOPBACK:
            _warn(f"warning: listening on {host}, so other machines can ask for what was recorded")
        recordings = served.begin()
        for line in served.take_warnings():
            _warn(line)
        allowed = [*args.allow_host, *(() if host in LOOPBACK else (host,))]
        mock = http.Mock(recordings, options, _warn, allowed, real)
        asyncio.run(http.serve(mock, listener, host, read_on))
    return mock.selectors


def _report_strict(selectors: list[Selector]) -> bool:
    """Print misses and recorded requests that were not sent; return whether there are any."""
    misses = [line for selector in selectors for line in selector.misses]
    # A request that one client sent counts as sent.
    others = [{interaction.order for interaction in selector.unused()} for selector in selectors[1:]]
    unused = [
        interaction
        for interaction in (selectors[0].unused() if selectors else [])
        if all(interaction.order in orders for orders in others)
    ]
    for line in misses:
        _warn(f"strict: {line}")
    for interaction in unused:
        if (request := interaction.key) is not None:
            number = f"request {interaction.number} of {interaction.recording}"
            _warn(f"strict: never asked for: {request.about} ({number})")
    return bool(misses or unused)


def _warn(line: str) -> None:
    say(sanitize(line))
