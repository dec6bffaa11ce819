"""`mcpspy send`: send a request into a live session; `mcpspy restart`: start its server again."""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session import restart_notes
from mcpspy.errors import FINDINGS, CannotStart, UsageError
from mcpspy.io.control.client import (
    CommandRefused,
    ControlClient,
    LiveSession,
    dumped,
    find_session,
    live_sessions,
    missing_session,
)
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.lookup import find as find_recording
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.settings import sessions_folder
from mcpspy.ui.cli.arguments import read_parameters
from mcpspy.ui.cli.options import FOLDER, Argument, Option, Switch, duration, formats
from mcpspy.ui.model.body import pretty
from mcpspy.ui.text.terminal import Output, columns, print_json, write_json

TAKES_OPTIONS_ANYWHERE = True

EPILOG = """\
examples:
  mcpspy send last tools/list
  mcpspy send weather tools/call name=forecast arguments.city=Berlin
  mcpspy send weather tools/call '{"name":"forecast","arguments":{"city":"Berlin"}}'
  mcpspy send last --to client roots/list
  mcpspy send last --notify notifications/roots/list_changed
  mcpspy send --list

Sends the message on behalf of the other peer, under an unused id. The response is printed
and recorded; the other peer never receives it. The session must be live.
SESSION is `last`, a session name or the beginning of a session id, of a session in the
folder (see --dir); or a recording, anywhere.
PARAMS are JSON, KEY=VALUE (a.b=1 sets a nested key; VALUE is JSON if it parses as JSON),
@FILE, KEY=@FILE, or - for stdin; several are merged.

exit codes: 0 success; 1 error response or tool error; 2 usage error; 3 session not
reachable, or no response in time
"""

TIMEOUT = 30.0

OPENING = 2.0
"""Seconds after the start of a session in which its control socket may not be open yet."""

OPTIONS = (
    Argument("session", "SESSION", "the live session", nargs="?", excludes=("--list",),
        hint="use mcpspy send --list"),
    Argument("method", "METHOD", "tools/list, tools/call, ping, …", nargs="?"),
    Argument("params", "PARAMS", "parameters of the method", nargs="*"),
    Option("--to", None, "recipient (default: server)", choices=("server", "client"), default="server"),
    Switch("--notify", "send a notification instead of a request"),
    Option("--timeout", "TIME",
        "time to wait for the response: 30, 500ms, 5min (default: 30); a late response is recorded",
        read=duration, default=TIMEOUT),
    Option("--stream", "N", "HTTP: stream number, as printed by `mcpspy show`"),
    *formats("json: the whole response on one line"),
    Switch("--list", "list the live sessions of the folder and exit"),
    FOLDER,
)  # fmt: skip


def main(args: argparse.Namespace) -> int:
    if args.list:
        _list(args.dir, as_json=args.format == "json")
        return 0
    if args.session is None or args.method is None:
        missing = "METHOD" if args.session else "SESSION and METHOD"
        raise UsageError(f"send: missing {missing}", "use mcpspy send last tools/list")
    fields: dict[str, Any] = {"to": args.to, "method": args.method}
    if (params := read_parameters(args.params)) is not None:
        fields["params"] = params
    if args.stream is not None:
        fields["stream"] = args.stream
    with ControlClient(_socket("send", args.session, args.dir), "send") as session:
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
                raise CannotStart(f"send: no response: {sanitize(str(event.get('error')))}")
            response: dict[str, Any] = event["message"]
            return response
        elif event["event"] == "end":
            raise CannotStart("send: no response: the session has ended")
    raise CannotStart(f"send: no response within {args.timeout:g} s", "use --timeout 300 to wait longer")


def _print_response(response: dict[str, Any], args: argparse.Namespace) -> int:
    error, result = response.get("error"), response.get("result")
    failed = error is not None or (isinstance(result, dict) and result.get("isError") is True)
    if args.format == "json":
        write_json(dumped(response))
        return FINDINGS if failed else 0
    for line in pretty(dumped(result if error is None else error).rstrip(b"\n")):
        Output().line(line)
    if error is not None:
        sys.stderr.write(f"mcpspy: send: the {args.to} returned an error\n")
    return FINDINGS if failed else 0


def _print_progress(message: dict[str, Any]) -> None:
    params = message.get("params")
    if isinstance(params, dict) and sys.stderr.isatty():
        of = f"/{params['total']}" if "total" in params else ""
        sys.stderr.write(
            sanitize(f"mcpspy: {params.get('progress')}{of} {params.get('message', '')}").rstrip() + "\n"
        )


