"""Repair of the tools that a server lists, so that hosts accept them: their names and schemas.

A repair changes no call: a flattened schema allows the same arguments, and a shortened name is replaced in each call
by the original. docs/host-limits.md lists the hosts that need it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from mcpspy.core.jsontools import Pointer

LONGEST_NAME = 64
"""Default maximum length of a name."""

_ALLOWED = re.compile(r"[A-Za-z0-9_-]+")
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8

_MERGED = frozenset({"type", "properties", "required", "title", "description"})
"""Keywords that a part of `allOf` may have. Others apply to all arguments together, or are not understood."""
_FIXED = frozenset({"additionalProperties", "unevaluatedProperties", "patternProperties"})
"""Keywords beside `allOf` that mean something else after its parts were merged."""


def short_name(name: str, longest: int) -> str | None:
    """Return a name of allowed characters for a name that is too long or has others; None if it is fine."""
    if len(name) <= longest and _ALLOWED.fullmatch(name):
        return None
    digest = blake2b(name.encode("utf-8", "replace"), digest_size=_DIGITS // 2).hexdigest()
    return f"{_OTHER.sub('_', name)[: longest - _DIGITS - 1]}_{digest}"


def flat_schema(schema: Any) -> dict[str, Any] | None:
    """Return an equal schema of type `object` without `allOf` at its root; None if it is so, or there is none."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return None
    parts = schema.get("allOf", [])
    if ("type" in schema and not parts) or not isinstance(parts, list) or (parts and _FIXED & schema.keys()):
        return None
    flat = {"type": "object", **{name: value for name, value in schema.items() if name != "allOf"}}
    if parts and not _has_plain_members(flat):
        return None
    for part in parts:
        if not isinstance(part, dict) or not part.keys() <= _MERGED or not _has_plain_members(part):
            return None
        properties, required = dict(flat.get("properties", {})), list(flat.get("required", []))
        for name, value in part.get("properties", {}).items():
            if properties.setdefault(name, value) != value:
                return None
        flat["properties"] = properties
        flat["required"] = list(dict.fromkeys([*required, *part.get("required", [])]))
        flat |= {name: part[name] for name in ("title", "description") if name in part and name not in flat}
    return flat


def _has_plain_members(schema: dict[str, Any]) -> bool:
    """Return whether a schema is of type `object`, with a valid form of `properties` and `required`."""
    required = schema.get("required", [])
    return (
        schema.get("type", "object") == "object"
        and isinstance(schema.get("properties", {}), dict)
        and isinstance(required, list)
        and all(isinstance(name, str) for name in required)
    )


def repairs(
    result: Any, longest: int | None, *, schemas: bool, originals: dict[str, str]
) -> Iterator[tuple[Pointer, Any]]:
    """Yield the pointers and new values for the response to `tools/list`. Add each new name to `originals`.

    `longest` is the maximum length of a name; None leaves names as they are.
    """
    tools = result.get("tools") if isinstance(result, dict) else None
    for number, tool in enumerate(tools if isinstance(tools, list) else ()):
        if not isinstance(tool, dict):
            continue
        place = ("result", "tools", str(number))
        name = tool.get("name")
        if longest is not None and isinstance(name, str) and (short := short_name(name, longest)) is not None:
            originals[short] = name
            yield (*place, "name"), short
        flat = flat_schema(tool.get("inputSchema")) if schemas else None
        if flat is not None:
            yield (*place, "inputSchema"), flat
