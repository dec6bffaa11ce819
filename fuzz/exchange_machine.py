"""Fuzz target of the machine of exchanges over HTTP: what must hold in any order of events, legal or not.

A message is recorded before its last byte is forwarded, nothing is forwarded twice, and every exchange ends, once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from multidict import CIMultiDict

from fuzz.http_messages import UPSTREAM
from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.heads import RequestHead, ResponseHead
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.prepared import PreparedHeads
from mcpspy.core.exchange.states import ExchangeState
from mcpspy.core.intercept import actions
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.io.http.context import SessionScopes

TARGETS = ("/mcp", "/other", "/.well-known/oauth-protected-resource")
METHODS = ("POST", "GET", "PUT", "DELETE", "HEAD")
KINDS = ("application/json", "text/event-stream", "text/plain")
MESSAGES = (
    b'{"jsonrpc":"2.0","id":1,"method":"a"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b"no message",
    b"",
)
ROUTE: Any = None
STATUSES = (200, 202, 404, 307)


class Scope:
    def __init__(self, *, limit: int) -> None:
        self.upstream = UPSTREAM
        self.oauth = OAuthTracker(UPSTREAM.origin)
        self.max_body = limit
        self.streams = SessionScopes(UPSTREAM.path)

    def public_origin(self, request: RequestHead) -> str:
        return "http://here"

    def upstream_head(
        self, method: str, target: str, headers: Headers, body: bytes | None, *, has_body: bool
    ) -> bytes:
        return b""

    def client_process(self, client: object, stream: str) -> None:
        return None


class Policy:
    decides_responses = True

    def __init__(self, flags: int) -> None:
        self.is_on = bool(flags & 1)
        self._changes = [side for bit, side in ((2, CLIENT), (4, SERVER)) if flags & bit]
        self.tools = ToolParamHeaders()

    def decides(self, side: str, body: bytes) -> bool:
        return self.is_on and body[:1] == b"{"

    def changes_heads(self, side: str) -> bool:
        return side in self._changes

    def learn_tools(self, data: bytes) -> None: ...


class Observed:
    """An exchange whose commands are executed on paper."""

    def __init__(self, data: Iterator[int]) -> None:
        flags = next(data, 0)
        has_client = not flags & 8
        scope = Scope(limit=20 if flags & 16 else 1 << 20)
        headers = CIMultiDict({"Transfer-Encoding": "chunked"} if flags & 32 else {"Content-Length": "99"})
        method = METHODS[next(data, 0) % len(METHODS)] if has_client else "POST"
        target = TARGETS[next(data, 0) % len(TARGETS)] if has_client else "/mcp"
        head = RequestHead(method, target, headers, "1.0" if flags & 64 else "1.1", keeps_alive=True)
        prepared = PreparedHeads().request(scope, head, target)
        self.exchange = ExchangeMachine(
            scope, Policy(flags), prepared, 1, 0.0, stream=None if has_client else "s"
        )
        self.is_message = method == "POST" and target == "/mcp"
        self.entries: list[dict[str, Any]] = []
        self.ends = 0
        """Times that the client's side has ended."""
        self.has_continue = False
        self.asked = b""
        self.is_asked_whole = False
        self.sent: list[str] = []
        self._ticket = 0

    def take(self, event: c.Event) -> None:
        was_over = self.exchange.state is ExchangeState.OVER
        commands = self.exchange.take(event, 0.0)
        assert not (was_over and commands), commands
        for command in commands:
            self._execute(command)

    def _execute(self, command: c.Command) -> None:
        match command:
            case c.RecordLines(lines, _):
                data = lines if isinstance(lines, bytes) else b"".join(lines)
                self.entries += map(json.loads, data.splitlines())
            case c.Ask(_, _, body, is_last):
                assert not self.sent, "a request is sent once"
                self.sent.append("request")
                self._ask(body, is_last=is_last)
            case c.ToServer(data, is_last):
                assert self.sent == ["request"]
                assert not self.is_asked_whole, "nothing follows the end of a request"
                self._ask(data, is_last=is_last)
            case c.ToClient(_):
                assert not self.ends, "nothing follows the end of a response"
            case c.Finish(_) | c.Respond(_, _) | c.HangUp(_):
                self.ends += 1
                assert self.ends == 1, "the client's side ends once"
                assert self.has_end, "the end of an exchange is recorded first"
            case c.Decide(_, _, raw, event, _):
                self._ticket += 1
                self.take(c.Taken(self._ticket, raw, event))
            case c.Continue(_):
                self.has_continue = True

    def _ask(self, data: bytes, *, is_last: bool) -> None:
        self.asked += data
        self.is_asked_whole = is_last
        if is_last and self.is_message and self.asked and not self.exchange.is_intercepted:
            assert self._is_recorded(CLIENT), "a message is recorded before its end is forwarded"

    def _is_recorded(self, side: str) -> bool:
        return any(entry.get("from") == side for entry in self.entries)

    @property
    def has_end(self) -> bool:
        ends: int = sum(entry.get("note") == "http-end" for entry in self.entries)
        assert ends <= 1
        return bool(ends)


