"""Several recordings, including live ones, are merged by time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.recording.decode import Note
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.exchange import State as Became
from mcpspy.io.recording.reader import RecordingState, Summary, read_header_of, summarize
from mcpspy.io.recording.runs import FollowedRun, Runs, find_run
from mcpspy.ui.model import session_loader
from mcpspy.ui.model.session_loader import MergedLoader, SessionLoader, open_loader
from tests.io.files import frame, note, write
from tests.ui.tui.conftest import Live

ASK = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
OK = {"jsonrpc": "2.0", "id": 1, "result": {}}
Merge = Callable[..., SessionLoader]


@pytest.fixture
def merge() -> Iterator[Merge]:
    """Merge files, and close them after the test."""
    feeds: list[SessionLoader] = []

    def make(*paths: Path) -> SessionLoader:
        feeds.append(open_loader([summarize(path, read_header_of(path)) for path in paths]))
        return feeds[-1]

    yield make
    for loader in feeds:
        loader.close()


def two(folder: Path) -> tuple[Path, Path]:
    """Write two overlapping sessions, the second of which starts one second later."""
    one = write(
        folder / "one.jsonl",
        frame(0.5, "client", ASK),
        frame(2.5, "server", OK),
        note(9, "exit", code=0),
        name="one",
        started="2026-01-01T00:00:00.000Z",
    )
    other = write(
        folder / "other.jsonl",
        frame(0.5, "client", ASK),
        frame(0.75, "server", OK),
        frame(3.0, "client", {**ASK, "id": 2}),
        note(4, "exit", code=0),
        name="other",
        started="2026-01-01T00:00:01.000Z",
    )
    return one, other


async def test_entries_are_sorted_by_time_and_labelled_with_their_session(
    tmp_path: Path, merge: Merge
) -> None:
    one, other = two(tmp_path)
    loader = merge(other, one)
    async with asyncio.timeout(30):
        await loader.read()
    index = loader.model.index
    merged = [(index.at[row], index.texts[index.stream[row]]) for row in range(len(index))]
    assert merged == [
        (0.5, "one"),
        (1.5, "other"),
        (1.75, "other"),
        (2.5, "one"),
        (4.0, "other"),
        (5.0, "other"),
        (9.0, "one"),
    ]
    assert (loader.state, loader.trouble, loader.model.header.name) == (
        RecordingState.ENDED,
        "",
        "one + other",
    )


async def test_requests_are_not_matched_across_sessions(tmp_path: Path, merge: Merge) -> None:
    loader = merge(*two(tmp_path))
    await loader.read()
    index = loader.model.index
    assert (index.pair(0), index.pair(1)) == (3, 2)
    assert index.state(4) is Became.UNANSWERED
    assert (index.unanswered, dict(index.flaws)) == (1, {})


async def test_a_row_is_read_again_from_its_own_file(tmp_path: Path, merge: Merge) -> None:
    loader = merge(*two(tmp_path))
    await loader.read()
    change = loader.model.get(2)
    assert change is not None
    assert change.exchange is not None
    assert (change.what.at, change.exchange.latency) == (1.75, 0.25)
    last = loader.model.message(5)
    assert isinstance(last, Note)
    assert (last.at, last.fields["stream"]) == (5.0, "other")


async def test_sessions_with_equal_names_get_their_ids(tmp_path: Path, merge: Merge) -> None:
    paths = [
        write(tmp_path / f"{n}.jsonl", note(1, "exit", code=0), name="x", id=f"{n}{n}{n}{n}") for n in "ab"
    ]
    loader = merge(*paths)
    assert loader.model.header.name == "x-aaaa + x-bbbb"


async def test_an_idle_live_session_does_not_delay_the_other(tmp_path: Path, merge: Merge) -> None:
    one, other = Live(tmp_path, "one"), Live(tmp_path, "other")
    loader = merge(one.path, other.path)
    reading = asyncio.create_task(loader.read())
    try:
        async with asyncio.timeout(30):
            one.calls(1, 1)
            while loader.model.index.messages < 2:  # noqa: ASYNC110 - it has no event.
                await asyncio.sleep(0)
            other.calls(1, 2)
            while loader.model.index.messages < 6:  # noqa: ASYNC110 - it has no event.
                await asyncio.sleep(0)
            assert loader.is_live
            one.end()
            other.die()
            await reading
    finally:
        one.die()
        other.die()
    assert loader.state is RecordingState.DIED
    index = loader.model.index
    assert [index.kind(row) for row in range(2)] == [RowKind.REQUEST, RowKind.RESULT]
    assert index.unanswered == 0


async def test_several_sessions_open_from_the_command_line_as_one(opened: Any, tmp_path: Path) -> None:
    async with opened(list(two(tmp_path))) as screen:
        await screen.until(lambda: screen.count)
        await screen.shows("one + other", "client")


async def test_a_line_is_merged_only_after_the_other_files_were_read_up_to_its_time(
    tmp_path: Path, merge: Merge
) -> None:
    one, other = Live(tmp_path, "one"), Live(tmp_path, "other")
    loader = merge(one.path, other.path)
    reading = asyncio.create_task(loader.read())
    index = loader.model.index
    began = [datetime.fromisoformat(read_header_of(live.path).started) for live in (one, other)]
    try:
        async with asyncio.timeout(30):
            for number in range(1, 8):
                for live, start in zip((one, other), began, strict=True):
                    live._at = time.time() - start.timestamp()
                    live.calls(number, number)
                # The lines are up to 2 ms ahead of the clock, and those of a file must not go back.
                written = max(
                    start.timestamp() + live._at for live, start in zip((one, other), began, strict=True)
                )
                while loader.model.index.messages < 4 * number or time.time() <= written:  # noqa: ASYNC110 - it has no event.
                    await asyncio.sleep(0)
            one.end()
            other.end()
            await reading
    finally:
        one.die()
        other.die()
    at = list(index.at[: len(index)])
    assert at == sorted(at)


def joined(folder: Path, number: int, **header: Any) -> Summary:
    """Write a session of the run, with one call; return its summary."""
    path = write(
        folder / f"server{number}.jsonl",
        frame(0.5, "client", ASK),
        frame(0.75, "server", OK),
        note(1, "exit", code=0),
        name="npm/server",
        id=f"{number}" * 8,
        started=f"2026-01-01T00:00:0{number}.000Z",
        parent={"pid": 7, "program": "claude", "started": "2026-01-01T00:00:00.000Z"},
        **header,
    )
    return summarize(path, read_header_of(path))


async def test_sessions_that_begin_while_a_run_is_shown_join_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_loader, "JOIN_EVERY", 0.01)
    joined(tmp_path, 1)
    runs = Runs(str(tmp_path))
    run = FollowedRun(runs, find_run("run:last", None, runs))
    is_running = True
    monkeypatch.setattr(FollowedRun, "may_grow", property(lambda _: is_running))
    loader = open_loader(run.sessions, run)
    reading = asyncio.create_task(loader.read())
    index = loader.model.index
    try:
        async with asyncio.timeout(30):
            while not index.is_over:  # noqa: ASYNC110 - it has no event.
                await asyncio.sleep(0)
            assert (len(index), loader.state) == (3, RecordingState.ENDED)
            joined(tmp_path, 2)
            while len(index) < 6 or not index.is_over:  # noqa: ASYNC110 - it has no event.
                await asyncio.sleep(0)
            is_running = False
            await reading
    finally:
        loader.close()
    streams = [index.texts[index.stream[row]] for row in range(len(index))]
    assert streams == ["npm-server"] * 3 + ["npm-server-2222"] * 3
    assert [index.at[row] for row in (3, 4)] == [1.5, 1.75]
    assert loader.names == [f"run:{run.run.id}", "--dir", str(tmp_path)]


async def test_a_row_of_a_run_is_found_in_its_session(tmp_path: Path, merge: Merge) -> None:
    loader = merge(*two(tmp_path))
    await loader.read()
    assert isinstance(loader, MergedLoader)
    found = [loader.alone(row) for row in range(len(loader.model))]
    assert [(summary.header.name, number) for summary, number in found] == [
        ("one", 0),
        ("other", 0),
        ("other", 1),
        ("one", 1),
        ("other", 2),
        ("other", 3),
        ("one", 2),
    ]
