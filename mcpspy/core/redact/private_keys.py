"""Private keys that arrive line by line, on stderr or between messages on stdout.

Covers PEM (RFC 7468) and PGP (RFC 9580, 6.2). Each line is a separate entry, so no pattern sees a whole key. The state is kept for each stream: after the first line
of a key, its lines are redacted until its last one, or until `MAX_LINES`. A line between them that cannot belong to a
key is kept, and if it is the first one, the key was only mentioned.
"""

from __future__ import annotations

import re
from binascii import a2b_base64, b2a_base64

from mcpspy.core.redact.patterns import FIRST_PEM_LINE
from mcpspy.core.redact.placeholder import PLACEHOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.redact.walker import Mask

BEGIN = b"-----BEGIN"
END = b"-----END"

MAX_LINES = 200
"""Lines of a stream after which a key without a last line ends. The largest keys in use have about 150."""

_ENTRY = re.compile(
    rb'\{"t":[0-9.]+,(?:"note":"(?P<note>stderr)"|"from":"(?P<side>client|server)")'
    rb'(?:,"(?:eol|by|to|why)":"[^"]*")*,"(?P<key>text|raw|b64)":"(?P<payload>.*)"(?P<rest>[^"]*\})\n?\Z',
    re.DOTALL,
)
"""A line of the recording that is one line of a stream. A body of HTTP is a whole, and has other members."""

_AFTER_FIRST = re.compile(rb"(?:\s|\\[rnt]|(?:\x1b|\\u001b)\[[0-9;]*m)*")
_INSIDE = re.compile(
    rb"""(?x)
    .* (?<![A-Za-z0-9+/]) [A-Za-z0-9+/]{16} .*              # A run of Base64, also behind a prefix of a log.
    | (?:\\[rnt]|\s)* [A-Za-z0-9+/]{0,128} ={0,2} (?:\\[rnt]|\s)*   # A short or empty line, or a last one.
    | (?:\\[rnt]|\s)* =[A-Za-z0-9+/]{4} (?:\\[rnt]|\s)*      # The checksum of PGP.
    | (?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID) :\ .*
    """,
    re.DOTALL,
)
_BLANK = re.compile(rb"(?:\s|\\[rnt])*")


class PrivateKeyBlocks:
    """The unfinished keys of all streams of one recording."""

    def __init__(self, mask: Mask, report: Callable[[], None]) -> None:
        """Create the state. `report` is called for each redacted line."""
        self._mask = mask
        self._report = report
        self._open: dict[bytes, int] = {}
        """Lines of each unfinished key so far, by stream."""

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def concerns(self, line: bytes) -> bool:
        """Return whether a line of the recording may belong to an unfinished key, or begin one."""
        if BEGIN in line:
            return True
        return (
            b'"msg":' not in line[:96]
            and (entry := _ENTRY.match(line)) is not None
            and _key(entry) in self._open
        )

    def redacted(self, line: bytes) -> bytes:
        """Return a line of the recording without the part of a key that it is."""
        entry = _ENTRY.match(line)
        if entry is None:
            return line
        payload, is_binary = entry["payload"], entry["key"] == b"b64"
        text = a2b_base64(payload) if is_binary else payload
        kept = self._line(_key(entry), text)
        if kept == text:
            return line
        if is_binary:
            kept = b2a_base64(kept, newline=False)
        return line[: entry.start("payload")] + kept + line[entry.end("payload") :]

    def _line(self, name: bytes, text: bytes) -> bytes:
        """Return the payload of a line as it may be recorded."""
        if name not in self._open:
            return self._after_first(name, text)
        self._open[name] += 1
        lines = self._open[name]
        end = text.find(END)
        if end >= 0:
            del self._open[name]
            return self._masked(text[:end]) + self._after_first(name, text[end:])
        is_inside = PLACEHOLDER.fullmatch(text.strip()) is not None or _INSIDE.fullmatch(text) is not None
        if lines >= MAX_LINES or (lines == 1 and not is_inside):
            del self._open[name]
        if BEGIN in text:
            self._open.pop(name, None)
            return self._after_first(name, text)
        return self._masked(text) if is_inside else text

    def _after_first(self, name: bytes, text: bytes) -> bytes:
        """Begin a key if a line ends with the first line of one."""
        if any(_AFTER_FIRST.fullmatch(text, found.end()) for found in FIRST_PEM_LINE.finditer(text)):
            self._open[name] = 0
        return text

    def _masked(self, text: bytes) -> bytes:
        if _BLANK.fullmatch(text) or PLACEHOLDER.fullmatch(text.strip()):
            return text
        self._report()
        return self._mask(text)


def _key(entry: re.Match[bytes]) -> bytes:
    return entry["note"] or entry["side"] or b""
