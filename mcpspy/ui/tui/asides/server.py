"""What a server offers: its tools, resources, templates and prompts, as it listed them.

Owns which pages make a listing, and what changed from one to the next. Reading
a page is apart, so that it can be done in a thread. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from mcpspy.core.protocol.message import Result, loads, read_frame
from mcpspy.core.recording.decode import Frame, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import RESULT
from mcpspy.ui.tui.asides.portions import Portions
from mcpspy.ui.tui.asides.schema import Field, fields

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""Methods that list something → the member of the result that it is in."""

TITLES = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resource templates",
    "prompts/list": "prompts",
}

NAMED_BY = {"resources/list": "uri", "resources/templates/list": "uriTemplate"}
"""Methods whose things are told apart by something else than their names."""

LARGE = 32_000_000
"""Bytes of a page that is not read."""

LARGE_THING = 2_000_000
"""Bytes of one tool of which only the name is read."""

LONG = 1000
"""Characters of a text that are shown in one line."""

KEPT = 50
"""Listings of a method that are compared: of a server that is asked every second, the last ones."""

_members = Decoder(dict[str, Raw])
_things = Decoder(list[Raw])


class ListPage(NamedTuple):
    """The answer to one request for a list."""

    row: int
    at: float
    method: str
    stream: str
    begins: bool
    """Whether it was asked for without a cursor."""


class Thing(NamedTuple):
    """A tool, a resource, a template or a prompt."""

    key: str
    """What tells it from others, as it was sent."""
    name: str
    """Inert, like type and line: that is done in the thread, of thousands at once."""
    type: str
    line: str
    """The beginning of what is said of it."""
    need: str
    """How much must be given to it."""
    about: str
    """All that is said of it, as it was sent."""
    details: list[Field]
    """As they were sent."""
    data: bytes
    """Its JSON, as it was sent."""


class Contents(NamedTuple):
    """What a page holds."""

    things: list[Thing]
    goes_on: bool
    """Whether there is another page."""
    trouble: str = ""
    """Why it could not be read."""


class Listing(NamedTuple):
    """A list, as far as its pages came."""

    method: str
    stream: str
    at: float
    things: list[Thing]
    begins: bool
    """Whether its first page is there."""
    goes_on: bool
    trouble: str

    @property
    def is_whole(self) -> bool:
        return self.begins and not self.goes_on and not self.trouble


class Change(NamedTuple):
    """How a list differs from the one before it."""

    at: float
    method: str
    added: list[str]
    removed: list[str]
    changed: list[tuple[str, list[str]]]
    """What it is called, and which of its keys are others."""


class Pages(Portions):
    """The answers of a session that list something."""

    def _begin(self) -> None:
        self.pages: list[ListPage] = []

    def _take(self, begin: int, end: int) -> None:
        index = self._index
        what, method, texts = index.what, index.method, index.texts
        for row in range(begin, end):
            if what[row] & 7 == RESULT and texts[method[row]] in LISTS and index.answer(row) == row:
                request = index.request(row)
                assert request is not None
                begins = not index.subject[request]
                stream = texts[index.stream[row]]
                self.pages.append(ListPage(row, index.at[row], texts[method[row]], stream, begins))


def worth_reading(pages: Sequence[ListPage]) -> list[ListPage]:
    """Return the pages but those of listings that are long past."""
    begun: dict[str, int] = {}
    kept = []
    for page in reversed(pages):
        if begun.get(page.method, 0) < KEPT:
            kept.append(page)
            begun[page.method] = begun.get(page.method, 0) + page.begins
    return kept[::-1]


def read(line: bytes, item: int, method: str) -> Contents:
    """Return what a page holds, from its line of the recording. May take a while."""
    if len(line) > LARGE:
        return Contents([], False, f"{len(line):,} bytes: too large to be read here")
    entry = read_entry(line)
    messages = read_frame(entry) if isinstance(entry, Frame) else []
    message = messages[item] if item < len(messages) else None
    if not isinstance(message, Result):
        return Contents([], False, "the file does not hold it any more")
    try:
        members = _members.decode(message.raw_result)
        listed = _things.decode(members.get(LISTS[method], b"[]"))
    except (DecodeError, RecursionError) as error:
        return Contents([], False, f"not a list: {error}")
    return Contents([_thing(bytes(raw), method) for raw in listed], "nextCursor" in members)


