"""The recording of one run, which may fail without affecting the traffic.

Nothing about a recording ever raises: a path that cannot be written, a full disk or a bug costs a
line on stderr and the recording.
"""

from __future__ import annotations

import os
import sys

from mcpspy.errors import McpspyError
from mcpspy.io.recording.redaction import RedactionOptions, redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.recording.writer import Writer


class RecordingTarget:
    """The options of a recording's destination."""

    def __init__(self) -> None:
        self.recording = True
        self.record: str | None = None
        """The file, or the folder to put it in; None for the folder of sessions."""
        self.folder: str | None = None
        """The folder of sessions; None for the default."""
        self.max_size = 0
        """Bytes after which a next part begins; 0 for never."""
        self.redaction = RedactionOptions()


class Recorder:
    """A recording in progress, or one that was stopped by an error."""

    def __init__(self, target: RecordingTarget, fields: Mapping[str, Value]) -> None:
        """Open the file. `fields` is the header without the common fields."""
        self.writer: Writer | None = None
        self.id: str | None = None
        """The id of the recording; None if there never was one."""
        self.path: str | None = None
        """Its first part."""
        if target.recording:
            try:
                self.writer = _open(target, fields)
                self.id, self.path = self.writer.id, self.writer.path
            except OSError as error:
                path = target.record or error.filename or "the default folder"
                say(f"cannot record to {path}: {error.strerror}; traffic goes on unrecorded")
            except McpspyError as error:
                say(f"cannot record: {error}; traffic goes on unrecorded")
            except Exception as error:
                self.broke(error)

    def now(self) -> float:
        """Return the seconds since the recording started; 0 if there is none."""
        return self.writer.now() if self.writer is not None else 0.0

    def write(self, lines: Lines) -> None:
        """Write whole lines."""
        if self.writer is not None:
            try:
                self.writer.write(lines)
            except Exception as error:
                self.broke(error)

    def note(self, kind: str, **fields: Value) -> None:
        if self.writer is not None:
            try:
                self.writer.note(self.writer.now(), kind, **fields)
            except Exception as error:
                self.broke(error)

    def finish(self, code: int | None, signal: str | None) -> None:
        """Record the exit, and close the file."""
        self.note("exit", code=code, signal=signal)
        if self.writer is not None:
            self.writer.close()

    def broke(self, error: Exception) -> None:
        """Stop the recording because of a bug in mcpspy."""
        self.writer = None
        say(
            f"recording stopped by a bug in mcpspy: {type(error).__name__}: {error}; traffic goes on unrecorded"
        )


def say(line: str) -> None:
    """Print a line on stderr, unless that would block: the host may not read it."""
    message = f"mcpspy: {line}\n".encode("utf-8", "replace")
    if sys.platform != "win32":
        import select

        gate = select.poll()
        gate.register(2, select.POLLOUT)
        if not gate.poll(0):
            return
        message = message[: select.PIPE_BUF]
    try:
        os.write(2, message)
    except OSError:  # stderr has no reader.
        pass


def _open(target: RecordingTarget, fields: Mapping[str, Value]) -> Writer:
    from mcpspy.io.recording.writer import Writer

    header = {**fields, "cwd": _working_folder(), "pid": os.getpid()}
    redacting = redactor(target.redaction, say)
    return Writer(target.folder, target.record, header, redacting, say=say, max_size=target.max_size)


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # It was deleted.
        return ""
