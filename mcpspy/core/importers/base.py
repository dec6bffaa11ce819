"""Common parts of all importers: reading of documents and building of the lines of a recording.

Messages are copied verbatim from the file (`1.0`, escapes, big integers, duplicate keys), never invented. Each
session lists the data that the other tool did not record. An unreadable document is an error of one line.
"""

from __future__ import annotations

import calendar
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from mcpspy.core.recording import encode
from mcpspy.core.recording.encode import SERVER
from mcpspy.core.recording.encode_body import SseEncoder
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

_BEYOND_TIME = 1e11
"""Times above this limit, in seconds since 1970, are invalid."""

_AT_ZERO = b'{"t":0.000000'
"""Start of a line, with a placeholder for its time."""

T = TypeVar("T")

_BOM = b"\xef\xbb\xbf"

_SPACE = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+', re.DOTALL)

_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,12}))?\s*([Zz]|[+-]\d\d:?\d\d)?", re.ASCII
)
"""An RFC 3339 date and time; UTC if it has no zone."""

INCOMPLETE = "the file may be incomplete; save it again, or wait until the other tool has finished"


class ImportedSession(Struct, kw_only=True):
    """A session from another tool's file, as lines of a recording."""

    format: str
    key: str = ""
    """Id of the session in its file; empty if it is the only session."""
    name: str = ""
    transport: str = "stdio"
    command: list[str] | None = None
    upstream: str | None = None
    cwd: str | None = None
    started: float | None
    """Seconds since 1970; None if the file does not contain it."""
    lines: list[bytes]
    """Lines of the recording, without the header."""
    messages: int
    lacks: list[str]
    """Data that the format does not record, with the substitutes used."""
    changed: list[str] = []
    """Messages of this file that were left out, moved or changed."""


class RecordingLines:
    """Builder of the lines of a recording. Times are in seconds from any origin: the first one becomes 0.

    `by_time` sorts the lines by time; otherwise they keep the order in which they were added.
    """

    def __init__(self, *, by_time: bool = False) -> None:
        self.messages = 0
        self._by_time = by_time
        self._lines: list[tuple[float, int, bytes]] = []

    def message(self, at: float, side: str, data: bytes, **fields: Value) -> None:
        """Add a message of one side; ignore a message of white space only."""
        if data.strip():
            # The text may contain a line break, which must not end the line of the recording.
            body = "http" in fields or b"\n" in data
            prefix = encode.frame_prefix(side, fields) % 0.0
            self._add(at, b"".join(encode.splice(prefix, [data], body=body)))

    def events(self, times: Iterable[float], body: bytes, **fields: Value) -> None:
        """Add a `text/event-stream` body of the server; `times` has one item per event."""
        encoder = SseEncoder(SERVER, fields)
        _, lines = encoder.feed(0.0, body)
        events = b"".join([*lines, *encoder.close(0.0)]).split(b"\n")[:-1]
        for at, line in zip(times, events, strict=True):
            self._add(at, line + b"\n")

    def stderr(self, at: float, text: str) -> None:
        data = text.encode("utf-8", "replace")
        self._add(at, b"".join(encode.splice_text(_AT_ZERO + b',"note":"stderr",', [data])))

    def note(self, at: float, kind: str, **fields: Value) -> None:
        self._add(at, encode.note(0.0, kind, fields))

    def session(
        self,
        *,
        start: float | None = None,
        is_ended: bool = True,
        ended_at: float | None = None,
        **fields: Any,
    ) -> ImportedSession:
        """Return the session with these fields; times count from `start`, by default the time of the first line.

        `ended_at` is the time of the end, if the file has it and it is later than the last line.
        """
        if is_ended:
            last = max((at for at, _, _ in self._lines), default=0.0)
            self.note(
                max(last, ended_at or last), "exit", code=None, signal=None
            )  # No format records how the server exited.
        started, lines = self.done(start)
        return ImportedSession(**{"started": started, **fields}, lines=lines, messages=self.messages)

    def done(self, start: float | None = None) -> tuple[float, list[bytes]]:
        """Return the start, by default the time of the first line, and the lines."""
        added = sorted(self._lines) if self._by_time else self._lines
        if start is None:
            start = added[0][0] if added else 0.0
        lines, last = [], 0.0
        for at, _, rest in added:
            last = max(last, at - start)
            lines.append(b'{"t":%.6f' % last + rest)
        return start, lines

    def _add(self, at: float, line: bytes) -> None:
        if not abs(at) < _BEYOND_TIME:
            raise UsageError(f"{at:g} s is not a valid time", "see docs/import.md")
        self.messages += not line.startswith(b',"note":', len(_AT_ZERO))
        self._lines.append((at, len(self._lines), line[len(_AT_ZERO) :]))


def words(command: str) -> list[str] | None:
    """Split a command line by shell rules; return it as one word if a quote is not closed."""
    try:
        return shlex.split(command) or None
    except ValueError:
        return [command]


def read(data: bytes, shape: type[T], name: str) -> T:
    """Return the document as `shape`; raise a UsageError that names the format."""
    try:
        return Decoder(shape).decode(data.removeprefix(_BOM))
    except (DecodeError, UnicodeError) as error:
        cut = "truncated" in str(error)
        raise UsageError(
            f"invalid {name}: {_lower(error)}", INCOMPLETE if cut else "see docs/import.md"
        ) from None
    except RecursionError:
        raise UsageError(f"invalid {name}: nested too deeply") from None


def read_lines(
    data: bytes, shape: type[T], name: str, otherwise: Callable[[bytes], T] | None = None
) -> Iterator[tuple[int, T]]:
    """Yield the number and entry of each non-blank line; raise UsageError for an invalid one.

    `otherwise` parses lines that are not JSON; it raises ValueError if it cannot.
    """
    decode = Decoder(shape).decode
    lines = data.removeprefix(_BOM).split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            entry = decode(line)
        except (DecodeError, UnicodeError) as error:
            try:
                entry = _other(line, otherwise)
            except (ValueError, RecursionError):
                cut = number == len(lines)
                problem = "the last line is incomplete" if cut else _lower(error)
                raise UsageError(
                    f"invalid {name} line {number}: {problem}", INCOMPLETE if cut else "see docs/import.md"
                ) from None
        except RecursionError:
            raise UsageError(f"invalid {name} line {number}: nested too deeply") from None
        yield number, entry


def _other(line: bytes, otherwise: Callable[[bytes], T] | None) -> T:
    if otherwise is None:
        raise ValueError
    return otherwise(line)


def compact(raw: Raw | bytes) -> bytes:
    """Return JSON on one line, without line breaks and blanks between its tokens; otherwise verbatim."""
    data = bytes(raw)
    return _SPACE.sub(rb"\1", data) if b"\n" in data else data


def timestamp(text: str, name: str) -> float:
    """Return seconds since 1970; raise a UsageError that names the format."""
    found = _TIMESTAMP.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"invalid {name}: {text[:40]!r} is not a date and time", "expected RFC 3339")
    *date, fraction, zone = found.groups()
    try:
        seconds = calendar.timegm((*map(int, date), 0, 0, 0))
    except (ValueError, OverflowError):
        raise UsageError(f"invalid {name}: {text[:40]!r} is not a valid date") from None
    offset = 0
    if zone and zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[-2:])
        offset = (hours * 60 + minutes) * (-60 if zone[0] == "-" else 60)
    return seconds - offset + (float(f"0.{fraction}") if fraction else 0.0)


def _lower(error: Exception) -> str:
    text = str(error)
    return text if text[:2].isupper() else text[:1].lower() + text[1:]  # "JSON is malformed" stays.
