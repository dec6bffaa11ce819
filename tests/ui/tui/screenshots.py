"""Make the screenshots of docs/tui.md and the animation of README.md.

python tests/ui/tui/screenshots.py [FOLDER [NAME…]]
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from textual.pilot import Pilot

from mcpspy.core.recording.encode import FrameEncoder
from mcpspy.io.recording.reader import Summary, read_header_of, summarize
from mcpspy.io.recording.runs import FollowedRun, Runs, find_run
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.session.screen import SessionScreen
from mcpspy.ui.tui.sessions.screen import SessionsScreen
from mcpspy.ui.tui.theme import DARK, LIGHT
from mcpspy.ui.tui.widgets.base import SplitLine

ROOT = Path(__file__).resolve().parents[3]
RECORDINGS = ROOT / "recordings"

SHOTS: list[tuple[str, str, tuple[int, int], str, list[str]]] = [
    ("sessions", "", (126, 16), DARK.name, []),
    ("session", "peer-sdk-auto.jsonl", (150, 36), DARK.name, ["e"] * 2),
    ("session-80x24", "peer-sdk-modern.jsonl", (80, 24), LIGHT.name, ["e"] * 2),
    ("slow", "everything-sdk-auto.jsonl", (110, 20), DARK.name, ["s"]),
    ("problems", "peer-sdk-modern.jsonl", (110, 20), DARK.name, ["P", "j"]),
    ("help", "everything-sdk-auto.jsonl", (80, 24), DARK.name, ["question_mark"]),
    ("palette", "everything-sdk-auto.jsonl", (80, 24), DARK.name, ["colon", *"stats"]),
    ("filter", "everything-sdk-auto.jsonl", (150, 24), DARK.name, ["slash", *"tools >2ms"]),
    ("findings", "mistaken", (150, 22), DARK.name, ["w"]),
    ("held", "held", (130, 26), DARK.name, ["i", "", "H"]),
    ("resend", "held", (120, 20), DARK.name, ["escape", "k", "R"]),
    ("mock", "mock", (130, 30), DARK.name, []),
    ("connect", "mock", (100, 30), DARK.name, ["c"]),
    ("replay", "replay", (130, 30), DARK.name, []),
    ("load", "replay", (120, 24), DARK.name, ["load"]),
    ("timeline", "everything-sdk-auto.jsonl", (120, 30), DARK.name, ["L"]),
    ("run", "run", (120, 30), DARK.name, ["L"]),
    ("numbers", "everything-sdk-auto.jsonl", (120, 20), LIGHT.name, ["number_sign"]),
    ("server", "everything-sdk-auto.jsonl", (120, 26), DARK.name, ["I", *"jjjjjjjjjjjjj", "space"]),
    ("call", "call", (130, 30), DARK.name, []),
    ("diff", "", (120, 26), DARK.name, [*"jdjd", *"nnnnnn"]),
]
"""Name, recording (empty: the session list), size, theme, keys; an empty key is a pause."""

TOUR: list[tuple[float, list[str]]] = [
    (2.0, []),
    (1.0, ["j"]),
    (2.0, ["enter"]),
    (1.2, ["e"]),
    (2.5, ["e"]),
    (0.5, ["slash"]),
    (0.4, [*"tool:"]),
    (0.4, [*"ec"]),
    (1.5, [*"ho"]),
    (2.5, ["enter"]),
    (0.8, ["escape"]),
    (2.5, ["L"]),
    (2.5, ["escape", "number_sign"]),
]
"""Frames of the animation: seconds, and the keys pressed before the frame."""

ASKED: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "read_graph", "arguments": {}}),
    ("tools/call", {"name": "open_nodes", "arguments": {"names": ["Ada"]}}),
    ("tools/call", {"name": "search_nodes", "arguments": {"query": "engine"}}),
]
"""Requests of the client of a mock."""

MISTAKEN = """\
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"host","version":"1.4"}}}
< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"stations","version":"0.3"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"Oslo"},"_meta":{"progressToken":1}}}
< DEBUG: 3 stations in cache
< {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"rain"}]}}
< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":3}}
> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"Rome"}}}
< {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"json","json":{"sky":"clear"}}]}}
"""
"""A session whose server makes three mistakes."""

TOOLS = [
    {
        "name": "read_file",
        "inputSchema": {
            "type": "object",
            "required": ["path"],
            "properties": {
                "path": {"type": "string", "description": "Path of the file, in an allowed folder"},
                "head": {"type": "integer", "minimum": 1, "description": "Only the first lines"},
                "encoding": {"enum": ["utf-8", "latin-1"], "default": "utf-8"},
            },
        },
    },
    {"name": "write_file", "inputSchema": {"type": "object", "required": ["path", "text"]}},
    {"name": "move_file", "inputSchema": {"type": "object", "required": ["source", "destination"]}},
]

LISTED = (
    "peer-sdk-auto",
    "peer-sdk-legacy",
    "everything-sdk-auto",
    "filesystem-sdk-legacy",
    "memory-sdk-auto",
)


def main() -> None:
    """Make all screenshots, or those named."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots"
    only = sys.argv[2:]
    for name, recording, size, theme, keys in SHOTS:
        if only and name not in only:
            continue
        svg = asyncio.run(_shot(recording, size, theme, keys))
        (target / f"{name}.svg").write_text(_own(svg), encoding="utf-8")
    if only:
        return
    frames = asyncio.run(_tour((110, 26)))
    (target / "tour.svg").write_text(_animated([_own(svg) for svg in frames]), encoding="utf-8")


