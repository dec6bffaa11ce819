"""The lists of a server, and their assembly from pages.

Theory of operation (2025-11-25 and 2026-07-28, server/utilities/pagination). A result with `nextCursor` is one page of several: the client requests the next page with that cursor. Nothing else ties
the pages together, so everything that reads a list assembles it here, by these rules:

- A request without a cursor begins a listing. A page with a cursor continues the latest listing of its stream whose
  last page provided that cursor.
- If its stream has none, it continues the latest listing of any stream that did. A server without sessions (2026-07-28,
  or one that assigns no `Mcp-Session-Id`) makes each exchange a separate stream.
- A listing does not change when a page is added: the page makes a longer one. A page that is requested again, after a
  time-out or because its cache has expired, therefore replaces the earlier response and is not listed twice. An error
  response adds nothing, and the client may request that page again.
- Two clients without sessions may have the same cursor at the same time; cursors are often positions. Both then continue
  the later one of the two listings, which has the newer items.
- Pages before and after a `list_changed` belong together: that is what the client has, until it lists again.
- The last page is the one without a cursor, or with `null`. An empty cursor does not end a list (2026-07-28,
  pagination#implementation-guidelines).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS
from mcpspy.core.protocol.message import Request, loads

T = TypeVar("T")

MAX_PAGES = 1000
"""Maximum number of pages in a listing: a server whose cursors repeat has endless pages."""

MAX_OPEN_LISTINGS = 256
"""Number of listings whose next page is awaited; beyond it, the oldest one is forgotten."""


class ListMethod(NamedTuple):
    member: str
    """Member of the result that has the items."""
    key: str
    """Member of an item that identifies it."""
    noun: str


LISTINGS = {
    "tools/list": ListMethod("tools", "name", "tool"),
    "prompts/list": ListMethod("prompts", "name", "prompt"),
    "resources/templates/list": ListMethod("resourceTemplates", "uriTemplate", "resource template"),
    "resources/list": ListMethod("resources", "uri", "resource"),
    **{
        method: ListMethod(listing.member, listing.key, listing.noun)
        for method, (_, listing) in EXTENSION_LISTINGS.items()
    },
}
"""The lists of a server, by method: those of the core, and those of final extensions."""

EVERY_LISTING = LISTINGS | {"roots/list": ListMethod("roots", "uri", "root")}
"""Also the list of a client, which has no pages."""


class Listing(Generic[T]):
    """A list up to one of its pages; `page` is what the reader made of that page."""

    __slots__ = ("before", "count", "cursor", "first", "following", "page")

    def __init__(self, page: T, cursor: str | None, following: str | None, before: Listing[T] | None) -> None:
        self.page = page
        self.cursor = cursor
        """The cursor with which the page was requested; None for the first page."""
        self.following = following
        """The cursor of the next page; None for the last page."""
        self.before = before
        """The listing up to the page before; None if this page is the first, or if that page is unknown."""
        self.first: Listing[T] = self if before is None else before.first
        self.count: int = 1 if before is None else before.count + 1

    @property
    def begins(self) -> bool:
        """True if the first page is known."""
        return self.first.cursor is None

    @property
    def is_whole(self) -> bool:
        """True if all pages are known."""
        return self.begins and self.following is None

    @property
    def is_endless(self) -> bool:
        """True if the cursor of the next page was already used in this listing."""
        return self.following is not None and any(
            listing.cursor == self.following for listing in self._chain()
        )

    @property
    def pages(self) -> list[T]:
        return [listing.page for listing in self._chain()][::-1]

    def _chain(self) -> list[Listing[T]]:
        found: list[Listing[T]] = []
        listing: Listing[T] | None = self
        while listing is not None:
            found.append(listing)
            listing = listing.before
        return found


class ListingPages(Generic[T]):
    """The listings of one server on any number of streams."""

    def __init__(self) -> None:
        self._open: dict[tuple[str | None, str, str] | tuple[str, str], Listing[T]] = {}
        """Stream, method and cursor, and method and cursor alone → the listing that this cursor continues."""

    def before(self, stream: str | None, method: str, cursor: str) -> Listing[T] | None:
        """Return the listing that a page with this cursor continues; None if it is unknown."""
        return self._open.get((stream, method, cursor)) or self._open.get((method, cursor))

    def add(
        self, stream: str | None, method: str, page: T, *, cursor: str | None, following: str | None
    ) -> Listing[T]:
        """Return the listing that ends with a page, which was requested with `cursor`."""
        before = None if cursor is None else self.before(stream, method, cursor)
        if before is not None and before.count >= MAX_PAGES:
            before = None
        listing = Listing(page, cursor, following, before)
        if following is not None:
            for key in (stream, method, following), (method, following):
                self._open.pop(key, None)  # The order is that of the last use.
                self._open[key] = listing
            while len(self._open) > 2 * MAX_OPEN_LISTINGS:
                del self._open[next(iter(self._open))]
        return listing

    def add_result(self, request: Request, result: Mapping[str, Any], page: T) -> Listing[T]:
        """Return the listing that ends with the page in this result."""
        cursor, following = cursor_of(request), next_cursor(result)
        return self.add(request.frame.stream, request.method, page, cursor=cursor, following=following)


def cursor_of(request: Request) -> str | None:
    """Return the cursor of a request; None if it is for the first page."""
    return cursor_text(loads(request.body.cursor))


def next_cursor(result: Mapping[str, Any]) -> str | None:
    """Return the cursor of the next page; None for the last page."""
    return cursor_text(result.get("nextCursor"))


def cursor_text(value: Any) -> str | None:
    """Return a cursor as text. It must be a string, but some clients send back whatever the server sent."""
    if value is None or isinstance(value, str):
        return value
    try:
        return canonical(value)
    except RecursionError:
        return "(nested too deep)"


def joined(listing: Listing[list[T]]) -> list[T]:
    """Return the items of all pages."""
    return [item for page in listing.pages for item in page]
