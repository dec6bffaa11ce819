"""The file of a recording: complete, private, of one process, and never an obstacle."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import subprocess
import sys
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Note
from mcpspy.io.recording import writer
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.writer import BATCH, IOV_MAX, MAX_WAITING, Writer, is_live

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.conftest import Entry

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="modes, devices and descriptors of POSIX")

FIELDS: dict[str, str] = {"transport": "stdio", "name": "thing"}


class Disk:
    """A disk of limited size that accepts what fits and then raises. Replaces `os.write` and `os.writev`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room = 1 << 40
        self.portion = 1 << 40
        """Maximum number of bytes accepted at once."""
        self.writes = 0
        self._write = os.write
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "writev", self.writev, raising=False)

    def write(self, fd: int, data: bytes) -> int:
        """Accept what fits."""
        self.writes += 1
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self._write(fd, bytes(data[: min(self.room, self.portion)]))
        self.room -= written
        return written

    def writev(self, fd: int, buffers: Sequence[bytes]) -> int:
        """Accept what fits of all buffers."""
        return self.write(fd, b"".join(buffers))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk that may be full, and a writer that retries without a pause."""
    monkeypatch.setattr(writer, "RETRY", 0.0)
    return Disk(monkeypatch)


@pytest.fixture
def no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep no entries in memory while the disk refuses data."""
    monkeypatch.setattr(writer, "MAX_WAITING", 0)


@pytest.fixture
def said() -> list[str]:
    """Lines reported to the user."""
    return []


@pytest.fixture
def opened(tmp_path: Path, said: list[str]) -> Iterator[Callable[..., Writer]]:
    """Open a recording, `x.jsonl` by default. It is closed at the end."""
    writers: list[Writer] = []

    def open_one(record: str | None = "x.jsonl", folder: str | None = None, **more: Any) -> Writer:
        path = None if record is None else os.path.join(tmp_path, record)
        writers.append(Writer(folder, path, FIELDS, say=said.append, **more))
        return writers[-1]

    yield open_one
    for opened_writer in writers:
        opened_writer.close()


def notes(path: str) -> list[dict[str, Any]]:
    """Return all lines of a file. Every line is complete JSON."""
    with open(path, "rb") as file:
        *lines, rest = file.read().split(b"\n")
    assert rest == b""
    return [json.loads(line) for line in lines]


# Creation.


def test_the_first_line_is_the_header(opened: Callable[..., Writer]) -> None:
    created = opened()
    (header,) = notes(created.path)
    assert header == {
        "mcpspy": 1,
        "id": created.id,
        "started": header["started"],
        **FIELDS,
        "redacted": False,
    }
    assert list(header) == ["mcpspy", "id", "started", "transport", "name", "redacted"]
    assert header["started"][-1] == "Z"
    assert len(header["started"]) == len("2026-01-01T00:00:00.000Z")


