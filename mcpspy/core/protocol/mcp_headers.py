"""HTTP headers of 2026-07-28 that repeat parts of a request's body.

Requests have `MCP-Protocol-Version`, `Mcp-Method` and `Mcp-Name`; `x-mcp-header` annotations in a tool's inputSchema
require `Mcp-Param-*` headers with the arguments. Invalid schemas and values raise no exception.
Source: basic/transports/streamable-http, 2026-07-28.
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
"""Method whose result contains the tools' schemas."""

MAX_TOOLS = 4096
"""Maximum number of tools whose headers are kept; the least recently listed tool is dropped first."""

ParamPaths: TypeAlias = dict[str, tuple[str, ...]]
"""Header name, spelled as in the schema → path of its value in the arguments."""

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")

_NAMED_SUBSCHEMAS = frozenset("$defs definitions dependentSchemas patternProperties".split())
"""Keywords whose members are schemas (JSON Schema 2020-12, and `definitions` of earlier versions)."""

_SCHEMAS = frozenset(
    """additionalProperties allOf anyOf contains contentSchema else if items not oneOf prefixItems propertyNames then
    unevaluatedItems unevaluatedProperties""".split()
)
"""Keywords whose value is a schema, or an array of them."""

NAMED = frozenset("tools/call prompts/get resources/read tasks/get tasks/update tasks/cancel".split())
"""Methods whose requests have an `Mcp-Name` header."""

_PLAIN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_SENTINEL = re.compile(r"=\?base64\?([A-Za-z0-9+/=]*)\?=")


def headers(request: Request) -> dict[str, str]:
    """Return the headers of a request, with encoded values."""
    headers = {METHOD: encoded(request.method)}
    if request.method in NAMED and request.subject is not None:
        headers[NAME] = encoded(request.subject)
    if (version := request.revision) is not None:
        headers[VERSION] = version
    return headers


def mismatch(given: Mapping[str, str], request: Request) -> str | None:
    """Describe the first header that does not match the body, or return None. `given` ignores the case of names."""
    for name, value in headers(request).items():
        sent = given.get(name)
        if sent is None:
            return f"{name} is missing"
        if decoded(sent) != decoded(value):
            return f"{name} is {sent}, but the body has {value}"
    return None


def encoded(value: str) -> str:
    """Return the header form of a value: plain ASCII unchanged, other text as Base64 of its UTF-8."""
    if _PLAIN.fullmatch(value) and not is_sentinel(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="


def is_sentinel(value: str) -> bool:
    """Return whether a value looks encoded, so that it must be encoded if it is not."""
    return value.startswith("=?base64?") and value.endswith("?=") and len(value) >= len("=?base64??=")


def decoded(value: str) -> str:
    """Return the decoded value of a header; invalid Base64 is returned unchanged."""
    found = _SENTINEL.fullmatch(value.strip())
    if found is None:
        return value.strip()
    try:
        return base64.b64decode(found[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return value.strip()


class ParamHeaders(NamedTuple):
    headers: ParamPaths
    """Headers of the tool, also those with an invalid type: servers check them, so clients should send them."""
    wrong: list[str]
    """Errors in the annotations; clients drop a tool that has any."""


NOTHING = ParamHeaders({}, [])


def param_headers(schema: Any) -> ParamHeaders:
    """Return the headers of a tool's inputSchema; only annotations reached through `properties` alone are valid."""
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
                wrong.append(f"{str(name)[:40]!r} is not a valid header name")
            elif not path:
                wrong.append(f"{name[:40]} is not reached through properties alone")
            elif name.lower() in names:
                wrong.append(f"{name[:40]} occurs twice")
            else:
                names.add(name.lower())
                headers[PREFIX + name] = path
                if kind not in _TYPES:
                    wrong.append(f"{name[:40]} has type {str(kind)[:40]} (use string, integer or boolean)")
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
    """Return the headers of a call with these arguments, not encoded; absent and null arguments have none."""
    found = {header: text(at(arguments, path)) for header, path in places.items()}
    return {header: value for header, value in found.items() if value is not None}


def is_mismatch(sent: str, value: str) -> bool:
    """Return True if a header does not match the body; numbers are compared by value."""
    plain = decoded(sent)
    try:
        return plain != value and float(plain) != float(value)
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
    """`Mcp-Param-*` headers of the tools that one server has listed."""

    def __init__(self) -> None:
        self._places: dict[str, ParamPaths] = {}

    def learn(self, result: Result) -> None:
        """Read the tools in a result of `tools/list`."""
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
        """Return the headers of the tool that a request calls; empty if the tool was not listed."""
        return self._places.get(request.subject or "", {}) if request.method == "tools/call" else {}

    def headers(self, request: Request) -> dict[str, str]:
        places = self.places(request)
        params = request.params if places else None
        arguments = params.get("arguments") if isinstance(params, dict) else None
        return {header: encoded(value) for header, value in argument_headers(places, arguments).items()}
