"""MCP Apps: tools with a page, and the resources that are these pages."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent, objects
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.ui import EXTENSION, MEDIA_TYPE, SCHEME, SOURCE, app_of
from mcpspy.core.protocol.message import Result, loads, meta_raw
from mcpspy.core.protocol.spec import META, SERVER

_HEAD = '@ 2026-07-28 client={"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}}\n'
_TOOLS = (
    _HEAD
    + '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"},"_meta":{%s}}]}}\n'
)
_LINKED = _TOOLS % '"ui":{"resourceUri":"ui://a/b"}'
_HTML = "<!DOCTYPE html><html><head><title>t</title></head><body></body></html>"
_READ = '> {"id":3,"method":"resources/read","params":{"uri":"ui://a/b"}}\n< {"id":3,"result":{"contents":[{"uri":"%s","mimeType":"%s","text":"%s"%s}]}}\n'
_PAGE = _LINKED + _READ % ("ui://a/b", MEDIA_TYPE, _HTML, ',"_meta":{"ui":{%s}}')
_LISTED = (
    _HEAD
    + '> {"id":2,"method":"resources/list"}\n< {"id":2,"result":{"resources":[{"uri":"%s","name":"b","mimeType":"%s"}]}}'
)
_CALLED = '> {"id":4,"method":"tools/call","params":{"name":"a"}}\n< {"id":4,"result":{"content":[%s]}}'
_TEXT = '{"type":"text","text":"a"}'

SKYBRIDGE = "text/html+skybridge"
"""The type of pages for ChatGPT, which are not apps of MCP."""

_NOT_FOUND = (-32602, -32002)
_DOCUMENT = re.compile(r"(?is)\s*(?:<!--.*?-->\s*)*<!doctype\s+html\b")

rule = RuleGroup(RULES, page=SOURCE + "#ui-resource-format")
listed = RuleGroup(
    RULES, on=EventKind.RESULT, by=SERVER, about="tools/list", page=SOURCE + "#resource-discovery"
)
contents = listed.group(about="resources/read", page=SOURCE + "#content-requirements")


def _has_tool(event: LintEvent, uri: str) -> bool:
    return any(app_of(tool.definition) == uri for tool in event.state.tools.values())


def _is_negotiated(event: LintEvent) -> bool:
    """Return whether one side has declared the extension."""
    stated = loads(meta_raw(event.request.body.meta, META + "clientCapabilities"))
    client = stated if isinstance(stated, dict) else event.conversation.client_capabilities
    return EXTENSION.id in declared(client) or EXTENSION.id in declared(event.capabilities)


def _media_type(item: dict[str, Any]) -> str:
    return str(item.get("mimeType", "")).replace(" ", "").lower()


rule.shape_error(
    "EXT201",
    "invalid app of a tool",
    """`_meta.ui` of a tool has the `resourceUri` of its app, which begins with `ui://`, and `visibility`, a list of
    `model` and `app`. A host does not show the app otherwise, or shows the model a tool that is not for it.
    """,
    page=SOURCE + "#resource-discovery",
    on=(EventKind.RESULT, EventKind.REQUEST),
    valid=(_LINKED, _TOOLS % '"ui":{"visibility":["app"]}'),
    invalid=(
        _TOOLS % '"ui":{"resourceUri":"https://a.example/b"}',
        _TOOLS % '"ui":{"resourceUri":"ui://a/b","visibility":["user"]}',
        _TOOLS % '"ui":"ui://a/b"',
    ),
)


@listed.warning(
    "EXT202",
    "deprecated ui/resourceUri",
    valid=(_LINKED, _TOOLS % '"ui":{"resourceUri":"ui://a/b"},"ui/resourceUri":"ui://a/b"'),
    invalid=_TOOLS % '"ui/resourceUri":"ui://a/b"',
)
def flat(event: LintEvent) -> Iterator[Report]:
    """Use `_meta.ui.resourceUri`: the flat key will be removed. Both at once are for older hosts, and must be equal."""
    if b'"ui/resourceUri"' not in event.data:
        return
    for tool in event.listed("tools"):
        meta = tool.get("_meta")
        given = meta.get("ui/resourceUri") if isinstance(meta, dict) else None
        if given is not None and given != app_of(tool):
            yield Report(f"{str(tool.get('name'))[:60]} has ui/resourceUri", meta)


rule.shape_error(
    "EXT203",
    "invalid metadata of an app",
    """In `_meta.ui` of a resource, the domains of `csp` are lists of strings, `permissions` has an object for each
    permission, `domain` is a string and `prefersBorder` a boolean. A host ignores others, so the app cannot load what it
    needs.
    """,
    on=(EventKind.RESULT, EventKind.REQUEST),
    valid=_PAGE % '"csp":{"connectDomains":["https://a.example"]},"permissions":{"camera":{}}',
    invalid=(
        _PAGE % '"csp":{"connectDomains":"https://a.example"}',
        _PAGE % '"permissions":["camera"]',
        _PAGE % '"permissions":{"camera":true}',
        _PAGE % '"prefersBorder":"no"',
    ),
)

rule.shape_warning(
    "EXT208",
    "domain of an app that is not an origin",
    """The domains of `csp` are origins, such as `https://api.example.com` or `https://*.example.com`: a path has no
    effect, and other characters would end the directive of the policy.
    """,
    on=(EventKind.RESULT, EventKind.REQUEST),
    valid=_PAGE % '"csp":{"resourceDomains":["https://*.a.example","wss://a.example:8443"]}',
    invalid=(
        _PAGE % '"csp":{"connectDomains":["https://a.example; script-src *"]}',
        _PAGE % '"csp":{"connectDomains":["https://a.example/v1/data"]}',
    ),
)


@contents.error(
    "EXT204",
    "app with another type or URI",
    about=("resources/read", "resources/list"),
    valid=(_PAGE % "", _HEAD + _READ % ("ui://a/b", SKYBRIDGE, _HTML, "")),
    invalid=(
        _LINKED + _READ % ("ui://a/b", "text/html", _HTML, ""),
        _LINKED + _READ % ("ui://a/c", MEDIA_TYPE, _HTML, ""),
        _LISTED % ("app://a/b", MEDIA_TYPE),
        _LINKED
        + '> {"id":3,"method":"resources/read","params":{"uri":"ui://a/b"}}\n< {"id":3,"result":{"contents":[]}}',
    ),
)
def other_type(event: LintEvent) -> Iterator[Report]:
    """The contents of an app have the requested URI, which begins with `ui://`, and the type
    `text/html;profile=mcp-app`. Hosts do not show others.
    """
    member = "contents" if event.method == "resources/read" else "resources"
    asked = event.subject or ""
    if asked.startswith(SCHEME) and event.result.get("contents") == [] and _has_tool(event, asked):
        yield Report(f"no contents of the app {asked[:80]}")
    for item in event.listed(member):
        uri, media = item.get("uri"), _media_type(item)
        if not isinstance(uri, str):
            continue
        is_app = uri.startswith(SCHEME)
        if media == MEDIA_TYPE and not is_app:
            yield Report(f"app whose URI does not begin with {SCHEME}: {uri[:80]}", uri)
        elif member == "contents" and is_app:
            if media != MEDIA_TYPE and (
                _has_tool(event, uri) or (media != SKYBRIDGE and _is_negotiated(event))
            ):
                yield Report(f"app of type {media[:60] or '(none)'}, not {MEDIA_TYPE}", item)
            elif event.subject not in (None, uri):
                yield Report(f"contents of {uri[:80]} instead of {(event.subject or '')[:80]}", uri)


@contents.warning(
    "EXT205",
    "app that is not an HTML document",
    valid=_PAGE % "",
    invalid=_LINKED + _READ % ("ui://a/b", MEDIA_TYPE, "export default 1", ""),
)
def no_document(event: LintEvent) -> Iterator[Report]:
    """The text of an app is an HTML5 document, which begins with `<!DOCTYPE html>`."""
    for item in event.listed("contents"):
        text = _text(item) if _media_type(item) == MEDIA_TYPE else None
        if text is not None and not _DOCUMENT.match(text.removeprefix("\ufeff")):
            yield Report(f"app that does not begin with <!DOCTYPE html>: {text[:40]!r}", item)


def _text(item: dict[str, Any]) -> str | None:
    """Return the text of contents; None if there is none, or it cannot be decoded."""
    if isinstance(text := item.get("text"), str):
        return text
    if not isinstance(blob := item.get("blob"), str):
        return None
    try:
        return b64decode(blob).decode("utf-8", "replace")
    except binascii.Error:
        return None


@contents.error(
    "EXT206",
    "app of a tool that does not exist",
    page=SOURCE + "#behavior",
    on=EventKind.FAILURE,
    valid=_PAGE % "",
    invalid=_LINKED
    + '> {"id":3,"method":"resources/read","params":{"uri":"ui://a/b"}}\n< {"id":3,"error":{"code":-32602,"message":"no"}}',
)
def no_app(event: LintEvent) -> Iterable[Report]:
    """The resource that a tool names as its app must exist: the host shows nothing otherwise."""
    uri = event.subject or ""
    if not uri.startswith(SCHEME) or event.failure.code not in _NOT_FOUND or not _has_tool(event, uri):
        return ()
    return [Report(f"the app of a tool does not exist: {uri[:80]}")]


@contents.error(
    "EXT207",
    "result without content of a tool with an app",
    page=SOURCE + "#server-behavior",
    about="tools/call",
    valid=(
        _LINKED + _CALLED % _TEXT,
        _TOOLS % '"ui":{"resourceUri":"ui://a/b","visibility":["app"]}' + _CALLED % "",
    ),
    invalid=_LINKED + _CALLED % "",
)
def no_content(event: LintEvent) -> Iterable[Report]:
    """The model reads only `content`, and so do hosts without apps: a tool with an app returns it, too."""
    assert isinstance(event.what, Result)
    tool, result = event.tool, event.result
    if tool is None or result.get("content") != [] or app_of(tool.definition) is None:
        return ()
    visibility = tool.definition["_meta"]["ui"].get("visibility")
    is_for_app = isinstance(visibility, list) and "model" not in visibility
    if is_for_app or result.get("structuredContent") is not None:  # DATA305 reports the latter.
        return ()
    return [Report(f"the result of {(event.subject or '')[:60]} has no content")]


@contents.warning(
    "EXT209",
    "listed app of another type",
    about="resources/list",
    page=SOURCE + "#ui-resource-format",
    valid=_LISTED % ("ui://a/b", MEDIA_TYPE),
    invalid=_LISTED % ("ui://a/b", "text/html"),
)
def listed_type(event: LintEvent) -> Iterator[Report]:
    """A listed app has the type `text/html;profile=mcp-app`, by which hosts know what they can show."""
    for item in objects(event.result.get("resources")):
        uri, media = item.get("uri"), _media_type(item)
        if not isinstance(uri, str) or not uri.startswith(SCHEME) or media in (MEDIA_TYPE, SKYBRIDGE):
            continue
        if _has_tool(event, uri) or _is_negotiated(event):
            yield Report(f"app of type {media[:60] or '(none)'}, not {MEDIA_TYPE}: {uri[:80]}", item)