@pytest.mark.parametrize("steps", [[0, 0, 0], [999, 0, 0], [5, 7, -10], [0, 1, 1]])
def test_recordings_of_the_same_millisecond_sort_by_their_start(
    opened: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    now = 1_795_335_183_745_000
    made = []
    for number, step in enumerate(steps):
        now += step
        monkeypatch.setattr("mcpspy.io.recording.writer.time.time_ns", lambda now=now: now * 1000)
        made.append(opened(f"{'cab'[number]}.jsonl"))
    found = [(notes(each.path)[0]["started"], each.id) for each in made]
    assert found == sorted(set(found))
    # The clock is believed if it is set back.
    monkeypatch.setattr("mcpspy.io.recording.writer.time.time_ns", lambda: (now - 60_000_000) * 1000)
    assert notes(opened("d.jsonl").path)[0]["started"] == "2026-11-22T08:12:03.745Z"


@posix_only
def test_only_the_user_can_read_the_new_file_and_folders(
    opened: Callable[..., Writer], tmp_path: Path
) -> None:
    previous = os.umask(0)
    try:
        created = opened(None, str(tmp_path / "mcpspy" / "sessions"))
    finally:
        os.umask(previous)
    assert stat.S_IMODE(os.stat(created.path).st_mode) == 0o600
    for folder in ("mcpspy/sessions", "mcpspy"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700


@posix_only
def test_a_folder_that_was_there_keeps_its_mode(opened: Callable[..., Writer], tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir(mode=0o755)
    opened("theirs/x.jsonl")
    assert stat.S_IMODE((tmp_path / "theirs").stat().st_mode) == 0o755


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_as_path_gets_a_file_with_a_unique_name(
    opened: Callable[..., Writer], tmp_path: Path, said: list[str], there: bool
) -> None:
    if there:
        (tmp_path / "folder").mkdir()
    first, second = opened("folder/"), opened("folder/")
    assert os.path.dirname(first.path) == os.path.dirname(second.path) == str(tmp_path / "folder")
    assert first.path != second.path
    assert f"-thing-{first.id}.jsonl" in first.path
    assert said == []


def test_a_file_that_exists_is_never_written_to(
    opened: Callable[..., Writer], tmp_path: Path, said: list[str]
) -> None:
    (tmp_path / "x.jsonl").write_text("precious", encoding="utf-8")
    assert [opened().path, opened().path] == [str(tmp_path / "x-2.jsonl"), str(tmp_path / "x-3.jsonl")]
    assert (tmp_path / "x.jsonl").read_text(encoding="utf-8") == "precious"
    assert said == [
        f"{tmp_path / 'x.jsonl'} exists; recording to {tmp_path / name}"
        for name in ("x-2.jsonl", "x-3.jsonl")
    ]


@posix_only
def test_a_link_that_leads_nowhere_is_not_followed(opened: Callable[..., Writer], tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "target")
    assert opened().path == str(tmp_path / "x-2.jsonl")
    assert not (tmp_path / "target").exists()


def test_an_impossible_path_is_an_oserror(opened: Callable[..., Writer], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        opened("file/x.jsonl")


@posix_only
def test_a_pipe_is_refused_since_its_reader_could_stop_the_traffic(
    opened: Callable[..., Writer], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(OSError, match="not a regular file"):
        opened()


@posix_only
def test_a_device_may_have_several_writers(opened: Callable[..., Writer]) -> None:
    for _ in range(2):
        opened(os.devnull).write([b"x\n"])


@posix_only
def test_no_other_program_inherits_the_file(opened: Callable[..., Writer]) -> None:
    assert not os.get_inheritable(opened()._fd)


# Appending.


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.lists(st.binary(max_size=20), max_size=5), max_size=10), st.integers(1, 30))
def test_entries_are_appended_completely_despite_partial_writes(
    opened: Callable[..., Writer], disk: Disk, entries: list[list[bytes]], portion: int
) -> None:
    disk.portion = 1 << 40
    created = opened()
    disk.portion = portion
    start = os.path.getsize(created.path)
    for buffers in entries:
        created.write(buffers)
    with open(created.path, "rb") as file:
        assert file.read()[start:] == b"".join(b"".join(buffers) for buffers in entries)


@pytest.mark.parametrize("size", [1, 1000, BATCH // 3, BATCH, BATCH + 1])
@pytest.mark.parametrize("count", [1, 2, IOV_MAX, IOV_MAX + 1])
def test_many_and_large_buffers_are_one_entry(opened: Callable[..., Writer], size: int, count: int) -> None:
    if size * count > 20 * BATCH:
        count = 20
    created = opened()
    start = os.path.getsize(created.path)
    created.write(iter([bytes([n % 256]) * size for n in range(count)]))
    with open(created.path, "rb") as file:
        file.seek(start)
        assert file.read() == b"".join(bytes([n % 256]) * size for n in range(count))


def test_an_ordinary_entry_is_one_write(opened: Callable[..., Writer], disk: Disk) -> None:
    created = opened()
    before = disk.writes
    created.write([b"a"] * 100)
    created.write([b"b\n"])
    created.write([])
    assert disk.writes - before == 2


def test_a_note_has_its_time_and_fields(opened: Callable[..., Writer]) -> None:
    created = opened()
    created.note(1.25, "exit", code=7, signal=None)
    assert notes(created.path)[-1] == {"t": 1.25, "note": "exit", "code": 7, "signal": None}


def test_time_begins_at_the_start_and_never_goes_back(opened: Callable[..., Writer]) -> None:
    created = opened()
    times = [created.now() for _ in range(100)]
    assert 0 <= times[0] < 60
    assert times == sorted(times)


# A disk that refuses.


def test_entries_that_a_full_disk_refuses_wait_in_memory_and_keep_their_order(
    opened: Callable[..., Writer], disk: Disk, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY", 60.0)
    created = opened()
    disk.room = 10
    created.write(line(1))
    created.write([line(2), line(3)[:9], line(3)[9:]])
    created.note(4, "eof")
    created.write(line(5))
    assert len(notes(created.path)) == 1
    disk.room = 1 << 40
    created.note(6, "exit")
    created.write(line(7))
    assert [entry["t"] for entry in notes(created.path)[1:]] == [1, 2, 3, 4, 5, 6, 7]
    assert said == [
        f"cannot write {created.path}: No space left on device; traffic continues unrecorded",
        f"recording to {created.path} again; nothing was lost",
    ]


@pytest.mark.parametrize("size", [100_000, BATCH // 2, BATCH + 1, 3 * BATCH])
@pytest.mark.parametrize("parts", [1, 2, 700])
@pytest.mark.parametrize("room", [0, 10, BATCH - 1, BATCH + 1])
def test_large_entries_wait_up_to_a_limit_and_those_after_it_are_counted(
    opened: Callable[..., Writer], disk: Disk, size: int, parts: int, room: int
) -> None:
    created = opened()
    disk.room = room
    for number in range(20):
        whole = line(number, size)
        step = len(whole) // parts
        cuts = [*range(0, step * parts, step), len(whole)]
        created.write(iter([whole[a:b] for a, b in pairwise(cuts)]))
        disk.room = min(disk.room, 0)
    disk.room = 1 << 40
    created.note(99, "after")
    _, *entries, after = notes(created.path)
    assert after["note"] == "after"
    written = [entry["t"] for entry in entries if entry["note"] == "n"]
    lost = sum(entry["entries"] for entry in entries if entry["note"] == "lost")
    assert written == [*range(len(written))]
    assert len(written) + lost == 20
    assert len(written) >= min(20, MAX_WAITING // len(line(0, size)))
    assert len(written) * size <= room + MAX_WAITING + size


@pytest.mark.usefixtures("nothing_is_removed")
@pytest.mark.parametrize("waits", [True, False])
def test_a_line_that_cannot_be_removed_is_continued_or_ended(
    opened: Callable[..., Writer], disk: Disk, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    if not waits:
        monkeypatch.setattr(writer, "MAX_WAITING", 0)
    created = opened()
    disk.room = 10
    created.write(line(1))
    disk.room = 15
    created.write(line(2))
    disk.room = 1 << 40
    created.write(line(3))
    with open(created.path, "rb") as file:
        _, *rest = file.read().splitlines()
    if waits:
        assert [json.loads(each)["t"] for each in rest] == [1, 2, 3]
    else:
        assert rest[0] == line(1)[:10], "readers show it as damaged"
        *lost, last = map(json.loads, rest[1:])
        assert (sum(note["entries"] for note in lost), last["t"]) == (2, 3)


@pytest.fixture
def nothing_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse to make any file shorter."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "ftruncate", refuse)


@pytest.mark.usefixtures("nothing_is_removed")
def test_a_header_that_is_written_in_part_is_continued(opened: Callable[..., Writer], disk: Disk) -> None:
    disk.room = 10
    created = opened()
    created.write(line(1))
    disk.room = 1 << 40
    created.write(line(2))
    header, *entries = notes(created.path)
    assert (header["mcpspy"], [entry["t"] for entry in entries]) == (1, [1, 2])


@pytest.mark.usefixtures("nothing_is_removed")
def test_a_pointer_to_a_part_that_is_written_in_part_spoils_no_entry(
    opened: Callable[..., Writer], disk: Disk
) -> None:
    created = opened(max_size=250)
    created.write(line(1, 250))
    disk.room = len(encode.header({**created._fields, "part": 2})) + 15
    created.write(line(2))
    disk.room = 1 << 40
    created.write(line(3))
    with open(created.path.replace(".part2", ""), "rb") as file:
        _, *lines = file.read().splitlines()
    assert [entry["t"] for entry in map(json.loads, [lines[0], *lines[2:]]) if entry["note"] == "n"] == [
        1,
        2,
        3,
    ]
    assert lines[1].startswith(b'{"t":')


def test_a_file_whose_state_is_unknown_is_not_reported(
    opened: Callable[..., Writer], always_checked: None, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    created = opened()

    def refuse(_fd: int) -> os.stat_result:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", refuse)
        created.write(line(1))
        created.close()
    assert (len(notes(created.path)), said) == (2, [])
    created._fd = os.open(os.devnull, os.O_WRONLY)


def test_a_full_disk_costs_lines_and_leaves_none_half_in_the_file(
    opened: Callable[..., Writer], disk: Disk, no_memory: None, said: list[str]
) -> None:
    created = opened()
    created.note(0, "before")
    disk.room = 10
    created.note(1, "half")
    created.write([b"one\n", b"two\n"])
    assert [note.get("note") for note in notes(created.path)] == [None, "before"]
    assert said == [f"cannot write {created.path}: No space left on device; traffic continues unrecorded"]
    disk.room = 1 << 40
    created.note(2, "after")
    assert [note.get("note") for note in notes(created.path)] == [None, "before", "lost", "after"]
    assert notes(created.path)[2] == {
        **notes(created.path)[2],
        "entries": 3,
        "why": "No space left on device",
    }
    assert said[1:] == [f"recording to {created.path} again; 3 entries were lost"]


@pytest.mark.parametrize("room", [0, 1, BATCH - 1, BATCH, BATCH + 1, 2 * BATCH, 3 * BATCH])
def test_lost_entries_are_counted_exactly(
    opened: Callable[..., Writer], disk: Disk, no_memory: None, room: int
) -> None:
    created = opened()
    disk.room = room
    created.write(iter([line(1, BATCH // 2 - len(line(1)))] * 8))
    disk.room = 1 << 40
    created.note(2, "after")
    header, *whole, lost, after = notes(created.path)
    assert (header["mcpspy"], len(whole) + lost["entries"], after["note"]) == (1, 8, "after")
    assert len(whole) == room // BATCH * 2, "written batches stay"


def test_a_huge_entry_counts_as_one_lost_entry(opened: Callable[..., Writer], disk: Disk) -> None:
    created = opened()
    disk.room = 3 * BATCH
    created.write(iter([*[b"x" * 65536] * 100, b"\n"]))
    disk.room = 1 << 40
    created.note(2, "after")
    assert notes(created.path)[1]["entries"] == 1


def test_a_disk_that_refuses_again_while_it_recovers_leaves_nothing_half(
    opened: Callable[..., Writer], disk: Disk, no_memory: None, said: list[str]
) -> None:
    created = opened()
    disk.room = 0
    created.note(1, "lost")
    disk.room = 20
    created.note(2, "lost")
    assert len(notes(created.path)) == 1
    disk.room = 1 << 40
    created.note(3, "after")
    assert notes(created.path)[1]["entries"] == 2
    assert len(said) == 2


def test_a_full_disk_is_not_asked_for_every_message(
    opened: Callable[..., Writer], disk: Disk, no_memory: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "RETRY", 60.0)
    created = opened()
    disk.room = 0
    created.note(1, "lost")
    before = disk.writes
    for _ in range(100):
        created.note(1, "lost")
    assert disk.writes == before
    disk.room = 1 << 40
    created.close()  # The last attempt is made at any time.
    assert notes(created.path)[1]["entries"] == 101
    created._fd = os.open(os.devnull, os.O_WRONLY)


@pytest.mark.parametrize("kept", [("eof", "exit"), ("exit",)])
def test_the_last_notes_follow_the_note_of_lost_entries_without_a_pause(
    opened: Callable[..., Writer],
    disk: Disk,
    no_memory: None,
    monkeypatch: pytest.MonkeyPatch,
    kept: tuple[str, ...],
) -> None:
    monkeypatch.setattr(writer, "RETRY", 60.0)
    created = opened()
    created.note(0.5, "before")
    disk.room = 0
    created.write(b"one\ntwo\n")
    if "eof" not in kept:
        disk.room = 1 << 40
    for kind in ("eof", "exit"):
        created.note(2, kind)
    disk.room = 1 << 40
    created.close()
    _, before, lost, *last = notes(created.path)
    assert (before["note"], lost["note"], lost["entries"]) == ("before", "lost", 2)
    assert 0 <= lost["since"] <= lost["t"]
    assert [note["note"] for note in last] == ["eof", "exit"]
    assert lost["t"] <= last[0]["t"]
    created._fd = os.open(os.devnull, os.O_WRONLY)


def test_an_exit_that_meets_a_full_disk_is_written_when_the_file_is_closed(
    opened: Callable[..., Writer], disk: Disk
) -> None:
    created = opened()
    disk.room = 10
    created.note(2, "exit")
    assert len(notes(created.path)) == 1
    disk.room = 1 << 40
    created.close()
    assert [note.get("note") for note in notes(created.path)] == [None, "exit"]
    created._fd = os.open(os.devnull, os.O_WRONLY)


# A file that is deleted or truncated.


@pytest.fixture
def always_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the file before every write."""
    monkeypatch.setattr(writer, "CHECK", 0.0)


def line(number: int, size: int = 0) -> bytes:
    return b'{"t":%d,"note":"n","text":"%b"}\n' % (number, b"x" * size)


@posix_only
@pytest.mark.parametrize("event", ["deleted", "truncated"])
@pytest.mark.parametrize("size", [0, BATCH])
def test_a_recording_that_disappears_continues_in_a_new_part(
    opened: Callable[..., Writer], said: list[str], always_checked: None, event: str, size: int
) -> None:
    created = opened()
    first = created.path
    created.write(line(1))
    created.write(line(2))  # Checks the file, and finds nothing.
    created._check_at = math.inf
    if event == "deleted":
        os.unlink(first)
    else:
        os.truncate(first, 0)
    created.write(line(3, size))
    created.write(iter([line(4, size)] * 3))
    created._check_at = 0.0
    created.write(line(5))
    created.write(line(6))
    header, *entries = notes(created.path)
    assert (header["id"], header["part"]) == (created.id, 2)
    assert created.path == first.replace(".jsonl", ".part2.jsonl")
    lines_before = 1 if event == "deleted" else 0  # Line 2 was written after the check.
    assert [entry["t"] for entry in entries][lines_before:] == [3, 4, 4, 4, 5, 6]
    assert said == [f"{first} was {event}; recording to {created.path}"]
    assert os.path.exists(first) == (event == "truncated")
    if event == "truncated":
        old, part = notes(first)
        assert (old["id"], part["next"]) == (created.id, os.path.basename(created.path))
    with open(created.path, "rb") as file:
        assert is_live(file.fileno())


@posix_only
@pytest.mark.parametrize("left", range(0, 400, 13))
def test_a_truncated_recording_keeps_its_header_and_whole_lines(
    opened: Callable[..., Writer], always_checked: None, left: int
) -> None:
    created = opened()
    first = created.path
    created._check_at = math.inf
    for number in range(10):
        created.write(line(number))
    os.truncate(first, left)
    created.write(line(10))
    created._check_at = 0.0
    created.write(line(11))
    header, *entries = notes(created.path)
    assert header["part"] == 2
    numbers = [entry["t"] for entry in entries]
    assert numbers[-1] == 11
    with open(first, "rb") as file:
        assert file.read().count(b'"mcpspy":') <= 1


@posix_only
@pytest.mark.usefixtures("no_memory")
def test_a_recording_that_cannot_continue_is_retried_and_reported_once(
    opened: Callable[..., Writer], said: list[str], disk: Disk, always_checked: None, tmp_path: Path
) -> None:
    created = opened("folder/x.jsonl")
    os.unlink(created.path)
    os.rmdir(tmp_path / "folder")
    for number in range(3):
        created.write(line(number))
    assert said == [f"cannot write {created.path}: No such file or directory; traffic continues unrecorded"]
    os.mkdir(tmp_path / "folder")
    created.write(line(3))
    _, lost, entry = notes(created.path)
    assert (lost["note"], lost["entries"], entry["t"]) == ("lost", 3, 3)


@posix_only
def test_a_disk_that_is_full_while_a_deleted_recording_continues_loses_no_written_line(
    opened: Callable[..., Writer], said: list[str], disk: Disk, always_checked: None, tmp_path: Path
) -> None:
    created = opened()
    first = created.path
    created.write(line(1))
    created._check_at = math.inf
    os.unlink(first)
    created.write([line(2), line(3)])
    disk.room = created._size - len(line(3)) - 5  # The header, and not all lines.
    created._check_at = 0.0
    created.write(line(4))
    assert list(tmp_path.iterdir()) == []

    disk.room = 1 << 40
    created.write(line(5))

    header, *entries = notes(created.path)
    assert header["part"] == 2
    assert [entry["t"] for entry in entries] == [1, 2, 3, 4, 5]
    assert said[0] == f"cannot write {first}: No space left on device; traffic continues unrecorded"


@posix_only
def test_a_recording_that_is_renamed_continues(
    opened: Callable[..., Writer], said: list[str], always_checked: None, tmp_path: Path
) -> None:
    created = opened()
    os.rename(created.path, tmp_path / "y.jsonl")
    created.write(line(1))
    assert len(notes(str(tmp_path / "y.jsonl"))) == 2
    assert not said


def test_a_disk_that_is_full_at_the_start_may_recover_too(
    opened: Callable[..., Writer], disk: Disk, said: list[str]
) -> None:
    disk.room = 5
    created = opened()
    created.note(1, "lost")
    assert notes(created.path) == []
    disk.room = 1 << 40
    created.note(2, "after")
    header, *entries = notes(created.path)
    assert (header["mcpspy"], [entry["note"] for entry in entries]) == (1, ["lost", "after"])
    assert len(said) == 2


@posix_only
def test_nothing_is_raised_when_the_descriptor_is_lost(
    opened: Callable[..., Writer], said: list[str]
) -> None:
    created = opened()
    os.close(created._fd)
    created.note(1, "lost")
    created.note(1, "lost")
    created.close()
    assert len(said) == 1
    created._fd = os.open(os.devnull, os.O_WRONLY)


# Parts.


def test_a_part_that_is_full_names_the_next_and_the_next_its_number(opened: Callable[..., Writer]) -> None:
    created = opened(max_size=400)
    first = created.path
    entry = b'{"note":"x","pad":"%b"}\n' % (b"x" * 100)
    for _ in range(9):
        created.write([entry])
    parts, path = [], first
    while True:
        lines = notes(path)
        parts.append(lines)
        if lines[-1].get("note") != "part":
            break
        path = os.path.join(os.path.dirname(first), lines[-1]["next"])
    assert path == created.path == first.replace(".jsonl", f".part{len(parts)}.jsonl")
    assert len(parts) > 2
    assert [part[0].get("part", 1) for part in parts] == list(range(1, len(parts) + 1))
    assert {part[0]["id"] for part in parts} == {created.id}
    assert sum(note.get("note") == "x" for part in parts for note in part) == 9


def test_only_the_last_part_is_live(opened: Callable[..., Writer]) -> None:
    created = opened(max_size=10)
    first = created.path
    created.note(1, "x")
    with open(first, "rb") as old, open(created.path, "rb") as new:
        assert not is_live(old.fileno())
        assert is_live(new.fileno())


def test_a_next_part_never_takes_a_file_that_exists(opened: Callable[..., Writer], tmp_path: Path) -> None:
    (tmp_path / "x.part2.jsonl").write_text("precious", encoding="utf-8")
    created = opened(max_size=10)
    created.note(1, "x")
    assert created.path == str(tmp_path / "x.part2-2.jsonl")
    assert notes(str(tmp_path / "x.jsonl"))[-1]["next"] == "x.part2-2.jsonl"
    assert (tmp_path / "x.part2.jsonl").read_text(encoding="utf-8") == "precious"


def test_a_part_that_cannot_begin_leaves_the_recording_in_this_one(
    opened: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    created = opened(max_size=5000)
    first = created.path
    created.note(0, "x", pad="x" * 5000)

    def refuse(*_: object) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refuse)
        created.note(1, "x")
        created.note(2, "x")
    assert created.path == first
    assert len(notes(first)) == 4
    assert len(said) == 1


def test_a_disk_that_is_full_when_a_part_begins_leaves_no_empty_one(
    opened: Callable[..., Writer], disk: Disk, tmp_path: Path
) -> None:
    created = opened(max_size=250)
    line = b'{"note":"x","pad":"%b"}\n' % (b"x" * 250)
    disk.room = len(line) + 20
    created.write([line])
    created.note(1, "lost")
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    disk.room = 1 << 40
    for at in range(2, 12):
        created.note(at, "after")
    assert created.path == str(tmp_path / "x.part2.jsonl")
    assert notes(created.path)[0]["part"] == 2
    assert notes(created.path)[-1]["note"] == "after"


@pytest.mark.parametrize("room", [0, 20])
def test_a_part_to_which_the_disk_has_no_room_to_point_is_not_begun(
    opened: Callable[..., Writer], disk: Disk, tmp_path: Path, said: list[str], room: int
) -> None:
    created = opened(max_size=250)
    header = created._size
    created.write(b'{"t":1,"note":"x","pad":"%b"}\n' % (b"x" * 250))
    disk.room = header + len(',"part":2') + room
    created.note(2, "lost")
    disk.room = 1 << 40
    created.note(3, "after")
    created.write(b'{"t":4,"note":"x","pad":"%b"}\n' % (b"x" * 250))
    created.note(5, "end")

    assert said[0] == (
        f"cannot start the next part of {tmp_path / 'x.jsonl'}: No space left on device; continuing in this file"
    )
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["x.jsonl", "x.part2.jsonl"]
    recorded = [entry.kind for entry in Recording(tmp_path / "x.jsonl") if isinstance(entry, Note)]
    assert recorded == ["x", "lost", "after", "x", "part", "end"]


def test_a_part_is_not_followed_by_an_empty_one(opened: Callable[..., Writer], tmp_path: Path) -> None:
    created = opened(max_size=250)
    created.note(1, "exit", code=0, signal=None, pad="x" * 250)
    created.close()
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]
    assert notes(created.path)[-1]["note"] == "exit"
    created._fd = os.open(os.devnull, os.O_WRONLY)


# The mark of a live file.


def test_a_file_is_live_until_it_is_closed(opened: Callable[..., Writer]) -> None:
    created = opened()
    with open(created.path, "rb") as file:
        assert is_live(file.fileno())
        assert is_live(file.fileno()), "checking does not change it"
        created.close()
        assert not is_live(file.fileno())
    created._fd = os.open(os.devnull, os.O_WRONLY)


def test_a_file_that_no_one_writes_is_not_live(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").touch()
    with open(tmp_path / "x.jsonl", "rb") as file:
        assert not is_live(file.fileno())


def test_a_file_whose_writer_was_killed_is_not_live(tmp_path: Path) -> None:
    script = f"""
from mcpspy.io.recording.writer import Writer
Writer(None, {str(tmp_path / "x.jsonl")!r}, {{}}, say=print)
print("open", flush=True)
input()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with open(tmp_path / "x.jsonl", "rb") as file:
            assert is_live(file.fileno())
            process.kill()
            process.wait(20)
            assert not is_live(file.fileno())


def test_the_parser_of_the_tests_reads_what_the_writer_writes(
    opened: Callable[..., Writer], read_entries: Callable[[bytes], list[Entry]]
) -> None:
    created = opened()
    created.write([b'{"t":0.000001,"from":"client","msg":', b"{}", b"}\n"])
    with open(created.path, "rb") as file:
        assert read_entries(file.read())[1].payload == b"{}\n"


class FakeLocks:
    """`msvcrt.locking`: locks of one byte by position; a byte that another file object has locked is refused."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        self.locked: dict[int, int] = {}

    def locking(self, fd: int, mode: int, count: int) -> None:
        position = os.lseek(fd, 0, os.SEEK_CUR)
        assert count == 1
        if mode == self.LK_UNLCK:
            assert self.locked.pop(position) == fd
        elif position in self.locked:
            raise PermissionError(errno.EACCES, "locked")
        else:
            self.locked[position] = fd


@posix_only
def test_on_windows_a_locked_byte_beyond_the_end_marks_a_live_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"0123456789")
    locks = FakeLocks()
    monkeypatch.setattr(writer, "msvcrt", locks, raising=False)
    monkeypatch.setattr(writer, "_LOCKED_BYTE", 1 << 40)  # No file system of Linux has an offset of 2^62.
    writing, reading = os.open(path, os.O_RDWR), os.open(path, os.O_RDONLY)
    os.lseek(reading, 4, os.SEEK_SET)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "platform", "win32")
        assert not writer.is_live(reading)
        writer._mark_live(writing)
        is_live = writer.is_live(reading)
        is_live_again = writer.is_live(reading)

    assert (is_live, is_live_again, list(locks.locked)) == (True, True, [1 << 40])
    assert os.lseek(writing, 0, os.SEEK_CUR) == 10, "the next entry is appended"
    assert os.lseek(reading, 0, os.SEEK_CUR) == 4, "the reader continues where it was"
    assert path.stat().st_size == 10
    os.close(writing)
    os.close(reading)