def machine(data: bytes) -> None:
    """Play events in the order of the bytes, then end the exchange."""
    numbers = iter(data)
    observed = Observed(numbers)
    for number in numbers:
        while observed.has_continue:
            observed.has_continue = False
            observed.take(c.Worked())
        observed.take(_event(number, numbers))
    while observed.has_continue:
        observed.has_continue = False
        observed.take(c.Worked())
    was_drained = observed.exchange.state is ExchangeState.DRAINING
    observed.take(c.ClientGone("mcpspy"))
    assert observed.exchange.state is ExchangeState.OVER
    assert observed.has_end or was_drained or not data
    observed.take(c.ResponseData(b"late", True))


def _event(number: int, numbers: Iterator[int]) -> c.Event:
    """Return the event that a byte and those after it denote."""
    choice, ticket = next(numbers, 0), next(numbers, 0) % 4
    message = MESSAGES[choice % len(MESSAGES)]
    is_odd, is_last = bool(choice & 1), bool(choice & 64)
    event = b"data: " + message + b"\n\n"
    events: list[Callable[[], c.Event]] = [
        lambda: c.RequestData(message, is_last),
        lambda: c.RequestData(message[: choice % 9], is_last),
        lambda: _response(choice, STATUSES[ticket], message, event),
        lambda: _response(choice, 200, message, event),
        lambda: c.ResponseData(event, is_last),
        lambda: c.ResponseData(message[: choice % 30], is_last),
        c.Waited,
        lambda: actions.Forward(CLIENT if is_odd else SERVER, message, None, ticket),
        lambda: actions.Substitute(CLIENT, message, None, ticket),
        lambda: actions.Dropped(CLIENT if is_odd else SERVER, None, ticket),
        lambda: c.Answer(message) if is_odd else c.Insert(message),
        lambda: actions.HeadDecided([("X", "1")], ROUTE),
        lambda: c.ServerGone("reset", is_odd, "rest of body"),
        lambda: c.HalfClosed() if is_odd else c.Inspect(),
        lambda: c.ClientGone("client" if is_odd else "mcpspy") if is_last else c.Waited(),
        lambda: actions.Disconnect(None) if is_last else actions.AbortUpstream(ROUTE),
        lambda: c.Injected(message, '"m-1"'),
    ]
    return events[number % len(events)]()


def _response(choice: int, status: int, message: bytes, event: bytes) -> c.ResponseBegins:
    is_alone, is_last = bool(choice & 32), bool(choice & 64)
    kind = KINDS[choice % len(KINDS)]
    headers = [("Content-Type", kind), ("Mcp-Session-Id", "s")]
    if is_last:
        headers.append(("Content-Length", str(len(message))))
    data = b"" if is_alone else event if kind == "text/event-stream" else message
    return c.ResponseBegins(ResponseHead(status, "", headers), True, data, is_last and not is_alone)
