"""Strict JSON lines, one exchange per line."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any, NoReturn

import orjson
import pytest

from mcpspy.analysis.export import RecordedSession
from mcpspy.analysis.export.exchange_lines import export_jsonl
from tests.analysis.export.sessions import EVERY, call, client, failure, recorded, result, server, session_of


def refused(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} is not JSON")


def lines(session: RecordedSession) -> list[dict[str, Any]]:
    """Return the lines as decoded by two strict parsers."""
    text = "".join(export_jsonl([session]))
    assert text == "" or text.endswith("\n")
    found = [json.loads(line, parse_constant=refused) for line in text.encode().split(b"\n")[:-1]]
    for line in text.encode().split(b"\n")[:-1]:
        orjson.loads(line)
    return found


@pytest.mark.parametrize("path", EVERY, ids=lambda path: path.stem)
def test_every_exchange_is_a_line_with_both_messages(path: Path) -> None:
    session = recorded(path)
    found = lines(session)

    assert [line["exchange"] for line in found] == [each.number for each in session.exchanges()]
    for line, exchange in zip(found, session.exchanges(), strict=True):
        answer = exchange.answer
        assert line["request"] == json.loads(exchange.request.data)
        assert line.get("response") == (None if answer is None else json.loads(answer.data))
        assert len(line.get("progress", [])) == len(exchange.progress)
        assert line["status"] == exchange.state.value
        assert line["id"] == json.loads(exchange.request.data)["id"]


def test_a_line_has_the_outcome_of_its_request() -> None:
    (line,) = lines(
        session_of(
            call(0.25, 7, more=b',"_meta":{"progressToken":"p"}'),
            server(
                0.3, b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p"}}'
            ),
            client(0.4, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}'),
            failure(0.5, 7, code=-32800),
        )
    )
    request, (progress,) = line.pop("request"), line.pop("progress")

    assert request["params"]["name"] == "forecast"
    assert progress["t"] == 0.3
    assert progress["message"]["method"] == "notifications/progress"
    assert line == {
        "session": "ab12cd34",
        "name": "weather",
        "exchange": 0,
        "time": "2026-11-21T08:13:03.995000Z",
        "t": 0.25,
        "from": "client",
        "method": "tools/call",
        "about": "forecast",
        "id": 7,
        "status": "late error",
        "client": None,
        "server": None,
        "revision": None,
        "tool": "forecast",
        "latency_ms": 250.0,
        "error": {"name": "request cancelled", "message": "no"},
        "request_bytes": len(json.dumps(request, separators=(",", ":"))),
        "response_bytes": 63,
        "progress_count": 1,
        "response": {"jsonrpc": "2.0", "id": 7, "error": {"code": -32800, "message": "no"}},
        "code": -32800,
        "cancelled": 0.4,
    }


def test_a_peers_json_is_not_serialised_again() -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1.0,"a":1E2,"n":%d}}' % 10**40
    (line,) = "".join(export_jsonl([session_of(client(0.1, data))])).splitlines()

    assert f'"request":{data.decode()}' in line


def test_a_message_of_several_lines_is_one_here() -> None:
    data = b'{"jsonrpc":"2.0",\r\n "id":1,\n "method":"m","params":{"n":%d,"s":"a\\nb"}}' % 10**40
    (line,) = lines(session_of(client(0.1, data)))

    assert line["request"] == json.loads(data)


@pytest.mark.parametrize(
    ("params", "member"),
    [
        (b'{"a":NaN}', "request_raw"),
        (b'{"a":"\\ud800"}', "request_raw"),
        (b'{"a":"\xff"}', "request_b64"),
    ],
)
def test_a_message_that_is_not_strict_json_is_written_as_text_or_base64(params: bytes, member: str) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % params
    (line,) = lines(session_of(client(0.1, data), result(0.2)))
    written = line[member]

    assert (b64decode(written) if member.endswith("b64") else written.encode()) == data
    assert "request" not in line
    assert line["flaws"]
    assert line["response"]["id"] == 1


def test_an_id_that_is_not_json_and_an_error_that_is_not_text_are_accepted() -> None:
    odd = b'{"jsonrpc":"2.0","id":NaN,"method":"m"}'
    text = b'{"jsonrpc":"2.0","id":1,"error":{"code":%d,"message":"\\ud800"}}' % 10**30
    nan, big = lines(session_of(client(0.1, odd), call(0.2), server(0.3, text)))

    assert nan["id"] == "NaN"
    assert big["code"] == 10**30
