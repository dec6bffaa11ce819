"""A recording, and what was found in it: what every writer is given."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from mcpspy.analysis.lint import RULES, Finding, LintRule
from mcpspy.core.sanitize import sanitize

RULES_BY_CODE: dict[str, LintRule] = {rule.code: rule for rule in RULES}


class Linted(NamedTuple):
    """One recording."""

    title: str
    """As a person named it: a path, or a session."""
    parts: list[Path]
    """Its files, as they were found."""
    findings: list[Finding]

    def path(self, finding: Finding) -> str:
        return self.parts[finding.place.part - 1].as_posix()


def counted(number: int, word: str) -> str:
    """Return a number with its noun: `1 error`, `2 errors`."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def visible(text: str) -> str:
    """Return one line of text in which nothing is interpreted, and nothing hides: what nobody sees is an escape."""
    shown = sanitize(text)
    return shown if shown.isprintable() else "".join(map(_shown, shown))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
