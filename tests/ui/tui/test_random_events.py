"""Random keys, clicks and resizes on every kind of session, also in terminals of a few cells: no exception.

Each event takes 15 ms of CPU time. `make keys`, or MCPSPY_RANDOM_EVENTS=20000, sends more, with a million messages.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import traceback
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import textual.pilot
from textual import events
from textual.binding import Binding
from textual.drivers.headless_driver import HeadlessDriver
from textual.geometry import Size
from textual.pilot import Pilot
from textual.screen import Screen

from bench.sessions import write_long
from mcpspy.io.control.server_asyncio import AsyncioServer
from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.ui.model import mock_control
from mcpspy.ui.model.mock_engine import MockSetup
from mcpspy.ui.model.replay_options import ReplayForm
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.tui.app import McpspyApp, keyed
from mcpspy.ui.tui.mock.screen import MockScreen
from mcpspy.ui.tui.replay import engine_screen
from mcpspy.ui.tui.replay import screen as replay_screen
from mcpspy.ui.tui.sessions import screen as sessions_screen
from tests.ui.tui.conftest import BOUND, Live, settled
from tests.ui.tui.intercept.conftest import Reached, call, result

COUNT = int(os.environ.get("MCPSPY_RANDOM_EVENTS", "2000"))
IS_LONG = COUNT > 2000
SEEDS = range(8)

KINDS = ("live", "ended", "hostile", "long")
SIZES = [(80, 24), (120, 32), (200, 50), (80, 3), (10, 3), (1, 1), (40, 2), (2, 30), (300, 4)]
WRITTEN = "tools >2ms(){}\"',:-_=[]1e9é\t"

LEAVING = {"app.quit", "sessions.quit"}
KEYS = sorted(
    {
        key.strip()
        for node in keyed()
        for binding in node.BINDINGS
        if isinstance(binding, Binding) and binding.id not in LEAVING
        for key in binding.key.split(",")
        if " " not in key  # Keys of a menu, for the help.
    }
    - {"Q", "ctrl+c", "ctrl+q", "q"}
)
MOVES = ["up", "down", "pageup", "pagedown", "home", "end", "enter", "escape", "tab", "left", "right"]

RECORDINGS = Path(__file__).resolve().parents[3] / "recordings"

EVIL = [
    b"\x1b]0;title\x07\x9b31m\xc2\x9b[2J",
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u001b[31m[bold]x[/]","arguments":[]}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"!!","mimeType":5}]}}',
    b'{"jsonrpc":"2.0","id":[1],"method":{"a":1}}',
    b'{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":5},{"name":"a","inputSchema":{"$ref":"#"}},null]}}',
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"\\ud800"}}',
    b'[{"jsonrpc":"2.0","id":3,"method":"a"},5,{"jsonrpc":"2.0","id":3,"error":{"code":"x"}}]',
    b'{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"clientInfo":{"name":"\xf0\x9f\x91\xa8\\n\\u202e"}}}',
    b'{"jsonrpc":"2.0","id":4,"result":{"serverInfo":[],"capabilities":{"tools":3}}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":NaN}}',
    b'{"jsonrpc":"2.0","id":5,"result":' + b'{"a":[' * 300 + b"1" + b"]}" * 300 + b"}",
    b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"' + b"\xe4\xb8\xad" * 5000 + b'"}}',
    b'{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"' + b"x " * 40_000 + b'"}]}}',
    b"",
    b"\xff\xfe\x00",
]


TOOL = (
    b'{"name":"read","inputSchema":{"type":"object","required":["path"],"properties":{'
    b'"path":{"type":"string","enum":["a","b"],"description":"what to read"},"n":{"type":"integer"}}}}'
)


class PretendedEngine:
    """An engine that answers each order with events of a replay."""

    def __init__(self, _module: str, received: Callable[[dict[str, Any]], None], _ended: object) -> None:
        self._received = received

    async def start(self, _config: object) -> None:
        steps = [[number, f"tools/call {'x' * number}", None] for number in range(40)]
        self._received({"event": "steps", "steps": steps})

    def send(self, order: str, **fields: Any) -> None:
        change = {
            "severity": "breaking",
            "kind": "result",
            "pointer": "/result/a",
            "why": "",
            "old": "1",
            "new": "2",
        }
        number, message = fields.get("number", 3), '{"id":1,"params":{},"result":{"a":[1,{"b":"c"}]}}'
        events: dict[str, dict[str, Any]] = {
            "show": {
                "event": "shown",
                "recorded": [message] * 2,
                "new": [message] * 2,
                "changes": [change] * 5,
                "more": 3,
            },
            "source": {"event": "source", "text": message},
            "stop": {"event": "ended", "stopped": "you", "unsent": 1, "cause": ["why"], "stderr": ["x"]},
            "again": {
                "event": "answered",
                "latency": 0.1,
                "severity": "breaking",
                "changes": 5,
                "about": "result",
            },
            "skip": {"event": "unsent", "why": "you skipped it"},
            "pause": {"event": "state", "paused": True, "next": 3, "over": False},
        }
        found = events.get(order, {"event": "refused", "text": order})
        self._received(
            {**found, "number": number} if order in ("show", "source", "again", "skip") else {**found}
        )

    async def stop(self) -> None:
        pass


class PretendedMock:
    """An engine of a mock, whose clients have been there already: the session that it records has its notes."""

    count = 0

    def __init__(
        self, folder: Path, _module: str, received: Callable[[dict[str, Any]], None], _ended: object
    ) -> None:
        PretendedMock.count += 1
        self._path, self._received = folder / "mocked" / f"{self.count}.jsonl", received

    async def start(self, _config: object) -> None:
        self._path.parent.mkdir(exist_ok=True)
        session = {"note": "mock", "client": 1, "name": "c"}
        missed = {
            "nearest": 2,
            "nearest_request": "tools/list",
            "at": "/params",
            "recorded": "1",
            "sent": "2",
        }
        notes = [
            {"did": "played", "interaction": 1, "place": 1, "count": 2},
            {"did": "missed", "miss": "not recorded", **missed},
            {"did": "changed", "match": "exact", "speed": 0.0, "misses": "error", "answers": []},
        ]
        lines = [(RECORDINGS / "memory-sdk-auto.jsonl").read_bytes().split(b"\n")[0]]
        for number, note in enumerate(notes):
            asked = {"jsonrpc": "2.0", "id": number, "method": "tools/list"}
            lines.append(json.dumps({"t": float(number), "from": "client", "msg": asked}).encode())
            told = {**session, "t": number + 0.1, "id": number, "request": "tools/list", **note}
            lines.append(json.dumps(told).encode())
        self._path.write_bytes(b"\n".join(lines) + b"\n")
        self._received({"event": "serving", "url": "http://127.0.0.1:1/mcp", "path": str(self._path)})

    async def stop(self) -> None:
        pass


class Chaos:
    """Events of one seed, and the sessions that it opens."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.folder = folder
        self.last: deque[str] = deque(maxlen=40)
        """The last events, for the report."""

    async def send(self, pilot: Pilot[None]) -> None:
        """Send one event."""
        chance, app = self.chance, pilot.app
        kind = chance.random()
        if kind < 0.05:
            size = chance.choice([*SIZES, (chance.randint(1, 220), chance.randint(1, 60))])
            self.last.append(f"resize {size}")
            assert isinstance(app._driver, HeadlessDriver)
            app._driver._size = Size(*size)
            app.post_message(events.Resize(Size(*size), Size(*size)))
            await asyncio.sleep(0)
        elif kind < 0.15:
            x, y = chance.randrange(app.size.width), chance.randrange(app.size.height)
            self.last.append(f"mouse {x},{y}")
            button, shift, control = chance.choice([1, 1, 3]), chance.random() < 0.1, chance.random() < 0.1
            wheel = chance.choice([events.MouseScrollDown, events.MouseScrollUp])
            click = [events.MouseMove, events.MouseDown, events.MouseUp]
            for mouse in [wheel] if chance.random() < 0.3 else click * chance.choice([1, 1, 2]):
                app.post_message(mouse(None, x, y, 0, 0, button, shift, False, control, x, y))
            await asyncio.sleep(0)
        else:
            key = chance.choice(chance.choices([KEYS, MOVES, WRITTEN], [6, 3, 1])[0])
            self.last.append(key)
            app.post_message(events.Key(key, key if len(key) == 1 else None))
            await asyncio.sleep(
                0 if chance.random() < 0.5 else 0.01
            )  # Keys may arrive faster than they are handled.

    def restored(self, path: Path) -> Path:
        """Return the recording, which a key may have deleted."""
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            shutil.copy(RECORDINGS / "everything-sdk-auto.jsonl", path)
        return path


