"""Notes on the silences of a stdio session: unfinished lines, and input that the server does not read.

Nothing here runs for a message. One alarm is set by a chunk that ends inside a line, and at most every UNREAD_AFTER
seconds by one from the client.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from mcpspy.io.stdio.base import CLIENT, SERVER

if sys.platform == "linux":
    import fcntl
    import termios  # Not later, when memory may be short.

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.recording.encode import Value
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RecordingTap, Taps

UNFINISHED_AFTER = 0.25
"""Seconds without a byte after which an unfinished line is noted."""

UNREAD_AFTER = 5.0
"""Seconds of silence after which unread bytes are noted."""

READ_TIME = 1.0
"""Seconds in which a running server may leave bytes unread: it is starting, or busy."""

MAX_NOTES = 100
"""Notes of each kind and direction in a session. A peer that pauses within each line gets no more."""


class SilenceNotes:
    """The notes of one session. Times are those of the recording; without a recording, it does nothing."""

    def __init__(
        self,
        recorder: Recorder,
        taps: Taps,
        count_unread: Callable[[], int | None],
        alarm: Callable[[], object],
    ) -> None:
        """`count_unread` counts the bytes in the server's stdin. `alarm` is called whenever `due_at` is earlier."""
        self.due_at: float | None = None
        """The monotonic time at which `wake` is due."""
        self._recorder = recorder
        self._client, self._server = taps[:2]
        self._count_unread = count_unread
        self._alarm = alarm
        self._check_stdin_at: float | None = None
        self._noted = {CLIENT: (0, -1.0), SERVER: (0, -1.0), "unread": (0, -1.0)}
        """Number of notes, and the time of the last byte before the last one."""
        if recorder.writer is not None:
            for tap in taps[:2]:
                tap.watch(self._await_rest)
            self._client.call_before_next(self._await_read)

    def wake(self) -> None:
        """Note what has been silent for long enough."""
        if self.due_at is None or monotonic() < self.due_at:
            return
        self.due_at = None
        now = self._recorder.now()
        self._check_line(CLIENT, self._client, now)
        self._check_line(SERVER, self._server, now)
        if self._check_stdin_at is not None:
            self._check_stdin(self._check_stdin_at, now)

    def close(self, unread: int | None, *, is_by_host: bool) -> None:
        """Note the bytes that were unread when the server's stdin was closed, by the host or because the server ended."""
        self._check_stdin_at = None
        if unread and not (is_by_host and self._recorder.now() < self._client.last_at + READ_TIME):
            self._note_unread(unread)

    def _await_rest(self) -> None:
        self._expect(UNFINISHED_AFTER)

    def _await_read(self) -> None:
        self._check_stdin_at = self._recorder.now() + UNREAD_AFTER
        self._expect(UNREAD_AFTER)

    def _expect(self, seconds: float) -> None:
        due_at = monotonic() + seconds
        if self.due_at is None or due_at < self.due_at:
            self.due_at = due_at
            self._alarm()

    def _check_line(self, side: str, tap: RecordingTap, now: float) -> None:
        size, since = tap.unfinished, tap.last_at
        if size and now < since + UNFINISHED_AFTER:
            self._expect(since + UNFINISHED_AFTER - now)
        elif size and self._is_new(side, since):
            sender: dict[str, Value] = {"from": side}
            self._recorder.note("unfinished", **sender, size=size, since=round(since, 6))

    def _check_stdin(self, check_at: float, now: float) -> None:
        if now < check_at:
            self._expect(check_at - now)
            return
        unread = self._count_unread()
        if unread:
            # The client may repeat a ping all the time: then the server's silence counts.
            written, said = self._client.last_at, self._server.last_at
            check_at = min(written + UNREAD_AFTER, max(written + READ_TIME, said + UNREAD_AFTER))
            if now < check_at:
                self._check_stdin_at = check_at
                self._expect(check_at - now)
                return
            if self._is_new("unread", said):
                self._note_unread(unread)
        self._check_stdin_at = None
        self._client.call_before_next(self._await_read)

    def _note_unread(self, size: int) -> None:
        self._recorder.note("unread", pipe="stdin", size=size, since=round(self._client.last_at, 6))

    def _is_new(self, kind: str, last_at: float) -> bool:
        """Return whether a silence after this byte is not noted yet, and may be."""
        count, noted_at = self._noted[kind]
        if last_at == noted_at or count >= MAX_NOTES:
            return False
        self._noted[kind] = count + 1, last_at
        return True


def bytes_unread(fd: int) -> int | None:
    """Return the number of unread bytes in a pipe, given its writing end; None if the system does not report it."""
    unread: int | None = None
    try:
        if sys.platform == "linux":
            unread = int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)
        elif sys.platform == "darwin":
            # There, FIONREAD counts what this end could read: nothing. Its size is what the other end has not read.
            unread = os.fstat(fd).st_size
    except OSError:
        pass
    return unread
