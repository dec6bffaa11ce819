"""A request to a server over HTTP that mcpspy injects."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from multidict import CIMultiDict

from mcpspy.core.intercept.actions import Disconnect, Forward, Inject
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.io.http.injected_request import InjectedRequest
from mcpspy.io.http.routes import Route, RouteTable
from mcpspy.io.http.upstream_connection import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable

pytestmark = pytest.mark.timeout(60)

MODERN = b'{"jsonrpc":"2.0","id":"m-1","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'


class Upstream:
    origin, path, host = "http://127.0.0.1:1", "/mcp", "127.0.0.1:1"


class Response:
    """A response whose body arrives in these chunks; an exception among them is raised."""

    def __init__(self, content_type: str, *chunks: bytes | BaseException, status: int = 200) -> None:
        self.content_type, self.status, self._chunks = content_type, status, chunks
        self.headers = [("Content-Type", content_type)]
        self.body = self
        self.is_closed = False

    def header(self, _name: str) -> None:
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        for chunk in self._chunks:
            if isinstance(chunk, BaseException):
                raise chunk
            yield chunk

    def close(self) -> None:
        self.is_closed = True


class Proxy:
    """A proxy without a server, or with this response of one."""

    upstream = Upstream()
    max_body = 100

    def __init__(self, response: Response | None = None) -> None:
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[tuple[Any, ...]] = []
        self._response = response

    def next_number(self) -> int:
        return 7

    async def send_request(self, *what: Any) -> Any:
        self.asked.append(what)
        if self._response is None:
            raise UpstreamError("Connection refused")
        return self._response

    async def note(self, kind: str, fields: dict[str, Any]) -> None:
        self.notes.append((kind, fields))


class Interception:
    """Stores the calls it gets."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.failures: list[tuple[str, str]] = []
        self.exchanges: set[object] = set()
        self.taken: list[tuple[bytes, dict[str, Any]]] = []
        self.lines: list[bytes] = []
        self.is_holding = False
        self.tools = ToolParamHeaders()
        self.routes = RouteTable()

    def now(self) -> float:
        return 1.0

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    async def decided_headers(self, _fields: object, headers: Headers, _line: object) -> Headers:
        return headers

    def failed(self, id: str, why: str) -> None:  # noqa: A002
        self.failures.append((id, why))

    async def take(
        self, _route: object, _side: str, data: bytes, fields: dict[str, Any], keep: Callable[[int], None]
    ) -> None:
        self.taken.append((data, fields))
        if self.is_holding:
            keep(len(self.taken))

    async def record_lines(self, lines: Iterable[bytes]) -> None:
        self.lines += lines

    def add_exchange(self, exchange: object) -> None:
        self.exchanges.add(exchange)

    def remove_exchange(self, exchange: object) -> None:
        self.exchanges.discard(exchange)


@pytest.mark.parametrize(("is_session", "stream"), [(True, "3"), (False, "7")])
async def test_it_belongs_to_the_session_or_is_a_separate_stream(is_session: bool, stream: str) -> None:
    proxy, interception = Proxy(), Interception()
    route = Route(
        "3", "/mcp?key=1", CIMultiDict({"Host": "here", "Authorization": "token"}), "http://here", is_session
    )
    injected = InjectedRequest(proxy, interception, route)  # type: ignore[arg-type]
    injected.deliver(Inject("client", MODERN, None, None, '"m-1"'))
    await asyncio.gather(*interception.tasks)

    assert injected.fields == {"stream": stream, "http": 7}
    assert [kind for kind, _ in proxy.notes] == ["http", "http-end"]
    assert proxy.notes[0][1]["by"] == proxy.notes[1][1]["by"] == "mcpspy"
    assert proxy.notes[0][1]["request"]["authorization"] == "[redacted]"
    method, target, headers, data = proxy.asked[0]
    assert (method, target, data) == ("POST", "/mcp?key=1", MODERN)
    assert dict(headers)["Host"] == "127.0.0.1:1"
    assert dict(headers)["Mcp-Method"] == json.loads(MODERN)["method"]
    assert interception.failures == [('"m-1"', "the server cannot be reached: Connection refused")]
    assert not interception.exchanges


