"""Arguments of a tool from words `name=value`, by the schema of the tool.

A shell knows only text: `days=3` is a number for a schema of type integer, and a text for one of type string. Words
that a schema decides otherwise than JSON would (a zip code `01234`, an id `5`) stay texts.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from mcpspy.core.jsontools import value_at
from mcpspy.errors import UsageError

DEEP = 16
"""Levels of references and alternatives that are followed."""

SHOWN = 12
"""Names or values that an error lists."""

_TYPES = ("null", "boolean", "integer", "number", "array", "object", "string")
"""The order in which the types of a schema are tried: every text is a string."""


class MissingArgument(NamedTuple):
    """A required argument that was not given."""

    name: str
    type: str
    about: str


def arguments_of(schema: Any, words: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of words `name=value` and of JSON objects. Raise UsageError for one that the schema refuses.

    `a.b=1` sets a member of an object, and a word that is repeated adds an item to an array. The members of a JSON
    object are sent as they are, also those that the schema does not have.
    """
    found: dict[str, Any] = {}
    for word in words:
        if word.lstrip().startswith("{"):
            found |= _object(word)
            continue
        path, equals, text = word.partition("=")
        if not equals or not path:
            raise UsageError(
                f"{word}: not an argument", "use NAME=VALUE, or one JSON object in single quotes"
            )
        _set(found, path, text, schema)
    return found


def missing_arguments(schema: Any, arguments: dict[str, Any]) -> list[MissingArgument]:
    """Return the required arguments that are absent."""
    required = schema.get("required") if isinstance(schema, dict) else None
    properties = _properties(schema, schema)
    return [
        MissingArgument(name, type_text(part, schema), _about(part))
        for name in (required if isinstance(required, list) else [])
        if isinstance(name, str) and name not in arguments
        for part in [_resolved(properties.get(name), schema)]
    ]


def type_text(part: Any, root: Any) -> str:
    """Return the types or values that a schema allows, as short text."""
    if isinstance(part, dict) and isinstance(values := part.get("enum"), list):
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in values[:SHOWN])
    types = list(dict.fromkeys(name for each in _alternatives(part, root) for name in _types(each)))
    return " or ".join(types) if types and len(types) < len(_TYPES) else "any value"


def _set(found: dict[str, Any], path: str, text: str, schema: Any) -> None:
    name, dot, rest = path.partition(".")
    if _part(schema, path, schema) is not None:  # A name may contain dots.
        name, dot, rest = path, "", ""
    part = _known(schema, name, schema, path)
    at = found
    while dot:
        inner = at.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{path}: {name} is not an object")
        at, schema_of = inner, part
        name, dot, rest = rest.partition(".")
        part = _known(schema_of, name, schema, path)
    value = value_of(text, part, schema, path)
    if isinstance(at.get(name), list) and isinstance(value, list):
        at[name] += value
    else:
        at[name] = value


def value_of(text: str, part: Any, root: Any, name: str) -> Any:
    """Return the value of a text by the first type of the schema that it fits. Raise UsageError if it fits none."""
    choices = list(_alternatives(part, root))
    allowed = {kind for each in choices for kind in _types(each)}
    for kind in _TYPES:
        if kind in allowed:
            for each in choices:
                made = _as(kind, text, each, root, name) if kind in _types(each) else _UNFIT
                if made is not _UNFIT and _is_allowed(made, each):
                    return made
    expected = type_text(part, root)
    raise UsageError(f"{name}={text}: not {_article(expected)}", _hint(allowed, part))


class _Unfit:
    pass


_UNFIT = _Unfit()


def _as(kind: str, text: str, part: Any, root: Any, name: str) -> Any:
    """Return a text as a value of a type; `_UNFIT` if it is none."""
    if kind == "string":
        # The last type that is tried: of a schema without a type, JSON has its own.
        return text
    if kind == "array" and not text.lstrip().startswith("["):
        items = part.get("items") if isinstance(part, dict) else None
        return [value_of(text, items, root, name)] if "type" in part else _UNFIT
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except ValueError:
        return _UNFIT
    fits = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    return value if fits[kind] else _UNFIT


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _is_allowed(value: Any, part: Any) -> bool:
    if isinstance(part, dict) and isinstance(values := part.get("enum"), list):
        return value in values
    return not (isinstance(part, dict) and "const" in part) or value == part["const"]


def _known(schema: Any, name: str, root: Any, path: str) -> Any:
    """Return the schema of a member; raise UsageError if the schema names its members, and this is none of them."""
    part = _part(schema, name, root)
    if part is not None:
        return part
    own = _resolved(schema, root)
    properties = _properties(schema, root)
    more = own.get("additionalProperties", not properties) if isinstance(own, dict) else True
    patterns = isinstance(own, dict) and "patternProperties" in own
    if isinstance(more, dict):
        return more
    if more is True or patterns:
        return {}
    near = difflib.get_close_matches(name, properties, 1)
    meant = f"did you mean {near[0]}?" if near else f"it has {', '.join(list(properties)[:SHOWN]) or 'none'}"
    raise UsageError(f"{path}: no such argument", f"{meant}; a JSON object is sent as it is")


def _part(schema: Any, name: str, root: Any) -> Any:
    """Return the schema of a member; None if the schema does not name it."""
    return _properties(schema, root).get(name)


def _properties(schema: Any, root: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in _alternatives(schema, root):
        if isinstance(each, dict) and isinstance(properties := each.get("properties"), dict):
            found |= properties
    return found


def _alternatives(part: Any, root: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a schema with its references resolved, or each of its alternatives."""
    part = _resolved(part, root)
    if not isinstance(part, dict):
        yield {}
        return
    inner = [
        each
        for key in ("anyOf", "oneOf", "allOf")
        if isinstance(parts := part.get(key), list)
        for each in parts
    ]
    if "type" in part or "properties" in part or not inner or depth > DEEP:
        yield part
    if depth <= DEEP:
        for each in inner:
            yield from _alternatives(each, root, depth + 1)


def _resolved(part: Any, root: Any) -> Any:
    """Return a schema, or the one that it refers to in the same document."""
    for _ in range(DEEP):
        reference = part.get("$ref") if isinstance(part, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        tokens = [each.replace("~1", "/").replace("~0", "~") for each in reference[2:].split("/")]
        part = value_at(root, tuple(tokens))
    return part


def _types(part: Any) -> list[str]:
    """Return the types that a schema allows; those of its values, if it names these; else all."""
    named = part.get("type") if isinstance(part, dict) else None
    if isinstance(named, str):
        return [named]
    if isinstance(named, list):
        return [name for name in named if isinstance(name, str)]
    return list(_TYPES)


def _about(part: Any) -> str:
    about = part.get("description") if isinstance(part, dict) else None
    return about if isinstance(about, str) else ""


def _article(expected: str) -> str:
    if " | " in expected:
        return f"one of {expected}"
    return f"{'an' if expected[:1] in 'aio' else 'a'} {expected}"


def _hint(allowed: set[str], part: Any) -> str:
    if "boolean" in allowed:
        return "use true or false"
    if "array" in allowed:
        return """repeat NAME=VALUE for each item, or use JSON: 'NAME=["a","b"]'"""
    if "object" in allowed:
        return """use NAME.MEMBER=VALUE, or JSON: 'NAME={"a":1}'"""
    return ""


def _object(word: str) -> dict[str, Any]:
    try:
        value = json.loads(word, parse_constant=_no_constant)
    except ValueError as error:
        raise UsageError(f"not JSON: {error}", "put it in single quotes, or use NAME=VALUE") from None
    assert isinstance(value, dict)  # It begins with a brace.
    return value
