"""Tests of reading held messages from control events."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.ui.model.intercept_connection import HeldMessage, read_held
from tests.ui.tui.intercept.conftest import call, result

EVENT: dict[str, Any] = {
    "event": "held",
    "ticket": 7,
    "at": 2.0,
    "from": "client",
    "id": "1",
    "method": "tools/call",
    "subject": "write_file",
    "viewer": "tui",
    "text": call(1).decode(),
    "deadline": 302.0,
}


def read(**other: Any) -> HeldMessage:
    held = read_held({**EVENT, **other}, 100.0)
    assert held is not None
    return held


def test_the_times_of_a_held_message_are_local() -> None:
    assert (read().since, read().until) == (100.0, 400.0)
    assert (read(age=30.0).since, read(age=30.0).until) == (70.0, 370.0)


def test_a_held_message_is_named_by_method_and_subject() -> None:
    assert (read().name, read().is_request) == ("tools/call write_file", True)
    response = read(text=result(1).decode(), **{"from": "server"})
    assert (response.name, response.is_request) == ("response to tools/call write_file", False)
    assert read(text="[]", method="", subject="", id=None).name == "message"


def test_bytes_that_are_not_text_are_kept() -> None:
    fields = {key: value for key, value in EVENT.items() if key != "text"}
    held = read_held({**fields, "b64": "/3t9"}, 0.0)
    assert held is not None
    assert held.data == b"\xff{}"


@pytest.mark.parametrize(
    "wrong", [{"ticket": "x"}, {"at": None}, {"text": 3}, {"deadline": "soon"}, {"b64": "x"}], ids=str
)
def test_a_malformed_event_is_none(wrong: dict[str, Any]) -> None:
    assert read_held({**EVENT, **wrong}, 0.0) is None
    assert read_held({}, 0.0) is None
