"""The filter of the session list: matches and errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.protocol.peers import Peer
from mcpspy.core.query.lexer import QueryError
from mcpspy.core.recording.decode import Header
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.ui.tui.sessions.filter import SessionFilter


def session(name: str, state: RecordingState, server: str, client: str, **header: object) -> Summary:
    head = {"mcpspy": 1, "id": f"{name}01", "started": "2026-07-28T10:00:00.000Z", "name": name, **header}
    return Summary(
        path=Path(name),
        header=Header(**head),  # type: ignore[arg-type]
        state=state,
        exit=None,
        size=1,
        entries=1,
        last=0.0,
        client=Peer(client, "1") if client else None,
        server=Peer(server, "2.0") if server else None,
        revision="2025-11-25" if server else None,
    )


SESSIONS = [
    session(
        "weather", RecordingState.LIVE, "weather-server", "Claude", command=["npx", "-y", "@acme/weather"]
    ),
    session("memory", RecordingState.ENDED, "memory-server", "Inspector", command=["uvx", "mem"]),
    session("old one", RecordingState.DIED, "", "", upstream="http://localhost:3001/mcp"),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "weather memory old_one"),
        ("   ", "weather memory old_one"),
        ("WEATHER", "weather"),
        ("server", "weather memory"),
        ("server claude", "weather"),
        ("-server", "old_one"),
        ("server -memory", "weather"),
        ("2025-11", "weather memory"),
        ("@acme", "weather"),
        ("memory01", "memory"),
        ("emory01", ""),
        ("http://localhost", "old_one"),
        ("localhost:3001", "old_one"),
        ('"old one"', "old_one"),
        ('-"old one"', "weather memory"),
        ("state:live", "weather"),
        ("STATE:Died", "old_one"),
        ("state:l", "weather"),
        ("-state:live", "memory old_one"),
        ("name:memory", "memory"),
        ('name:"old one"', "old_one"),
        ("name:server", ""),
        ("server:weather", "weather"),
        ("server:2.0", "weather memory"),
        ("client:insp", "memory"),
        ("client:claude state:ended", ""),
        ("nothing-like-it", ""),
    ],
)
def test_sessions_are_found(text: str, found: str) -> None:
    assert [one.header.name for one in SessionFilter(text)(SESSIONS)] == [
        name.replace("_", " ") for name in found.split()
    ]


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("state:", "expected a value after 'state:' (live, ended, died)", (0, 6)),
        ("x state:gone", 'unknown state "gone": use one of live, ended, died', (8, 12)),
        ("name:", "expected a value after 'name:'", (0, 5)),
        ("stat:live", "unknown field stat: did you mean state:?", (0, 4)),
        ("a -", "expected a condition after '-'", (2, 3)),
        ('name:"x', "unclosed quote", (5, 7)),
        ('"', "unclosed quote", (0, 1)),
        ('""', "empty quotes: expected a value", (0, 2)),
    ],
)
def test_an_invalid_filter_reports_the_error_and_its_position(
    text: str, message: str, at: tuple[int, int]
) -> None:
    with pytest.raises(QueryError) as caught:
        SessionFilter(text)

    assert caught.value.args[0] == message
    assert (caught.value.start, caught.value.end) == at
