"""Paths into a message, and the values they reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.query.parser import QueryError, parse
from tests.core.query.querying import Row

CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "Echo",
        "arguments": {"path": "/a/notes.txt", "n": 10, "deep": {"list": [1, {"x": "y"}, None]}, "on": True},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "a b": 1.5},
        "items": [{"id": "7"}, {"id": 8}],
        "empty": "",
    },
}
REQUEST = Row(data=json.dumps(CALL).encode())


@pytest.mark.parametrize(
    "query",
    [
        "params.name=Echo",
        ".params.name:echo",
        'params.name="Echo"',
        "params.arguments.path:*.txt",
        "params.arguments.path:notes",
        "params.arguments:notes",
        'params.arguments:"\\"n\\":10"',
        "params:*",
        "params.empty:*",
        'params.empty=""',
        "params.arguments.n>5 params.arguments.n < 10.5 params.arguments.n>=1e1",
        "params.arguments.n=10",
        "params.arguments.n=10.0",
        "params.arguments.n:10",
        "params.arguments.n:1*",
        "params.arguments.on=true params.arguments.on:TRUE",
        "params.arguments.deep.list[2]=null",
        "params.arguments.deep.list[-1]:null",
        "params.arguments.deep.list[1].x=y",
        'params.arguments.deep.list[1]={"x":"y"}',
        "params.arguments.deep.list[].x=y",
        "params.arguments[].list[0]=1",
        "params.items[].id:7 params.items[].id:8",
        'params.items[0].id="7"',
        'params._meta["io.modelcontextprotocol/protocolVersion"]=2026-07-28',
        'params._meta["a b"]>1',
        "params.name!=echo",
        "-params.nothing:*",
        "params.name:echo|params.name:other",
        "(params.name=Echo)",
    ],
)
def test_a_path_finds_the_values_it_reaches(query: str) -> None:
    assert parse(query).matches(REQUEST)
    assert parse(query).reads_text


@pytest.mark.parametrize(
    "query",
    [
        "params.name=echo",
        "params.Name:echo",
        "params.arguments.n:1",
        "params.arguments.n>10",
        'params.arguments.n="10"',
        "params.arguments.on=1",
        "params.arguments.on>0",
        "params.items[0].id=7",
        "params.items[2]:*",
        "params.items.id:7",
        "params.items[-3]:*",
        "params.name[0]:e",
        "params.nothing:*",
        "params.name!=Echo",
        "result:*",
        "error.code:*",
    ],
)
def test_a_path_ignores_other_values(query: str) -> None:
    assert not parse(query).matches(REQUEST)


def test_params_of_a_response_are_those_of_its_request() -> None:
    answer = Row(
        data=b'{"result":{"isError":true,"content":[{"text":"no such file"}]}}', request=REQUEST.data
    )

    assert parse("params.name=Echo result.isError:true result.content[].text:file").matches(answer)


@pytest.mark.parametrize(
    "data",
    [
        rb'{"params":{"\u006eame":"echo"}}',
        b'{"params":{"name":"echo","n":12345678901234567890123}}',
        b'{"params":{"name":"echo","x":NaN}}',
        b' {"params" : {"name" : "echo"}}',
    ],
)
def test_a_message_with_another_spelling_is_read_alike(data: bytes) -> None:
    assert parse("params.name=echo").matches(Row(data=data))


@pytest.mark.parametrize(
    "data", [b"", b"no JSON", b"[1]", b"{}", b'{"params":null}', b'{"params":"name"}', b"\xff"]
)
def test_a_message_without_the_path_does_not_match(data: bytes) -> None:
    assert not parse("params.name:*").matches(Row(data=data))


@pytest.mark.parametrize(
    ("text", "message", "underlined"),
    [
        ("a params.n>x", "x is not a number (example: params.n>5)", "x"),
        ("params.n>5kb", "5kb is not a number (example: params.n>5)", "5kb"),
        ("params.n>00", "00 is not a number (example: params.n>5)", "00"),
        ('params.n>"5"', '"5" is not a number (example: params.n>5)', '"5"'),
        ("params.n=", "expected a value after 'params.n='", "params.n="),
        ("a params.items[x]=1", 'bad step: use .name, ["any name"], [0], [-1] or []', "[x]=1"),
        ("a params.items[-]=1", 'bad step: use .name, ["any name"], [0], [-1] or []', "[-]=1"),
        ("params[1234567890]=1", 'bad step: use .name, ["any name"], [0], [-1] or []', "[1234567890]=1"),
        ("params..n=1", 'bad step: use .name, ["any name"], [0], [-1] or []', "..n=1"),
        (
            "param.name=x",
            "unknown member param: did you mean params? Put a word that contains : or = in quotes",
            "param",
        ),
    ],
)
def test_an_error_is_one_line_with_a_position(text: str, message: str, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)

    assert str(caught.value) == message
    assert text[caught.value.start : caught.value.end] == underlined


JSON: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=3), st.booleans())
def test_any_member_is_found_under_its_quoted_name(params: dict[str, Any], ascii_only: bool) -> None:
    row = Row(data=json.dumps({"params": params}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))
    for name, value in params.items():
        path = 'params["' + name.replace("\\", "\\\\").replace('"', '\\"') + '"]'

        assert parse(f"{path}:*").matches(row)
        if isinstance(value, int | float):
            assert parse(f"{path}={json.dumps(value)}").matches(row)
            assert isinstance(value, bool) or parse(f"{path}>={json.dumps(value)}").matches(row)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_a_name_that_only_some_parsers_take_for_a_number_is_a_text(name: str) -> None:
    row = Row(data=json.dumps({"result": {"n": name}}).encode())
    assert parse(f"result.n={name}").matches(row)
    assert not parse("result.n=1").matches(row)
