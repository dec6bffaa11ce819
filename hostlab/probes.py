"""The probes: tools, instructions and results with one oddity each, and the text in which a cut can be seen."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

Json: TypeAlias = dict[str, Any]

TEXT = {"text": {"type": "string", "description": "A text."}}
OBJECT = {"type": "object", "properties": TEXT}

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""An image of one pixel."""


class Probe(NamedTuple):
    """One oddity."""

    id: str
    about: str
    tools: tuple[dict[str, Any], ...]


def mark(probe: str) -> str:
    """Return the text by which a tool's description names its probe, whatever becomes of the tool's name."""
    return f"probe {probe};"


def counted(length: int, start: str = "") -> str:
    """Return a text of so many characters in which every number is the position of its first digit."""
    return (start + "".join(f"{position:07d} " for position in range(len(start), length, 8)))[:length]


def _tool(probe: str, name: str | None = None, **parts: Any) -> dict[str, Any]:
    tool = {
        "name": probe.replace("-", "_") if name is None else name,
        "description": mark(probe),
        "inputSchema": OBJECT,
    }
    return {key: value for key, value in {**tool, **parts}.items() if value is not ...}


def _one(probe: str, about: str, name: str | None = None, **parts: Any) -> Probe:
    return Probe(probe, about, (_tool(probe, name, **parts),))


def _property(probe: str, about: str, schema: Any, name: str = "value", root: Json | None = None) -> Probe:
    """Return a probe whose inputSchema has one property."""
    return _one(probe, about, inputSchema={"type": "object", "properties": {name: schema}, **(root or {})})


LENGTHS = (40, *range(48, 68), 100, 115, 116, 117, 118, 128, 129, 200)

_NUMBER: dict[str, Any] = {"type": "object", "properties": {"number": {"type": "integer"}}}
_STRING: dict[str, Any] = {"type": "object", "properties": {"string": {"type": "string"}}}
_DRAFTS = {
    "draft-04": "http://json-schema.org/draft-04/schema#",
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "unknown": "https://example.com/schema",
}


def _nested(depth: int) -> dict[str, Any]:
    return (
        {"type": "string"} if not depth else {"type": "object", "properties": {"inner": _nested(depth - 1)}}
    )


CONTROL = _tool("control")
"""A tool without an oddity, in every list: if it is missing, the host drops the tools of the server."""

GROWN = _tool("grown")
"""A tool that the list has after a call of `grow`."""

