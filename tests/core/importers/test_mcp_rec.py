"""Files of mcp-rec."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.importers.mcp_rec import sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import frames, notes


def line(ts: float, who: str, msg: Any) -> bytes:
    return json.dumps({"ts": ts, "dir": who, "msg": msg}).encode() + b"\n"


UP, DOWN = "client->server", "server->client"


def test_messages_have_their_times_and_sides() -> None:
    (session,) = sessions(
        line(7.25, UP, {"id": 1, "method": "ping"}) + line(8.5, DOWN, [{"id": 1, "result": {}}])
    )
    assert frames(session) == [
        (0.0, "client", b'{"id": 1, "method": "ping"}'),
        (1.25, "server", b'[{"id": 1, "result": {}}]'),
    ]
    assert (session.started, session.transport, session.changed) == (7.25, "stdio", [])
    assert notes(session, "exit") == [{"code": None, "signal": None}]


def test_an_unparsed_line_is_kept_as_text_but_a_nested_marker_is_part_of_a_message() -> None:
    unparsed = {"_raw": "DEBUG: hi", "_unparsed": True}
    (session,) = sessions(line(1, DOWN, unparsed) + line(1, DOWN, {"result": unparsed}))
    assert [said for _, _, said in frames(session)] == [
        b"DEBUG: hi",
        json.dumps({"result": unparsed}).encode(),
    ]


def test_a_number_that_json_does_not_allow_is_kept_as_sent() -> None:
    (session,) = sessions(line(1, DOWN, {"id": 1, "result": {"x": float("nan")}}))
    assert [said for _, _, said in frames(session)] == [b'{"id": 1, "result": {"x": NaN}}']


def test_two_sessions_in_one_file_are_reported() -> None:
    hello = line(1, UP, {"jsonrpc": "2.0", "id": 0, "method": "initialize"})
    assert sessions(hello)[0].changed == []
    assert sessions(hello * 2)[0].changed == [
        "2 sessions that were appended to one file became one recording"
    ]


@pytest.mark.parametrize(
    "bad", [b"NaN", b'{"ts":NaN}', b'{"ts":1,"dir":"client->server"}', line(1, "up", {})]
)
def test_an_invalid_line_is_refused_with_its_number(bad: bytes) -> None:
    with pytest.raises(UsageError, match=r"^invalid mcp-rec line 2"):
        sessions(line(1, UP, {}) + bad.rstrip() + b"\n")


def test_a_line_that_is_not_utf8_is_kept_as_it_is() -> None:
    message = b'{"_raw":"\xff","_unparsed":true}'
    (session,) = sessions(b'{"ts":1,"dir":"server->client","msg":%b}\n' % message)
    assert [said for _, _, said in frames(session)] == [message]
