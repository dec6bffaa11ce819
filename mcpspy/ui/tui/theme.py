"""The themes, the roles of text, and ASCII mode.

Colour never carries information alone: without colour, the same roles are bold, dim and reverse.

In ASCII mode, a terminal driver writes no character above U+007F. Every character that mcpspy, Textual or a peer draws
passes through the driver, and is replaced by as many characters as the cells that it takes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from rich.cells import cell_len
from textual.driver import Driver
from textual.theme import BUILTIN_THEMES, Theme

DARK = Theme(
    name="mcpspy-dark",
    primary="#7cafff",
    secondary="#c5a3ff",
    accent="#7cafff",
    success="#86cf95",
    warning="#e8b86b",
    error="#ff8a8a",
    foreground="#dadde3",
    background="#15171c",
    surface="#1b1e25",
    panel="#262a33",
    variables={
        "quiet": "#9aa2b1",
        "cursor": "#28395a",
        "cursor-away": "#2a2e38",
        "scrollbar": "#414957",
        "scrollbar-hover": "#566073",
        "scrollbar-active": "#7cafff",
        "scrollbar-background": "#15171c",
        "scrollbar-background-hover": "#15171c",
        "scrollbar-background-active": "#15171c",
    },
)

LIGHT = Theme(
    name="mcpspy-light",
    primary="#1558b8",
    secondary="#7a35b5",
    accent="#1558b8",
    success="#1d6e36",
    warning="#825000",
    error="#b3202f",
    foreground="#23272e",
    background="#fbfbf8",
    surface="#f2f2ee",
    panel="#e4e5e0",
    dark=False,
    variables={
        "quiet": "#565c66",
        "cursor": "#cfe0f9",
        "cursor-away": "#e4e6ea",
        "scrollbar": "#c3c6cb",
        "scrollbar-hover": "#a4a9b1",
        "scrollbar-active": "#1558b8",
        "scrollbar-background": "#fbfbf8",
        "scrollbar-background-hover": "#fbfbf8",
        "scrollbar-background-active": "#fbfbf8",
    },
)

SIXTEEN = replace(
    DARK,
    name="mcpspy-16",
    primary="#55ffff",
    secondary="#ff55ff",
    accent="#55ffff",
    success="#55ff55",
    warning="#ffff55",
    error="#ff5555",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#0000aa",
    variables={**DARK.variables, "quiet": "#aaaaaa", "cursor": "#0000aa", "cursor-away": "#000000"},
)
"""The theme for terminals of 16 colours, made of those: Rich would replace the soft colours of DARK by greys."""

_ANSI = BUILTIN_THEMES["ansi-dark"]

PLAIN = replace(
    _ANSI,
    name="mcpspy-plain",
    variables={
        **_ANSI.variables,
        "quiet": "ansi_default",
        "cursor": "ansi_default",
        "cursor-away": "ansi_default",
    },
)
"""The theme for NO_COLOR, with which Textual sends no colour to the terminal."""

ROLES = ("title", "quiet", "ok", "bad", "open", "issue", "key", "string", "number", "word", "redacted")

COMPONENTS = {f"role--{role}" for role in ROLES}
"""Component classes of the application; widgets get the style of a role from there."""

CSS = """
.role--title { color: $foreground; text-style: bold; }
.role--quiet { color: $quiet; }
.role--ok { color: $success; }
.role--bad { color: $error; }
.role--open { color: $warning; }
.role--issue { color: $secondary; }
.role--key { color: $primary; }
.role--string { color: $success; }
.role--number { color: $warning; }
.role--word { color: $secondary; }
.role--redacted { color: $quiet; text-style: reverse; }
.-plain SplitLine#title { text-style: reverse; }
.-plain .row--heading { text-style: underline; }
.-plain .row--cursor { text-style: underline; }
.-plain VirtualList:focus > .row--cursor { text-style: reverse; }
.-plain .role--quiet { text-style: dim; }
.-plain .role--bad, .-plain .role--issue, .-plain .role--key { text-style: bold; }
"""


def wants_colour() -> bool:
    """Return whether NO_COLOR is unset (https://no-color.org)."""
    return not os.environ.get("NO_COLOR")


def chosen_theme(available: Collection[str], *, has_few_colours: bool = False) -> str:
    """Return the initial theme: plain without colour, else `TEXTUAL_THEME` if it exists, else one for the terminal."""
    if not wants_colour():
        return PLAIN.name
    wanted = os.environ.get("TEXTUAL_THEME", "")
    return wanted if wanted in available else SIXTEEN.name if has_few_colours else DARK.name


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
