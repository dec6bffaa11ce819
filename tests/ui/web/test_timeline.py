"""Windows of the timeline: what was in flight, how slow, and what failed, by a count of every message."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis import rows
from mcpspy.ui.model import timeline
from tests.ui.tui.conftest import REQUEST, RESULT, Live
from tests.ui.web.recordings import failure, request, response, write
from tests.ui.web.serving import Served, served

CALLS = 3000
SECONDS = 100.0
PARTS = 50


def calls() -> list[tuple[float, float, bool]]:
    """Return the start and the end of each call, and whether it failed; the last one is never answered."""
    chance = random.Random(5)
    begun = sorted(chance.uniform(0, SECONDS) for _ in range(CALLS))
    made = [(at, at + chance.choice((0.001, 0.05, 0.7, 30.0)), chance.random() < 0.1) for at in begun]
    return [*made, (SECONDS + 1, float("inf"), False)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sessions")
    entries = []
    for number, (begin, end, failed) in enumerate(calls()):
        entries.append(request(begin, number, ("echo", "forecast")[number % 2]))
        if end < float("inf"):
            entries.append((failure if failed else response)(end, number))
    entries.sort(key=lambda entry: float(str(entry["t"])))
    write(made / "calls.jsonl", [*entries, {"t": 200.0, "note": "exit", "code": 0, "signal": None}])
    return made


@pytest.fixture
async def server(folder: Path) -> AsyncIterator[Served]:
    async with served(folder) as running:
        yield running


def expected(begin: float, end: float, made: list[tuple[float, float, bool]]) -> dict[str, list[Any]]:
    """Count each part of a window from the calls alone."""
    long = (end - begin) / PARTS
    edges = [begin + part * long for part in range(PARTS + 1)]
    parts = list(pairwise(edges))
    names = ("began", "failed", "unanswered", "slowest", "peak")
    counted: dict[str, list[Any]] = {name: [] for name in names}
    for left, right in parts:
        inside = [(at, min(till, 200.0), bad) for at, till, bad in made if left <= at < right]
        unanswered = sum(till == float("inf") for at, till, _ in made if left <= at < right)
        counted["unanswered"].append(unanswered)
        counted["began"].append(len(inside))
        counted["failed"].append(sum(bad for _, _, bad in inside))
        counted["slowest"].append(round(max((till - at for at, till, _ in inside), default=0.0), 6))
        moments = [left, *(at for at, _, _ in inside)]
        counted["peak"].append(max(sum(at <= now < till for at, till, _ in made) for now in moments))
    return counted


async def window(server: Served, **query: str | float) -> Any:
    """Return a window of the whole session, which the server has to read first."""
    async with asyncio.timeout(30):
        while True:
            found = await server.get("s/calls/timeline", **query)
            if not found["behind"]:
                return found


@pytest.mark.parametrize(("begin", "end"), [(0.0, 200.0), (20.0, 120.0), (99.9, 101.5)])
async def test_each_part_of_a_window_is_counted_exactly(server: Served, begin: float, end: float) -> None:
    found = await window(server, begin=begin, end=end, parts=PARTS)

    (track,) = found["tracks"]
    assert (found["begin"], found["end"], found["whole"]) == (begin, end, 200.0)
    wanted = expected(begin, end, calls())
    assert {name: track[name] for name in wanted} == wanted


async def test_few_requests_are_returned_one_by_one_and_many_are_not(server: Served) -> None:
    whole = await window(server, parts=PARTS)
    part = await window(server, begin=50, end=51, parts=PARTS)

    assert whole["bars"] is None
    in_flight = [(at, till) for at, till, _ in calls() if at <= 51 and till >= 50]
    assert sorted((bar[1], bar[2]) for bar in part["bars"]) == sorted(in_flight)
    row = (await server.get(f"s/calls/rows/{part['bars'][0][0]}"))["row"]
    assert [row["method"], row["subject"]] == part["bars"][0][5:7]


async def test_the_filter_selects_the_requests(server: Served) -> None:
    found = await window(server, q="tool:echo is:error", parts=PARTS)

    failed = sum(bad for number, (_, _, bad) in enumerate(calls()) if number % 2 == 0)
    assert {bar[6] for bar in found["bars"]} == {"echo"}
    assert sum(found["tracks"][0]["began"]) == sum(found["tracks"][0]["failed"]) == failed


async def test_a_window_has_a_bounded_size_and_stays_in_the_session(server: Served) -> None:
    found = await window(server, begin=-5, end=9000, parts=10**9)

    assert (found["begin"], found["end"]) == (0.0, 200.0)
    assert len(found["tracks"][0]["peak"]) == timeline.PARTS
    assert await server.status("/api/s/calls/timeline?begin=x") == 400
    assert await server.status("/api/s/calls/timeline?begin=nan") == 400


async def test_a_dropped_request_ends_with_the_note_of_its_rule(tmp_path: Path) -> None:
    drop = {"t": 1.5, "note": "rule", "action": "drop", "from": "client", "id": "7", "method": "tools/call"}
    write(tmp_path / "rule.jsonl", [request(1.0, 7, "echo"), drop, {"t": 200.0, "note": "exit", "code": 0}])
    async with served(tmp_path) as running:
        found = await running.get("s/rule/timeline", begin=0, end=200, parts=PARTS)

    (bar,) = found["bars"]
    assert bar[1:3] == [1.0, 1.5]


async def test_requests_of_a_live_session_are_open_and_those_cancelled_end(tmp_path: Path) -> None:
    live = Live(tmp_path)
    cancelled = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'
    messages = [("client", REQUEST % 1), ("client", REQUEST % 2), ("client", cancelled)]
    messages += [("client", REQUEST % 3), ("server", RESULT % 3)]
    for at, (side, data) in zip((1.0, 2.0, 3.0, 9.0, 10.0), messages, strict=True):
        live._at = at
        live.say(side, data)
    async with served(tmp_path) as running:
        (session,) = (await running.get("sessions"))["sessions"]
        found = await running.get(f"s/{session['key']}/timeline", begin=0, end=11, parts=PARTS)
        between = await running.get(f"s/{session['key']}/timeline", begin=4, end=5, parts=PARTS)
    live.die()

    assert [(round(bar[1]), round(bar[2]), bar[4]) for bar in found["bars"]] == [
        (1, 10, rows.OPEN),
        (2, 3, rows.QUIET),
        (9, 10, rows.OK),
    ]
    assert [round(bar[1]) for bar in between["bars"]] == [1]
