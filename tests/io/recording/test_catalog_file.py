"""The cache file of a folder of sessions."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcpspy.io.recording import catalog as module
from mcpspy.io.recording import reader, session_counts
from mcpspy.io.recording.catalog import CACHE, Catalog, sessions
from mcpspy.io.recording.lookup import find
from mcpspy.io.recording.reader import RecordingState, Summary
from mcpspy.io.recording.session_counts import CountCache
from mcpspy.io.recording.writer import Writer
from tests.io.files import BOUND, EXIT, POSIX, frame, note, write

CALL = frame(0.1, "client", {"jsonrpc": "2.0", "id": 1, "method": "ping"})


@pytest.fixture(autouse=True)
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Cache whatever the cost; return the names of the files that were read."""
    seen: list[str] = []

    def summarize(path: Path, header: Any, *, counts: bool) -> Summary:
        seen.append(path.name)
        return reader.summarize(path, header, counts=counts)

    monkeypatch.setattr(module, "summarize", summarize)
    monkeypatch.setattr(module, "WORTH", 0.0)
    monkeypatch.setattr(module, "RECENT", 0)
    return seen


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of three sessions, one of two parts, whose cache was written."""
    write(tmp_path / "a.jsonl", CALL, EXIT, id="aaaa0001", name="one")
    write(tmp_path / "b.jsonl", note(1, "part", next="b.part2.jsonl"), id="bbbb0002", name="two")
    write(tmp_path / "b.part2.jsonl", EXIT, id="bbbb0002", part=2)
    write(tmp_path / "c.jsonl", CALL, id="cccc0003", name="three")
    (tmp_path / "other.jsonl").write_text("{}\n", encoding="utf-8")
    settle()
    look(tmp_path)
    return tmp_path


def settle() -> None:
    """Wait until the clock is later than the times of the files."""
    before, until = time.time_ns() + 20_000_000, time.monotonic() + BOUND
    while time.time_ns() < before:
        assert time.monotonic() < until


def look(folder: Path) -> Sequence[Summary]:
    """List the folder like another process, count the sessions, and save the cache."""
    catalog = Catalog(str(folder))
    found = catalog.look()
    for summary in found:
        catalog.counts(summary)
    catalog.save()
    return found


def uncached(folder: Path) -> Sequence[Summary]:
    return Catalog(str(folder)).look(reread=True)


def test_sessions_in_the_cache_are_not_read(folder: Path, reads: list[str]) -> None:
    fresh = uncached(folder)
    reads.clear()
    assert Catalog(str(folder)).look() == fresh
    assert find("two", str(folder)) == folder / "b.jsonl"
    assert reads == []


def test_counts_are_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "count", pytest.fail)
    catalog = Catalog(str(folder))
    counts = {summary.header.name: catalog.counts(summary) for summary in catalog.look()}
    assert {name: each.unanswered for name, each in counts.items()} == {"one": 1, "two": 0, "three": 1}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", None),
        ("a.jsonl", b"more"),
        ("b.part2.jsonl", b"more"),
        ("b.part2.jsonl", None),
        ("c.jsonl", b"same size"),
        ("new.jsonl", b"new"),
    ],
)
def test_a_file_that_differs_is_read_again(folder: Path, name: str, data: bytes | None) -> None:
    path = folder / name
    if data is None:
        path.unlink()
    elif data == b"new":
        write(path, EXIT, id="dddd0004")
    elif data == b"more":
        path.write_bytes(path.read_bytes() + note(12, "stderr", text="x") + EXIT)
    else:
        stat = path.stat()
        path.write_bytes(path.read_bytes().replace(b"ping", b"pong"))
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert look(folder) == uncached(folder)
    assert look(folder) == uncached(folder)


def test_a_missing_part_that_returns_is_read(folder: Path) -> None:
    part = folder / "b.part2.jsonl"
    data = part.read_bytes()
    part.unlink()
    states = [summary.state for summary in look(folder) if summary.header.name == "two"]
    assert states == [RecordingState.DIED]
    part.write_bytes(data)
    assert [summary.state for summary in look(folder) if summary.header.name == "two"] == [
        RecordingState.ENDED
    ]


def test_a_session_that_was_deleted_is_removed_from_the_cache_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert b"one" in (folder / CACHE).read_bytes()
    monkeypatch.setattr(module, "WORTH", 1e9)
    (folder / "a.jsonl").unlink()
    sessions(str(folder))
    assert b"one" not in (folder / CACHE).read_bytes()


def test_a_live_session_is_not_cached(folder: Path) -> None:
    writer = Writer(str(folder), None, {"name": "live"}, say=pytest.fail)
    settle()
    assert look(folder)[0].state is RecordingState.LIVE
    assert b"live" not in (folder / CACHE).read_bytes()
    writer.note(1.0, "exit", code=0, signal=None)
    writer.close()
    assert {summary.state for summary in look(folder)} == {RecordingState.ENDED, RecordingState.DIED}


def test_a_file_that_changed_just_now_is_not_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RECENT", 3_600_000_000_000)
    write(folder / "new.jsonl", EXIT, name="recent")
    look(folder)
    assert b"recent" not in (folder / CACHE).read_bytes()


def _other_version(data: bytes) -> bytes:
    head, body = data.split(b"\n", 1)
    return msgspec.json.encode({**msgspec.json.decode(head), "mcpspy_catalog": "99.0"}) + b"\n" + body


@pytest.mark.parametrize(
    "change",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"one", b"two"),
        lambda data: b"\xff" * 100,
        _other_version,
    ],
)
def test_a_cache_that_is_not_valid_is_ignored_and_replaced(
    folder: Path, change: Any, reads: list[str]
) -> None:
    cache = folder / CACHE
    good = cache.read_bytes()
    cache.write_bytes(change(good))
    assert look(folder) == uncached(folder)
    assert sorted(cache.read_bytes().splitlines()[1:]) == sorted(good.splitlines()[1:])


@POSIX
def test_only_the_owner_can_read_the_cache(folder: Path, reads: list[str]) -> None:
    cache = folder / CACHE
    assert cache.stat().st_mode & 0o777 == 0o600
    reads.clear()
    cache.chmod(0o666)  # Others may have written it.
    look(folder)
    assert sorted(reads) == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert cache.stat().st_mode & 0o777 == 0o600


@POSIX
def test_a_link_in_place_of_the_cache_is_replaced_and_its_target_is_not(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine", encoding="utf-8")
    (folder / CACHE).unlink()
    (folder / CACHE).symlink_to(target)
    look(folder)
    assert target.read_text(encoding="utf-8") == "mine"
    assert not (folder / CACHE).is_symlink()


def test_a_folder_that_cannot_be_written_is_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / CACHE).unlink()

    def refuse(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refuse)
    assert len(look(folder)) == 3
    assert [path.name for path in folder.iterdir() if not path.name.endswith(".jsonl")] == []


def test_reading_that_takes_no_time_writes_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORTH", 10.0)
    write(tmp_path / "a.jsonl", EXIT)
    look(tmp_path)
    assert not (tmp_path / CACHE).exists()


@pytest.fixture
def pipe(folder: Path) -> Iterator[Path]:
    """Return a pipe whose name is that of a recording, and a socket beside it."""
    import socket

    path = folder / "pipe.jsonl"
    os.mkfifo(path)
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.getcwd()
        os.chdir(folder)  # The path of a socket is at most 104 bytes long.
        try:
            listener.bind("socket.jsonl")
        finally:
            os.chdir(before)
        yield path


@POSIX
@pytest.mark.parametrize(
    "command", ["ls", "show last", "stats .", "lint . --fail-on error", "prune --keep 9"]
)
def test_pipes_and_sockets_block_no_command(folder: Path, pipe: Path, command: str) -> None:
    arguments = [sys.executable, "-m", "mcpspy", *command.split(), "--dir", str(folder)]
    done = subprocess.run(arguments, cwd=folder, capture_output=True, timeout=BOUND, check=False)
    assert done.returncode in (0, 1, 4), done.stderr  # 4: one of the recordings was cut.
    assert b"Traceback" not in done.stderr


@POSIX
def test_lists_are_right_while_sessions_are_written_and_removed(tmp_path: Path) -> None:
    """Eight processes list the folder, and save the cache, while this one writes, changes and removes sessions."""
    code = f"""
