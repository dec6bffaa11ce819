"""Calls of tools that the server does not know, and results that a library or host refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.requests import errors
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS, FailedRequest
from mcpspy.core.protocol.spec import CLIENT, SERVER

_UNKNOWN = re.compile(
    r"(?i)\b(?:unknown|no such|not found|does not exist|unrecognized|not registered|no tool)\b"
)
_RAN = re.compile(r"(?i)^error (?:executing|running|calling|in) (?:the )?tool \S+?:? ")
"""The words that SDKs put before the error of a tool that they know and have run."""
_BEGINS = re.compile(
    r"(?i)\W*(?:mcp error -?\d+:? )?(?:error:? )?(?:(?:unknown|no such|unrecognized|invalid) tool\b|tool (?:is )?(?:not found|unknown"
    r"|does not exist|not registered))"
)
"""An error that is about the tool itself, and not about another program that the tool calls."""


def _says_unknown(failed: FailedRequest) -> bool:
    """Return whether an error states that the called tool does not exist."""
    words, name = _RAN.sub("", failed.words[:300]), re.escape(failed.subject)
    if not _UNKNOWN.search(words):
        return False
    is_named = re.search(rf"(?<![\w-]){name}(?![\w-])", words) is not None
    is_about_tools = "tool" in words.lower() and (is_named or failed.code is not None)
    return is_about_tools or f"{failed.subject!r}" in words or _BEGINS.match(words) is not None


_NAME_OF_TOOL = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""2025-11-25, Tools, Tool Names."""


