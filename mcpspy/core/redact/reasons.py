"""Reasons for what was redacted in a recording, and values in it that look random and were not.

For `mcpspy redact --check --why`. A finding never contains a value: a rest is described by its length and letters, and
by the option that would redact it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from mcpspy.core.redact.entropy import random_values
from mcpspy.core.redact.format_table import FORMATS
from mcpspy.core.redact.members import MESSAGE_MEMBERS, NOTE_MEMBERS, PROTOCOL_MEMBERS
from mcpspy.core.redact.patterns import NameVerdict, verdict
from mcpspy.core.redact.placeholder import TEXT_PLACEHOLDER

RULES = {
    "key": "value of a member with a secret name",
    "named": "value beside the name of a secret",
    "option": "item behind an option with a secret name",
    "asked": "answer to a form that asked for a password",
    "oauth": "authorization code beside its grant_type",
    "jwk": "private member of a JSON Web Key",
    "assigned": "value of a secret name in a text",
    "cookie": "cookies in a text",
    "query": "parameter of a query that looks random",
    "url-parameter": "parameter of a URL with a secret name",
    "url-password": "password of a URL",
    "url-path": "part of a path that looks random",
    "argv": "value of an option or variable with a secret name",
    "jwt": "JSON Web Token",
    "private-key": "private key",
    "bearer": "token behind Bearer",
    "basic": "name and password behind Basic",
    "base64": "Base64 of a text with a secret in it",
    "pointer": "--redact-pointer",
    "entropy": "--redact-entropy",
}
"""Built-in rule → the reason."""

_FORMATS = frozenset(row[0] for row in FORMATS)
_OPTIONS = {"env": "--redact-env", "pattern": "--redact-pattern", "rule": "--redact-rules"}
_UNCHANGED = frozenset(name.decode() for name in (*MESSAGE_MEMBERS, *PROTOCOL_MEMBERS))
_OF_NOTES = frozenset(name.decode() for name in NOTE_MEMBERS)
_NAME = re.compile(rb"""([A-Za-z_][\w.-]{0,60})["'`]{0,2}\s{0,4}[:=]\s{0,4}["'`]?\Z""")
_ASSIGNED = re.compile(rb"[A-Za-z_][\w-]{0,60}=(?=[^=])")
_HEX = re.compile(rb"[0-9a-fA-F]+")


def reason(rule: str) -> str:
    """Return the reason for a finding of a rule, as `Redactor` reports it."""
    if rule in RULES:
        return RULES[rule]
    if rule in _FORMATS:
        return "token format of docs/token_formats.toml"
    kind, _, name = rule.partition(":")
    return f"{_OPTIONS[kind]} {name}" if kind in _OPTIONS else rule


class Rest(NamedTuple):
    """A value that looks random and is not redacted."""

    pointer: str
    """A JSON pointer into the message or the line."""
    shape: str
    """Its length and letters."""
    option: str
    """The option of `mcpspy redact` that would redact it."""


def rests(line: bytes) -> Iterator[Rest]:
    """Yield what looks random in a redacted line of a recording."""
    for pointer, text in _strings(line):
        data = text.encode("utf-8", "surrogatepass")
        for first, end, _ in random_values(data):
            assigned = _ASSIGNED.match(data, first, end)
            start = first if assigned is None else assigned.end()
            shape = "hex digits" if _HEX.fullmatch(data, start, end) else "letters and digits"
            found = _NAME.search(data, max(0, start - 80), start)
            name = found[1].decode() if found is not None else ""
            if not name and (start, end) == (0, len(data)):
                name = next((token for token in reversed(pointer) if not token.isdigit()), "")
            option = f"--redact-key {name}" if name else "--redact-env NAME"
            yield Rest(_spelled(pointer), f"{end - start} {shape}", option)


def placeholders(line: bytes) -> Iterator[tuple[str, str]]:
    """Yield the pointer and the reason of each placeholder that a line of a recording already has.

    The rule is not stored, so the reason is what the place shows.
    """
    for pointer, text in _strings(line):
        for _ in TEXT_PLACEHOLDER.finditer(text):
            name = pointer[-1].encode("utf-8", "surrogatepass") if pointer else b""
            is_named = verdict(name) != NameVerdict.NOTHING
            yield _spelled(pointer), RULES["key"] if is_named else "redacted when it was recorded"


def _strings(line: bytes) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the pointer and the text of each string that redaction may change: of the message, or of a note."""
    try:
        entry: Any = orjson.loads(line)
    except ValueError:
        return
    if not isinstance(entry, dict):
        return
    is_note = "msg" not in entry
    left: list[tuple[tuple[str, ...], Any]] = [((), entry if is_note else entry["msg"])]
    while left:
        pointer, value = left.pop()
        if isinstance(value, str):
            yield pointer, value
        elif isinstance(value, list):
            left += (((*pointer, str(number)), item) for number, item in reversed([*enumerate(value)]))
        elif isinstance(value, dict):
            unchanged = _OF_NOTES if is_note and not pointer else _UNCHANGED
            left += (
                ((*pointer, name), item) for name, item in reversed(value.items()) if name not in unchanged
            )


def _spelled(pointer: tuple[str, ...]) -> str:
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in pointer)
