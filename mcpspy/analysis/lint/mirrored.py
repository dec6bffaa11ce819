"""Arguments that a tool wants in headers, too: `x-mcp-header` (2026-07-28, Streamable HTTP).

Owns which annotations count, what is wrong with the others, and which headers a
call has to have. Never raises for what a peer wrote.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcpspy.core import routing

ANNOTATION = "x-mcp-header"

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")


class Mirrored(NamedTuple):
    """What a schema wants in headers."""

    headers: dict[str, tuple[str, ...]]
    """Name of the header, in lower case → where in the arguments its value stands."""
    wrong: list[str]
    """What is wrong with its annotations; with any, a client drops the tool."""


NOTHING = Mirrored({}, [])


def mirrored(schema: Any) -> Mirrored:
    """Return what a tool's inputSchema wants; only what is reached through `properties` alone can be meant."""
    headers: dict[str, tuple[str, ...]] = {}
    wrong: list[str] = []
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    for path, part in waiting:
        if isinstance(part, list):
            waiting += [(None, inner) for inner in part]
        if not isinstance(part, dict):
            continue
        if ANNOTATION in part:
            name = part[ANNOTATION]
            header = f"mcp-param-{name}".lower()
            if not isinstance(name, str) or not _TOKEN.fullmatch(name):
                wrong.append(f"{str(name)[:40]!r} is no name of a header")
            elif not path:
                wrong.append(f"{name[:40]} is not reached through properties alone")
            elif part.get("type") not in _TYPES:
                wrong.append(
                    f"{name[:40]} is of type {str(part.get('type'))[:40]}: neither string, integer nor boolean"
                )
            elif header in headers:
                wrong.append(f"{name[:40]} is there twice")
            else:
                headers[header] = path
        for key, inside in part.items():
            if key == "properties" and path is not None and isinstance(inside, dict):
                waiting += [((*path, name), inner) for name, inner in inside.items()]
            elif key not in (ANNOTATION, "default", "const", "enum", "examples"):
                waiting.append((None, inside))
    return Mirrored(headers, wrong) if headers or wrong else NOTHING


def wanted(headers: Mapping[str, tuple[str, ...]], arguments: Any) -> dict[str, str]:
    """Return the headers of a call with these arguments; what is absent or null has none."""
    found = {}
    for header, path in headers.items():
        value = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            found[header] = "true" if value else "false"
        elif isinstance(value, str | int | float):
            found[header] = str(value)
    return found


def differs(sent: str, value: str) -> bool:
    """Whether a header carries another value than the body; numbers are the same however they are written."""
    given = routing.decoded(sent)
    try:
        return given != value and float(given) != float(value)
    except ValueError:
        return True
