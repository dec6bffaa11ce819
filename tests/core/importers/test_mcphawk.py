"""Databases of mcphawk."""

from __future__ import annotations

from typing import Any

import pytest

from mcpspy.core.importers.mcphawk import McphawkDatabase, sessions
from mcpspy.errors import UsageError
from tests.core.importers.reading import entries, frames, notes


def session_row(**fields: Any) -> dict[str, Any]:
    return {
        "id": "s",
        "name": "n",
        "transport": "stdio",
        "target": "python -m x",
        "server_name": None,
        "started_at": 1.0,
        "ended_at": 9.0,
        **fields,
    }


def message(number: int, ts: float, direction: str, body: Any, request: int | None = None) -> dict[str, Any]:
    row = {"session_id": "s", "id": number, "ts": ts, "direction": direction}
    return {**row, "body": body, "request": request}


def test_a_response_stored_before_its_request_is_sorted_after_it() -> None:
    rows = [
        message(1, 5.0, "s2c", "[1]", request=3),
        message(2, 5.5, "c2s", "[2]"),
        message(3, 6.0, "c2s", "[3]"),
        message(4, 7.0, "s2c", "[4]", request=2),
        message(5, 8.0, "s2c", "[5]", request=99),
    ]
    (session,) = sessions(McphawkDatabase(1, [session_row()], rows))
    assert [said for _, _, said in frames(session)] == [b"[2]", b"[3]", b"[1]", b"[4]", b"[5]"]
    assert session.changed == ["moved after their requests: 1 response"]


def test_a_session_has_its_command_or_its_address() -> None:
    http = session_row(transport="streamable_http", target="http://h/mcp", server_name="peer")
    for row, wanted in (
        (session_row(), ("stdio", ["python", "-m", "x"], None, "n")),
        (session_row(target="python 'x"), ("stdio", ["python 'x"], None, "n")),
        (http, ("http", None, "http://h/mcp", "peer")),
    ):
        (session,) = sessions(McphawkDatabase(1, [row], [message(1, 5.0, "c2s", '{"k":"••••"}')]))
        assert (session.transport, session.command, session.upstream, session.name) == wanted
        assert session.changed == ["already masked in the file: 1 message"]
        assert getattr(entries(session)[0], "stream", None) == (None if row["transport"] == "stdio" else "1")


def test_a_session_may_lack_its_end_and_one_without_messages_is_skipped() -> None:
    database = McphawkDatabase(
        1, [session_row(ended_at=None), session_row(id="t")], [message(1, 5.0, "c2s", "[]")]
    )
    (session,) = sessions(database)
    assert session.key == "s"
    assert notes(session, "exit") == []


@pytest.mark.parametrize("odd", [{"direction": "up"}, {"body": b"x"}, {"ts": None}])
def test_rows_and_schemas_of_another_version_are_refused(odd: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="unexpected values in message 1"):
        sessions(McphawkDatabase(1, [session_row()], [message(1, 5.0, "c2s", "[]") | odd]))
    with pytest.raises(UsageError, match=r"^unsupported mcphawk schema 7"):
        sessions(McphawkDatabase(7, [], []))
