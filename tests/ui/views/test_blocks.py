"""The text view shows the content of a message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.views.blocks import JSON, TEXT, blocks
from mcpspy.ui.views.content import MAX_CONTENT
from tests.ui.tui.detail.test_document_json_path import resolved


def said(message: Any) -> list[tuple[str, str]]:
    """Return the label and the text of each block."""
    return [
        (" ".join(text for text, _ in block.label), block.text.decode())
        for block in blocks(json.dumps(message).encode())
    ]


def result(*content: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": {"content": list(content), **more}}


def test_text_is_text_with_its_newlines() -> None:
    assert said(result({"type": "text", "text": "# one\ntwo"})) == [("text", "# one\ntwo")]


def test_json_in_a_text_is_formatted() -> None:
    (block,) = blocks(json.dumps(result({"type": "text", "text": '{"a": [1]}'})).encode())

    assert (block.kind, block.is_nested, block.text) == (JSON, True, b'{"a": [1]}')
    assert block.pointer == "/result/content/0/text"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({"type": "image", "mimeType": "image/gif", "data": "R0lGODlhgALgAQ=="}, "image · image/gif, 10 B, 640x480"),
        ({"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}, "audio · audio/wav, 3 B"),
        ({"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA"}}, "a://b · unknown type, 3 B"),
        ({"type": "resource_link", "uri": "a://b", "name": "c"}, "link · a://b · c"),
    ],
)  # fmt: skip
def test_binary_content_is_described_by_type_and_size(item: Any, words: str) -> None:
    assert said(result(item)) == [(words, "")]


def test_an_embedded_resource_is_its_text() -> None:
    resource = {"uri": "file:///x", "mimeType": "text/plain", "text": "inside"}

    assert said(result({"type": "resource", "resource": resource})) == [("file:///x · text/plain", "inside")]
    assert said({"result": {"contents": [resource]}}) == [("file:///x · text/plain", "inside")]


def test_structured_content_and_tool_errors_are_shown() -> None:
    rows = {"rows": [{"id": 1, "name": "a name that is long enough"}, {"id": 2, "name": "b"}]}

    assert said(result(isError=True, structuredContent=rows)) == [
        ("tool error", ""),
        ("structuredContent:", json.dumps(rows)),
    ]


def test_an_error_is_its_code_and_message() -> None:
    assert said({"id": 1, "error": {"code": -32602, "message": "bad\nthing", "data": {"a": 1}}}) == [
        ("error -32602 invalid params", ""),
        ("message", "bad\nthing"),
        ('data: {"a": 1}', ""),
    ]


def test_a_request_is_its_method_and_arguments() -> None:
    params = {"name": "echo", "arguments": {"q": "one\ntwo", "n": 5, "x/y": None}}
    found = blocks(json.dumps({"id": 1, "method": "tools/call", "params": params}).encode())

    assert [(block.label[0][0], block.text, block.pointer) for block in found] == [
        ("tools/call", b"", "/method"),
        ("name: echo", b"", "/params/name"),
        ("arguments", b"", "/params/arguments"),
        ("q", b"one\ntwo", "/params/arguments/q"),
        ("n: 5", b"", "/params/arguments/n"),
        ("x/y: null", b"", "/params/arguments/x~1y"),
    ]


def test_messages_of_a_prompt_have_roles() -> None:
    messages = [{"role": "user", "content": {"type": "text", "text": "hello"}}]

    assert said({"result": {"description": "d", "messages": messages}}) == [
        ("user:", ""), ("text", "hello"), ("description: d", "")]  # fmt: skip


def test_an_unknown_block_stays_json() -> None:
    assert said(result({"type": "new", "x": 1})) == [("new", '{"type": "new", "x": 1}')]


def test_bytes_that_are_not_utf8_are_shown_escaped() -> None:
    found = blocks(b'{"result":{"a":"\xff\\n","b":["\xc3"],"content":[{"type":"text","text":"\xe9t\xe9"}]}}')

    assert [(" ".join(text for text, _ in block.label), block.text) for block in found] == [
        ("text", rb"\xe9t\xe9"),
        ("a", b"\\xff\n"),
        (r'b: ["\xc3"]', b""),
    ]


def test_invalid_json_is_text() -> None:
    (block,) = blocks(b"DEBUG: \xff")

    assert (block.kind, block.text) == (TEXT, b"DEBUG: \xff")


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=70),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                "type text data blob content contents messages role resource uri isError arguments".split()
            )
            | st.just("a"),
            inner | st.sampled_from("text image resource audio".split()),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(["params", "result", "error"]), VALUES)
def test_no_message_raises_and_every_pointer_leads_somewhere(name: str, value: Any) -> None:
    message = {name: value}
    for block in blocks(json.dumps(message).encode()):
        resolved(message, block.pointer)
        assert all("\x1b" not in text for text, _ in block.label)


def test_content_that_is_not_in_a_list_is_shown() -> None:
    assert said({"result": {"content": {"type": "text", "text": "one"}}}) == [("text", "one")]
    message = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}
    assert said({"result": {"messages": [message]}}) == [("user:", ""), ("text", "a"), ("text", "b")]
    assert [words for words, _ in said(result("bare", 7))] == ["bare", "7"]


def test_a_long_name_of_a_resource_is_cut() -> None:
    ((label, text),) = said(
        result({"type": "resource_link", "uri": f"a://{'x' * 9000}", "name": "\\" * 9000})
    )
    assert label.startswith("link · a://xxx")
    assert len(label) < 500
    assert text == ""


def test_content_that_is_too_large_for_a_view_has_its_size() -> None:
    encoded = "A" * (MAX_CONTENT * 4 // 3 + 8)
    item = {"type": "image", "mimeType": "image/png", "data": encoded}
    (block,) = blocks(json.dumps(result(item)).encode())
    assert block.content is None
    assert "image/png, " in block.label[0][0]
