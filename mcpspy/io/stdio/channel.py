"""One forwarding direction on POSIX: read from a source, record, write to a target.

Writing never blocks: data that does not fit stays pending, and the source is not read until that data is
written. Data is forwarded unchanged or through a `MessageChannel`. O_NONBLOCK is never set on an inherited
descriptor, because other processes share it.
"""

from __future__ import annotations

import os
import select
import stat
from collections import deque
from errno import EINVAL, ENOSYS, EOPNOTSUPP

from mcpspy.io.stdio.base import CHUNK, close
from mcpspy.io.stdio.silence import bytes_unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sys
    from collections.abc import Callable

    from mcpspy.io.control.server_poll import Loop
    from mcpspy.io.stdio.base import RecordingTap
    from mcpspy.io.stdio.message_channel import MessageChannel, StderrLines
    from mcpspy.io.stdio.silence import SilenceNotes

    assert sys.platform != "win32"

_NO_NOWAIT = (EOPNOTSUPP, ENOSYS, EINVAL)
"""Errors of a kernel without RWF_NOWAIT, or without RWF_NOWAIT for pipes (before 6.4)."""

_GONE = select.POLLERR | select.POLLNVAL
_HUNG_UP = select.POLLHUP
_CLOSED = select.POLLHUP | getattr(select, "POLLRDHUP", 0)
"""A source without a writer: a pipe, or a socket that is shut for writing, of which only Linux knows another event."""

RESERVE = 65_536
"""Bytes that a channel keeps for the blocks of its queue (of 64 entries) when nothing else is left."""


