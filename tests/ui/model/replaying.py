"""A recorded session of the server `replayed.py`, and a viewer that replays it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from mcpspy.io.client import ReceivedMessage, ServerCommand, connect
from mcpspy.io.engine import EngineProcess
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.ui.model.replay_run import ReplayModel, StepState
from tests.io.files import BOUND

SERVER = Path(__file__).parent.parent.parent / "servers" / "replayed.py"

ENGINE = "mcpspy.ui.model.replay_engine"


def command(how: str = "same") -> list[str]:
    """Return the command of the server, or of a changed version."""
    return [sys.executable, "-I", "-S", str(SERVER), how]


async def record(path: Path, *calls: tuple[str, dict[str, Any]]) -> Path:
    """Record a handshake, the list of tools, and these calls."""
    where = RecordingTarget()
    where.record = str(path)
    recorder = Recorder(
        where, {"transport": "stdio", "command": command(), "name": "replayed", "cwd": str(path.parent)}
    )
    info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    requests: list[tuple[str, dict[str, Any]]] = [("initialize", info), ("tools/list", {})]
    requests += [("tools/call", {"name": name, "arguments": arguments}) for name, arguments in calls]
    async with asyncio.timeout(BOUND), await connect(ServerCommand(command()), recorder) as connection:
        for number, (method, params) in enumerate(requests, 1):
            text = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            await connection.send(json.dumps(text).encode())
            while not isinstance(await connection.hear(), ReceivedMessage):
                pass
            if number == 1:
                await connection.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert connection.ended is not None
    recorder.finish(connection.ended.code, connection.ended.signal)
    return path


def echoes(*texts: str) -> list[tuple[str, dict[str, Any]]]:
    return [("echo", {"text": text}) for text in texts]


class Watched:
    """An engine, and the model that takes its events."""

    def __init__(self, path: Path, how: str = "same", **options: Any) -> None:
        self.model = ReplayModel()
        self._config = {"path": str(path), "command": command(how), "timeout": 10.0, **options}
        self._changed = asyncio.Event()
        self.reasons: list[str] = []
        self.engine = EngineProcess(ENGINE, self._take, self._ended)
        self.send = self.engine.send

    async def __aenter__(self) -> Self:
        await self.engine.start(self._config)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.stop()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(BOUND):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def ended(self) -> ReplayModel:
        await self.until(lambda: self.model.is_over)
        return self.model

    @property
    def states(self) -> list[str]:
        return [StepState(state).name for state in self.model.states]

    def _take(self, event: dict[str, Any]) -> None:
        self.model.take(event)
        self._changed.set()

    def _ended(self, reason: str) -> None:
        self.reasons.append(reason)
        self._changed.set()
