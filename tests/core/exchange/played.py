"""An exchange that is played without sockets: events in, commands out, as short texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from multidict import CIMultiDict

from mcpspy.core.exchange import commands as c
from mcpspy.core.exchange.heads import RequestHead, ResponseHead
from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.prepared import PreparedHeads
from mcpspy.core.exchange.states import TRANSITIONS, ExchangeState, Input
from mcpspy.core.intercept import actions
from mcpspy.core.protocol.http_headers import Headers, read_upstream
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.recording.encode import CLIENT, SERVER

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
JSON, EVENTS = "application/json", "text/event-stream"
ROUTE: Any = None
"""The exchange in a step, which the machine does not look at."""
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

    def is_endpoint(self, target: str) -> bool:
        return target in ("/mcp", "/sse") or target in self.addresses

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
        self.sides, self.heads = sides, heads
        self.decides_responses = SERVER in sides
        self.tools = ToolParamHeaders()
        self.learned: list[bytes] = []

    def decides(self, side: str, body: bytes) -> bool:
        return side in self.sides and body[:1] in (b"{", b"[")

    def changes_heads(self, side: str) -> bool:
        return side in self.heads

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
        self.scope.max_body = max_body
        if address:
            self.scope.streams.addresses.add(target)
        named = CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})
        named.update({"Transfer-Encoding": "chunked"} if length is None else {"Content-Length": str(length)})
        self.prepared = PreparedHeads()
        self.head = RequestHead(method, target, named, version, keeps_alive=keeps_alive)
        self._has_client = has_client
        self.begin()

    def begin(self) -> None:
        """Begin an exchange, or the next one with an equal head."""
        request = self.prepared.request(self.scope, self.head, self.head.target)
        stream = None if self._has_client else "s"
        self.exchange = ObservedExchange(
            self.scope, self.policy, request, 1, 1.0, client="client", stream=stream
        )
        self.notes: list[dict[str, Any]] = []

    def take(self, event: c.Event) -> list[str]:
        """Return the commands that follow from an event, as texts."""
        return [self._shown(command) for command in self.exchange.take(event, 2.0)]

    def request(self, data: bytes = PING, *, is_last: bool = True) -> list[str]:
        return self.take(c.RequestData(data, is_last))

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
        return self.take(c.ResponseBegins(ResponseHead(status, "", named), keeps_alive, data, is_last))

    def more(self, data: bytes, *, is_last: bool = False) -> list[str]:
        return self.take(c.ResponseData(data, is_last))

    def decide(self, step: str, data: bytes = b"", *, ticket: int = 1, side: str = CLIENT) -> list[str]:
        """Let the interception carry out a step on the message with this ticket."""
        steps: dict[str, Callable[[], c.Event]] = {
            "forward": lambda: actions.Forward(side, data, None, ticket),
            "replace": lambda: actions.Substitute(side, data, None, ticket),
            "drop": lambda: actions.Dropped(side, None, ticket),
            "disconnect": lambda: actions.Disconnect(None),
            "abort": lambda: actions.AbortUpstream(ROUTE),
            "answer": lambda: c.Answer(data),
            "insert": lambda: c.Insert(data),
            "head": lambda: actions.HeadDecided([("X-New", "1")], ROUTE),
        }
        return self.take(steps[step]())

    def taken(self, ticket: int = 1, raw: bytes = b"") -> list[str]:
        return self.take(c.Taken(ticket, raw, None))

    def _shown(self, command: c.Command) -> str:
        match command:
            case c.RecordLines(lines, _):
                data = lines if isinstance(lines, bytes) else b"".join(lines)
                return "record " + ", ".join(map(self._entry, data.splitlines()))
            case c.Ask(_, head, body, is_last):
                return f"ask {head.decode()}{' whole' if is_last else ''}{' ' + body.decode(errors='replace') if body else ''}"
            case c.ToServer(data, is_last):
                return f"to server {data.decode()}{' end' if is_last else ''}"
            case c.ToClient(data):
                head, found, body = (
                    data.rpartition(b"\r\n\r\n") if data.startswith(b"HTTP") else (b"", b"", data)
                )
                if found and b"chunked" in head:
                    head, _, body = data.partition(b"\r\n\r\n")
                first = f"{head.split(b' ')[1].decode()} " if head else ""
                return f"to client {first}{body.decode()}".strip()
            case c.Decide(side, data, _, _, _):
                return f"decide {side} {data.decode()}"
            case c.DecideHead(_, status):
                return f"decide head {status or ''}".strip()
            case c.Respond(status, body):
                return f"respond {status} {body.decode()}".strip()
            case c.ReportOnce(what, _, _):
                return f"report {what}"
            case c.Fail(_, why):
                return f"fail {why}"
            case c.ToStream(data):
                return f"to stream {data.decode()}"
            case c.Finish(keeps_alive):
                return "finish" if keeps_alive else "finish, close"
            case c.HangUp(at_once):
                return "abort" if at_once else "hang up"
            case c.Continue(in_turn, long_step):
                if long_step is not None:
                    long_step()
                return "turn" if in_turn else "continue"
            case c.Pause(side, is_paused):
                return f"{'pause' if is_paused else 'resume'} {side}"
            case c.OpenStream(is_inspected):
                return "open inspected" if is_inspected else "open"
            case _:
                return type(command).__name__.lower()

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