import sys
from pathlib import Path
from mcpspy.errors import McpspyError
from mcpspy.io.recording import catalog
catalog.WORTH, catalog.RECENT = 0.0, 0
folder = Path({str(tmp_path)!r})
while not (folder / "stop").exists():
    before = set(folder.glob("*.jsonl"))
    one = catalog.Catalog(str(folder))
    found = one.look()
    for summary in found:
        try:
            one.counts(summary)
        except (McpspyError, OSError):
            assert summary.path.name.startswith("brief-"), summary  # It was removed meanwhile.
    one.save()
    after = set(folder.glob("*.jsonl"))
    paths = {{summary.path for summary in found}}
    assert before & after <= paths, (before, after, paths)
    assert all(path.name.startswith("brief-") for path in paths - before - after), (before, after, paths)
"""
    processes = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(8)]
    try:
        until = time.monotonic() + 2
        number = 0
        while time.monotonic() < until and all(process.poll() is None for process in processes):
            number += 1
            # A removed file never comes back: a list may have missed it in between.
            is_brief = number % 11 == 0
            path = tmp_path / (f"brief-{number}.jsonl" if is_brief else f"{number % 7}.jsonl")
            new = tmp_path / f"new-{number}"
            write(
                new,
                *[note(1, "stderr", text="x")] * (number % 5),
                EXIT,
                name=str(number % 5),
                id=f"{number:08x}",
            )
            new.replace(path)
            if is_brief:
                path.unlink()
    finally:
        (tmp_path / "stop").touch()
        errors = [process.communicate(timeout=BOUND)[1] for process in processes]
    assert not any(errors), b"".join(errors).decode()[-3000:]
    settle()
    cached = Catalog(str(tmp_path)).look()
    assert cached == uncached(tmp_path)
    assert [(summary.header.name, summary.entries - 1) for summary in cached] == [
        (str(summary.entries - 1), int(summary.header.name)) for summary in cached
    ]


def test_cached_counts_are_known_without_reading(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_counts, "SessionCounter", pytest.fail)
    catalog = Catalog(str(folder))
    counts_cache = CountCache(catalog)
    found = catalog.look()
    assert not list(found.uncounted())
    assert counts_cache.work(found)
    counts = {summary.path: counts_cache.of(summary) for summary in found}
    unanswered = {path.name: each and each.unanswered for path, each in counts.items()}
    assert unanswered == {"a.jsonl": 1, "b.jsonl": 0, "c.jsonl": 1}


def test_counts_of_the_list_are_cached(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / CACHE).unlink()
    catalog = Catalog(str(folder))
    found = catalog.look()
    while not CountCache(catalog).work(found):
        continue
    catalog.save()
    monkeypatch.setattr(module, "count", pytest.fail)
    again = Catalog(str(folder))
    assert all(again.counts(summary) for summary in again.look())
