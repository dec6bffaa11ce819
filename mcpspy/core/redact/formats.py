"""Token formats as data: the form of docs/token_formats.toml, and of a user's own file.

A format has an id and a pattern; the other keys are optional in a user's file. The built-in formats are not
read from TOML while mcpspy runs: docs/token_formats.py makes the two modules that contain them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

CHECKS = ("mixed", "varied", "sk", "none")
"""Tests of a token (`core.redact.patterns`)."""

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
