"""Limits of hosts: tools, texts and results that do not reach the model as the server sent them.

The limits are data (`analysis.lint.hosts`); each rule is one effect, and reports the limits of the session's host.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.host_profiles import HostLimit, HostProfile
from mcpspy.analysis.lint.host_verdicts import HostEffects
from mcpspy.analysis.lint.rule import RESPONSES, RULES, Report, RuleGroup

CLIENTS = "https://modelcontextprotocol.io/clients"

_HELLO = (
    '@ bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"%s","version":"1"}}}\n'
    '< {"id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},'
    '"serverInfo":{"name":"s","version":"1"}%s}}\n> {"method":"notifications/initialized"}\n'
)
_LIST = '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[%s]}}\n'
_TOOL = '{"name":"%s","description":"b","inputSchema":%s}'
_OBJECT = '{"type":"object"}'
_ITEMS = '{"type":"object","properties":{"a":{"type":"array"%s}}}'
_CALL = '> {"id":3,"method":"tools/call","params":{"name":"a"}}\n'


def _tools(client: str, *tools: tuple[str, str]) -> str:
    return _HELLO % (client, "") + _LIST % ",".join(_TOOL % tool for tool in tools)


def _result(client: str, content: str) -> str:
    return _tools(client, ("a", _OBJECT)) + _CALL + f'< {{"id":3,"result":{{"content":[{content}]}}}}\n'


hosts = RuleGroup(RULES, page=CLIENTS)
tools_list = hosts.group(on=EventKind.RESULT, about="tools/list")

SCHEMAS = ("properties", "$defs", "definitions", "patternProperties")
"""Keywords whose value is an object of schemas."""

SUBSCHEMAS = "items additionalProperties not if then else anyOf oneOf allOf prefixItems".split()


def root_kind(tool: dict[str, Any]) -> str:
    """Return what the root of an inputSchema is: `object`, or a word of the limits on `root`."""
    schema = tool.get("inputSchema", ...)
    if not isinstance(schema, dict):
        kinds = {list: "list", bool: "boolean", type(None): "null"}
        return "missing" if schema is ... else kinds.get(type(schema), "other")
    given = schema.get("type", ...)
    if isinstance(given, list):
        return "types"
    return "no type" if given is ... else given if given in ("object", "array", "string") else "other"


def keywords(schema: Any, depth: int = 0) -> Iterator[str]:
    """Yield the keywords of the schemas below the root, and in words what is unusual about them."""
    if not isinstance(schema, dict):
        yield {bool: "boolean schema", type(None): "null schema"}.get(type(schema), "other")
        return
    if depth:
        yield from (str(key) for key in schema)
        yield from (word for word, is_found in _UNUSUAL.items() if is_found(schema))
    if depth < DEEPEST:
        for key, inner in schema.items():
            if key in SCHEMAS and isinstance(inner, dict):
                subschemas: list[Any] = list(inner.values())
            elif key in SUBSCHEMAS and not isinstance(inner, bool):
                subschemas = inner if isinstance(inner, list) else [inner]
            else:
                continue
            for each in subschemas:
                yield from keywords(each, depth + 1)


DEEPEST = 64

TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")

_UNUSUAL: dict[str, Callable[[dict[str, Any]], bool]] = {
    "empty schema": lambda schema: not schema,
    "array without items": lambda schema: schema.get("type") == "array" and "items" not in schema,
    "items that is a list": lambda schema: isinstance(schema.get("items"), list),
    "boolean exclusiveMinimum": lambda schema: isinstance(schema.get("exclusiveMinimum"), bool),
    "list of types": lambda schema: isinstance(schema.get("type"), list),
    "unknown type": lambda schema: isinstance(given := schema.get("type"), str) and given not in TYPES,
    "external $ref": lambda schema: str(schema.get("$ref", "#"))[:1] != "#",
}
"""Words of the limits on `keyword` that are not keywords."""


CHECKS = ("name-length", "name", "root", "root-keyword", "keyword", "property", "output", "output-dialect")
"""The limited things of a tool."""


def _reason(limit: HostLimit, tool: dict[str, Any], shown: str) -> str | None:
    """Return the reason why a tool is beyond a limit; None if it is not. `shown` is its name with the prefix."""
    schema = tool.get("inputSchema")
    members: dict[str, Any] = schema if isinstance(schema, dict) else {}
    if limit.on == "name-length":
        beyond = f"its name has {len(shown)} characters as {shown[:80]!r}, more than {limit.max}"
        return beyond if len(shown) > limit.max else None
    if limit.on == "name":
        is_match = re.fullmatch(limit.pattern, str(tool.get("name")))
        return None if is_match else f"its name does not match {limit.pattern}"
    if limit.on == "root":
        kind = root_kind(tool)
        words = {"missing": "is missing", "no type": 'lacks "type":"object"', "types": "has a list of types"}
        return f"inputSchema {words.get(kind, 'is of the type ' + kind)}" if kind in limit.words else None
    if limit.on == "output":
        given = tool.get("outputSchema", {"type": "object"})
        is_object = isinstance(given, dict) and given.get("type") == "object"
        return None if is_object else 'outputSchema lacks "type":"object"'
    if limit.on == "output-dialect":
        output = tool.get("outputSchema")
        dialect = str(output.get("$schema", "")) if isinstance(output, dict) else ""
        found = next((word for word in limit.words if word in dialect), None)
        return f"its outputSchema is of {found}" if found is not None else None
    if limit.on == "property":
        given = members.get("properties")
        names = list(given) if isinstance(given, dict) else []
        if limit.words and set(names) >= set(limit.words):
            return f"it has properties with the names {' and '.join(limit.words)}"
        wrong = [name for name in names if limit.pattern and not re.fullmatch(limit.pattern, name)]
        return f"the name of its property {wrong[0][:80]!r} does not match {limit.pattern}" if wrong else None
    has = set(members) if limit.on == "root-keyword" else set(keywords(schema))
    where = "in its root" if limit.on == "root-keyword" else "in a property"
    found = ", ".join(word for word in limit.words if word in has)
    return f"inputSchema has {found} {where}" if found else None


def _reported(event: LintEvent, effect: str, does: str) -> Iterator[Report]:
    """Yield the tools that one effect concerns, those with the same reason together."""
    for host in event.state.hosts:
        found: dict[tuple[HostLimit, str], list[dict[str, Any]]] = {}
        limits = [limit for limit in host.of(*CHECKS) if limit.effect == effect]
        for tool in event.listed("tools") if limits else ():
            shown = host.qualified(str(tool.get("name")), event.state.server)
            for limit in limits:
                if (reason := _reason(limit, tool, shown)) is not None:
                    found.setdefault((limit, reason), []).append(tool)
        for (limit, reason), tools in found.items():
            name = str(tools[0].get("name"))[:60]
            more = f" and {len(tools) - 1} more" if len(tools) > 1 else ""
            yield _report(event, host, limit, f"{does} {name}{more}: {reason}", tools[0])


def _report(
    event: LintEvent, host: HostProfile, limit: HostLimit, message: str, excerpt: Any = None
) -> Report:
    """Return the report, and remember it for the verdict on the host."""
    message += f" {limit.when}" if limit.when else ""
    event.state.memory[HostEffects].add(host, limit, message)
    return Report(f"{host.title} {message} ({limit.cause(host)})", excerpt)


@tools_list.error(
    "HOST101",
    "tool that the host drops",
    valid=_tools("cursor-vscode", ("a" * 50, _OBJECT)),
    invalid=(_tools("cursor-vscode", ("a" * 60, _OBJECT)),),
)
def dropped(event: LintEvent) -> Iterator[Report]:
    """The model never sees this tool, and no one gets an error. Shorten the name, or the name of the server in the host's
    configuration, which counts too; write the inputSchema as one object of plain properties. `mcpspy lint --host HOST`
    checks for a host other than that of the session.
    """
    yield from _reported(event, "drops", "drops the tool")


@tools_list.error(
    "HOST102",
    "tool because of which the host drops all tools of the server",
    valid=_tools("windsurf-client", ("a", _ITEMS % ',"items":{"type":"string"}')),
    invalid=_tools("windsurf-client", ("a", _ITEMS % "")),
)
def dropped_all(event: LintEvent) -> Iterator[Report]:
    """One tool makes every tool of the server unusable: the host rejects the list, or the API of its model rejects each
    request with the list in it. Fix this tool first.
    """
    yield from _reported(event, "drops-all", "drops all tools of the server because of")
    yield from _reported(event, "refuses", "fails every request to the model because of")


@tools_list.warning(
    "HOST108",
    "tool whose calls the host refuses",
    valid=_tools("claude-ai", ("a", _OBJECT)),
    invalid=_tools("claude-ai", ("a", _OBJECT)).replace(
        '"description":"b"',
        '"description":"b","outputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}',
    ),
)
def not_callable(event: LintEvent) -> Iterator[Report]:
    """The model sees the tool, but the host refuses each call before it reaches the server: its validator knows only
    JSON Schema 2020-12. Leave `$schema` out of the outputSchema, or name 2020-12.
    """
    yield from _reported(event, "fails", "refuses calls of")


@tools_list.info(
    "HOST103",
    "tool that the host renames",
    valid=_tools("codex-mcp-client", ("a_b", _OBJECT)),
    invalid=_tools("codex-mcp-client", ("a.b", _OBJECT)),
)
def renamed(event: LintEvent) -> Iterator[Report]:
    """The model sees another name. Descriptions, instructions and prompts that mention the tool by its own name mislead
    it, and two names may become one. Use letters, digits and `_`.
    """
    yield from _reported(event, "renames", "renames the tool")


@tools_list.info(
    "HOST104",
    "tool whose schema the host changes",
    valid=_tools("codex-mcp-client", ("a", _OBJECT)),
    invalid=_tools("codex-mcp-client", ("a", '{"type":"object","not":{}}')),
)
def changed(event: LintEvent) -> Iterator[Report]:
    """The model sees another schema, and may send arguments that the server then rejects. Repeat in the description what
    the host removes.
    """
    yield from _reported(event, "changes", "changes the schema of")


@hosts.warning(
    "HOST105",
    "description or instructions that the host cuts",
    on=EventKind.RESULT,
    about=("tools/list", "initialize", "server/discover"),
    valid=_HELLO % ("claude-code", ',"instructions":"Short."'),
    invalid=_HELLO % ("claude-code", f',"instructions":"{"Long. " * 1000}"'),
)
def cut(event: LintEvent) -> Iterator[Report]:
    """The model does not see the end of the text. Say the most important things first, and shorten the rest."""
    for host in event.state.hosts:
        for limit in host.of("description", "instructions"):
            if limit.on == "instructions":
                texts = {"": event.result.get("instructions")}
            else:
                texts = {
                    f" of {tool.get('name')}"[:64]: tool.get("description") for tool in event.listed("tools")
                }
            for whose, text in texts.items():
                if isinstance(text, str) and len(text) > limit.max:
                    does = f"cuts the {limit.on}{whose} at {limit.max:,} characters: {len(text) - limit.max:,} are lost"
                    does = does if limit.max else f"does not show the {limit.on} to the model"
                    yield _report(event, host, limit, does, text)


@tools_list.warning(
    "HOST106",
    "more tools than the host offers",
    valid=_tools("windsurf-client", *((f"t{number}", _OBJECT) for number in range(100))),
    invalid=_tools("windsurf-client", *((f"t{number}", _OBJECT) for number in range(101))),
)
def too_many(event: LintEvent) -> Iterator[Report]:
    """The limit applies to the tools of all servers together. Offer fewer, or let the user choose groups of tools by an
    option of the server.
    """
    if event.listing.listing.following is None:
        names = set(event.listing.names)
        for host in event.state.hosts:
            for limit in host.of("tools"):
                if len(names) > limit.max:
                    does = "fails with" if limit.effect == "refuses" else "offers its model fewer than"
                    yield _report(
                        event, host, limit, f"{does} {len(names)} tools: the limit is {limit.max}", ""
                    )


@tools_list.error(
    "HOST107",
    "page of tools that the host does not request",
    valid=_tools("gemini-cli-mcp-client", ("a", _OBJECT)),
    invalid=_tools("gemini-cli-mcp-client", ("a", _OBJECT)).replace(
        '"tools":[{', '"nextCursor":"2","tools":[{'
    ),
)
def not_requested(event: LintEvent) -> Iterator[Report]:
    """The model sees the tools of the first page only. Return all tools in one page."""
    for host in event.state.hosts if event.result.get("nextCursor") is not None else ():
        for limit in host.of("pages"):
            yield _report(
                event, host, limit, "does not request the next page of the list", event.result["nextCursor"]
            )


@hosts.warning(
    "HOST201",
    "result that is too large for the host",
    on=EventKind.RESULT,
    about="tools/call",
    valid=_result("claude-ai", '{"type":"text","text":"1"}'),
    invalid=_result("claude-ai", f'{{"type":"text","text":"{"1" * (1 << 20)}"}}'),
)
def too_large(event: LintEvent) -> Iterator[Report]:
    """The model sees a part of the result, or an error. Return pages, a summary, or a link to a resource."""
    for host in event.state.hosts:
        for limit in host.of("result"):
            if len(event.data) > limit.max:
                is_cut = limit.effect == "cuts"
                size = _text_size(event) if is_cut else len(event.data)
                if size > limit.max:
                    does = f"{'cuts' if is_cut else 'rejects'} a result of {size:,} {'characters' if is_cut else 'bytes'}"
                    yield _report(event, host, limit, f"{does}: the limit is {limit.max:,}")


def _text_size(event: LintEvent) -> int:
    texts = (block.get("text") for block in event.listed("content") if block.get("type") == "text")
    return sum(len(text) for text in texts if isinstance(text, str))


@hosts.warning(
    "HOST202",
    "content that the host does not show to its model",
    on=EventKind.RESULT,
    about="tools/call",
    beyond_plain=True,
    valid=(
        _result("cursor-vscode", '{"type":"text","text":"1"}'),
        _result("gemini-cli-mcp-client", '{"type":"text","text":"1"}],"structuredContent":{"a":1},"b":['),
    ),
    invalid=_result("cursor-vscode", '{"type":"resource","resource":{"uri":"file:///a","text":"1"}}').replace(
        '"capabilities":{"tools"', '"capabilities":{"resources":{},"tools"'
    ),
)
def not_shown(event: LintEvent) -> Iterator[Report]:
    """Return the same as text beside it."""
    types = {str(block.get("type")) for block in event.listed("content")}
    types |= {"structuredContent"} if "structuredContent" in event.result and "text" not in types else set()
    event.state.memory[HostEffects].is_image_seen |= "image" in types
    for host in event.state.hosts:
        for limit in host.of("content"):
            for word in limit.words:
                if word in types:
                    yield _report(event, host, limit, f"does not show {word} to its model")


@hosts.warning(
    "HOST301",
    "response after the host's timeout",
    on=(*RESPONSES, EventKind.NOTIFICATION),
    about=("tools/call", "initialize", "notifications/cancelled"),
    valid=_result("claude-ai", '{"type":"text","text":"1"}'),
    invalid=(_HELLO % ("codex-mcp-client", "")).replace("\n< ", "\n* stderr {}" * 6 + "\n< ", 1),
)
def timeout(event: LintEvent) -> Iterator[Report]:
    """The host has given up, although the server works on. Report progress, return a task, or raise the timeout in the
    host's configuration.
    """
    if event.exchange is not None:
        request = event.exchange.request
        seconds = event.at - request.at
        for host in event.state.hosts:
            over = [
                limit
                for limit in host.of("timeout")
                if request.method in limit.words and seconds >= limit.max
            ]
            # A limit under a condition adds nothing if an unconditional one is exceeded, too.
            for limit in [limit for limit in over if not limit.when] or over:
                does = f"waits {limit.max} s for {request.method}, which took {seconds:.1f} s"
                yield _report(event, host, limit, does)


class _Ignored(set[tuple[str, str]]):
    """Hosts and methods that are already reported."""


@hosts.warning(
    "HOST302",
    "notification that the host ignores",
    on=EventKind.NOTIFICATION,
    valid=_tools("claude-ai", ("a", _OBJECT)),
    invalid=_tools("cursor-vscode", ("a", _OBJECT)) + '< {"method":"notifications/tools/list_changed"}',
)
def ignored(event: LintEvent) -> Iterator[Report]:
    """The model keeps the old list until the user reconnects the server. Do not let a tool depend on a changed list."""
    reported = event.state.memory[_Ignored]
    for host in event.state.hosts:
        for limit in host.of("notification"):
            if event.method in limit.words and (host.title, event.method) not in reported:
                reported.add((host.title, event.method))
                yield _report(event, host, limit, f"ignores {event.method}")


@hosts.error(
    "HOST303",
    "revision that the host refuses",
    on=EventKind.RESULT,
    about="initialize",
    valid=(
        _HELLO % ("claude-code", ""),
        (_HELLO % ("gemini-cli-mcp-client", "")).replace("2025-06-18", "2025-11-25"),
    ),
    invalid=(_HELLO % ("gemini-cli-mcp-client", "")).replace(
        '"result":{"protocolVersion":"2025-06-18"', '"result":{"protocolVersion":"2025-11-25"'
    ),
)
def refused(event: LintEvent) -> Iterator[Report]:
    """The host disconnects. Respond with the revision that it requested, if the server knows it."""
    answered, requested = event.result.get("protocolVersion"), event.request.params
    offered = requested.get("protocolVersion") if isinstance(requested, dict) else None
    for host in event.state.hosts:
        for limit in host.of("revision"):
            # A client that is not this host may have requested a revision that the host never does.
            if isinstance(answered, str) and answered not in limit.words and offered in limit.words:
                yield _report(event, host, limit, f"refuses the revision {answered[:40]}", answered)
