"""Follows a recording that may still grow, on an event loop, from its start to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import aiofiles

from mcpspy.core.recording.decode import Damaged, Entry, Note, read_entry
from mcpspy.io.recording.catalog import Catalog
from mcpspy.io.recording.reader import RecordingState
from mcpspy.io.recording.scan import FileStatus, LineBlock, RecordingScan

POLL = 0.1
"""Seconds between two checks of a file that may grow. This takes 0.13 % of a core and needs no watcher."""

SCANNED = 1.0
"""Seconds between two scans of a folder for new sessions."""

CHUNK = 1 << 20
"""Bytes per read. A switch to a thread and back takes as long as twelve smaller reads."""

RESTARTED = "the file was truncated or replaced: reading from its start"
"""Text of the `Damaged` entry after which a follower starts again."""


async def follow(path: Path, *, poll: float = POLL) -> AsyncIterator[Entry]:
    """Yield the entries of a recording as they arrive, like `follow_lines`."""
    async with aclosing(follow_lines(path, poll=poll)) as blocks:
        async for block in blocks:
            if block.damaged is not None:
                yield block.damaged
            for line in block.lines:
                yield read_entry(line)


async def follow_lines(
    path: Path, *, poll: float = POLL, scan: RecordingScan | None = None
) -> AsyncGenerator[LineBlock, None]:
    """Yield the lines of a recording as they arrive. An empty block means that there are none for now.

    Ends after the last note, or when the file has no writer. Continues in the next part. If the file was truncated
    or replaced, yields a `Damaged` entry and starts again. A deleted file is read until its writer ends. Raises
    UsageError or CannotStart if the file cannot be opened.
    """
    scan = RecordingScan(path) if scan is None else scan
    with closing(scan):
        data = b""
        while True:
            # After a whole chunk there is probably another one, and a check would take as long as reading it.
            status = FileStatus.GROWN if len(data) == CHUNK else scan.status()
            if status is FileStatus.GROWN:
                # The scan opens the file: aiofiles leaks a file if it is cancelled while opening it.
                data = await aiofiles.threadpool.wrap(scan.file).read(CHUNK)
                block = scan.take(data)
                if block.lines:
                    yield block
                continue
            if status is FileStatus.REPLACED:
                yield LineBlock(scan.path, 0, [], Damaged(b"", RESTARTED))
                scan.restart_file()
                continue
            is_closed = status is FileStatus.CLOSED
            if is_closed and (torn := scan.incomplete):
                damaged = Damaged(torn, "incomplete: its writer was stopped while writing")
                yield LineBlock(scan.path, scan.offset, [], damaged)
            if is_closed or (isinstance(scan.last, Note) and (scan.last.is_end or scan.last.kind == "part")):
                if not scan.next_file():
                    return
                continue
            yield LineBlock(scan.path, scan.offset, [])
            await asyncio.sleep(poll)


async def new_sessions(catalog: Catalog) -> AsyncIterator[Path]:
    """Yield every session that is live, or begins later, even if it has ended before the next scan."""
    known: set[Path] = set()
    is_first = True
    while True:
        for summary in await asyncio.to_thread(catalog.look):
            if summary.path not in known:
                known.add(summary.path)
                if summary.state is RecordingState.LIVE or not is_first:
                    yield summary.path
        is_first = False
        await asyncio.sleep(SCANNED)
