"""Names in package files: package.json, pyproject.toml, Cargo.toml.

Scans them by hand: `json` and `tomllib` import `re`, which takes 12 ms, and `mcpspy run` imports neither.
"""

from __future__ import annotations

import os
from stat import S_ISREG

MANIFESTS = ("package.json", "pyproject.toml", "Cargo.toml")

LARGEST = 1 << 16
"""Bytes of the largest package file that is read."""

_TOML_KEYS = frozenset({"project.name", "tool.poetry.name", "package.name"})


def declared_name(path: str) -> str:
    """Return the name in a package file; "" if it has none or cannot be read."""
    try:
        status = os.stat(path)
        if not S_ISREG(status.st_mode) or status.st_size > LARGEST:
            return ""
        with open(path, "rb") as file:
            text = file.read(LARGEST).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    return _name_in_json(text) if path.endswith(".json") else _name_in_toml(text)


def _name_in_json(text: str) -> str:
    """Return the string under the key `name` of a JSON object."""
    depth, at, is_name = 0, 0, False
    while at < len(text):
        character = text[at]
        at += 1
        if character == '"':
            start = at
            while text[at : at + 1] not in ('"', ""):
                at += 2 if text[at] == "\\" else 1
            string = text[start:at]
            at += 1
            if depth == 1 and is_name:
                return "" if "\\" in string else string
            is_name = depth == 1 and string == "name" and text[at:].lstrip()[:1] == ":"
        elif character in "{[":
            depth, is_name = depth + 1, False
        elif character in "}]":
            depth -= 1
        elif character == ",":
            is_name = False
    return ""


def _name_in_toml(text: str) -> str:
    """Return the name of the project in TOML."""
    table = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            table = line.partition("#")[0].strip("[] ") + "."
            continue
        key, equals, value = line.partition("=")
        value = value.strip()
        if equals and table + key.strip() in _TOML_KEYS and value[:1] in ("'", '"'):
            return value[1:].partition(value[0])[0]
    return ""
