"""The corpus of the extensions: extension_requirements.toml, and extension_violations.toml with their clean twins."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from mcpspy.analysis.lint.rule import SPECIFICATION
from tests.analysis.lint.corpus import TRANSPORTS
from tests.analysis.lint.proving import findings

FOLDER = Path(__file__).resolve().parent

_NAME = re.compile(r"\$([A-Z_]+)")
_CHOICE = re.compile("«([^«¦»]*)¦([^«¦»]*)»")


class ExtensionRequirement(NamedTuple):
    """A requirement of an extension."""

    id: str
    text: str
    level: str
    where: str
    """EXTENSION#ANCHOR, EXTENSION, or the revision, page and anchor of the core."""
    url: str
    revisions: tuple[str, ...]
    rules: tuple[str, ...]
    """Codes, of which at least one finds a violation; empty if it cannot be decided from a recording."""
    undecidable: str

    @property
    def area(self) -> str:
        """The extension; `core` without one."""
        return "core" if self.where[:1] == "2" else self.id.partition("-")[0]


class Pair(NamedTuple):
    """A recording that violates a requirement, and the same without the violation."""

    requirement: ExtensionRequirement
    number: int
    """Of its entry in extension_violations.toml, from 1."""
    revision: str
    transport: str
    violation: str
    twin: str

    @property
    def name(self) -> str:
        return f"{self.requirement.id}-{self.number}-{self.revision}-{self.transport}"

    @property
    def is_found(self) -> bool:
        """True if a rule of the requirement finds the violation."""
        return not {finding.code for finding in findings(self.violation)}.isdisjoint(self.requirement.rules)

    @property
    def is_clean(self) -> bool:
        """True if no rule finds anything in the twin."""
        return not findings(self.twin)


def _read(name: str) -> dict[str, Any]:
    with (FOLDER / name).open("rb") as file:
        return tomllib.load(file)


@cache
def requirements() -> dict[str, ExtensionRequirement]:
    """Return the requirements by id."""
    given = _read("extension_requirements.toml")
    found = {}
    for row in given["requirement"]:
        page, _, anchor = row["where"].partition("#")
        url = SPECIFICATION + row["where"]
        if page in given["pages"]:
            url = given["pages"][page] + (f"#{anchor}" if anchor else "")
        found[row["id"]] = ExtensionRequirement(
            row["id"],
            row["text"],
            row["level"],
            row["where"],
            url,
            tuple(row["revisions"]),
            tuple(row.get("rules", ())),
            row.get("undecidable", ""),
        )
    return found


@cache
def pairs() -> tuple[Pair, ...]:
    given = _read("extension_violations.toml")
    return tuple(
        made
        for number, entry in enumerate(given["violation"], 1)
        for made in _made(given["define"], number, **entry)
    )


def _made(
    define: dict[str, str],
    number: int,
    *,
    of: list[str],
    lines: str,
    head: str = "",
    on: list[str] | None = None,
    since: str = "",
    until: str = "9",
) -> Iterator[Pair]:
    first, _, rest = lines.strip().partition("\n")
    body = rest if (has_head := first.startswith("@ ")) else lines.strip()
    head = f"{head} {first[2:]}" if has_head else head
    for requirement in (requirements()[name] for name in of):
        for revision in requirement.revisions:
            if not since <= revision <= until:
                continue
            for transport in ("stdio", TRANSPORTS[1]):
                if on is None or transport in on:
                    text = f"@ {revision} {transport} {head}\n{body}"
                    yield Pair(
                        requirement,
                        number,
                        revision,
                        transport,
                        _filled(_CHOICE.sub(r"\1", text), define),
                        _filled(_CHOICE.sub(r"\2", text), define),
                    )


def _filled(text: str, define: dict[str, str]) -> str:
    while (filled := _NAME.sub(lambda found: define.get(found[1], found[0]), text)) != text:
        text = filled
    return text
