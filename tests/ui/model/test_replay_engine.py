"""The engine of a replay: what becomes of each request, what a user changes, and what is left at the end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.recording.origin import HOST
from mcpspy.io.recording.reader import Recording, read_header_of
from mcpspy.ui.cli.main import main
from mcpspy.ui.model.replay_run import Phase, ReplayModel
from tests.io.conftest import Processes
from tests.io.files import POSIX
from tests.ui.model.replaying import Watched, command, echoes, record

HANDSHAKE = ["SAME", "SAME"]


@pytest.fixture(autouse=True)
def _temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path / "sessions"))


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    return await record(tmp_path / "recorded.jsonl", *echoes("one", "two", "three"))


def is_next(model: ReplayModel, place: int) -> bool:
    return model.next == place


def content(path: Path) -> bytes:
    return path.read_bytes()


def left_behind(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "temporary").glob("mcpspy-replay-*"))


async def test_an_unchanged_server_gives_the_same(path: Path, tmp_path: Path) -> None:
    async with Watched(path) as watched:
        model = await watched.ended()
        assert watched.states == [*HANDSHAKE, "SAME", "SAME", "SAME"]
        assert model.about == ["initialize", "tools/list", *["tools/call echo"] * 3]
        assert all(seconds > 0 for seconds in (*model.recorded, *model.latency))
        assert (model.phase, model.ending) == (Phase.ENDED, [])
        assert len(left_behind(tmp_path)) == 1
    assert left_behind(tmp_path) == []
    assert watched.reasons == [""]


@pytest.mark.parametrize(
    ("how", "states"),
    [
        ("different", [*HANDSHAKE, *["DIFFERENT"] * 3]),
        ("breaking", [*HANDSHAKE, *["BREAKING"] * 3]),
        ("renamed", ["SAME", "NOTE", *["SAME"] * 3]),
    ],
)
async def test_a_change_has_the_severity_of_the_diff(how: str, states: list[str], path: Path) -> None:
    async with Watched(path, how) as watched:
        await watched.ended()
        assert watched.states == states


def test_the_judgement_is_that_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def replayed() -> Path:
        path = await record(tmp_path / "recorded.jsonl", *echoes("one", "two"))
        async with Watched(path, "breaking") as watched:
            await watched.ended()
            watched.send("report", path=str(tmp_path / "engine.md"))
            await watched.until(lambda: watched.model.message)
        return path

    path = asyncio.run(replayed())
    words = ["replay", str(path), "--no-record", "--format", "markdown", "--", *command("breaking")]
    assert main(words) == 1
    printed = capsys.readouterr().out
    mine = content(tmp_path / "engine.md").decode()
    assert "2 breaking; 4 of 6 unchanged" in mine
    assert printed.startswith(mine.partition("\n\n`")[0])


async def test_a_server_that_ends_is_explained(path: Path) -> None:
    async with Watched(path, "ends") as watched:
        model = await watched.ended()
        assert watched.states[2:5] == ["SAME", "LOST", "UNSENT"]
        assert "exit code 3" in model.ending[0]
        assert "the server ended" in model.ending[1]
        assert list(model.stderr) == ["out of memory"]
        watched.send("save")
        await watched.until(lambda: model.saved)
        assert len(list((path.parent / "sessions").glob("*-replayed-*.jsonl"))) == 1


async def test_a_command_that_does_not_exist_is_explained(path: Path) -> None:
    async with Watched(path, command=["no-such-server-here"]) as watched:
        model = await watched.ended()
        assert model.phase is Phase.FAILED
        assert "no-such-server-here" in model.ending[0]
        assert len(model.ending) == 3
        assert set(watched.states) == {"UNSENT"}


async def test_a_file_other_than_a_recording_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "other.jsonl").write_text("{}\n")
    async with Watched(tmp_path / "other.jsonl") as watched:
        model = await watched.ended()
        assert "not an mcpspy recording" in model.ending[0]


async def test_one_step_at_a_time_with_a_skipped_and_an_edited_request(path: Path) -> None:
    async with Watched(path, pause="start") as watched:
        model = watched.model
        await watched.until(lambda: model.phase is Phase.PAUSED and model.next == 0)
        assert set(watched.states) == {"WAITING"}
        for place in (1, 2):
            watched.send("step")
            await watched.until(partial(is_next, model, place))
            await watched.until(lambda: "SENT" not in watched.states)
        watched.send("skip")
        await watched.until(lambda: model.next == 3)
        watched.send("source", number=model.numbers[3])
        await watched.until(lambda: model.source)
        assert model.source is not None
        text = model.source[1].replace("two", "edited")
        watched.send("edit", number=model.numbers[3], text=text)
        watched.send("resume")
        await watched.ended()
        assert watched.states[2:5] == ["UNSENT", "DIFFERENT", "SAME"]
        assert model.reasons[2] == "because you skipped it"
        watched.send("show", number=model.numbers[3])
        await watched.until(lambda: model.shown)
        assert model.shown is not None
        assert json.loads(model.shown.new[1])["result"]["content"][0]["text"] == "edited"
        assert {change["pointer"] for change in model.shown.changes} >= {"/result/content/0/text"}


async def test_a_request_is_sent_again_until_the_end(path: Path) -> None:
    async with Watched(path, "chatty", pause="start") as watched:
        model = watched.model
        for place in (1, 2, 3):
            watched.send("step")
            await watched.until(partial(is_next, model, place))
        await watched.until(lambda: watched.states[2] == "SAME")
        watched.send("again", number=model.numbers[2])
        await watched.until(lambda: len(model.stderr) == 2 and watched.states[2] == "SAME")
        watched.send("resume")
        await watched.ended()
        assert watched.states == [*HANDSHAKE, "SAME", "SAME", "SAME"]
        watched.send("again", number=model.numbers[2])
        await watched.until(lambda: "not sent again" in model.message)


async def test_a_replay_pauses_at_a_difference_and_is_stopped(path: Path) -> None:
    async with Watched(path, "different", pause="different") as watched:
        model = watched.model
        await watched.until(lambda: model.phase is Phase.PAUSED)
        assert watched.states[2:5] == ["DIFFERENT", "WAITING", "WAITING"]
        watched.send("stop")
        await watched.ended()
        assert watched.states[2:5] == ["DIFFERENT", "UNSENT", "UNSENT"]
        assert "you stopped" in model.ending[0]


async def test_an_ignored_difference_is_the_same_at_once_and_different_again(tmp_path: Path) -> None:
    path = await record(tmp_path / "pid.jsonl", ("pid", {}), *echoes("one"))
    async with Watched(path) as watched:
        model = await watched.ended()
        assert watched.states[2:4] == ["DIFFERENT", "SAME"]
        watched.send("ignore", number=model.numbers[2], pointer="/result/content/0/text")
        await watched.until(lambda: watched.states[2] == "SAME")
        assert model.patterns == ["tools/call pid /result/content/0/text"]
        watched.send("ignored", patterns=[])
        await watched.until(lambda: watched.states[2] == "DIFFERENT")
        watched.send("ignore", number=model.numbers[3])
        await watched.until(lambda: "nothing differs" in model.message)


async def test_only_chosen_rows_and_what_they_need_are_sent(path: Path) -> None:
    entries = list(Recording(path))
    row = next(place for place, entry in enumerate(entries) if b'"two"' in getattr(entry, "data", b""))
    async with Watched(path, rows=[row]) as watched:
        model = await watched.ended()
        assert model.about == ["initialize", "tools/call echo"]
        assert watched.states == ["SAME", "SAME"]


async def test_rows_without_a_request_are_an_error(path: Path) -> None:
    async with Watched(path, rows=[10_000]) as watched:
        model = await watched.ended()
        assert "no request" in model.ending[0]


async def test_the_new_session_and_its_reports_are_saved(path: Path, tmp_path: Path) -> None:
    async with Watched(path, "different", folder=str(tmp_path / "sessions")) as watched:
        model = await watched.ended()
        for name in ("a.md", "a.xml", "a.html", "a.txt"):
            model.message = ""
            watched.send("report", path=str(tmp_path / name))
            await watched.until(lambda: model.message)
        assert "must end in" in model.message
        watched.send("save")
        await watched.until(lambda: model.saved)
    assert model.saved is not None
    assert Path(model.saved).parent == tmp_path / "sessions"
    assert sum(1 for _ in Recording(model.saved)) > 5
    assert (tmp_path / "a.md").read_text().startswith("#")
    assert "<testsuite" in (tmp_path / "a.xml").read_text()
    assert "3 different" in (tmp_path / "a.html").read_text()
    assert not (tmp_path / "a.txt").exists()


async def test_the_new_session_becomes_the_baseline_and_the_old_one_is_kept(path: Path) -> None:
    before = content(path)
    async with Watched(path, "different") as watched:
        model = await watched.ended()
        watched.send("update")
        await watched.until(lambda: model.message)
    assert content(path.with_name("recorded.jsonl.bak")) == before
    assert b"THREE" in content(path)
    # It stays a session of the host, which `last` and its name mean.
    assert read_header_of(path).origin == HOST
    async with Watched(path, "different") as watched:
        model = await watched.ended()
        assert watched.states == [*HANDSHAKE, "SAME", "SAME", "SAME"]
        watched.send("update")
        await watched.until(lambda: model.message)
        assert "no differences" in model.message


@pytest.mark.parametrize("options", [{"rows": [3]}, {"pause": "different"}])
async def test_an_incomplete_replay_is_not_a_baseline(path: Path, options: dict[str, Any]) -> None:
    before = content(path)
    async with Watched(path, "different", **options) as watched:
        model = watched.model
        await watched.until(lambda: model.is_over or model.phase is Phase.PAUSED)
        watched.send("stop")
        await watched.ended()
        watched.send("update")
        await watched.until(lambda: "incomplete" in model.message)
    assert content(path) == before


@POSIX
@pytest.mark.parametrize("when", ["starting", "playing", "ended"])
async def test_nothing_is_left_when_the_viewer_is_gone(when: str, path: Path, tmp_path: Path) -> None:
    async with Watched(path, "slow" if when == "playing" else "same") as watched:
        pid = watched.engine.pid
        assert pid is not None
        if when != "starting":
            await watched.until(
                lambda: watched.model.is_over if when == "ended" else "SENT" in watched.states
            )
        family = Processes().family(pid)
        if when == "playing":
            assert len(family) == 1
    Processes().gone(pid, *family)
    assert left_behind(tmp_path) == []


@POSIX
async def test_a_killed_engine_is_reported(path: Path) -> None:
    async with Watched(path) as watched:
        await watched.ended()
        assert watched.engine.pid is not None
        os.kill(watched.engine.pid, signal.SIGKILL)
        await watched.until(lambda: watched.reasons)
    assert watched.reasons == ["exit code -9"]


async def test_an_outcome_that_differs_can_be_ignored(tmp_path: Path) -> None:
    async with Watched(await record(tmp_path / "r.jsonl", *echoes("one", "two")), "breaking") as watched:
        model = await watched.ended()
        assert watched.states == ["SAME", "SAME", "BREAKING", "BREAKING"]
        watched.send("ignore", number=model.numbers[2])
        await watched.until(lambda: watched.states == ["SAME"] * 4)
        assert model.patterns == ["tools/call echo"]
