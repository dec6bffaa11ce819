"""Check that a message is strict JSON (RFC 8259). Only such a message is written as `msg`.

msgspec checks the grammar, at more than 1 GB/s. It checks neither UTF-8, which the caller does, nor (on Python 3.12
and newer) the depth. Importing it takes 25 ms, so the first messages of `mcpspy run` are read with the scanner of
the standard library's `json`, until `load` is called or the messages are large.
"""

from __future__ import annotations

from itertools import accumulate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from msgspec import Raw

    Piece = bytes | bytearray

MAX_DEPTH = 120
"""Levels of nesting that readers of the file accept; DuckDB accepts 128, jq 1.6 as many objects."""

SHORT = 2 * MAX_DEPTH
"""Bytes of a text that cannot be nested deeper."""

FLAT = 5 * MAX_DEPTH
"""Bytes of a text without arrays that cannot be nested deeper: an object takes 5 bytes, `{"":}`, and an array 2."""

OPENER = ord("[")

WINDOW = 1 << 12
"""Bytes of a run of short lines in which brackets are counted at once."""

EARLY = 1 << 18
"""Bytes that are read with the scanner of `json`, ten times as slow, before msgspec is imported."""

SPACE = b" \t\r\n"
_FIRST = {ord("{"): b'"}', ord("["): b'"{[]-0123456789tfn'}
"""Bracket → the bytes that may follow it."""

_NOT_MARKS = bytes(set(range(256)) - set(b'[]{}"'))
_AS_ARRAYS = bytes.maketrans(b"{}", b"[]")
_STEPS = {ord("["): 1, ord("]"): -1}
_LEVELS = 8
"""Innermost levels that are removed by replacing pairs of brackets, which is faster than counting them."""

_SURROGATE = b"\\ud", b"\\uD"

_CONTROLS = [bytes((n,)) for n in range(32)]


