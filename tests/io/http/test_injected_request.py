"""A request to a server over HTTP that mcpspy injects."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from multidict import CIMultiDict

from mcpspy.core.intercept.actions import Forward, Inject
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.io.http.injected_request import InjectedRequest
from mcpspy.io.http.routes import Route, RouteTable
from mcpspy.io.http.upstream_connection import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Coroutine

pytestmark = pytest.mark.timeout(60)

MODERN = b'{"jsonrpc":"2.0","id":"m-1","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}'


class Upstream:
    origin, path, host = "http://127.0.0.1:1", "/mcp", "127.0.0.1:1"


class Proxy:
    """A proxy without a server."""

    upstream = Upstream()

    def __init__(self) -> None:
        self.notes: list[tuple[str, dict[str, Any]]] = []
        self.asked: list[tuple[Any, ...]] = []

    def next_number(self) -> int:
        return 7

    async def send_request(self, *what: Any) -> Any:
        self.asked.append(what)
        raise UpstreamError("Connection refused")

    async def note(self, kind: str, fields: dict[str, Any]) -> None:
        self.notes.append((kind, fields))


class Interception:
    """Stores the calls it gets."""

    def __init__(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.failures: list[tuple[str, str]] = []
        self.exchanges: set[object] = set()
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
