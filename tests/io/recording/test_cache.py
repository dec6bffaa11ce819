"""The cache of an index is used only for the lines that it was made of."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.io.recording import cache
from mcpspy.io.recording.cache import LARGEST, PREFIX, SUFFIX, load, progress_of, save, sweep
from mcpspy.io.recording.reader import delete, read_header_of, summarize
from tests.io.files import EXIT, POSIX, frame, write

CALL = frame(0.1, "client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
STATE: list[bytes | memoryview] = [b"head\n", memoryview(b"columns")]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a recording with a cache."""
    monkeypatch.setattr(cache, "RECENT", -(10**18))
    path = tmp_path / "a.jsonl"
    write(path, CALL, EXIT)
    keep(path)
    return path


def keep(path: Path, *, is_over: bool = False) -> None:
    size = path.stat().st_size
    save(path, progress_of([path], size, size - len(EXIT), size, is_over=is_over), STATE)


def cache_of(path: Path) -> Path:
    return path.with_name(f"{PREFIX}{path.name}{SUFFIX}")


def state_of(path: Path) -> bytes | None:
    found = load(path)
    return None if found is None else found.data[found.begin :]


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the content of a file, but not its times."""
    stat = path.stat()
    with path.open("r+b") as file:
        data = change(file.read())
        file.seek(0)
        file.write(data)
        file.truncate()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_the_state_is_the_one_that_was_saved(path: Path) -> None:
    found = load(path)
    assert found is not None
    assert state_of(path) == b"head\ncolumns"
    size = path.stat().st_size
    assert (found.progress.done, found.progress.last, found.progress.files[0].size) == (
        size,
        size - len(EXIT),
        size,
    )


@POSIX
def test_only_the_owner_can_read_it(path: Path) -> None:
    assert cache_of(path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: b"\xff" * 100,
        lambda data: data.replace(b"columns", b"dolumns"),
        lambda data: data.replace(b'"is_over":false', b'"is_over":true'),
        lambda data: data.replace(b'"mcpspy_index":"', b'"mcpspy_index":"9'),
        lambda data: data.replace(b"a.jsonl", b"b.jsonl"),
        lambda data: data + b"x",
    ],
    ids=range(9),
)
def test_a_damaged_cache_is_ignored_and_replaced(path: Path, change: Callable[[bytes], bytes]) -> None:
    rewrite(cache_of(path), change)
    assert load(path) is None
    keep(path)
    assert state_of(path) == b"head\ncolumns"


def test_a_cache_of_another_recording_is_ignored(path: Path) -> None:
    other = path.with_name("b.jsonl")
    other.write_bytes(path.read_bytes())
    cache_of(other).write_bytes(cache_of(path).read_bytes())
    cache_of(other).chmod(0o600)
    assert load(other) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: rewrite(path, lambda data: data[:-1] + b" "),
        lambda path: rewrite(path, lambda data: data.replace(b"ping", b"pong")),
        lambda path: rewrite(path, lambda data: data[:-10]),
        lambda path: path.write_bytes(path.read_bytes().replace(b"ping", b"pong") + EXIT),
        lambda path: (
            path.rename(path.with_name("x")) and path.write_bytes(path.with_name("x").read_bytes() + EXIT)
        ),
        lambda path: path.unlink(),
    ],
    ids=["touched", "end", "beginning", "truncated", "grown from another", "replaced", "deleted"],
)
def test_a_changed_recording_has_no_cache(path: Path, change: Callable[[Path], object]) -> None:
    change(path)
    assert load(path) is None


def test_lines_that_were_appended_do_not_matter_unless_the_session_was_over(path: Path) -> None:
    keep(path, is_over=True)
    before = path.stat().st_size
    assert load(path) is not None
    with path.open("ab") as file:
        file.write(CALL)
    assert load(path) is None
    save(path, progress_of([path], before, 0, before, is_over=False), STATE)
    assert state_of(path) == b"head\ncolumns"


def test_a_recording_that_has_just_changed_is_not_trusted_to_stay_the_same(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "RECENT", 10**18)
    keep(path)
    assert load(path) is None
    with path.open("ab") as file:
        file.write(CALL)
    assert load(path) is not None


def test_a_final_index_of_a_recording_that_has_just_changed_is_not_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_of(path).unlink()
    monkeypatch.setattr(cache, "RECENT", 10**18)
    keep(path, is_over=True)
    assert not cache_of(path).exists()


@POSIX
def test_a_cache_that_someone_else_could_write_is_ignored_and_replaced(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_of(path).chmod(0o620)
    assert load(path) is None
    keep(path)
    assert load(path) is not None
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert load(path) is None


@POSIX
def test_a_link_in_place_of_the_cache_is_replaced_and_its_target_is_not(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    cache_of(path).rename(target)
    before = target.read_bytes()
    cache_of(path).symlink_to(target)
    assert load(path) is None
    keep(path)
    assert target.read_bytes() == before
    assert not cache_of(path).is_symlink()
    assert load(path) is not None


@POSIX
def test_a_pipe_in_place_of_the_cache_does_not_block(path: Path) -> None:
    cache_of(path).unlink()
    os.mkfifo(cache_of(path))
    assert load(path) is None


def test_a_folder_that_cannot_be_written_has_no_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    cache_of(path).unlink()
    monkeypatch.setattr(os, "replace", refuse)
    keep(path)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_deleted_session_has_no_cache(path: Path) -> None:
    delete(summarize(path, read_header_of(path)))
    assert list(path.parent.iterdir()) == []


def test_the_oldest_caches_are_removed_and_those_without_a_recording(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = cache_of(path).stat().st_size
    for age, name in enumerate(("new", "old", "older")):
        other = path.with_name(f"{name}.jsonl")
        other.write_bytes(b"")
        cache_of(other).write_bytes(bytes(size))
        os.utime(cache_of(other), ns=(0, 3 - age))
    cache_of(path.with_name("gone.jsonl")).write_bytes(b"")
    other.unlink()
    assert 3 * size < LARGEST
    sweep(path.parent)
    names = {entry.name for entry in path.parent.iterdir() if entry.name.startswith(PREFIX)}
    assert names == {cache_of(path.with_name(f"{name}.jsonl")).name for name in ("a", "new", "old")}
    monkeypatch.setattr(cache, "LARGEST", 2 * size)
    sweep(path.parent)
    names = {entry.name for entry in path.parent.iterdir() if entry.name.startswith(PREFIX)}
    assert names == {cache_of(path.with_name(f"{name}.jsonl")).name for name in ("a", "new")}


def test_an_index_that_is_too_large_is_not_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache_of(path).unlink()
    monkeypatch.setattr(cache, "LARGEST", 5)
    keep(path)
    assert not cache_of(path).exists()
