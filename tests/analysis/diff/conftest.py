"""Sessions for tests: built by hand, or edited from real recordings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from mcpspy.core.recording.decode import Frame, Header, Note
from mcpspy.core.session.session import Session
from mcpspy.io.recording.reader import Recording

RECORDINGS = Path(__file__).parent.parent.parent.parent / "recordings"

Said = tuple[str, dict[str, Any] | bytes]
Make = Callable[..., Session]
Edit = Callable[[str, dict[str, Any]], dict[str, Any] | None]
Edited = Callable[[str, Edit], Session]


@pytest.fixture
def record() -> Make:
    """Return a session of these messages, a millisecond apart; ended by default."""

    def make(
        messages: Iterable[Said], *, pace: float = 0.001, exit_code: int | None = None, ends: bool = True
    ) -> Session:
        session = Session(Header(mcpspy=1, id="a1", started="2026-01-01T00:00:00.000Z"))
        for step, (side, message) in enumerate(messages):
            data = message if isinstance(message, bytes) else orjson.dumps({"jsonrpc": "2.0", **message})
            session.add(Frame(step * pace, side, data))
        if exit_code is not None:
            session.add(Note(9.0, "exit", {"code": exit_code, "signal": None}))
        if ends:
            session.end()
        return session

    return make


@pytest.fixture
def edited() -> Edited:
    """Return a real recording with each message replaced by the result of `edit`; None removes the message."""

    def make(name: str, edit: Edit) -> Session:
        recording = Recording(RECORDINGS / f"{name}.jsonl")
        session = Session(recording.header)
        for entry in recording:
            if isinstance(entry, Frame) and entry.data[:1] == b"{":
                message = edit(entry.side, orjson.loads(entry.data))
                if message is None:
                    continue
                session.add(Frame(entry.at, entry.side, orjson.dumps(message)))
            else:
                session.add(entry)
        session.end()
        return session

    return make


@pytest.fixture
def recorded(edited: Edited) -> Callable[[str], Session]:
    """Return a real recording."""
    return lambda name: edited(name, lambda _, message: message)
