"""The filter of the list of sessions finds what is meant, and says what it cannot."""

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
    session("odd one", RecordingState.DIED, "", "", upstream="http://localhost:3001/mcp"),
]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "weather memory odd_one"),
        ("   ", "weather memory odd_one"),
        ("WEATHER", "weather"),
        ("server", "weather memory"),
        ("server claude", "weather"),
        ("-server", "odd_one"),
        ("server -memory", "weather"),
        ("2025-11", "weather memory"),
        ("@acme", "weather"),
        ("memory01", "memory"),
        ("emory01", ""),
        ("http://localhost", "odd_one"),
        ("localhost:3001", "odd_one"),
        ('"odd one"', "odd_one"),
        ('-"odd one"', "weather memory"),
        ("state:live", "weather"),
        ("STATE:Died", "odd_one"),
        ("state:l", "weather"),
        ("-state:live", "memory odd_one"),
        ("name:memory", "memory"),
        ('name:"odd one"', "odd_one"),
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
        ("state:", "state: what? One of live, ended, died", (0, 6)),
        ("x state:gone", "gone is no state: one of live, ended, died", (8, 12)),
        ("name:", "name: what?", (0, 5)),
        ("stat:live", "unknown field stat: did you mean state:?", (0, 4)),
        ("a -", "- what?", (2, 3)),
        ('name:"x', '" is never closed', (5, 7)),
        ('"', '" is never closed', (0, 1)),
        ('""', "nothing between the quotes", (0, 2)),
    ],
)
def test_a_bad_filter_shows_what_is_wrong_and_where(text: str, message: str, at: tuple[int, int]) -> None:
    with pytest.raises(QueryError) as caught:
        SessionFilter(text)

    assert caught.value.args[0] == message
    assert (caught.value.start, caught.value.end) == at
