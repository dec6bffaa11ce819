"""Columns and views of the user's files in a session."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

import mcpspy
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.session.panes import Panes
from mcpspy.ui.views import extension as module
from mcpspy.ui.views.extension import Extension

SECONDS = 20.0

SCRIPT = """
import threading
go = threading.Event()

def column_who(exchange):
    return f"<{exchange.tool}>"

def column_stuck(exchange):
    threading.Event().wait()

def view_late(content):
    if content.text == "late":
        go.wait()
        return [[("it is ", None), ("here", "ok")]]
"""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    path = tmp_path / "session.jsonl"
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "late"}]}}
    mcpspy.Recording.write(path, [("client", call, 0.0), ("server", answer, 0.5)])
    return path


def app_of(session: Path, files: list[str]) -> McpspyApp:
    summary = summarize(session, read_header_of(session), counts=False)
    return McpspyApp(None, [summary], extension=Extension(files))


def drawn(app: McpspyApp) -> str:
    panes = app.screen.query_one(Panes)
    lines = [*range(panes.listing.size.height)]
    listing = "\n".join(panes.listing.render_line(y).text for y in lines)
    viewer = panes.detail.query("Viewer").first()
    return listing + "\n" + "\n".join(viewer.render_line(y).text for y in range(viewer.size.height))


async def until(pilot: Pilot[None], app: McpspyApp, text: str) -> str:
    async with asyncio.timeout(SECONDS):
        while text not in (shown := drawn(app)):
            await pilot.pause(0.02)
    return shown


async def test_a_slow_column_or_view_never_keeps_the_screen_waiting(
    session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LIMIT", 2.0)
    (tmp_path / "own.py").write_text(SCRIPT, encoding="utf-8")
    app = app_of(session, [str(tmp_path / "own.py")])
    async with app.run_test(size=(170, 30)) as pilot:
        shown = await until(pilot, app, "<echo>")
        assert "who" in shown.splitlines()[0]
        await until(pilot, app, "not done")


async def test_a_view_that_is_ready_later_is_shown_then(session: Path, tmp_path: Path) -> None:
    text = SCRIPT.replace("def column_stuck", "def other_stuck")
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    extension = Extension([str(tmp_path / "own.py")])
    app = McpspyApp(None, [summarize(session, read_header_of(session), counts=False)], extension=extension)
    async with app.run_test(size=(150, 30)) as pilot:
        await until(pilot, app, "<echo>")
        await pilot.press("enter", "2")
        await until(pilot, app, "…")
        extension.columns["who"].__globals__["go"].set()
        await until(pilot, app, "it is here")


async def test_without_a_file_there_is_no_other_column(session: Path) -> None:
    app = app_of(session, [])
    async with app.run_test(size=(150, 30)) as pilot:
        shown = await until(pilot, app, "echo")

        assert "who" not in shown