async def _shot(recording: str, size: tuple[int, int], theme: str, keys: list[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        if recording == "held":
            return await _held(folder, size, theme, keys)
        if recording == "mock":
            return await _mock(folder, size, theme, keys)
        if recording == "call":
            return await _call(Path(folder), size, theme)
        if recording == "replay":
            return await _replay(folder, size, theme, is_load=bool(keys))
        for name in LISTED:
            shutil.copy(RECORDINGS / f"{name}.jsonl", folder)
        fields: dict[str, Any] = {"transport": "stdio", "command": ["weather"], "name": "weather"}
        live = Writer(folder, None, fields, say=print)
        live.write(FrameEncoder("client").feed(0.0, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'))
        summary: Summary | FollowedRun | None = None
        if recording == "run":
            summary = _run(folder)
        elif recording:
            path = _mistaken(folder) if recording == "mistaken" else RECORDINGS / recording
            summary = summarize(path, read_header_of(path))
        app = McpspyApp(folder, summary)
        async with app.run_test(size=size) as pilot:
            app.theme = theme
            await _settle(pilot)
            for key in keys:
                await pilot.press(key)
                await pilot.pause(0.1)
            await _settle(pilot)
            if not recording and not keys:
                await _hide_folder(pilot)
            svg = app.export_screenshot(title="mcpspy tui")
        live.close()
    return svg


async def _tour(size: tuple[int, int]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name in LISTED:
            shutil.copy(RECORDINGS / f"{name}.jsonl", folder)
        app = McpspyApp(folder, None)
        frames = []
        async with app.run_test(size=size) as pilot:
            app.theme = DARK.name
            await _settle(pilot)
            for _, keys in TOUR:
                for key in keys:
                    await pilot.press(key)
                    await pilot.pause(0.1)
                await _settle(pilot)
                if isinstance(app.screen, SessionsScreen):
                    await _hide_folder(pilot)
                frames.append(app.export_screenshot(title="mcpspy"))
    return frames


def _animated(frames: list[str]) -> str:
    """Return one SVG that shows the frames one after the other, in an endless loop."""
    total = sum(seconds for seconds, _ in TOUR)
    begin, rules, groups = 0.0, [], []
    for number, ((seconds, _), svg) in enumerate(zip(TOUR, frames, strict=True)):
        end = begin + seconds
        first, last = (f"{at / total:.3%}" for at in (begin, end))
        rules.append(
            f"@keyframes f{number} {{ 0% {{ visibility: hidden }} {first} {{ visibility: visible }} "
            f"{last} {{ visibility: hidden }} }}\n"
            f".f{number} {{ visibility: hidden; animation: f{number} {total}s step-end infinite }}"
        )
        inner = svg[svg.index(">") + 1 : svg.rindex("</svg>")]
        groups.append(f'<g class="f{number}">{inner}</g>')
        begin = end
    # A viewer without animation shows the first frame.
    rules.append("@media (prefers-reduced-motion: reduce) { .f0 { visibility: visible; animation: none } }")
    head = frames[0][: frames[0].index(">") + 1]
    style = "\n".join(rules)
    return f"{head}<style>{style}</style>{''.join(groups)}</svg>\n"


async def _hide_folder(pilot: Pilot[None]) -> None:
    """Show the usual folder in the status line: the real one is temporary."""
    status = pilot.app.screen.query_one("#status", SplitLine)
    status.set_text([("watching ~/.local/share/mcpspy/sessions", "quiet")])
    await pilot.pause()


async def _held(folder: str, size: tuple[int, int], theme: str, keys: list[str]) -> str:
    """Return a screenshot of a session with two held calls."""
    sys.path.insert(0, str(ROOT))
    os.environ["MCPSPY_RUNTIME"] = f"{folder}/live"
    from mcpspy.io.control.server_asyncio import AsyncioServer
    from tests.ui.tui.intercept.conftest import Reached, call, result

    session = Reached(Path(folder))
    control = AsyncioServer.open(session, print)
    assert control is not None
    session.begin()
    session.say("client", b'{"jsonrpc":"2.0","id":"t","method":"tools/list"}')
    session.say("server", json.dumps({"jsonrpc": "2.0", "id": "t", "result": {"tools": TOOLS}}).encode())
    for number, name in enumerate(("notes", "plan"), 1):
        session.say("client", call(number, "read_file", path=f"{name}.md"))
        session.say("server", result(number, f"# {name}"))
    app = McpspyApp(folder, summarize(session.path, read_header_of(session.path)))
    async with app.run_test(size=size) as pilot:
        app.theme = theme
        await _settle(pilot)
        assert isinstance(app.screen, SessionScreen)
        app.screen.filter.put("tool:*_file from:client")
        for key in keys:
            if key:
                await pilot.press(key)
            else:
                session.say("client", call(3, "write_file", path="plan.md", text="# plan\n\n1. ship it"))
                session.say("client", call(4, "move_file", source="plan.md", destination="done.md"))
                await pilot.pause(2.5)
            await _settle(pilot)
        svg = app.export_screenshot(title="mcpspy tui")
    session.end()
    await control.close()
    return svg


async def _mock(folder: str, size: tuple[int, int], theme: str, keys: list[str]) -> str:
    """Return a screenshot of a mock with one client, whose last request was not recorded."""
    sys.path.insert(0, str(ROOT))
    os.environ["MCPSPY_RUNTIME"] = f"{folder}/live"
    import aiohttp

    from mcpspy.ui.model import mock_control
    from mcpspy.ui.model.mock_engine import MockSetup
    from mcpspy.ui.tui.mock.screen import MockScreen
    from tests.io.mock.speaking import Spoken

    program = patch.object(mock_control, "command_line", return_value=["/home/ada/.local/bin/mcpspy"])
    path = RECORDINGS / "memory-sdk-auto.jsonl"
    app = McpspyApp(folder)
    async with app.run_test(size=size) as pilot, aiohttp.ClientSession() as http:
        app.theme = theme
        program.start()
        mock = mock_control.RunningMock(MockSetup(recording=str(path), folder=folder, port=8809))
        await mock.start()
        served, own = (summarize(each, read_header_of(each)) for each in (path, mock.path))
        app.push_screen(MockScreen(mock, served, own))
        await pilot.pause(1.5)
        client = Spoken(None, http, mock.url.removesuffix("/mcp"))  # type: ignore[arg-type]
        await client.begin("2025-06-18")
        for number, (method, params) in enumerate(ASKED, 1):
            await client.say(id=number, method=method, params=params)
        await pilot.pause(1.0)
        for key in keys:
            await pilot.press(key)
        await _settle(pilot)
        program.stop()
        return app.export_screenshot(title="mcpspy tui")


def save_call(folder: Path) -> None:
    """Make a folder the current one, with a saved call of a program `hotel`, and without the hosts of the user."""
    program = folder / "bin" / "hotel"
    calls = folder / "tests" / "calls"
    for each in (program.parent, calls):
        each.mkdir(parents=True)
    server = ROOT / "tests" / "servers" / "forms.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{server}"\n', encoding="utf-8")
    program.chmod(0o700)
    arguments = {"city": "Oslo", "nights": 3, "room": "double", "guests": ["Ada", "Grace"]}
    call = {"command": ["hotel"], "tool": "book", "arguments": arguments}
    (calls / "oslo.yaml").write_text(json.dumps(call), encoding="utf-8")
    os.environ["PATH"] = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        os.environ[name] = str(folder / "home")
    os.chdir(folder)


async def _call(folder: Path, size: tuple[int, int], theme: str) -> str:
    """Return a screenshot of the form of a call, and of its response."""
    from mcpspy.ui.tui.call.form import CallFormScreen

    sessions = folder / "sessions"
    sessions.mkdir()
    before, environment = Path.cwd(), dict(os.environ)
    save_call(folder)
    try:
        app = McpspyApp(str(sessions))
        async with app.run_test(size=size) as pilot:
            app.theme = theme
            await _settle(pilot)
            await pilot.press("left_parenthesis")
            await _settle(pilot)
            await pilot.press("enter")
            while not isinstance(app.screen, CallFormScreen):
                await pilot.pause(0.1)
            await _settle(pilot)
            await pilot.press("ctrl+s")
            while app.screen.has_class("-empty"):
                await pilot.pause(0.1)
            await _settle(pilot)
            return app.export_screenshot(title="mcpspy tui")
    finally:
        os.chdir(before)
        os.environ.clear()
        os.environ.update(environment)


async def _replay(folder: str, size: tuple[int, int], theme: str, *, is_load: bool) -> str:
    """Return a screenshot of a replay with a breaking change, or of a load test of the same session."""
    sys.path.insert(0, str(ROOT))
    from mcpspy.ui.model.replay_options import ReplayForm
    from mcpspy.ui.tui.replay.load import LoadScreen
    from mcpspy.ui.tui.replay.screen import ReplayScreen
    from tests.ui.model.replaying import command, echoes, record

    path = await record(Path(folder) / "echo.jsonl", *echoes("one", "two", "three"))
    form = ReplayForm(
        server="node server.js",
        mode="load" if is_load else "once",
        clients="8",
        repeat="20",
        fail_if="p95>2s",
    )
    config = {**form.config(), "path": str(path), "command": command("same" if is_load else "breaking")}
    app = McpspyApp(folder, summarize(path, read_header_of(path)))
    async with app.run_test(size=size) as pilot:
        app.theme = theme
        await _settle(pilot)
        assert isinstance(app.screen, SessionScreen)
        model = app.screen.loader.model
        screen = LoadScreen(config, "echo") if is_load else ReplayScreen(config, "echo", model)
        screen.shown_target = "node server.js"
        app.push_screen(screen)
        while not screen.model.is_over:
            await pilot.pause(0.1)
        await _settle(pilot)
        return app.export_screenshot(title="mcpspy tui")


def _run(folder: str) -> FollowedRun:
    """Return a run of three recorded sessions that begin one after the other."""
    for number, name in enumerate(("everything-sdk-auto", "filesystem-sdk-legacy", "memory-sdk-auto")):
        head, _, rest = (RECORDINGS / f"{name}.jsonl").read_bytes().partition(b"\n")
        fields = {
            **json.loads(head),
            "started": f"2026-11-26T10:00:00.{number * 150:03}Z",
            "parent": {"pid": 4242, "program": "claude", "started": "2026-11-26T09:59:58.000Z"},
        }
        (Path(folder) / f"run-{name}.jsonl").write_bytes(json.dumps(fields).encode() + b"\n" + rest)
    runs = Runs(folder)
    return FollowedRun(runs, find_run("run:last", folder, runs))


def _mistaken(folder: str) -> Path:
    writer = Writer(
        folder, None, {"transport": "stdio", "command": ["stations"], "name": "stations"}, say=print
    )
    for step, line in enumerate(MISTAKEN.splitlines()):
        side = "client" if line[0] == ">" else "server"
        writer.write(FrameEncoder(side).feed(step * 0.021, line[2:].encode() + b"\n"))
    writer.note(0.3, "eof", **{"from": "client"})
    writer.note(0.31, "exit", code=0, signal=None)
    writer.close()
    return Path(writer.path)


async def _settle(pilot: Pilot[None]) -> None:
    for _ in range(10):
        await pilot.pause(0.05)


def _own(svg: str) -> str:
    """Return an SVG that loads no remote font and keeps its spaces in every viewer."""
    svg = re.sub(r"\s*@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return svg.replace("<text ", '<text xml:space="preserve" ')


if __name__ == "__main__":
    main()
