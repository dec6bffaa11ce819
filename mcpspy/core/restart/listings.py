"""Lists of a server, read by requests of mcpspy, and their comparison with those of an earlier server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from mcpspy.core.jsontools import same
from mcpspy.core.protocol.listing import LISTINGS, MAX_PAGES, ListMethod, next_cursor
from mcpspy.core.protocol.spec import METHODS

Items: TypeAlias = dict[str, dict[str, Any]]
"""Name or URI → definition."""

LISTED: dict[str, ListMethod] = {method: LISTINGS[method] for method in METHODS if method in LISTINGS}
"""The lists of the core: those whose changes the protocol has a notification for."""

KINDS = ("tools", "prompts", "resources")
"""Capabilities with lists. `notifications/KIND/list_changed` is about all lists of a kind."""


class ServerHandshake(NamedTuple):
    """The declarations of a server in the result of `initialize` or `server/discover`."""

    capabilities: Mapping[str, Any]
    instructions: str | None = None
    revision: str | None = None

    @classmethod
    def of(cls, result: Any, revision: str | None = None) -> ServerHandshake:
        """Return the handshake of a result; `revision` is that of the request, from 2026-07-28 on."""
        found = result if isinstance(result, dict) else {}
        capabilities, instructions = found.get("capabilities"), found.get("instructions")
        return cls(
            capabilities if isinstance(capabilities, dict) else {},
            instructions if isinstance(instructions, str) and instructions else None,
            str(found.get("protocolVersion") or revision or "") or None,
        )

    def has(self, kind: str) -> bool:
        return isinstance(self.capabilities.get(kind), dict)


class ServerInterface(NamedTuple):
    """The handshake and the lists of one server."""

    handshake: ServerHandshake
    items: dict[str, Items]
    """Method of a list → its items; only lists that were read to their last page."""


def kind_of(method: str) -> str:
    return method.partition("/")[0]


class ListReader:
    """Reads the lists of one server, page by page; it reads a list again if the server reports a change."""

    def __init__(self, request: Callable[[str, dict[str, Any]], bytes], handshake: ServerHandshake) -> None:
        """`request` returns a request with this method and these params, whose result is for `take`."""
        self._request = request
        self._handshake = handshake
        self._pages: dict[str, list[list[Any]]] = {}
        """Method of a list that is being read → its pages so far."""
        self._is_stale: set[str] = set()
        """Lists that changed while they were read."""
        self.items: dict[str, Items] = {}

    @property
    def is_complete(self) -> bool:
        return not self._pages

    @property
    def interface(self) -> ServerInterface:
        return ServerInterface(self._handshake, dict(self.items))

    def read(self, kind: str = "") -> list[bytes]:
        """Return the requests for the first pages of the lists of a kind, or of every kind that the server has."""
        found = []
        for method in LISTED:
            if kind in ("", kind_of(method)) and self._handshake.has(kind_of(method)):
                if method in self._pages:
                    self._is_stale.add(method)
                else:
                    found.append(self._first(method))
        return found

    def take(self, method: str, result: Any) -> list[bytes]:
        """Take a page, None for an error. Return the request for the next one, if there is one."""
        listing, pages = LISTED[method], self._pages[method]
        page = result.get(listing.member) if isinstance(result, dict) else None
        cursor = next_cursor(result) if isinstance(result, dict) else None
        if isinstance(page, list):
            pages.append(page)
        if method in self._is_stale:
            self._is_stale.discard(method)
            return [self._first(method)]
        if isinstance(page, list) and cursor is not None and len(pages) < MAX_PAGES:
            return [self._request(method, {"cursor": cursor})]
        del self._pages[method]
        if isinstance(page, list) and cursor is None:
            self.items[method] = {
                name: item
                for items in pages
                for item in items
                if isinstance(item, dict) and isinstance(name := item.get(listing.key), str)
            }
        return []

    def _first(self, method: str) -> bytes:
        self._pages[method] = []
        return self._request(method, {})


def changed_kinds(before: ServerInterface | None, after: ServerInterface) -> Iterator[str]:
    """Yield the kinds of which a list changed. A list that was never read before may have changed."""
    for kind in KINDS:
        lists = [method for method in after.items if kind_of(method) == kind]
        if any(
            before is None
            or method not in before.items
            or not same(before.items[method], after.items[method])
            for method in lists
        ):
            yield kind
