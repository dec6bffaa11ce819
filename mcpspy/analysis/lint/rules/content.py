"""Content blocks, resources, icons and annotations: what reaches a model or a screen."""

from __future__ import annotations

import re
from binascii import Error as BadBase64
from binascii import a2b_base64
from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ERROR, WARNING, Report, RuleFamily

RULES = RuleFamily()
rule = RULES.rule

TYPES: dict[str, tuple[str, dict[str, type]]] = {
    "text": ("2024-11-05", {"text": str}),
    "image": ("2024-11-05", {"data": str, "mimeType": str}),
    "audio": ("2025-03-26", {"data": str, "mimeType": str}),
    "resource": ("2024-11-05", {"resource": dict}),
    "resource_link": ("2025-06-18", {"uri": str, "name": str}),
}
"""Type of a content block → the revision it came with, and what it must hold."""

_MIME = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(\s*;.*)?", re.DOTALL)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]*")
_SIZE = re.compile(r"\d+x\d+|any")
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_ICONS = ("https:", "http:", "data:")

_CALL = '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[%s]}}'
_READ = '> {"id":2,"method":"resources/read","params":{"uri":"a:b"}}\n< {"id":2,"result":{"contents":[%s]}}'
_TEXT = '{"type":"text","text":"a"}'
_IMAGE = '{"type":"image","data":"aGk=","mimeType":"image/png"}'
_LIST = '> {"id":2,"method":"resources/list"}\n< {"id":2,"result":{"resources":[{"name":"a","uri":"%s"}]}}'
_ICON = '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"},"icons":[%s]}]}}'

_ANSWERED = ("tools/call", "prompts/get", "sampling/createMessage", "resources/read")
_LISTS = {"tools/list": "tools", "resources/list": "resources", "resources/templates/list": "resourceTemplates", "prompts/list": "prompts"}  # fmt: skip


def blocks_of(seen: LintEvent) -> list[Any]:
    """Return the content blocks of a tool's result or a prompt."""
    found = seen.blocks
    if found is None:
        found = seen.blocks = []
        if seen.method == "tools/call":
            content = seen.result.get("content")
            found += content if isinstance(content, list) else ()
        elif seen.method == "prompts/get":
            messages = seen.result.get("messages")
            for message in messages if isinstance(messages, list) else ():
                if isinstance(message, dict) and "content" in message:
                    found.append(message["content"])
    return found


def resources_of(seen: LintEvent) -> list[dict[str, Any]]:
    """Return the contents of resources: read, or embedded."""
    contents = seen.result.get("contents") if seen.method == "resources/read" else None
    found = (
        [content for content in contents if isinstance(content, dict)] if isinstance(contents, list) else []
    )
    found += [
        block["resource"]
        for block in blocks_of(seen)
        if isinstance(block, dict)
        and block.get("type") == "resource"
        and isinstance(block.get("resource"), dict)
    ]
    return found


def listed_of(seen: LintEvent) -> list[dict[str, Any]]:
    """Return what a listing lists."""
    items = seen.result.get(_LISTS.get(seen.method, ""))
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


@rule(
    "DATA401",
    ERROR,
    "a content block of a type that there is not",
    page="2025-11-25/schema#contentblock",
    on=EventKind.RESULT,
    about=("tools/call", "prompts/get"),
    beyond_text=True,
    valid=(_CALL % _TEXT, _CALL % _IMAGE, _CALL % '{"type":"resource_link","uri":"a:b","name":"c"}'),
    invalid=(
        _CALL % '{"type":"json","json":{}}',
        _CALL % '"done"',
        "@ 2024-11-05\n" + _CALL % '{"type":"audio","data":"aGk=","mimeType":"audio/wav"}',
    ),
)
def unknown(seen: LintEvent) -> Iterator[Report]:
    """Text, image and resource; audio since 2025-03-26, resource_link since 2025-06-18. Clients refuse the whole
    result over another one. Structured results belong into `structuredContent`.
    """
    for block in blocks_of(seen):
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str) or kind not in TYPES:
            yield Report(
                "a content block without a type" if kind is None else f"no type of content: {str(kind)[:40]}",
                block,
            )
        elif seen.revision is not None and TYPES[kind][0] > seen.revision:
            yield Report(f"{kind} came with {TYPES[kind][0]}; this is {seen.revision}", block)


