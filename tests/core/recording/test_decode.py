"""Lines of a recording: messages are read back byte for byte, and no line raises."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Damaged, Frame, Note, read_entry, read_header
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    pass

PREFIX = b'{"t":1.500000,"from":"server",'
HEADER = {"mcpspy": 1, "id": "ab12cd34", "started": "2026-07-28T10:00:00.000Z"}

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def written(data: bytes, *, torn: bool = False) -> bytes:
    """Return the line that `encode` writes for a message, without its LF."""
    line = b"".join(encode.splice(PREFIX, [data] if data else [], torn=torn))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return line[:-1]


def frame_of(line: bytes) -> Frame:
    entry = read_entry(line)
    assert isinstance(entry, Frame), entry
    return entry


def note_of(line: bytes) -> Note:
    entry = read_entry(line)
    assert isinstance(entry, Note), entry
    return entry


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


MESSAGES = {
    "a request": b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    "a batch": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    "white space around": b' \t{"id":1} \t',
    "white space before the last bracket": b'{"id":1 }',
    "a key of the format inside": b'{"a":1,"msg":{"b":2},"msg":3}',
    "a key of the format in a string": b'{"a":",\\"msg\\":"}',
    "a key of the format inside invalid JSON": b'{oops,"msg":}',
    "not JSON in brackets": b"{oops}",
    "half of another line": b"}{",
    "integers beyond 64 bits": b'{"id":18446744073709551617}',
    "a number beyond a double": b'{"x":1e400,"y":NaN}',
    "a lone surrogate": b'{"x":"\\ud800"}',
    "duplicate keys": b'{"id":1,"id":2}',
    "separators that only Python knows": '{"x":"\u2028\u0085\x0b"}'.encode(),
    "too deep for any parser": nested(5000),
    "text": b"Server listening on stdio",
    "text with quotes": b'say "hi"\\ \x00\x1f\x7f',
    "nothing": b"",
    "white space": b" \t ",
    "not UTF-8": b'{"x":"\xff\xfe"}',
    "UTF-8 cut in the middle": "{é".encode()[:-1],
    "a byte order mark": b'\xef\xbb\xbf{"id":1}',
    "CR inside": b'{"a":1}\r{"b":2}',
    "two CRs at the end": b'{"a":1}\r\r',
}
TABLE = pytest.mark.parametrize("data", MESSAGES.values(), ids=MESSAGES)


@TABLE
def test_a_message_comes_back_byte_for_byte(data: bytes) -> None:
    frame = frame_of(written(data))
    assert frame.data + frame.eol.encode() == data + b"\n"
    assert (frame.at, frame.side, frame.stream, frame.http) == (1.5, "server", None, None)


@TABLE
def test_a_message_that_ends_in_cr_lf_round_trips(data: bytes) -> None:
    frame = frame_of(written(data + b"\r"))
    assert (frame.data, frame.eol) == (data, "\r\n")


@TABLE
def test_an_incomplete_message_round_trips(data: bytes) -> None:
    frame = frame_of(written(data, torn=True))
    assert (frame.data, frame.eol) == (data, "")


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\n", b"")), st.booleans())
@example(b"\r", True)
def test_any_bytes_round_trip(data: bytes, torn: bool) -> None:
    frame = frame_of(written(data, torn=torn))
    assert frame.data + frame.eol.encode() == data + (b"" if torn else b"\n")


@given(JSON, JSON)
def test_any_bytes_between_brackets_round_trip(first: Any, second: Any) -> None:
    data = json.dumps([first, {"msg": second}], separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    assert frame_of(written(data)).data == data


@pytest.mark.parametrize(
    ("members", "stream", "http"),
    [
        (b'"stream":"s-1","http":7,', "s-1", 7),
        (b'"stream":"s-1",', "s-1", None),
        (b'"http":0,', None, 0),
        (b'"stream":null,"http":null,', None, None),
        (b'"http":3,"event":"message","id":"42","retry":1000,"tomorrow":[{}],', None, 3),
    ],
    ids=["both", "stream", "http", "null", "with the event's own"],
)
@pytest.mark.parametrize("payload", [b'"msg":{"id":1}', b'"why":"x","raw":"{"', b'"why":"x","b64":"ew=="'])
def test_an_http_frame_names_its_stream_and_its_exchange(
    members: bytes, stream: str | None, http: int | None, payload: bytes
) -> None:
    frame = frame_of(b'{"t":0,"from":"client",' + members + payload + b"}")
    assert (frame.stream, frame.http) == (stream, http)
    assert frame.data[:1] == b"{"


# The forms that `jq -c`, `jq -cS`, Python and an editor give a line: (separators, sorted).
STYLES = {
    "jq -c": ((",", ":"), False),
    "jq -cS": ((",", ":"), True),
    "json.dumps": ((", ", ": "), False),
    "json.dumps sorted": ((", ", ": "), True),
}


@pytest.mark.parametrize(("separators", "is_sorted"), STYLES.values(), ids=STYLES)
@given(at=st.floats(0, 1e6), payload=JSON, extra=st.booleans())
@example(at=0.0, payload={"id": 2**64 + 1, "x": "\ud800"}, extra=True)
@example(at=0.0, payload={"id": 1, "msg": {"msg": 1, "t": 5}}, extra=False)
def test_a_line_rewritten_by_a_tool_is_the_same_message(
    separators: tuple[str, str], is_sorted: bool, at: float, payload: Any, extra: bool
) -> None:
    entry: dict[str, Any] = {"t": at, "from": "client", "stream": "s", "http": 2, "msg": [payload]}
    if extra:
        entry = {"zzz": "\U0001f600", **entry}
    line = json.dumps(entry, separators=separators, sort_keys=is_sorted).encode()
    frame = frame_of(line)
    assert json.loads(frame.data) == [payload]
    assert (frame.at, frame.side, frame.stream, frame.http) == (at, "client", "s", 2)


@pytest.mark.parametrize("number", [2**53 + 1, 2**64 + 1, -(2**63) - 1, 10**40])
def test_an_integer_of_any_length_survives_a_tool_that_rewrites_the_line(number: int) -> None:
    line = json.dumps({"t": 0, "from": "client", "msg": {"id": number}}).encode()
    assert frame_of(line).data == b'{"id": %d}' % number


@pytest.mark.parametrize("value", ['"looked at"', "true", "7", "null"])
def test_a_key_added_after_the_message_is_not_part_of_it(value: str) -> None:
    frame = frame_of(b'{"t":0,"from":"client","stream":"s","msg":{"id":1},"tag":%b}' % value.encode())
    assert (frame.data, frame.stream) == (b'{"id":1}', "s")


def test_invalid_json_stays_whole_even_if_it_does_not_end_in_a_bracket() -> None:
    assert frame_of(b'{"t":0,"from":"client","msg":{oops},x}').data == b"{oops},x"


@pytest.mark.parametrize("payload", [b"1", b'"text"', b"null", b"true"])
def test_a_scalar_is_read_as_a_message(payload: bytes) -> None:
    assert frame_of(b'{"t":0,"from":"client","msg":' + payload + b"}").data == payload


def test_a_file_with_windows_line_ends_reads_the_same() -> None:
    assert frame_of(b'{"t":0,"from":"client","msg":{"id":1}}\r').data == b'{"id":1}'


@pytest.mark.parametrize(
    ("line", "at", "kind", "fields", "text"),
    [
        (b'{"t":2.5,"note":"exit","code":0}', 2.5, "exit", {"code": 0}, ""),
        (b'{"t":2,"note":"stderr","text":"h\xc3\xa9\\n"}', 2.0, "stderr", {"text": "hé\n"}, "hé\n"),
        (b'{"t":2,"note":"stderr","b64":"/2E="}', 2.0, "stderr", {"b64": "/2E="}, "\\xffa"),
        (b'{"t":2,"note":"stderr","b64":"%"}', 2.0, "stderr", {"b64": "%"}, ""),
        (b'{"t":0,"note":"rule","msg":{"id":1}}', 0.0, "rule", {"msg": {"id": 1}}, ""),
        (b'{"note":"exit","code":1,"t":3}', 3.0, "exit", {"code": 1}, ""),
        (b'{"t":0,"note":"odd","text":5}', 0.0, "odd", {"text": 5}, "5"),
        (b'{"t":0,"note":"a kind of tomorrow"}', 0.0, "a kind of tomorrow", {}, ""),
    ],
    ids=["exit", "text", "bytes", "bad base64", "with msg", "other order", "number as text", "unknown"],
)
def test_a_note_has_its_time_its_kind_and_its_fields(
    line: bytes, at: float, kind: str, fields: dict[str, Any], text: str
) -> None:
    note = note_of(line)
    assert (note.at, note.kind, note.fields, note.text) == (at, kind, fields, text)


@given(
    st.floats(0, 1e9),
    st.text(max_size=10),
    st.dictionaries(
        st.text(max_size=6).filter(lambda key: key not in ("t", "note")),
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=10),
        max_size=4,
    ),
)
def test_a_note_that_was_written_is_read_back(at: float, kind: str, fields: dict[str, Any]) -> None:
    note = note_of(encode.note(at, kind, fields)[:-1])
    assert (note.kind, note.fields) == (kind, fields)
    assert note.at == pytest.approx(at, abs=1e-6)


@given(st.binary(max_size=40).map(lambda data: data.replace(b"\n", b"")))
def test_a_line_of_stderr_is_read_back_as_text(data: bytes) -> None:
    line = b"".join(encode.splice_text(b'{"t":0,"note":"stderr",', [data] if data else []))
    text = data.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    assert note_of(line[:-1]).text == text


DAMAGED = {
    "nothing": b"",
    "text": b"half a li",
    "binary": b"\x00\xff\xfe",
    "cut off in the envelope": b'{"t":0,"fro',
    "cut off in the message": b'{"t":0,"from":"client","msg":{"id":1',
    "a second header": json.dumps(HEADER).encode(),
    "an array": b"[1,2]",
    "a string": b'"t"',
    "no time": b'{"from":"client","msg":{}}',
    "time is text": b'{"t":"0","from":"client","msg":{}}',
    "time is true": b'{"t":true,"note":"exit"}',
    "time is not a number": b'{"t":NaN,"note":"exit"}',
    "time is endless": b'{"t":Infinity,"note":"exit"}',
    "time is beyond all": b'{"t":1%b,"note":"\\ud800"}' % (b"0" * 400),
    "no sender": b'{"t":0,"msg":{}}',
    "side is a number": b'{"t":0,"from":1,"msg":{}}',
    "no message": b'{"t":0,"from":"client"}',
    "raw is a number": b'{"t":0,"from":"client","raw":1}',
    "note is a number": b'{"t":0,"note":1}',
    "garbage before the message": b'{"t":0,"from":"client" oops,"msg":{}}',
    "nested too deep to be read": b'{"t": 0, "from": "client", "msg": ' + nested(100_000) + b"}",
    "nested too deep before the message": b'{"t":0,"x":' + nested(100_000) + b',"from":"client","msg":{}}',
    "UTF-16": '{"t":0,"note":"exit"}'.encode("utf-16"),
}


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_line_is_an_entry_with_a_reason(line: bytes) -> None:
    entry = read_entry(line)
    assert isinstance(entry, Damaged)
    assert (entry.data, entry.at) == (line, 0.0)
    assert entry.why


@pytest.mark.parametrize("depth", [200, 300, 900, 1000, 1020, 1030])
@pytest.mark.parametrize(
    "line",
    [
        b'{"t":0,"from":"client","msg":%b}',
        b'{"t": 0,"from":"client", "msg":%b}',
        b'{"t":0,"msg":%b,"from":"client"}',
    ],
    ids=["compact", "spaced", "in another order"],
)
def test_no_depth_of_nesting_raises(depth: int, line: bytes) -> None:
    entry = read_entry(line % nested(depth))
    if isinstance(entry, Damaged):  # Which depth is too deep depends on the version of Python.
        assert depth > 300
        assert "deep" in entry.why or "depth limit" in entry.why
    else:
        assert entry == Frame(0.0, "client", nested(depth))


@pytest.mark.parametrize("text", ["é", "%%%", "a", "=", "\ud800"])
def test_invalid_base64_is_shown_unchanged(text: str) -> None:
    line = json.dumps({"t": 0, "from": "client", "b64": text}).encode()
    assert isinstance(read_entry(line), Frame)


def test_base64_is_decoded() -> None:
    data = bytes(range(256))
    line = json.dumps({"t": 0, "from": "client", "b64": base64.b64encode(data).decode()}).encode()
    assert frame_of(line).data == data


LINES = st.one_of(
    st.binary(max_size=60),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(
        st.sampled_from(["t", "from", "note", "msg", "raw", "b64", "stream", "http", "eol", "why"]),
        JSON,
        max_size=6,
    ).map(lambda value: json.dumps(value, separators=(",", ":")).encode()),
    st.tuples(st.binary(max_size=20), st.binary(max_size=20)).map(b',"msg":'.join),
    st.binary(max_size=30).map(lambda data: b'{"t":0,"from":"client","msg":' + data + b"}"),
)


@given(LINES)
def test_no_line_raises(line: bytes) -> None:
    entry = read_entry(line)
    assert isinstance(entry, Frame | Note | Damaged)
    if isinstance(entry, Note):
        assert isinstance(entry.text, str)
    if isinstance(entry, Frame):
        assert isinstance(entry.eol, str)
        assert entry.stream is None or isinstance(entry.stream, str)


def test_a_header_that_was_written_is_read_back() -> None:
    line = encode.header(
        {
            "id": "ab12cd34",
            "started": "2026-07-28T10:00:00.000Z",
            "transport": "http",
            "upstream": "http://127.0.0.1:1/mcp",
            "command": ["npx", "-y", 'a "b"\n'],
            "cwd": "/tmp/ü",
            "name": "server",
            "pid": 7,
            "part": 2,
        }
    )
    header = read_header(line[:-1])
    assert (header.mcpspy, header.id, header.started) == (1, "ab12cd34", "2026-07-28T10:00:00.000Z")
    assert (header.transport, header.upstream) == ("http", "http://127.0.0.1:1/mcp")
    assert header.command == ["npx", "-y", 'a "b"\n']
    assert (header.cwd, header.name, header.pid, header.part) == ("/tmp/ü", "server", 7, 2)


def test_a_header_may_omit_keys_with_defaults_and_contain_unknown_keys() -> None:
    header = read_header(json.dumps({**HEADER, "tomorrow": [1, {"a": 2}]}).encode())
    assert (header.transport, header.command, header.upstream, header.cwd) == ("stdio", None, None, None)
    assert (header.name, header.pid, header.part) == ("", None, 1)


HEADERS = {
    "newer": (b'{"mcpspy":2}', "newer mcpspy", "upgrade"),
    "much newer": (b'{"mcpspy":99,"id":5}', "format 99", "upgrade"),
    "older than the first": (json.dumps({**HEADER, "mcpspy": 0}).encode(), "format 0", "docs/format.md"),
    "negative": (json.dumps({**HEADER, "mcpspy": -1}).encode(), "format -1", "docs/format.md"),
    "number is text": (b'{"mcpspy":"1"}', "not an mcpspy recording", '{"mcpspy":1'),
    "number is true": (b'{"mcpspy":true}', "invalid header", "docs/format.md"),
    "number is a fraction": (b'{"mcpspy":1.5}', "not an mcpspy recording", '{"mcpspy":1'),
    "another file of JSON lines": (b'{"level":"info"}', "not an mcpspy recording", '{"mcpspy":1'),
    "an array": (b"[1]", "not an mcpspy recording", '{"mcpspy":1'),
    "a number": (b"1", "not an mcpspy recording", '{"mcpspy":1'),
    "text": (b"hello", "not an mcpspy recording", '{"mcpspy":1'),
    "nothing": (b"", "not an mcpspy recording", '{"mcpspy":1'),
    "binary": (b"\x7fELF\x00\xff", "not an mcpspy recording", '{"mcpspy":1'),
    "missing keys": (b'{"mcpspy":1}', "`id`", "docs/format.md"),
    "a key of another type": (
        json.dumps({**HEADER, "started": 5}).encode(),
        "started",
        "docs/format.md",
    ),
    "nested too deep": (b'{"mcpspy":1,"x":%b}' % nested(1000), "invalid header", "docs/format.md"),
    "nested far too deep": (b'{"mcpspy":1,"x":%b}' % nested(9000), "not an mcpspy recording", '{"mcpspy":1'),
}


@pytest.mark.parametrize(("line", "what", "hint"), HEADERS.values(), ids=HEADERS)
def test_an_unreadable_file_is_reported_with_a_hint(line: bytes, what: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_header(line)
    assert what in str(caught.value)
    assert hint in caught.value.hint
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@given(LINES)
def test_no_first_line_raises_anything_but_a_usage_error(line: bytes) -> None:
    try:
        header = read_header(line)
    except UsageError:
        return
    assert header.mcpspy == 1


def test_a_format_that_no_version_wrote_is_rejected() -> None:
    with pytest.raises(UsageError, match="format 0"):
        read_header(json.dumps({**HEADER, "mcpspy": 0}).encode())
