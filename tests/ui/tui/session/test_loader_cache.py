"""A large session is read once: then its index comes from a cache."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.session.index import Index
from mcpspy.io.recording import cache
from mcpspy.io.recording.reader import RecordingState, read_header_of, summarize
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.tui.app import McpspyApp
from mcpspy.ui.tui.session.screen import SessionScreen
from tests.core.session.test_index_state import content

Make = Callable[..., Path]


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Cache sessions of any size; return the lines that were read."""
    seen: list[bytes] = []
    add_lines = Index.add_lines

    def add(self: Index, lines: Sequence[bytes], offset: int) -> int:
        seen.extend(lines)
        return add_lines(self, lines, offset)

    monkeypatch.setattr(Index, "add_lines", add)
    monkeypatch.setattr(cache, "WORTH", 1)
    monkeypatch.setattr(cache, "RECENT", -(10**18))
    return seen


@pytest.fixture
def loaded() -> Iterator[Callable[..., Any]]:
    """Read sessions, and close their files after the test."""
    loaders: list[SessionLoader] = []

    async def load(path: Path, *, uses_cache: bool = True) -> SessionLoader:
        loader = SessionLoader(summarize(path, read_header_of(path)))
        loader.uses_cache = uses_cache
        loaders.append(loader)
        await loader.read()
        return loader

    yield load
    for loader in loaders:
        loader.close()


def shown(loader: SessionLoader) -> object:
    """Return the properties of a loader and its rows, with their messages."""
    model = loader.model
    rows = [model.data(row) for row in range(len(model))]
    found = {**content(model.index), "tables": None, "answered": None}
    return rows, found, loader.state, loader.done, loader.torn, loader.trouble, model.generation


def cache_of(path: Path) -> Path:
    return path.with_name(f".mcpspy-index-{path.name}.bin")


async def test_a_session_is_read_once(make_recording: Make, loaded: Any, lines: list[bytes]) -> None:
    path = make_recording()
    first = await loaded(path)
    assert cache_of(path).exists()
    lines.clear()
    again = await loaded(path)
    assert lines == []
    assert shown(again) == shown(first)
    assert (again.state, len(again.model)) == (RecordingState.ENDED, 6)


async def test_without_a_cache_nothing_is_written_or_read(
    make_recording: Make, loaded: Any, lines: list[bytes]
) -> None:
    path = make_recording()
    await loaded(path, uses_cache=False)
    assert not cache_of(path).exists()
    await loaded(path)
    lines.clear()
    await loaded(path, uses_cache=False)
    assert len(lines) == 6


async def test_a_small_session_has_no_cache(
    make_recording: Make, loaded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_recording()
    monkeypatch.setattr(cache, "WORTH", path.stat().st_size + 1)
    await loaded(path)
    assert not cache_of(path).exists()


async def test_a_session_without_an_end_may_grow(
    make_recording: Make, loaded: Any, lines: list[bytes]
) -> None:
    path = make_recording(exit_code=None)
    whole = path.read_bytes()
    kept = whole.splitlines(keepends=True)
    for count in range(2, len(kept)):
        path.write_bytes(b"".join(kept[:count]))
        cache_of(path).unlink(missing_ok=True)
        await loaded(path)
        with path.open("ab") as file:
            file.write(b"".join(kept[count:]))
        lines.clear()
        grown = await loaded(path)
        assert len(lines) == len(kept) - count
        assert shown(grown) == shown(await loaded(path, uses_cache=False))


async def test_an_incomplete_last_line_is_not_cached(make_recording: Make, loaded: Any) -> None:
    path = make_recording(exit_code=None, torn=b'{"t":0.5,"from":"cl')
    loader = await loaded(path)
    assert not cache_of(path).exists()
    loader.close()
    assert not cache_of(path).exists()


async def test_a_live_session_is_kept_when_it_is_closed_and_read_from_there(
    live: Any, lines: list[bytes]
) -> None:
    async def follow(rows: int) -> None:
        loader = SessionLoader(summarize(live.path, read_header_of(live.path)))
        loader.uses_cache = True
        reading = asyncio.create_task(loader.read())
        async with asyncio.timeout(30):
            while len(loader.model) < rows:  # noqa: ASYNC110 - it has no event.
                await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert loader.is_live
        assert all(loader.model.get(row) is not None for row in range(rows))
        loader.close()

    live.calls(1, 5)
    await follow(10)
    assert cache_of(live.path).exists()
    lines.clear()
    live.calls(6, 7)
    await follow(14)
    assert len(lines) == 4


async def test_a_session_of_several_files_is_read_once(
    make_recording: Make, loaded: Any, lines: list[bytes]
) -> None:
    path = make_recording(exit_code=None)
    header, *rest = path.read_bytes().splitlines(keepends=True)
    parts = [path, path.with_name("x.part2.jsonl"), path.with_name("x.part3.jsonl")]
    link = b'{"t":1,"note":"part","next":"%b"}\n'
    path.write_bytes(b"".join([header, *rest[:2], link % b"x.part2.jsonl"]))
    parts[1].write_bytes(
        b"".join([header.replace(b'"part":1', b'"part":2'), *rest[2:], link % b"x.part3.jsonl"])
    )
    whole = header.replace(b'"part":1', b'"part":3') + b'{"t":2,"note":"exit","code":0}\n'
    first = await loaded(path)  # The third file does not exist yet.
    parts[2].write_bytes(whole)
    lines.clear()
    grown = await loaded(path)
    assert lines == [b'{"t":2,"note":"exit","code":0}']
    lines.clear()
    again = await loaded(path)
    assert lines == []
    assert shown(again) == shown(grown) == shown(await loaded(path, uses_cache=False))
    assert len(again.model) == len(first.model) + 1
    os.utime(parts[0], ns=(1, 1))
    lines.clear()
    await loaded(path)
    assert lines


async def test_a_valid_cache_with_an_impossible_state_is_ignored(
    make_recording: Make, loaded: Any, lines: list[bytes]
) -> None:
    path = make_recording()
    size = path.stat().st_size
    progress = cache.progress_of([path], size, 0, size, is_over=True)
    cache.save(path, progress, [b"{}\n"])
    loader = await loaded(path)
    assert len(lines) == 6
    assert shown(loader) == shown(await loaded(path, uses_cache=False))


async def test_a_session_that_is_replaced_while_it_is_shown_starts_again(
    live: Any, loaded: Any, make_recording: Make
) -> None:
    live.calls(1, 5)
    live.end()
    await loaded(live.path)
    loader = SessionLoader(summarize(live.path, read_header_of(live.path)))
    loader.uses_cache = True
    other = make_recording(name="other")
    load = cache.load

    def replaced(path: Path) -> object:
        found = load(path)
        os.replace(other, path)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "load", replaced)
        await loader.read()
    assert len(loader.model) == 6
    assert loader.trouble == ""
    loader.close()


@pytest.mark.parametrize("uses_cache", [True, False])
async def test_the_screen_passes_the_choice_on(make_recording: Make, uses_cache: bool) -> None:
    path = make_recording()
    app = McpspyApp(None, summarize(path, read_header_of(path)), uses_cache=uses_cache)
    async with app.run_test(), asyncio.timeout(30):
        assert isinstance(app.screen, SessionScreen)
        await app.screen._reading.wait()
    assert cache_of(path).exists() is uses_cache
