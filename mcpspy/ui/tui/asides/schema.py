"""A JSON schema in the words of a table: what there is to give, of which type.

Owns reading the properties of objects, those within them by dotted names.
Refuses to validate: a schema is shown as far as it can be read. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

DEEP = 3
"""Objects within objects that are looked into."""

MOST = 300
"""Properties that are shown of one schema."""

LONG = 120
"""Characters of a type."""


class Field(NamedTuple):
    """One thing that can be given. Its texts are as they were sent."""

    name: str
    type: str
    required: bool
    about: str


def fields(schema: object) -> list[Field]:
    found: list[Field] = []
    for field in _fields(schema, "", 0):
        if len(found) == MOST:
            found.append(Field("…", "", False, f"there are more than {MOST:,}"))
            break
        found.append(field)
    return found


def type_of(schema: object, depth: int = 0) -> str:
    """Return a schema's type in a few words: `array of string`, `"a" | "b"`."""
    if not isinstance(schema, dict) or depth > DEEP:
        return "anything" if schema is True else ""
    text = ""
    if "const" in schema:
        text = _value(schema["const"])
    elif isinstance(values := schema.get("enum"), list):
        text = _either(_value(value) for value in values[:20])
    elif isinstance(ref := schema.get("$ref"), str):
        text = ref.rpartition("/")[2]
    elif parts := _parts(schema):
        text = _either(type_of(part, depth + 1) for part in parts[:20])
    else:
        text = _plain(schema, depth)
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def _fields(schema: object, before: str, depth: int) -> Iterator[Field]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(schema, dict) or not isinstance(properties, dict):
        return
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    for name, part in properties.items():
        about = part.get("description") if isinstance(part, dict) else None
        if isinstance(part, dict) and "default" in part:
            about = f"{about or ''} (default {_value(part['default'])})".lstrip()
        yield Field(before + name, type_of(part), name in needed, about if isinstance(about, str) else "")
        if depth < DEEP and isinstance(part, dict):
            inner = part.get("items") if part.get("type") == "array" else part
            yield from _fields(inner, f"{before}{name}{'[]' if inner is not part else ''}.", depth + 1)


def _parts(schema: dict[str, Any]) -> list[object]:
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(parts := schema.get(key), list):
            return parts
    return []


def _plain(schema: dict[str, Any], depth: int) -> str:
    named = schema.get("type")
    types = [each for each in (named if isinstance(named, list) else [named]) if isinstance(each, str)]
    if types == ["array"] and (inner := type_of(schema.get("items"), depth + 1)):
        return f"array of {inner}"
    return _either(types) or ("object" if "properties" in schema else "")


def _either(texts: Iterator[str] | list[str]) -> str:
    return " | ".join(text for text in texts if text)


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONG else text[: LONG - 1] + "…"
