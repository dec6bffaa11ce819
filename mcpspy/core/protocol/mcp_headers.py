"""HTTP headers of 2026-07-28 that repeat parts of a request's body.

Every request has `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name`; `x-mcp-header` annotations in a
tool's inputSchema ask for `Mcp-Param-*` headers with its arguments. Never raises for invalid schemas or
values. Source: basic/transports/streamable-http, 2026-07-28.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from mcpspy.core.protocol.message import Request, Result

VERSION, METHOD, NAME = "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name"
ANNOTATION, PREFIX = "x-mcp-header", "Mcp-Param-"

LIST = "tools/list"
"""The method whose result contains the tools' schemas."""

MAX_TOOLS = 4096
"""Tools whose headers are kept; the one that was listed longest ago is dropped first."""

ParamPaths: TypeAlias = dict[str, tuple[str, ...]]
"""Name of the header, as the schema spells it → path of its value in the arguments."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")

_NAMED_SUBSCHEMAS = frozenset("$defs definitions dependentSchemas patternProperties".split())
"""Keywords whose members are schemas (JSON Schema 2020-12, and `definitions` of earlier ones)."""

_SCHEMAS = frozenset(
    """additionalProperties allOf anyOf contains contentSchema else if items not oneOf prefixItems propertyNames then
    unevaluatedItems unevaluatedProperties""".split()
)
"""Keywords whose value is a schema, or an array of them."""

_NAMED = frozenset("tools/call prompts/get resources/read tasks/get tasks/update tasks/cancel".split())
"""Methods whose requests have an `Mcp-Name`."""

_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_SENTINEL = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")


def headers(request: Request) -> dict[str, str]:
    """Return the headers of a request, values encoded."""
    headers = {METHOD: encoded(request.method)}
    if request.method in _NAMED and request.subject is not None:
        headers[NAME] = encoded(request.subject)
    if (version := request.revision) is not None:
        headers[VERSION] = version
    return headers


def mismatch(given: Mapping[str, str], request: Request) -> str | None:
    """Describe the first header that contradicts the body, or None. `given` ignores the case of names."""
    for name, value in headers(request).items():
        sent = given.get(name)
        if sent is None:
            return f"{name} is missing"
        if decoded(sent) != decoded(value):
            return f"{name} is {sent}, but the body says {value}"
    return None


def encoded(value: str) -> str:
    """Return a value for a header: base64 of its UTF-8 unless it is plain ASCII."""
    if _PLAIN.fullmatch(value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def decoded(value: str) -> str:
    """Return the value of a header; one that only looks encoded is unchanged."""
    found = _SENTINEL.fullmatch(value.strip())
    if found is None:
        return value.strip()
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return value.strip()


class ParamHeaders(NamedTuple):
    headers: ParamPaths
    """Also those with an invalid type: servers check them, so clients should send them."""
    wrong: list[str]
    """Errors of its annotations; with any, a client drops the tool."""


NOTHING = ParamHeaders({}, [])


def param_headers(schema: Any) -> ParamHeaders:
    """Return the headers of a tool's inputSchema; only annotations reached through `properties` alone count."""
    headers: ParamPaths = {}
    wrong: list[str] = []
    names = set()
    pending: list[tuple[tuple[str, ...] | None, Any]] = [((), schema)]
    for path, part in pending:
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
        for keyword, members in part.items():
            if keyword == "properties" and isinstance(members, dict):
                pending += [
                    (None if path is None else (*path, name), inner) for name, inner in members.items()
                ]
            elif keyword in _NAMED_SUBSCHEMAS and isinstance(members, dict):
                pending += [(None, inner) for inner in members.values()]
            elif keyword in _SCHEMAS:
                pending += [(None, inner) for inner in (members if isinstance(members, list) else [members])]
    return ParamHeaders(headers, wrong) if headers or wrong else NOTHING


def argument_headers(places: ParamPaths, arguments: Any) -> dict[str, str]:
    """Return the headers of a call with these arguments, not encoded; absent or null arguments have none."""
    found = {header: text(at(arguments, path)) for header, path in places.items()}
    return {header: value for header, value in found.items() if value is not None}


def is_mismatch(sent: str, value: str) -> bool:
    """Return True if a header contradicts the body; numbers are compared by value."""
    given = decoded(sent)
    try:
        return given != value and float(given) != float(value)
    except ValueError:
        return True


def at(arguments: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, dict) else None
    return arguments


def text(value: Any) -> str | None:
    """Return the header text of a string, number or boolean; None for any other value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


class ToolParamHeaders:
    """The `Mcp-Param-*` headers of the listed tools of one server."""

    def __init__(self) -> None:
        self._places: dict[str, ParamPaths] = {}

    def learn(self, result: Result) -> None:
        """Read the tools in the result of a `LIST`."""
        if not self._places and ANNOTATION.encode() not in bytes(result.raw_result):
            return
        listed = result.result
        tools = listed.get("tools") if isinstance(listed, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                self._places.pop(name, None)
                if places := param_headers(tool.get("inputSchema")).headers:
                    self._places[name] = places
                    if len(self._places) > MAX_TOOLS:
                        del self._places[next(iter(self._places))]

    def places(self, request: Request) -> ParamPaths:
        """Return the headers of the tool that a request calls; empty if it was not listed."""
        return self._places.get(request.subject or "", {}) if request.method == "tools/call" else {}

    def headers(self, request: Request) -> dict[str, str]:
        places = self.places(request)
        params = request.params if places else None
        arguments = params.get("arguments") if isinstance(params, dict) else None
        return {header: encoded(value) for header, value in argument_headers(places, arguments).items()}
