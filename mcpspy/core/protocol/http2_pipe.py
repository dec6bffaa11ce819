"""HTTP/2 on the pipes of a stdio server: the frames of one direction as notes of a recording.

The working group on transports plans a stdio transport with HTTP over the pipes, for which HTTP/2 is under
investigation (modelcontextprotocol.io/development/roadmap); it has no specification yet. Such a session begins with the
connection preface of the client and the SETTINGS of the server (RFC 9113, 3.4), neither of which can begin a JSON-RPC
message. Its bytes are not lines: mcpspy forwards them unchanged, and records each frame as a note.

The headers are decoded with h2, which the extra `http2` installs. Without it, their names and values are missing: their bytes are never recorded, because a secret in Huffman code (RFC 7541, 5.2) cannot be recognised.
"""

from __future__ import annotations

import json
import re
from binascii import b2a_base64
from typing import Any

from mcpspy.core.protocol.http_headers import names_only, recorded_headers
from mcpspy.core.recording.encode import CLIENT, JsonText, note

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

KIND = "http2"
"""Kind of the notes."""

_SETTINGS = re.compile(rb"\x00[\x00-\x3f].\x04\x00\x00\x00\x00\x00", re.DOTALL)
_TYPES = (
    *("DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE"),
    *("PING", "GOAWAY", "WINDOW_UPDATE", "CONTINUATION"),
)
_HEAD = 9
"""Bytes before the payload of a frame: length, type, flags and stream."""

_DATA, _HEADERS, _PUSH, _CONTINUATION = 0, 1, 5, 9
_END_STREAM, _END_HEADERS, _PADDED, _PRIORITY = 1, 4, 8, 32


def begins(side: str, data: bytes) -> bool:
    """Return whether the first bytes of a side are those of HTTP/2. A client writes its preface at once."""
    return data.startswith(PREFACE[:18]) if side == CLIENT else _SETTINGS.match(data) is not None


class Http2Encoder:
    """The bytes of one side in, lines of a recording out, in the place of `FrameEncoder`."""

    is_inside_line = False
    on_unfinished = None

    def __init__(self, side: str, limit: int) -> None:
        """`limit` is the number of bytes of a payload above which it is not recorded (0: no limit)."""
        self._side = side
        self._limit = limit
        self._buffer = bytearray()
        self._is_first = side == CLIENT
        self._decoder = _decoder()
        self._block = b""
        """The header block so far, of frames without END_HEADERS."""

    @property
    def unfinished(self) -> int:
        """Return the number of bytes of the unfinished frame."""
        return len(self._buffer)

    def feed(self, at: float, data: bytes) -> bytes:
        """Return the notes of the frames that end in `data`, `at` seconds from the start."""
        buffer, lines = self._buffer, []
        buffer += data
        if self._is_first:
            if len(buffer) < len(PREFACE):
                return b""
            self._is_first = False
            del buffer[: len(PREFACE)]
            lines.append(note(at, KIND, {"from": self._side, "frame": "preface", "size": len(PREFACE)}))
        while len(buffer) >= _HEAD:
            end = _HEAD + int.from_bytes(buffer[:3])
            if len(buffer) < end:
                break
            head, payload = bytes(buffer[:_HEAD]), bytes(buffer[_HEAD:end])
            del buffer[:end]
            lines.append(note(at, KIND, {"from": self._side, **self._fields(head, payload)}))
        return b"".join(lines)

    def close(self, at: float) -> bytes:
        """Return the note of an incomplete frame."""
        size, self._buffer = len(self._buffer), bytearray()
        return note(at, KIND, {"from": self._side, "frame": "incomplete", "size": size}) if size else b""

    def _fields(self, head: bytes, payload: bytes) -> dict[str, Any]:
        kind, flags, stream = head[3], head[4], int.from_bytes(head[5:]) & 0x7FFFFFFF
        fields: dict[str, Any] = {
            "frame": _TYPES[kind] if kind < len(_TYPES) else f"type {kind}",
            "id": stream,
            "size": len(payload),
        }
        if kind in (_DATA, _HEADERS) and flags & _END_STREAM:
            fields["end"] = True
        if kind in (_DATA, _HEADERS, _PUSH) and flags & _PADDED and payload:
            payload = payload[1 : len(payload) - payload[0]]
        if kind == _DATA and payload and len(payload) <= (self._limit or len(payload)):
            fields |= _content(payload)
        elif kind in (_HEADERS, _PUSH, _CONTINUATION):
            skipped = 4 if kind == _PUSH else 5 if kind == _HEADERS and flags & _PRIORITY else 0
            fields |= self._headers(payload[skipped:], is_last=bool(flags & _END_HEADERS))
        return fields

    def _headers(self, block: bytes, *, is_last: bool) -> dict[str, Any]:
        """Return the headers that end with this part of a block, if they can be decoded."""
        self._block += block
        if not is_last or self._decoder is None:
            self._block = self._block if self._decoder is not None and not is_last else b""
            return {}
        block, self._block = self._block, b""
        try:
            pairs = [(str(name), str(value)) for name, value in self._decoder.decode(block)]
        except Exception as error:  # Any error ends the shared state of both sides (RFC 9113, 4.3).
            self._decoder = None
            return {"error": f"headers: {type(error).__name__}"}
        own = {name: names_only(value) for name, value in pairs if name.startswith(":")}
        headers = own | recorded_headers((name, value) for name, value in pairs if name not in own)
        return {"headers": JsonText(json.dumps(headers).encode())}


def _content(payload: bytes) -> dict[str, str]:
    try:
        return {"text": payload.decode()}
    except UnicodeDecodeError:
        return {"b64": b2a_base64(payload, newline=False).decode()}


def _decoder() -> Any:
    """Return a decoder of header blocks, that of a connection of h2; None if h2 is not installed."""
    try:
        from h2.connection import H2Connection  # type: ignore[import-untyped]
    except ImportError:
        return None
    return H2Connection().decoder
