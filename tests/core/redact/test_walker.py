"""Edits of the bytes of a message, and rejection of invalid JSON."""

from __future__ import annotations

import pytest

from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.walker import ByteEdit, InvalidJson, JsonWalker, apply

RULES = RedactionRules()


def edits(data: bytes, *, note: bool = False) -> list[ByteEdit]:
    return JsonWalker(RULES, lambda _: b"#", note=note).edits(data)


def test_an_edit_has_its_pointer_rule_and_span() -> None:
    data = b'{"params": {"a": [1, {"password" : "x"}], "token":"f00ba4c1d2"}}'
    first, second = edits(data)
    assert first == ByteEdit(36, 37, b"#", "key", ("params", "a", "1", "password"))
    assert (second.rule, second.pointer) == ("key", ("params", "token"))
    assert apply(data, [first, second]) == b'{"params": {"a": [1, {"password" : "#"}], "token":"#"}}'


def test_a_number_under_the_name_of_a_secret_is_secret() -> None:
    data = b'[{"name":"password","value":12},{"name":"size","value":12}]'
    assert apply(data, edits(data)) == b'[{"name":"password","value":"#"},{"name":"size","value":12}]'


def test_members_that_describe_an_object_of_secrets_are_not_secret() -> None:
    data = b'{"password":{"hash":"x1","type":"bcrypt","rounds":["y1"],"label":"mine"}}'
    assert apply(data, edits(data)) == data.replace(b"x1", b"#").replace(b"y1", b"#")


def test_a_scheme_stays_before_its_credential() -> None:
    data = b'{"Authorization":"Bearer abc","Proxy-Authorization":"abc"}'
    assert apply(data, edits(data)) == b'{"Authorization":"Bearer #","Proxy-Authorization":"#"}'


def test_a_value_that_is_secret_twice_is_replaced_once() -> None:
    data = b'{"value":"ghp_Ab3dEf6hIj9kLm2nOp5qRs8t and more","name":"api_key"}'
    assert apply(data, edits(data)) == b'{"value":"#","name":"api_key"}'


def test_a_secret_in_a_key_is_not_reported_in_a_pointer() -> None:
    (key, value) = edits(b'{"ghp_Ab3dEf6hIj9kLm2nOp5qRs8t":{"password":"x"}}')
    assert key.pointer == ("*",)
    assert value.pointer == ("*", "password")


def test_a_number_becomes_a_string_in_json_and_in_a_string_of_it() -> None:
    data = rb'{"password":-1.5e3,"a":"{\"password\":12}","secret":null}'
    assert apply(data, edits(data)) == rb'{"password":"#","a":"{\"password\":\"#\"}","secret":null}'


def test_members_of_a_note_are_text_except_those_of_the_format() -> None:
    data = b'{"t":0.1,"note":"stderr","id":"ghp_Ab3dEf6hIj9kLm2nOp5qRs8t","text":"PASSWORD=x1"}'
    assert apply(data, edits(data, note=True)) == data.replace(b"x1", b"#")


@pytest.mark.parametrize(
    "secret", [b"ghp_Ab3dEf6hIj9kLm2nOp5qRs8t", b"sk%2Dant-api03-16QmtsL4F28GzL2cEpVZzAQlxJ4SXR"]
)
def test_a_token_in_the_path_of_a_request_is_redacted_but_not_in_the_path_of_a_resource(
    secret: bytes,
) -> None:
    data = b'{"t":0.1,"note":"http","path":"/%b/mcp","status":200}' % secret
    assert apply(data, edits(data, note=True)) == data.replace(secret, b"#")
    resource = b'{"method":"resources/read","params":{"uri":"docs://%b/a"}}' % secret
    assert edits(resource) == []


@pytest.mark.parametrize(
    "data",
    [
        b'{"password":"x"', b'{"password":"x"]', b'{"password":"x', b'{"a":password}', b'{"password":"x"}}', b'{} "secret"',
        b'["password":"x"]', b'"a":"password"', b"\xff password",
    ],
)  # fmt: skip
def test_invalid_json_is_rejected(data: bytes) -> None:
    with pytest.raises(InvalidJson):
        edits(data)


def test_no_depth_is_too_deep() -> None:
    data = b'{"password":' * 5_000 + b'"x"' + b"}" * 5_000
    assert [edit[:3] for edit in edits(data)] == [(60_001, 60_002, b"#")]
