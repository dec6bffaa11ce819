"""Write format 1 of a recording: bytes of a peer in, lines of the file out (docs/format.md).

A message that is strict JSON (`core.recording.strict_json`) goes into its line byte for byte, as `msg`; anything else
is text, `raw` or `b64`, so that every line of the file is strict JSON. The encoders keep the unfinished line of one
direction between two chunks. The reading half is `core.recording.decode`. Imports almost nothing, because
`mcpspy run` starts with it: `json` would take 10 ms, once per server at every start of a host.
"""

from __future__ import annotations

from binascii import b2a_base64
from codecs import getincrementaldecoder

from mcpspy.core.framing import NEWLINE, SMALL, BoundedLineFramer, OversizedData
from mcpspy.core.recording import strict_json
from mcpspy.core.recording.strict_json import SHORT


class JsonText(bytes):
    """A value that is JSON already."""


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from msgspec import Raw

    from mcpspy.core.framing import Pieces

    Scalar: TypeAlias = str | int | float | bool | JsonText | None
    Value: TypeAlias = Scalar | Sequence[Scalar] | Mapping[str, Scalar | Sequence[Scalar]]
    Lines: TypeAlias = bytes | Iterable[bytes | bytearray]
    """Whole lines of a recording: nearly always one piece, else buffers to write in this order."""

FORMAT = 1

CLIENT = "client"
SERVER = "server"
MCPSPY = "mcpspy"

_ESCAPES = {n: f"\\u{n:04x}" for n in (*range(32), 127)} | {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
}

OVERSIZED = "oversized"
"""The note of a line, body or event that is too large to record."""

MAX_BODY = 64 << 20
"""Default limit for them, in bytes."""

NO_LIMIT = 1 << 62

_CONTROLS = bytes(n for n in (*range(32), 127) if chr(n) not in "\t\n\r")

LARGE_TEXT = 1 << 20
"""Bytes above which a text with many control characters is written in Base64."""

_JSON_SPACE = b" \t\r"

LF = ord("\n")
"""An int, as in all such searches: for a `bytes` of length 1, CPython raises and drops a TypeError first."""


def json_object(fields: Mapping[str, Value]) -> JsonText:
    """Return an object as JSON."""
    return JsonText(b"{" + _members(fields) + b"}")


def header(fields: Mapping[str, Value]) -> bytes:
    """Return line 1 of a recording, `{"mcpspy":1,…}` and LF."""
    return b'{"mcpspy":%d,' % FORMAT + _members(fields) + b"}\n"


def note(at: float, kind: str, fields: Mapping[str, Value]) -> bytes:
    """Return the line of a note. `at` is in seconds since `started`."""
    more = b"," + _members(fields) if fields else b""
    return b'{"t":%.6f,"note":%b' % (at, _string(kind)) + more + b"}\n"


def oversized(
    at: float, side: str, fields: Mapping[str, Value], size: int, sha256: str, *, lacks: str = ""
) -> bytes:
    """Return the note of a line, body or event that is too large to record; `lacks` is what never arrived of its end.

    It does not contain its beginning: a secret that is cut off cannot be recognised.
    """
    more: dict[str, Value] = {"torn": True, "lacks": lacks} if lacks else {}
    return note(at, OVERSIZED, {**fields, "from": side, "size": size, "sha256": sha256, **more})


def frame_prefix(side: str, fields: Mapping[str, Value]) -> bytes:
    """Return the start of a frame's line, before its payload, with `%.6f` for its time."""
    more = _members(fields).replace(b"%", b"%%") + b"," if fields else b""
    return b'{"t":%%.6f,"from":"%b",' % side.encode() + more


