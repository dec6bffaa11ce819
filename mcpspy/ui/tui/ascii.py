"""ASCII mode: a terminal driver that writes no character above U+007F.

Every character that mcpspy, Textual or a peer draws passes through the driver, and
is replaced by as many characters as the cells that it takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import cast

from rich.cells import cell_len
from textual.driver import Driver

_GLYPHS = {
    "…": "~",
    "·": "-",
    "•": "*",
    "µ": "u",
    "±": "+",
    "␣": "_",
    "🔎": "/ ",
    **dict.fromkeys("→▸▹", ">"),
    **dict.fromkeys("←◂⏎⌫", "<"),
    **dict.fromkeys("↑▴", "^"),
    **dict.fromkeys("↓▾", "v"),
    **dict.fromkeys("●", "*"),
    **dict.fromkeys("○", "o"),
    **dict.fromkeys("✗", "x"),
    **dict.fromkeys("✓✔", "+"),
    **dict.fromkeys("─╌┄▔", "-"),
    **dict.fromkeys("━═", "="),
    **dict.fromkeys("│┃║╷▏▎▍▕", "|"),
    **dict.fromkeys("┌┐└┘┏┓┗┛╭╮╰╯├┤┬┴┼", "+"),
    "░": ".",
    "▒": ":",
    "▓": "#",
    **dict.fromkeys("█▉▊▋▌▐", "#"),
    **dict.fromkeys("▁▂▃▄▅▆▇▀", " "),
}
"""Characters that mcpspy and Textual draw → their replacement. `?` replaces any other."""


class _Replacements(dict[int, str]):
    def __missing__(self, code: int) -> str:
        character = chr(code)
        found = character if character.isascii() else _GLYPHS.get(character, "?" * cell_len(character))
        self[code] = found
        return found


_REPLACEMENTS = _Replacements()


def ascii_only(text: str) -> str:
    """Return a text in ASCII, of the same width."""
    return text if text.isascii() else text.translate(_REPLACEMENTS)


def ascii_driver(driver: type[Driver]) -> type[Driver]:
    """Return a driver that writes ASCII to the terminal of another one."""

    def write(self: Driver, data: str) -> None:
        driver.write(self, ascii_only(data))

    return cast("type[Driver]", type("AsciiDriver", (driver,), {"write": write}))


def needs_ascii(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether the terminal may lack other characters: the locale is not UTF-8, or it is the Linux console.

    Of the locale, the first of LC_ALL, LC_CTYPE and LANG counts (POSIX, 8.2). Without any, Python uses UTF-8.
    """
    if sys.platform == "win32":
        return False
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "UTF-8")
    return environ.get("TERM") == "linux" or "utf8" not in locale.lower().replace("-", "")
