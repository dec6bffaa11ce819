"""Lines of a recording: exact bytes, and valid JSON if the message is."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.recording import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.conftest import Entry

PREFIX = b'{"t":0.000001,"from":"client",'

TEXTS = st.text(st.characters(codec="utf-8"))
ANYTHING = st.one_of(
    st.binary(max_size=60),
    TEXTS.map(str.encode),
    st.tuples(
        st.sampled_from([b"{", b"[", b" {", b""]),
        st.binary(max_size=20),
        st.sampled_from([b"}", b"]", b"} ", b"\r"]),
    ).map(b"".join),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
        max_leaves=8,
    ).map(lambda value: json.dumps(value).encode()),
).map(lambda line: line.replace(b"\n", b""))


def cut(line: bytes, places: list[int]) -> list[bytes | bytearray]:
    """Cut a line into pieces, some of them bytearrays, as the framer does."""
    at = [0, *sorted(place % (len(line) + 1) for place in places), len(line)]
    found = [line[a:b] for a, b in pairwise(at) if b > a] or [line]
    return [bytearray(piece) if n % 2 else piece for n, piece in enumerate(found)]


def line_of(message: bytes, *, torn: bool = False) -> bytes:
    return b"".join(encode.splice(PREFIX, [message], torn=torn))


@given(ANYTHING, st.lists(st.integers(0, 200), max_size=5), st.booleans())
def test_any_line_is_rebuilt_byte_for_byte(
    read_entries: Callable[[bytes], list[Entry]], line: bytes, places: list[int], torn: bool
) -> None:
    file = b"".join(encode.splice(PREFIX, cut(line, places), torn=torn))
    (entry,) = read_entries(file)
    assert entry.payload == line + (b"" if torn else b"\n")
    assert file.count(b"\n") == 1


@given(ANYTHING, st.lists(st.integers(0, 200), max_size=5), st.booleans())
def test_any_text_line_is_rebuilt_byte_for_byte(
    read_entries: Callable[[bytes], list[Entry]], line: bytes, places: list[int], torn: bool
) -> None:
    file = b"".join(encode.splice_text(b'{"t":0.000001,"note":"stderr",', cut(line, places), torn=torn))
    (entry,) = read_entries(file)
    assert entry.payload == line + (b"" if torn else b"\n")
    assert entry.fields, "a note is always JSON"


@given(ANYTHING, st.lists(st.integers(0, 200), max_size=5))
def test_a_line_is_always_json_and_a_message_if_that_is(line: bytes, places: list[int]) -> None:
    file = b"".join(encode.splice(PREFIX, cut(line, places)))
    try:
        orjson.loads(line)
        is_document = line.strip()[:1] in (b"{", b"[")
    except ValueError:
        is_document = False
    assert (b'"msg":' in file.removeprefix(PREFIX)[:30]) == is_document
    orjson.loads(file)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"{}", "msg"),
        (b'[{"id":1}]', "msg"),
        (b' \t{"id":1} \t', "msg"),
        (b"{oops}", "raw"),
        (b"{ a: 1 }", "raw"),
        (b"[INFO] ready [x]", "raw"),
        (b'{"a":NaN}', "raw"),
        (b'{"a":"\\ud800"}', "raw"),
        (b'{"a":1} {"a":2}', "raw"),
        (b'{"a":"\x00"}', "b64"),
        ('{"s":"\u2028\u00e9"}'.encode(), "msg"),
        (b'{"\xff":1}', "b64"),
        (b'{"surrogate":"\xed\xa0\x80"}', "b64"),
        (b"{", "raw"),
        (b"{]", "raw"),
        (b"Server listening", "raw"),
        (b"", "raw"),
        (b"   ", "raw"),
        (b'"text"', "raw"),
        (b"42", "raw"),
        (b"\xef\xbb\xbf{}", "raw"),
        (b"\x00", "b64"),
        (b"\x80", "b64"),
    ],
)
def test_only_objects_and_arrays_of_strict_json_are_messages(
    read_entries: Callable[[bytes], list[Entry]], line: bytes, kind: str
) -> None:
    (entry,) = read_entries(line_of(line))
    assert entry.kind == kind
    if kind != "msg":
        assert entry.fields["why"]


@pytest.mark.parametrize(
    ("message", "torn", "eol"),
    [(b"{}", False, None), (b"{}\r", False, "\r\n"), (b"{}", True, ""), (b"{}\r", True, "")],
)
def test_a_line_end_is_named_where_it_is_not_lf(message: bytes, torn: bool, eol: str | None) -> None:
    assert json.loads(line_of(message, torn=torn)).get("eol") == eol


def test_a_line_contains_the_message_as_the_peer_sent_it() -> None:
    message = b'{ "id":1e2, "id":1.10,"big":123456789012345678901234567890,"s":"\\u00e9\\/" }'
    assert line_of(message) == PREFIX + b'"msg":' + message + b"}\n"


@given(st.lists(ANYTHING, min_size=1, max_size=6))
def test_a_plain_run_equals_its_messages_one_by_one(lines: list[bytes]) -> None:
    head = PREFIX + b'"msg":'
    run = b"".join(line + b"\n" for line in lines)
    ordinary = all(
        line.startswith(b"{") and line.endswith(b"}") and b'"msg":' in line_of(line)[:50] for line in lines
    )
    plain = encode.plain(head, run)
    if ordinary:
        assert plain == b"".join(line_of(line) for line in lines)
    else:
        assert plain is None


def test_a_run_is_not_plain_when_one_line_is_not() -> None:
    assert encode.plain(b"", b'{}\n{"\xff":1}\n{}\n') is None
    assert encode.plain(b"", b"{a\n}\n{b}\n") is None
    assert encode.plain(b"", b"{a}\n\n{b}\n") is None
    assert encode.plain(b"", b"{a}\r\n{b}\n") is None
    assert encode.plain(b"", b'{}\n{"a":1}{"a":2}\n{}\n') is None
    assert encode.plain(b"", b"{}\n{a}\n{}\n") is None


@given(st.binary(max_size=30), st.lists(st.integers(0, 40), max_size=4))
def test_utf8_is_judged_across_pieces(data: bytes, places: list[int]) -> None:
    try:
        data.decode("utf-8")
        valid = True
    except UnicodeDecodeError:
        valid = False
    assert encode.is_utf8(cut(data, places)) is valid


def test_bytes_that_are_not_utf8_are_consumed_while_they_are_written() -> None:
    pieces: list[bytes | bytearray] = [b"\xff" * 1000 for _ in range(10)]
    buffers = encode.splice(PREFIX, pieces)
    for _ in range(5):
        next(buffers)
    assert len(pieces) < 10


@given(
    st.dictionaries(
        TEXTS,
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | TEXTS
        | st.lists(TEXTS | st.integers()),
        min_size=1,
    )
)
def test_headers_and_notes_are_json_of_their_fields(
    fields: dict[str, str | float | bool | list[str | int] | None],
) -> None:
    header = json.loads(encode.header({**fields, "id": "x"}))
    assert header == {**fields, "mcpspy": fields.get("mcpspy", encode.FORMAT), "id": "x"}
    note = json.loads(encode.note(1.5, "test", {f"_{key}": value for key, value in fields.items()}))
    assert note == {"t": 1.5, "note": "test", **{f"_{key}": value for key, value in fields.items()}}


def test_a_note_without_fields_is_json() -> None:
    assert json.loads(encode.note(math.pi, "eof", {})) == {"t": 3.141593, "note": "eof"}


def test_an_argument_that_is_not_utf8_does_not_break_the_header() -> None:
    assert json.loads(encode.header({"command": ["a\udcff", "b"]}))["command"] == ["a?", "b"]


def test_fields_that_are_json_already_are_written_as_they_are_beside_a_lone_surrogate() -> None:
    fields: Mapping[str, encode.Value] = {
        "headers": encode.json_object({"a": "b"}),
        "parts": [encode.JsonText(b"[1,2]")],
        "reason": "\udce9",
    }

    line = json.loads(encode.note(1, "response", fields))

    assert line == {"t": 1.0, "note": "response", "headers": {"a": "b"}, "parts": [[1, 2]], "reason": "?"}