class Channel:
    """One direction. Holds at most one chunk in memory, unless messages are injected into it."""

    def __init__(
        self, loop: Loop, source: int, target: int, tap: RecordingTap, *, is_shared: bool = False
    ) -> None:
        """`is_shared`: another channel writes to the same target, even after this source ends; the loop closes it."""
        self._loop = loop
        self._tap = tap
        self._record = tap.feed
        self.source = source
        self.target = target
        self.pending: memoryview | bytes = b""
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._reserve = bytes(RESERVE)
        self._message_channel: MessageChannel | StderrLines | None = None
        self._waiting: Channel | None = None
        self._is_shared = is_shared
        self._is_paused = False
        self.is_open = True
        self.ended = False
        self.silence: SilenceNotes | None = None
        """Of the channel to the server's stdin: it notes what the server did not read."""
        self.is_counting = False
        self.bytes_read = 0
        # A pipe created by mcpspy may be O_NONBLOCK. An inherited pipe may not, because other processes share it:
        # mcpspy writes PIPE_BUF bytes after each POLLOUT, which never blocks.
        self._target_poll: select.poll | None = None
        self._nowait = False
        if target <= 2:
            self._target_poll = select.poll()
            self._target_poll.register(target, select.POLLOUT)
            # Linux can make a single write non-blocking without changing the descriptor.
            kind = os.fstat(target).st_mode
            self._nowait = hasattr(os, "RWF_NOWAIT") and (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind))
        else:
            os.set_blocking(target, False)
        loop.route(source, self._on_source, select.POLLIN)
        loop.route(target, self._on_target, 0)

    @property
    def backlog(self) -> int:
        return len(self.pending) + self._queued

    @property
    def is_done(self) -> bool:
        """Return whether all data of the ended source is written, or the target is closed."""
        return not self.is_open or (self.ended and not self.pending)

    @property
    def is_writable(self) -> bool:
        return self.is_open and not self.ended

    def has_read(self, limit: int) -> bool:
        """Return whether the source is empty, or has ended, or more than `limit` bytes were counted."""
        if not self.is_open or self.ended or self.bytes_read > limit:
            return True
        poller = select.poll()
        poller.register(self.source, select.POLLIN)
        return not poller.poll(0)

    def has_written(self, limit: int) -> bool:
        """Return whether all data is written, or more than `limit` bytes of those that were counted."""
        return not self.backlog or self.bytes_read - self.backlog > limit

    def count_unread(self) -> int | None:
        """Return the number of written bytes that were not read; None if that is not known."""
        return bytes_unread(self.target) if self.is_open else None

    def divert(self, message_channel: MessageChannel | StderrLines | None) -> None:
        self._message_channel = message_channel

    def put(self, data: bytes) -> None:
        """Write data after all pending data; discard it if the channel is closed."""
        if not self.is_open or not data:
            return
        if self.pending:
            try:
                self._queue.append(data)
            except MemoryError:  # The data itself is there; what lacks is the next block of the queue.
                self._reserve = b""
                self._queue.append(data)
            self._queued += len(data)
            return
        self._push(data)
        if self.pending:
            self._stall()

    def wait_for(self, other: Channel) -> None:
        if self.is_open and not self.ended and other.backlog:
            self._loop.unroute(self.source)
            other._waiting = self

    def pause(self) -> None:
        if not self._is_paused and self.is_open and not self.ended:
            self._is_paused = True
            self._loop.unroute(self.source)

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._resume()

    def finish(self) -> None:
        if self.is_open and not self.ended:
            self.ended = True
            self._loop.unroute(self.source)
            self._record_torn()
            if not self.pending:
                self.close()

    def close(self) -> None:
        """Close both ends and record an unfinished line."""
        if self.is_open:
            if not self.ended:
                self._record_torn()
            self._close_ends()

    def _close_ends(self) -> None:
        unread = None if self.silence is None else self.count_unread()
        self.is_open = False
        for fd in (self.source, self.target):
            self._loop.unroute(fd)
            close(fd)
        self.pending = b""
        self._queue.clear()
        self._queued = 0
        self._resume_waiting()
        if self.silence is not None:
            self.silence.close(unread, is_by_host=self.ended)

    def _on_source(self, _events: int) -> None:
        try:
            data = os.read(self.source, CHUNK)
        except BlockingIOError:  # Another process that shares the descriptor has read the data.
            return
        except MemoryError as error:
            if self._message_channel is None or not self._message_channel.frees_memory():
                self._tap.give_up(error)
            return
        except OSError:  # EIO from a terminal that hung up, or ECONNRESET from a socket, means the end.
            data = b""
        if not data:
            self._on_end()
            return
        if self.is_counting:
            self.bytes_read += len(data)
        if self._message_channel is not None:
            self._message_channel.feed(data)
            return
        self._record(data)
        self._push(data)
        if self.pending:
            self._stall()

    def _stall(self) -> None:
        # Unroute instead of requesting no events: poll() would still report POLLHUP while there is data to read.
        self._loop.unroute(self.source)
        self._loop.route(self.target, self._on_target, select.POLLOUT)

    def _resume(self) -> None:
        if self.is_open and not self.ended and not self.pending and not self._is_paused:
            self._loop.route(self.source, self._on_source, select.POLLIN)

    def _on_target(self, events: int) -> None:
        if self.pending:
            self._push(self.pending)
            while self._queue and self.is_open and not self.pending:
                data = self._queue.popleft()
                self._queued -= len(data)
                self._push(data)
            if self.is_open and not self.pending:
                if self.ended and not self._is_shared:
                    self.close()
                else:
                    self._loop.route(self.target, self._on_target, 0)
                    self._resume()
                    self._resume_waiting()
        elif events & _GONE or (events & _HUNG_UP and self._target_poll is None):
            self._on_broken()  # macOS reports a pipe without a reader as hung up.
        elif events & _HUNG_UP:
            # Sockets also report this for a half-close; the next write detects a real close.
            self._loop.unroute(self.target)

    def _resume_waiting(self) -> None:
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            waiting._resume()

    def _push(self, data: memoryview | bytes) -> None:
        """Write as much as possible without blocking; the rest stays pending."""
        try:
            if self._target_poll is None:
                sent = os.write(self.target, data)
                self.pending = b"" if sent == len(data) else memoryview(data)[sent:]
                return
            if self._nowait:
                sent = os.pwritev(self.target, (data,), -1, os.RWF_NOWAIT)
                self.pending = b"" if sent == len(data) else memoryview(data)[sent:]
                return
            if len(data) > select.PIPE_BUF:
                data = memoryview(data)
            while data and self._target_poll.poll(0):
                self.pending = data
                data = data[os.write(self.target, data[: select.PIPE_BUF]) :]
            self.pending = data
        except BlockingIOError:
            self.pending = self.pending or data
        except OSError as error:
            if self._nowait and error.errno in _NO_NOWAIT:
                self._nowait = False
                self._push(data)
                return
            self.pending = self.pending or data
            self._on_broken()

    def _on_end(self) -> None:
        if self._message_channel is not None and self._message_channel.delays_end():
            self.pause()
            return
        self.ended = True
        self._loop.unroute(self.source)
        if self._message_channel is not None:
            self._message_channel.eof()
        self._tap.eof()
        if not self.pending and not self._is_shared:
            self.close()

    def _on_broken(self) -> None:
        """Handle a target without a reader: close the source, so that its writer gets EPIPE, as without mcpspy.

        At once, because the writer may be about to write. What was lost is recorded after that.
        """
        undelivered, is_source_closed = self.backlog, not self.ended and self._is_source_closed()
        self._close_ends()
        if self._message_channel is not None:
            self._message_channel.torn()
        self._tap.broke(undelivered, is_source_closed=is_source_closed)

    def _is_source_closed(self) -> bool:
        """Return whether the source has no writer any more, though there may be data to read."""
        poller = select.poll()
        poller.register(self.source, _CLOSED)
        return any(events & _CLOSED for _, events in poller.poll(0))

    def _record_torn(self) -> None:
        if self._message_channel is not None:
            self._message_channel.torn()
        self._tap.torn()


class TerminalWriter:
    """A thread that writes to a terminal and gets its data through a pipe. A terminal may block at any time."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._output_fd, self.input_fd = os.pipe()
        self._waits = select.poll()
        self._waits.register(self._output_fd, select.POLLIN)
        self.start()

    def start(self) -> None:
        """Start the thread, of which a fork of this process has no copy."""
        import threading

        self._is_writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def is_idle(self) -> bool:
        """Return whether all data is written."""
        # In this order: the thread takes the lock before it empties the pipe, so data is seen here or there.
        return not self._waits.poll(0) and not self._is_writing.locked()

    def pause(self) -> None:
        """Write nothing until `resume`, or until `start` in a fork. Call this when idle."""
        self._is_writing.acquire()

    def resume(self) -> None:
        self._is_writing.release()

    def drain(self, is_over: Callable[[], bool]) -> None:
        """Wait until all data is written or `is_over` returns True."""
        while self._thread.is_alive() and not is_over():
            self._thread.join(0.05)

    def _run(self) -> None:
        poller = select.poll()
        poller.register(self._output_fd, select.POLLIN)
        try:
            while poller.poll():
                with self._is_writing:
                    data = os.read(self._output_fd, CHUNK)
                    if not data:
                        break
                    while data:
                        data = data[os.write(self._target, data) :]
        except OSError:  # The terminal is gone.
            pass
        os.close(self._output_fd)  # Later writes get EPIPE, as they would without mcpspy.
