"""The sessions that an agent reads: found by name, redacted on the way, with the line of each message.

A session that was recorded without redaction is read from a redacted copy in a private temporary folder, so that no
reader has to know about it. A session in memory is kept until its files change.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from mcpspy.analysis import rows
from mcpspy.core.protocol.message import Message, Request
from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change, Session, change_lines
from mcpspy.errors import UsageError
from mcpspy.io.recording.cache import FileStamp
from mcpspy.io.recording.lookup import find
from mcpspy.io.recording.reader import Recording, RecordingState, read_header_of, summarize
from mcpspy.io.recording.redaction import RedactionOptions, clean, redactor
from mcpspy.io.settings import sessions_folder

KEPT = 4
"""Sessions in memory."""

LONGEST = 240
"""Maximum characters of a subject or a status in a row."""


class LoadedSession:
    """A session in memory. A line counts across all parts; the header is line 1."""

    def __init__(self, path: Path, readable: Path, *, is_live: bool) -> None:
        self.path = path
        self.readable = readable
        """The file to read: the recording, or its redacted copy."""
        self.is_live = is_live
        recording = Recording(readable)
        self.header = recording.header
        self.session = Session(self.header).add_all(recording)
        if not is_live:
            self.session.end()
        self._lines = change_lines(self.session)
        self._answers = {
            change.exchange.number: change.number
            for change in reversed(self.session.changes)
            if change.exchange is not None and change.what is change.exchange.answer
        }

    @property
    def id(self) -> str:
        return session_id(self.header, self.path)

    @property
    def last_line(self) -> int:
        return self._lines[-1] if self._lines else 1

    def line(self, number: int) -> int:
        """Return the line of a change."""
        return self._lines[number]

    def changes_at(self, first: int, last: int) -> Sequence[Change]:
        """Return the changes of these lines, both included."""
        return self.session.changes[bisect_left(self._lines, first) : bisect_left(self._lines, last + 1)]

    def answer(self, exchange: Exchange) -> Change | None:
        number = self._answers.get(exchange.number)
        return None if number is None else self.session.changes[number]

    def row(self, change: Change) -> str:
        """Return a line about a change; a request has the outcome of its exchange.

        `#12→13 3.201s → tools/call forecast 85.1 ms ok`: line 12 is the request, line 13 its response.
        """
        exchange, reference = change.exchange, f"#{self.line(change.number)}"
        row = rows.row(change)
        if exchange is not None and isinstance(change.what, Request):
            answer = self.answer(exchange)
            if answer is not None:
                reference += f"→{self.line(answer.number)}"
            sizes = len(exchange.request.data), None if exchange.answer is None else len(exchange.answer.data)
            row = rows.exchange_row(change, sizes, self.session.last_at)
        size = (
            f"{row.size.strip()} B"
            if isinstance(change.what, Message) and len(change.what.data) > 9999
            else ""
        )
        cells = (reference, f"{row.time}s", row.arrow, row.method, _short(row.subject), row.latency, size)
        return " ".join(filter(None, (*map(str.strip, cells), _short(row.status))))


class SessionStore:
    """Finds and loads sessions. A reader holds `lock` while it uses the file of a loaded session."""

    def __init__(self, folder: str | None = None, *, allows_unredacted: bool = False) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self._allows_unredacted = allows_unredacted
        self._copies: tempfile.TemporaryDirectory[str] | None = None
        self._redactors: dict[Path, Redactor] = {}
        self._gate: Redactor | None = None
        self._loaded: OrderedDict[Path, tuple[list[FileStamp], LoadedSession]] = OrderedDict()

    def close(self) -> None:
        """Delete the redacted copies."""
        if self._copies is not None:
            self._copies.cleanup()
            self._copies = None

    def path(self, name: str) -> Path:
        """Return the file of a session, as `mcpspy show` finds it, or by `session_id`. Raise UsageError or CannotStart."""
        try:
            return find(name, self.folder)
        except UsageError:
            folder = Path(sessions_folder(self.folder))
            path = folder / f"{name}.jsonl"
            if path.parent != folder or not path.is_file():
                raise
            return path

    def load(self, name: str | Path) -> LoadedSession:
        """Return a session by its name or its file. Raise UsageError or CannotStart."""
        path = self.path(name) if isinstance(name, str) else name
        with self.lock:
            return self._load(path)

    def _load(self, path: Path) -> LoadedSession:
        summary = summarize(path, read_header_of(path), counts=False)
        # A recording from elsewhere must not choose the files that mcpspy reads.
        parts = (path.with_name(part) for part in summary.parts if Path(part).name == part)
        files = [path, *(part for part in parts if part.is_file())]
        stamps = [*map(FileStamp.of, files)]
        is_live = summary.state is RecordingState.LIVE
        known = self._loaded.pop(path, None)
        if known is None or known[0] != stamps or known[1].is_live != is_live:
            self._forget(known)
            known = stamps, LoadedSession(path, self._readable(files), is_live=is_live)
        self._loaded[path] = known
        if len(self._loaded) > KEPT:
            self._forget(self._loaded.popitem(last=False)[1])
        return known[1]

    def redactor(self, path: Path) -> Redactor | None:
        """Return the redactor of a recording that has secrets; None if its text may leave as it is."""
        if self._allows_unredacted or read_header_of(path).redacted:
            return None
        if path not in self._redactors:
            self._redactors[path] = new_redactor()
        return self._redactors[path]

    def gated(self, text: str) -> str:
        """Return a text without the secrets that are recognised in it, unless the user allows them.

        It finds those in recordings whose headers claim to be redacted, and in responses of live servers.
        """
        if self._allows_unredacted:
            return text
        self._gate = self._gate or new_redactor()
        return self._gate.message(text.encode("utf-8", "backslashreplace")).decode(
            "utf-8", "backslashreplace"
        )

    def _readable(self, files: list[Path]) -> Path:
        """Return the first file of a recording, or of its redacted copy."""
        redacting = self.redactor(files[0])
        if redacting is None:
            return files[0]
        if self._copies is None:
            self._copies = tempfile.TemporaryDirectory(prefix="mcpspy-mcp-")
        folder = Path(tempfile.mkdtemp(dir=self._copies.name))
        for file in files:
            clean(str(file), str(folder / file.name), redacting)
        return folder / files[0].name

    def _forget(self, known: tuple[list[FileStamp], LoadedSession] | None) -> None:
        if known is not None and known[1].readable != known[1].path:
            shutil.rmtree(known[1].readable.parent)


def new_redactor() -> Redactor:
    """Return a redactor with the user's settings."""
    made = redactor(RedactionOptions(), lambda _: None)
    assert made is not None  # `RedactionOptions.off` is False.
    return made


def session_id(header: Header, path: Path) -> str:
    """Return the id of a session; the name of its file if the id of the header has other characters."""
    is_plain = header.id.isascii() and header.id.isalnum() and len(header.id) <= 32
    return header.id if is_plain else sanitize(path.stem)


def started_at(started: str) -> str:
    """Return the start of a session in words; the header is not trusted to have a valid time."""
    try:
        return f"session of {datetime.fromisoformat(started).isoformat(timespec='seconds')}"
    except ValueError:
        return "session without a time"


def age(started: str) -> str:
    """Return the time since a session started: `3 min ago`; empty if the header has no valid time."""
    try:
        seconds = time.time() - datetime.fromisoformat(started).timestamp()
    except (ValueError, OverflowError, OSError):
        return ""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"


def not_a_line(session: LoadedSession, line: int) -> UsageError:
    return UsageError(f"{session.id} has no line {line}", f"its lines are 2 to {session.last_line}")


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
