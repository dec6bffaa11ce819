"""One entry and one line of a recording: format 1, reading half.

Owns what a line means: the header, a frame with the peer's own bytes, a note,
and a line that is none of these. Specification: docs/format.md; the writing
half is `core.recording.encode`. Refuses to skip what it cannot read: a damaged line is
an entry like any other, and only a file that is no recording is an error.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Callable
from typing import Any, TypeAlias

import orjson
from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from mcpspy.core.recording.encode import CLIENT, FORMAT, SERVER
from mcpspy.errors import UsageError


class Header(Struct, frozen=True, kw_only=True):
    """Line 1: what the session is. Unknown keys are ignored."""

    mcpspy: int
    """The number of the format."""
    id: str
    """Hex digits, the same in every part of a session."""
    started: str
    """Wall clock, UTC, ISO 8601 with milliseconds and `Z`."""
    transport: str = "stdio"
    command: list[str] | None = None
    upstream: str | None = None
    cwd: str | None = None
    name: str = ""
    pid: int | None = None
    """The process id of the mcpspy that wrote it."""
    part: int = 1
    redacted: bool | None = None
    """Whether secrets were kept out of it; None if it was made before that was done, with headers redacted only."""


class Frame(Struct, frozen=True, gc=False):
    """One message as it was on the wire, before anybody asks what it means."""

    at: float
    """Seconds since `started`, monotonic: when its last byte came."""
    side: str
    """Who sent it: `client` or `server`."""
    data: bytes
    """The peer's own bytes, without the line end."""
    stream: str | None = None
    """HTTP: the session it belongs to."""
    http: int | None = None
    """HTTP: number of the exchange that carried it."""
    eol: str = "\n"
    """What ended it: LF, CR LF, or nothing if the end never came."""
    event_id: str | None = None
    """Server-sent events: the `id` field. The same event may come again on another stream."""
    by: str | None = None
    """`mcpspy` if it said this in the name of `side`."""
    to: str | None = None
    """`mcpspy` if it did not go on to the peer."""

    @property
    def is_ours(self) -> bool:
        """Whether we said it, or it was for us: what does not fit then is nobody's mistake."""
        return self.by is not None or self.to is not None


class Note(Struct, frozen=True):
    """What nobody said: a stderr line, an exit code, a signal."""

    at: float
    kind: str
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of a stderr line or an error, whatever bytes it was made of."""
        if "b64" in self.fields:
            return _unbase64(str(self.fields["b64"])).decode("utf-8", "backslashreplace")
        return str(self.fields.get("text", ""))


class Damaged(Struct, frozen=True):
    """A line of the file that no entry can be read from."""

    data: bytes
    why: str

    at = 0.0


Entry: TypeAlias = Frame | Note | Damaged


class _Head(Struct):
    """A frame's line up to its payload."""

    t: float
    side: str = field(name="from")
    stream: str | None = None
    http: int | None = None
    eol: str = "\n"
    id: str | None = None
    by: str | None = None
    to: str | None = None


_read_header = Decoder(Header).decode
_read_head = Decoder(_Head).decode
_read_members = Decoder(dict[str, Raw]).decode

_SIDES = (CLIENT, SERVER)

_BEYOND_TIME = 1e12
"""Seconds that no session lasts, and that a float still counts."""

LADDER: dict[int, Callable[[bytes], bytes]] = {}
"""Format n → what turns a line of format n into one of n + 1. Empty until there is a format 2."""


def read_header(line: bytes) -> Header:
    """Return the header; raise UsageError if the file is not a recording this version reads."""
    try:
        start = orjson.loads(line)
    except ValueError:
        start = None
    if not isinstance(start, dict) or not isinstance(number := start.get("mcpspy"), int):
        raise UsageError("not an mcpspy recording", 'its first line should begin with {"mcpspy":1')
    if number > FORMAT:
        raise UsageError(
            f"recorded by a newer mcpspy (format {number}, this one reads up to {FORMAT})",
            "upgrade mcpspy and try again",
        )
    if number != FORMAT and number not in LADDER:
        raise UsageError(f"format {number} is none that mcpspy ever wrote", "see docs/format.md")
    try:
        return _read_header(climb(line, number))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"its header is not that of a recording: {error}", "see docs/format.md") from None


def climb(line: bytes, number: int) -> bytes:
    """Return the line of format `number` as one of today's format."""
    for step in range(number, FORMAT):
        line = LADDER[step](line)
    return line


def read_entry(line: bytes) -> Entry:
    """Return the entry of one line (its LF left out). Never raises.

    `msg` is the last key of its line, and no JSON string can hold the bytes
    `,"msg":` with their quotes unescaped: so the payload is a slice, exact
    even where it is not valid JSON. It ends in a bracket, by the writer's gate;
    if not, somebody put a key behind it.
    """
    before, found, rest = line.partition(b',"msg":')
    if found and rest.endswith(b"}"):
        try:
            head = _read_head(before + b"}")
        except (ValueError, RecursionError):
            return _read_whole(line)
        if not _ends_in_bracket(rest) and isinstance(whole := _read_whole(line), Frame):
            return whole
        if head.side in _SIDES:
            return Frame(
                head.t, head.side, rest[:-1], head.stream, head.http, head.eol, head.id, head.by, head.to
            )
    return _read_whole(line)


def _read_whole(line: bytes) -> Entry:
    """Return the entry of a line that is JSON throughout: a note, `raw` or `b64`, or a frame somebody re-wrote."""
    try:
        whole = orjson.loads(line)
    except ValueError as error:
        try:
            whole = json.loads(line.decode())  # NaN and lone surrogates, which Python's own `json` writes.
        except (ValueError, RecursionError):
            return Damaged(line, f"not JSON: {error}")
    if not isinstance(whole, dict):
        return Damaged(line, "not an entry")
    at = whole.pop("t", None)
    if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) < _BEYOND_TIME:
        return Damaged(line, "an entry without its time")
    kind = whole.pop("note", None)
    if isinstance(kind, str):
        return Note(float(at), kind, whole)
    try:
        data = _payload(line, whole)
    except RecursionError:
        return Damaged(line, "nested too deep")
    side = whole.get("from")
    if data is None or side not in _SIDES:
        return Damaged(line, "neither a frame nor a note")
    stream, http, eol = whole.get("stream"), whole.get("http"), whole.get("eol", "\n")
    event_id, by, to = whole.get("id"), whole.get("by"), whole.get("to")
    return Frame(
        float(at),
        side,
        data,
        stream if isinstance(stream, str) else None,
        http if isinstance(http, int) else None,
        eol if isinstance(eol, str) else "\n",
        event_id if isinstance(event_id, str) else None,
        by if isinstance(by, str) else None,
        to if isinstance(to, str) else None,
    )


def _ends_in_bracket(rest: bytes) -> bool:
    return rest.endswith((b"}}", b"]}")) or rest[:-1].rstrip(b" \t\r").endswith((b"}", b"]"))


def _payload(line: bytes, whole: dict[str, Any]) -> bytes | None:
    if isinstance(raw := whole.get("raw"), str):
        return raw.encode("utf-8", "surrogatepass")
    if isinstance(encoded := whole.get("b64"), str):
        return _unbase64(encoded)
    if "msg" not in whole:
        return None
    try:
        return bytes(_read_members(line)["msg"])  # As it stands there: a float would round a long integer.
    except ValueError:
        return json.dumps(whole["msg"]).encode()


def _unbase64(text: str) -> bytes:
    try:
        return a2b_base64(text)
    except ValueError:
        return text.encode("utf-8", "surrogatepass")
