"""`mcpspy demo`: a real session, recorded and shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.core.protocol.message import Malformed
from mcpspy.core.session.exchange import State
from mcpspy.core.session.session import Session
from mcpspy.io.recording.lookup import find
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
    *_, where, first, _, third, keys = out.splitlines()
    assert str(path) in where
    assert f" show {path.stem[-8:]} -v --dir {tmp_path}  " in first
    assert f" run --dir {tmp_path} -- COMMAND …  " in third
    assert keys == "In the terminal UI, press > to replay it, < to serve it."


@pytest.mark.parametrize("options", ["", "--dir 'my sessions'"])
def test_the_next_command_can_be_run_as_it_is_printed(tmp_path: Path, options: str) -> None:
    def shell(command: str) -> str:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    printed = shell(f"{sys.executable} -m mcpspy demo --plain {options}")
    command, _, _ = printed.splitlines()[-4].partition("  print the session")

    assert '"method": "tools/call"' in shell(command)
