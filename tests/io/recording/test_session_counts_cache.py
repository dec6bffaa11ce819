"""The sessions that are counted, and the number of counts."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.core.session.outcome import SessionCounts
from mcpspy.io.recording import session_counts as module
from mcpspy.io.recording.catalog import Catalog, Sessions
from mcpspy.io.recording.session_counts import CountCache, SessionCounter, is_too_large
from mcpspy.io.recording.writer import Writer
from tests.io.files import EXIT, frame, write
from tests.io.recording.test_session_counts import append, call, result

Look = Callable[[], Sessions]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    return Catalog(str(tmp_path)).look


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The sessions that were counted from their start."""
    paths: list[Path] = []

    class Watched(SessionCounter):
        def __init__(self, path: Path) -> None:
            paths.append(path)
            super().__init__(path)

    monkeypatch.setattr(module, "SessionCounter", Watched)
    return paths


def finish(counts_cache: CountCache, sessions: Sessions) -> None:
    counts_cache.keep(sessions.names())
    assert any(counts_cache.work(sessions) for _ in range(1000))


def test_every_session_is_counted(tmp_path: Path, look: Look) -> None:
    one = write(tmp_path / "a.jsonl", call(1), result(1), EXIT)
    two = write(tmp_path / "b.jsonl", call(1))
    counts_cache = CountCache()
    finish(counts_cache, look())
    assert counts_cache.counts == {one: SessionCounts(2, 0, 0), two: SessionCounts(1, 0, 0, unanswered=1)}


def test_an_unchanged_recording_is_counted_once(
    tmp_path: Path, look: Look, begun: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0)
    path = write(tmp_path / "a.jsonl", call(1), result(1), EXIT)
    counts_cache = CountCache()
    finish(counts_cache, look())
    finish(counts_cache, look())
    finish(counts_cache, Catalog(str(tmp_path)).look())  # Read again, with the same result.
    assert begun == [path]


def test_recordings_are_counted_in_the_requested_order(tmp_path: Path, look: Look) -> None:
    for name in "abc":
        write(tmp_path / f"{name}.jsonl", call(1), EXIT)
    counts_cache = CountCache()
    sessions = look()
    order = [sessions[2], sessions[0], sessions[1]]
    seen: list[set[Path]] = []
    for _ in range(1000):
        counts_cache.work(order, 0)
        seen.append(set(counts_cache.counts))
    first, second, third = (summary.path for summary in order)
    for counted in ({first}, {first, second}, {first, second, third}):
        assert counted in seen


def test_a_live_session_is_counted_on_to_its_end(tmp_path: Path, look: Look, begun: list[Path]) -> None:
    writer = Writer(str(tmp_path), None, {"name": "x"}, say=pytest.fail)
    path = Path(writer.path)
    counts_cache = CountCache()
    writer.write(call(1))
    finish(counts_cache, look())
    assert counts_cache.counts[path] == SessionCounts(1, 0, 1)
    writer.write(result(1))
    writer.write(call(2))
    finish(counts_cache, look())
    assert counts_cache.counts[path] == SessionCounts(3, 0, 1)
    writer.write(call(3))
    writer.note(9.0, "exit", code=0)
    writer.close()
    finish(counts_cache, look())
    assert counts_cache.counts[path] == SessionCounts(4, 0, 0, unanswered=2)
    assert begun == [path]
    assert not counts_cache._counters


def test_a_dead_session_that_changes_is_counted_again_but_not_all_the_time(
    tmp_path: Path, begun: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.jsonl", call(1))
    monkeypatch.setattr(module, "AGAIN", 1e9)
    counts_cache = CountCache()
    finish(counts_cache, Catalog(str(tmp_path)).look())
    append(path, result(1))
    finish(counts_cache, Catalog(str(tmp_path)).look())
    assert begun == [path]
    monkeypatch.setattr(module, "AGAIN", 0)
    counts_cache = CountCache()
    finish(counts_cache, Catalog(str(tmp_path)).look())
    assert counts_cache.counts[path] == SessionCounts(2, 0, 0)
    append(path, call(2))
    finish(counts_cache, Catalog(str(tmp_path)).look())
    assert counts_cache.counts[path] == SessionCounts(3, 0, 0, unanswered=1)


def test_another_file_of_the_same_name_and_size_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0)
    path = write(tmp_path / "a.jsonl", call(1), result(1), EXIT)
    counts_cache = CountCache()
    finish(counts_cache, Catalog(str(tmp_path)).look())
    other = write(tmp_path / "new", call(1), result(1).replace(b'"result"', b'"resume"'), EXIT)
    assert other.stat().st_size == path.stat().st_size
    os.replace(other, path)
    finish(counts_cache, Catalog(str(tmp_path)).look())
    assert counts_cache.counts[path].unanswered


def test_a_large_session_is_not_counted(tmp_path: Path, look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.jsonl", call(1), frame(2, "server", ["x" * 500]), EXIT)
    small = write(tmp_path / "b.jsonl", call(1), EXIT)
    monkeypatch.setattr(module, "LARGEST", 400)
    counts_cache = CountCache()
    finish(counts_cache, look())
    assert list(counts_cache.counts) == [small]
    assert [is_too_large(summary) for summary in look()].count(True) == 1


def test_a_live_session_that_grows_too_large_is_no_longer_counted(
    tmp_path: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(str(tmp_path), None, {"name": "x"}, say=pytest.fail)
    writer.write(call(1))
    counts_cache = CountCache()
    finish(counts_cache, look())
    monkeypatch.setattr(module, "LARGEST", 10)
    finish(counts_cache, look())
    assert not counts_cache.counts
    assert not counts_cache._counters
    writer.close()


def test_a_session_that_goes_is_forgotten(tmp_path: Path, look: Look) -> None:
    path = write(tmp_path / "a.jsonl", call(1), EXIT)
    counts_cache = CountCache()
    sessions = look()
    path.unlink()
    finish(counts_cache, sessions)  # Deleted before it was counted.
    finish(counts_cache, look())
    assert not counts_cache.counts
    assert not counts_cache._done
