"""Transcripts of mcp-vcr, in both formats."""

from __future__ import annotations

import json
import math
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.importers.mcp_vcr import LACKS, LACKS_YAML, sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import frames, notes

FILES = Path(__file__).parent / "files"
PYYAML: Any = import_module("yaml")
META = {"version": 1, "recorded_at": "2026-11-21T08:00:00Z", "session_id": "a", "server_command": ["s"]}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(
        ["1e5", "0o14", "089", "1_0", "yes", "~", ".nan", "1:30", "\ud800", "\x85", "2026-11-21"]
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def written(messages: list[Any], meta: dict[str, Any] = META) -> bytes:
    """Return a transcript as mcp-vcr writes it with PyYAML."""
    text: str = PYYAML.safe_dump(
        {"meta": meta, "messages": messages}, sort_keys=True, default_flow_style=False
    )
    return text.encode()


@given(payload=st.dictionaries(st.text(), JSON, max_size=4))
@settings(max_examples=150, deadline=None)
def test_any_message_in_yaml_is_the_message_that_was_recorded(payload: dict[str, Any]) -> None:
    (session,) = sessions(written([{"t": 1, "dir": "c2s", "payload": payload}]))
    ((_, _, data),) = frames(session)
    found = json.loads(data)
    assert found == payload
    assert json.dumps(found, sort_keys=True) == json.dumps(payload, sort_keys=True)


def test_both_formats_have_the_same_messages() -> None:
    (yaml,), (ndjson,) = (sessions((FILES / f"mcp-vcr.{each}").read_bytes()) for each in ("yaml", "ndjson"))
    assert yaml.messages == ndjson.messages == 65
    assert yaml.command == ndjson.command == ["python", "sdk_server.py"]
    assert [side for _, side, _ in frames(yaml)] == [side for _, side, _ in frames(ndjson)]
    assert (ndjson.lacks, yaml.lacks) == (LACKS, LACKS + LACKS_YAML)


def test_numbers_that_json_does_not_allow_are_kept_as_mcp_vcr_read_them() -> None:
    (session,) = sessions(written([{"t": 1, "dir": "s2c", "payload": {"a": [math.nan, -math.inf]}}]))
    assert [data for _, _, data in frames(session)] == [b'{"a": [NaN, -Infinity]}']


def test_times_count_from_the_start_of_the_recording() -> None:
    (session,) = sessions(written([{"t": 250, "dir": "s2c", "payload": {"id": 1, "result": {}}}]))
    assert [(at, side) for at, side, _ in frames(session)] == [(0.25, "server")]
    assert session.started == 1795248000.0
    assert notes(session, "exit") == [{"code": None, "signal": None}]


def test_a_url_in_place_of_the_command_is_the_upstream() -> None:
    meta = META | {"server_command": ["https://example.com/sse"], "incomplete_reason": "timeout"}
    (session,) = sessions(written([{"t": 1, "dir": "c2s", "payload": {"token": "<REDACTED_token>"}}], meta))
    assert (session.transport, session.upstream, session.command) == ("http", "https://example.com/sse", None)
    assert session.changed == [
        "already redacted in the file: 1 message",
        "incomplete, as mcp-vcr reports: timeout",
    ]


@pytest.mark.parametrize(
    "bad",
    [
        b"messages: [{dir: c2s, payload: &a {b: *a}, t: 1}]\nmeta: {}",
        b"messages: [{dir: c2s, payload: {a: .nan}, t: 1}]\nmeta: {}",
        b"- a",
        b"[a]: b",
        b"messages:\n- dir: c2s\n  payload: {}\n",
        b"messages: {",
        b"\xff",
    ],
)
def test_an_invalid_transcript_is_refused(bad: bytes) -> None:
    with pytest.raises(UsageError, match=r"^invalid mcp-vcr transcript: "):
        sessions(bad)