@asynccontextmanager
async def speaking(chaos: Chaos) -> AsyncIterator[Path]:
    """Run a live session, whose peers send messages all the time."""
    session = Reached(chaos.folder, "tool:move => hold", hold_timeout=1.0)
    control = AsyncioServer.open(session, pytest.fail)
    assert control is not None
    session.begin()
    session.say("client", b'{"jsonrpc":"2.0","id":"t","method":"tools/list"}')
    session.say("server", b'{"jsonrpc":"2.0","id":"t","result":{"tools":[%b]}}' % TOOL)

    async def speak() -> None:
        number = 0
        while True:
            number += 1
            session.say("client", call(number, chaos.chance.choice(["read", "move", "x" * 80]), path="é"))
            session.wake()
            if chaos.chance.random() < 0.8:
                session.say("server", result(number, "text " * chaos.chance.randrange(200)))
            if chaos.chance.random() < 0.2:
                session.say("server", b'{"jsonrpc":"2.0","id":"s%d","method":"roots/list"}' % number)
            await asyncio.sleep(0.05)

    task = asyncio.ensure_future(speak())
    yield session.path
    task.cancel()
    session.end()
    await control.close()


@asynccontextmanager
async def hostile(chaos: Chaos) -> AsyncIterator[Path]:
    """Write a session of malformed and deceptive messages, which grows and is truncated."""
    live = Live(chaos.folder, "ho[b]st\x1b")

    async def write() -> None:
        while True:
            for line in chaos.chance.sample(EVIL, 4):
                live.say(chaos.chance.choice(["client", "server"]), line)
            with live.path.open("ab") as file:
                file.write(
                    chaos.chance.choice(EVIL) + b"\n" + json.dumps({"t": "x", "note": 5}).encode() + b"\n"
                )
            if chaos.chance.random() < 0.05:
                os.truncate(live.path, live.path.stat().st_size // 2)
            await asyncio.sleep(0.05)

    for line in EVIL:
        live.say("server" if b"result" in line else "client", line)
    live.note("stderr", text="\x1b[31mboom")
    task = asyncio.ensure_future(write())
    yield live.path
    task.cancel()
    live.die()


@asynccontextmanager
async def recorded(chaos: Chaos, kind: str) -> AsyncIterator[Path]:
    path = chaos.folder / f"{kind}.jsonl"
    if kind == "long":
        write_long(path, 1_000_000 if IS_LONG else 20_000)
    yield chaos.restored(path)


async def replaying(app: McpspyApp, path: Path) -> None:
    """Open the screen of a replay."""
    summary = summarize(path, read_header_of(path))
    form = {"command": ["server"], "ignored": [], "form": ReplayForm(server="server"), "path": str(path)}
    source = SessionModel(summary.header, lambda *_: b"")
    await app.push_screen(replay_screen.ReplayScreen(form, "session", source))


async def mocking(app: McpspyApp, path: Path) -> None:
    """Open the screen of a mock."""
    mock = mock_control.RunningMock(MockSetup(recording=str(path), folder=str(path.parent)))
    await mock.start()
    served, own = (summarize(each, read_header_of(each)) for each in (path, mock.path))
    await app.push_screen(MockScreen(mock, served, own))


MODES: dict[str, tuple[Callable[[McpspyApp, Path], Awaitable[None]], type[Screen[Any]]]] = {
    "replay": (replaying, replay_screen.ReplayScreen),
    "mock": (mocking, MockScreen),
}


@pytest.fixture(autouse=True)
def _pretended(tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textual.pilot, "wait_for_idle", _yield)
    monkeypatch.chdir(tmp_path)  # Exports go there.
    monkeypatch.setattr(sessions_screen, "record", _no_demo)
    monkeypatch.setattr(engine_screen, "EngineProcess", PretendedEngine)  # Recorded commands are not started.
    monkeypatch.setattr(mock_control, "EngineProcess", partial(PretendedMock, tmp_path))
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):  # Options of replays are kept there.
        monkeypatch.setenv(name, str(tmp_path / name))
    for name in ("EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)


# The end may come while the screen connects to the session: the socket is then closed by the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(3600 if IS_LONG else 600)
@pytest.mark.parametrize("seed", SEEDS)
async def test_random_keys_clicks_and_resizes_raise_no_exception(seed: int, tmp_path: Path) -> None:
    chaos, kind = Chaos(seed, tmp_path), KINDS[seed % len(KINDS)]
    makers: dict[str, Callable[[], Any]] = {
        "live": lambda: speaking(chaos),
        "hostile": lambda: hostile(chaos),
    }
    async with AsyncExitStack() as stack:
        path = await stack.enter_async_context(makers.get(kind, lambda: recorded(chaos, kind))())
        await _raises_nothing(chaos, kind, path, COUNT // len(SEEDS))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.timeout(3600 if IS_LONG else 600)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", SEEDS[:2])
async def test_random_events_while_a_session_is_replayed_or_served_raise_no_exception(
    mode: str, seed: int, tmp_path: Path
) -> None:
    chaos = Chaos(seed, tmp_path)
    await _raises_nothing(chaos, mode, chaos.restored(tmp_path / "ended.jsonl"), COUNT // (2 * len(MODES)))


async def _raises_nothing(chaos: Chaos, kind: str, path: Path, left: int) -> None:
    """Send events to the application, with a session open or in a mode, which is entered again when it is left."""
    while left > 0:
        chaos.restored(path)
        summary = summarize(path, read_header_of(path))
        app = McpspyApp(str(path.parent), [summary] if chaos.chance.random() < 0.8 else None)
        try:
            async with app.run_test(size=chaos.chance.choice(SIZES)) as pilot:
                for _ in range(min(left, 500)):
                    left -= 1
                    if kind in MODES:
                        enter, screen = MODES[kind]
                        if not any(isinstance(each, screen) for each in app.screen_stack):
                            await enter(app, chaos.restored(path))
                    await chaos.send(pilot)
                    if not app.is_running:
                        break
                await drained(app)
        except Exception as error:
            cause = getattr(error, "error", error)  # Of a worker.
            pytest.fail(f"seed {chaos.seed}, {kind}: {_traced(cause)} after {list(chaos.last)}")


def _traced(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)[-12:])


async def drained(app: McpspyApp) -> None:
    """Wait until all events are handled: the end of a test removes the screens, whatever is left to do."""
    for _ in range(10):  # Widgets send events that they do not handle back to the application.
        for node in [app, *app.screen_stack[-1:], app.focused]:
            done = asyncio.Event()
            if app.is_running and node is not None and node.call_later(done.set):
                with suppress(TimeoutError):
                    async with asyncio.timeout(BOUND):
                        await done.wait()


async def _yield(*_seconds: float) -> None:
    await settled(0, 0.02)


async def _no_demo(_folder: str) -> str:
    return "no demo"
