"""Content blocks, resources, icons and annotations: payloads that reach a model or a user."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.shapes import SHAPED

_CALL = '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[%s]}}'
_READ = '> {"id":2,"method":"resources/read","params":{"uri":"a:b"}}\n< {"id":2,"result":{"contents":[%s]}}'
_TEXT = '{"type":"text","text":"a"}'
_IMAGE = '{"type":"image","data":"aGk=","mimeType":"image/png"}'
_LIST = '> {"id":2,"method":"resources/list"}\n< {"id":2,"result":{"resources":[{"name":"a","uri":"%s"}]}}'
_ICON = '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"},"icons":[%s]}]}}'


result = RuleGroup(RULES, on=SHAPED, page="2025-11-25/server/resources#resource", beyond_plain=True)
block = result.group(page="2025-11-25/schema#contentblock")


block.shape_error(
    "DATA401",
    "unknown type of content block",
    """The types are text, image and resource, plus audio since 2025-03-26 and resource_link since 2025-06-18. Clients
    reject the whole result if it contains another type. Put structured results into `structuredContent`.
    """,
    valid=(_CALL % _TEXT, _CALL % _IMAGE, _CALL % '{"type":"resource_link","uri":"a:b","name":"c"}'),
    invalid=(
        _CALL % '{"type":"json","json":{}}',
        _CALL % '"done"',
        "@ 2024-11-05\n" + _CALL % '{"type":"audio","data":"aGk=","mimeType":"audio/wav"}',
    ),
)

block.shape_error(
    "DATA402",
    "content block without a member that its type requires",
    """Text requires the string `text`. Image and audio require `data` and `mimeType`, resource requires `resource`, and
    resource_link requires `uri` and `name`.
    """,
    valid=(_CALL % _TEXT, _CALL % '{"type":"resource","resource":{"uri":"a:b","text":"c"}}'),
    invalid=(
        _CALL % '{"type":"text","text":7}',
        _CALL % '{"type":"image","data":"aGk="}',
        _CALL % '{"type":"resource","uri":"a:b"}',
    ),
)

result.shape_error(
    "DATA403",
    "invalid Base64",
    """`data` and `blob` must be standard Base64 with padding, not a `data:` URL and not the URL-safe alphabet.""",
    page="2025-11-25/server/tools#image-content",
    valid=(_CALL % _IMAGE, _READ % '{"uri":"a:b","blob":"aGk="}'),
    invalid=(
        _CALL % _IMAGE.replace("aGk=", "data:image/png;base64,aGk="),
        _CALL % _IMAGE.replace("aGk=", "a?b"),
        _READ % '{"uri":"a:b","blob":"aG-_"}',
    ),
)


_PNG = "iVBORw0KGgo="
_WAVE = "UklGRiQAAABXQVZF"
_SIGNATURES = {
    "iVBORw0KGg": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "SUQz": "audio/mpeg",
    "T2dnU": "audio/ogg",
    "ZkxhQ": "audio/flac",
    "JVBERi0": "application/pdf",
    "PHN2Zy": "image/svg+xml",
}
"""The first bytes of files in Base64 → their type."""

_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
"""Bytes 8 to 11 of a RIFF file → its type."""

_REFUSED_TYPES = frozenset(
    ("image/svg+xml", "image/bmp", "image/tiff", "image/x-icon", "image/heic", "image/avif")
)
"""Types of images that the interfaces of models do not take."""


@result.warning(
    "DATA411",
    "image or audio of another type than its mimeType, or of one that models refuse",
    valid=(
        _CALL % _IMAGE,
        _CALL % _IMAGE.replace("aGk=", _PNG),
        _CALL % _IMAGE.replace('"image"', '"audio"').replace("image/png", "audio/wav").replace("aGk=", _WAVE),
    ),
    invalid=(
        _CALL % _IMAGE.replace("aGk=", _PNG).replace("image/png", "image/jpeg"),
        _CALL % _IMAGE.replace("image/png", "image/svg+xml"),
        _CALL % _IMAGE.replace("image/png", "text/plain"),
        _CALL % _IMAGE.replace('"image"', '"audio"').replace("image/png", "audio/wav").replace("aGk=", _PNG),
        _CALL % _IMAGE.replace("aGk=", _WAVE).replace("image/png", "image/webp"),
    ),
    on=EventKind.RESULT,
    about="tools/call",
)
def image_type(event: LintEvent) -> Iterator[Report]:
    """Hosts pass the bytes and the type on to the interface of a model, which refuses the whole request if they differ, and
    takes only PNG, JPEG, GIF and WebP. Name the type of the bytes, and convert other images.
    """
    for image in event.listed("content"):
        data, stated, kind = image.get("data"), image.get("mimeType"), image.get("type")
        if kind not in ("image", "audio") or not isinstance(data, str) or not isinstance(stated, str):
            continue
        if not stated.lower().startswith(f"{kind}/"):
            if "/" in stated:  # DATA404 reports it otherwise.
                yield Report(
                    f"the mimeType of {'an image' if kind == 'image' else 'audio'} is {stated[:60]}", stated
                )
            continue
        actual = _actual_type(data)
        if kind == "audio":
            if actual is not None and not actual.startswith("audio/"):
                yield Report(f"the bytes of audio are {actual}, and its mimeType is {stated}", stated)
        elif actual is not None and actual != stated.lower().replace("image/jpg", "image/jpeg"):
            yield Report(f"the bytes of an image are {actual}, and its mimeType is {stated}", stated)
        elif stated.lower() in _REFUSED_TYPES:
            yield Report(f"an image is {stated}, which interfaces of models refuse", stated)


def _actual_type(data: str) -> str | None:
    """Return the media type that the first bytes of a file in Base64 show; None if they show none."""
    if not data.startswith("UklGR"):
        return next((each for sign, each in _SIGNATURES.items() if data.startswith(sign)), None)
    try:
        return _RIFF.get(b64decode(data[:16])[8:12])
    except ValueError:
        return None  # DATA403 reports it.


result.shape_warning(
    "DATA404",
    "invalid mimeType",
    """A media type has the form `type/subtype`, as in `image/png`. Hosts choose by it how to display content.""",
    valid=(_CALL % _IMAGE, _READ % '{"uri":"a:b","text":"c","mimeType":"text/plain; charset=utf-8"}'),
    invalid=(_CALL % _IMAGE.replace("image/png", "png"), _READ % '{"uri":"a:b","text":"c","mimeType":""}'),
)

result.shape_warning(
    "DATA405",
    "invalid URI",
    """A URI has a scheme and no spaces: `file:///a/b%20c.txt`, not a path. Clients that parse it reject others.""",
    valid=(_LIST % "file:///a/b.txt", _LIST % "note://1"),
    invalid=(_LIST % "/a/b.txt", _READ % '{"uri":"b.txt","text":"c"}', _LIST % "file:///a b.txt"),
)

result.shape_error(
    "DATA406",
    "resource contents with neither text nor blob",
    """The contents of a resource are either `text`, a string, or `blob`, in Base64.""",
    page="2025-11-25/server/resources#resource-contents",
    valid=_READ % '{"uri":"a:b","text":""}',
    invalid=(_READ % '{"uri":"a:b"}', _READ % '{"uri":"a:b","text":{"c":1}}'),
)

result.shape_warning(
    "DATA407",
    "icon that cannot be displayed",
    """`src` must be an https or data URI (clients reject others), `sizes` a list like `["48x48"]` or `["any"]`.""",
    page="2025-11-25/basic#icons",
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

result.shape_warning(
    "DATA408",
    "annotation values out of range",
    """`priority` is between 0 and 1, `audience` lists "user" and "assistant", `lastModified` is an ISO 8601 time.""",
    page="2025-11-25/server/resources#annotations",
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
