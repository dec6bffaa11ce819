"""Several recordings, including live ones, are merged by time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.recording.decode import Note
from mcpspy.core.session.columns import RowKind
from mcpspy.core.session.exchange import State as Became
from mcpspy.io.recording.reader import RecordingState, read_header_of, summarize
from mcpspy.ui.session_loader import SessionLoader, open_loader
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
