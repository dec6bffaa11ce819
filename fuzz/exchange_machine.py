"""Fuzz target of the machine of exchanges over HTTP: what must hold in any order of events, legal or not.

A message is recorded before its last byte is forwarded, nothing is forwarded twice, and every exchange ends, once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from multidict import CIMultiDict

from fuzz.http_messages import UPSTREAM
from mcpspy.core.exchange.events import Taken
from mcpspy.core.exchange.heads import RequestHead, ResponseHead
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.prepared import PreparedRequest
from mcpspy.core.exchange.states import ExchangeState
from mcpspy.core.intercept import actions
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.io.http.context import SessionScopes

if TYPE_CHECKING:
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.recording.encode import Lines

TARGETS = ("/mcp", "/other", "/.well-known/oauth-protected-resource")
METHODS = ("POST", "GET", "PUT", "DELETE", "HEAD")
KINDS = ("application/json", "text/event-stream", "text/plain")
MESSAGES = (
    b'{"jsonrpc":"2.0","id":1,"method":"a"}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}',
    b"no message",
    b"",
)

Event: TypeAlias = Callable[[ExchangeMachine], None]
STATUSES = (200, 202, 404, 307)


class Scope:
    def __init__(self, policy: Policy, *, limit: int) -> None:
        self.policy = policy
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
        self.changed_heads = frozenset(side for bit, side in ((2, CLIENT), (4, SERVER)) if flags & bit)
        self.tools = ToolParamHeaders()

    def decides(self, side: str, body: bytes) -> bool:
        return self.is_on and body[:1] == b"{"

    def learn_tools(self, data: bytes) -> None: ...


class Observed:
    """An exchange whose shell notes the calls."""

    def __init__(self, data: Iterator[int]) -> None:
        flags = next(data, 0)
        has_client = not flags & 8
        scope = Scope(Policy(flags), limit=20 if flags & 16 else 1 << 20)
        headers = CIMultiDict({"Transfer-Encoding": "chunked"} if flags & 32 else {"Content-Length": "99"})
        method = METHODS[next(data, 0) % len(METHODS)] if has_client else "POST"
        target = TARGETS[next(data, 0) % len(TARGETS)] if has_client else "/mcp"
        head = RequestHead(method, target, headers, "1.0" if flags & 64 else "1.1", keeps_alive=True)
        prepared = PreparedRequest(scope, head, target)
        stream = None if has_client else "s"
        self.exchange = ExchangeMachine(self, prepared, 1, 0.0, stream=stream)
        self.is_message = method == "POST" and target == "/mcp"
        self.entries: list[dict[str, Any]] = []
        self.ends = 0
        """Times that the client's side has ended."""
        self.must_proceed = False
        self.asked = b""
        self.is_asked_whole = False
        self.sent: list[str] = []
        self._ticket = 0
        self._is_over = False

    def take(self, event: Event) -> None:
        self._is_over = self.exchange.state is ExchangeState.OVER
        event(self.exchange)
        self._is_over = False

    def record(self, lines: Lines, _: int) -> None:
        assert not self._is_over, "no event has an effect after the end"
        data = lines if isinstance(lines, bytes) else b"".join(lines)
        self.entries += map(json.loads, data.splitlines())

    def ask(self, _: str, __: bytes, body: bytes, is_last: bool) -> None:
        assert not self.sent, "a request is sent once"
        self.sent.append("request")
        self._ask(body, is_last=is_last)

    def to_server(self, data: bytes, is_last: bool) -> None:
        assert self.sent == ["request"]
        assert not self.is_asked_whole, "nothing follows the end of a request"
        self._ask(data, is_last=is_last)

    def to_client(self, _: bytes) -> None:
        assert not self._is_over, "no event has an effect after the end"
        assert not self.ends, "nothing follows the end of a response"

    def respond(self, _: int, __: bytes) -> None:
        self.finish()

    def finish(self, _: bool = True) -> None:
        self.ends += 1
        assert self.ends == 1, "the client's side ends once"
        assert self.has_end, "the end of an exchange is recorded first"

    hang_up = finish

    def decide(self, _: str, __: bytes, raw: bytes, event: SseEvent | None, ___: object) -> bool:
        self._ticket += 1
        self.exchange.taken(Taken(self._ticket, raw, event))
        self.must_proceed = True
        return False

    def take_turn(self, _: object) -> None:
        self.must_proceed = True

    def _ignore(self, *_: object) -> None:
        assert not self._is_over, "no event has an effect after the end"

    half_close_server = close_server = accept_body = wait = pause = decide_head = _ignore
    open_stream = close_stream = intercept = leave = report_once = fail = to_stream = _ignore

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
        while observed.must_proceed:
            observed.must_proceed = False
            observed.take(ExchangeMachine.proceed)
        observed.take(_event(number, numbers))
    while observed.must_proceed:
        observed.must_proceed = False
        observed.take(ExchangeMachine.proceed)
    was_drained = observed.exchange.state is ExchangeState.DRAINING
    observed.take(lambda exchange: exchange.client_gone("mcpspy"))
    assert observed.exchange.state is ExchangeState.OVER
    assert observed.has_end or was_drained or not data
    observed.take(lambda exchange: exchange.response_data(b"late", True))


def _event(number: int, numbers: Iterator[int]) -> Event:
    """Return the event that a byte and those after it denote."""
    choice, ticket = next(numbers, 0), next(numbers, 0) % 4
    message = MESSAGES[choice % len(MESSAGES)]
    is_odd, is_last = bool(choice & 1), bool(choice & 64)
    event = b"data: " + message + b"\n\n"
    side = CLIENT if is_odd else SERVER
    events: list[Event] = [
        lambda exchange: exchange.request_data(message, is_last),
        lambda exchange: exchange.request_data(message[: choice % 9], is_last),
        _response(choice, STATUSES[ticket], message, event),
        _response(choice, 200, message, event),
        lambda exchange: exchange.response_data(event, is_last),
        lambda exchange: exchange.response_data(message[: choice % 30], is_last),
        ExchangeMachine.waited,
        lambda exchange: exchange.decided(actions.Forward(side, message, None, ticket)),
        lambda exchange: exchange.decided(actions.Substitute(CLIENT, message, None, ticket)),
        lambda exchange: exchange.decided(actions.Dropped(side, None, ticket)),
        lambda exchange: (exchange.answer if is_odd else exchange.insert)(message),
        lambda exchange: exchange.head_decided([("X", "1")]),
        lambda exchange: exchange.server_gone("reset", is_odd, "rest of body"),
        ExchangeMachine.half_closed if is_odd else ExchangeMachine.inspect,
        (lambda exchange: exchange.client_gone(side)) if is_last else ExchangeMachine.waited,
        ExchangeMachine.disconnect if is_last else ExchangeMachine.abort,
        lambda exchange: exchange.injected(message, '"m-1"'),
    ]
    return events[number % len(events)]


def _response(choice: int, status: int, message: bytes, event: bytes) -> Event:
    is_alone, is_last = bool(choice & 32), bool(choice & 64)
    kind = KINDS[choice % len(KINDS)]
    headers = [("Content-Type", kind), ("Mcp-Session-Id", "s")]
    if is_last:
        headers.append(("Content-Length", str(len(message))))
    data = b"" if is_alone else event if kind == "text/event-stream" else message
    head = ResponseHead(status, "", headers)
    return lambda exchange: exchange.response_begins(head, data, True, is_last and not is_alone)