def plain(head: bytes, run: bytes) -> bytes | None:
    """Return the lines for a run of ordinary messages, or None if one is not ordinary.

    `run` is whole lines, `head` the start of each line of the file. Ordinary means `{` to `}`, valid UTF-8 and
    strict JSON. One replace writes all envelopes; one count checks that each is between `}` and `{`.
    """
    if not (run.startswith(b"{") and run.endswith(b"}\n") and (run.isascii() or is_utf8([run]))):
        return None
    body = run[:-1]
    count = 1
    if LF in body:
        # Count after the replace, not before: a long needle is found ten times as fast as `}LF{`.
        between = b"}\n" + head
        lines = body.replace(b"\n", between)
        count = lines.count(b"}" + between + b"{")
        if count * (len(between) - 1) != len(lines) - len(body):
            return None
        count += 1
        body = lines
    return head + body + b"}\n" if strict_json.are_strict(run, count) else None


def splice(
    prefix: bytes, pieces: Pieces, *, torn: bool = False, body: bool = False
) -> Iterator[bytes | bytearray]:
    """Yield the buffers of one message's line of the file, whatever the message is.

    `prefix` is `{"t":…,"from":…,`. `pieces` is consumed while the buffers are taken, so that 100 MB of
    garbage is never in memory twice. `torn`: the message's end never arrived. `body`: it is not a line of a
    stream; it may lack the final LF, and may contain one, which would end the line of the file.
    """
    end = _body_end(pieces) if body and not torn else _line_end(pieces, torn=torn)
    text = is_utf8(pieces)
    why = _reason(pieces, body=body) if text else "not UTF-8"
    if why is None:
        yield prefix + end + b'"msg":'
        yield from pieces
        yield b"}\n"
    else:
        yield from splice_raw(prefix + end, pieces, why, is_text=text)


def splice_raw(
    prefix: bytes, pieces: Pieces, why: str, *, is_text: bool = True
) -> Iterator[bytes | bytearray]:
    """Yield the buffers of a line whose payload is not a message: `raw`, or `b64` if that is shorter or not UTF-8."""
    if not is_text or (control := _control_bytes(pieces)):  # As text, they would take six bytes each.
        yield prefix + b'"why":%b,"b64":"' % _string(control if is_text else why)
        yield from _base64(pieces)
    else:
        yield prefix + b'"why":%b,"raw":"' % _string(why)
        yield from _text(pieces)
    yield b'"}\n'


def _reason(pieces: Pieces, *, body: bool) -> str | None:
    """Return why a text is not written as a message; None if it is."""
    if body and any(LF in piece for piece in pieces):
        return "several lines"
    if not _has_brackets(pieces):
        return "not a JSON object or array" if any(pieces) else "blank line"
    return strict_json.flaw(pieces)


def splice_text(prefix: bytes, pieces: Pieces, *, torn: bool = False) -> Iterator[bytes]:
    end = _line_end(pieces, torn=torn)
    if is_utf8(pieces):
        yield prefix + end + b'"text":"'
        yield from _text(pieces)
    else:
        yield prefix + end + b'"b64":"'
        yield from _base64(pieces)
    yield b'"}\n'


def is_utf8(pieces: Sequence[bytes | bytearray]) -> bool:
    """Return True if the pieces, joined, are valid UTF-8."""
    if all(piece.isascii() for piece in pieces):
        return True
    decoder = getincrementaldecoder("utf-8")()
    try:
        for piece in pieces:
            decoder.decode(piece)
        decoder.decode(b"", True)
    except UnicodeDecodeError:
        return False
    return True


def _line_end(pieces: Pieces, *, torn: bool) -> bytes:
    """Remove a final CR; return the `eol` key, empty for LF alone."""
    if torn:
        return b'"eol":"",'
    if pieces and pieces[-1].endswith(b"\r"):
        pieces[-1] = pieces[-1][:-1]
        return b'"eol":"\\r\\n",'
    return b""


def _body_end(pieces: Pieces) -> bytes:
    """Remove a final line end and return its `eol` key; most bodies have none."""
    if not _cut_off(pieces, b"\n"):
        return b""
    return b'"eol":"\\r\\n",' if _cut_off(pieces, b"\r") else b'"eol":"\\n",'


