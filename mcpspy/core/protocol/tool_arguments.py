"""Arguments of a tool from words `name=value`, by the schema of the tool.

A shell knows only text: `days=3` is a number for a schema of type integer, and a text for one of type string. Words
that a schema decides otherwise than JSON would (a zip code `01234`, an id `5`) stay texts.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from math import isfinite
from typing import Any, NamedTuple

from mcpspy.core.jsontools import read_json, value_at
from mcpspy.errors import UsageError

DEEP = 16
"""References of references that are followed."""

MANY = 200
"""Maximum alternatives of a value: two that each refer twice to the whole schema would be 2^16 of them."""

SHOWN = 12
"""Names or values that an error lists."""

ALL_TYPES = ["null", "boolean", "integer", "number", "array", "object", "string"]
"""The order in which the types of a schema are tried: every text is a string."""

TASK_MILLISECONDS = 3_600_000
"""Requested lifetime of a task (2025-11-25)."""


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
    properties = properties_of(schema, schema)
    return [
        MissingArgument(name, type_text(part, schema), about_of(part, schema))
        for name in required_of(schema, schema)
        if name not in arguments
        for part in [properties.get(name)]
    ]


def tool_params(tool: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the params of a call of a listed tool, with the task that it may require (2025-11-25)."""
    execution = tool.get("execution")
    is_task = isinstance(execution, dict) and execution.get("taskSupport") == "required"
    return {
        "name": tool["name"],
        "arguments": arguments,
        **({"task": {"ttl": TASK_MILLISECONDS}} if is_task else {}),
    }


