"""A recording is read while the screen goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.recording.reader import RecordingState, read_header_of, summarize
from mcpspy.ui.tui.session import loader as module
from mcpspy.ui.tui.session.loader import SessionLoader

Make = Callable[..., Path]


@pytest.fixture
def feed_of() -> Iterator[Callable[[Path], SessionLoader]]:
    """Make feeds, and have them let go of their files."""
    feeds: list[SessionLoader] = []

    def make(path: Path) -> SessionLoader:
        feeds.append(SessionLoader(summarize(path, read_header_of(path))))
        return feeds[-1]

    yield make
    for feed in feeds:
        feed.close()


async def test_an_ended_session_is_read_to_its_end(make_recording: Make, feed_of: Any) -> None:
    feed = feed_of(make_recording())
    await feed.read()

    assert (feed.state, len(feed.log), feed.torn, feed.trouble) == (RecordingState.ENDED, 6, 0, "")


async def test_a_dead_one_says_so_and_what_is_torn(make_recording: Make, feed_of: Any) -> None:
    feed = feed_of(make_recording(exit_code=None, torn=b'{"t":0.5,"from":"cl'))
    await feed.read()

    assert (feed.state, feed.torn) == (RecordingState.DIED, 19)


async def test_a_live_one_is_over_when_it_ends(live: Any, feed_of: Any) -> None:
    feed = feed_of(live.path)
    reading = asyncio.create_task(feed.read())
    async with asyncio.timeout(30):
        while not feed.log.index.messages:
            live.calls(1, 1)
            await asyncio.sleep(0)
        assert feed.is_live
        live.end()
        await reading
    assert feed.state is RecordingState.ENDED


async def test_a_long_file_lets_others_go_on(
    live: Any, monkeypatch: pytest.MonkeyPatch, feed_of: Any
) -> None:
    monkeypatch.setattr(module, "PORTION", 1)
    live.calls(1, 500)
    live.end()
    feed = feed_of(live.path)
    seen = set()
    reading = asyncio.create_task(feed.read())
    while not reading.done():
        seen.add(len(feed.log))
        await asyncio.sleep(0)

    assert len(seen) > 500


async def test_a_file_that_is_gone_is_trouble_not_a_crash(make_recording: Make, feed_of: Any) -> None:
    path = make_recording()
    feed = feed_of(path)
    path.unlink()
    await feed.read()

    assert "no such file" in feed.trouble


async def test_a_file_that_loses_its_name_is_noticed(
    live: Any, monkeypatch: pytest.MonkeyPatch, feed_of: Any
) -> None:
    monkeypatch.setattr(module, "NAME_EVERY", 0.0)
    feed = feed_of(live.path)
    watching = asyncio.create_task(feed.watch_name())
    live.path.unlink()
    async with asyncio.timeout(30):
        while not feed.is_gone:  # noqa: ASYNC110 - nothing tells.
            await asyncio.sleep(0)
    feed.log.end()
    await watching
