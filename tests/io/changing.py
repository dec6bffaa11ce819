"""A session with the sample server `changing.py`, before it changed."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

from mcpspy.core.session.session import Session
from mcpspy.io.client import ReceivedMessage, ServerCommand, ServerConnection, connect
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.recorder import Recorder, RecordingTarget

SERVER = Path(__file__).parent.parent / "servers" / "changing.py"

ANSWERS = {
    "roots/list": {"roots": [{"uri": "file:///home/ada"}]},
    "elicitation/create": {"action": "accept", "content": {"colour": "blue"}},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"},
}

CARRY = r"/result/content/0/text=session (\S+)"
"""The substitution rule that this session needs."""


def patience(how: str) -> int:
    """Return the seconds to wait for a response: few if none will come."""
    return {"mute": 1, "garbage": 1, "hang": 2}.get(how, 30)


def command(how: str = "same") -> list[str]:
    """Return the command of the server, or of its changed version."""
    return [sys.executable, "-I", "-S", str(SERVER), how]


def record(path: Path) -> Path:
    """Record a session with one of everything."""
    where = RecordingTarget()
    where.record = str(path)
    recorder = Recorder(where, {"transport": "stdio", "command": command(), "name": "changing"})
    asyncio.run(_talk(recorder))
    return path


def read(path: str | Path) -> Session:
    """Return the session of a recording."""
    recording = Recording(path)
    session = Session(recording.header).add_all(recording)
    session.end()
    return session


async def _talk(recorder: Recorder) -> None:
    async with asyncio.timeout(20), await connect(ServerCommand(command()), recorder) as connection:
        info = {"name": "c", "version": "1"}
        capabilities: dict[str, Any] = {"roots": {}, "elicitation": {}, "sampling": {}}
        await _ask(
            connection,
            1,
            "initialize",
            protocolVersion="2025-11-25",
            capabilities=capabilities,
            clientInfo=info,
        )
        await _say(connection, method="notifications/initialized")
        await _ask(connection, 2, "tools/list")
        opened = await _ask(connection, 3, "tools/call", name="open")
        found = re.search(r"s-\d+", opened["content"][0]["text"])
        assert found is not None
        await _ask(connection, 4, "tools/call", name="use", arguments={"session": found[0]})
        await _ask(connection, 5, "tools/call", name="ask")
        await _ask(connection, 6, "tools/call", name="slow", _meta={"progressToken": "p"})
        await _ask(connection, 7, "tools/call", name="add", arguments={"a": 1, "b": 2})
        await _ask(connection, 8, "tools/call", name="add", arguments={"a": 2, "b": 2})
    assert connection.ended is not None
    recorder.finish(connection.ended.code, connection.ended.signal)


async def _say(connection: ServerConnection, **members: Any) -> None:
    await connection.send(json.dumps({"jsonrpc": "2.0", **members}).encode())


async def _ask(connection: ServerConnection, number: int, method: str, **params: Any) -> Any:
    await _say(connection, id=number, method=method, params=params)
    while True:
        event = await connection.hear()
        assert isinstance(event, ReceivedMessage), event
        message = json.loads(event.data)
        if "method" not in message:
            assert message["id"] == number
            return message["result"]
        if "id" in message:
            await _say(connection, id=message["id"], result=ANSWERS[message["method"]])