PROBES = (
    *(_one(f"name-{n}", f"name of {n} characters", f"n{n}_".ljust(n, "x")) for n in LENGTHS),
    _one("name-dot", "name with a dot", "name.dot"),
    _one("name-slash", "name with a slash", "name/slash"),
    _one("name-space", "name with a space", "name space"),
    _one("name-colon", "name with a colon", "name:colon"),
    _one("name-hyphen", "name with a hyphen", "name-hyphen"),
    _one("name-double", "name with two underscores", "name__double"),
    _one("name-digit", "name that begins with a digit", "1st"),
    _one("name-upper", "name in upper case", "UPPER"),
    _one("name-unicode", "name with letters beyond ASCII", "wörter"),
    _one("name-empty", "empty name", ""),
    Probe("name-twice", "two tools of one name", (_tool("name-twice"), _tool("name-twice", title="Second"))),
    Probe(
        "name-collision",
        "two names that differ in one such character",
        (_tool("name-collision", "col.lision"), _tool("name-collision", "col/lision")),
    ),
    _one(
        "description-5000",
        "description of 5,000 characters",
        description=counted(5000, mark("description-5000") + " "),
    ),
    _one(
        "description-50000",
        "description of 50,000 characters",
        description=counted(50000, mark("description-50000") + " "),
    ),
    _one("description-empty", "empty description", description=""),
    _one("description-missing", "no description", description=...),
    _one("title", "title", title="A separate title"),
    _one("annotations", "annotations", annotations={"readOnlyHint": True, "title": "A title in annotations"}),
    _one("output-schema", "outputSchema", outputSchema=_NUMBER),
    _one(
        "output-no-type",
        "outputSchema without `type`",
        outputSchema={"properties": {"number": {"type": "integer"}}},
    ),
    _one(
        "output-array",
        'outputSchema of `"type":"array"`',
        outputSchema={"type": "array", "items": {"type": "string"}},
    ),
    _one("root-anyOf", "`anyOf` in the root", inputSchema={"type": "object", "anyOf": [_NUMBER, _STRING]}),
    _one("root-oneOf", "`oneOf` in the root", inputSchema={"type": "object", "oneOf": [_NUMBER, _STRING]}),
    _one("root-allOf", "`allOf` in the root", inputSchema={"type": "object", "allOf": [_NUMBER, _STRING]}),
    _one("root-anyOf-only", "`anyOf` in the root, no `type`", inputSchema={"anyOf": [_NUMBER, _STRING]}),
    _one(
        "root-ref",
        "`$ref` in the root",
        inputSchema={"type": "object", "$ref": "#/$defs/a", "$defs": {"a": _NUMBER}},
    ),
    _one("root-not", "`not` in the root", inputSchema={"type": "object", "not": {"required": ["a"]}}),
    _one(
        "root-if",
        "`if` and `then` in the root",
        inputSchema={**OBJECT, "if": {"required": ["a"]}, "then": {"required": ["b"]}},
    ),
    _one("root-enum", "`enum` in the root", inputSchema={"type": "object", "enum": [{"a": 1}]}),
    _one("root-no-type", "no `type` in the root", inputSchema={"properties": {"a": {"type": "string"}}}),
    _one("root-no-properties", "no `properties`", inputSchema={"type": "object"}),
    _one("root-empty", "`{}` as inputSchema", inputSchema={}),
    _one(
        "root-array", 'root of `"type":"array"`', inputSchema={"type": "array", "items": {"type": "string"}}
    ),
    _one("root-string", 'root of `"type":"string"`', inputSchema={"type": "string"}),
    _one("root-type-list", 'root of `"type":["object","null"]`', inputSchema={"type": ["object", "null"]}),
    _one("root-bad-type", "unknown `type` in the root", inputSchema={"type": "thing"}),
    _one("schema-missing", "no inputSchema", inputSchema=...),
    _one("schema-null", "inputSchema that is `null`", inputSchema=None),
    _one("schema-true", "inputSchema that is `true`", inputSchema=True),
    _one("schema-list", "inputSchema that is a list", inputSchema=[]),
    *(
        _one(f"draft-{key}", f"`$schema` of {key}", inputSchema={**OBJECT, "$schema": url})
        for key, url in _DRAFTS.items()
    ),
    _one("closed", "`additionalProperties` false", inputSchema={**OBJECT, "additionalProperties": False}),
    _property("nested-bad-type", "property of an unknown `type`", {"type": "int"}),
    _property("nested-any", "property that is `{}`", {}),
    _property("nested-true", "property that is `true`", True),
    _property("nested-null", "property that is `null`", None),
    _property("nested-type-list", "property with a list of types", {"type": ["string", "null"]}),
    _property("nested-anyOf", "property with `anyOf`", {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    _property("nested-oneOf", "property with `oneOf`", {"oneOf": [{"type": "string"}, {"type": "number"}]}),
    _property("nested-allOf", "property with `allOf`", {"allOf": [{"type": "string"}, {"minLength": 1}]}),
    _property("nested-not", "property with `not`", {"not": {"type": "string"}}),
    _property("nested-const", "property with `const`", {"const": "a"}),
    _property("nested-enum-numbers", "`enum` of numbers", {"type": "integer", "enum": [1, 2]}),
    _property("nested-ref", "local `$ref`", {"$ref": "#/$defs/a"}, root={"$defs": {"a": {"type": "string"}}}),
    _property(
        "nested-definitions",
        "`$ref` into `definitions`",
        {"$ref": "#/definitions/a"},
        root={"definitions": {"a": {"type": "string"}}},
    ),
    _property("nested-dangling", "`$ref` without its target", {"$ref": "#/$defs/missing"}),
    _property("nested-external", "external `$ref`", {"$ref": "https://example.com/a.json"}),
    _property(
        "nested-recursive",
        "recursive `$ref`",
        {"$ref": "#/$defs/a"},
        root={"$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}}}},
    ),
    _property("nested-no-items", "array without `items`", {"type": "array"}),
    _property("nested-tuple", "`items` that is a list", {"type": "array", "items": [{"type": "string"}]}),
    _property("nested-prefixItems", "`prefixItems`", {"type": "array", "prefixItems": [{"type": "string"}]}),
    _property("nested-format", "unknown `format`", {"type": "string", "format": "colour"}),
    _property(
        "nested-limits",
        "`minLength`, `pattern`, `default`",
        {"type": "string", "minLength": 1, "pattern": "a+", "default": "a"},
    ),
    _property(
        "nested-exclusive",
        "`exclusiveMinimum` that is a boolean",
        {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    ),
    _property(
        "nested-patternProperties",
        "`patternProperties`",
        {"type": "object", "patternProperties": {"^a": {"type": "string"}}},
    ),
    _property(
        "nested-if", "`if` and `then`", {"type": "string", "if": {"minLength": 1}, "then": {"maxLength": 5}}
    ),
    _property(
        "nested-description",
        "property's description of 5,000 characters",
        {"type": "string", "description": counted(5000)},
    ),
    _property("nested-deep", "12 levels of objects", _nested(12)),
    _property("property-dot", "property with a dot in its name", {"type": "string"}, "a.b"),
    _property("property-space", "property with a space in its name", {"type": "string"}, "a b"),
    _property("property-dollar", "property with a dollar sign in its name", {"type": "string"}, "$a"),
    _property("property-65", "property with a name of 65 characters", {"type": "string"}, "p" * 65),
    _property(
        "property-unicode", "property with letters beyond ASCII in its name", {"type": "string"}, "wört"
    ),
    _one(
        "property-many",
        "300 properties",
        inputSchema={"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(300)}},
    ),
    Probe("tools-300", "300 tools", tuple(_tool("tools-300", f"many_{n}") for n in range(300))),
)

INSTRUCTIONS = counted(20000, "probe instructions; ")


SIZES = (10_000, 20_000, 30_000, 40_000, 50_000, 75_000, 100_000, 150_000, 200_000, 400_000)
"""Characters of the results that are texts."""


def _text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


_RESULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "grow": ("notifications/tools/list_changed after the result", {"content": [_text("grown now")]}),
    **{
        f"text_{size}": (f"text of {size:,} characters", {"content": [_text(counted(size, "whole "))]})
        for size in SIZES
    },
    "lines_400000": (
        "text of 400,000 characters in lines",
        {"content": [_text(counted(400_000, "lined ").replace(" ", "\n"))]},
    ),
    "texts": ("two texts", {"content": [_text("first text"), _text("second text")]}),
    "image": ("image", {"content": [{"type": "image", "data": PNG, "mimeType": "image/png"}]}),
    "audio": ("audio", {"content": [{"type": "audio", "data": "UklGRiQAAABXQVZF", "mimeType": "audio/wav"}]}),
    "link": (
        "resource link",
        {
            "content": [
                {
                    "type": "resource_link",
                    "uri": "file:///linked.txt",
                    "name": "linked",
                    "description": "a link",
                }
            ]
        },
    ),
    "resource": (
        "embedded resource with text",
        {
            "content": [
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a.txt", "mimeType": "text/plain", "text": "embedded text"},
                }
            ]
        },
    ),
    "blob": (
        "embedded resource with a blob",
        {
            "content": [
                {
                    "type": "resource",
                    "resource": {
                        "uri": "file:///a.bin",
                        "mimeType": "application/octet-stream",
                        "blob": "YmxvYmJsb2I=",
                    },
                }
            ]
        },
    ),
    "structured": (
        "structuredContent beside text",
        {"content": [_text("text beside it")], "structuredContent": {"structured": "beside text"}},
    ),
    "structured_only": (
        "structuredContent alone",
        {"content": [], "structuredContent": {"structured": "alone"}},
    ),
    "audience": (
        "text for the user only",
        {"content": [_text("for the user", annotations={"audience": ["user"]})]},
    ),
    "failed": ("text with `isError`", {"content": [_text("the failure")], "isError": True}),
    "unknown": ("content of an unknown type", {"content": [{"type": "hologram", "text": "unknown content"}]}),
    "nothing": ("no content", {"content": []}),
}

SHOWN: dict[str, tuple[str, ...]] = {
    "texts": ("first text", "second text"),
    "image": (PNG,),
    "audio": ("UklGRiQAAABXQVZF",),
    "link": ("file:///linked.txt", "a link"),
    "resource": ("embedded text", "file:///a.txt"),
    "blob": ("YmxvYmJsb2I=",),
    "structured": ("text beside it", "structured"),
    "structured_only": ("alone",),
    "audience": ("for the user",),
    "failed": ("the failure",),
    "unknown": ("unknown content",),
}
"""Parts of the results that the model should see."""

RESULTS = {name: result for name, (_, result) in _RESULTS.items()}

RESULT_TOOLS = {name: about for name, (about, _) in _RESULTS.items()}

CALLS = tuple(_one(name.replace("_", "-"), about, name) for name, about in RESULT_TOOLS.items())
"""The tools whose results are probes."""
