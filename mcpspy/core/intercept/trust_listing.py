"""Check of a listing against the lockfile, page by page: a removed item is noticed at the last page."""

from __future__ import annotations

from typing import Any

from mcpspy.core.intercept.requests import AwaitedRequest, answer
from mcpspy.core.jsontools import canonical_bytes
from mcpspy.core.lookalikes import as_latin, mixed_words, visible
from mcpspy.core.protocol.listing import Listing, ListingPages, ListMethod, cursor_text, next_cursor
from mcpspy.core.protocol.message import Result, loads
from mcpspy.core.trust.difference import Difference, manner
from mcpspy.core.trust.lock import TrustedItem, TrustedServer


class ListingCheck:
    """The listings of one session, on any number of streams."""

    def __init__(self) -> None:
        self._pages = ListingPages[set[str]]()
        """The trusted names on each page."""

    def check(
        self, message: Result, listing: ListMethod, server: TrustedServer, request: AwaitedRequest | None
    ) -> Difference | None:
        """Return the difference of a page; `request` is the one that it responds to."""
        trusted, result = server.items[listing.member], message.result
        items = result.get(listing.member) if isinstance(result, dict) else None
        if not isinstance(items, list):
            everything = {listing.member: [item.definition for item in trusted.values()]}
            replacement = answer(message.id or "null", b"result", everything)
            return Difference([f"{listing.noun}s: not a list"], replacement)
        listed = self._add_page(request, result)
        page = _Page(listing, trusted, set().union(*listed.pages))
        page.compare(items)
        listed.page.update(page.seen)
        if request is not None and listed.is_whole:
            page.add_removed()
        if not page.texts:
            return None
        replacement = answer(message.id or "null", b"result", {**result, listing.member: page.kept})
        return Difference(page.texts, replacement, trusted=page.was, listed=page.now)

    def _add_page(self, request: AwaitedRequest | None, result: dict[str, Any]) -> Listing[set[str]]:
        """Return the listing that ends with this result, whose own names are not yet known."""
        if request is None:
            return Listing(set(), None, None, None)
        sent = loads(request.data) if request.data else None
        params = sent.get("params") if isinstance(sent, dict) else None
        cursor = cursor_text(params.get("cursor")) if isinstance(params, dict) else None
        following = next_cursor(result)
        return self._pages.add(request.stream, request.method, set(), cursor=cursor, following=following)


class _Page:
    """The comparison of one page; `seen` are the names on the pages before, to which those of this page are added."""

    def __init__(self, listing: ListMethod, trusted: dict[str, TrustedItem], seen: set[str]) -> None:
        self._listing = listing
        self._trusted = trusted
        self.seen = seen
        self.texts: list[str] = []
        self.kept: list[Any] = []
        """The items that the client gets in a replacement."""
        self.was: list[Any] = []
        self.now: list[Any] = []

    def compare(self, items: list[Any]) -> None:
        key, noun = self._listing.key, self._listing.noun
        names = [item.get(key) if isinstance(item, dict) else None for item in items]
        listed = self.seen | {name for name in names if isinstance(name, str)}
        for name, item in zip(names, items, strict=True):
            known = self._trusted.get(name) if isinstance(name, str) else None
            if known is None or not isinstance(name, str):
                self.now.append(item)
                self.texts.append(f"{noun} {name}: new{_resemblance(name, item, self._trusted, listed)}")
            elif name in self.seen:
                self.texts.append(f"{noun} {name}: listed twice")
            else:
                self._compare_item(name, known, item)

    def add_removed(self) -> None:
        """Add the trusted items that no page has listed."""
        for name, item in self._trusted.items():
            if name not in self.seen:
                self.texts.append(f"{self._listing.noun} {name}: removed")
                self.was.append(item.stable(item.definition))
                self.kept.append(item.definition)

    def _compare_item(self, name: str, known: TrustedItem, item: dict[str, Any]) -> None:
        changes = _changes(known, item)
        if changes:
            self.texts += [f"{self._listing.noun} {name}: {change}" for change in changes]
            self.was.append(known.stable(known.definition))
            self.now.append(known.stable(item))
        volatile = {member: item[member] for member in known.volatile & item.keys()}
        self.kept.append({**known.definition, **volatile} if changes else item)
        self.seen.add(name)


def _changes(trusted: TrustedItem, item: dict[str, Any]) -> list[str]:
    old, found = trusted.definition, []
    for member in sorted((old.keys() | item.keys()) - trusted.volatile):
        was, now = old.get(member), item.get(member)
        if member not in old or member not in item or canonical_bytes(was) != canonical_bytes(now):
            found.append(f"{member} {manner(was, now)}")
    return found


def _resemblance(name: object, item: Any, trusted: dict[str, TrustedItem], listed: set[str]) -> str:
    """Return a hint at the trusted item that a new one looks like, or has the schema of if that one is not listed."""
    if isinstance(name, str):
        look = as_latin(visible(name))
        for known in trusted:
            if known != name and as_latin(visible(known)) == look:
                return f", looks like {known} (look-alike characters)"
        if mixed_words(name):
            return ", mixes alphabets (look-alike characters)"
    schema = item.get("inputSchema") if isinstance(item, dict) else None
    if schema is None:
        return ""
    own = canonical_bytes(schema)
    for old, each in trusted.items():
        if old not in listed and canonical_bytes(each.definition.get("inputSchema")) == own:
            return f", with the schema of {old} (renamed)"
    return ""