async def test_messages_with_the_response_are_dropped_without_an_open_stream() -> None:
    injected = InjectedRequest(Proxy(), Interception(), Route("3", "/mcp", {}, "", True))  # type: ignore[arg-type]
    injected.deliver(Forward("server", b"{}", injected, 1))
    injected.release_all()
    assert not injected.is_answered_here


async def test_an_exchange_that_a_rule_disconnects_keeps_no_message() -> None:
    interception = Interception()
    injected = InjectedRequest(
        Proxy(Response("text/event-stream", b'data: {"jsonrpc":"2.0","method":"a"}\n\n')),  # type: ignore[arg-type]
        interception,  # type: ignore[arg-type]
        Route("3", "/mcp", CIMultiDict(), "http://here", True),
    )
    interception.is_holding = True
    injected.deliver(Inject("client", MODERN, None, None, '"m-1"'))
    await asyncio.gather(*interception.tasks)
    assert interception.exchanges == {injected}
    injected.deliver(Disconnect(injected))
    assert not interception.exchanges


async def injected_into(response: Response) -> tuple[Proxy, Interception]:
    """Return a proxy and its interception after an injected request that gets this response."""
    proxy, interception = Proxy(response), Interception()
    injected = InjectedRequest(proxy, interception, Route("3", "/mcp", CIMultiDict(), "http://here", True))  # type: ignore[arg-type]
    injected.deliver(Inject("client", MODERN, None, None, '"m-1"'))
    await asyncio.gather(*interception.tasks, return_exceptions=True)
    assert response.is_closed
    assert not interception.exchanges
    return proxy, interception


async def test_the_messages_of_a_stream_are_taken_with_their_event_ids() -> None:
    events = b'id: 5\ndata: {"jsonrpc":"2.0","method":"a"}\n\ndata: \n\ndata: text\n\ndata: {"jsonrpc":"2.0","method":"b"}\n\n'
    _, interception = await injected_into(Response("text/event-stream", events[:20], events[20:]))
    fields = {"stream": "3", "http": 7}
    assert interception.taken == [
        (b'{"jsonrpc":"2.0","method":"a"}', {**fields, "id": "5"}),
        (b'{"jsonrpc":"2.0","method":"b"}', fields),
    ]


async def test_a_response_that_breaks_off_is_reported_with_its_side() -> None:
    proxy, interception = await injected_into(Response("application/json", b"{", UpstreamError("reset")))
    assert interception.failures == [('"m-1"', "the response broke off: reset")]
    assert proxy.notes[-1] == ("http-end", {"stream": "3", "http": 7, "hung_up": "server", "by": "mcpspy"})
    proxy, _ = await injected_into(Response("application/json", b"{", asyncio.CancelledError()))
    assert proxy.notes[-1][1]["hung_up"] == "mcpspy"


async def test_a_response_that_is_too_large_is_recorded_by_its_size_only() -> None:
    _, interception = await injected_into(Response("application/json", b"{", b" " * 200, b"}"))
    assert interception.failures[0] == ('"m-1"', "the response is larger than --max-body")
    assert interception.taken == []
    assert json.loads(b"".join(interception.lines))["note"] == "oversized"

    event = b"data: " + b"x" * 300 + b"\n\n"
    _, interception = await injected_into(Response("text/event-stream", event))
    assert interception.taken == []
    assert b'"note":"oversized"' in b"".join(interception.lines)


async def test_a_response_without_a_message_is_reported_with_its_status() -> None:
    for status, failures in (500, [('"m-1"', "no response, only HTTP 500")]), (202, []):
        _, interception = await injected_into(Response("text/plain", b"oops", status=status))
        assert interception.failures == failures