@rule(
    "DATA402",
    ERROR,
    "a content block without what its type must hold",
    page="2025-11-25/schema#contentblock",
    on=EventKind.RESULT,
    about=("tools/call", "prompts/get"),
    beyond_text=True,
    valid=(_CALL % _TEXT, _CALL % '{"type":"resource","resource":{"uri":"a:b","text":"c"}}'),
    invalid=(
        _CALL % '{"type":"text","text":7}',
        _CALL % '{"type":"image","data":"aGk="}',
        _CALL % '{"type":"resource","uri":"a:b"}',
    ),
)
def incomplete(seen: LintEvent) -> Iterator[Report]:
    """Text has `text`, a string; image and audio `data` and `mimeType`; resource a `resource`; resource_link `uri`
    and `name`.
    """
    for block in blocks_of(seen):
        kind = block.get("type") if isinstance(block, dict) else None
        if isinstance(kind, str) and kind in TYPES:
            for name, held in TYPES[kind][1].items():
                if not isinstance(block.get(name), held):
                    yield Report(
                        f"{kind} without {name}"
                        if name not in block
                        else f"{name} of {kind} is no {_WORDS[held]}",
                        block,
                    )


_WORDS: dict[type, str] = {str: "string", dict: "object"}


@rule(
    "DATA403",
    ERROR,
    "base64 that is none",
    page="2025-11-25/server/tools#image-content",
    on=EventKind.RESULT,
    about=("tools/call", "prompts/get", "resources/read"),
    beyond_text=True,
    valid=(_CALL % _IMAGE, _READ % '{"uri":"a:b","blob":"aGk="}'),
    invalid=(
        _CALL % _IMAGE.replace("aGk=", "data:image/png;base64,aGk="),
        _CALL % _IMAGE.replace("aGk=", "a?b"),
        _READ % '{"uri":"a:b","blob":"aG-_"}',
    ),
)
def base64(seen: LintEvent) -> Iterator[Report]:
    """`data` and `blob` are standard Base64 with padding: no `data:` URL, not the alphabet of URLs."""
    given: list[Any] = [
        block.get("data")
        for block in blocks_of(seen)
        if isinstance(block, dict) and block.get("type") in ("image", "audio")
    ]
    given += [resource.get("blob") for resource in resources_of(seen)]
    for data in given:
        if isinstance(data, str):
            try:
                a2b_base64(data.replace("\n", "").replace("\r", ""), strict_mode=True)
            except (BadBase64, ValueError) as error:
                yield Report(f"no Base64: {'a data: URL' if data.startswith('data:') else error}", data)


@rule(
    "DATA404",
    WARNING,
    "a mimeType that is none",
    page="2025-11-25/server/resources#resource",
    on=EventKind.RESULT,
    about=(*_ANSWERED, *_LISTS),
    beyond_text=True,
    valid=(_CALL % _IMAGE, _READ % '{"uri":"a:b","text":"c","mimeType":"text/plain; charset=utf-8"}'),
    invalid=(_CALL % _IMAGE.replace("image/png", "png"), _READ % '{"uri":"a:b","text":"c","mimeType":""}'),
)
def mime(seen: LintEvent) -> Iterator[Report]:
    """A media type is `type/subtype`, as in `image/png`; hosts choose by it how to show what it belongs to."""
    blocks = [block for block in blocks_of(seen) if isinstance(block, dict)]
    for thing in (*blocks, *resources_of(seen), *listed_of(seen)):
        given = thing.get("mimeType")
        if isinstance(given, str) and not _MIME.fullmatch(given):
            yield Report(f"no media type: {given[:60]!r}", given)


@rule(
    "DATA405",
    WARNING,
    "a uri that is none",
    page="2025-11-25/server/resources#resource",
    on=EventKind.RESULT,
    about=("resources/list", "resources/read", "tools/call", "prompts/get", "roots/list"),
    beyond_text=True,
    valid=(_LIST % "file:///a/b.txt", _LIST % "note://1"),
    invalid=(_LIST % "/a/b.txt", _READ % '{"uri":"b.txt","text":"c"}', _LIST % "file:///a b.txt"),
)
def uri(seen: LintEvent) -> Iterator[Report]:
    """A URI has a scheme, and no spaces in it: `file:///a/b%20c.txt`, not a path. Clients that parse it refuse others."""
    things = [*resources_of(seen)]
    if seen.method == "roots/list":
        roots = seen.result.get("roots")
        things += [root for root in roots if isinstance(root, dict)] if isinstance(roots, list) else []
    things += [item for item in listed_of(seen) if seen.method == "resources/list"]
    things += [
        block for block in blocks_of(seen) if isinstance(block, dict) and block.get("type") == "resource_link"
    ]
    for thing in things:
        given = thing.get("uri")
        if isinstance(given, str) and not _URI.fullmatch(given):
            yield Report(f"no URI: {given[:80]!r}", given)


