"""An exchange that is played without sockets: events in, calls of the shell out, as short texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from multidict import CIMultiDict

from mcpspy.core.exchange.events import Taken
from mcpspy.core.exchange.heads import RequestHead, ResponseHead
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.prepared import PreparedRequest
from mcpspy.core.exchange.states import TRANSITIONS, ExchangeState, Input
from mcpspy.core.intercept import actions
from mcpspy.core.protocol.http_headers import Headers, read_upstream
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.recording.encode import CLIENT, SERVER

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Lines

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
JSON, EVENTS = "application/json", "text/event-stream"
Event: TypeAlias = Callable[[ExchangeMachine], None]
EVENT = b"data: " + PONG + b"\n\n"

REACHED: set[tuple[ExchangeState, Input]] = set()
"""The rows of the table that were taken."""


class ObservedExchange(ExchangeMachine):
    def _move(self, meaning: Input) -> None:
        REACHED.add((self.state, meaning))
        super()._move(meaning)


class Streams:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.addresses: set[str] = set()

    def has_path(self, target: str) -> bool:
        return target in ("/mcp", "/sse")

    def is_endpoint(self, target: str) -> bool:
        return self.has_path(target) or target in self.addresses

    def is_address(self, target: str) -> bool:
        return target in self.addresses

    def of(self, session: str | None, target: str, number: int) -> str:
        return session or str(number)

    def bind(self, session: str, stream: str) -> None:
        self.calls.append(f"bind {session} {stream}")

    def bind_address(self, target: str, stream: str) -> None:
        self.calls.append(f"bind address {target} {stream}")

    def end(self, session: str) -> None:
        self.calls.append(f"end {session}")

    def end_address(self, target: str) -> None:
        self.calls.append(f"end address {target}")

    def add_endpoint(self, path: str) -> None:
        self.calls.append(f"endpoint {path}")


class Scope:
    """The surroundings of exchanges, without a proxy."""

    def __init__(self) -> None:
        upstream = read_upstream("http://server.example/mcp")
        assert upstream is not None
        self.upstream = upstream
        self.oauth = OAuthTracker(upstream.origin)
        self.max_body = 1 << 20
        self.streams = Streams()
        self.policy = Policy()

    def public_origin(self, request: RequestHead) -> str:
        return "http://here"

    def upstream_head(
        self, method: str, target: str, headers: Headers, body: bytes | None, *, has_body: bool
    ) -> bytes:
        size = "none" if not has_body else "parts" if body is None else str(len(body))
        return f"{method} {target} {size}".encode()

    def client_process(self, client: object, stream: str) -> None:
        return None


class Policy:
    """The choice of messages that are decided on."""

    def __init__(self, *sides: str, heads: tuple[str, ...] = ()) -> None:
        self.is_on = bool(sides)
        self.sides, self.changed_heads = sides, frozenset(heads)
        self.decides_responses = SERVER in sides
        self.tools = ToolParamHeaders()
        self.learned: list[bytes] = []

    def decides(self, side: str, body: bytes) -> bool:
        return side in self.sides and body[:1] in (b"{", b"[")

    def learn_tools(self, data: bytes) -> None:
        self.learned.append(data)


class Played:
    """One exchange."""

    def __init__(
        self,
        method: str = "POST",
        target: str = "/mcp",
        length: int | None = len(PING),
        *sides: str,
        heads: tuple[str, ...] = (),
        has_client: bool = True,
        version: str = "1.1",
        keeps_alive: bool = True,
        max_body: int = 1 << 20,
        address: bool = False,
        **headers: str,
    ) -> None:
        """Prepare an exchange; without a length, the request is chunked, and with 0 it has no body."""
        self.scope, self.policy = Scope(), Policy(*sides, heads=heads)
        self.scope.policy = self.policy
        self.scope.max_body = max_body
        if address:
            self.scope.streams.addresses.add(target)
        named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        named.update({"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)})
        head = RequestHead(method, target, named, version, keeps_alive=keeps_alive)
        self.prepared = PreparedRequest(self.scope, head, target)
        self._has_client = has_client
        self.begin()

    def begin(self) -> None:
        """Begin an exchange, or the next one with an equal head."""
        self.shell = RecordingShell()
        stream = None if self._has_client else "s"
        self.exchange = ObservedExchange(self.shell, self.prepared, 1, 1.0, client="client", stream=stream)
        self.exchange.now = 2.0

    @property
    def notes(self) -> list[dict[str, Any]]:
        return self.shell.notes

    def take(self, event: Event) -> list[str]:
        """Return the calls of the shell that follow from an event, as texts."""
        event(self.exchange)
        calls, self.shell.calls = self.shell.calls, []
        return calls

    def request(self, data: bytes = PING, *, is_last: bool = True) -> list[str]:
        return self.take(lambda exchange: exchange.request_data(data, is_last))

    def response(
        self,
        data: bytes = b"",
        kind: str = JSON,
        status: int = 200,
        *,
        is_last: bool = True,
        keeps_alive: bool = True,
        **headers: str,
    ) -> list[str]:
        named = [("Content-Type", kind)] if kind else []
        named += [(name.replace("_", "-"), value) for name, value in headers.items()]
        if is_last and "Content_Length" not in headers:
            named.append(("Content-Length", str(len(data))))
        head = ResponseHead(status, "", named)
        return self.take(lambda exchange: exchange.response_begins(head, data, keeps_alive, is_last))

    def more(self, data: bytes, *, is_last: bool = False) -> list[str]:
        return self.take(lambda exchange: exchange.response_data(data, is_last))

    def decide(self, step: str, data: bytes = b"", *, ticket: int = 1, side: str = CLIENT) -> list[str]:
        """Let the interception carry out a step on the message with this ticket."""
        steps: dict[str, Event] = {
            "forward": lambda exchange: exchange.decided(actions.Forward(side, data, None, ticket)),
            "replace": lambda exchange: exchange.decided(actions.Substitute(side, data, None, ticket)),
            "drop": lambda exchange: exchange.decided(actions.Dropped(side, None, ticket)),
            "disconnect": ExchangeMachine.disconnect,
            "abort": ExchangeMachine.abort,
            "answer": lambda exchange: exchange.answer(data),
            "insert": lambda exchange: exchange.insert(data),
            "head": lambda exchange: exchange.head_decided([("X-New", "1")]),
        }
        return self.take(steps[step])

    def taken(self, ticket: int = 1, raw: bytes = b"") -> list[str]:
        return self.take(lambda exchange: exchange.taken(Taken(ticket, raw, None)))


class RecordingShell:
    """Notes the calls of the machine. What may take long is over when a test calls `proceed`."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.notes: list[dict[str, Any]] = []
        self.sent = b""
        """The bytes for the client."""

    def record(self, lines: Lines, _: int) -> None:
        data = lines if isinstance(lines, bytes) else b"".join(lines)
        self.calls.append("record " + ", ".join(map(self._entry, data.splitlines())))

    def ask(self, _: str, head: bytes, body: bytes, is_last: bool) -> None:
        shown = f" {body.decode(errors='replace')}" if body else ""
        self.calls.append(f"ask {head.decode()}{' whole' if is_last else ''}{shown}")

    def to_server(self, data: bytes, is_last: bool) -> None:
        self.calls.append(f"to server {data.decode()}{' end' if is_last else ''}")

    def half_close_server(self) -> None:
        self.calls.append("half close server")

    def close_server(self) -> None:
        self.calls.append("close server")

    def accept_body(self) -> None:
        self.calls.append("accept body")

    def to_client(self, data: bytes) -> None:
        self.sent += data
        head, found, body = data.rpartition(b"\r\n\r\n") if data.startswith(b"HTTP") else (b"", b"", data)
        if found and b"chunked" in head:
            head, _, body = data.partition(b"\r\n\r\n")
        status = f"{head.split(b' ')[1].decode()} " if head else ""
        self.calls.append(f"to client {status}{body.decode()}".strip())

    def respond(self, status: int, body: bytes) -> None:
        self.calls.append(f"respond {status} {body.decode()}".strip())

    def finish(self, keeps_alive: bool) -> None:
        self.calls.append("finish" if keeps_alive else "finish, close")

    def hang_up(self, at_once: bool) -> None:
        self.calls.append("abort" if at_once else "hang up")

    def wait(self) -> None:
        self.calls.append("wait")

    def take_turn(self, long_step: Callable[[], None] | None) -> None:
        if long_step is not None:
            long_step()
        self.calls.append("turn")

    def pause(self, side: str, is_paused: bool) -> None:
        self.calls.append(f"{'pause' if is_paused else 'resume'} {side}")

    def decide(self, side: str, data: bytes, *_: object) -> bool:
        self.calls.append(f"decide {side} {data.decode()}")
        return False

    def decide_head(self, _: Headers, status: int | None) -> None:
        self.calls.append(f"decide head {status or ''}".strip())

    def open_stream(self, is_inspected: bool) -> None:
        self.calls.append("open inspected" if is_inspected else "open")

    def close_stream(self) -> None:
        self.calls.append("close stream")

    def intercept(self) -> None:
        self.calls.append("intercept")

    def leave(self, _: bool) -> None:
        self.calls.append("leave")

    def report_once(self, what: str, *_: object) -> None:
        self.calls.append(f"report {what}")

    def fail(self, _: str, why: str) -> None:
        self.calls.append(f"fail {why}")

    def to_stream(self, data: bytes) -> None:
        self.calls.append(f"to stream {data.decode()}")

    def _entry(self, line: bytes) -> str:
        entry = json.loads(line)
        if "note" not in entry:
            return str(entry["from"]) + (f" lacks {entry['lacks']}" if "lacks" in entry else "")
        self.notes.append(entry)
        more = {"http": entry.get("status"), "http-end": entry.get("hung_up")}.get(entry["note"])
        return f"{entry['note']} {more or ''}".strip()


def unreached() -> list[tuple[ExchangeState, Input]]:
    """Return the rows of the table that were not taken."""
    return [
        (state, each) for state, row in TRANSITIONS.items() for each in row if (state, each) not in REACHED
    ]
