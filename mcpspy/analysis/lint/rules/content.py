"""Content blocks, resources, icons and annotations: payloads that reach a model or a user."""

from __future__ import annotations

import re
from binascii import Error as BadBase64
from binascii import a2b_base64
from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent, is_number, objects
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LintRule, Report, RuleGroup

RULES: list[LintRule] = []

TYPES: dict[str, tuple[str, dict[str, type]]] = {
    "text": ("2024-11-05", {"text": str}),
    "image": ("2024-11-05", {"data": str, "mimeType": str}),
    "audio": ("2025-03-26", {"data": str, "mimeType": str}),
    "resource": ("2024-11-05", {"resource": dict}),
    "resource_link": ("2025-06-18", {"uri": str, "name": str}),
}
"""Type of a content block → the revision that introduced it, and its required members."""

_MIME = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;.*)?", re.DOTALL)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*")
_SIZE = re.compile(r"\d+x\d+|any")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_ICON_SCHEMES = ("https:", "http:", "data:")

_CALL = '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[%s]}}'
_READ = '> {"id":2,"method":"resources/read","params":{"uri":"a:b"}}\n< {"id":2,"result":{"contents":[%s]}}'
_TEXT = '{"type":"text","text":"a"}'
_IMAGE = '{"type":"image","data":"aGk=","mimeType":"image/png"}'
_LIST = '> {"id":2,"method":"resources/list"}\n< {"id":2,"result":{"resources":[{"name":"a","uri":"%s"}]}}'
_ICON = '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"},"icons":[%s]}]}}'

