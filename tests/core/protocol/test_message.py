"""Parsing of frames into messages; no input raises an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    loads,
    read_frame,
)
from mcpspy.core.recording.decode import Frame

NOT_2_0 = 'jsonrpc is not "2.0"'
LOOSE = "not strict JSON"
NOT_UTF8 = "not UTF-8"
BOTH = "both result and error"

KEYS = st.sampled_from(
    "jsonrpc id method params result error code message data _meta progressToken name uri ref isError".split()
) | st.text(max_size=4)


def json_values(text: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    """Return JSON values with significant keys and numbers, including NaN."""
    numbers = st.integers() | st.floats() | st.sampled_from([2**53 + 1, 2**64 + 1, -(2**63) - 1])
    words = text | st.sampled_from(["2.0", "tools/call", "initialize"])
    return st.recursive(
        st.none() | st.booleans() | numbers | words,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6),
        max_leaves=16,
    )


JSON = json_values(st.text(max_size=6))
WITH_SURROGATES = json_values(st.text(st.characters(codec=None), max_size=6))


def read(data: bytes | str, side: str = "client") -> list[AnyMessage]:
    return read_frame(Frame(0.5, side, data.encode() if isinstance(data, str) else data))


def one(data: bytes | str) -> AnyMessage:
    (message,) = read(data)
    return message


def request(data: bytes | str) -> Request:
    message = one(data)
    assert isinstance(message, Request), message
    return message


def failure(data: bytes | str) -> Failure:
    message = one(data)
    assert isinstance(message, Failure), message
    return message


def result(data: bytes | str) -> Result:
    message = one(data)
    assert isinstance(message, Result), message
    return message


def malformed(data: bytes | str) -> Malformed:
    message = one(data)
    assert isinstance(message, Malformed), message
    return message


def look_at_everything(message: AnyMessage) -> None:
    """Read all properties, which may be computed, and check their types."""
    kinds = {"at": float, "side": str, "method": str, "result_type": str, "text": str, "is_tool_error": bool}
    optional = {"subject": str, "progress_token": str, "code": int}
    for name in dir(type(message)):
        if not name.startswith("_"):
            value = getattr(message, name)
            assert isinstance(value, kinds.get(name, object)), name
            assert value is None or isinstance(value, optional.get(name, object)), name


KINDS: dict[str, tuple[str, type[Message], tuple[str, ...]]] = {
    "request": ('{"jsonrpc":"2.0","id":1,"method":"ping"}', Request, ()),
    "request with params": ('{"jsonrpc":"2.0","id":"a","method":"ping","params":{"a":1}}', Request, ()),
    "notification": ('{"jsonrpc":"2.0","method":"notifications/initialized"}', Notification, ()),
    "result": ('{"jsonrpc":"2.0","id":1,"result":{}}', Result, ()),
    "failure": ('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}', Failure, ()),
    "keys in TypeScript's order": ('{"method":"ping","params":{},"jsonrpc":"2.0","id":0}', Request, ()),
    "keys in any order": ('{"result":{},"id":1,"jsonrpc":"2.0"}', Result, ()),
    "unknown keys": ('{"jsonrpc":"2.0","id":1,"method":"ping","trace":[{}]}', Request, ()),
    "unknown method": ('{"jsonrpc":"2.0","id":1,"method":"acme/x"}', Request, ()),
    "empty method": ('{"jsonrpc":"2.0","id":1,"method":""}', Request, ()),
    "white space": (' \t\r{ "jsonrpc" : "2.0" , "id" : 1 , "method" : "ping" } ', Request, ()),
    "jsonrpc escaped": ('{"jsonrpc":"2.0","id":1,"\\u006dethod":"ping"}', Request, ()),
    "id null": ('{"jsonrpc":"2.0","id":null,"method":"ping"}', Request, ("id is null",)),
    "id true": ('{"jsonrpc":"2.0","id":true,"method":"ping"}', Request, ("id is true",)),
    "id 1.0": ('{"jsonrpc":"2.0","id":1.0,"method":"ping"}', Request, ("id is 1.0",)),
    "id 1.5": ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', Request, ("id is 1.5",)),
    "id 1e3": ('{"jsonrpc":"2.0","id":1e3,"method":"ping"}', Request, ("id is 1e3",)),
    "id array": ('{"jsonrpc":"2.0","id":[1],"method":"ping"}', Request, ("id is [1]",)),
    "id object": ('{"jsonrpc":"2.0","id":{},"method":"ping"}', Request, ("id is {}",)),
    "jsonrpc missing": ('{"id":1,"method":"ping"}', Request, (NOT_2_0,)),
    "jsonrpc 1.0": ('{"jsonrpc":"1.0","id":1,"result":{}}', Result, (NOT_2_0,)),
    "jsonrpc a number": ('{"jsonrpc":2.0,"method":"x"}', Notification, (NOT_2_0,)),
    "jsonrpc null": ('{"jsonrpc":null,"id":1,"error":{}}', Failure, (NOT_2_0,)),
    "two flaws": ('{"id":null,"method":"ping"}', Request, (NOT_2_0, "id is null")),
    "params array": ('{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}', Request, ()),
    "params null": ('{"jsonrpc":"2.0","id":1,"method":"x","params":null}', Request, ()),
    "params string": ('{"jsonrpc":"2.0","method":"x","params":"p"}', Notification, ()),
    "result null": ('{"jsonrpc":"2.0","id":1,"result":null}', Result, ()),
    "result scalar": ('{"jsonrpc":"2.0","id":1,"result":5}', Result, ()),
    "error null": ('{"jsonrpc":"2.0","id":1,"error":null}', Failure, ()),
    "error text": ('{"jsonrpc":"2.0","id":1,"error":"boom"}', Failure, ()),
    "both": ('{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}}', Failure, (BOTH,)),
    "both, error null": ('{"jsonrpc":"2.0","id":1,"result":{},"error":null}', Result, (BOTH,)),
    "both, result null": ('{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}', Failure, (BOTH,)),
    "both null": ('{"jsonrpc":"2.0","id":1,"result":null,"error":null}', Result, (BOTH,)),
    "method and result": ('{"jsonrpc":"2.0","id":1,"method":"x","result":{}}', Request, ()),
    "result without an id": ('{"jsonrpc":"2.0","result":{}}', Result, ()),
    "failure with id null": ('{"jsonrpc":"2.0","id":null,"error":{"code":-32700}}', Failure, ()),
    "NaN": ('{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}', Request, (LOOSE,)),
    "Infinity": ('{"jsonrpc":"2.0","id":1,"result":{"a":-Infinity}}', Result, (LOOSE,)),
    "lone surrogate": ('{"jsonrpc":"2.0","method":"x","params":{"a":"\\ud800"}}', Notification, (LOOSE,)),
    "lone surrogate in a key": ('{"jsonrpc":"2.0","id":1,"error":{"\\udfff":1}}', Failure, (LOOSE,)),
    "lone surrogate and no jsonrpc": ('{"id":"\\ud800","method":"x"}', Request, (LOOSE, NOT_2_0)),
    "escaped pair": ('{"jsonrpc":"2.0","id":1,"result":{"a":"\\ud83d\\ude00"}}', Result, ()),
    "integer beyond 64 bits": (f'{{"jsonrpc":"2.0","id":1,"result":{2**70}}}', Result, ()),
    "separators that only Python knows": ('{"jsonrpc":"2.0","id":1,"result":"\u2028\u0085"}', Result, ()),
    "CR between tokens": ('{"jsonrpc":"2.0",\r"id":1,\r"method":"ping"}', Request, ()),
}


@pytest.mark.parametrize(("data", "kind", "flaws"), KINDS.values(), ids=KINDS)
def test_a_message_is_what_its_members_make_it(
    data: str, kind: type[Message], flaws: tuple[str, ...]
) -> None:
    message = one(data)
    assert type(message) is kind
    assert message.flaws == flaws
    assert message.data == data.encode()
    assert (message.at, message.side, message.index) == (0.5, "client", None)
    look_at_everything(message)


NO_MESSAGE = {
    "nothing": (b"", "blank line"),
    "white space": (b" \t\r ", "blank line"),
    "text": (b"Server listening", "not JSON"),
    "binary": (b"\x00\x01\x02", "not JSON"),
    "cut off": (b'{"jsonrpc":"2.0","id":1,', "not JSON: "),
    "single quotes": (b"{'id':1}", "not JSON: "),
    "trailing comma": (b'{"id":1,}', "not JSON: "),
    "two messages on a line": (b'{"id":1}{"id":2}', "not JSON: "),
    "two messages with a CR between": (b'{"id":1}\r{"id":2}', "not JSON: "),
    "a control character in a string": (b'{"id":"\x01"}', "not JSON: "),
    "byte order mark": (
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"x"}',
        "starts with a byte order mark",
    ),
    "UTF-16": ('{"id":1}'.encode("utf-16"), "not JSON"),
    "a number": (b"1", "not an object"),
    "a string": (b'"text"', "not an object"),
    "null": (b"null", "not an object"),
    "NaN": (b"NaN", "not an object"),
    "an empty batch": (b"[]", "empty batch"),
    "an empty batch with a space": (b" [ ] ", "empty batch"),
    "no members": (b"{}", "neither method, result nor error"),
    "only an id": (b'{"jsonrpc":"2.0","id":1}', "neither method, result nor error"),
    "method is a number": (b'{"jsonrpc":"2.0","id":1,"method":5}', "method is not a string"),
    "method is null": (b'{"jsonrpc":"2.0","id":1,"method":null}', "method is not a string"),
    "method is an array": (b'{"jsonrpc":"2.0","method":["x"]}', "method is not a string"),
    "deep arrays": (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested too deep"),
    "deep params": (b'{"method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
}


@pytest.mark.parametrize(("data", "why"), NO_MESSAGE.values(), ids=NO_MESSAGE)
def test_a_malformed_message_has_a_reason_and_its_bytes(data: bytes, why: str) -> None:
    message = malformed(data)
    assert message.why.startswith(why)
    assert message.data == data
    look_at_everything(message)


def test_invalid_utf_8_is_read_as_peers_read_it_and_keeps_its_bytes() -> None:
    data = b'{"jsonrpc":"2.0","id":"\xff","method":"tools/call","params":{"name":"a\xc3"}}'
    message = request(data)
    assert message.flaws == (NOT_UTF8,)
    assert (message.data, message.id) == (data, '"\ufffd"')
    assert message.subject == "a\ufffd"
    assert malformed(b"\xff").flaws == (NOT_UTF8,)


IDS = ["0", "1", "-1", '"1"', '""', '"a b"', "9007199254740993", "18446744073709551617", "9" * 5000, '"é"']


@pytest.mark.parametrize("text", IDS, ids=lambda text: text[:20])
def test_an_id_is_its_json_text_and_keeps_every_digit(text: str) -> None:
    call = request(f'{{"jsonrpc":"2.0","id":{text},"method":"ping"}}')
    assert (call.id, call.flaws) == (text, ())
    assert result(f'{{"jsonrpc":"2.0","id":{text},"result":{{}}}}').id == text
    assert failure(f'{{"jsonrpc":"2.0","id":{text},"error":{{}}}}').id == text


def test_ids_that_differ_in_json_are_different() -> None:
    texts = [
        "1",
        '"1"',
        "1.0",
        "1.5",
        "true",
        "null",
        '"true"',
        "[1]",
        "18446744073709551617",
        "1.8446744073709552e19",
    ]
    ids = [request(f'{{"jsonrpc":"2.0","id":{text},"method":"ping"}}').id for text in texts]
    assert len(set(ids)) == len(texts)


@pytest.mark.parametrize(
    ("escaped", "plain"),
    [
        (r'"\u0031"', '"1"'),
        (r'"\u00e9"', '"é"'),
        (r'"a\/b"', '"a/b"'),
        (r'"\ud83d\ude00"', '"\U0001f600"'),
        (r'"\u000a"', r'"\n"'),
        (r'"\u0022"', r'"\""'),
    ],
)
def test_one_string_spelled_two_ways_is_one_id(escaped: str, plain: str) -> None:
    ids = [request(f'{{"jsonrpc":"2.0","id":{text},"method":"x"}}').id for text in (escaped, plain)]
    assert ids[0] == ids[1]


def test_one_id_spelled_two_ways_is_one_id_even_beside_what_is_not_strict() -> None:
    loose = request('{"jsonrpc":"2.0","id":"é","method":"x","params":[NaN]}')
    assert loose.id == request('{"jsonrpc":"2.0","id":"é","method":"x"}').id
    assert request(f'{{"jsonrpc":"2.0","id":{2**64 + 1},"method":"x","params":[NaN]}}').id == str(2**64 + 1)


@pytest.mark.parametrize("depth", [10, 260, 900])
def test_an_id_of_nested_arrays_is_only_a_protocol_issue(depth: int) -> None:
    message = request(b'{"jsonrpc":"2.0","method":"x","id":%b"\\n"%b}' % (b"[" * depth, b"]" * depth))
    assert message.flaws == ("id is " + ("[" * depth + '"\\n"' + "]" * depth)[:20],)


@pytest.mark.parametrize("text", ["", '"id":null,'], ids=["absent", "null"])
def test_an_answer_without_an_id_answers_nothing(text: str) -> None:
    assert failure(f'{{"jsonrpc":"2.0",{text}"error":{{"code":-32700}}}}').id is None
    assert result(f'{{"jsonrpc":"2.0",{text}"result":{{}}}}').id is None


def test_the_last_of_duplicate_keys_counts_as_for_every_peer() -> None:
    message = request('{"jsonrpc":"2.0","id":1,"id":2,"method":"a","method":"b","params":{"x":1,"x":2}}')
    assert (message.id, message.method, message.params) == ("2", "b", {"x": 2})


def test_a_batch_is_its_messages_with_their_indices() -> None:
    items = [
        '{"jsonrpc":"2.0","id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":1,"result":{"a":[1, 2]}}',
        '{ "id":2,"error":{} }',
        "5",
        '"text"',
        "null",
        "[]",
        '[{"jsonrpc":"2.0","id":9,"method":"ping"}]',
        "{}",
    ]
    messages = read(f" [{' , '.join(items)}] ")
    assert [type(message) for message in messages] == [
        Request,
        Notification,
        Result,
        Failure,
        *[Malformed] * 6,
    ]
    assert [message.index for message in messages] == list(range(10))
    assert [message.data.decode() for message in messages] == items
    assert [message.why for message in messages if isinstance(message, Malformed)] == [
        *["not an object"] * 5,
        "neither method, result nor error",
    ]
    assert {message.at for message in messages} == {0.5}


def test_one_loose_message_does_not_spoil_the_rest_of_its_batch() -> None:
    messages = read(
        '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"result":{"x":NaN,"isError":true}},5]'
    )
    assert [type(message) for message in messages] == [Request, Result, Malformed]
    assert [message.index for message in messages] == [0, 1, 2]
    assert [message.flaws for message in messages] == [(LOOSE,)] * 3
    assert isinstance(messages[1], Result)
    assert messages[1].is_tool_error


def test_the_flaw_of_a_batch_is_that_of_all_in_it() -> None:
    messages = read(b'[{"jsonrpc":"2.0","id":1,"method":"\xff"},{"jsonrpc":"2.0","method":"b"}]')
    assert [message.flaws for message in messages] == [(NOT_UTF8,)] * 2


@pytest.mark.parametrize("loose", ["NaN", '"\\ud800"', "1e400"])
def test_members_for_correlation_are_found_beside_non_strict_json(loose: str) -> None:
    call = request(
        '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":'
        f'{{"name":"add","arguments":{{"x":{loose}}},"_meta":{{"progressToken":"t","x":{loose}}}}}}}'
    )
    assert (call.subject, call.progress_token) == ("add", '"t"')
    reply = result(
        f'{{"jsonrpc":"2.0","id":1,"result":{{"isError":true,"content":[{loose}],"resultType":"task"}}}}'
    )
    assert (reply.is_tool_error, reply.result_type) == (True, "task")


def test_params_are_decoded_on_demand_and_to_the_last_digit() -> None:
    message = request(
        '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":9007199254740993,"b":18446744073709551617,"c":1.5}}'
    )
    assert message.params == {"a": 2**53 + 1, "b": 2**64 + 1, "c": 1.5}
    assert [type(value) for value in message.params.values()] == [int, int, float]
    assert request('{"jsonrpc":"2.0","id":1,"method":"x"}').params is None


@pytest.mark.parametrize(
    ("method", "params", "subject"),
    [
        ("tools/call", '{"name":"add"}', "add"),
        ("tools/call", '{"name":""}', ""),
        ("tools/call", '{"name":5}', "5"),
        ("tools/call", '{"name":true}', "true"),
        ("tools/call", '{"name":null}', None),
        ("tools/call", "{}", None),
        ("tools/call", '["add"]', None),
        ("tools/call", '"add"', None),
        ("tools/list", '{"cursor":"c"}', "c"),
        ("resources/read", '{"uri":"file:///a","name":"b"}', "file:///a"),
        ("completion/complete", '{"ref":{"type":"ref/prompt","name":"p"}}', "p"),
        ("completion/complete", '{"ref":{"type":"ref/resource","uri":"u"}}', "u"),
        ("completion/complete", '{"ref":{}}', None),
        ("notifications/cancelled", '{"requestId":7}', "7"),
        ("notifications/cancelled", '{"requestId":18446744073709551617}', "18446744073709551617"),
        ("notifications/progress", '{"progressToken":"t"}', "t"),
        ("notifications/message", '{"level":"error"}', "error"),
        ("tasks/get", '{"taskId":"t1"}', "t1"),
        ("acme/x", '{"name":"n"}', None),
    ],
)
def test_a_message_is_about_what_its_method_is_about(method: str, params: str, subject: str | None) -> None:
    call = request(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}')
    assert call.subject == subject
    reply = one(f'{{"jsonrpc":"2.0","method":"{method}","params":{params}}}')
    assert isinstance(reply, Notification)
    assert reply.subject == subject


def test_a_name_of_nested_arrays_does_not_raise() -> None:
    deep = "[" * 900 + "]" * 900
    assert request(f'{{"method":"tools/call","id":1,"params":{{"name":{deep}}}}}').subject


@pytest.mark.parametrize(
    ("params", "token"),
    [
        ('{"_meta":{"progressToken":1}}', "1"),
        ('{"_meta":{"progressToken":"1"}}', '"1"'),
        ('{"_meta":{"progressToken":0}}', "0"),
        ('{"_meta":{"progressToken":"\\u0031"}}', '"1"'),
        ('{"_meta":{"progressToken":null}}', "null"),
        ('{"_meta":{}}', None),
        ('{"_meta":null}', None),
        ('{"_meta":5}', None),
        ('{"progressToken":1}', None),
        ("[]", None),
    ],
)
def test_a_progress_token_is_its_json_text(params: str, token: str | None) -> None:
    assert request(f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{params}}}').progress_token == token


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        ('{"code":-32601,"message":"no"}', -32601, "no"),
        ('{"code":0,"message":""}', 0, ""),
        ('{"code":"x","message":5}', None, "5"),
        ('{"code":1,"message":null}', 1, ""),
        ('{"code":1,"message":{"a":"\\u0062"}}', 1, '{"a":"b"}'),
        ('{"code":true}', None, ""),
        ('{"code":1.5}', None, ""),
        ('"boom"', None, "boom"),
        ("null", None, ""),
        ("[]", None, "[]"),
    ],
)
def test_a_failure_has_its_code_and_text_if_it_has_them(error: str, code: int | None, text: str) -> None:
    message = failure(f'{{"jsonrpc":"2.0","id":1,"error":{error}}}')
    assert (message.code, message.text) == (code, text)
    assert message.error == json.loads(error)


@pytest.mark.parametrize("name", ["error_description", "message"])
def test_an_error_that_is_a_string_has_its_description_beside_it(name: str) -> None:
    assert (
        failure(f'{{"error":"unauthorized","{name}":"Missing header"}}').text
        == "unauthorized: Missing header"
    )
    assert failure(f'{{"error":"unauthorized","{name}":5}}').text == "unauthorized"


@pytest.mark.parametrize(
    ("value", "is_error", "kind"),
    [
        ('{"isError":true}', True, "complete"),
        ('{"isError":false}', False, "complete"),
        ('{"isError":"true"}', False, "complete"),
        ('{"isError":1}', False, "complete"),
        ('{"resultType":"input_required"}', False, "input_required"),
        ('{"resultType":"complete","isError":true}', True, "complete"),
        ('{"resultType":""}', False, "complete"),
        ('{"resultType":null}', False, "complete"),
        ('{"resultType":5}', False, "complete"),
        ('{"resultType":{"a":1}}', False, "complete"),
        ("null", False, "complete"),
        ("[]", False, "complete"),
    ],
)
def test_a_result_has_a_type_and_an_error_flag(value: str, is_error: bool, kind: str) -> None:
    message = result(f'{{"jsonrpc":"2.0","id":1,"result":{value}}}')
    assert (message.is_tool_error, message.result_type) == (is_error, kind)
    assert message.result == json.loads(value)


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"", None),
        (b"null", None),
        (b"1234567890123456789", 1234567890123456789),
        (b"0.12345678901234567890", 0.12345678901234567890),
        (b'"12345678901234567890"', "12345678901234567890"),
        (b"18446744073709551615", 2**64 - 1),
        (b"18446744073709551616", 2**64),
        (b"-9223372036854775809", -(2**63) - 1),
        (b"[Infinity]", [float("inf")]),
        (b'"\\ud800"', "\ud800"),
        (b"9" * 5000, None),
        (b"[" * 100_000, None),
        (b"[" * 300 + b"NaN" + b"]" * 300, None),
        (b"{", None),
    ],
    ids=lambda value: str(value)[:24],
)
def test_a_value_is_read_to_the_last_digit_or_not_at_all(data: bytes, value: Any) -> None:
    assert loads(data) == value


@given(st.binary(max_size=80) | WITH_SURROGATES.map(lambda value: json.dumps(value).encode()))
@example(b'{"method":"x","id":["\\n' + b"[" * 300 + b"]" * 300 + b'"]}')
def test_no_bytes_raise(data: bytes) -> None:
    messages = read(data)
    assert messages
    for message in messages:
        look_at_everything(message)


@given(st.text(max_size=40), st.integers(0, 40), st.binary(min_size=1, max_size=3))
def test_a_message_with_a_hole_in_it_does_not_raise(text: str, place: int, hole: bytes) -> None:
    data = json.dumps({"jsonrpc": "2.0", "id": text, "method": text, "params": {"name": text}}).encode()
    for message in read(data[:place] + hole + data[place + 1 :]):
        look_at_everything(message)


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("-32601", " -32601 method not found"),
        ("-32099", " -32099 server error"),
        ("-32801", " -32801 content modified"),
    ]
    + [(code, f" {code}") for code in ("0", "-32100", "-32601.0", "1e3", '"-32601"', "true", "[1]")]
    + [("null", ""), ("1" * 30, " " + "1" * 30)],
)
def test_an_error_is_described_by_its_code_as_it_is_with_its_name_and_its_message(
    code: str, shown: str
) -> None:
    error = '{"jsonrpc":"2.0","id":1,"error":{"code":%s%s}}'
    assert failure(error % (code, "")).description == "error" + shown
    assert failure(error % (code, ',"message":null')).description == "error" + shown
    assert failure(error % (code, ',"message":"no\\n"')).description == f"error{shown}: no"


@pytest.mark.parametrize("text", ["1", '"a"', "null", "true", "1e400", "-0.5"])
def test_json_that_is_not_an_object_is_called_so_and_is_strict(text: str) -> None:
    assert (malformed(text).why, malformed(text).flaws) == ("not an object", ())
    assert (malformed("NaN").why, malformed("NaN").flaws) == ("not an object", (LOOSE,))


DEEP = b'{"a":' * 10_000 + b"[]" + b"}" * 10_000


def test_messages_nested_ten_thousand_levels_are_read() -> None:
    call = request(
        b'{"jsonrpc":"2.0","id":"x","params":{"arguments":%b,"name":"n","_meta":{"x":%b,"progressToken":7}},"method":"tools/call"}'
        % (DEEP, DEEP)
    )
    assert (call.id, call.method, call.subject, call.progress_token) == ('"x"', "tools/call", "n", "7")
    assert call.flaws == ()
    assert bytes(call.body.name) == b'"n"'
    assert list(call.params) == ["arguments", "name", "_meta"]
    answer = result(b'{"jsonrpc":"2.0","result":{"x":%b,"isError":true},"id":3}' % DEEP)
    assert (answer.id, answer.is_tool_error) == ("3", True)
    error = failure(b'{"jsonrpc":"2.0","id":3,"error":{"data":%b,"code":-32603,"message":"m"}}' % DEEP)
    assert error.description == "error -32603 internal error: m"
    first, second = read(b'[{"jsonrpc":"2.0","id":1,"method":"x","params":%b}, 5]' % DEEP)
    assert (type(first), first.index, first.data[-3:]) == (Request, 0, b"}}}")
    assert (type(second), second.index) == (Malformed, 1)
    assert malformed(b'{"jsonrpc":"2.0","id":1,"method":"x","params":%b,}' % DEEP).why.startswith(
        ("nested too deep", "not JSON")
    )


def test_a_value_keeps_two_hundred_levels_and_the_text_of_the_rest() -> None:
    value: Any = loads(b'[1,%b,"end"]' % DEEP)
    assert (value[0], value[2]) == (1, "end")
    levels, value = 1, value[1]
    while isinstance(value, dict):
        levels, value = levels + 1, value["a"]
    assert (levels, value) == (199, '{"a":' * 9802 + "[]" + "}" * 9802)
    assert loads(b"[" * 199 + b"]" * 199) == json.loads(b"[" * 199 + b"]" * 199)


@pytest.mark.parametrize("depth", range(970, 1010))
@pytest.mark.parametrize("place", ["id", "params", "result", "error", "method"])
def test_no_depth_raises(depth: int, place: str) -> None:
    deep = b"[" * depth + b"]" * depth
    for data in (b'{"id":1,"%b":%b}', b'{"id":1,"method":"tools/call","%b":{"name":%b}}'):
        for message in read(data % (place.encode(), deep)):
            look_at_everything(message)


def kind_of(value: Any) -> type[Message]:
    """Return the kind of a value, by a minimal reading of JSON-RPC 2.0 and the MCP schema."""
    if not isinstance(value, dict):
        return Malformed
    if "method" in value:
        if not isinstance(value["method"], str):
            return Malformed
        return Request if "id" in value else Notification
    if "error" in value and not ("result" in value and value["error"] is None):
        return Failure
    return Result if "result" in value else Malformed


@given(
    st.dictionaries(KEYS, JSON, max_size=8)
    | st.lists(st.dictionaries(KEYS, JSON, max_size=5) | JSON, min_size=1, max_size=4)
)
def test_the_kind_depends_on_the_members_alone(value: Any) -> None:
    data = json.dumps(value)
    messages = read(data)
    items = value if isinstance(value, list) else [value]
    assert [type(message) for message in messages] == [kind_of(item) for item in items]
    as_text = [json.dumps(json.loads(message.data)) for message in messages]  # NaN does not equal itself.
    assert as_text == [json.dumps(item) for item in items]


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    )
)
def test_payloads_are_what_the_standard_library_makes_of_them(value: Any) -> None:
    data = json.dumps(value)
    assert request(f'{{"jsonrpc":"2.0","id":1,"method":"x","params":{data}}}').params == value
    assert result(f'{{"jsonrpc":"2.0","id":1,"result":{data}}}').result == value
    assert failure(f'{{"jsonrpc":"2.0","id":1,"error":{data}}}').error == value
