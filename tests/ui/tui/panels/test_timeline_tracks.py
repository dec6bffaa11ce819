"""Tracks: when each session of a run had requests in flight, drawn on the axis of the timeline."""

from __future__ import annotations

from pathlib import Path

from mcpspy.core.session.exchange import State
from mcpspy.ui.model.timeline import Track
from mcpspy.ui.tui.panels.timeline import FAILURE, track_cells, track_label
from tests.io.files import frame, note, write
from tests.ui.tui.conftest import Opened

HOST = {"pid": 4242, "program": "claude", "started": "2026-01-01T00:00:00.000Z"}


def call(number: int, begin: float, end: float, *, error: bool = False) -> list[bytes]:
    """Return the lines of a tool call."""
    outcome = {"error": {"code": -32602, "message": "no"}} if error else {"result": {}}
    params = {"name": f"tool{number}"}
    return [
        frame(begin, "client", {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}),
        frame(end, "server", {"jsonrpc": "2.0", "id": number, **outcome}),
    ]


def run_of_two(folder: Path) -> list[Path]:
    """Write two sessions of one run: the second begins one second after the first."""
    files = write(
        folder / "files.jsonl",
        *call(1, 0.0, 4.0),
        *call(2, 8.0, 10.0),
        note(10, "exit", code=0),
        name="files",
        id="aaaa1111",
        started="2026-01-01T00:00:00.000Z",
        parent=HOST,
    )
    weather = write(
        folder / "weather.jsonl",
        *call(1, 3.5, 4.5, error=True),
        note(9, "exit", code=0),
        name="weather",
        id="bbbb2222",
        started="2026-01-01T00:00:01.000Z",
        parent=HOST,
    )
    return [files, weather]


def drawn(track: Track, *, now: float = 10.0, left: float = 0.0, span: float = 10.0, width: int = 10) -> str:
    return "".join(text for text, _ in track_cells(track, left, span, width, now))


def test_a_cell_is_shaded_by_the_share_of_its_time_in_flight() -> None:
    track = Track("files")
    track.begin(0.0)
    track.begin(1.0)
    track.end(1.5)
    track.end(2.25)
    track.begin(4.0)
    track.end(4.0)
    assert drawn(track) == "██▒ ░     "
    track.requests = 3
    assert track_label(track) == "3 requests"


def test_a_request_that_is_open_lasts_until_now() -> None:
    track = Track("files")
    track.begin(5.0)
    assert drawn(track, now=8.0) == "     ███  "


def test_failures_are_marked_also_those_of_the_end_of_the_session() -> None:
    track = Track("files")
    track.begin(1.0)
    track.end(2.5)
    track.count(State.ERROR, 2.5)
    track.begin(6.0)
    track.end(8.0)
    track.count(State.UNANSWERED, 8.0)
    track.requests = 2
    assert drawn(track) == f" █{FAILURE}   ██{FAILURE} "
    assert track_label(track) == "2 requests · 1 error · 1 unanswered"


def test_only_the_window_is_drawn() -> None:
    track = Track("files")
    for number in range(100):
        track.begin(float(number))
        track.end(number + 0.5)
    assert drawn(track, left=50.0, span=2.0, width=4, now=100.0) == "█ █ "


async def test_the_timeline_of_a_run_has_a_track_for_each_server(opened: Opened, tmp_path: Path) -> None:
    run_of_two(tmp_path)
    async with opened(folder=tmp_path, size=(110, 24)) as screen:
        await screen.shows("weather")
        await screen.press("O")
        await screen.shows("of claude · 2 sessions", "server")
        await screen.press("L")
        await screen.shows("2 requests", "1 request · 1 error")
        files, weather = screen.lines[1:3]
        assert "files" in files
        assert FAILURE not in files
        axis = next(line for line in screen.lines if "╷0 s" in line).index("╷0 s")
        cells = weather[axis:].rstrip()
        # The failure is at 5.5 s of the 10 s of the run, and the session has nothing else.
        width = len(files.rstrip()) - axis
        assert abs(cells.index(FAILURE) - 0.55 * width) <= 1.5
        assert cells.index("█") >= 0.4 * width
        await screen.press("g")
        await screen.until(lambda: screen.lines[1].startswith("▸ files"))
        await screen.press("j")
        await screen.until(lambda: screen.lines[2].startswith("▸ weather"))