def prompt_schema(prompt: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of the arguments of a listed prompt, which are texts."""
    listed = prompt.get("arguments")
    arguments = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    named = {each["name"]: each for each in arguments if isinstance(each.get("name"), str)}
    return {
        "properties": {
            name: {"type": "string", "description": str(each.get("description") or "")}
            for name, each in named.items()
        },
        "required": [name for name, each in named.items() if each.get("required") is True],
    }


def type_text(part: Any, root: Any) -> str:
    """Return the types or values that a schema allows, as short text."""
    values: list[Any] = []
    types: dict[str, str] = {}
    for each in alternatives(part, root):
        if isinstance(listed := each.get("enum"), list):
            values += listed
        elif "const" in each:
            values.append(each["const"])
        else:
            types |= {name: _type_words(name, each, root) for name in types_of(each)}
    if len(types) == len(ALL_TYPES) or not (values or types):
        return "any value"
    shown = [json.dumps(value, ensure_ascii=False) for value in values[:SHOWN]]
    return " | ".join([*shown, *types.values()]) if shown else " or ".join(types.values())


def _type_words(name: str, part: dict[str, Any], root: Any) -> str:
    """Return a type in words; of an array, with the type of its items, and the names of their members."""
    items = resolved(part.get("items"), root) if name == "array" else None
    inner = items.get("type") if isinstance(items, dict) else None
    if not isinstance(inner, str) or inner not in ALL_TYPES:
        return name
    members = list(islice(properties_of(items, root), SHOWN)) if inner == "object" else []
    return f"array of {inner}s" + (f" with {', '.join(members)}" if members else "")


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
    try:
        return typed(text, part, root)
    except ValueError as error:
        allowed = {kind for each in alternatives(part, root) for kind in types_of(each)}
        raise UsageError(f"{name}={text}: {error}", _hint(allowed)) from None


def typed(text: str, part: Any, root: Any) -> Any:
    """Return the value of a text as `value_of` does. Raise ValueError with the reason, such as `not an integer`."""
    choices = list(alternatives(part, root))
    allowed = {kind for each in choices for kind in types_of(each)}
    for kind in ALL_TYPES:
        if kind in allowed:
            for each in choices:
                made = _as(kind, text, each, root) if kind in types_of(each) else _UNFIT
                if made is not _UNFIT and _is_allowed(made, each):
                    return made
    raise ValueError(f"not {_article(type_text(part, root))}")


class _Unfit:
    pass


_UNFIT = _Unfit()


def _as(kind: str, text: str, part: Any, root: Any) -> Any:
    """Return a text as a value of a type; `_UNFIT` if it is none."""
    if kind == "string":
        # The last type that is tried: of a schema without a type, JSON has its own.
        return text
    if kind == "array" and not text.lstrip().startswith("["):
        return [typed(text, part.get("items"), root)] if "type" in part else _UNFIT
    try:
        value = read_json(text)
    except ValueError:
        return _UNFIT
    fits = {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }
    return value if fits[kind] else _UNFIT


def _is_allowed(value: Any, part: Any) -> bool:
    if isinstance(part, dict) and isinstance(values := part.get("enum"), list):
        return value in values
    return not (isinstance(part, dict) and "const" in part) or value == part["const"]


def _known(schema: Any, name: str, root: Any, path: str) -> Any:
    """Return the schema of a member; raise UsageError if the schema names its members, and this is none of them."""
    part = _part(schema, name, root)
    if part is not None:
        return part
    own = resolved(schema, root)
    properties = properties_of(schema, root)
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
    return properties_of(schema, root).get(name)


def properties_of(schema: Any, root: Any) -> dict[str, Any]:
    """Return the members that a schema or one of its alternatives names, with their schemas."""
    found: dict[str, Any] = {}
    for each in alternatives(schema, root):
        if isinstance(properties := each.get("properties"), dict):
            found |= properties
    return found


def required_of(schema: Any, root: Any) -> list[str]:
    """Return the names that a schema requires, whichever of its alternatives is taken."""
    own = resolved(schema, root)
    parts = own.get("allOf") if isinstance(own, dict) else None
    every = [own, *(resolved(part, root) for part in (parts[:MANY] if isinstance(parts, list) else ()))]
    lists = (each.get("required") if isinstance(each, dict) else None for each in every)
    names = (name for each in lists if isinstance(each, list) for name in each)
    return list(dict.fromkeys(name for name in names if isinstance(name, str)))


def alternatives(part: Any, root: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema with its references resolved, or each of its alternatives, at most MANY."""
    todo, seen = [part], set[int]()
    while todo and len(seen) < MANY:
        each = resolved(todo.pop(), root)
        if not isinstance(each, dict):
            yield {}
            continue
        if id(each) in seen:
            continue
        seen.add(id(each))
        inner = [
            one
            for key in ("anyOf", "oneOf", "allOf")
            if isinstance(parts := each.get(key), list)
            for one in parts
        ]
        if "type" in each or "properties" in each or not inner:
            yield each
        todo += reversed(inner)


def resolved(part: Any, root: Any) -> Any:
    """Return a schema, or the one that it refers to in the same document."""
    for _ in range(DEEP):
        reference = part.get("$ref") if isinstance(part, dict) else None
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            break
        tokens = [each.replace("~1", "/").replace("~0", "~") for each in reference.split("/")[1:]]
        part = value_at(root, tuple(tokens))
    return part


def types_of(part: dict[str, Any]) -> list[str]:
    """Return the types that a schema allows; all if it names none."""
    named = part.get("type")
    if isinstance(named, str):
        return [named]
    if isinstance(named, list):
        return [name for name in named if isinstance(name, str)]
    return ALL_TYPES


def about_of(part: Any, root: Any) -> str:
    """Return the description of a schema, its own before that of the schema that it refers to."""
    for each in (part, resolved(part, root)):
        about = each.get("description") if isinstance(each, dict) else None
        if isinstance(about, str):
            return about
    return ""


def _article(expected: str) -> str:
    if " | " in expected:
        return f"one of {expected}"
    return f"{'an' if expected[:1] in 'aio' else 'a'} {expected}"


def _hint(allowed: set[str]) -> str:
    if "boolean" in allowed:
        return "use true or false"
    if "array" in allowed:
        return """repeat NAME=VALUE for each item, or use JSON: 'NAME=["a","b"]'"""
    if "object" in allowed:
        return """use NAME.MEMBER=VALUE, or JSON: 'NAME={"a":1}'"""
    return ""


def _object(word: str) -> dict[str, Any]:
    try:
        value = read_json(word)
    except ValueError as error:
        raise UsageError(f"not JSON: {error}", "put it in single quotes, or use NAME=VALUE") from None
    assert isinstance(value, dict)  # It begins with a brace.
    return value
