"""A recording is read while the screen stays responsive."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.recording.reader import RecordingState, read_header_of, summarize
from mcpspy.ui.model import session_loader as module
from mcpspy.ui.model.session_loader import SessionLoader

Make = Callable[..., Path]


@pytest.fixture
def open_loader() -> Iterator[Callable[[Path], SessionLoader]]:
    """Create loaders, and close their files after the test."""
    feeds: list[SessionLoader] = []

    def make(path: Path) -> SessionLoader:
        feeds.append(SessionLoader(summarize(path, read_header_of(path))))
        return feeds[-1]

    yield make
    for loader in feeds:
        loader.close()


async def test_an_ended_session_is_read_to_its_end(make_recording: Make, open_loader: Any) -> None:
    loader = open_loader(make_recording())
    await loader.read()

    assert (loader.state, len(loader.model), loader.torn, loader.trouble) == (RecordingState.ENDED, 6, 0, "")


async def test_a_died_session_has_an_incomplete_last_line(make_recording: Make, open_loader: Any) -> None:
    loader = open_loader(make_recording(exit_code=None, torn=b'{"t":0.5,"from":"cl'))
    await loader.read()

    assert (loader.state, loader.torn) == (RecordingState.DIED, 19)


async def test_a_live_session_is_read_until_it_ends(live: Any, open_loader: Any) -> None:
    loader = open_loader(live.path)
    reading = asyncio.create_task(loader.read())
    async with asyncio.timeout(30):
        while not loader.model.index.messages:
            live.calls(1, 1)
            await asyncio.sleep(0)
        assert loader.is_live
        live.end()
        await reading
    assert loader.state is RecordingState.ENDED


async def test_reading_a_long_file_yields_to_other_tasks(
    live: Any, monkeypatch: pytest.MonkeyPatch, open_loader: Any
) -> None:
    monkeypatch.setattr(module, "PORTION", 1)
    live.calls(1, 500)
    live.end()
    loader = open_loader(live.path)
    seen = set()
    reading = asyncio.create_task(loader.read())
    while not reading.done():
        seen.add(len(loader.model))
        await asyncio.sleep(0)

    assert len(seen) > 500


async def test_a_missing_file_is_reported(make_recording: Make, open_loader: Any) -> None:
    path = make_recording()
    loader = open_loader(path)
    path.unlink()
    await loader.read()

    assert "no such file" in loader.trouble


async def test_a_deleted_file_is_detected(
    live: Any, monkeypatch: pytest.MonkeyPatch, open_loader: Any
) -> None:
    monkeypatch.setattr(module, "NAME_EVERY", 0.0)
    loader = open_loader(live.path)
    watching = asyncio.create_task(loader.watch_name())
    live.path.unlink()
    async with asyncio.timeout(30):
        while not loader.is_deleted:  # noqa: ASYNC110 - it has no event.
            await asyncio.sleep(0)
    loader.model.end()
    await asyncio.sleep(0)
    assert not watching.done(), "a file may also be deleted after the end"
    watching.cancel()
