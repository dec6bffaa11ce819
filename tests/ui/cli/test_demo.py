"""`mcpspy demo`: a real session, recorded and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.core.protocol.message import Malformed
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session
from mcpspy.io.recording.catalog import find
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.cli.main import main


def test_the_demo_records_its_session_and_prints_the_next_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["demo", "--dir", str(tmp_path)]) == 0

    path = find("weather", str(tmp_path))
    session = Session().add_all(Recording(path))
    states = [exchange.state for exchange in session.exchanges]
    assert states == [State.OK, State.OK, State.OK, State.OK, State.TOOL_ERROR, State.ERROR, State.OK]
    assert len(session.exchanges[3].progress) == 3
    assert [change.what.data for change in session.changes if isinstance(change.what, Malformed)] == [
        b"DEBUG: 3 stations in cache"
    ]
    assert session.exit is not None
    assert session.exit.fields == {"code": 0, "signal": None}
    assert not [change for change in session.changes if change.flaw]
    out = capsys.readouterr().out
    assert "tools/call" in out
    *_, where, first, _, third = out.splitlines()
    assert str(path) in where
    assert f" show {path.stem[-8:]} -v " in first
    assert " run -- COMMAND " in third
