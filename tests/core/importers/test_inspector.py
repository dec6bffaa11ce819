"""Exports of the Inspector's Protocol tab."""

from __future__ import annotations

import json
from typing import Any

from mcpspy.core.importers.inspector import MAX_MESSAGES, sessions
from tests.core.importers.reading import frames


def entry(seconds: int, direction: str, message: Any, **fields: Any) -> dict[str, Any]:
    when = f"2026-11-21T08:00:{seconds:02}.000Z"
    return {"id": "x", "timestamp": when, "direction": direction, "message": message, **fields}


def test_a_response_stored_with_its_request_keeps_its_own_time() -> None:
    ask = entry(1, "request", {"id": 1}, origin="client", response={"id": 1, "result": {}}, duration=2500)
    told = entry(2, "notification", {"method": "x"}, origin="server")
    (session,) = sessions(json.dumps([ask, told], indent=2).encode())
    assert frames(session) == [
        (0.0, "client", b'{"id":1}'.replace(b" ", b"")),
        (1.0, "server", b'{"method":"x"}'),
        (2.5, "server", b'{"id":1,"result":{}}'),
    ]
    assert session.changed == []


def test_a_missing_sender_is_inferred_from_the_method() -> None:
    said = {
        "tools/call": ("request", "client"),
        "sampling/createMessage": ("request", "server"),
        "ping": ("request", "client"),
        "acme/ask": ("request", "client"),
        "notifications/initialized": ("notification", "client"),
        "notifications/message": ("notification", "server"),
        "notifications/progress": ("notification", "server"),
        "notifications/cancelled": ("notification", "client"),
        "notifications/acme": ("notification", "server"),
    }
    entries = [entry(at, kind, {"method": method}) for at, (method, (kind, _)) in enumerate(said.items())]
    entries.append(entry(20, "response", {"id": 1, "result": {}}))
    (session,) = sessions(json.dumps(entries).encode())
    assert [side for _, side, _ in frames(session)] == [*(side for _, side in said.values()), "server"]
    assert session.changed == ["sender inferred from the method: 10 messages"]


def test_the_sender_of_what_is_not_a_message_is_that_of_its_kind() -> None:
    odd = [entry(1, "request", [1]), entry(2, "notification", "text"), entry(3, "request", {"method": 7})]
    (session,) = sessions(json.dumps(odd).encode())
    assert [side for _, side, _ in frames(session)] == ["client", "server", "client"]


def test_a_full_log_is_reported_to_lack_its_beginning() -> None:
    (session,) = sessions(json.dumps([entry(1, "notification", {}, origin="server")] * MAX_MESSAGES).encode())
    assert session.changed == ["earlier messages may be missing: the Inspector keeps only 1000"]
