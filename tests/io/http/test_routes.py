"""Which ways lead to each side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcpspy.io.http import routes as ways_module
from mcpspy.io.http.routes import Route, RouteTable

if TYPE_CHECKING:
    import pytest


class Open:
    """A stream that is open to a client."""

    def __init__(self, stream: str, *, is_get: bool = False) -> None:
        self.stream = stream
        self.is_get = is_get


class Passing:
    """A stream that goes by, and opens when it is looked at."""

    def __init__(self, ways: RouteTable) -> None:
        self.ways = ways

    def turn(self) -> None:
        self.ways.opens(cast("Any", Open("9")))


def posted(stream: str, *, is_session: bool = True) -> Route:
    return Route(stream, "/mcp", {}, "http://here", is_session)


def test_to_the_server_a_conversation_goes_its_own_way_and_anybody_the_last_one() -> None:
    ways = RouteTable()
    assert ways.to_server(None) is ways.to_server("1") is None
    first, second = posted("1"), posted("2")
    ways.posts(first)
    ways.posts(second)

    assert [ways.to_server(stream) for stream in ("1", "2", None, "3")] == [first, second, second, None]
    assert ways.has_session("1")


def test_conversations_of_one_post_each_go_the_way_of_the_last() -> None:
    ways = RouteTable()
    for stream in ("1", "2"):
        ways.posts(posted(stream, is_session=False))

    assert ways.to_server("1") == ways.to_server(None) == posted("2", is_session=False)
    assert not ways.has_session("2")


def test_only_so_many_conversations_are_remembered_those_that_spoke_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ways_module, "MOST", 2)
    ways = RouteTable()
    for stream in ("1", "2", "1", "3"):
        ways.posts(posted(stream))

    assert [ways.has_session(stream) for stream in "123"] == [True, False, True]


def test_a_client_is_told_where_it_listens_for_that_else_on_what_was_opened_last() -> None:
    ways = RouteTable()
    assert ways.to_client(None) is None
    listening, first, last, other = Open("1", is_get=True), Open("1"), Open("1"), Open("2")
    for stream in (listening, first, last, other):
        ways.opens(cast("Any", stream))

    found: list[Any] = [ways.to_client(stream) for stream in ("1", "2", "3", None)]
    assert found == [listening, other, None, listening]
    for _ in range(2):
        ways.closes(cast("Any", listening))
    found = [ways.to_client(stream) for stream in ("1", None)]
    assert found == [last, other]


def test_what_goes_by_is_looked_at_when_somebody_wants_to() -> None:
    ways = RouteTable()
    gone = Passing(ways)
    ways.passes(gone)
    ways.passed(gone)
    ways.turn()
    assert ways.to_client(None) is None
    ways.passes(Passing(ways))
    ways.turn()

    found = ways.to_client("9")
    assert found is not None
    ways.turn()
    ways.closes(found)
    assert ways.to_client("9") is None
