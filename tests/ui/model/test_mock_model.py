"""The model of a live mock: its requests, interactions and clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.recording.decode import Frame, Header
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.model.mock_model import MockModel, RecordedInteractions, load
from mcpspy.ui.model.session_model import SessionModel

Make = Any

HEADER = Header(mcpspy=1, id="00000000", started="2026-11-21T08:00:00.000Z", name="mock")


class Session:
    """A session that a mock records."""

    def __init__(self) -> None:
        self._file = b""
        self.rows = SessionModel(HEADER, lambda _part, offset, length: self._file[offset : offset + length])
        self.rows.begin_part()
        self.model = MockModel(self.rows)

    def add(self, **fields: Any) -> Session:
        line = json.dumps({"t": len(self.rows) / 10, **fields}, separators=(",", ":")).encode()
        offset = len(self._file)
        self._file += line + b"\n"
        self.rows.add_lines([line], offset)
        return self

    def asks(self, id: int, method: str = "tools/call", **params: Any) -> Session:  # noqa: A002
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return self.add(**{"from": "client", "msg": message})

    def notes(self, **fields: Any) -> Session:
        return self.add(note="mock", **fields)

    def read(self) -> MockModel:
        self.model.advance(lambda: True)
        return self.model


def played(id: str, number: int, client: int = 1, **more: Any) -> dict[str, Any]:  # noqa: A002
    return {
        "did": "played",
        "client": client,
        "id": id,
        "request": "tools/call echo",
        "interaction": number,
        **more,
    }


def test_a_request_and_the_note_on_it_belong_together() -> None:
    session = Session().asks(1, name="echo").asks(2, name="echo")
    session.notes(**played("2", 4, place=1, count=2)).notes(**played("1", 5, place=2, count=2))
    model = session.read()
    assert [model.note(place)["interaction"] for place in range(2)] == [5, 4]
    assert (dict(model.asked), model.left) == ({4: 1, 5: 1}, {4: 1, 5: 0})


def test_notes_on_equal_ids_of_two_clients_are_taken_in_order() -> None:
    session = Session().asks(1, name="echo").asks(1, "tools/list").asks(1, name="echo")
    session.notes(**played("1", 4)).notes(**{**played("1", 6), "request": "tools/list"}).notes(
        **played("1", 5, 2)
    )
    assert [session.read().note(place)["interaction"] for place in range(3)] == [4, 6, 5]


def test_a_request_that_waits_has_no_note() -> None:
    model = Session().asks(1, name="echo").read()
    assert (model.note(0), model.note_row(0)) == ({}, None)


def test_requests_of_the_server_are_not_listed() -> None:
    session = Session().add(**{"from": "server", "msg": {"jsonrpc": "2.0", "id": 1, "method": "ping"}})
    assert len(session.read().requests) == 0


def test_clients_are_counted_and_leave() -> None:
    session = Session().notes(**played("0", 0), name="one 1").notes(**played("1", 4, 2), name="two")
    session.notes(did="missed", client=2, id="2", request="tools/call x").notes(did="left", client=1)
    model = session.read()
    assert [(each.name, each.requests, each.misses) for each in model.clients.values()] == [
        ("one 1", 1, 0),
        ("two", 2, 1),
    ]
    assert [each.number for each in model.connected] == [2]
    assert model.misses == 1


def test_the_last_options_are_kept() -> None:
    session = Session().notes(did="changed", match="exact", misses="error")
    session.notes(did="changed", match="tool", misses="nearest")
    assert session.read().options["match"] == "tool"


def test_a_damaged_note_is_ignored() -> None:
    model = Session().asks(1, name="echo").notes(did=7, client="x", interaction="y", id=None).read()
    assert (model.note(0), dict(model.asked), model.clients) == ({}, {}, {})


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def call(number: int, **arguments: Any) -> bytes:
    return line(id=number, method="tools/call", params={"name": "echo", "arguments": arguments})


@pytest.fixture
def path(make_recording: Make) -> Path:
    entries = [
        ("client", call(1, n=1)),
        ("server", line(id=1, result={"said": "first"})),
        ("client", line(id=2, method="resources/read", params={"uri": "file:///x"})),
        ("server", line(id=2, error={"code": -1, "message": "no"})),
        ("client", line(id=3, method="tools/list")),
    ]
    found: Path = make_recording(entries)
    return found


@pytest.fixture
def recorded(path: Path) -> RecordedInteractions:
    return load(path)


def test_interactions_are_texts_in_recorded_order(recorded: RecordedInteractions) -> None:
    texts = [recorded.text(place) for place in range(len(recorded))]
    assert [(each.method, each.subject, each.arguments, each.outcome) for each in texts] == [
        ("tools/call", "echo", '{"n":1}', "result"),
        ("resources/read", "file:///x", "", "error"),
        ("tools/list", "", "", "no response"),
    ]
    assert [recorded.place_of(each.number) for each in texts] == [0, 1, 2]
    assert recorded.place_of(99) is None
    assert recorded.place_of(None) is None


def test_the_closest_interaction_is_that_with_the_same_params_or_the_nearest(
    recorded: RecordedInteractions,
) -> None:
    def closest(data: bytes) -> int | None:
        (message,) = read_frame(Frame(0.0, "client", data))
        assert isinstance(message, Request)
        return recorded.closest(message)

    first = recorded.text(0).number
    assert closest(call(7, n=1)) == first
    assert closest(call(7, n=2)) == first


def test_a_recording_is_saved_with_edited_responses(
    path: Path, recorded: RecordedInteractions, tmp_path: Path
) -> None:
    first, second = recorded.text(0).number, recorded.text(1).number
    answers = {first: ("result", {"said": "edited"}), second: ("result", {"contents": []})}
    new = tmp_path / "new.jsonl"
    new.write_bytes(b"".join(recorded.edited(path, answers)))
    edited = load(new)
    assert [edited.response(each).data for each in (first, second)] == [  # type: ignore[union-attr]
        b'{"jsonrpc":"2.0","id":1,"result":{"said":"edited"}}',
        b'{"jsonrpc":"2.0","id":2,"result":{"contents":[]}}',
    ]
    before, after = Recording(path), Recording(new)
    assert (before.header.name, before.header.started) == (after.header.name, after.header.started)
    assert before.header.id != after.header.id
    assert len(list(before)) == len(list(after))


def test_a_request_without_a_response_cannot_be_edited(path: Path, recorded: RecordedInteractions) -> None:
    number = recorded.text(2).number
    with pytest.raises(UsageError, match=f"request {number} has no response"):
        list(recorded.edited(path, {number: ("result", {})}))
