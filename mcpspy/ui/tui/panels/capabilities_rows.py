"""The lines that say who the two are and what the server offers.

Owns their order, what is folded, and that all of it is inert. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from mcpspy.analysis import rows
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.index import Index
from mcpspy.ui.tui.detail.layout import FOLDED, OPEN
from mcpspy.ui.tui.panels.capabilities import (
    LISTS,
    TITLES,
    Capabilities,
    Capability,
    CapabilityListing,
    ListingChange,
)
from mcpspy.ui.tui.widgets.cells import wrap

LONG = 4000
"""Characters of a text that are shown."""

NAMES = 20
"""Names that a line of changes counts up."""

Key = tuple[str, int]
"""What can be folded: a method and the place of a thing in its list; the list itself is -1."""


class CapabilityRow(NamedTuple):
    """One line."""

    name: str
    type: str = ""
    need: str = ""
    about: str = ""
    role: str | None = None
    key: Key | None = None
    """What it is about, if that can be folded."""
    thing: Capability | None = None
    is_text: bool = False
    """Whether the name is a text that has the whole line."""


Kept = dict[str, tuple[CapabilityListing, list[CapabilityRow]]]
"""Method → its list, and the lines of that while all is folded."""


def lines(
    index: Index, offer: Capabilities, opened: Collection[Key], width: int, kept: Kept
) -> list[CapabilityRow]:
    """Return all lines; of things only those that are opened say more than one."""
    return [
        *_parties(index),
        *(row for method in LISTS for row in _listing(method, offer, opened, width, kept)),
        *_changes(offer, width),
    ]


def _parties(index: Index) -> Iterator[CapabilityRow]:
    yield CapabilityRow("who", role="title", is_text=True)
    for side, party in (("server", index.server), ("client", index.client)):
        yield _text(f"  {side:<9}{_inert(str(party)) if party else 'has not said who it is'}")
    yield _text(f"  {'revision':<9}{_inert(index.revision or 'not known yet')}")
    for side, capabilities in (
        ("server", index.server_capabilities),
        ("client", index.client_capabilities),
    ):
        yield _text(f"  {side} can: {_capabilities(capabilities)}")


def _capabilities(capabilities: dict[str, Any]) -> str:
    said = []
    for name, value in capabilities.items():
        inner = ", ".join(key for key, on in value.items() if on) if isinstance(value, dict) else ""
        said.append(f"{name} ({inner})" if inner else name)
    return _inert(", ".join(said)) or "nothing that it said"


def _listing(
    method: str, offer: Capabilities, opened: Collection[Key], width: int, kept: Kept
) -> Iterator[CapabilityRow]:
    listing = offer.last.get(method)
    yield _text("")
    if listing is None:
        yield CapabilityRow(f"{TITLES[method]}: never listed", role=rows.QUIET, is_text=True)
        return
    key = (method, -1)
    mark = FOLDED if key in opened else OPEN  # A list begins unfolded.
    yield CapabilityRow(
        f"{mark} {TITLES[method]} ({_heading(listing, offer)})", role="title", key=key, is_text=True
    )
    if listing.trouble:
        yield _text(f"  {_inert(listing.trouble)}", rows.BAD)
    if key in opened:
        return
    folded, begin = _folded(listing, kept), 0
    for place in sorted(place for of, place in opened if of == method and place < len(folded)):
        yield from folded[begin:place]
        yield from _opened((method, place), listing.things[place], width)
        begin = place + 1
    yield from folded[begin:]


def _folded(listing: CapabilityListing, kept: Kept) -> list[CapabilityRow]:
    known = kept.get(listing.method)
    if known is None or known[0] is not listing:
        known = kept[listing.method] = (
            listing,
            [
                CapabilityRow(
                    f"  {FOLDED} {thing.name}",
                    thing.type,
                    thing.need,
                    thing.line,
                    None,
                    (listing.method, place),
                    thing,
                )
                for place, thing in enumerate(listing.things)
            ],
        )
    return known[1]


def _heading(listing: CapabilityListing, offer: Capabilities) -> str:
    said = [f"{len(listing.things):,}", f"listed at {rows.moment(listing.at)}"]
    if (count := offer.counts[listing.method]) > 1:
        said.append(f"{count:,} times listed")
    if not listing.begins:
        said.append("its beginning was not recorded")
    elif listing.goes_on:
        said.append("more pages were not asked for")
    if len(offer.streams) > 1:
        said.append(f"last asked by the HTTP session {_inert(listing.stream) or 'without a name'}")
    return ", ".join(said)


def _opened(key: Key, thing: Capability, width: int) -> Iterator[CapabilityRow]:
    yield CapabilityRow(f"  {OPEN} {thing.name}", thing.type, key=key, thing=thing)
    for paragraph in thing.about[:LONG].split("\n"):
        yield from (_text(f"      {part}", rows.QUIET, thing, key) for part in _wrapped(paragraph, width - 6))
    for field in thing.details:
        yield CapabilityRow(
            f"      {_inert(field.name)}",
            _inert(field.type),
            "required" if field.required else "",
            _inert(field.about),
            "key",
            key,
            thing,
        )


def _changes(offer: Capabilities, width: int) -> Iterator[CapabilityRow]:
    changes = offer.changes
    if not changes and not any(count > 1 for count in offer.counts.values()):
        return
    yield _text("")
    yield CapabilityRow(
        "changes between listings" if changes else "no list changed", role="title", is_text=True
    )
    for change in changes:
        for part in _wrapped(_change(change), width - 2):
            yield _text(f"  {part}", rows.ODD)


def _change(change: ListingChange) -> str:
    said = [f"at {rows.moment(change.at)} {TITLES[change.method]}:"]
    if change.added:
        said.append(f"added {_names(change.added)};")
    if change.removed:
        said.append(f"removed {_names(change.removed)};")
    if change.changed:
        differing = (f"{key} ({', '.join(keys)})" for key, keys in change.changed)
        said.append(f"changed {_names(differing)};")
    return " ".join(said).rstrip(";")


def _names(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - NAMES:,} more" if len(every) > NAMES else ""
    return ", ".join(every[:NAMES]) + more


def _wrapped(text: str, width: int) -> list[str]:
    shown = _inert(text)
    return [shown[begin:end].rstrip() for begin, end in wrap(shown, max(width, 10))]


def _text(
    text: str, role: str | None = None, thing: Capability | None = None, key: Key | None = None
) -> CapabilityRow:
    return CapabilityRow(text, role=role, thing=thing, key=key, is_text=True)


def _inert(text: str) -> str:
    return sanitize(text[:LONG])