def _socket(command: str, name: str, folder: str | None) -> str:
    """Return the control socket of a session like `_open_socket`; wait for that of a session that has just begun."""
    while True:
        now = time.time()
        try:
            return _open_socket(command, name, folder)
        except CannotStart:
            newest = Catalog(folder).newest(entries=False)[:1]
            live = [each.header for each in newest if each.state is RecordingState.LIVE]
            # A start in the future is that of a session during which the clock was set back.
            starts = [datetime.fromisoformat(header.started).timestamp() for header in live]
            if not any(abs(now - start) < OPENING for start in starts):
                raise
        time.sleep(0.05)


def _open_socket(command: str, name: str, folder: str | None) -> str:
    """Return the control socket of a session, by its name, id or file. Raises UsageError or CannotStart.

    A name or an id is that of a session in the folder; a file may be anywhere. `command` begins the errors.
    """
    if os.sep in name or name.endswith(".jsonl"):
        return find_session(name)
    looked_at = sessions_folder(folder)
    live = live_sessions()[::-1]
    here = [each for each in live if each.is_in(looked_at)]
    for session in here:
        if name in ("last", session.hello["session"], session.hello["name"]):
            return session.path
    if matching := [each for each in here if each.is_called(name)]:
        if len(matching) > 1:
            raise UsageError(
                f"{command}: {name}: {len(matching)} live sessions have ids like this", "use more characters"
            )
        return matching[0].path
    named = [each for each in live if each not in here and each.is_called(name)]
    if name == "last" or named:
        raise missing_session(
            looked_at, named, f"{command}: no live session {'' if name == 'last' else name}".rstrip()
        )
    state = Recording(find_recording(name, folder)).state
    if state is RecordingState.LIVE:
        raise CannotStart(
            f"{command}: {name} is live, but not reachable", "its mcpspy printed the reason on stderr"
        )
    raise CannotStart(
        f"{command}: {name} is not live, its state is {state}", "mcpspy send --list shows live sessions"
    )


def _list(folder: str | None, *, as_json: bool) -> None:
    looked_at, live = sessions_folder(folder), live_sessions()
    here = [each for each in live if each.is_in(looked_at)]
    if here or as_json:
        _print_sessions(here, as_json=as_json)
    elif len(live) == 0:
        Output().line(sanitize(f"No session is live in {looked_at}."))
    if len(here) < len(live):
        elsewhere = [each for each in live if each not in here]
        subject = f"send: {len(here)} live {'session' if len(here) == 1 else 'sessions'}"
        sys.stderr.write(sanitize(f"mcpspy: {missing_session(looked_at, elsewhere, subject)}") + "\n")


def _print_sessions(found: list[LiveSession], *, as_json: bool) -> None:
    if as_json:
        for path, hello in found:
            document = {key: value for key, value in hello.items() if key != "mcpspy"}
            print_json({**document, "socket": path})
        return
    output = Output()
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


_RESTART_EPILOG = """\
examples:
  mcpspy restart last
  mcpspy restart weather --timeout 5min

The server must have been started with `mcpspy run --watch` or `mcpspy http --watch`. Hosts stay
connected, and keep their sessions. Prints what changed in the interface of the server, for each of
its processes.

exit codes: 0 success; 1 the new server does not run; 2 usage error; 3 session not
reachable, or no new server in time
"""


def _restart(args: argparse.Namespace) -> int:
    with ControlClient(_socket("restart", args.session, args.dir), "restart") as session:
        if not session.hello.get("restarts"):
            raise UsageError(
                f"restart: {sanitize(str(session.hello['name']))} cannot be restarted",
                "start its server with mcpspy run --watch PATH -- COMMAND, or mcpspy http --watch",
            )
        try:
            servers = session.order("restart").get("servers", 1)
        except CommandRefused as error:
            raise UsageError(f"restart: {sanitize(str(error))}") from None
        begun, code = set[str | None](), 0
        for event in session.events(args.timeout):
            if event["event"] == "restart":
                did, stream = event.get("did"), event.get("stream")
                if did == "started":
                    begun.add(stream)
                elif did == "failed" or (did == "listed" and stream in begun):
                    for line in restart_notes.lines(event):
                        Output().line(sanitize(line), rows.BAD if did == "failed" else "")
                    code, servers = FINDINGS if did == "failed" else code, servers - 1
                    if not servers:
                        return code
            elif event["event"] == "end":
                raise CannotStart("restart: the session has ended")
    raise CannotStart(f"restart: no new server within {args.timeout:g} s", "use --timeout 300 to wait longer")


RESTART = SimpleNamespace(
    EPILOG=_RESTART_EPILOG,
    OPTIONS=(
        Argument("session", "SESSION", "the live session: its name or id, its file, or last"),
        Option("--timeout", "TIME", "time to wait for the new server: 30, 500ms, 5min (default: 30)",
            read=duration, default=TIMEOUT),
        FOLDER,
    ),
    main=_restart,
)  # fmt: skip
