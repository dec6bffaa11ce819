"""Read format 1 of a recording: the header, and the entry of each line (docs/format.md).

A damaged line becomes an entry like any other; only a file that is not a recording is an error.
The writing half is `core.recording.encode`.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from typing import Any, TypeAlias

import orjson
from msgspec import Raw, Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from mcpspy.core.recording import strict_json
from mcpspy.core.recording.encode import CLIENT, FORMAT, SERVER
from mcpspy.core.recording.origin import DEMO, HOST, IMPORT
from mcpspy.errors import UsageError

strict_json.load()  # msgspec is imported here anyway.

_DEMO_SERVER = "mcpspy.ui.demo.weather"
"""The last argument of the server's command in recordings of `mcpspy demo`."""


class ProcessFields(Struct, frozen=True):
    """The process of a host: the key `parent` of a header, and `client` of an HTTP note."""

    pid: int
    program: str = ""
    started: str | None = None
    """Wall clock, UTC; None if it is not known."""


class Header(Struct, frozen=True, kw_only=True):
    """Line 1: the properties of the session. Unknown keys are ignored."""

    mcpspy: int
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
    parent: ProcessFields | None = None
    """The process that started mcpspy, without shells and launchers; None if it is not known, or not a host's."""
    part: int = 1
    origin: str = HOST
    """The program that made the recording, one of `core.recording.origin.ORIGINS`; a newer mcpspy may have others."""
    redacted: bool | None = None
    """None in recordings made before redaction existed; those have only their HTTP headers redacted."""


class Frame(Struct, frozen=True, gc=False):
    """One message as it was on the wire, not parsed."""

    at: float
    """Arrival of its last byte: seconds since `started`, monotonic."""
    side: str
    """Sender: `client` or `server`."""
    data: bytes
    """The peer's own bytes, without the line end."""
    stream: str | None = None
    """HTTP: the session it belongs to."""
    http: int | None = None
    """HTTP: number of the exchange that carried it."""
    eol: str = "\n"
    """Its line end: LF, CR LF, or empty if the end never arrived."""
    event_id: str | None = None
    """Server-sent events: the `id` field. The same event may be repeated on another stream."""
    by: str | None = None
    """`mcpspy` if mcpspy sent it in the name of `side`."""
    to: str | None = None
    """`mcpspy` if it was not forwarded to the peer."""
    lacks: str | None = None
    """HTTP: what never arrived of the end of the body or event that carried it: then `eol` is empty."""
    size: int | None = None
    """HTTP: the bytes that arrived of such a body, or of the data of such an event."""
    event_end: str | None = None
    """Server-sent events: the ends of its last line and of its blank line, if they are not those of the event before."""
    has_data_space: bool = True
    """Server-sent events: False if no space follows the colon after `data`."""

    @property
    def is_ours(self) -> bool:
        """Return True if mcpspy sent or received it: protocol issues in it are not the peers'."""
        return self.by is not None or self.to is not None


class Note(Struct, frozen=True):
    """An event that is not a message: a stderr line, an exit code, a signal."""

    at: float
    kind: str
    fields: dict[str, Any]

    @property
    def text(self) -> str:
        """Text of a stderr line or an error; invalid UTF-8 is escaped."""
        if "b64" in self.fields:
            return _unbase64(str(self.fields["b64"])).decode("utf-8", "backslashreplace")
        return str(self.fields.get("text", ""))

    @property
    def is_end(self) -> bool:
        """True for the last entry: the exit of a server that left its pipes to no other process, or the end after it."""
        return self.kind == "end" or (self.kind == "exit" and not self.fields.get("left"))


class Damaged(Struct, frozen=True):
    """A line of the file that is not a valid entry."""

    data: bytes
    why: str

    at = 0.0
    kind = "damaged"


Entry: TypeAlias = Frame | Note | Damaged


class _FrameHead(Struct):
    """The keys of a frame's line before its payload."""

    t: float
    side: str = field(name="from")
    stream: str | None = None
    http: int | None = None
    eol: str = "\n"
    id: str | None = None
    by: str | None = None
    to: str | None = None
    lacks: str | None = None
    size: int | None = None
    event_end: str | None = None
    data_space: bool = True


_read_header = Decoder(Header).decode
_read_head = Decoder(_FrameHead).decode
_read_members = Decoder(dict[str, Raw]).decode

_SIDES = (CLIENT, SERVER)

_MAX_SECONDS = 1e12
"""Longer than any session, and still exact to the microsecond as a float."""


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
    if number != FORMAT:
        raise UsageError(f"unknown format {number}: no version of mcpspy wrote it", "see docs/format.md")
    try:
        header = _read_header(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"invalid header: {error}", "see docs/format.md") from None
    return header if "origin" in start else _with_origin(header, is_imported="imported" in start)


def _with_origin(header: Header, *, is_imported: bool) -> Header:
    """Return the header of an older recording with the origin that its other keys show."""
    if is_imported:
        return replace(header, origin=IMPORT)
    return replace(header, origin=DEMO) if header.command and header.command[-1] == _DEMO_SERVER else header


def read_entry(line: bytes) -> Entry:
    """Return the entry of one line (without its LF). Never raises.

    `msg` is the last key of its line, and no JSON string can contain the bytes `,"msg":` with unescaped
    quotes: so the payload is a slice, exact even if it is not valid JSON, as in recordings of older versions.
    It ends in a bracket; if it does not, another program added a key after it.
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
                head.t,
                head.side,
                rest[:-1],
                head.stream,
                head.http,
                head.eol,
                head.id,
                head.by,
                head.to,
                head.lacks,
                head.size,
                head.event_end,
                head.data_space,
            )
    return _read_whole(line)


def _read_whole(line: bytes) -> Entry:
    """Return the entry of a line that is JSON throughout: a note, `raw` or `b64`, or a rewritten frame."""
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
    if isinstance(at, bool) or not isinstance(at, int | float) or not abs(at) < _MAX_SECONDS:
        return Damaged(line, "an entry without a time")
    kind = whole.pop("note", None)
    if isinstance(kind, str):
        return Note(float(at), kind, whole)
    try:
        data = _payload(line, whole)
    except RecursionError:
        return Damaged(line, "nested too deeply")
    side = whole.get("from")
    if data is None or side not in _SIDES:
        return Damaged(line, "neither a frame nor a note")
    http, size = (value if isinstance(value := whole.get(key), int) else None for key in ("http", "size"))
    stream, eol, event_id, by, to, lacks, event_end = (
        value if isinstance(value := whole.get(key), str) else None
        for key in ("stream", "eol", "id", "by", "to", "lacks", "event_end")
    )
    end, has_space = "\n" if eol is None else eol, whole.get("data_space") is not False
    return Frame(
        float(at), side, data, stream, http, end, event_id, by, to, lacks, size, event_end, has_space
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
        return bytes(_read_members(line)["msg"])  # The original text: a float would round a long integer.
    except ValueError:
        return json.dumps(whole["msg"]).encode()


def _unbase64(text: str) -> bytes:
    try:
        return a2b_base64(text)
    except ValueError:
        return text.encode("utf-8", "surrogatepass")
