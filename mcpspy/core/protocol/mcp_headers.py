"""The HTTP headers in which a request of 2026-07-28 says again what is in its body.

Owns their names, values and encoding, for the side that sends them and the side that checks
them. Source: basic/transports/streamable-http, 2026-07-28 (`MCP-Protocol-Version`,
`Mcp-Method`, `Mcp-Name`). Refuses `Mcp-Param-*`: those follow from a tool's schema, and are `mirrored`'s.

Arguments of a tool that HTTP headers say again: `x-mcp-header` and `Mcp-Param-*`.

Owns which annotations of a schema count, what is wrong with the others, and the
headers that a call has because of them; the headers that every request has are
`routing`'s. Never raises for what a peer wrote. Source: 2026-07-28,
basic/transports/streamable-http (custom headers from tool parameters).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from mcpspy.core.protocol.message import Request, Result

VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"

_NAMED = frozenset("tools/call prompts/get resources/read tasks/get tasks/update tasks/cancel".split())
"""Methods whose requests name what they are about."""

_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_SENTINEL = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")


def headers(request: Request) -> dict[str, str]:
    """Return the headers that belong to a request; values in their encoding."""
    said = {METHOD: encoded(request.method)}
    if request.method in _NAMED and request.subject is not None:
        said[NAME] = encoded(request.subject)
    if (version := request.revision) is not None:
        said[VERSION] = version
    return said


def mismatch(given: Mapping[str, str], request: Request) -> str | None:
    """Say which header is not what the body says; None if all are. `given` ignores the case of names."""
    for name, value in headers(request).items():
        sent = given.get(name)
        if sent is None:
            return f"{name} is missing"
        if decoded(sent) != decoded(value):
            return f"{name} is {sent}, but the body says {value}"
    return None


def encoded(value: str) -> str:
    """Return a value as a header may carry it: what is no plain ASCII goes as base64 of its UTF-8."""
    if _PLAIN.fullmatch(value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def decoded(value: str) -> str:
    """Return the value a header carries; one that only looks encoded stays as it is."""
    found = _SENTINEL.fullmatch(value.strip())
    if found is None:
        return value.strip()
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return value.strip()


ANNOTATION = "x-mcp-header"

PREFIX = "Mcp-Param-"

MOST = 4096
"""Tools that are remembered; the one that was listed longest ago is forgotten."""

Places: TypeAlias = dict[str, tuple[str, ...]]
"""Name of the header, as the schema spells it → where in the arguments its value stands."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")

_NAMED_SUBSCHEMAS = frozenset("$defs definitions dependentSchemas patternProperties".split())
"""Keywords whose members are schemas (JSON Schema 2020-12, and `definitions` of earlier ones)."""

_SCHEMAS = frozenset(
    """additionalProperties allOf anyOf contains contentSchema else if items not oneOf prefixItems propertyNames then
    unevaluatedItems unevaluatedProperties""".split()
)
"""Keywords whose value is a schema, or an array of them."""


class ParamHeaders(NamedTuple):
    """What a schema wants in headers."""

    headers: Places
    """Also of a type that is wrong: what servers check, clients had better send."""
    wrong: list[str]
    """What is wrong with its annotations; with any, a client drops the tool."""


NOTHING = ParamHeaders({}, [])


def mirrored(schema: Any) -> ParamHeaders:
    """Return what a tool's inputSchema wants; only what is reached through `properties` alone can be meant."""
    headers: Places = {}
    wrong: list[str] = []
    names = set()
    waiting: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    for path, part in waiting:
        if not isinstance(part, dict):
            continue
        if ANNOTATION in part:
            name, kind = part[ANNOTATION], part.get("type")
            if not isinstance(name, str) or not _TOKEN.fullmatch(name):
                wrong.append(f"{str(name)[:40]!r} is no name of a header")
            elif not path:
                wrong.append(f"{name[:40]} is not reached through properties alone")
            elif name.lower() in names:
                wrong.append(f"{name[:40]} is there twice")
            else:
                names.add(name.lower())
                headers[PREFIX + name] = path
                if kind not in _TYPES:
                    is_not = "neither string, integer nor boolean"
                    wrong.append(f"{name[:40]} is of type {str(kind)[:40]}: {is_not}")
        for keyword, inside in part.items():
            if keyword == "properties" and isinstance(inside, dict):
                waiting += [
                    (None if path is None else (*path, name), inner) for name, inner in inside.items()
                ]
            elif keyword in _NAMED_SUBSCHEMAS and isinstance(inside, dict):
                waiting += [(None, inner) for inner in inside.values()]
            elif keyword in _SCHEMAS:
                waiting += [(None, inner) for inner in (inside if isinstance(inside, list) else [inside])]
    return ParamHeaders(headers, wrong) if headers or wrong else NOTHING


def wanted(places: Places, arguments: Any) -> dict[str, str]:
    """Return the headers of a call with these arguments, not encoded; what is absent or null has none."""
    found = {header: text(at(arguments, path)) for header, path in places.items()}
    return {header: value for header, value in found.items() if value is not None}


def differs(sent: str, value: str) -> bool:
    """Whether a header carries another value than the body; numbers are the same however they are written."""
    given = decoded(sent)
    try:
        return given != value and float(given) != float(value)
    except ValueError:
        return True


def at(arguments: Any, path: tuple[str, ...]) -> Any:
    """Return the argument at a place; None if there is none."""
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def text(value: Any) -> str | None:
    """Return an argument as a header has it: a text, a number, true or false; None if it has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


LIST = "tools/list"
"""Says, in the answer, what tools want in headers."""


class ToolParamHeaders:
    """What the tools of one server want in headers, as far as they were listed; of those that want none, nothing."""

    def __init__(self) -> None:
        self._places: dict[str, Places] = {}

    def learn(self, result: Result) -> None:
        """Take the result of a `LIST`."""
        if not self._places and ANNOTATION.encode() not in bytes(result.raw_result):
            return
        listed = result.result
        tools = listed.get("tools") if isinstance(listed, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self._places.pop(name, None)
                if places := mirrored(tool.get("inputSchema")).headers:
                    self._places[name] = places
                    if len(self._places) > MOST:
                        del self._places[next(iter(self._places))]

    def places(self, request: Request) -> Places:
        """Return what the tool that a request calls wants in headers; nothing if it calls none that was listed."""
        return self._places.get(request.subject or "", {}) if request.method == "tools/call" else {}

    def headers(self, request: Request) -> dict[str, str]:
        """Return the headers of a request, encoded."""
        places = self.places(request)
        params = request.params if places else None
        arguments = params.get("arguments") if isinstance(params, dict) else None
        return {header: encoded(value) for header, value in wanted(places, arguments).items()}