def _cut_off(pieces: Pieces, last: bytes) -> bool:
    if not pieces or not pieces[-1].endswith(last):
        return False
    rest = pieces[-1][:-1]
    pieces[-1:] = [rest] if rest else []
    return True


def _has_brackets(pieces: Pieces) -> bool:
    """Return True if the outer bytes, without JSON's white space, are those of an object or array."""
    first = next((kept for piece in pieces if (kept := piece.lstrip(_JSON_SPACE))), b"")
    last = next((kept for piece in reversed(pieces) if (kept := piece.rstrip(_JSON_SPACE))), b"")
    return bool(first) and (first[0], last[-1]) in ((0x7B, 0x7D), (0x5B, 0x5D))


def _control_bytes(pieces: Pieces) -> str:
    """Return the reason why a text is not written as text; empty if it is."""
    if any(0 in piece for piece in pieces):
        return "NUL bytes"
    size = sum(map(len, pieces))
    if size < LARGE_TEXT:
        return ""
    count = size - sum(len(piece.translate(None, _CONTROLS)) for piece in pieces)
    return "control characters" if count > size // 8 else ""


def _consume(pieces: Pieces) -> Iterator[bytes | bytearray]:
    pieces.reverse()
    while pieces:
        yield pieces.pop()


def _base64(pieces: Pieces) -> Iterator[bytes]:
    rest = b""
    for piece in _consume(pieces):
        data = rest + piece
        cut = len(data) - len(data) % 3
        rest = data[cut:]
        yield b2a_base64(data[:cut], newline=False)
    yield b2a_base64(rest, newline=False)


def _text(pieces: Pieces) -> Iterator[bytes]:
    decoder = getincrementaldecoder("utf-8")()
    for piece in _consume(pieces):
        yield decoder.decode(piece).translate(_ESCAPES).encode()


def _members(fields: Mapping[str, Value]) -> bytes:
    return b",".join(_string(key) + b":" + _json(value) for key, value in fields.items())


def _json(value: Value) -> bytes:
    if isinstance(value, JsonText):
        return value
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, bool):
        return {None: b"null", True: b"true", False: b"false"}[value]
    if isinstance(value, int | float):
        return repr(value).encode() if value - value == 0 else b"null"  # JSON has no infinity.
    if isinstance(value, dict):
        return b"{" + _members(value) + b"}"
    return b"[" + b",".join(map(_json, value)) + b"]"


def _string(text: str) -> bytes:
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return b'"%b"' % text.encode()
    # An argument that is not UTF-8 has lone surrogates, which no JSON reader accepts.
    return b'"' + text.translate(_ESCAPES).encode("utf-8", "replace") + b'"'


class _LineEncoder:
    """The unfinished line of one direction, and the start of its lines in the file."""

    __slots__ = ("_fields", "_framer", "_limit", "_prefix", "_side", "on_unfinished")
    _splice: Callable[..., Iterable[bytes | bytearray]]

    def __init__(self, prefix: bytes, side: str, fields: Mapping[str, Value], limit: int) -> None:
        self._framer = BoundedLineFramer(limit)
        self._limit = limit or NO_LIMIT
        self._prefix = prefix
        self._side = side
        self._fields = fields
        self.on_unfinished: Callable[[], object] | None = None
        """Called with each chunk that ends inside a line."""

    @property
    def is_inside_line(self) -> bool:
        return bool(self._framer.pieces)

    @property
    def unfinished(self) -> int:
        """Return the number of bytes of the unfinished line."""
        return self._framer.held

    def close(self, at: float) -> Iterable[bytes | bytearray]:
        """Return the buffers for the incomplete line, if there is one; its last byte arrived `at`."""
        torn = self._ended(self._framer.close())
        return self._line_buffers(at, torn, torn=True) if torn else ()

    def _ended(self, pieces: Pieces) -> Pieces | OversizedData:
        """Return a line that the framer has just returned."""
        found = self._framer.oversized
        return pieces if found is None or not pieces else found

    def _line_buffers(
        self, at: float, line: Pieces | OversizedData, *, torn: bool = False
    ) -> Iterable[bytes | bytearray]:
        if isinstance(line, list):
            if len(line) != 1 or len(line[0]) <= self._limit:
                return self._splice(self._prefix % at, line, torn=torn)
            line = OversizedData(line)
        return (
            oversized(at, self._side, self._fields, line.size, line.sha256, lacks=NEWLINE if torn else ""),
        )


