"""The demo, recorded in the background."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.recording.catalog import sessions
from mcpspy.io.recording.reader import RecordingState
from mcpspy.ui.demo import client
from mcpspy.ui.demo.client import record


async def test_a_session_is_recorded_without_a_word(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await record(str(tmp_path)) == ""
    (summary,) = sessions(str(tmp_path))
    assert (summary.header.name, summary.state) == ("weather", RecordingState.ENDED)
    assert capfd.readouterr() == ("", "")


async def test_an_error_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    error = await record(str(tmp_path / "file" / "folder"))
    assert error
    assert "\n" not in error


async def test_it_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    create = asyncio.create_subprocess_exec

    async def start(*args: str, **how: Any) -> asyncio.subprocess.Process:
        started.append(await create(*args, **how))
        return started[-1]

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    monkeypatch.setattr(client, "RECORD_TIMEOUT", 0.01)
    assert "took longer than" in await record(str(tmp_path))
    assert started[0].returncode is not None
