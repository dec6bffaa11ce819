"""`mcpspy send`: send a request into a live session."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import orjson

from mcpspy.analysis import rows
from mcpspy.core.rules.model import seconds
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.io.control.client import ControlClient
from mcpspy.io.control.discovery import LiveSession, find, sessions
from mcpspy.io.control.protocol import CommandRefused, dumped
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.reader import find as find_recording
from mcpspy.ui.body import pretty
from mcpspy.ui.cli.arguments import read_parameters
from mcpspy.ui.cli.options import describe
from mcpspy.ui.terminal import Output, columns

TAKES_OPTIONS_ANYWHERE = True

EPILOG = """\
examples:
  mcpspy send last tools/list
  mcpspy send weather tools/call name=forecast arguments.city=Berlin
  mcpspy send weather tools/call '{"name":"forecast","arguments":{"city":"Berlin"}}'
  mcpspy send last --to client roots/list
  mcpspy send last --notify notifications/roots/list_changed
  mcpspy send --list

Says it in the name of the other side, under an id that nobody else uses; the answer
comes here and into the recording, never to who did not ask. The session has to be live.
SESSION is `last`, a session's name, its id (the beginning will do), or its file.
PARAMS: JSON, KEY=VALUE (a.b=1 for what is inside; a value is JSON, if it can be read as
such), @FILE or KEY=@FILE, - for stdin; several of them are put together.

exit codes: 0 answered, or sent; 1 answered with an error, a tool's own included; 2 usage;
3 the session cannot be reached, or no answer came in time
"""

TIMEOUT = 30.0


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", nargs="?", help="which one")
    parser.add_argument("method", metavar="METHOD", nargs="?", help="tools/list, tools/call, ping …")
    parser.add_argument("params", metavar="PARAMS", nargs="*", help="its parameters")
    parser.add_argument(
        "--to", choices=("server", "client"), default="server", help="who is asked (default: server)"
    )
    describe(parser, {"--notify": (None, "send a notification: nobody answers it")})
    wait = "how long to wait for the answer (default: 30); a late one is still recorded, and goes to nobody"
    parser.add_argument("--timeout", metavar="S", type=seconds, default=TIMEOUT, help=wait)
    options = {
        "--stream": ("N", "HTTP: the conversation, as `show` numbers them"),
        "--json": (None, "print the whole answer, in one line"),
        "--list": (None, "list the live sessions instead"),
    }
    describe(parser, options)


def main(args: argparse.Namespace) -> int:
    if args.list:
        if args.session is not None:
            raise UsageError("send: --list takes no session", "mcpspy send --list")
        _print_sessions(sessions(), as_json=args.json)
        return 0
    if args.session is None or args.method is None:
        raise UsageError("send: to which session, and what?", "mcpspy send last tools/list")
    fields: dict[str, Any] = {"to": args.to, "method": args.method}
    if (params := read_parameters(args.params)) is not None:
        fields["params"] = params
    if args.stream is not None:
        fields["stream"] = args.stream
    with ControlClient(_socket(args.session), "send") as session:
        try:
            if args.notify:
                session.order("notify", **fields)
                return 0
            request = session.order("request", **fields)
        except CommandRefused as error:
            raise UsageError(f"send: {sanitize(str(error))}") from None
        return _print_response(_response(session, request["id"], args), args)


def _response(session: ControlClient, number: str, args: argparse.Namespace) -> dict[str, Any]:
    for event in session.events(args.timeout):
        if event.get("id") == number and event["event"] == "progress":
            _print_progress(event["message"])
        elif event.get("id") == number and event["event"] == "answer":
            if "message" not in event:
                raise CannotStart(f"send: no answer: {sanitize(str(event.get('error')))}")
            response: dict[str, Any] = event["message"]
            return response
        elif event["event"] == "end":
            raise CannotStart("send: no answer: the session has ended")
    raise CannotStart(f"send: no answer within {args.timeout:g} s", "--timeout 300 waits longer")


def _print_response(response: dict[str, Any], args: argparse.Namespace) -> int:
    error, result = response.get("error"), response.get("result")
    failed = error is not None or (isinstance(result, dict) and result.get("isError") is True)
    if args.json:
        sys.stdout.buffer.write(dumped(response))
        return FINDINGS if failed else 0
    for line in pretty(dumped(result if error is None else error).rstrip(b"\n")):
        Output().line(line)
    if error is not None:
        sys.stderr.write(f"mcpspy: send: the {args.to} answered with an error\n")
    return FINDINGS if failed else 0


def _print_progress(message: dict[str, Any]) -> None:
    params = message.get("params")
    if isinstance(params, dict) and sys.stderr.isatty():
        of = f"/{params['total']}" if "total" in params else ""
        sys.stderr.write(
            sanitize(f"mcpspy: {params.get('progress')}{of} {params.get('message', '')}").rstrip() + "\n"
        )


def _socket(which: str) -> str:
    """Return the control socket of a session, by its name, id or file. Raises UsageError or CannotStart."""
    if os.sep in which or which.endswith(".jsonl"):
        return find(which)
    live = sessions()[::-1]
    for path, hello in live:
        if which in ("last", hello["session"], hello["name"]):
            return path
    matching = [path for path, hello in live if len(which) >= 2 and hello["session"].startswith(which)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise UsageError(f"{which}: {len(matching)} sessions have such an id", "give more of it")
    if which == "last":
        raise CannotStart("send: no session is live", "start one: mcpspy run -- COMMAND")
    state = Recording(find_recording(which)).state
    if state is RecordingState.LIVE:
        raise CannotStart(
            f"send: {which} is live, but cannot be reached", "its mcpspy has said why on stderr"
        )
    raise CannotStart(
        f"send: {which} has {state}: nobody is there to answer",
        "mcpspy send --list shows those that are live",
    )


def _print_sessions(found: list[LiveSession], *, as_json: bool) -> None:
    if as_json:
        for path, hello in found:
            document = {key: value for key, value in hello.items() if key != "mcpspy"}
            sys.stdout.buffer.write(
                orjson.dumps({**document, "socket": path}, option=orjson.OPT_APPEND_NEWLINE)
            )
        return
    output = Output()
    if not found:
        output.line("No session is live.")
        return
    table = [
        [
            sanitize(hello["session"]),
            sanitize(hello["name"]),
            hello["transport"],
            str(hello["pid"]),
            str(len(hello["state"].get("held", ()))),
            sanitize(hello["file"] or "not recorded"),
        ]
        for _, hello in found
    ]
    heads = ["id", "name", "transport", "pid", "held", "recording"]
    widths = [max(len(row[i]) for row in [heads, *table]) for i in range(len(heads) - 1)] + [0]
    output.line(columns(heads, widths), rows.QUIET)
    for row in table:
        output.line(columns(row, widths))
