"""Text in a number of columns: cut, padded, wrapped, and shortened so that what identifies it stays.

`steady` replaces joining and invisible characters first: terminals disagree on their width, and one wrong width shifts
everything to its right. Of a method, an id or a URI the end stays, and of an error the reason.
"""

from __future__ import annotations

_GLYPHS = dict.fromkeys(map(ord, "→←·…µ●○✗"))
"""Characters of one column in most of mcpspy's own output."""

_INVISIBLE = (
    0x00AD,  # Soft hyphen.
    0x034F,
    0x115F,
    0x1160,
    *range(0x180B, 0x1810),
    *range(0x200B, 0x200E),  # Zero width space, non-joiner, joiner.
    *range(0x2060, 0x2066),
    *range(0x206A, 0x2070),
    0x3164,
    *range(0xFE00, 0xFE0E),
    0xFFA0,
    *range(0xFFF9, 0xFFFC),
    *range(0xE0000, 0xE0080),  # Tags: invisible ASCII.
    *range(0xE0100, 0xE01F0),
)

_STEADY: dict[int, str | None] = {
    **{n: f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}" for n in _INVISIBLE},
    0xFE0E: None,  # Selectors of text or emoji style: removed, as they shift columns and carry no information.
    0xFE0F: None,
}


def steady(text: str) -> str:
    return text if text.isascii() else text.translate(_STEADY)


def cells(text: str) -> int:
    """Return the number of columns that a text takes on a terminal."""
    if text.isascii() or text.translate(_GLYPHS).isascii():
        return len(text)
    from rich.cells import cell_len  # Takes 14 ms, and most text does not need it.

    return cell_len(text)


def fit(text: str, start: int, width: int) -> int:
    """Return the index up to which text from `start` fits into `width` columns."""
    if text.isascii():
        return min(len(text), start + width)
    from rich.cells import get_character_cell_size

    for index in range(start, len(text)):
        width -= get_character_cell_size(text[index])
        if width < 0:
            return index
    return len(text)


def cut(text: str, width: int) -> str:
    """Return at most `width` columns of a text, with an ellipsis if it is cut."""
    if width <= 0:
        return ""
    if len(text) <= width * 4 and cells(text) <= width:
        return text
    end = fit(text[: width * 4], 0, width - 1)
    while cells(text[:end]) >= width:  # A variation selector widens the character before it.
        end -= 1
    return text[:end] + "…"


def cut_middle(text: str, width: int) -> str:
    """Return a text cut in the middle: `notifications/resources/updated` is recognised by its end."""
    if width < 8 or not text.isascii() or len(text) <= width:
        return cut(text, width)
    tail = len(text) - text.find("/") if "/" in text else width
    head = width - 1 - tail if tail + 4 <= width else width // 3
    return text[:head] + "…" + text[len(text) - (width - head - 1) :]


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return exactly `width` columns: the text cut or padded."""
    if text.isascii() and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    text = cut(text, width)
    room = " " * (width - cells(text))
    return room + text if right else text + room


def wrap(text: str, width: int, hang: int = 0) -> list[tuple[int, int]]:
    """Return the spans of a text's rows; all rows after the first are `hang` columns narrower.

    A row breaks after a space if there is one in its second half.
    """
    rows: list[tuple[int, int]] = []
    start = 0
    while True:
        end = max(fit(text, start, width), start + 1)
        if end >= len(text):
            rows.append((start, len(text)))
            return rows
        blank = text.rfind(" ", start + width // 2, end)
        if blank > start:
            end = blank + 1
        rows.append((start, end))
        if len(rows) == 1:
            width = max(width - hang, 1)
        start = end


LONGEST_ID = 12
"""Columns of the longest id that is shown in full where space is short."""

_HEAD = 3
"""Columns of a method's beginning that are worth showing before its end."""

_SDK_PREFIX = "Error executing tool "
"""The beginning of a tool error of the Python SDK, before the name of the tool, which has its own column."""

_CODE_PREFIX = "MCP error "
"""The beginning of an error of the TypeScript SDK, before the code."""


def elide(method: str, width: int) -> str:
    """Return a method in at most N columns; its end identifies it: `…/list_changed`, `noti…/progress`."""
    if cells(method) <= width:
        return method
    if method.startswith("("):  # Words in place of a method: `(not JSON)`.
        return cut(method, width)
    end = ""
    for part in reversed(method.split("/")[1:]):
        if cells(f"…/{part}{end}") > width:
            break
        end = f"/{part}{end}"
    if end:
        head = width - cells(end) - 1
        return f"{cut(method, head + 1) if head >= _HEAD else '…'}{end}"
    if "/" in method:
        return tail(method, width)
    return _cut_middle(method, width)


def tail(text: str, width: int) -> str:
    """Return the last N columns of a text, with an ellipsis before them if it is cut."""
    if cells(text) <= width:
        return text
    start = max(len(text) - width + 1, 0)
    while start < len(text) and cells(text[start:]) > width - 1:
        start += 1
    return "…" + text[start:]


def shorten_subject(subject: str, width: int) -> str:
    """Return a subject in at most N columns; the end of a URI identifies it."""
    if "://" not in subject or cells(subject) <= width:
        return subject
    return _cut_middle(subject, width) if width >= 24 else tail(subject, width)


def shorten_status(status: str, width: int) -> str:
    """Return the reason of an error, for a column of N columns.

    Of an error response, the code, its name and the message, without the code if they do not fit; of a tool error,
    the text. Prefixes of SDKs are left out.
    """
    if status.startswith("tool error: "):
        text = status.removeprefix("tool error: ")
        if text.startswith((_SDK_PREFIX, _CODE_PREFIX)):
            text = text.partition(": ")[2] or text
        return f"✗ {text}"
    reason = status.removeprefix("error ")
    if reason == status or cells(reason) <= width:
        return reason
    code, _, rest = reason.partition(" ")
    rest = rest.replace(f"{_CODE_PREFIX}{code}: ", "", 1)
    return rest if rest and code.lstrip("-").isdigit() else reason


def _cut_middle(text: str, width: int) -> str:
    head = cut(text, max(width // 3, 1))
    return head[:-1] + tail(text, width - cells(head) + 1)