class _Parsers:
    """The decoders of msgspec, once it is imported."""

    def __init__(self) -> None:
        self.decode: Callable[[Piece], Raw] | None = None
        self.decode_lines: Callable[[Piece], list[Raw]] | None = None
        self.find_controls: list[Callable[[Piece], list[tuple[int, int, int]]]] = []
        self.scan: Callable[[str, int], tuple[object, int]] | None = None
        self.early = EARLY

    def load(self) -> None:
        if self.decode is None:
            from msgspec import Raw
            from msgspec.json import Decoder

            decoder = Decoder(Raw)
            self.decode, self.decode_lines = decoder.decode, decoder.decode_lines

    def has_controls(self, text: Piece) -> bool:
        """Return True if a text has a control character. The search is vectorized, like that for secrets."""
        if not self.find_controls:
            from ahocorasick_rs import BytesAhoCorasick, MatchKind

            self.find_controls = [  # A search for 17 bytes would not be vectorized.
                BytesAhoCorasick(part, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes
                for part in (_CONTROLS[:16], _CONTROLS[16:])
            ]
        # The first bytes of binary data nearly always have one; a list of all of them would be long.
        return any(find(part) for part in (text[:SHORT], text) for find in self.find_controls)

    def is_early(self, text: Piece) -> bool:
        """Return True if a text is to be read without msgspec."""
        if self.decode is None:
            if len(text) <= self.early and not any(map(text.__contains__, _SURROGATE)):
                self.early -= len(text)
                return True
            self.load()
        return False


_parsers = _Parsers()


def load() -> None:
    """Import msgspec, at a time when no message waits for it."""
    _parsers.load()


def decoder() -> Callable[[Piece], Raw] | None:
    """Return a function that raises ValueError or RecursionError unless a text is JSON; None before `load`.

    It checks neither UTF-8 nor the depth, which matters for texts that are not `SHORT`.
    """
    return _parsers.decode


def flaw(pieces: Sequence[Piece]) -> str | None:
    """Return why a text is not strict JSON, for people; None if it is.

    The text begins and ends with brackets and is valid UTF-8; `pieces` are its parts.
    """
    first = b"".join([piece[:64] for piece in pieces[:2]])[:64].lstrip(SPACE)
    follows = first[1:].lstrip(SPACE)[:1]
    if follows and follows not in _FIRST.get(first[0], follows):
        # Most lines that programs print: `{ a: 1 }` of a Node server, `[INFO] …]` of a logger.
        return f"not strict JSON: {'a key without quotes' if first[:1] == b'{' else 'no value after ['}"
    if len(pieces) == 1:
        return _flaw(pieces[0])
    if sum(map(len, pieces)) > EARLY:
        _parsers.load()
    if _parsers.decode is not None and _flaw(b"".join(map(_shortened, pieces))) is None:
        return None
    return _flaw(b"".join(pieces))


def are_strict(lines: Piece, count: int) -> bool:
    """Return True if all lines are strict JSON. Each is valid UTF-8, begins with `{` and ends with `}`."""
    if _parsers.is_early(lines):
        return not any(map(_early_flaw, lines.split(b"\n")[:count]))
    assert _parsers.decode_lines is not None
    try:
        values = _parsers.decode_lines(lines)
    except (ValueError, RecursionError):
        return False
    # No value spans two lines, because no JSON has `}`, LF, `{`; but a line may have several.
    if len(values) != count:
        return False
    return _are_flat(lines, max(map(len, values))) or not any(map(is_deep, lines.split(b"\n")))


def _are_flat(lines: Piece, longest: int) -> bool:
    """Return True if the lines, of which the longest has `longest` bytes, are too short for deep nesting."""
    if longest > FLAT or ord("[") not in lines:
        return longest <= FLAT
    # Each array in place of an object makes room for 3 bytes. A line lies in at most two windows.
    most = (FLAT - longest) // 6
    return all(lines.count(b"[", at, at + WINDOW) <= most for at in range(0, len(lines), WINDOW))


def _flaw(text: Piece) -> str | None:
    if _parsers.is_early(text):
        return _early_flaw(text)
    assert _parsers.decode is not None
    try:
        _parsers.decode(text)
    except ValueError as error:
        reason = str(error).removeprefix("JSON is malformed: ").replace("'\"'", "a quote")
        if reason == "Input data was truncated":
            reason = "an unfinished value, or a lone surrogate"
        return f"not strict JSON: {reason}"
    except RecursionError:
        return _DEEP
    return _DEEP if is_deep(text) else None


_DEEP = f"nested deeper than {MAX_DEPTH} levels"


def _early_flaw(text: Piece) -> str | None:
    """Return why a text without escapes of surrogates, which the scanner accepts, is not strict JSON."""
    try:
        characters = text.decode().strip(" \t\r\n")
        if _parsers.scan is None:
            _parsers.scan = _scanner()
        is_whole = _parsers.scan(characters, 0)[1] == len(characters)
    except RecursionError:
        return _DEEP
    except (ValueError, StopIteration, SystemError):
        is_whole = False  # SystemError: the scanner of Python 3.11 finds no class for its error if `json` is not imported.
    if not is_whole:
        return "not strict JSON"
    return _DEEP if is_deep(text) else None


def _scanner() -> Callable[[str, int], tuple[object, int]]:
    from _json import make_scanner

    def reject(constant: str) -> None:
        raise ValueError(constant)

    class Options:
        strict = True
        object_hook = object_pairs_hook = array_hook = None
        parse_int = parse_float = len
        parse_constant = reject

    options: Any = Options
    return make_scanner(options)


def _shortened(piece: Piece) -> Piece:
    """Return a short piece that makes a text JSON, of the same depth, only if this one does.

    What could be the content of a string must be inside one if an `x` in its place is valid. So 100 MB of text are
    not joined.
    """
    assert _parsers.decode is not None
    if len(piece) < SHORT:
        return piece
    if ord('"') not in piece and ord("\\") not in piece:
        # msgspec takes three times as long. The first bytes may end an escape.
        return piece if _parsers.has_controls(piece) else bytes(piece[:6]) + b"x"
    start, end = piece.find(b" ") + 1, piece.rfind(b" ")  # Not inside an escape.
    if end < start + SHORT:
        return piece
    try:
        _parsers.decode(b"".join((b'"', piece[start:end], b'"')))
    except ValueError:
        return piece
    return b"".join((piece[:start], b"x", piece[end:]))


def is_deep(text: Piece) -> bool:
    """Return True if JSON is nested deeper than `MAX_DEPTH` levels; also for several lines of it."""
    size = len(text)
    # Most messages have no array, and a search for one byte is much faster than a count.
    if size <= FLAT and (OPENER not in text or size + 3 * text.count(b"[") <= FLAT):
        return False
    if not _has_many_openers(text):
        return False
    if ord("\\") in text:
        # Nearly always a string with brackets: the content of a file.
        if _parsers.decode_lines is not None:
            short = b"".join([_shortened(text[at : at + WINDOW]) for at in range(0, size, WINDOW)])
            try:
                _parsers.decode_lines(short)
                text = short
            except (ValueError, RecursionError):  # What was taken for the content of a string is not.
                pass
            if not _has_many_openers(text):
                return False
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = text.translate(_AS_ARRAYS, _NOT_MARKS)
    if 2 * marks.count(b'""') == marks.count(b'"'):
        marks = marks.translate(None, b'"')
    else:  # A string contains brackets.
        marks = b"".join(marks.split(b'"')[::2])
    for _ in range(_LEVELS):
        marks = marks.replace(b"[]", b"")
    return _LEVELS + max(accumulate(map(_STEPS.__getitem__, marks)), default=0) > MAX_DEPTH


def _has_many_openers(text: Piece) -> bool:
    openers = 0
    for opener in b"[{":
        at = text.find(opener)
        while at >= 0 and openers <= MAX_DEPTH:
            openers += 1
            at = text.find(opener, at + 1)
    return openers > MAX_DEPTH
