"""Views of contents by their media type: images, CSV, unified diffs, Protocol Buffers.

A view returns the lines to show, or None for a content that it does not know. Each reads at most MAX_CONTENT bytes and
returns at most MAX_LINES lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from mcpspy.analysis.rows import BAD, OK, QUIET
from mcpspy.core.sanitize import sanitize
from mcpspy.io.extras import install_command

Piece: TypeAlias = tuple[str, str | None]
"""Text and its style: `ok`, `bad`, `quiet`, `title`, `key`, `string`, `number`, or colours as `#rrggbb on #rrggbb`."""

Line: TypeAlias = Sequence[Piece]

PENDING: list[Line] = [[("…", QUIET)]]
"""Shown in place of a view that is not ready."""

MAX_CONTENT = 4 << 20
"""Size in bytes above which a content has no view."""

MAX_LINES = 200
"""Maximum lines of a view."""

MAX_PIXELS = 8_000_000
"""Pixels above which an image is not decoded."""

IMAGE_SIZE = 40, 48
"""Maximum columns of an image, and twice its maximum lines."""

CELL = 30
"""Maximum characters of a cell of a table."""

DEPTH = 6
"""Maximum depth of nested messages of Protocol Buffers."""


class Content(NamedTuple):
    """A content of a message: text, an image, a resource. A function `view_NAME` gets it. Public as `mcpspy.Content`.

    >>> def view_shout(content: mcpspy.Content) -> str | None:
    ...     return content.text.upper() if content.media_type == "text/plain" else None
    >>> view_shout(mcpspy.Content("text/plain", b"hello"))
    'HELLO'
    """

    media_type: str
    """Its `mimeType`, in lower case and without parameters; empty if the message names none."""
    data: bytes
    """The bytes: decoded from Base64, or a text in UTF-8."""

    @property
    def text(self) -> str:
        """The bytes as text; invalid ones are replaced."""
        return self.data.decode("utf-8", "replace")


def image(content: Content) -> list[Line] | None:
    """Return an image as half blocks, two pixels in a character. Needs Pillow (extra `images`)."""
    if content.media_type not in ("image/png", "image/jpeg", "image/gif", "image/webp"):
        return None
    try:
        from PIL import Image
    except ImportError:
        return [[(f"to see the image: {install_command('images')}", QUIET)]]
    from io import BytesIO

    with Image.open(BytesIO(content.data), formats=("PNG", "JPEG", "GIF", "WEBP")) as opened:
        if opened.width * opened.height > MAX_PIXELS:
            return [[(f"{opened.width}x{opened.height}: too large to be shown", QUIET)]]
        picture = opened.convert("RGBA")
    picture.thumbnail(IMAGE_SIZE)
    ground = Image.new("RGBA", (picture.width, picture.height + picture.height % 2), "black")
    ground.alpha_composite(picture)
    pixels = ground.convert("RGB").tobytes()
    wide = ground.width * 3

    def colour(x: int, y: int) -> str:
        return "#" + pixels[y * wide + 3 * x : y * wide + 3 * x + 3].hex()

    return [
        [("▀", f"{colour(x, y)} on {colour(x, y + 1)}") for x in range(ground.width)]
        for y in range(0, ground.height, 2)
    ]


def table(content: Content) -> list[Line] | None:
    """Return CSV, or values separated by tabs, as a table."""
    separator = {"text/csv": ",", "text/tab-separated-values": "\t"}.get(content.media_type)
    if separator is None:
        return None
    from csv import reader

    lines = content.text.splitlines(keepends=True)
    rows = [row for row in reader(lines[: 2 * MAX_LINES], delimiter=separator) if row][:MAX_LINES]
    shown = [[sanitize(cell[: CELL + 1]).replace("\\n", " ") for cell in row] for row in rows]
    shown = [[cell if len(cell) <= CELL else cell[: CELL - 1] + "…" for cell in row] for row in shown]
    count = max(map(len, shown), default=0)
    widths = [max((len(row[n]) for row in shown if n < len(row)), default=0) for n in range(count)]
    numeric = [all(_is_number(row[n]) for row in shown[1:] if n < len(row)) for n in range(len(widths))]
    made: list[Line] = []
    for number, row in enumerate(shown):
        cells = [cell.rjust(widths[n]) if numeric[n] else cell.ljust(widths[n]) for n, cell in enumerate(row)]
        made.append([("  ".join(cells).rstrip(), None if number else "title")])
    return made


def diff(content: Content) -> list[Line] | None:
    """Return a unified diff with colours, by its media type or its first lines."""
    text = content.text
    is_named = content.media_type in ("text/x-diff", "text/x-patch", "text/x-udiff")
    if not is_named and not re.match(r"(?s)(diff --git .{0,2000}?\n)?--- [^\n]*\n\+\+\+ [^\n]*\n@@ ", text):
        return None
    return [[(line, _diff_style(line))] for line in text.splitlines()[:MAX_LINES]]


def protobuf(content: Content) -> list[Line] | None:
    """Return a message of Protocol Buffers by field numbers and wire types, without its schema."""
    if "protobuf" not in content.media_type or content.media_type.startswith("text/"):
        return None
    fields = _fields(content.data)
    if fields is None:
        return [[("not a message of Protocol Buffers", BAD)]]
    return list(_field_lines(fields, 0))[:MAX_LINES]


BUILTIN = {"image": image, "table": table, "diff": diff, "protobuf": protobuf}
"""The views that mcpspy contains, in the order in which they are tried."""


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\s*[-+]?[\d.,]*\d%?\s*|", text) is not None


def _diff_style(line: str) -> str | None:
    if line.startswith(("+++ ", "--- ", "diff ", "index ")):
        return "title"
    return {"+": OK, "-": BAD, "@": "key"}.get(line[:1])


_Field = tuple[int, int, int | bytes]
"""Number, wire type and value."""


def _fields(data: bytes) -> list[_Field] | None:
    """Return the fields of a message; None if it is not one."""
    found: list[_Field] = []
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        value: int | bytes
        if wire == 0:
            value, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
            value, at = data[at : at + size], at + size
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        else:  # Groups are deprecated.
            return None
        if at < 0 or at > len(data) or not 0 < number < 1 << 29:
            return None
        found.append((number, wire, value))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and the offset after it, which is beyond the end if the number is incomplete."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte, at = data[at], at + 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    return 0, len(data) + 1


def _field_lines(fields: list[_Field], depth: int) -> Iterator[Line]:
    for number, wire, value in fields:
        name: list[Piece] = [("  " * depth, None), (f"{number}: ", "key")]
        if isinstance(value, int):
            yield [*name, (str(value), "number")]
        elif wire != 2:
            yield [*name, (_fixed(value), "number")]
        elif (text := _printable(value)) is not None:
            yield [*name, (f'"{text}"', "string")]
        elif depth < DEPTH and (inner := _fields(value)):
            yield [*name, ("{", None)]
            yield from _field_lines(inner, depth + 1)
            yield [("  " * depth + "}", None)]
        else:
            shown = value[:32].hex(" ") + (" …" if len(value) > 32 else "")
            yield [*name, (f"{len(value)} bytes: {shown}", QUIET)]


def _fixed(value: bytes) -> str:
    """Return four or eight bytes as an integer and as a floating-point number: only the schema knows which."""
    from struct import unpack

    (number,) = unpack("<d" if len(value) == 8 else "<f", value)
    return f"{int.from_bytes(value, 'little')} or {number:g}"


def _printable(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return sanitize(text) if all(c.isprintable() or c in "\n\t" for c in text) else None
