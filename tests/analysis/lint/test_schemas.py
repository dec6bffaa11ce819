"""JSON Schemas: validation, validity, and that nothing is fetched."""

from __future__ import annotations

import http.server
import threading
from typing import Any

import pytest

from mcpspy.analysis.lint.schemas import KEPT, SchemaCache, outside_references

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def why(schema: Any) -> str | None:
    return SchemaCache().check(schema).why


@pytest.mark.parametrize(
    "schema",
    [
        {},
        True,
        NUMBER,
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{}]},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}]},
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"$schema": "https://example.com/a-dialect-of-ours", "type": "whatever"},
        {"$ref": "https://example.com/x.json"},
    ],
    ids=["empty", "true", "plain", "2020-12", "draft-07", "itself", "each other", "dialect", "outside"],
)
def test_valid_and_uncheckable_schemas_are_not_reported(schema: Any) -> None:
    assert why(schema) is None


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "int"}, '/type: "int"'),
        ({"required": "n"}, "/required: "),
        ({"properties": {"a": {"minimum": "1"}}}, "/properties/a/minimum: "),
        ({"pattern": "("}, "/pattern: "),
        ({"$ref": "#/nowhere"}, "/nowhere"),
        ({"$schema": 7}, "$schema is not a string"),
        ([], "is not of type"),
    ],
    ids=["type", "required", "inside", "pattern", "reference", "dialect", "list"],
)
def test_an_invalid_schema_is_reported_with_its_pointer(schema: Any, words: str) -> None:
    assert words in (why(schema) or "")


def test_a_schema_violation_is_reported_with_its_pointer() -> None:
    checked = SchemaCache().check(NUMBER)

    assert checked.breaches({"n": 1}) == []
    assert checked.breaches({"n": "1"}) == ['/n: "1" is not of type "integer"']
    assert checked.breaches({}) == ['"n" is a required property']


def test_drafts_differ() -> None:
    lists = {"items": [{"type": "integer"}]}
    old = SchemaCache().check({"$schema": "http://json-schema.org/draft-07/schema#", **lists})
    new = SchemaCache().check({"prefixItems": [{"type": "integer"}]})

    assert old.breaches(["a"])
    assert new.breaches(["a"])
    assert why(lists)


def test_a_schema_is_read_once() -> None:
    schemas = SchemaCache()

    assert schemas.check(NUMBER).validator is schemas.check(dict(reversed(NUMBER.items()))).validator


def test_nothing_is_fetched() -> None:
    requested = []

    class Trap(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requested.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

    with http.server.HTTPServer(("127.0.0.1", 0), Trap) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        reference = f"http://127.0.0.1:{server.server_port}/x.json"
        checked = SchemaCache().check({"properties": {"a": {"$ref": reference}}})
        server.shutdown()

    assert requested == []
    assert checked.validator is None
    assert outside_references({"anyOf": [{"$ref": reference}]}) == [reference]
    assert outside_references({"$ref": "#/x"}) == []


@pytest.mark.parametrize(
    "value", ["\ud800", {"n": "\ud800"}, float("nan"), 10**400], ids=["lone", "within", "nan", "long"]
)
def test_a_value_that_json_cannot_represent_does_not_raise(value: Any) -> None:
    for schema in (NUMBER, {"type": "string", "pattern": "^(a+)+$"}, {"multipleOf": 3}):
        SchemaCache().check(schema).breaches(value)


def test_a_schema_of_many_levels_does_not_raise() -> None:
    for levels in (120, 250, 5000):
        schema: dict[str, Any] = {}
        for _ in range(levels):
            schema = {"not": schema}
        assert why(schema) is None


def test_a_schema_that_is_too_slow_is_not_checked() -> None:
    def doubling(levels: int) -> Any:
        each = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(levels)}
        return {"$defs": each | {f"a{levels}": {"type": "string"}}, "$ref": "#/$defs/a0"}

    deep: Any = {"type": "string"}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    schemas = SchemaCache()

    assert schemas.check(doubling(4)).breaches(1)
    assert schemas.check(doubling(40)).validator is None
    assert schemas.check(deep).validator is None
    assert schemas.check({"enum": ["x" * 300_000]}).validator is None
    schemas.check({"pattern": "^(a+)+$"}).breaches("a" * 5000 + "!")


def test_references_to_items_and_anchors_count_too() -> None:
    nodes: Any = [{"allOf": [{"$ref": f"#/prefixItems/{n + 1}"}] * 2} for n in range(40)]
    schemas = SchemaCache()

    assert (
        schemas.check({"prefixItems": [*nodes[:3], *[True] * 37], "$ref": "#/prefixItems/0"}).validator
        is not None
    )
    assert schemas.check({"prefixItems": [*nodes, True], "$ref": "#/prefixItems/0"}).validator is None
    named = schemas.check({"$anchor": "self", "properties": {"a": {"$ref": "#self"}}, "type": "object"})
    assert named.fan == 1
    assert named.breaches({"a": 1})


def test_the_oldest_of_many_schemas_is_checked_again() -> None:
    schemas = SchemaCache()
    first, *_ = checked = [schemas.check({"minimum": number}).validator for number in range(KEPT + 1)]

    assert schemas.check({"minimum": KEPT}).validator is checked[-1]
    assert schemas.check({"minimum": 0}).validator is not first


def test_a_value_that_is_too_slow_is_not_checked() -> None:
    forked = SchemaCache().check(
        {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, "b": {"type": "null"}}}
    )
    value: Any = {"b": 1}
    assert forked.breaches({"a": value})
    for _ in range(100):
        value = {"a": value}
    assert forked.breaches(value) == []

    tree = SchemaCache().check(
        {"properties": {"children": {"items": {"$ref": "#"}}, "name": {"type": "string"}}}
    )
    grown: Any = {"name": 1}
    for _ in range(40):
        grown = {"children": [grown]}
    assert tree.breaches(grown)


def test_a_value_that_is_not_json_breaches_nothing() -> None:
    checked = SchemaCache().check({"type": "object", "properties": {"mean": {"type": ["number", "null"]}}})

    assert checked.breaches({"mean": float("nan")}) == []
    assert checked.breaches({"mean": "a"}) != []
