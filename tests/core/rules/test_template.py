"""Template expressions filled from the message."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.rules.template import filled, uses_request

MESSAGE = {"id": 7, "params": {"name": "echo", "arguments": {"n": 1.5, "list": ["a", {"b": None}]}}}
REQUEST = {"params": {"name": "asked"}}


def lookup(part: str) -> Any:
    return {"message": MESSAGE, "request": REQUEST}[part]


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        ("{{params.name}}", "echo"),
        ("no {{ params.name }} today", "no echo today"),
        ("{{params.arguments}}", MESSAGE["params"]["arguments"]),  # type: ignore[index]
        ("{{params.arguments.n}}", 1.5),
        ("{{params.arguments.list.1.b}}", None),
        ("is {{params.arguments.list}}", 'is ["a",{"b":null}]'),
        ("{{/params/arguments/list/0}}", "a"),
        ("{{request.params.name}} by {{id}}", "asked by 7"),
        ("{{request}}", REQUEST),
        ({"a": ["{{id}}", {"{{params.name}}": 1}]}, {"a": [7, {"echo": 1}]}),
        ("{no place}", "{no place}"),
        (12, 12),
    ],
)
def test_an_expression_becomes_its_value(value: Any, meant: Any) -> None:
    assert filled(value, lookup) == meant


@pytest.mark.parametrize(
    "value",
    [
        "{{params.title}}",
        "a {{params.name.x}} b",
        "{{params.arguments.list.9}}",
        "{{/a~2}}",
        "{{result}}",
        "{{}}",
    ],
)
def test_an_expression_without_a_value_stays_as_written(value: str) -> None:
    assert filled(value, lookup) == value


def test_values_without_expressions_are_unchanged() -> None:
    assert filled({"a": [{"b": "{{id}}"}]}, lookup) == {"a": [{"b": 7}]}
    assert filled({"{{id}}": 1}, lookup) == {7: 1}
    assert filled({"a": ["{id}", 1, None]}, lookup) == {"a": ["{id}", 1, None]}


def test_expressions_that_use_the_request_are_found() -> None:
    assert uses_request([{"x": "a {{ request.id }}"}])
    assert uses_request({"{{request}}": 1})
    assert not uses_request(["{{requests.id}}", "{{params.request}}", "request", 1])
