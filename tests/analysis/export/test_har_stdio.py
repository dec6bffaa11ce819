"""Messages over stdio as HTTP requests in HAR."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.analysis.export.har import export, stdio_entries
from mcpspy.core.recording.decode import Entry, Frame
from tests.analysis.export.sessions import HEADER, call, client, failure, result, server, session_of
from tests.analysis.export.test_har_entry import valid


def archived(*of: Entry, **more: Any) -> list[dict[str, Any]]:
    session = session_of(*of, **more)
    assert list(stdio_entries(session))
    found: list[dict[str, Any]] = valid("".join(export([session])))["log"]["entries"]
    return found


def test_a_request_and_its_response_are_an_entry() -> None:
    (entry,) = archived(call(0.25), result(0.75))

    assert entry["request"]["url"] == "stdio://weather/tools/call?name=forecast"
    assert entry["request"]["postData"]["text"].startswith('{"jsonrpc":"2.0","id":1')
    assert entry["startedDateTime"] == "2026-11-21T08:13:03.995000Z"
    assert (entry["time"], entry["timings"]["wait"]) == (500, 500)
    assert entry["response"]["content"]["text"] == '{"jsonrpc":"2.0","id":1,"result":{}}'
    assert (entry["response"]["status"], entry["response"]["statusText"]) == (200, "ok")


CANCEL = client(0.4, b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}')


@pytest.mark.parametrize(
    ("answer", "status", "text", "time"),
    [
        (failure(0.2), 500, "error", 100),
        (result(0.2, members=b'"isError":true'), 200, "tool error", 100),
        (CANCEL, 0, "cancelled by the client after 300.0 ms", 300),
        (result(0.2, 99), 0, "no answer", 0),
    ],
)
def test_the_status_is_the_outcome_of_the_request(answer: Frame, status: int, text: str, time: int) -> None:
    entry, *_ = archived(call(0.1), answer)

    assert (entry["response"]["status"], entry["response"]["statusText"]) == (status, text)
    assert entry["time"] == time
    assert ("_error" in entry) == (status == 0)


def test_a_server_request_goes_to_the_client_and_a_notification_is_accepted() -> None:
    asked, told = archived(
        server(0.1, b'{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"Well?"}}'),
        client(0.2, b'{"jsonrpc":"2.0","method":"notifications/x y"}'),
    )

    assert (asked["request"]["url"], asked["_from"]) == ("stdio://client/elicitation/create", "server")
    assert told["request"]["url"] == "stdio://weather/notifications/x%20y"
    assert told["response"]["status"] == 202


@pytest.mark.parametrize("name", ["a b", "../x", "é", "", "x:y@z"])
def test_any_name_makes_a_url(name: str) -> None:
    from msgspec.structs import replace

    (entry,) = archived(call(0.1, name="ü&=?#".encode()), header=replace(HEADER, name=name))

    assert entry["request"]["queryString"] == [{"name": "name", "value": "ü&=?#"}]


def test_a_text_that_utf_8_cannot_encode_is_not_an_error() -> None:
    text = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\\ud800"}}'
    (entry,) = archived(call(0.1), server(0.2, text))

    assert entry["comment"] == "error 1: \\ud800"


def test_only_selected_messages_are_entries() -> None:
    assert len(archived(call(0.1), CANCEL, call(0.5, 2))) == 3
    assert len(archived(call(0.1), CANCEL, call(0.5, 2), keep=lambda change: change.number != 1)) == 2
