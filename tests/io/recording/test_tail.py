"""Following recordings that grow, end, die, and are truncated, replaced or deleted."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.core.recording.decode import Damaged, Entry, Note
from mcpspy.errors import UsageError
from mcpspy.io.recording import tail as module
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.scan import LineReader
from mcpspy.io.recording.tail import CHUNK, follow, follow_lines
from mcpspy.io.recording.writer import Writer
from tests.io.files import (
    BOUND,
    CLIENT_FRAME,
    EXIT,
    POSIX,
    elsewhere,
    frame,
    kinds,
    note,
    one_line_with_a_way_out,
    write,
)


async def test_following_ends_when_the_writer_is_killed_and_misses_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(BOUND), elsewhere(tmp_path) as writer:
        stream = follow(writer.path, poll=0.001)
        for number in range(5):
            await writer.write(note(number, "stderr", text="x"))
            assert (await anext(stream)).at == number
        await writer.write(note(5, "stderr", text="the last words"))
        await writer.kill()
        assert [entry.at async for entry in stream] == [5]


class Idle:
    """Steps that happen while a follower sleeps: one per sleep, and no time passes.

    A follower that sleeps more often than there are steps would wait forever, and fails.
    """

    def __init__(self) -> None:
        self.steps: list[Callable[[], object]] = []

    async def sleep(self, seconds: float) -> None:
        assert seconds == 7.0, "it sleeps for the given interval"
        assert self.steps, "it waits for data that will never come"
        self.steps.pop(0)()


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> Idle:
    idle = Idle()
    monkeypatch.setattr(module, "asyncio", idle)
    return idle


async def followed(path: Path, idle: Idle, *steps: Callable[[], object]) -> list[Entry]:
    """Return everything a follower yields during these steps, each executed when it is idle."""
    idle.steps = list(steps)
    async with asyncio.timeout(BOUND):
        entries = [entry async for entry in follow(path, poll=7.0)]
    assert idle.steps == [], "it ended too early"
    return entries


async def test_a_finished_recording_is_followed_to_its_end_without_waiting(path: Path, idle: Idle) -> None:
    write(path, frame(1, "client", CLIENT_FRAME), note(2, "stderr", text="x"), EXIT)
    entries = await followed(path, idle)
    assert kinds(entries) == ["Frame", "stderr", "exit"]
    assert entries == list(Recording(path))


async def test_a_growing_file_is_followed_entry_by_entry(path: Path, idle: Idle, writer: Writer) -> None:
    entries = await followed(
        path,
        idle,
        lambda: writer.note(1.0, "stderr", text="a"),
        lambda: None,
        lambda: writer.write([note(2, "stderr", text="b"), note(3, "stderr", text="c")]),
        lambda: writer.write([note(4, "exit", code=0)]),
    )
    assert [entry.at for entry in entries] == [1, 2, 3, 4], (
        "it ends at the exit, although the file is still open"
    )


async def test_entries_come_as_they_are_written_and_not_at_the_end(path: Path, writer: Writer) -> None:
    async with asyncio.timeout(BOUND):
        stream = follow(path, poll=0.001)
        for number in range(3):
            writer.note(float(number), "stderr", text="x")
            assert (await anext(stream)).at == number
        writer.note(3.0, "exit", code=0)
        assert [entry.at async for entry in stream] == [3]


async def test_an_incomplete_line_is_skipped_until_it_is_complete(
    path: Path, idle: Idle, writer: Writer
) -> None:
    line = frame(1, "client", ["x" * 100, "é"])
    pieces = [line[:1], line[1:40], line[40:-4], line[-4:-1]]
    entries = await followed(
        path,
        idle,
        *[lambda piece=piece: writer.write([piece]) for piece in pieces],
        lambda: writer.write([line[-1:] + note(2, "exit", code=0)]),
    )
    assert entries == list(Recording(path))
    assert kinds(entries) == ["Frame", "exit"]


async def test_an_incomplete_line_of_a_dead_writer_is_reported_at_the_end(path: Path, idle: Idle) -> None:
    torn = b'{"t":2,"note":"stderr","te'
    write(path, note(1, "stderr", text="a"), torn)
    *before, last = await followed(path, idle)
    assert kinds(before) == ["stderr"]
    assert last == Damaged(torn, "incomplete: its writer was stopped while writing")


async def test_the_end_of_the_writer_is_the_end_and_its_last_words_are_heard(path: Path, idle: Idle) -> None:
    writer = Writer(None, str(path), {}, say=pytest.fail)

    def end() -> None:
        writer.note(2.0, "stderr", text="the last words")
        writer.close()

    entries = await followed(path, idle, lambda: writer.note(1.0, "stderr", text="a"), end)
    assert [entry.at for entry in entries] == [1, 2]


async def test_a_file_larger_than_a_chunk_is_followed_whole(path: Path, idle: Idle) -> None:
    write(path, frame(1, "client", ["x" * (2 * CHUNK)]), note(2, "stderr", text="y" * CHUNK), EXIT)
    assert await followed(path, idle) == list(Recording(path))


async def test_a_file_that_was_cut_is_read_from_its_start(path: Path, idle: Idle, writer: Writer) -> None:
    def cut() -> None:
        os.truncate(path, len(path.read_bytes().splitlines(keepends=True)[0]))
        writer.note(3.0, "exit", code=0)

    entries = await followed(
        path, idle, lambda: writer.write([note(1, "stderr", text="x" * 99), note(2, "stderr", text="y")]), cut
    )
    assert [entry.at for entry in entries] == [1, 2, 0, 3]
    assert isinstance(entries[2], Damaged)
    assert "truncated or replaced" in entries[2].why


async def test_a_file_that_was_cut_to_nothing_loses_its_header_and_no_entry(
    path: Path, idle: Idle, writer: Writer
) -> None:
    def cut() -> None:
        os.truncate(path, 0)
        writer.note(3.0, "stderr", text="c")
        writer.note(4.0, "exit", code=0)

    entries = await followed(path, idle, lambda: writer.note(1.0, "stderr", text="x" * 999), cut)
    assert [entry.at for entry in entries] == [1, 0, 3, 4]


@POSIX
async def test_another_file_of_the_same_name_is_read_from_its_start(
    path: Path, idle: Idle, writer: Writer
) -> None:
    other = write(path.with_name("other"), *[note(n, "stderr", text="new") for n in (5, 6)], EXIT)
    entries = await followed(
        path, idle, lambda: writer.note(1.0, "stderr", text="old"), lambda: os.replace(other, path)
    )
    assert [entry.at for entry in entries] == [1, 0, 5, 6, 9]
    assert kinds(entries) == ["stderr", "Damaged", "stderr", "stderr", "exit"]


@POSIX
async def test_the_rest_of_the_old_file_is_read_before_the_new_one(
    path: Path, idle: Idle, writer: Writer
) -> None:
    other = write(path.with_name("other"), EXIT)

    def replace() -> None:
        writer.note(2.0, "stderr", text="the last words")
        other.replace(path)

    entries = await followed(path, idle, lambda: writer.note(1.0, "stderr", text="old"), replace)
    assert [entry.at for entry in entries] == [1, 2, 0, 9]


@POSIX
async def test_a_deleted_file_is_followed_while_its_writer_continues(
    path: Path, idle: Idle, writer: Writer
) -> None:
    entries = await followed(
        path,
        idle,
        lambda: writer.note(1.0, "stderr", text="a"),
        path.unlink,
        lambda: writer.note(2.0, "stderr", text="b"),
        lambda: writer.note(3.0, "exit", code=0),
    )
    assert [entry.at for entry in entries] == [1, 2, 3]


@POSIX
async def test_a_file_that_was_cut_and_deleted_is_over(path: Path, idle: Idle, writer: Writer) -> None:
    def cut() -> None:
        os.truncate(path, 0)
        path.unlink()

    entries = await followed(path, idle, lambda: writer.note(1.0, "stderr", text="a"), cut)
    assert kinds(entries) == ["stderr"]


async def test_following_continues_in_the_next_part(path: Path, idle: Idle) -> None:
    writer = Writer(None, str(path), {}, say=pytest.fail, max_size=300)
    steps = [lambda n=n: writer.note(float(n), "stderr", text="x" * 100) for n in range(7)]
    entries = await followed(path, idle, *steps, writer.close)
    assert [entry.at for entry in entries if isinstance(entry, Note) and entry.kind == "stderr"] == list(
        range(7)
    )
    assert kinds(entries).count("part") >= 2
    assert entries == list(Recording(path))


@POSIX
@pytest.mark.parametrize("event", ["deleted", "truncated"])
@pytest.mark.parametrize("is_polled", [True, False])
async def test_a_recording_that_disappears_is_followed_into_its_next_part(
    path: Path, idle: Idle, event: str, is_polled: bool
) -> None:
    writer = Writer(None, str(path), {}, say=lambda _: None)

    def disappear() -> None:
        writer._check_at = math.inf
        path.unlink() if event == "deleted" else os.truncate(path, 0)
        writer.note(3.0, "stderr", text="moved")
        if not is_polled:
            find_out()

    def find_out() -> None:
        writer._check_at = 0.0
        writer.note(4.0, "stderr", text="new")

    entries = await followed(
        path,
        idle,
        lambda: writer.write([note(1, "stderr", text="x"), note(2, "stderr", text="x")]),
        disappear,
        find_out if is_polled else lambda: None,
        lambda: writer.note(5.0, "exit", code=0),
    )
    writer.close()
    times = [entry.at for entry in entries if isinstance(entry, Note) and entry.kind != "part"]
    if event == "deleted":
        assert (times, kinds(entries).count("Damaged")) == ([1, 2, 3, 4, 5], 0)
    else:
        again = [3] if is_polled else []
        assert times == [1, 2, *again, 3, 4, 5]
        assert kinds(entries).count("Damaged") == 1 + len(again)


async def test_the_next_part_is_begun_though_the_last_is_still_open(
    path: Path, idle: Idle, writer: Writer
) -> None:
    write(path.with_name("b.jsonl"), EXIT, part=2)
    entries = await followed(path, idle, lambda: writer.note(1.0, "part", next="b.jsonl"))
    assert kinds(entries) == ["part", "exit"]


async def test_a_next_part_that_is_not_there_is_the_end(path: Path, idle: Idle) -> None:
    write(path, note(1, "part", next="gone.jsonl"))
    assert kinds(await followed(path, idle)) == ["part"]


async def test_parts_that_name_each_other_are_followed_once(path: Path, idle: Idle) -> None:
    write(path, note(1, "part", next="b.jsonl"))
    write(path.with_name("b.jsonl"), note(2, "part", next=path.name), part=2)
    assert [entry.at for entry in await followed(path, idle)] == [1, 2]


async def test_many_may_follow_one_file(path: Path, writer: Writer) -> None:
    async def collect() -> list[float]:
        return [entry.at async for entry in follow(path, poll=0.001)]

    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        tasks = [group.create_task(collect()) for _ in range(5)]
        for number in range(20):
            writer.note(float(number), "stderr", text="x")
            await asyncio.sleep(0)
        writer.note(20.0, "exit", code=0)
    assert [task.result() for task in tasks] == [list(range(21))] * 5


async def test_a_follower_that_is_left_early_closes_its_file(path: Path, writer: Writer) -> None:
    writer.note(1.0, "stderr", text="x")
    async with asyncio.timeout(BOUND):
        stream = follow(path, poll=0.001)
        assert (await anext(stream)).at == 1.0
        await stream.aclose()  # type: ignore[attr-defined]
        assert [entry async for entry in stream] == []


@pytest.mark.parametrize(
    ("make", "what"), [(Path.exists, "no such file"), (Path.mkdir, "a folder")], ids=["nothing", "folder"]
)
async def test_the_error_for_a_path_that_cannot_be_followed_has_a_hint(
    path: Path, make: Callable[[Path], object], what: str
) -> None:
    make(path)
    async with asyncio.timeout(BOUND):
        with pytest.raises(UsageError, match=what) as caught:
            await anext(follow(path))
    one_line_with_a_way_out(caught.value, path, 2)


async def test_every_line_can_be_read_again_from_where_it_was(path: Path, writer: Writer) -> None:
    """A list of rows does not hold messages; it reads them from the file."""
    said = [note(number, "stderr", text="x" * number) for number in range(50)]
    writer.write(said)
    writer.write([EXIT])
    lines = LineReader()
    lines.begin_part(path)
    read = []
    async with asyncio.timeout(BOUND):
        async for block in follow_lines(path):
            offset = block.offset
            for line in block.lines:
                assert lines.read(0, offset, len(line)) == line
                offset += len(line) + 1
                read.append(line + b"\n")
    assert read == [*said, EXIT]
    assert lines.read(1, 0, 10) == b""
    assert lines.read(0, 1 << 40, 10) == b""
    lines.close()
    assert lines.read(0, 0, 10) == b""
