"""Routes to each side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcpspy.core.exchange.heads import RequestHead
from mcpspy.core.exchange.prepared import PreparedRequest
from mcpspy.io.http import routes as routes_module
from mcpspy.io.http.routes import Route, RouteTable
from tests.core.exchange.played import Scope

if TYPE_CHECKING:
    import pytest


class Open:
    """A stream that is open to a client."""

    def __init__(self, stream: str, *, is_get: bool = False) -> None:
        self.stream = stream
        self.is_get = is_get


class Passing:
    """A stream that is forwarded, and opens when it is inspected."""

    def __init__(self, routes: RouteTable) -> None:
        self.routes = routes

    def inspect(self) -> None:
        self.routes.open_stream(cast("Any", Open("9")))


def posted(session: str | None = "s") -> PreparedRequest:
    scope = Scope()
    headers = {} if session is None else {"Mcp-Session-Id": session}
    return PreparedRequest(scope, RequestHead("POST", "/mcp", headers, "1.1", keeps_alive=True), "/mcp")


def test_to_the_server_a_conversation_goes_its_own_way_and_anyone_the_last_one() -> None:
    routes = RouteTable()
    assert routes.to_server(None) is routes.to_server("1") is None
    routes.add_post("1", one := posted())
    routes.add_post("2", other := posted())

    first, second = Route("1", one, True), Route("2", other, True)
    assert [routes.to_server(stream) for stream in ("1", "2", None, "3")] == [first, second, second, None]
    assert routes.has_session("1")


def test_conversations_of_one_post_each_go_the_way_of_the_last() -> None:
    routes = RouteTable()
    for stream in ("1", "2"):
        routes.add_post(stream, prepared := posted(None))

    assert routes.to_server("1") == routes.to_server(None) == Route("2", prepared, False)
    assert not routes.has_session("2")


def test_only_the_most_recent_streams_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes_module, "MAX_REMEMBERED", 2)
    routes = RouteTable()
    for stream in ("1", "2", "1", "3"):
        routes.add_post(stream, posted())

    assert [routes.has_session(stream) for stream in "123"] == [True, False, True]


def test_a_client_gets_messages_where_it_listens_for_that_else_on_what_was_opened_last() -> None:
    routes = RouteTable()
    assert routes.to_client(None) is None
    listening, first, last, other = Open("1", is_get=True), Open("1"), Open("1"), Open("2")
    for stream in (listening, first, last, other):
        routes.open_stream(cast("Any", stream))

    found: list[Any] = [routes.to_client(stream) for stream in ("1", "2", "3", None)]
    assert found == [listening, other, None, listening]
    for _ in range(2):
        routes.close_stream(cast("Any", listening))
    found = [routes.to_client(stream) for stream in ("1", None)]
    assert found == [last, other]


def test_uninspected_streams_are_inspected_on_request() -> None:
    routes = RouteTable()
    gone = Passing(routes)
    routes.add_uninspected(gone)
    routes.remove_uninspected(gone)
    routes.inspect()
    assert routes.to_client(None) is None
    routes.add_uninspected(Passing(routes))
    routes.inspect()

    found = routes.to_client("9")
    assert found is not None
    routes.inspect()
    routes.close_stream(found)
    assert routes.to_client("9") is None
