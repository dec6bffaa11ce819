"""A plain line is decoded as the lenient readers read it; other lines are rejected."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, DecodeError, Raw

from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
)
from mcpspy.core.protocol.plain_line import (
    SUBJECTS,
    PlainMessage,
    PlainParams,
    decode_message,
    plain_id,
    plain_line_raw,
    plain_message,
)
from mcpspy.core.protocol.spec import METHODS
from mcpspy.core.recording.decode import Entry, Frame, read_entry
from tests.core.session.test_index import ENTRY, RECORDINGS, line_of

CALL = (
    b'{"t":1.5,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call",'
    b'"params":{"name":"echo","_meta":{"progressToken":7}}}}'
)
RESULT = b'{"t":2.5,"from":"server","msg":{"jsonrpc":"2.0","id":1,"result":{"isError":true,"x":[1]}}}'


def plain_line(line: bytes) -> PlainMessage[PlainParams, int] | None:
    """Return a line's message as correlation decodes it; None if it is not plain."""
    raw = plain_line_raw(line)
    try:
        return None if raw is None else decode_message(raw[2])
    except DecodeError:
        return None


def check(line: bytes) -> bool:
    """Compare a line's plain reading with the lenient one; return whether it is plain."""
    raw, typed = plain_line_raw(line), plain_line(line)
    if raw is None:
        assert typed is None
        return False
    head, message, data = raw
    id_text = plain_id(message.id)
    if id_text is None and message.id is not UNSET:
        return False
    frame = read_entry(line)
    assert frame == Frame(head.t, head.side, data, head.stream, head.http, head.eol)
    (expected,) = read_frame(frame)
    assert not expected.flaws
    assert not isinstance(expected, Failure)
    if typed is not None:
        check_typed(typed, expected)
    if isinstance(expected, Malformed):
        assert message.method is UNSET
        assert message.result is UNSET
    elif isinstance(expected, Result):
        assert message.method is UNSET
        assert message.result is not UNSET
        assert message.result.is_error == expected.is_tool_error
        assert (expected.result_type, expected.is_task) == ("complete", False)
        assert (bytes(message.result.meta), id_text) == (bytes(expected.body.meta), expected.id)
    else:
        assert message.method == expected.method
        assert message.params is UNSET or bytes(message.params) == bytes(expected.raw_params)
        assert id_text == (expected.id if isinstance(expected, Request) else None)
    return True


def check_typed(message: PlainMessage[PlainParams, int], expected: AnyMessage) -> None:
    """Compare the parts of a message that correlation uses."""
    if message.id is not UNSET and message.id > 0:
        assert isinstance(expected, Request | Result)
        assert str(message.id) == expected.id
    if isinstance(expected, Request | Notification) and message.params is not UNSET:
        params = message.params
        if (name := SUBJECTS.get(expected.method)) is not None:
            assert getattr(params, name) == (expected.subject or "")
        if isinstance(expected, Request):
            assert (expected.revision or "") == ("" if params.meta is None else params.meta.revision)


@settings(max_examples=200, deadline=None)
@given(st.lists(ENTRY, max_size=10))
def test_plain_lines_read_the_same_both_ways(entries: list[Entry]) -> None:
    for entry in entries:
        check(line_of(entry))


def test_most_lines_of_real_sessions_are_plain() -> None:
    lines = [line for path in RECORDINGS for line in path.read_bytes().split(b"\n")[1:-1]]
    messages = [line for line in lines if isinstance(read_entry(line), Frame)]
    assert sum(map(check, messages)) > len(messages) * 0.6


def test_the_name_of_a_server_sent_event_is_plain() -> None:
    assert check(CALL.replace(b'"from"', b'"event":"message","from"'))


@pytest.mark.parametrize(
    "line",
    [
        b'{"t":1,"note":"stderr","text":"x"}',
        CALL + b" ",
        CALL.replace(b'"from"', b'"id":"e","from"'),
        CALL.replace(b'"from"', b'"by":"mcpspy","from"'),
        CALL.replace(b'"from"', b'"eol":"","from"'),
        CALL.replace(b"client", b"nobody"),
        CALL.replace(b"2.0", b"1.0"),
        CALL.replace(b'"echo"', b"5"),
        CALL.replace(b'"echo"', b'"\xff"'),
        CALL.replace(b'"name"', b'"x":"\xff","name"'),
        CALL.replace(b'"name"', b'"requestState":"s","name"'),
        CALL.replace(b'"name"', b'"inputResponses":{},"name"'),
        CALL.replace(b'"name"', b'"ref":{"name":"x"},"name"'),
        CALL.replace(b'"method"', b'"error":{},"method"'),
        CALL[:-1] + b',"msg":{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{}}}',
        CALL.replace(b',"msg"', b', "msg"').replace(b'"_meta":{', b'"a":1,"msg":{'),
        RESULT.replace(b"true", b'"yes"'),
        RESULT.replace(b'"isError":true', b'"resultType":"input_required"'),
        RESULT.replace(b'"isError":true', b'"task":{}'),
        RESULT.replace(b'"result"', b'"error":null,"result"'),
        RESULT.replace(b'{"isError":true,"x":[1]}', b"null"),
        RESULT.replace(b"[1]", b"[" * 100_000 + b"]" * 100_000),
        b'{"t":1,"from":"client","msg":[]}',
        b'{"t":1,"from":"client","msg":{oops}}',
    ],
    ids=range(24),
)
def test_other_lines_are_rejected(line: bytes) -> None:
    assert check(CALL)
    assert check(RESULT)
    assert plain_line(line) is None


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"1", "1"),
        (b'"a-1"', '"a-1"'),
        (b"-0", None),
        (b"1.0", None),
        (b"null", None),
        (b'"\\u0031"', None),
        (b'"\xc3\xa9"', None),
    ],
)
def test_an_id_is_plain_if_it_has_one_spelling(raw: bytes, text: str | None) -> None:
    assert plain_id(Raw(raw)) == text
    assert plain_id(UNSET) is None


def test_a_message_without_a_line_is_decoded_too() -> None:
    data = CALL[CALL.index(b'{"jsonrpc"') : -1]
    message = plain_message(data)
    assert message is not None
    assert message.method == "tools/call"
    assert message.params is not UNSET
    assert json.loads(bytes(message.params)) == {"name": "echo", "_meta": {"progressToken": 7}}
    assert plain_message(b"[" + data + b"]") is None
    assert plain_message(b"[" * 100_000) is None
    assert plain_message(data.replace(b"tools/call", b"tools\xffcall")) is None


def test_every_subject_is_decoded_or_rejected() -> None:
    assert {method.subject for name, method in METHODS.items() if name not in SUBJECTS} == {
        None,
        "ref",
        "requestId",
        "progressToken",
        "elicitationId",
    }
