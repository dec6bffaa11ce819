"""Common parts of the importers of logs: records of several lines, and the sessions in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines
from mcpspy.core.recording.encode import CLIENT

LACKS = [
    "the server's exit status",
    "the time of stderr lines (that of the previous record is used)",
    "the original bytes of messages (they were parsed and re-encoded)",
]

SHOWN = 5
"""Errors of the host that a remark quotes."""

LONGEST = 160
"""Characters of such an error."""

SECONDS_TO_END = 5
"""Time in which a host ends a session after a timeout; Claude Desktop takes some milliseconds."""

_BOM = b"\xef\xbb\xbf"

_TRUNCATED = re.compile(rb"\.\.\.\[\d+ chars truncated\]\.\.\.")


class LogSession:
    """A session of a log. Messages that the host cut are kept as they are in the log."""

    def __init__(self, name: str, *, is_start: bool) -> None:
        self.name = name
        self.command: list[str] | None = None
        self.is_ended = False
        self.ended_at: float | None = None
        """The time at which the log states the end."""
        self.errors: list[str] = []
        """Errors that the host itself reported."""
        self.timed_out_at: float | None = None
        """The time at which the host gave up a request after a timeout in the host."""
        self.host_records = 0
        """Records of the host that are not messages."""
        self.is_empty = True
        self.left_out = 0
        self._is_start = is_start
        self._lines = RecordingLines()
        self._truncated = self._malformed = self._handshakes = 0

    @property
    def messages(self) -> int:
        return self._lines.messages

    def message(self, at: float, side: str, data: bytes) -> None:
        data = data.strip()
        method = None
        try:
            found = msgspec.json.decode(data)
            method = found.get("method") if isinstance(found, dict) else None
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            self._malformed += _TRUNCATED.search(data) is None
        self._truncated += _TRUNCATED.search(data) is not None
        self._handshakes += side == CLIENT and method == "initialize"
        self.is_empty = False
        self._lines.message(at, side, data)

    def end(self, at: float, *, is_end: bool) -> None:
        """Note the first record that states the end."""
        if is_end:
            self.is_ended = True
            self.ended_at = self.ended_at or at

    def stderr(self, at: float, line: bytes) -> None:
        self.is_empty = False
        self._lines.stderr(at, line.decode("utf-8", "replace"))

    def imported(self, format_name: str, key: str, lacks: list[str]) -> ImportedSession:
        changes = (
            ("truncated in the log, kept as it is", self._truncated, "message"),
            ("not JSON in the log, kept as it is", self._malformed, "message"),
            ("left out, because they belong to no record", self.left_out, "line"),
            ("left out, because they are not messages", self.host_records, "record of the host"),
        )
        changed = [f"{change}: {_number(number, noun)}" for change, number, noun in changes if number]
        if self.errors:
            distinct = [*dict.fromkeys(self.errors)]
            texts = "; ".join(text[:LONGEST] for text in distinct[:SHOWN]) + "; …" * (len(distinct) > SHOWN)
            changed.append(f"errors of the host, not of the server: {len(self.errors)} ({texts})")
        if self.ended_at is not None and self.ended_at - (self.timed_out_at or 0) <= SECONDS_TO_END:
            changed.append(
                "the host ended the session after its own timeout: the server may still have worked"
            )
        if not self._is_start:
            changed.append("the session may begin in an earlier file")
        if not self.is_ended:
            changed.append(
                "the end of the session is not in the log: open requests may have been answered later"
            )
        if self._handshakes > 1:
            changed.append(f"{self._handshakes} handshakes: servers of one name ran at the same time")
        return self._lines.session(
            is_ended=self.is_ended,
            ended_at=self.ended_at,
            format=format_name,
            key=key,
            name=self.name,
            command=self.command,
            lacks=lacks,
            changed=changed,
        )


def _number(number: int, noun: str) -> str:
    first, _, rest = noun.partition(" ")
    return counted(number, first) + (f" {rest}" if rest else "")


def records(data: bytes, pattern: re.Pattern[bytes]) -> Iterator[tuple[int, re.Match[bytes], list[bytes]]]:
    """Yield the line number and match of each record, and the non-blank lines between it and the next record.

    Lines before the first record follow it.
    """
    number, match, more = 0, None, []
    for count, line in enumerate(data.removeprefix(_BOM).replace(b"\r\n", b"\n").split(b"\n"), 1):
        if (found := pattern.fullmatch(line)) is None:
            more += [line] if line.strip() else []
            continue
        if match is not None:
            yield number, match, more
        number, match, more = count, found, more if match is None else []
    if match is not None:
        yield number, match, more


def imported(sessions: list[LogSession], format_name: str, lacks: list[str]) -> list[ImportedSession]:
    """Return the sessions that are not empty. An id is the server's name, with a number if several have this name."""
    sessions = [session for session in sessions if not session.is_empty]
    names = [session.name for session in sessions]
    keys = [
        f"{name}-{names[: at + 1].count(name)}" if names.count(name) > 1 else name
        for at, name in enumerate(names)
    ]
    return [
        session.imported(format_name, key if len(sessions) > 1 else "", lacks)
        for session, key in zip(sessions, keys, strict=True)
    ]
