"""Members of the protocol are unchanged in their own places, and nowhere else."""

from __future__ import annotations

import json
from base64 import b64encode

import pytest

from mcpspy.core.protocol.extensions import ui
from mcpspy.core.redact import members
from mcpspy.core.redact.redactor import Redactor

TOKEN = "ghp_Ab3dEf6hIj9kLm2nOp5qRs8t"


def is_kept(message: object) -> bool:
    original = json.dumps(message).encode()
    return Redactor(b"k" * 32).message(original) == original


@pytest.mark.parametrize("name", sorted(members.MESSAGE_MEMBERS))
def test_a_member_of_the_message_is_kept(name: bytes) -> None:
    assert is_kept({name.decode(): TOKEN})
    assert is_kept([{name.decode(): TOKEN}])
    assert not is_kept({"result": {"structuredContent": {name.decode(): TOKEN}}})


@pytest.mark.parametrize("name", sorted(members.PROTOCOL_MEMBERS))
def test_a_member_of_the_protocol_is_kept_but_not_in_payloads(name: bytes) -> None:
    for place in ("params", "result"):
        assert is_kept({place: {name.decode(): TOKEN}})
        assert is_kept({place: {"_meta": {name.decode(): TOKEN}}})
        assert is_kept({place: {"tools": [{name.decode(): TOKEN}]}})
        for payload in members.PAYLOADS:
            assert not is_kept({place: {payload.decode(): {name.decode(): TOKEN}}})


@pytest.mark.parametrize("schema", sorted(members.SCHEMAS))
def test_names_are_ignored_in_a_schema_but_tokens_are_not(schema: bytes) -> None:
    assert is_kept({"result": {schema.decode(): {"password": "x", "a": {"secret": ["y"]}}}})
    assert not is_kept({"result": {schema.decode(): {"description": TOKEN}}})


def test_names_of_arguments_and_properties_are_never_redacted() -> None:
    for name in members.NAME_MAPS:
        assert is_kept({"params": {name.decode(): {TOKEN: 1}}})
    assert not is_kept({"params": {"other": {TOKEN: 1}}})


CODE = (
    '<!doctype html><script>a.forceSinglePass===!0&&b();Ion.defaultAccessToken=void 0;u.credentials=c?"same-origin":d;'
    'const password="Enter it"</script>'
)


def page(text: str, *, kind: str = ui.MEDIA_TYPE, is_last: bool = False, member: str = "text") -> object:
    content = {"uri": "ui://a", "mimeType": kind, member: text}
    if is_last:
        content["mimeType"] = content.pop("mimeType")
    return {"result": {"contents": [content]}}


def test_code_in_the_page_of_an_app_is_kept() -> None:
    assert members.PAGE.decode() == ui.MEDIA_TYPE
    for is_last in (False, True):
        assert is_kept(page(CODE, is_last=is_last))
        assert is_kept(page(CODE, kind="text/html; profile=mcp-app", is_last=is_last))
        assert is_kept(page(b64encode(CODE.encode()).decode(), member="blob", is_last=is_last))
        assert not is_kept(page(CODE, kind="text/html", is_last=is_last))


def test_a_token_in_the_page_of_an_app_is_redacted() -> None:
    for is_last in (False, True):
        for text in (f"{CODE}<script>k='{TOKEN}'</script>", f"<script>apiKey='{TOKEN}'</script>"):
            assert not is_kept(page(text, is_last=is_last))
            assert not is_kept(page(b64encode(text.encode()).decode(), member="blob", is_last=is_last))
