"""The corpus of violations: requirements.toml and violations.toml, played in every revision and over every transport."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.protocol.spec import REVISIONS
from tests.analysis.lint.proving import findings

FOLDER = Path(__file__).resolve().parent

TRANSPORTS = ("stdio", "http", "sse")
"""`http` is Streamable HTTP, since 2025-03-26; `sse` is HTTP+SSE, in 2024-11-05."""


class Requirement(NamedTuple):
    """A requirement of the specification."""

    id: str
    text: str
    level: str
    where: tuple[str, ...]
    """Revision, page and anchor of each of its sentences."""
    keywords: int
    """Key words of BCP 14 in these sentences; 0 for a shape that a schema requires."""
    rules: tuple[str, ...]
    """Codes, of which at least one finds a violation; empty if it cannot be decided from a recording."""
    undecidable: str

    @property
    def revisions(self) -> tuple[str, ...]:
        return tuple(known for known in REVISIONS if any(page.startswith(known) for page in self.where))


class Violation(NamedTuple):
    """A recording that violates a requirement."""

    requirement: Requirement
    number: int
    """Of its entry in violations.toml, from 1."""
    revision: str
    transport: str
    expected: tuple[str, ...]
    example: str
    is_open: bool
    """No rule finds it yet."""

    @property
    def name(self) -> str:
        return f"{self.requirement.id}-{self.number}-{self.revision}-{self.transport}"

    @property
    def is_found(self) -> bool:
        return not {finding.code for finding in findings(self.example)}.isdisjoint(self.expected)


@cache
def requirements() -> dict[str, Requirement]:
    """Return the requirements by id, in the order of the specification."""
    with (FOLDER / "requirements.toml").open("rb") as file:
        rows = tomllib.load(file)["requirement"]
    return {
        row["id"]: Requirement(
            row["id"],
            row["text"],
            row["level"],
            tuple(row["where"]),
            row["keywords"],
            tuple(row.get("rules", ())),
            row.get("undecidable", ""),
        )
        for row in rows
    }


@cache
def violations() -> tuple[Violation, ...]:
    with (FOLDER / "violations.toml").open("rb") as file:
        entries = tomllib.load(file)["violation"]
    return tuple(made for number, entry in enumerate(entries, 1) for made in _made(number, **entry))


def _made(
    number: int,
    *,
    of: list[str],
    lines: str,
    head: str = "",
    on: list[str] | None = None,
    since: str = "",
    until: str = "9",
    expect: list[str] | None = None,
    is_open: bool = False,
) -> Iterator[Violation]:
    for requirement in (requirements()[name] for name in of):
        for revision in requirement.revisions:
            if not since <= revision <= until:
                continue
            for transport in ("stdio", "sse" if revision == REVISIONS[0] else "http"):
                if on is not None and transport not in on:
                    continue
                example = f"@ {revision} {transport} {head}\n{lines.strip()}".replace("REVISION", revision)
                yield Violation(
                    requirement,
                    number,
                    revision,
                    transport,
                    tuple(expect or requirement.rules),
                    example,
                    is_open,
                )
