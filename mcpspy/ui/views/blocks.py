"""Content blocks of a message: texts, JSON, and images described by their first bytes.

Parses only as deep as needed and keeps unknown parts as JSON. Images are not decoded.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from mcpspy.analysis.rows import BAD, QUIET
from mcpspy.core.jsontools import string
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import error_name
from mcpspy.core.sanitize import sanitize, sanitize_bytes
from mcpspy.ui.text.numbers import byte_size
from mcpspy.ui.views.content import MAX_CONTENT, Content, Piece

HEAD = 1 << 16
"""Maximum characters of base64 to decode: a JPEG has its dimensions after the thumbnail."""

_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def describe_binary(kind: str, data: bytes) -> str:
    """Return a type, a size, and the dimensions if it is an image: `image/png, 12.3 kB, 640x480`."""
    blanks = data.count(b"=", -2) if len(data) > 1 else 0
    text = f"{kind or 'unknown type'}, {byte_size(len(data) * 3 // 4 - blanks)}"
    found = dimensions(head(data))
    return f"{text}, {found[0]}x{found[1]}" if found else text


def head(data: bytes) -> bytes:
    """Return the first decoded bytes of base64, or nothing if it is invalid."""
    taken = data[:HEAD]
    try:
        return base64.b64decode(taken[: len(taken) // 4 * 4], validate=True)
    except binascii.Error:
        return b""


def dimensions(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a PNG, GIF, WebP or JPEG image."""
    if data.startswith(b"\x89PNG\r\n\x1a\n") and len(data) >= 24:
        return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])
    if data.startswith((b"GIF87a", b"GIF89a")) and len(data) >= 10:
        return _little(data[6:8]), _little(data[8:10])
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP" and len(data) >= 30:
        return _webp(data)
    return _jpeg(data) if data.startswith(b"\xff\xd8") else None


