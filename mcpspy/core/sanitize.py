"""Escaping of a peer's text for display in a terminal or document.

Control and direction characters could move the cursor, set the title, write to the clipboard or reverse a line;
invisible ones could hide text that a model reads. They become visible text; all other characters stay.
"""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from re import Match, Pattern

_SHORT = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
_CONTROLS = str.maketrans({n: _SHORT.get(n, f"\\x{n:02x}") for n in (*range(0x20), *range(0x7F, 0xA0))})

INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""A class of regular expressions: zero-width, bidirectional and tag characters, variation selectors, fillers.

These are Unicode's Default_Ignorable_Code_Point, and the controls of interlinear annotations. `marks.js` has the same.
"""


_PICTURES = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff\u3030\u303d"
    "\u3297\u3299\U0001f000-\U0001faff"
)
_JOINED_SCRIPTS = (
    "\u0620-\u06dc\u06de-\u070e\u0710-\u08e1\u08e3-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa"
)
_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in name) + "\U000e007f"
    for name in ("gbeng", "gbsct", "gbwls")
)
"""The flags of England, Scotland and Wales: a black flag, and its name in tags."""


def sanitize(text: str) -> str:
    """Return the text as one line without control and invisible characters."""
    if text.isascii():
        return text if text.isprintable() else text.translate(_CONTROLS)
    return _hidden().sub(_marked, text)


def sanitize_bytes(data: bytes) -> str:
    r"""Return bytes as one line of text; invalid UTF-8 is shown as `\\xff`."""
    return sanitize(data.decode("utf-8", "backslashreplace"))


def hidden_as_json(text: str) -> str:
    r"""Return JSON with control and invisible characters as escapes, such as `\\u202e`; the lines stay."""
    return _hidden().sub(_escaped, text)


def hidden_characters(text: str) -> Iterator[str]:
    """Yield the invisible and control characters of a text, except line breaks, tabs and lone surrogates."""
    for found in _hidden().finditer(text):
        character = found[0]
        is_other = character in "\t\n\r\u2028\u2029" or 0xD800 <= ord(character) < 0xE000
        if not is_other and not _is_needed(found):
            yield character


@cache
def _hidden() -> Pattern[str]:
    import re  # Nearly all text is ASCII, and `mcpspy run` does not import it.

    return re.compile(f"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff{INVISIBLE}]")


@cache
def _needed() -> Pattern[str]:
    """Return a pattern for an invisible character that changes how its neighbours look."""
    import re

    return re.compile(
        # A joiner between emoji, or between letters of scripts such as Persian and Hindi.
        f"(?:(?<=[{_PICTURES}])|(?<=[{_PICTURES}][\ufe0e\ufe0f]))\u200d(?=[{_PICTURES}])"
        f"|(?<=[{_JOINED_SCRIPTS}])[\u200c\u200d](?=[{_JOINED_SCRIPTS}])"
        # A selector after an emoji, or in a digit in a box.
        f"|(?<=[{_PICTURES}])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?=\u20e3)"
    )


def _is_needed(found: Match[str]) -> bool:
    at, text = found.start(), found.string
    if 0xE0000 <= ord(found[0]) < 0xE0080:
        start = text.rfind(_FLAGS[0][0], max(0, at - len(_FLAGS[0])), at)
        return start >= 0 and text.startswith(_FLAGS, start) and at < start + len(_FLAGS[0])
    return _needed().match(text, at) is not None


def _escaped(found: Match[str]) -> str:
    if found[0] == "\n" or _is_needed(found):
        return found[0]
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _marked(found: Match[str]) -> str:
    """Return the visible text for one character, or itself if its neighbours need it."""
    code = ord(found[0])
    if code < 0xA0:
        return found[0].translate(_CONTROLS)
    if _is_needed(found):
        return found[0]
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
