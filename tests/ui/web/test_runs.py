"""Runs in the JSON API: the list, the rows of all sessions in order of time, tracks, and sessions that join."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcpspy.ui.web import runs
from tests.ui.web.recordings import RUN, request, write, write_run
from tests.ui.web.serving import Served, served

AT, STREAM = "at", "stream"
"""Members of a row."""


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    write_run(tmp_path)
    write(tmp_path / "alone.jsonl", [request(0.0, 1)])
    async with served(tmp_path) as running:
        yield running


async def test_runs_are_listed_with_their_sessions(server: Served) -> None:
    (run,) = (await server.get("runs"))["runs"]

    assert (run["host"], [each["name"] for each in run["sessions"]]) == ("claude", list(RUN))
    keys = {each["key"] for each in (await server.get("sessions"))["sessions"]}
    assert {each["key"] for each in run["sessions"]} < keys
    assert run["messages"] == 140


async def test_a_run_is_one_list_in_order_of_time(server: Served) -> None:
    (run,) = (await server.get("runs"))["runs"]
    found = await server.get(f"s/run:{run['id']}/rows", count=500)
    single = [await server.get(f"s/{each['key']}/rows", count=500) for each in run["sessions"]]

    assert found["total"] == sum(each["total"] for each in single)
    assert [row[AT] for row in found["rows"]] == sorted(row[AT] for row in found["rows"])
    assert {row[STREAM] for row in found["rows"]} == set(RUN)
    assert await server.get("s/run:last/rows", count=500) == found
    assert await server.get(f"s/run:{run['id'][:4]}/rows", count=500) == found


async def test_the_filter_selects_rows_of_one_server_and_of_all(server: Served) -> None:
    files = await server.get("s/run:last/rows", q="stream:files")
    listed = await server.get("s/run:last/rows", q="method:tools/list")

    assert {row[STREAM] for row in files["rows"]} == {"files"}
    assert {row[STREAM] for row in listed["rows"]} == set(RUN)


async def test_the_timeline_has_a_track_per_session(server: Served) -> None:
    found = await server.get("s/run:last/timeline", parts=100)
    rows = await server.get("s/run:last/rows", q="kind:request", count=500)

    tracks = [list(RUN)[bar[3]] for bar in found["bars"]]
    assert len(found["tracks"]) == 3
    assert sorted(tracks) == sorted(row[STREAM] for row in rows["rows"])
    for name, track in zip(RUN, found["tracks"], strict=True):
        assert sum(track["began"]) == tracks.count(name)


async def test_reports_of_a_run_cover_all_its_sessions(server: Served) -> None:
    counted = (await server.get("s/run:last/stats"))["sessions"]
    context = await server.get("s/run:last/context")

    assert [each["name"] for each in counted] == list(RUN)
    assert (context["sessions"], len(context["servers"])) == (3, 3)
    assert context["start"]["tokens"] > 1000
    for path in ("run:last/findings", "run:last/control"):
        assert await server.status(f"/api/s/{path}") in (404, 405)
    assert await server.status("/api/s/run:ffffffff/rows") == 409


async def test_a_session_that_joins_is_in_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "KEPT", 0.0)
    monkeypatch.setattr(runs, "SHARE", 0)
    monkeypatch.setattr("mcpspy.ui.web.server.SCANNED", 0.0)
    write_run(tmp_path, ["everything", "files"])
    async with served(tmp_path) as server:
        first = (await server.get("s/run:last/rows"))["total"]
        write_run(tmp_path, ["memory"])
        async with asyncio.timeout(20):
            while (await server.get("s/run:last/rows"))["total"] == first:
                pass
        (run,) = (await server.get("runs"))["runs"]
        assert len(run["sessions"]) == 3


async def test_a_recording_whose_times_are_not_times_is_in_no_run_or_has_a_host_without_a_start(
    tmp_path: Path,
) -> None:
    write_run(tmp_path, ["files"], started="yesterday")
    write_run(tmp_path, ["memory"], parent={"pid": 7, "program": "\u202ehost", "started": "never"})
    async with served(tmp_path) as server:
        (run,) = (await server.get("runs"))["runs"]

        assert [each["name"] for each in run["sessions"]] == ["memory"]
        assert "\u202e" not in json.dumps(run, ensure_ascii=False)