def _webp(data: bytes) -> tuple[int, int] | None:
    kind = data[12:16]
    if kind == b"VP8X":
        return _little(data[24:27]) + 1, _little(data[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(data[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(data[26:28]) & 0x3FFF, _little(data[28:30]) & 0x3FFF
    return None


def _jpeg(data: bytes) -> tuple[int, int] | None:
    at = 2
    while marker := re.compile(rb"\xff+([^\xff\x00])").match(data, at):
        at, kind = marker.end(), marker.group(1)[0]
        if kind in _JPEG_SIZES and len(data) >= at + 7:
            return int.from_bytes(data[at + 5 : at + 7]), int.from_bytes(data[at + 3 : at + 5])
        at += int.from_bytes(data[at : at + 2])
    return None


def _little(data: bytes) -> int:
    return int.from_bytes(data, "little")


TEXT, JSON = "text", "json"
"""Formats of the text of a block."""

INLINE = 60
"""Maximum characters of a value that is shown next to its name."""

T = TypeVar("T")

_Fields = dict[str, Raw]
_FIELDS = msgspec.json.Decoder(_Fields)
_ITEMS = msgspec.json.Decoder(list[Raw])


class ContentBlock(NamedTuple):
    label: list[Piece]
    text: bytes = b""
    kind: str = TEXT
    pointer: str = ""
    is_nested: bool = False
    """True if the text comes from a string that holds JSON."""
    content: Content | None = None
    """The content for views by its media type."""


def blocks(data: bytes) -> list[ContentBlock]:
    """Return the content blocks of a message; for other data, one block with its text."""
    fields = _fields(data)
    if fields is None:
        return [ContentBlock([], data, JSON if _items(data) is not None else TEXT)]
    found: list[ContentBlock] = []
    if "method" in fields:
        found.append(ContentBlock([(_short(fields["method"]), "title")], pointer="/method"))
    for name, read in (("params", _members), ("result", _members), ("error", _error)):
        if name in fields:
            found += read(bytes(fields[name]), f"/{name}")
    return [block for block in found if block.label or block.text]


def _members(data: bytes, at: str) -> Iterator[ContentBlock]:
    """Yield the content of params or of a result, then its other members."""
    fields = _fields(data)
    if fields is None:
        yield _value("", data, at)
        return
    if fields.pop("isError", Raw(b"")) == Raw(b"true"):
        yield ContentBlock([("tool error", BAD)], pointer=f"{at}/isError")
    for name in ("content", "contents", "messages"):
        if name in fields and (items := _items(bytes(fields[name]))) is not None:
            del fields[name]
            for number, item in enumerate(items):
                yield from _content(bytes(item), f"{at}/{name}/{number}")
    if "content" in fields and _fields(bytes(fields["content"])) is not None:
        yield from _content(bytes(fields.pop("content")), f"{at}/content")
    for name, raw in fields.items():
        where = f"{at}/{_escaped(name)}"
        inner = _fields(bytes(raw)) if name == "arguments" else None
        if inner is None:
            yield _value(name, bytes(raw), where)
            continue
        yield ContentBlock([(name, "quiet")], pointer=where)
        for key, value in inner.items():
            yield _value(key, bytes(value), f"{where}/{_escaped(key)}")


def _content(data: bytes, at: str) -> Iterator[ContentBlock]:
    """Yield one content item: a content block, a prompt message, or a resource."""
    fields = _fields(data)
    if fields is None:
        yield _value("", data, at)
        return
    get = {name: _short(raw) for name, raw in fields.items() if name not in ("text", "data", "blob")}
    kind, media = get.get("type", ""), get.get("mimeType", "")
    if "role" in get and "content" in fields:
        yield ContentBlock([(f"{get['role']}:", "title")], pointer=f"{at}/role")
        inner = bytes(fields["content"])
        items = _items(inner)
        for number, item in enumerate(items or ()):
            yield from _content(bytes(item), f"{at}/content/{number}")
        if items is None:
            yield from _content(inner, f"{at}/content")
    elif kind == "resource" and "resource" in fields:
        yield from _content(bytes(fields["resource"]), f"{at}/resource")
    elif kind == "resource_link":
        words = ["link", get.get("uri", ""), get.get("name", ""), media]
        yield ContentBlock([(" · ".join(word for word in words if word), "key")], pointer=at)
    elif "data" in fields and kind in ("image", "audio"):
        encoded = bytes(fields["data"]).strip(b'"').replace(b"\\/", b"/")
        label = f"{kind} · {describe_binary(media, encoded)}"
        yield ContentBlock([(label, "key")], pointer=f"{at}/data", content=_binary(media, encoded))
    elif "blob" in fields:
        encoded = bytes(fields["blob"]).strip(b'"').replace(b"\\/", b"/")
        label = f"{get.get('uri', 'resource')} · {describe_binary(media, encoded)}"
        yield ContentBlock([(label, "key")], pointer=f"{at}/blob", content=_binary(media, encoded))
    elif "text" in fields and kind in ("text", "") and (text := string(bytes(fields["text"]))) is not None:
        yield _text(text, " · ".join(w for w in (kind, get.get("uri", ""), media) if w), f"{at}/text", media)
    else:
        yield ContentBlock([(kind or "item", "quiet")], data, JSON, at)


def _error(data: bytes, at: str) -> Iterator[ContentBlock]:
    fields = _fields(data)
    if fields is None:
        yield _value("error", data, at)
        return
    where = f"{at}/code" if "code" in fields else at
    code = fields.pop("code", Raw(b""))
    name = error_name(value) if isinstance(value := loads(code), int) else None
    yield ContentBlock([(f"error {_short(code)} {name or ''}".rstrip(), BAD)], pointer=where)
    for name, raw in fields.items():
        yield _value(name, bytes(raw), f"{at}/{_escaped(name)}")


def _value(name: str, data: bytes, at: str) -> ContentBlock:
    """Return a named value: next to its name if it is short, otherwise below it."""
    label = f"{sanitize(name)}: " if name else ""
    text = string(data)
    if text is not None and (len(text) > INLINE or "\n" in text):
        return _text(text, label.strip(" :") or "text", at)
    if text is None and data[:1] in b"{[" and len(data) > INLINE:
        return ContentBlock([(label.rstrip(), QUIET)], data, JSON, at)
    return ContentBlock(
        [(label + (sanitize_bytes(data) if text is None else sanitize(text)), None)], pointer=at
    )


def _text(text: str, label: str, at: str, media: str = "") -> ContentBlock:
    """Return a text; one that is JSON is formatted."""
    data = text.encode("utf-8", "backslashreplace")
    content = Content(_media_type(media), data)
    words = f"{label} · {byte_size(len(data))}" if len(data) > 1000 else label
    if re.match(r"\s*[\[{]", text) and (_fields(data) is not None or _items(data) is not None):
        return ContentBlock([(f"{words} · JSON", QUIET)], data, JSON, at, is_nested=True, content=content)
    return ContentBlock([(words, QUIET)], data, TEXT, at, content=content)


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()


def _binary(media: str, encoded: bytes) -> Content | None:
    if len(encoded) > MAX_CONTENT * 4 // 3:
        return None
    try:
        return Content(_media_type(media), base64.b64decode(encoded, validate=True))
    except binascii.Error:
        return None


def _fields(data: bytes) -> _Fields | None:
    return _decoded(_FIELDS, data)


def _items(data: bytes) -> list[Raw] | None:
    return _decoded(_ITEMS, data)


def _decoded(decoder: msgspec.json.Decoder[T], data: bytes) -> T | None:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _short(raw: Raw) -> str:
    data = bytes(raw)[: INLINE * 40]
    try:
        text = string(data)
    except ValueError:  # A long text is cut.
        text, data = None, data[1:]
    return sanitize(data.decode("utf-8", "backslashreplace") if text is None else text)[:200]


def _escaped(name: str) -> str:
    return sanitize(name.replace("~", "~0").replace("/", "~1"))
