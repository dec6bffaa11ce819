"""Token formats as data: the form of formats.toml, and of a user's own file.

A format has an id and a pattern; the other keys are optional in a user's file. The built-in formats are not
read from TOML while mcpspy runs: `generated` makes the two modules that contain them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

CHECKS = ("mixed", "varied", "sk", "none")
"""Tests of a token (`core.redact.patterns`)."""

ROW = ("id", "literals", "back", "lead", "lead_max", "check", "pattern")
"""Columns of format_table.py."""

FRAGMENT = 4
"""Bytes of a fragment: the vectorized search is slower for shorter ones."""

FAMILY = 9
"""Least number of literals that share a fragment of three bytes, as `pk_0` to `pk_f` do."""

ORDINARY = (".com", "com/", "pack", "ent-", "est_", "ist_")
"""Parts that are common in texts and URLs, and so never fragments."""

_TEXTS = ("id", "vendor", "name", "source", "lead", "pattern", "check", "example")
_NUMBERS = ("back", "lead_max")


class FormatError(ValueError):
    """A format that cannot be used: which, and why."""

    def __init__(self, format_id: str, reason: str) -> None:
        super().__init__(f"format {format_id}: {reason}")


class TokenFormat(NamedTuple):
    id: str
    """The name of the rule in reports."""
    pattern: str
    """A regular expression: the whole token, or its first group."""
    vendor: str = ""
    name: str = ""
    source: str = ""
    """The vendor's page that documents the token."""
    literals: tuple[str, ...] = ()
    """Each match has one of them; a format without any is searched for in every message."""
    back: int = 0
    """Bytes of a match before its literal."""
    lead: str = ""
    """Characters that a match may have before its literal, at most `lead_max` of them."""
    lead_max: int = 0
    check: str = "mixed"
    entropy: float = 0.0
    """Minimum Shannon entropy of the token, in bits per character."""
    example: str = ""


def read_format(table: Any, number: int) -> TokenFormat:
    """Return the format of a TOML table; raise FormatError."""
    if not isinstance(table, dict):
        raise FormatError(str(number), "write [[format]] above its keys")
    label = repr(table["id"]) if isinstance(table.get("id"), str) else str(number)
    for key in ("id", "pattern"):
        if not isinstance(table.get(key), str) or not table[key]:
            raise FormatError(label, f'missing key {key}: write {key} = "…"')
    for key, value in table.items():
        if key not in TokenFormat._fields:
            raise FormatError(label, f"unknown key {key} (use {', '.join(TokenFormat._fields)})")
        if key in _TEXTS and not isinstance(value, str):
            raise FormatError(label, f"{key} must be a string")
        if key in _NUMBERS and (type(value) is not int or value < 0):
            raise FormatError(label, f"{key} must be a number of characters")
    entropy = table.get("entropy", 0.0)
    if isinstance(entropy, bool) or not isinstance(entropy, int | float) or not 0 <= entropy <= 8:
        raise FormatError(label, "entropy must be a number of bits from 0 to 8")
    literals = table.get("literals", [])
    if not isinstance(literals, list) or not all(isinstance(text, str) and text for text in literals):
        raise FormatError(label, 'literals must be a list of strings: ["abc_"]')
    if table.get("check", "mixed") not in CHECKS:
        raise FormatError(label, f"check must be one of {', '.join(CHECKS)}")
    return TokenFormat(**{**table, "literals": tuple(literals), "entropy": float(entropy)})


def read_formats(tables: Any) -> list[TokenFormat]:
    """Return the formats of the TOML array `format`; raise FormatError."""
    if not isinstance(tables, list):
        raise FormatError("1", "write [[format]] above its keys")
    formats = [read_format(table, number) for number, table in enumerate(tables, 1)]
    seen: set[str] = set()
    for each in formats:
        if each.id in seen:
            raise FormatError(repr(each.id), "the id is used twice")
        seen.add(each.id)
    return formats


def generated(formats: list[TokenFormat]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each module that is made from formats.toml."""
    note = "Generated from formats.toml by docs/make.py."
    literals = sorted({text for each in formats for text in each.literals})
    yield (
        "literals.py",
        (
            f'"""Literals of the token formats, for the prefilter. {note}"""\n\n'
            f"# fmt: off\nLITERALS = (\n{_lines(literals)})\n\n"
            f'FRAGMENTS = (\n{_lines(fragments(literals))})\n"""Each literal contains one of these."""\n'
        ),
    )
    rows = "".join(f"    ({', '.join(_cell(getattr(each, key)) for key in ROW)}),\n" for each in formats)
    fields = ", ".join(ROW)
    yield (
        "format_table.py",
        (
            f'"""The token formats, loaded at the first hit. {note}"""\n\n'
            "Row = tuple[str, tuple[str, ...], int, str, int, str, str]\n"
            f'"""{fields}."""\n\n# fmt: off\nFORMATS: tuple[Row, ...] = (\n{rows})\n'
        ),
    )


def fragments(literals: list[str]) -> list[str]:
    """Return few parts of literals of which each literal contains one, sorted.

    Prefers parts that many literals share, and then rare ones: signs, digits and capitals.
    """
    sharing: dict[str, set[str]] = {}
    for literal in literals:
        for size in (FRAGMENT - 1, FRAGMENT):
            for start in range(max(0, len(literal) - size) + 1):
                sharing.setdefault(literal[start : start + size], set()).add(literal)
    for part, those in list(sharing.items()):
        is_short = len(part) < FRAGMENT and len(those) < FAMILY and part not in literals
        if is_short or part in ORDINARY:
            del sharing[part]
    chosen: list[str] = []
    while sharing:
        best = max(sharing, key=lambda part: (_rare(part) > 0, len(sharing[part]), _rare(part), part))
        covered = sharing.pop(best)
        chosen.append(best)
        for part in list(sharing):
            sharing[part] = sharing[part] - covered
            if not sharing[part]:
                del sharing[part]
    return sorted(chosen)


def _rare(part: str) -> int:
    return sum(not "a" <= letter <= "z" for letter in part)


def _lines(texts: list[str]) -> str:
    """Return the elements of a tuple of bytes, eight in a line."""
    quoted = [f"b{_quoted(text)}," for text in texts]
    return "".join(f"    {' '.join(quoted[at : at + 8])}\n" for at in range(0, len(quoted), 8))


def _cell(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({''.join(_quoted(text) + ', ' for text in value)})"
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    return json.dumps(text)
