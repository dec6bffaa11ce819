"""The tools, resources, templates and prompts that a server listed, and changes between listings.

Pages are read separately, so that a thread can read them. JSON schemas become
rows of fields, with dotted names for nested objects; they are not validated.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from mcpspy.analysis.apps import AppLinks
from mcpspy.analysis.context import definition, size_of
from mcpspy.core.protocol.extensions import EXTENSION_LISTINGS, is_for_model
from mcpspy.core.protocol.listing import LISTINGS, ListingPages, cursor_text
from mcpspy.core.protocol.message import Result, loads, read_frame
from mcpspy.core.recording.decode import Frame, read_entry
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import KIND, RESULT
from mcpspy.ui.model.session_model import IncrementalBuild, SessionModel

DEEP = 3
MOST = 300
TYPE_WIDTH = 120

SLICE = 0.004
"""Seconds in which rows are looked at, between two turns of the event loop."""


class SchemaField(NamedTuple):
    name: str
    type: str
    required: bool
    about: str


def fields(schema: object) -> list[SchemaField]:
    found: list[SchemaField] = []
    for field in _fields(schema, "", 0):
        if len(found) == MOST:
            found.append(SchemaField("…", "", False, f"more than {MOST:,} fields"))
            break
        found.append(field)
    return found


def type_of(schema: object, depth: int = 0) -> str:
    """Return the type of a schema as short text: `array of string`, `"a" | "b"`."""
    if not isinstance(schema, dict) or depth > DEEP:
        return "any" if schema is True else ""
    text = ""
    if "const" in schema:
        text = _value(schema["const"])
    elif isinstance(values := schema.get("enum"), list):
        text = _union(_value(value) for value in values[:20])
    elif isinstance(ref := schema.get("$ref"), str):
        text = ref.rpartition("/")[2]
    elif parts := _parts(schema):
        text = _union(type_of(part, depth + 1) for part in parts[:20])
    else:
        text = _plain(schema, depth)
    return text if len(text) <= TYPE_WIDTH else text[: TYPE_WIDTH - 1] + "…"


def _fields(schema: object, before: str, depth: int) -> Iterator[SchemaField]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        return
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    for name, part in properties.items():
        about = part.get("description") if isinstance(part, dict) else None
        if isinstance(part, dict) and "default" in part:
            about = f"{about or ''} (default {_value(part['default'])})".lstrip()
        yield SchemaField(
            before + name, type_of(part), name in needed, about if isinstance(about, str) else ""
        )
        if depth < DEEP and isinstance(part, dict):
            inner = part.get("items") if part.get("type") == "array" else part
            yield from _fields(inner, f"{before}{name}{'[]' if inner is not part else ''}.", depth + 1)


def _parts(schema: dict[str, Any]) -> list[object]:
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(parts := schema.get(key), list):
            return parts
    return []


def _plain(schema: dict[str, Any], depth: int) -> str:
    named = schema.get("type")
    types = [each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)]
    if types == ["array"] and (inner := type_of(schema.get("items"), depth + 1)):
        return f"array of {inner}"
    return _union(types) or ("object" if "properties" in schema else "")


def _union(texts: Iterator[str] | list[str]) -> str:
    return " | ".join(text for text in texts if text)


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= TYPE_WIDTH else text[: TYPE_WIDTH - 1] + "…"


TITLES = {
    "tools/list": "Tools",
    "resources/list": "Resources",
    "resources/templates/list": "Resource templates",
    "prompts/list": "Prompts",
    **{method: f"{listing.noun.capitalize()}s" for method, (_, listing) in EXTENSION_LISTINGS.items()},
}
"""List methods, in the order in which they are shown."""

LARGE = 32_000_000
"""Pages of more bytes are not read."""

LARGE_ITEM = 2_000_000
"""Of items of more bytes, only the short texts are read."""

TEXT_WIDTH = 1000
KEPT = 50
"""The number of listings compared per method: a client may list every second."""

_member_decoder = Decoder(dict[str, Raw])
_item_decoder = Decoder(list[Raw])


class ListPage(NamedTuple):
    row: int
    at: float
    method: str
    stream: str
    cursor: str | None
    """The cursor with which it was requested; None for the first page."""


class Capability(NamedTuple):
    key: str
    """The identity of the item, as sent."""
    name: str
    """Sanitized, as are type and line: the thread sanitizes thousands of items at once."""
    type: str
    line: str
    need: str
    """The number of required arguments: `1 required`, or empty."""
    about: str
    details: list[SchemaField]
    """Not sanitized."""
    data: bytes
    """The JSON of the item, as sent."""
    tokens: int = 0
    """Of the definition of a tool (docs/stats.md, Context cost); 0 if it is too large, or not for the model."""


class PageContents(NamedTuple):
    capabilities: list[Capability]
    following: str | None
    """The cursor of the next page; None for the last page."""
    trouble: str = ""


class CapabilityListing(NamedTuple):
    method: str
    stream: str
    at: float
    capabilities: list[Capability]
    begins: bool
    has_more: bool
    trouble: str

    @property
    def is_whole(self) -> bool:
        return self.begins and not self.has_more and not self.trouble


class ListingChange(NamedTuple):
    at: float
    method: str
    added: list[str]
    removed: list[str]
    changed: list[tuple[str, list[str]]]
    """Key of the item, and its changed members."""


class ListPages(IncrementalBuild):
    def _begin(self) -> None:
        self.pages: list[ListPage] = []

    def _take(self, begin: int, end: int) -> None:
        index = self._index
        what, method, texts = index.what, index.method, index.texts
        for row in range(begin, end):
            if what[row] & KIND == RESULT and texts[method[row]] in LISTINGS and index.answer(row) == row:
                request = index.request(row)
                assert request is not None
                stream, cursor = texts[index.stream[row]], index.subject[request]
                page = ListPage(
                    row, index.at[row], texts[method[row]], stream, texts[cursor] if cursor else None
                )
                self.pages.append(page)


def recent_pages(pages: Sequence[ListPage], listings: int = KEPT) -> list[ListPage]:
    """Return the pages of the last listings of each method."""
    begun: dict[str, int] = {}
    kept = []
    for page in reversed(pages):
        if begun.get(page.method, 0) < listings:
            kept.append(page)
            begun[page.method] = begun.get(page.method, 0) + (page.cursor is None)
    return kept[::-1]


def read(line: bytes, item: int, method: str) -> PageContents:
    """Return the contents of a page from its line of the recording. Slow for large pages."""
    if len(line) > LARGE:
        return PageContents([], None, f"{len(line):,} bytes: too large to read")
    entry = read_entry(line)
    messages = read_frame(entry) if isinstance(entry, Frame) else []
    message = messages[item] if item < len(messages) else None
    if not isinstance(message, Result):
        return PageContents([], None, "no longer in the file")
    try:
        members = _member_decoder.decode(message.raw_result)
        listed = _item_decoder.decode(members.get(LISTINGS[method].member, b"[]"))
    except (DecodeError, RecursionError) as error:
        return PageContents([], None, f"invalid list: {error}")
    following = cursor_text(loads(members.get("nextCursor", b"")))
    return PageContents([_read_capability(bytes(raw), method) for raw in listed], following)


class Capabilities:
    def __init__(self) -> None:
        self.last: dict[str, CapabilityListing] = {}
        self.counts: dict[str, int] = {}
        self.streams: set[str] = set()
        self._changes: list[ListingChange] = []
        self._before: dict[str, CapabilityListing] = {}
        self._compared: dict[str, tuple[CapabilityListing, ListingChange | None]] = {}
        self._pages = ListingPages[CapabilityListing]()

    @property
    def changes(self) -> list[ListingChange]:
        """The changes from each listing to the next, oldest first."""
        now = [self._change_to(listing) for listing in self.last.values()]
        return sorted([*self._changes, *(change for change in now if change)], key=lambda change: change.at)

    def take(self, page: ListPage, contents: PageContents) -> None:
        self.streams.add(page.stream)
        method, last = page.method, self.last.get(page.method)
        before = None if page.cursor is None else self._pages.before(page.stream, method, page.cursor)
        has_more = contents.following is not None
        if before is None:
            begins = page.cursor is None
            listing = CapabilityListing(
                method, page.stream, page.at, contents.capabilities, begins, has_more, contents.trouble
            )
            self.counts[method] = self.counts.get(method, 0) + 1
            if last is not None:
                self._settle(last)
        else:
            capabilities = [*before.page.capabilities, *contents.capabilities]
            listing = before.page._replace(
                capabilities=capabilities, has_more=has_more, trouble=contents.trouble
            )
        if before is None or before.page is last:
            self.last[method] = listing
        self._pages.add(page.stream, method, listing, cursor=page.cursor, following=contents.following)

    def _settle(self, listing: CapabilityListing) -> None:
        """Record the changes of a listing once the next listing has begun."""
        if (change := self._change_to(listing)) is not None:
            self._changes.append(change)
            del self._changes[:-KEPT]
        if listing.is_whole:
            self._before[listing.method] = listing

    def _change_to(self, listing: CapabilityListing) -> ListingChange | None:
        known = self._compared.get(listing.method)
        if known is None or known[0] is not listing:
            before = self._before.get(listing.method)
            change = _difference(before, listing) if before is not None and listing.is_whole else None
            known = self._compared[listing.method] = (listing, change)
        return known[1]


async def last_listings(model: SessionModel) -> dict[str, CapabilityListing]:
    """Read the last listing of each kind in a session, with all of its pages."""
    pages = ListPages(model)
    while pages.is_behind:
        until = time.perf_counter() + SLICE
        pages.advance(lambda until=until: time.perf_counter() < until)  # type: ignore[misc]
        await asyncio.sleep(0)
    listings = Capabilities()
    for page in recent_pages(pages.pages, 1):
        if pages.is_replaced:
            break
        where = model.index.where(page.row)
        line = model.read(where.part, where.offset, where.length)
        listings.take(page, await asyncio.to_thread(read, line, where.item, page.method))
    return listings.last


def _difference(before: CapabilityListing, now: CapabilityListing) -> ListingChange | None:
    old = {capability.key: capability for capability in before.capabilities}
    new = {capability.key: capability for capability in now.capabilities}
    changed = [
        (key, _changed_keys(old[key].data, capability.data))
        for key, capability in new.items()
        if key in old and old[key].data != capability.data
    ]
    change = ListingChange(
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


def _read_capability(raw: bytes, method: str) -> Capability:
    value = _dict(loads(Raw(raw))) if len(raw) <= LARGE_ITEM else _only_texts(raw)
    name = _text(value, "name")
    key = _text(value, LISTINGS[method].key)
    about = _text(value, "description") or _text(value, "title")
    details: list[SchemaField] = []
    tokens = 0
    if method == "tools/list":
        details = [*fields(value.get("inputSchema")), *_output(value), *_hints(value), *_app(value)]
        tokens = size_of(definition(value)).tokens if len(raw) <= LARGE_ITEM and is_for_model(value) else 0
    elif method == "skills/list":
        front = _dict(value.get("frontmatter"))
        name, about = _text(front, "name"), _text(front, "description")
        files = value.get("resources")
        details = [_file(_dict(each)) for each in (files if isinstance(files, list) else [])]
    elif method == "prompts/list":
        arguments = value.get("arguments")
        details = [_argument(_dict(each)) for each in (arguments if isinstance(arguments, list) else [])]
    else:
        about = " · ".join(filter(None, (name, about)))
        name = key
    needed = sum(field.required for field in details)
    return Capability(
        key=key,
        name=sanitize(name[:TEXT_WIDTH] or key[:TEXT_WIDTH] or "(no name)"),
        type=f"{tokens:,} tokens" if tokens else sanitize(_text(value, "mimeType")[:TEXT_WIDTH]),
        line=sanitize(about[:TEXT_WIDTH]),
        need=f"{needed} required" if needed else "",
        about=about,
        details=details,
        data=raw,
        tokens=tokens,
    )


def _only_texts(raw: bytes) -> dict[str, Any]:
    """Return the short texts of a very large item."""
    try:
        members = _member_decoder.decode(raw)
    except (DecodeError, RecursionError):
        return {}
    texts = {key: loads(value) for key, value in members.items() if len(bytes(value)) < TEXT_WIDTH}
    return {**texts, "description": f"{len(raw):,} bytes: too large to show"}


def _output(tool: dict[str, Any]) -> Iterable[SchemaField]:
    return (
        field._replace(name=f"→ {field.name}", required=False) for field in fields(tool.get("outputSchema"))
    )


def _hints(tool: dict[str, Any]) -> Iterable[SchemaField]:
    hints = _dict(tool.get("annotations"))
    parts = (
        f"{name}: {str(value).lower() if isinstance(value, bool) else value}" for name, value in hints.items()
    )
    return [SchemaField("(annotations)", "", False, ", ".join(parts)[:TEXT_WIDTH])] if hints else []


def _argument(argument: dict[str, Any]) -> SchemaField:
    required = argument.get("required") is True
    return SchemaField(_text(argument, "name"), "", required, _text(argument, "description"))


def _app(tool: dict[str, Any]) -> Iterable[SchemaField]:
    """Return the app of a tool, and who may call the tool, as a field."""
    text = AppLinks().about(tool)
    return [SchemaField("(app)", "", False, text[:TEXT_WIDTH])] if text else []


def _file(file: dict[str, Any]) -> SchemaField:
    """Return a file of a skill as a field."""
    size = file.get("size")
    bytes_text = f"{size:,} bytes" if isinstance(size, int) else ""
    return SchemaField(_text(file, "uri"), bytes_text, False, _text(file, "digest"))


def _text(value: dict[str, Any], key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