def _as_models_want(name: str) -> str:
    """Return a name as hosts write it for interfaces of models, which allow fewer characters."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


@cause(
    "unknown-tool",
    "a tool was called that the server does not offer",
    Level.EXACT,
    rules="DATA307",
    positive=(
        ex.session(
            ex.listed("forecast"), ex.call(3, "weather_forecast"), ex.error("Unknown tool: x", -32602, 3)
        ),
        ex.session(
            ex.listed("Run Tests"), ex.call(3, "Run_Tests"), ex.error("Tool not found: Run_Tests", number=3)
        ),
    ),
    negative=(
        ex.session(ex.call(2, "forecast"), ex.error("internal error")),
        ex.session(ex.call(2, "convert"), ex.done(2, "CLI tool 'ffmpeg' not found in PATH", isError=True)),
    ),
)
def unknown_tool(facts: Facts) -> Iterator[Claim]:
    """The host has an old list, adds its own prefix, or the model invented the name."""
    tools = facts.listed.tools
    if facts.server.methods["notifications/tools/list_changed"]:
        tools = tools - facts.listed.removed
    for failed in errors(facts):
        name = failed.subject
        says_so = _says_unknown(failed)
        if failed.method != "tools/call" or name in tools or not (says_so or tools):
            continue
        if not says_so and failed.code not in (-32601, -32602):
            continue
        title = f"the tool {quote(name)!r} was called, which the server does not offer"
        next_step = "list the tools again: the host has an old list, or the model invented the name"
        inner = [each for each in tools if name.endswith(each) or each.endswith(name)]
        near = get_close_matches(name, sorted(tools), 1, 0.6)
        side, replaced = CLIENT, [each for each in sorted(tools) if _as_models_want(each) == name]
        if replaced and name not in (each := replaced[0]):
            side = "" if _NAME_OF_TOOL.fullmatch(each) else SERVER
            title += f": it lists {quote(each)!r}, and the host has replaced the characters that the interfaces of models refuse"
            next_step = (
                "let the server use only letters, digits, _ and - in the names of tools; a host that replaces others must send the "
                "server's own name in the call"
            )
        elif inner:
            title += f"; it offers {quote(inner[0])!r}: the prefix is the host's or the gateway's"
            next_step = (
                "remove the prefix before the call is sent to this server, or use the name that "
                "tools/list has"
            )
        elif near:
            title += f"; it offers {quote(near[0])!r}"
            next_step = f"call {quote(near[0])!r}, or list the tools again"
        yield Claim(title, next_step, [failed, *facts.violations("DATA307")], side=side)


_NO_SUCH = (
    r"(?:not found|unknown|unrecognized|does not exist|doesn't exist|not registered|not available|not exist)"
)


def _denies(failed: FailedRequest) -> bool:
    """Return whether an error states that the called tool is unknown: not a file, and not a program that the tool runs."""
    words = _RAN.sub("", failed.words[:300])
    # A gateway that has put a prefix before the name may pass on the error of the server behind it.
    names = {failed.subject, *re.split(r"__|[./:]", failed.subject)[-1:]} - {""}
    name = rf"[\"'`]?(?:{'|'.join(map(re.escape, sorted(names)))})[\"'`]?(?![\w-])"
    patterns = (
        rf"\b(?:unknown|no such|unrecognized|invalid|undefined) tool(?: name)?:? {name}",
        rf"\btool:? {name} (?:is |was |does )?{_NO_SUCH}",
        rf"\btool {_NO_SUCH}:? {name}",
        rf"^\W*{name} (?:is |was )?{_NO_SUCH}\W*$",
    )
    is_alone = (begun := _BEGINS.match(words)) is not None and not re.search(r"\w", words[begun.end() :])
    return is_alone or any(re.search(each, words, re.IGNORECASE) for each in patterns)


_DISABLED = re.compile(r"(?i)\btool \S{1,80} (?:is )?(?:currently )?(?:disabled|not enabled)\b")
"""The SDK for TypeScript, and servers with settings for each tool."""

_NO_RESOURCE = re.compile(
    r"(?i)\b(?:unknown|no such|unsupported|unrecognized|unhandled) (?:resource|uri)|\bno (?:resource )?handler\b|\bresource\b.{0,200}\b(?:not (?:found|registered|supported)"
    r"|is unknown|does not exist)"
)
"""A server that has no code for a URI."""

_EXPRESSION = re.compile(r"\{[^}]*\}")


def _fits(uri: str, template: str) -> bool:
    parts = [re.escape(part) for part in _EXPRESSION.split(template)]
    return len(parts) > 1 and bool(parts[0]) and re.fullmatch("[^/]+".join(parts), uri) is not None


def _template_as_resource(facts: Facts, uri: str) -> str:
    """Return the template among the listed resources that a URI fits; empty if there is none."""
    listed = facts.listed.resources
    return "" if uri in listed else next((each for each in sorted(listed) if _fits(uri, each)), "")


def _template_of(facts: Facts, uri: str) -> str:
    """Return the listed URI, or template, that a URI is or fits; empty if there is none."""
    if uri in facts.listed.resources:
        return uri
    return next((each for each in facts.listed.templates if _fits(uri, each)), "")


def _unknown_resources(facts: Facts) -> Iterator[Claim]:
    """Yield a claim for each resource that was listed, or fits a listed template, and cannot be read."""
    for failed in errors(facts):
        if failed.method != "resources/read" or not _NO_RESOURCE.search(failed.words[:300]):
            continue
        if listed := _template_as_resource(facts, failed.subject):
            title = (
                f"the server lists the template {quote(listed, 80)!r} among its resources, and does not know {quote(failed.subject, 80)!r}, "
                f"which fits it: {quote(failed.words, 100)}"
            )
            next_step = "let the server list templates in resources/templates/list (uriTemplate), and read by them: a resource has a fixed URI"
            yield Claim(title, next_step, [failed], side=SERVER)
        elif listed := _template_of(facts, failed.subject):
            title = f"the server has listed the resource {quote(listed, 80)!r}, and does not know it in resources/read: {quote(failed.words)}"
            next_step = (
                "compare the URIs in the lists with those by which the server finds a resource: its SDK may take only one template, or "
                "match it in another way; with a template, check also that what the URI names exists"
            )
            # What a URI names by a template may not exist.
            is_open = "{" in listed and re.search(r"(?i)not found|does not exist", failed.words) is not None
            yield Claim(title, next_step, [failed], side="" if is_open else SERVER)


def _read_after(listed: str, uri: str, words: str) -> str:
    return ex.session(listed, ex.request("resources/read", 3, uri=uri), ex.error(words, -32602, 3))


_RESOURCES = ex.session(
    ex.request("resources/list"), ex.result(resources=[{"name": "a", "uri": "notes://a"}])
)
_TEMPLATE_AMONG_THEM = ex.session(
    ex.request("resources/list"), ex.result(resources=[{"name": "a", "uri": "notes://{name}"}])
)
_TEMPLATES = ex.session(
    ex.request("resources/templates/list"),
    ex.result(resourceTemplates=[{"name": "a", "uriTemplate": "notes://{name}"}]),
)


@cause(
    "unknown-resource",
    "a resource was read that the server does not offer",
    Level.EXACT,
    positive=_read_after(_RESOURCES, "mcp://a", "Unknown resource: mcp://a"),
    negative=(
        _read_after(_RESOURCES, "notes://a", "Unknown resource: notes://a"),
        _read_after(_RESOURCES, "notes://b", "Unknown resource: notes://b"),
        _read_after(_TEMPLATES, "mcp://a", "database is locked"),
    ),
)
def unknown_resource(facts: Facts) -> Iterator[Claim]:
    """A host, or its model, has made the URI up: none of those in the lists begins with this scheme."""
    listed = [*sorted(facts.listed.resources), *facts.listed.templates]
    schemes = {uri.partition(":")[0] for uri in listed}
    for failed in errors(facts):
        is_read = failed.method == "resources/read" and _NO_RESOURCE.search(failed.words[:300]) is not None
        if is_read and listed and failed.subject.partition(":")[0] not in schemes:
            title = f"the resource {quote(failed.subject, 80)!r} was read, which the server does not offer; it offers {quote(listed[0], 80)!r}"
            next_step = (
                "read a URI of resources/list, or one that fits a template of resources/templates/list"
            )
            yield Claim(title, next_step, [failed], side=CLIENT)


@cause(
    "listed-unknown",
    "the server does not know a tool or a resource that it lists",
    Level.EXACT,
    rules="LIFE113",
    positive=(
        ex.session(ex.listed("a", "b"), ex.call(3, "b"), ex.error("Unknown tool: b", -32602, 3)),
        ex.session(ex.listed("a", "b"), ex.call(3, "b"), ex.error("Tool b disabled", -32602, 3)),
        ex.session(ex.listed("a__b"), ex.call(3, "a__b"), ex.error("Tool b not found", -32602, 3)),
        _read_after(_RESOURCES, "notes://a", "Unknown resource: notes://a"),
        _read_after(_TEMPLATE_AMONG_THEM, "notes://b", "Resource not found"),
    ),
    negative=(
        ex.session(ex.listed("a"), ex.call(3, "b"), ex.error("Unknown tool: b", -32602, 3)),
        ex.session(ex.listed("a"), ex.call(3), ex.done(3, "Tool 'a' failed: file not found", isError=True)),
        ex.session(ex.listed("a"), ex.call(3), ex.done(3, "Unknown tool option: b", isError=True)),
        _read_after(_RESOURCES, "notes://b", "Unknown resource: notes://b"),
        _read_after(_TEMPLATES, "notes://b", "No note has the name b"),
    ),
)
def listed_unknown(facts: Facts) -> Iterator[Claim]:
    """The lists and the code behind them go by different names or URIs: a prefix of a gateway, a table that was not
    extended, tools that are registered or switched off for each session, or only the first template is tried.
    """
    yield from _unknown_resources(facts)
    for failed in errors(facts):
        is_off = _DISABLED.search(failed.words[:300]) is not None
        if failed.method != "tools/call" or failed.subject not in facts.listed.tools:
            continue
        if not is_off and not _denies(failed):
            continue
        title = f"the server has listed the tool {quote(failed.subject)!r}, and does not know it in a call: {quote(failed.words)}"
        next_step = (
            "compare the names in tools/list with those by which the server (or the gateway) finds a tool: a prefix, "
            "another case, a tool that is registered only for some sessions"
        )
        if not facts.is_stdio:
            next_step += ", or only in one of several copies of the server behind one address"
        if is_off:
            title = f"the server has listed the tool {quote(failed.subject)!r}, and refuses it as switched off: {quote(failed.words)}"
            next_step = (
                "let tools/list have only tools that can be called; a setting of the server may switch it on"
            )
        has_changed = facts.server.methods["notifications/tools/list_changed"]
        if facts.violations("LIFE113", side=CLIENT) and not is_off:
            title = (
                f"the tools had changed (notifications/tools/list_changed), and the client called {quote(failed.subject)!r} of the old list "
                f"without asking for the new one: {quote(failed.words)}"
            )
            next_step = "let the client send tools/list after this notification; until then restart the server in the host"
            yield Claim(title, next_step, [failed, *facts.violations("LIFE113")], side=CLIENT)
            continue
        if has_changed and failed.subject in facts.listed.removed:
            continue  # `unknown-tool`
        side = "" if has_changed else SERVER  # It may be the host that has an old one.
        yield Claim(title, next_step, [failed], side=side)


FailureRow(
    "own-result-refused",
    "the server's own library refused the result of its tool",
    Level.EXACT,
    why="SDKs check results before they send them, and answer with the code of invalid params: "
    "it is not about the arguments.",
    title="the result of {about} was refused by the server's own library{quoted}",
    next_step="correct the result that the tool returns: the form that its schema or the protocol requires",
    states=ERRORS,
    words=r"invalid \S{0,20} ?result|output validation|validating tool output|invalid structured content"
    r"|result (?:is )?not valid|output schema but no structured content|structured content does not match\b.{0,20}\boutput schema",
    positive=ex.session(
        ex.call(), ex.error("Invalid tools/call result: content 0 data: Invalid Base64 string", -32602)
    ),
    negative=ex.session(ex.call(), ex.error("Invalid arguments for tool a", -32602)),
).define(__name__)


_ROWS = {"type": "object", "properties": {"rows": {"type": "array"}}, "required": ["rows"]}
_TABLE = ex.listed({**ex.with_schema(), "outputSchema": _ROWS}, number=9)


@cause(
    "error-structured",
    "the error of a tool has structured content that its outputSchema does not allow",
    Level.EXACT,
    rules="DATA302",
    positive=ex.session(
        _TABLE, ex.call(), ex.done(2, "no such table", isError=True, structuredContent={"code": -3})
    ),
    negative=ex.session(_TABLE, ex.call(), ex.done(2, "no such table", isError=True)),
)
def error_structured(facts: Facts) -> Iterator[Claim]:
    """Clients check structuredContent wherever it is, and raise their own error in place of the one of the tool."""
    for failed in errors(facts):
        found = [each for each in failed.findings if each.code == "DATA302"]
        if not found or failed.method != "tools/call":
            continue
        title = (
            f"{failed.about}: its error has structuredContent that does not fit the outputSchema, so a client that checks it "
            f"reports that in place of: {quote(failed.words, 100)}"
        )
        next_step = (
            "let the server leave structuredContent out of results with isError: true, or allow this form in the outputSchema; "
            "then the error itself is seen, which is to be corrected too"
        )
        lines = [evidence(each.place, f"{each.code} {each.message}") for each in found[:2]]
        yield Claim(title, next_step, [failed, *facts.violations("DATA302")], evidence=lines, side=SERVER)


@cause(
    "text-missing",
    "a result has structured content, and nothing else",
    Level.GENERAL,
    rules="DATA305",
    positive=ex.session(ex.call(), ex.result(content=[], structuredContent={"sum": 1})),
    negative=ex.session(
        ex.call(), ex.result(content=[{"type": "text", "text": '{"sum":1}'}], structuredContent={"sum": 1})
    ),
)
def text_missing(facts: Facts) -> Iterator[Claim]:
    """Hosts that know only `content` show an empty result, to people and to the model; nothing fails."""
    violations = facts.violations("DATA305", side=SERVER)
    if violations:
        title = "a result has only structuredContent, and its content is empty: some hosts show nothing of it"
        next_step = "let the server put the same JSON into a text block of content (2025-11-25, Tools, Structured Content)"
        yield Claim(title, next_step, [*violations], side=SERVER, is_observation=True)