_ANSWERED = ("tools/call", "prompts/get", "sampling/createMessage", "resources/read")
LISTS = {"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}  # fmt: skip


def blocks_of(event: LintEvent) -> list[Any]:
    """Return the content blocks of a tool result or a prompt."""
    found = event.blocks
    if found is None:
        found = event.blocks = []
        if event.method == "tools/call":
            content = event.result.get("content")
            found += content if isinstance(content, list) else ()
        elif event.method == "prompts/get":
            found += [message["content"] for message in event.listed("messages") if "content" in message]
    return found


def resources_of(event: LintEvent) -> list[dict[str, Any]]:
    """Return the contents of resources, read or embedded."""
    found = event.listed("contents") if event.method == "resources/read" else []
    return found + objects([block.get("resource") for block in _blocks(event, "resource")])


def listed_of(event: LintEvent) -> list[dict[str, Any]]:
    """Return the items of a listing."""
    return event.listed(LISTS.get(event.method, ""))


def _blocks(event: LintEvent, *types: str) -> list[dict[str, Any]]:
    """Return the content blocks that are objects: those of the given types, or all."""
    return [block for block in objects(blocks_of(event)) if not types or block.get("type") in types]


_WORDS: dict[type, str] = {str: "a string", dict: "an object"}

result = RuleGroup(RULES, on=EventKind.RESULT, page="2025-11-25/server/resources#resource", beyond_text=True)
block = result.group(page="2025-11-25/schema#contentblock", about=("tools/call", "prompts/get"))


@block.error(
    "DATA401",
    "unknown type of content block",
    valid=(_CALL % _TEXT, _CALL % _IMAGE, _CALL % '{"type":"resource_link","uri":"a:b","name":"c"}'),
    invalid=(
        _CALL % '{"type":"json","json":{}}',
        _CALL % '"done"',
        "@ 2024-11-05\n" + _CALL % '{"type":"audio","data":"aGk=","mimeType":"audio/wav"}',
    ),
)
def unknown(event: LintEvent) -> Iterator[Report]:
    """The types are text, image and resource, plus audio since 2025-03-26 and resource_link since 2025-06-18. Clients
    reject the whole result if it contains another type. Put structured results into `structuredContent`.
    """
    for block in blocks_of(event):
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in TYPES:
            yield Report(
                "content block without a type" if kind is None else f"unknown content type: {str(kind)[:40]}",
                block,
            )
        elif event.revision is not None and TYPES[kind][0] > event.revision:
            yield Report(
                f"content type {kind} requires {TYPES[kind][0]}; the revision is {event.revision}", block
            )


@block.error(
    "DATA402",
    "content block without a member that its type requires",
    valid=(_CALL % _TEXT, _CALL % '{"type":"resource","resource":{"uri":"a:b","text":"c"}}'),
    invalid=(
        _CALL % '{"type":"text","text":7}',
        _CALL % '{"type":"image","data":"aGk="}',
        _CALL % '{"type":"resource","uri":"a:b"}',
    ),
)
def incomplete(event: LintEvent) -> Iterator[Report]:
    """Text requires the string `text`. Image and audio require `data` and `mimeType`, resource requires `resource`, and
    resource_link requires `uri` and `name`.
    """
    for block in blocks_of(event):
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(kind, str) and kind in TYPES:
            for name, held in TYPES[kind][1].items():
                if not isinstance(block.get(name), held):
                    yield Report(
                        f"{kind} block without {name}"
                        if name not in block
                        else f"{name} of {kind} block is not {_WORDS[held]}",
                        block,
                    )


@result.error(
    "DATA403",
    "invalid Base64",
    page="2025-11-25/server/tools#image-content",
    about=("tools/call", "prompts/get", "resources/read"),
    valid=(_CALL % _IMAGE, _READ % '{"uri":"a:b","blob":"aGk="}'),
    invalid=(
        _CALL % _IMAGE.replace("aGk=", "data:image/png;base64,aGk="),
        _CALL % _IMAGE.replace("aGk=", "a?b"),
        _READ % '{"uri":"a:b","blob":"aG-_"}',
    ),
)
def base64(event: LintEvent) -> Iterator[Report]:
    """`data` and `blob` must be standard Base64 with padding, not a `data:` URL and not the URL-safe alphabet."""
    given: list[Any] = [block.get("data") for block in _blocks(event, "image", "audio")]
    given += [resource.get("blob") for resource in resources_of(event)]
    for data in given:
        if isinstance(data, str):
            try:
                a2b_base64(data.replace("\n", "").replace("\r", ""), strict_mode=True)
            except (BadBase64, ValueError) as error:
                yield Report(f"not Base64: {'a data: URL' if data.startswith('data:') else error}", data)


@result.warning(
    "DATA404",
    "invalid mimeType",
    about=(*_ANSWERED, *LISTS),
    valid=(_CALL % _IMAGE, _READ % '{"uri":"a:b","text":"c","mimeType":"text/plain; charset=utf-8"}'),
    invalid=(_CALL % _IMAGE.replace("image/png", "png"), _READ % '{"uri":"a:b","text":"c","mimeType":""}'),
)
def mime(event: LintEvent) -> Iterator[Report]:
    """A media type has the form `type/subtype`, as in `image/png`. Hosts choose by it how to display content."""
    for thing in (*_blocks(event), *resources_of(event), *listed_of(event)):
        given = thing.get("mimeType")
        if isinstance(given, str) and not _MIME.fullmatch(given):
            yield Report(f"not a media type: {given[:60]!r}", given)


@result.warning(
    "DATA405",
    "invalid URI",
    about=("resources/list", "resources/read", "tools/call", "prompts/get", "roots/list"),
    valid=(_LIST % "file:///a/b.txt", _LIST % "note://1"),
    invalid=(_LIST % "/a/b.txt", _READ % '{"uri":"b.txt","text":"c"}', _LIST % "file:///a b.txt"),
)
def uri(event: LintEvent) -> Iterator[Report]:
    """A URI has a scheme and no spaces: `file:///a/b%20c.txt`, not a path. Clients that parse it reject others."""
    things = event.listed({"roots/list": "roots", "resources/list": "resources"}.get(event.method, ""))
    for thing in (*resources_of(event), *things, *_blocks(event, "resource_link")):
        given = thing.get("uri")
        if isinstance(given, str) and not _URI.fullmatch(given):
            yield Report(f"not a URI: {given[:80]!r}", given)


@result.error(
    "DATA406",
    "resource contents with neither text nor blob",
    page="2025-11-25/server/resources#resource-contents",
    about=("resources/read", "tools/call", "prompts/get"),
    valid=_READ % '{"uri":"a:b","text":""}',
    invalid=(_READ % '{"uri":"a:b"}', _READ % '{"uri":"a:b","text":{"c":1}}'),
)
def neither(event: LintEvent) -> Iterator[Report]:
    """The contents of a resource are either `text`, a string, or `blob`, in Base64."""
    for content in resources_of(event):
        if not isinstance(content.get("text"), str) and not isinstance(content.get("blob"), str):
            yield Report("contents have neither text nor blob as a string", content)


@result.warning(
    "DATA407",
    "icon that cannot be displayed",
    page="2025-11-25/basic#icons",
    about=(*LISTS, "initialize"),
    since="2025-11-25",
    valid=(
        _ICON % '{"src":"https://example.com/a.png","sizes":["48x48"],"mimeType":"image/png"}',
        _ICON % '{"src":"data:image/png;base64,aGk="}',
    ),
    invalid=(
        _ICON % '{"src":"javascript:alert(1)"}',
        _ICON % "{}",
        _ICON % '{"src":"https://example.com/a.png","sizes":"48x48"}',
        _ICON % '{"src":"https://example.com/a.png","sizes":["large"]}',
    ),
)
def icon(event: LintEvent) -> Iterator[Report]:
    """`src` must be an https or data URI (clients reject others), `sizes` a list like `["48x48"]` or `["any"]`."""
    info = event.result.get("serverInfo")
    for thing in (*listed_of(event), *([info] if isinstance(info, dict) else [])):
        icons = thing.get("icons")
        for one in icons if isinstance(icons, list) else ():
            src = one.get("src") if isinstance(one, dict) else None
            sizes = one.get("sizes", []) if isinstance(one, dict) else []
            if not isinstance(src, str):
                yield Report("icon without src", one)
            elif not src.lower().startswith(_ICON_SCHEMES):
                yield Report(f"icon at {src[:60]}: neither an https nor a data URI", one)
            elif not isinstance(sizes, list) or not all(
                isinstance(size, str) and _SIZE.fullmatch(size) for size in sizes
            ):
                yield Report('sizes of an icon is not a list of values like "48x48" or "any"', one)


@result.warning(
    "DATA408",
    "annotation values out of range",
    page="2025-11-25/server/resources#annotations",
    about=(*_ANSWERED, "resources/list", "resources/templates/list"),
    valid=(
        _CALL
        % '{"type":"text","text":"a","annotations":{"priority":0.5,"audience":["user"],"lastModified":"2025-01-12T15:00:58Z"}}'
    ),
    invalid=(
        _CALL % '{"type":"text","text":"a","annotations":{"priority":2}}',
        _CALL % '{"type":"text","text":"a","annotations":{"audience":["model"]}}',
        _CALL % '{"type":"text","text":"a","annotations":{"lastModified":"yesterday"}}',
    ),
)
def annotated(event: LintEvent) -> Iterator[Report]:
    """`priority` is between 0 and 1, `audience` lists "user" and "assistant", `lastModified` is an ISO 8601 time."""
    for thing in (*_blocks(event), *resources_of(event), *listed_of(event)):
        given = thing.get("annotations")
        if isinstance(given, dict):
            yield from _annotations(given)


def _annotations(given: dict[str, Any]) -> Iterator[Report]:
    priority, audience = given.get("priority", 0), given.get("audience", [])
    modified = given.get("lastModified")
    if not is_number(priority) or not 0 <= priority <= 1:
        yield Report("priority is not between 0 and 1", given)
    if not isinstance(audience, list) or any(one not in ("user", "assistant") for one in audience):
        yield Report('audience is not a list of "user" and "assistant"', given)
    if modified is not None and not (isinstance(modified, str) and _TIME.fullmatch(modified)):
        yield Report("lastModified is not an ISO 8601 time", given)