class FrameEncoder(_LineEncoder):
    """Messages of one side of a stdio session."""

    __slots__ = ("_decode", "_head", "_line")
    _splice = staticmethod(splice)

    def __init__(self, side: str, limit: int = 0) -> None:
        """Create an encoder. A line of more than `limit` bytes, without its LF, is not recorded (0: no limit)."""
        super().__init__(b'{"t":%%.6f,"from":"%b",' % side.encode(), side, {}, limit)
        self._head = self._prefix + b'"msg":'
        self._line = self._head + b"%b}\n"
        self._decode: Callable[[bytes], Raw] | None = None

    def feed(self, at: float, data: bytes) -> Lines:
        """Return what to append for the messages that end in `data`, `at` seconds from the start."""
        decode = self._decode
        if decode is None:
            # The fast path does not compare with the limit.
            self._decode = strict_json.decoder() if self._limit >= SMALL else None
        elif data[-2:] == b"}\n" and len(data) < SMALL and data[:1] == b"{" and not self._framer.pieces:
            message = data[:-1]
            if LF not in message and message.isascii():
                # The fast path: one whole message, which a round trip waits for.
                try:
                    decode(message)
                    if len(data) <= SHORT or not strict_json.is_deep(message):
                        return self._line % (at, message)
                except (ValueError, RecursionError):
                    pass
        ended, run = self._framer.split(data)
        if self.on_unfinished is not None and self._framer.pieces:
            self.on_unfinished()
        if len(ended) == 1 and self._framer.oversized is None:
            # A line that a chunk boundary cut in two: joining it is faster than separate buffers.
            ended, run = [], b"".join((ended[0], b"\n", run))
        if not ended:
            lines = self._plain(at, run) if run else b""
            if lines is not None:
                return lines
        return self._lines(at, self._ended(ended), run)

    def _plain(self, at: float, run: bytes) -> bytes | None:
        if len(run) > self._limit and max(map(len, run.split(b"\n"))) > self._limit:
            return None
        return plain(self._head % at, run)

    def _lines(self, at: float, ended: Pieces | OversizedData, run: bytes) -> Iterator[bytes | bytearray]:
        if ended:
            yield from self._line_buffers(at, ended)
        if run:
            lines = self._plain(at, run)
            if lines is not None:
                yield lines
                return
            for line in run[:-1].split(b"\n"):
                yield from self._line_buffers(at, [line])


class TextEncoder(_LineEncoder):
    """Lines of plain text, the server's stderr, as notes."""

    __slots__ = ()
    _splice = staticmethod(splice_text)

    def __init__(self, kind: str, limit: int = 0) -> None:
        super().__init__(b'{"t":%%.6f,"note":"%b",' % kind.encode(), SERVER, {"pipe": kind}, limit)

    def feed(self, at: float, data: bytes) -> Iterable[bytes | bytearray]:
        ended, run = self._framer.split(data)
        return self._lines(at, self._ended(ended), run) if ended or run else ()

    def _lines(self, at: float, ended: Pieces | OversizedData, run: bytes) -> Iterator[bytes | bytearray]:
        if ended:
            yield from self._line_buffers(at, ended)
        if run:
            for line in run[:-1].split(b"\n"):
                yield from self._line_buffers(at, [line])