@rule(
    "DATA406",
    ERROR,
    "a resource's content that is neither text nor blob",
    page="2025-11-25/server/resources#resource-contents",
    on=EventKind.RESULT,
    about=("resources/read", "tools/call", "prompts/get"),
    beyond_text=True,
    valid=(_READ % '{"uri":"a:b","text":""}',),
    invalid=(_READ % '{"uri":"a:b"}', _READ % '{"uri":"a:b","text":{"c":1}}'),
)
def neither(seen: LintEvent) -> Iterator[Report]:
    """What is read is `text`, a string, or `blob`, in Base64."""
    for content in resources_of(seen):
        if not isinstance(content.get("text"), str) and not isinstance(content.get("blob"), str):
            yield Report("neither text nor blob, as strings", content)


@rule(
    "DATA407",
    WARNING,
    "an icon that cannot be shown",
    page="2025-11-25/basic#icons",
    on=EventKind.RESULT,
    about=(*_LISTS, "initialize"),
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
def icon(seen: LintEvent) -> Iterator[Report]:
    """`src` is an https or data URI (clients must refuse others), `sizes` a list of `48x48` or `any`."""
    info = seen.result.get("serverInfo")
    for thing in (*listed_of(seen), *([info] if isinstance(info, dict) else [])):
        icons = thing.get("icons")
        for one in icons if isinstance(icons, list) else ():
            src = one.get("src") if isinstance(one, dict) else None
            sizes = one.get("sizes", []) if isinstance(one, dict) else []
            if not isinstance(src, str):
                yield Report("an icon without src", one)
            elif not src.lower().startswith(_ICONS):
                yield Report(f"an icon at {src[:60]}: neither https nor data", one)
            elif not isinstance(sizes, list) or not all(
                isinstance(size, str) and _SIZE.fullmatch(size) for size in sizes
            ):
                yield Report('sizes of an icon are a list of "48x48" or "any"', one)


@rule(
    "DATA408",
    WARNING,
    "annotations out of range",
    page="2025-11-25/server/resources#annotations",
    on=EventKind.RESULT,
    about=(*_ANSWERED, "resources/list", "resources/templates/list"),
    beyond_text=True,
    valid=(
        _CALL
        % '{"type":"text","text":"a","annotations":{"priority":0.5,"audience":["user"],"lastModified":"2025-01-12T15:00:58Z"}}',
    ),
    invalid=(
        _CALL % '{"type":"text","text":"a","annotations":{"priority":2}}',
        _CALL % '{"type":"text","text":"a","annotations":{"audience":["model"]}}',
        _CALL % '{"type":"text","text":"a","annotations":{"lastModified":"yesterday"}}',
    ),
)
def annotated(seen: LintEvent) -> Iterator[Report]:
    """`priority` is from 0 to 1, `audience` a list of "user" and "assistant", `lastModified` a time of ISO 8601."""
    blocks = [block for block in blocks_of(seen) if isinstance(block, dict)]
    for thing in (*blocks, *resources_of(seen), *listed_of(seen)):
        given = thing.get("annotations")
        if isinstance(given, dict):
            yield from _annotations(given)


def _annotations(given: dict[str, Any]) -> Iterator[Report]:
    priority, audience, modified = (
        given.get("priority", 0),
        given.get("audience", []),
        given.get("lastModified"),
    )
    if isinstance(priority, bool) or not isinstance(priority, int | float) or not 0 <= priority <= 1:
        yield Report("priority is not from 0 to 1", given)
    if not isinstance(audience, list) or any(one not in ("user", "assistant") for one in audience):
        yield Report('audience is not a list of "user" and "assistant"', given)
    if modified is not None and not (isinstance(modified, str) and _TIME.fullmatch(modified)):
        yield Report("lastModified is no time of ISO 8601", given)