class Offer:
    """All that was listed, the last listing of each method and how they changed."""

    def __init__(self) -> None:
        self.last: dict[str, Listing] = {}
        """Method → its last listing."""
        self.counts: dict[str, int] = {}
        """Method → how many listings there were."""
        self.streams: set[str] = set()
        """The HTTP sessions that listings came from."""
        self._changes: list[Change] = []
        self._before: dict[str, Listing] = {}
        self._compared: dict[str, tuple[Listing, Change | None]] = {}
        self._of_stream: dict[tuple[str, str], Listing] = {}

    @property
    def changes(self) -> list[Change]:
        """How each list differs from the one before it, oldest first."""
        now = [self._change_to(listing) for listing in self.last.values()]
        return sorted([*self._changes, *(change for change in now if change)], key=lambda change: change.at)

    def take(self, page: ListPage, contents: Contents) -> None:
        self.streams.add(page.stream)
        method, key = page.method, (page.method, page.stream)
        last, joined = self.last.get(method), None if page.begins else self._of_stream.get(key)
        if joined is None:
            listing = Listing(method, page.stream, page.at, contents.things, page.begins, *contents[1:])
            self.counts[method] = self.counts.get(method, 0) + 1
            if last is not None:
                self._settle(last)
        else:
            things = [*joined.things, *contents.things]
            listing = joined._replace(things=things, goes_on=contents.goes_on, trouble=contents.trouble)
        if joined is None or joined is last:
            self.last[method] = listing
        self._of_stream[key] = listing

    def _settle(self, listing: Listing) -> None:
        """Have a listing that another has followed: what the next ones are compared with."""
        if (change := self._change_to(listing)) is not None:
            self._changes.append(change)
            del self._changes[:-KEPT]
        if listing.is_whole:
            self._before[listing.method] = listing

    def _change_to(self, listing: Listing) -> Change | None:
        known = self._compared.get(listing.method)
        if known is None or known[0] is not listing:
            before = self._before.get(listing.method)
            change = _difference(before, listing) if before is not None and listing.is_whole else None
            known = self._compared[listing.method] = (listing, change)
        return known[1]


def _difference(before: Listing, now: Listing) -> Change | None:
    old = {thing.key: thing for thing in before.things}
    new = {thing.key: thing for thing in now.things}
    changed = [
        (key, _changed_keys(old[key].data, thing.data))
        for key, thing in new.items()
        if key in old and old[key].data != thing.data
    ]
    change = Change(
        at=now.at,
        method=now.method,
        added=[key for key in new if key not in old],
        removed=[key for key in old if key not in new],
        changed=[(key, keys) for key, keys in changed if keys],
    )
    return change if change.added or change.removed or change.changed else None


def _changed_keys(old: bytes, new: bytes) -> list[str]:
    was, now = _dict(loads(Raw(old))), _dict(loads(Raw(new)))
    return [key for key in {**was, **now} if key not in was or key not in now or was[key] != now[key]]


def _thing(raw: bytes, method: str) -> Thing:
    value = _dict(loads(Raw(raw))) if len(raw) <= LARGE_THING else _only_texts(raw)
    name = _text(value, "name")
    key = _text(value, NAMED_BY.get(method, "name"))
    about = _text(value, "description") or _text(value, "title")
    details: list[Field] = []
    if method == "tools/list":
        details = [*fields(value.get("inputSchema")), *_output(value), *_hints(value)]
    elif method == "prompts/list":
        arguments = value.get("arguments")
        details = [_argument(_dict(each)) for each in (arguments if isinstance(arguments, list) else [])]
    else:
        about = " · ".join(filter(None, (name, about)))
        name = key
    needed = sum(field.required for field in details)
    return Thing(
        key=key,
        name=sanitize(name[:LONG] or key[:LONG] or "(no name)"),
        type=sanitize(_text(value, "mimeType")[:LONG]),
        line=sanitize(about[:LONG]),
        need=f"{needed} needed" if needed else "",
        about=about,
        details=details,
        data=raw,
    )


def _only_texts(raw: bytes) -> dict[str, Any]:
    """Return what a table says of something very large."""
    try:
        members = _members.decode(raw)
    except (DecodeError, RecursionError):
        return {}
    texts = {key: loads(value) for key, value in members.items() if len(bytes(value)) < LONG}
    return {**texts, "description": f"{len(raw):,} bytes: too large to be laid out here"}


def _output(tool: dict[str, Any]) -> Iterable[Field]:
    return (
        field._replace(name=f"→ {field.name}", required=False) for field in fields(tool.get("outputSchema"))
    )


def _hints(tool: dict[str, Any]) -> Iterable[Field]:
    hints = _dict(tool.get("annotations"))
    said = (
        f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in hints.items()
    )
    return [Field("(annotations)", "", False, ", ".join(said)[:LONG])] if hints else []


def _argument(argument: dict[str, Any]) -> Field:
    required = argument.get("required") is True
    return Field(_text(argument, "name"), "", required, _text(argument, "description"))


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
