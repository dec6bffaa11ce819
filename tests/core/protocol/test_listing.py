"""Listings assembled from pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.protocol.listing import (
    MAX_OPEN_LISTINGS,
    MAX_PAGES,
    Listing,
    ListingPages,
    cursor_of,
    cursor_text,
    joined,
    next_cursor,
)
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame

Page = tuple[str | None, str, str | None]
"""The cursor of the request, the items as letters, and the cursor of the next page."""


class Server:
    """The listings of tools of a server."""

    def __init__(self) -> None:
        self.pages = ListingPages[list[str]]()

    def add(self, cursor: str | None, items: str, following: str | None, stream: str | None = None) -> str:
        """Add a page, and return its listing: all items, with `…` for each end that is unknown."""
        return shown(self.listing(cursor, items, following, stream))

    def listing(
        self, cursor: str | None, items: str, following: str | None, stream: str | None = None
    ) -> Listing[list[str]]:
        return self.pages.add(stream, "tools/list", list(items), cursor=cursor, following=following)


def shown(listing: Listing[list[str]]) -> str:
    before, after = "" if listing.begins else "…", "" if listing.following is None else "…"
    assert listing.is_whole == (not before and not after)
    return f"{before}{''.join(joined(listing))}{after}"


def request(**params: Any) -> Request:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    (found,) = read_frame(Frame(0.0, "client", json.dumps(message).encode()))
    assert isinstance(found, Request)
    return found


def test_a_listing_without_a_cursor_is_whole() -> None:
    assert Server().add(None, "ab", None) == "ab"


def test_pages_are_joined_by_their_cursors() -> None:
    server = Server()

    assert server.add(None, "ab", "2") == "ab…"
    assert server.add("2", "c", "3") == "abc…"
    assert server.add("3", "", None) == "abc"


def test_a_later_listing_begins_again() -> None:
    server = Server()
    server.add(None, "ab", "2")
    server.add("2", "c", None)

    assert server.add(None, "x", "2") == "x…"
    assert server.add("2", "y", None) == "xy"


def test_a_listing_that_begins_again_does_not_contain_the_interrupted_one() -> None:
    server = Server()
    server.add(None, "ab", "2")
    server.add("2", "c", "3")
    server.add(None, "A", "2")

    assert server.add("2", "B", None) == "AB"


def test_a_page_that_is_requested_again_is_not_listed_twice() -> None:
    server = Server()
    server.add(None, "a", "2")
    server.add("2", "b", "3")

    assert server.add("2", "B", "3") == "aB…"
    assert server.add("3", "c", None) == "aBc"


def test_an_error_for_a_page_adds_nothing_and_the_page_may_be_requested_again() -> None:
    server = Server()
    before = server.listing(None, "a", "2")

    assert server.pages.before(None, "tools/list", "2") is before
    assert server.add("2", "b", None) == "ab"


def test_the_pages_of_two_sessions_are_not_mixed() -> None:
    server = Server()
    server.add(None, "a", "2", "s1")
    server.add(None, "x", "2", "s2")

    assert server.add("2", "b", None, "s1") == "ab"
    assert server.add("2", "y", None, "s2") == "xy"


def test_without_sessions_a_page_continues_the_listing_of_another_stream() -> None:
    """In 2026-07-28 each exchange has a stream."""
    server = Server()
    server.add(None, "a", "2", "1")
    server.add("2", "b", "3", "2")

    assert server.add("3", "c", None, "3") == "abc"


def test_a_cached_first_page_is_continued_as_often_as_its_next_page_is_requested() -> None:
    """In 2026-07-28 a client may read page 1 from its cache, and request page 2 because its ttl has expired."""
    server = Server()
    server.add(None, "a", "2", "1")

    assert [server.add("2", "b", None, str(stream)) for stream in (2, 3)] == ["ab", "ab"]


def test_two_clients_without_sessions_and_with_equal_cursors_have_whole_listings() -> None:
    server = Server()
    server.add(None, "a", "2", "1")
    server.add(None, "a", "2", "2")

    assert [server.add("2", "b", None, str(stream)) for stream in (3, 4)] == ["ab", "ab"]


def test_a_page_with_an_unknown_cursor_has_no_beginning() -> None:
    server = Server()

    assert server.add("9", "b", "10") == "…b…"
    assert server.add("10", "c", None) == "…bc"


def test_the_methods_are_separate() -> None:
    server = Server()
    server.add(None, "a", "2")

    assert server.pages.before(None, "prompts/list", "2") is None


def test_an_empty_cursor_is_a_cursor() -> None:
    server = Server()

    assert server.add(None, "a", "") == "a…"
    assert server.add("", "b", None) == "ab"


@pytest.mark.parametrize(
    ("pages", "is_endless"),
    [
        ([(None, "a", "2")], False),
        ([(None, "a", "2"), ("2", "b", "2")], True),
        ([(None, "a", ""), ("", "b", "")], True),
        ([(None, "a", "2"), ("2", "b", "3"), ("3", "c", "2")], True),
        ([(None, "a", "2"), ("2", "b", "3"), ("2", "b", "3")], False),
        ([(None, "a", "2"), (None, "a", "2"), ("2", "b", "3")], False),
    ],
)
def test_a_listing_is_endless_if_a_cursor_leads_back_into_it(pages: list[Page], is_endless: bool) -> None:
    server = Server()

    assert [server.listing(*page).is_endless for page in pages][-1] == is_endless


def test_an_endless_listing_is_cut() -> None:
    server = Server()
    server.add(None, "a", "2")
    counts = [server.listing("2", "b", "2").count for _ in range(2 * MAX_PAGES)]

    assert max(counts) == MAX_PAGES


def test_the_oldest_of_very_many_open_listings_is_forgotten() -> None:
    server = Server()
    for number in range(MAX_OPEN_LISTINGS + 1):
        server.add(None, "a", f"c{number}")

    assert server.add("c0", "b", None) == "…b"
    assert server.add(f"c{MAX_OPEN_LISTINGS}", "b", None) == "ab"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("", ""), ("2", "2"), (2, "2"), (True, "true"), ({"b": 1, "a": 2}, '{"a":2,"b":1}')],
)
def test_a_cursor_of_any_type_is_compared_as_text(value: Any, text: str | None) -> None:
    assert cursor_of(request(cursor=value)) == next_cursor({"nextCursor": value}) == text


def test_a_cursor_that_is_nested_very_deep_is_compared_without_its_levels() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]

    assert cursor_text(value) == "(nested too deep)"


def test_a_page_is_added_from_a_request_and_its_result() -> None:
    pages = ListingPages[str]()
    pages.add_result(request(), {"tools": [], "nextCursor": "2"}, "one")

    assert pages.add_result(request(cursor="2"), {"tools": []}, "two").pages == ["one", "two"]
