"""What a message says, rather than how it is written.

Owns finding the content in a message: blocks of tool results, prompts and
resources as text, pictures by type and size, errors, arguments. Reads only as
deep as it must and keeps what it does not know as JSON. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec import Raw

from mcpspy.analysis.rows import BAD, QUIET
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.tui.reader.document import Piece
from mcpspy.ui.tui.reader.image import described, kilo
from mcpspy.ui.tui.reader.path import string

TEXT, JSON = "text", "json"
"""How the text of a block is shown."""

INLINE = 60
"""Characters of a value that stand behind its name."""

_Fields = dict[str, Raw]
_FIELDS = msgspec.json.Decoder(_Fields)
_ITEMS = msgspec.json.Decoder(list[Raw])


class Block(NamedTuple):
    """Lines said, and a text if there is one."""

    said: list[Piece]
    text: bytes = b""
    kind: str = TEXT
    pointer: str = ""
    is_nested: bool = False
    """Whether the text is that of a string, and JSON once more."""


def blocks(data: bytes) -> list[Block]:
    """Return what a message says; of what is no message, the text it is."""
    fields = _fields(data)
    if fields is None:
        return [Block([], data, JSON if _items(data) is not None else TEXT)]
    found: list[Block] = []
    if "method" in fields:
        found.append(Block([(_short(fields["method"]), "title")], pointer="/method"))
    for name, read in (("params", _said), ("result", _said), ("error", _error)):
        if name in fields:
            found += read(bytes(fields[name]), f"/{name}")
    return [block for block in found if block.said or block.text]


def _said(data: bytes, at: str) -> Iterator[Block]:
    """Yield the content of params or of a result, then the rest by name."""
    fields = _fields(data)
    if fields is None:
        yield _value("", data, at)
        return
    if fields.pop("isError", Raw(b"")) == Raw(b"true"):
        yield Block([("the tool failed", BAD)], pointer=f"{at}/isError")
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
        yield Block([(name, "quiet")], pointer=where)
        for key, value in inner.items():
            yield _value(key, bytes(value), f"{where}/{_escaped(key)}")


def _content(data: bytes, at: str) -> Iterator[Block]:
    """Yield one item of content: a block, a message of a prompt, or a resource."""
    fields = _fields(data)
    if fields is None:
        yield _value("", data, at)
        return
    get = {name: _short(raw) for name, raw in fields.items() if name not in ("text", "data", "blob")}
    kind, media = get.get("type", ""), get.get("mimeType", "")
    if "role" in get and "content" in fields:
        yield Block([(f"{get['role']}:", "title")], pointer=f"{at}/role")
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
        yield Block([(" · ".join(word for word in words if word), "key")], pointer=at)
    elif "data" in fields and kind in ("image", "audio"):
        held = bytes(fields["data"]).strip(b'"').replace(b"\\/", b"/")
        yield Block([(f"{kind} · {described(media, held)}", "key")], pointer=f"{at}/data")
    elif "blob" in fields:
        held = bytes(fields["blob"]).strip(b'"').replace(b"\\/", b"/")
        yield Block(
            [(f"{get.get('uri', 'resource')} · {described(media, held)}", "key")], pointer=f"{at}/blob"
        )
    elif "text" in fields and kind in ("text", "") and (text := string(bytes(fields["text"]))) is not None:
        yield _text(text, " · ".join(w for w in (kind, get.get("uri", ""), media) if w), f"{at}/text")
    else:
        yield Block([(kind or "item", "quiet")], data, JSON, at)


def _error(data: bytes, at: str) -> Iterator[Block]:
    fields = _fields(data)
    if fields is None:
        yield _value("error", data, at)
        return
    where = f"{at}/code" if "code" in fields else at
    yield Block([(f"error {_short(fields.pop('code', Raw(b'')))}".rstrip(), BAD)], pointer=where)
    for name, raw in fields.items():
        yield _value(name, bytes(raw), f"{at}/{_escaped(name)}")


def _value(name: str, data: bytes, at: str) -> Block:
    """Return a named value: beside its name if it is short, else below it."""
    label = f"{sanitize(name)}: " if name else ""
    text = string(data)
    if text is not None and (len(text) > INLINE or "\n" in text):
        return _text(text, label.strip(" :") or "text", at)
    if text is None and data[:1] in b"{[" and len(data) > INLINE:
        return Block([(label.rstrip(), QUIET)], data, JSON, at)
    return Block([(label + sanitize(text if text is not None else data.decode()), None)], pointer=at)


def _text(text: str, label: str, at: str) -> Block:
    """Return a text; laid out, if it is JSON once more."""
    data = text.encode("utf-8", "backslashreplace")
    said = f"{label} · {kilo(len(data))}" if len(data) > 1000 else label
    if re.match(r"\s*[\[{]", text) and _is_json(data):
        return Block([(f"{said} · JSON", QUIET)], data, JSON, at, is_nested=True)
    return Block([(said, QUIET)], data, TEXT, at)


def _fields(data: bytes) -> _Fields | None:
    try:
        return _FIELDS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _items(data: bytes) -> list[Raw] | None:
    try:
        return _ITEMS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _is_json(data: bytes) -> bool:
    return _fields(data) is not None or _items(data) is not None


def _short(raw: Raw) -> str:
    """Return a value as a few words."""
    data = bytes(raw)[: INLINE * 40]
    try:
        text = string(data)
    except ValueError:
        text = None
    return sanitize(data.decode("utf-8", "backslashreplace") if text is None else text)[:200]


def _escaped(name: str) -> str:
    return sanitize(name.replace("~", "~0").replace("/", "~1"))
