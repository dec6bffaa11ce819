"""Text of a known width, for cells of a terminal.

Owns measuring, cutting and padding. Takes text that is inert already, and
makes it steady: terminals disagree on the width of what joins or is invisible,
and one wrong guess shifts all that stands to its right. Refuses to know about
widgets and colours.
"""

from __future__ import annotations

from rich.cells import cell_len, get_character_cell_size

ELLIPSIS = "…"

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
    *range(0xE0000, 0xE0080),  # Tags: ASCII that nobody sees.
    *range(0xE0100, 0xE01F0),
)

_STEADY: dict[int, str | None] = {
    **{n: f"\\u{n:04x}" if n < 0x10000 else f"\\U{n:08x}" for n in _INVISIBLE},
    0xFE0E: None,  # "As text", "as emoji": the one thing left out, since it moves columns and says nothing.
    0xFE0F: None,
}


def steady(text: str) -> str:
    r"""Return text that every terminal shows at the same width, invisible characters as `\u200b`."""
    return text if text.isascii() else text.translate(_STEADY)


def cells(text: str) -> int:
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, start: int, width: int) -> int:
    """Return where text that begins at `start` has filled `width` columns."""
    if text.isascii():
        return min(len(text), start + width)
    for index in range(start, len(text)):
        width -= get_character_cell_size(text[index])
        if width < 0:
            return index
    return len(text)


def cut(text: str, width: int) -> str:
    """Return at most `width` columns of a text, with an ellipsis where something is gone."""
    if width <= 0:
        return ""
    if len(text) <= width * 4 and cells(text) <= width:
        return text
    return text[: fit(text[: width * 4], 0, width - 1)] + ELLIPSIS


def cut_middle(text: str, width: int) -> str:
    """Cut where it hurts least: of `notifications/resources/updated` the end says more than the start."""
    if width < 8 or not text.isascii() or len(text) <= width:
        return cut(text, width)
    tail = len(text) - text.find("/") if "/" in text else width
    head = width - 1 - tail if tail + 4 <= width else width // 3
    return text[:head] + ELLIPSIS + text[len(text) - (width - head - 1) :]


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Return exactly `width` columns: the text cut, or filled with blanks."""
    if text.isascii() and len(text) <= width:
        return text.rjust(width) if right else text.ljust(width)
    text = cut(text, width)
    room = " " * (width - cells(text))
    return room + text if right else text + room


def wrap(text: str, width: int, hang: int = 0) -> list[tuple[int, int]]:
    """Return the stretches of a text that make its rows, all but the first `hang` columns narrower.

    Breaks behind a blank, if there is one in the second half of the row.
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
