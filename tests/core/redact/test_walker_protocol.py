"""Members of the protocol are unchanged in their own places, and nowhere else."""

from __future__ import annotations

import json

import pytest

from mcpspy.core.redact import walker
from mcpspy.core.redact.redactor import Redactor

TOKEN = "ghp_Ab3dEf6hIj9kLm2nOp5qRs8t"


def is_kept(message: object) -> bool:
    original = json.dumps(message).encode()
    return Redactor(b"k" * 32).message(original) == original


@pytest.mark.parametrize("name", sorted(walker.MESSAGE_MEMBERS))
def test_a_member_of_the_message_is_kept(name: bytes) -> None:
    assert is_kept({name.decode(): TOKEN})
    assert is_kept([{name.decode(): TOKEN}])
    assert not is_kept({"result": {"structuredContent": {name.decode(): TOKEN}}})


@pytest.mark.parametrize("name", sorted(walker.PROTOCOL_MEMBERS))
def test_a_member_of_the_protocol_is_kept_but_not_in_payloads(name: bytes) -> None:
    for place in ("params", "result"):
        assert is_kept({place: {name.decode(): TOKEN}})
        assert is_kept({place: {"_meta": {name.decode(): TOKEN}}})
        assert is_kept({place: {"tools": [{name.decode(): TOKEN}]}})
        for payload in walker.PAYLOADS:
            assert not is_kept({place: {payload.decode(): {name.decode(): TOKEN}}})


@pytest.mark.parametrize("schema", sorted(walker.SCHEMAS))
def test_names_are_ignored_in_a_schema_but_tokens_are_not(schema: bytes) -> None:
    assert is_kept({"result": {schema.decode(): {"password": "x", "a": {"secret": ["y"]}}}})
    assert not is_kept({"result": {schema.decode(): {"description": TOKEN}}})


def test_names_of_arguments_and_properties_are_never_redacted() -> None:
    for name in walker.NAME_MAPS:
        assert is_kept({"params": {name.decode(): {TOKEN: 1}}})
    assert not is_kept({"params": {"other": {TOKEN: 1}}})
