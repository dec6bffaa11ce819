"""Sessions of a list."""

from __future__ import annotations

from pathlib import Path

from mcpspy.core.protocol.peers import Peer
from mcpspy.core.recording.decode import Header
from mcpspy.io.recording.reader import RecordingState, Summary


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
