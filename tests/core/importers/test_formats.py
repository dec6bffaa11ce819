"""Recognition of formats, and damaged files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.importers.formats import DATABASE, FORMATS, HEAD, first_keys, recognise
from mcpspy.core.recording.decode import Damaged, read_entry
from mcpspy.errors import UsageError

FILES = Path(__file__).parent / "files"

EACH = {
    "mcp-rec.jsonl": "mcp-rec",
    "mcp-rec-modern.jsonl": "mcp-rec",
    "mcp-cassette.json": "mcp-cassette",
    "mcp-cassette-http.json": "mcp-cassette",
    "mcp-recorder.json": "mcp-recorder",
    "mcp-recorder-http.json": "mcp-recorder",
    "mcphawk.db": "mcphawk",
    "mitmproxy.har": "har",
    "inspector-protocol.json": "inspector",
    "inspector-network.json": "inspector-network",
    "mcpsnoop.jsonl": "mcpsnoop",
    "mcp-vcr.yaml": "mcp-vcr",
    "mcp-vcr.ndjson": "mcp-vcr",
    "mcp-server-weather.log": "claude-desktop",
    "mcp.log": "claude-desktop",
    "vscode.log": "vscode",
    "otlp.json": "otlp",
}


@pytest.mark.parametrize("name", EACH)
def test_the_format_is_recognised_by_the_beginning_of_the_content(name: str) -> None:
    data = (FILES / name).read_bytes()
    assert recognise(data[:HEAD]).name == EACH[name]
    assert recognise(data[:1000]).name == EACH[name]


def test_every_file_here_is_read_and_every_format_has_one() -> None:
    here = {path.name for path in FILES.iterdir()} - {"README.md", "make.py", "inspector.cjs", "__pycache__"}
    assert here == set(EACH)
    assert set(EACH.values()) == set(FORMATS)


def test_the_keys_of_the_first_object_are_its_own() -> None:
    assert first_keys(b' \n{"a": {"b": 1, "c": ["d"]}, "e" : "f:\\"g\\": {", "h') == (b"{", {"a", "e"})
    assert first_keys(b'[{"a": [1]}, {"b": 1}]') == (b"[", {"a"})
    assert first_keys(b'["a", "b"]') == (b"[", set())
    assert first_keys(b"\xef\xbb\xbf{}") == (b"{", set())
    assert first_keys(b"") == (b"", set())


KEYS = sorted(
    """log version entries creator name startedDateTime time timings receive request response method url headers value
    postData text encoding content status size pageref _from _error pages title id format_version recorded_at transport
    messages sender t_offset_ms payload redacted exchange channel server_url server_info metadata interactions type
    response_status latency_ms transport_type ts dir msg _raw _unparsed session_id seq direction server_label raw
    conn_id batch truncated command cwd timestamp message origin duration requestHeaders requestBody responseStatus
    responseHeaders responseBody stream eventCount closedAt jsonrpc _type session_id server_command meta t dir payload
    resourceSpans scopeSpans spans resource attributes key stringValue intValue kvlistValue arrayValue values
    startTimeUnixNano endTimeUnixNano status""".split()
)
WORDS = """1.2 1.0 mcpspy 2026-11-21T08:00:00Z POST GET http://h/mcp stdio://x/y stdio http client server c2s s2c stderr
    meta client->server server->client request response notification jsonrpc_request lifecycle base64 content-type
    text/event-stream application/json mcp-session-id post get""".split()
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 4)
    | st.floats()
    | st.integers()
    | st.sampled_from(WORDS)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=30,
)
ANY_VALUES = st.recursive(
    st.fixed_dictionaries({"stringValue": st.text() | st.just('{"a":1}')})
    | st.fixed_dictionaries({"intValue": st.integers() | st.integers().map(str) | st.text()}),
    lambda inner: (
        st.fixed_dictionaries({"arrayValue": st.fixed_dictionaries({"values": st.lists(inner, max_size=2)})})
        | st.fixed_dictionaries(
            {"kvlistValue": st.fixed_dictionaries({"values": st.lists(VALUES, max_size=2)})}
        )
        | VALUES.map(lambda value: {"kvlistValue": value})
    ),
    max_leaves=5,
)
ATTRIBUTES = """jsonrpc.request.id gen_ai.tool.name gen_ai.tool.call.arguments gen_ai.tool.call.result mcp.session.id
    mcp.request.argument.x mcp.tool.result.content error.type rpc.response.status_code network.transport""".split()
SHAPED = {
    "otlp": st.fixed_dictionaries(
        {
            "startTimeUnixNano": st.integers(0, 10**20) | st.sampled_from(["1", "x", ""]),
            "endTimeUnixNano": st.integers().map(str),
            "kind": st.sampled_from([2, 3, "SPAN_KIND_SERVER"]),
            "spanId": st.sampled_from(["a", "b"]),
            "parentSpanId": st.sampled_from(["a", "b", None]),
            "attributes": st.lists(
                st.fixed_dictionaries({"key": st.sampled_from(ATTRIBUTES), "value": ANY_VALUES}), max_size=5
            ).map(lambda pairs: [*pairs, {"key": "mcp.method.name", "value": {"stringValue": "tools/call"}}]),
        }
    ).map(lambda span: {"resourceSpans": [{"scopeSpans": [{"spans": [span, span]}]}]}),
    "har": st.fixed_dictionaries(
        {
            "log": st.fixed_dictionaries(
                {
                    "version": st.just("1.2"),
                    "creator": st.sampled_from([{"name": "mcpspy"}, {}]),
                    "entries": st.lists(
                        st.fixed_dictionaries(
                            {
                                "startedDateTime": st.sampled_from(
                                    ["2026-11-21T08:00:00Z", "1970-01-01T00:00:00Z"]
                                ),
                                "time": st.none() | st.floats(allow_nan=False, allow_infinity=False),
                                "pageref": st.sampled_from(["", "p"]),
                                "request": st.fixed_dictionaries(
                                    {
                                        "method": st.sampled_from(["POST", "GET", ""]),
                                        "url": st.sampled_from(
                                            ["http://h/mcp?a", "stdio://x", "http://[", ""]
                                        ),
                                        "postData": st.fixed_dictionaries(
                                            {"text": st.just('{"jsonrpc":"2.0"}') | st.text()}
                                        ),
                                    }
                                ),
                                "response": st.fixed_dictionaries(
                                    {
                                        "headers": st.just(
                                            [{"name": "content-type", "value": "text/event-stream"}]
                                        ),
                                        "content": st.fixed_dictionaries(
                                            {
                                                "text": st.text()
                                                | st.just("event: endpoint\ndata: http://[\n\n"),
                                                "encoding": st.sampled_from(["", "base64"]),
                                            }
                                        ),
                                    }
                                ),
                            }
                        ),
                        max_size=3,
                    ),
                }
            )
        }
    ),
}


@pytest.mark.parametrize("name", [name for name, each in FORMATS.items() if each.opening != DATABASE])
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_any_document_is_refused_or_imported_as_valid_lines(name: str, data: st.DataObject) -> None:
    document = data.draw(st.one_of(VALUES, SHAPED.get(name, VALUES)))
    text = json.dumps(document).encode()
    if data.draw(st.booleans()):
        text = b'{"version":"1.0","format_version":3,' + text.lstrip(b"{")
    _falls_not(name, text)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_imported_as_valid_lines(data: bytes) -> None:
    try:
        found = recognise(data)
    except UsageError:
        return
    _falls_not(found.name, data)


def _falls_not(name: str, data: bytes) -> None:
    try:
        sessions = FORMATS[name].importer()(data)
    except UsageError:
        return
    for session in sessions:
        for line in session.lines:
            assert line.count(b"\n") == 1
            assert not isinstance(read_entry(line[:-1]), Damaged)


def test_an_edited_message_cannot_break_a_line_of_the_recording(tmp_path: Path) -> None:
    """A line break in a string of the file must not end a line of the recording."""
    said: dict[str, Any] = {"ts": 1, "dir": "server->client", "msg": {"_raw": '{\n}"x', "_unparsed": True}}
    _falls_not("mcp-rec", json.dumps(said).encode())


LOGS = ("claude-desktop", "vscode", "mcp-vcr")
LINES = [
    *(
        line
        for name in ("mcp-server-weather.log", "mcp.log", "vscode.log")
        for line in (FILES / name).read_bytes().split(b"\n")
    ),
    *b"""messages:\n- dir: c2s\n  payload: {a: 1.0}\n  t: 2\nmeta:\n  recorded_at: '2026-11-21T08:00:00Z'
  server_command: []\n  version: 1\n  payload: &a [*a]\n  t: .nan""".split(b"\n"),
]


@pytest.mark.parametrize("name", LOGS)
@given(lines=st.lists(st.sampled_from(LINES) | st.binary(max_size=9), max_size=12), cut=st.integers(0, 40))
@settings(max_examples=60, deadline=None)
def test_any_lines_of_a_log_are_refused_or_imported_as_valid_lines(
    name: str, lines: list[bytes], cut: int
) -> None:
    data = b"\n".join(lines)
    _falls_not(name, data[: len(data) - cut])
