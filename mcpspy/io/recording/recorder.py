"""The recording of one run. It may fail without affecting the traffic.

Nothing here raises. A path that cannot be written, a full disk or a bug stops the recording, and mcpspy prints
one line on stderr.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from mcpspy.errors import McpspyError
from mcpspy.io.recording.redaction import RedactionOptions, redactor
from mcpspy.io.settings import config_file, sessions_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpspy.core.recording.encode import Lines, Value
    from mcpspy.io.recording.writer import Writer


class RecordingTarget:
    """Options for the destination of a recording."""

    def __init__(self) -> None:
        self.recording = True
        self.origin = "host"
        """The origin of the recording: one of `core.recording.origin.ORIGINS`."""
        self.record: str | None = None
        """The file, or the folder for a file with a generated name; None selects the default folder."""
        self.folder: str | None = None
        """The folder of recordings; None selects the default folder."""
        self.max_size = 0
        """Bytes after which the next part begins; 0 disables parts."""
        self.redaction = RedactionOptions()


class Recorder:
    """A recording in progress, or one that was stopped by an error."""

    def __init__(self, target: RecordingTarget, fields: Mapping[str, Value]) -> None:
        """Open the file. `fields` is the header without the common fields."""
        self.writer: Writer | None = None
        self.id: str | None = None
        """Id of the recording, or None if it could not be opened."""
        self.path: str | None = None
        """Path of the first part."""
        self.on_stopped: list[Callable[[], object]] = []
        """Called when an error stops the recording, to release the memory that it takes."""
        self._target = target
        self._has_exit = False
        if target.recording:
            try:
                self.writer = _open(target, fields)
                self.id, self.path = self.writer.id, self.writer.path
            except OSError as error:
                path = target.record or error.filename or "the default folder"
                say(
                    f"cannot record to {path}: {error.strerror}; traffic continues unrecorded (use --dir FOLDER)"
                )
            except McpspyError as error:
                say(f"cannot record: {error}; traffic continues unrecorded")
            except Exception as error:
                self.broke(error)
        if self.writer is not None:
            _start_background(target, self.writer)

    @property
    def folder(self) -> str:
        """Return the folder of the recording; without one, the folder of recordings that was chosen."""
        return sessions_folder(self._target.folder) if self.path is None else os.path.dirname(self.path)

    def now(self) -> float:
        """Return the seconds since the recording started, or 0 without a recording."""
        return monotonic() - self.writer.epoch if self.writer is not None else 0.0

    def prepare(self) -> None:
        """Import what the recording of many messages needs, at a time when no message waits for it."""
        if self.writer is not None:
            from mcpspy.core.recording import strict_json

            strict_json.load()

    def write(self, lines: Lines) -> None:
        """Write complete lines."""
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

    def exit(self, code: int | None, signal: str | None, left: list[str]) -> None:
        """Record the exit of a server that left these pipes to other processes: the recording continues."""
        self.note("exit", code=code, signal=signal, left=left)
        self._has_exit = True

    def finish(self, code: int | None, signal: str | None) -> None:
        """Record the exit, or the end after it, and close the file."""
        self.note("end" if self._has_exit else "exit", code=code, signal=signal)
        if self.writer is not None:
            try:
                self.writer.close()
            except Exception as error:
                self.broke(error)

    def broke(self, error: Exception) -> None:
        """Stop the recording because of a bug in mcpspy, or because one of its packages is not installed."""
        self.writer = None
        for release in self.on_stopped:
            release()
        if isinstance(error, MemoryError):
            _print("cannot record: out of memory; traffic continues unrecorded")
            return
        if (missing := _missing_package(error)) is not None:
            _print(
                f"cannot record: {missing}; traffic continues unrecorded"
            )  # What redacts a line is missing too.
            return
        say(
            f"recording stopped by a bug in mcpspy: {type(error).__name__}: {error}; traffic continues unrecorded"
        )


def say(line: str) -> None:
    """Print a line on stderr, redacted and sanitized, unless that would block: the host may not read it."""
    try:
        from mcpspy.core.redact.display import redacted_text
        from mcpspy.core.sanitize import sanitize

        line = sanitize(redacted_text(line, sys.argv[1:]))
    except Exception as error:  # A bug must not print a secret.
        line = (
            _missing_package(error)
            or f"a bug in mcpspy: a line could not be redacted: {type(error).__name__}"
        )
    _print(line)


def _print(line: str) -> None:
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


def _missing_package(error: Exception) -> str | None:
    """Return the cause of an error and what to do, if the cause is a package that is not installed."""
    from mcpspy.io.extras import missing_package

    missing = missing_package(error)
    return None if missing is None else str(missing)


def _open(target: RecordingTarget, fields: Mapping[str, Value]) -> Writer:
    from mcpspy.io.recording.writer import Writer

    header = {"origin": target.origin, **fields, "cwd": _working_folder(), "pid": os.getpid()}
    redacting = redactor(target.redaction, say)
    return Writer(target.folder, target.record, header, redacting, say=say, max_size=target.max_size)


def _start_background(target: RecordingTarget, writer: Writer) -> None:
    """Delete old sessions, and export this one, in the background, if the settings have tables for that."""
    config = target.redaction.config
    what = "read the settings"
    try:
        path = config or config_file()
        settings = b""
        if os.path.isfile(path):
            with open(path, "rb") as file:
                settings = file.read()
        if target.record is None and b"[prune]" in settings:
            from mcpspy.io.recording import background

            what = "delete old sessions"
            background.start(["prune", "--dir", sessions_folder(target.folder)], config)
        endpoint = os.environ.get("MCPSPY_TELEMETRY") or (
            "" if b"[telemetry]" not in settings else "settings"
        )
        if endpoint not in ("", "off"):
            from mcpspy.io.recording import background

            what = "export telemetry"
            background.export(writer.path, writer.id, config)
    except OSError as error:
        say(f"cannot {what}: {error.strerror}")
    except Exception as error:
        say(f"cannot {what}: a bug in mcpspy: {type(error).__name__}: {error}")


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # The folder was deleted.
        return ""
