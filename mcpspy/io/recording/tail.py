"""A recording that may still grow, followed on an event loop from its start to its end.

Owns the waiting, and when there is nothing more to wait for. Reading is
`io.recording.scan`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, closing
from pathlib import Path

import aiofiles

from mcpspy.core.recording.decode import Damaged, Entry, Note, read_entry
from mcpspy.io.recording.scan import FileStatus, LineBlock, RecordingScan

POLL = 0.1
"""Seconds between two looks at a file that may grow: 0.13 % of a core, and no watcher to install."""

CHUNK = 1 << 20
"""Bytes per read: handing each to a thread and back costs as much as reading a smaller one twelve times."""

BEGINS_AGAIN = "the file was cut or replaced: reading it from its start"
"""Why of the `Damaged` entry after which a follower begins again."""


async def follow(path: Path, *, poll: float = POLL) -> AsyncIterator[Entry]:
    """Yield the entries of a recording as they come: those of `follow_lines`."""
    async with aclosing(follow_lines(path, poll=poll)) as blocks:
        async for block in blocks:
            if block.damaged is not None:
                yield block.damaged
            for line in block.lines:
                yield read_entry(line)


async def follow_lines(path: Path, *, poll: float = POLL) -> AsyncGenerator[LineBlock, None]:
    """Yield the lines of a recording as they come; a block without any says that there are none for now.

    Ends after the exit note, or when nobody writes to the file any more. Goes
    on in the next part. Begins again, after a `Damaged` entry that says so,
    when the file was cut, or another took its name; a deleted file is read to
    the end of what its writer still appends. Raises UsageError or CannotStart
    if there is nothing to open.
    """
    with closing(RecordingScan(path)) as scan:
        while True:
            status = scan.status()
            if status is FileStatus.GROWN:
                # Opened by the scan and not by aiofiles, which loses a file that it opens while we are cancelled.
                block = scan.take(await aiofiles.threadpool.wrap(scan.file).read(CHUNK))
                if block.lines:
                    yield block
                continue
            if status is FileStatus.REPLACED:
                yield LineBlock(scan.path, 0, [], Damaged(b"", BEGINS_AGAIN))
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
