"""A recording that may still grow, followed on an event loop from its start to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import aiofiles

from mcpspy.core.recording.decode import Damaged, Entry, Note, read_entry
from mcpspy.io.recording.scan import FileStatus, LineBlock, RecordingScan

POLL = 0.1
"""Seconds between two checks of a file that may grow: 0.13 % of a core, and no watcher to install."""

CHUNK = 1 << 20
"""Bytes per read: a hand-over to a thread and back costs as much as twelve smaller reads."""

RESTARTED = "the file was cut or replaced: reading it from its start"
"""The text of the `Damaged` entry after which a follower starts over."""


async def follow(path: Path, *, poll: float = POLL) -> AsyncIterator[Entry]:
    """Yield the entries of a recording as they come: those of `follow_lines`."""
    async with aclosing(follow_lines(path, poll=poll)) as blocks:
        async for block in blocks:
            if block.damaged is not None:
                yield block.damaged
            for line in block.lines:
                yield read_entry(line)


async def follow_lines(path: Path, *, poll: float = POLL) -> AsyncGenerator[LineBlock, None]:
    """Yield the lines of a recording as they come; an empty block means that there are none for now.

    Ends after the exit note, or when the file has no writer. Continues in the next part. Starts over,
    after a `Damaged` entry, when the file was cut or replaced; a deleted file is read to its writer's
    end. Raises UsageError or CannotStart if there is nothing to open.
    """
    with closing(RecordingScan(path)) as scan:
        while True:
            status = scan.status()
            if status is FileStatus.GROWN:
                # Opened by the scan: aiofiles leaks a file if it is cancelled while opening it.
                block = scan.take(await aiofiles.threadpool.wrap(scan.file).read(CHUNK))
                if block.lines:
                    yield block
                continue
            if status is FileStatus.REPLACED:
                yield LineBlock(scan.path, 0, [], Damaged(b"", RESTARTED))
                scan.restart_file()
                continue
            is_closed = status is FileStatus.CLOSED
            if is_closed and (torn := scan.incomplete):
                damaged = Damaged(torn, "torn: its writer was stopped while writing")
                yield LineBlock(scan.path, scan.offset, [], damaged)
            if is_closed or (isinstance(scan.last, Note) and scan.last.kind in ("exit", "part")):
                if not scan.next_file():
                    return
                continue
            yield LineBlock(scan.path, scan.offset, [])
            await asyncio.sleep(poll)
