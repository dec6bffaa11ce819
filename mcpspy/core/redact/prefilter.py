"""A fast test for bytes that may contain a secret.

Every known secret contains a literal: the name of its key in one of its spellings or a context
(`core.redact.names`, from which the rules are made too), the start of a token, an escape that could hide
any of them. No literal means no secret; a hit means that the message must be read. One DFA, whose speed does
not depend on the number of literals, finds them all in the lower-case chunk. In a long chunk it searches only
around fragments, parts that literals share: searches for 64 of them at a time are vectorized, and even
several are faster than the DFA. Names beyond ASCII have another search, for texts beyond ASCII: their
bytes would double the table of the DFA. A session without secrets
imports only this module of redaction, the names and the literals.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache, cached_property

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from mcpspy.core.redact.literals import BASE64
from mcpspy.core.redact.literals import FRAGMENTS as FORMAT_FRAGMENTS
from mcpspy.core.redact.literals import LITERALS as FORMATS
from mcpspy.core.redact.names import ESCAPED, FOREIGN_LITERALS, FRAGMENTS, NAMED, PLACED, QUERIED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Hit = tuple[int, bytes]
    """Its position, and the literal."""

    Matches = list[tuple[int, int, int]]
    """Index of the literal, start, end."""

    Search = Callable[..., Matches]

SHAPES = (b".eyJ", b"-----BEGIN", b"earer ", b"asic ")
"""Parts of tokens that are not in docs/token_formats.toml; case counts."""

ESCAPE = b"\\u00"
"""An escape of JSON, which may hide a letter of the above."""

B64 = b'"b64":"'
"""A line of the recording whose payload is not text."""

URL_MEMBERS = (b'"path":"', b'"location":"')
"""Members of the recording whose value is a URL, in which percent-encoding may hide a secret."""

OF_NAMES = (*NAMED, *QUERIED, *PLACED, *ESCAPED, *SHAPES, ESCAPE, B64, *URL_MEMBERS)

LITERALS = (*OF_NAMES, *FORMATS, *BASE64)
"""All literals of ASCII; a hit is one of them or of `FOREIGN_LITERALS`."""

INSENSITIVE = len(NAMED) + len(QUERIED) + len(PLACED) + len(ESCAPED)
"""Number of them that are hits in any case of letters."""

AT = b"@"
"""The end of a URL's user and password: not a literal, but a hit."""

AT_SIGN = ord(AT)
"""An int: for a `bytes` of length 1, CPython raises and drops a TypeError before it searches."""

CUSTOM = b""
"""The literal of all hits of custom rules."""

URL = 256
"""Bytes searched backwards from an `@` for the `//` of a URL with a password."""

OVERLAP = 128
"""Bytes of two adjacent buffers that are searched together; no built-in literal is longer."""


EARLY = 1 << 15
"""Bytes after which the DFA is built: about a hundred messages."""

LONG = 1 << 13
"""Bytes from which it is faster to search for fragments first."""

VECTORIZED = 64
"""Most literals of a vectorized search."""

DENSE = 256
"""Bytes per match of a fragment, below which the whole text is searched for literals."""

PROGRESS = (b"progress", b"nextpage")
"""Text in front of `token` in names of the protocol, which are not secret."""

MCP = b"mcp-"
"""Text in front of `session-id` in a header of the protocol, which correlates the exchanges of a session."""


class Prefilter:
    def __init__(self, more: Iterable[bytes] = ()) -> None:
        custom = sorted({literal for literal in more if literal})
        self.overlap = max(OVERLAP, *map(len, custom)) if custom else OVERLAP
        self._custom = custom
        self._all = [literal.lower() for literal in (*LITERALS, *custom)]
        self._longest = max(map(len, self._all))

    @cached_property
    def exact(self) -> Search:
        """The search for all literals in lower-case text.

        The first `EARLY` bytes are searched by an NFA, which takes twice as long per byte and a tenth to build: most
        of what redaction adds to the start of a server was the DFA, and a short session never needs it.
        """
        early = self._search(Implementation.NoncontiguousNFA)
        left = EARLY

        def search(data: bytes, *, overlapping: bool) -> Matches:
            nonlocal left
            left -= len(data)
            if left >= 0:
                return early(data, overlapping=overlapping)
            self.__dict__["exact"] = self._search(Implementation.DFA)
            return self.exact(data, overlapping=overlapping)

        return search

    def _search(self, implementation: Implementation) -> Search:
        return BytesAhoCorasick(
            self._all, matchkind=MatchKind.Standard, implementation=implementation
        ).find_matches_as_indexes

    @cached_property
    def _fragments(self) -> tuple[list[Search], list[Search]]:
        """The searches for fragments in lower-case text, and in the text as it is; built for the first long one."""
        in_lower = [literal.lower() for literal in (*OF_NAMES, *self._custom)]
        return _searches(_fragments(in_lower)), _searches([*FORMAT_FRAGMENTS])

    def find(self, data: bytes) -> Matches:
        """Return the matches of literals in any case of letters, in order, also overlapping ones."""
        lower = data.lower()
        in_lower, as_is = self._fragments
        found: Matches = []
        for search in in_lower:
            found += search(lower)
        for search in as_is:
            found += search(data)
        if not found:
            return found
        if len(found) * DENSE > len(data):
            return self.exact(lower, overlapping=True)
        return self._around(lower, sorted([start for _, start, _ in found]))

    def _around(self, lower: bytes, places: list[int]) -> Matches:
        """Return the matches of literals around places: one search of these parts, which are joined."""
        longest = self._longest
        parts: list[bytes] = []
        starts: list[int] = []
        shifts: list[int] = []
        length = end = 0
        for place in places:
            start = max(end, place - longest)
            if end and place - longest <= end:
                # The part begins where the one before it ends: they are one.
                parts.pop()
                length = starts.pop()
                start = length + shifts.pop()
            end = min(place + longest, len(lower))
            parts.append(lower[start:end])
            starts.append(length)
            shifts.append(start - length)
            length += end - start + 1
        matches = []
        for number, start, stop in self.exact(b"\0".join(parts), overlapping=True):
            shift = shifts[bisect_right(starts, start) - 1]
            matches.append((number, start + shift, stop + shift))
        return matches

    def hits(self, data: bytes) -> list[Hit]:
        """Return the hits in order; nearly always none."""
        # Most data is short: without a call of `find`.
        matches = self.exact(data.lower(), overlapping=True) if len(data) < LONG else self.find(data)
        return self.ordered(data, matches) if matches or AT_SIGN in data or not data.isascii() else []

    def ordered(self, data: bytes, matches: Matches) -> list[Hit]:
        """Return the hits of a text, given the matches of `self.find`."""
        found: list[Hit] = []
        for number, start, end in matches:
            if number >= len(LITERALS):
                found.append((start, CUSTOM))
                continue
            literal = LITERALS[number]
            if number >= INSENSITIVE:
                if data[start:end] == literal and (literal not in URL_MEMBERS or _is_encoded(data, end)):
                    found.append((start, literal))
            elif literal == b"token" and data[start - 8 : start].lower() in PROGRESS:
                continue
            elif literal != b"session-id" or data[start - 4 : start].lower() != MCP:
                found.append((start, literal))
        if AT_SIGN in data:
            found += [(at, AT) for at in _passwords(data)]
        if not data.isascii():
            found += [(start, FOREIGN_LITERALS[number]) for number, start, _ in _foreign()(data.lower())]
        found.sort()
        return found

    def is_hit(self, buffers: Iterable[bytes | bytearray]) -> bool:
        """Return True if the buffers together contain a hit, without joining them."""
        tail = b""
        for buffer in buffers:
            data = bytes(buffer)
            if self.hits(data) or (tail and self.hits(tail + data[: self.overlap])):
                return True
            tail = (tail + data)[-self.overlap :] if len(data) < self.overlap else data[-self.overlap :]
        return False


@cache
def builtin_prefilter() -> Prefilter:
    """Return the prefilter without custom literals, which all recordings share."""
    return Prefilter()


@cache
def _foreign() -> Search:
    """Return the search for names beyond ASCII in lower-case text; none of them is a part of another."""
    return BytesAhoCorasick(FOREIGN_LITERALS, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes


def _fragments(literals: list[bytes]) -> list[bytes]:
    """Return fragments of which every literal contains one; each literal without a fragment is its own."""
    shared = [fragment.encode() for fragment in FRAGMENTS]
    return [*shared, *{literal for literal in literals if not any(map(literal.__contains__, shared))}]


def _searches(fragments: list[bytes]) -> list[Search]:
    """Return vectorized searches, by length: a short fragment would slow down the search for longer ones."""
    groups = [sorted(part for part in fragments if max(2, min(len(part), 4)) == size) for size in (4, 3, 2)]
    return [
        BytesAhoCorasick(
            group[at : at + VECTORIZED], matchkind=MatchKind.LeftmostFirst
        ).find_matches_as_indexes
        for group in groups
        for at in range(0, len(group), VECTORIZED)
    ]


def _is_encoded(data: bytes, start: int) -> bool:
    """Return False if the string that starts there contains no percent-encoding."""
    end = data.find(b'"', start)
    return end < 0 or data.find(b"%", start, end) >= 0  # The rest of a string may be in the next buffer.


def _passwords(data: bytes) -> list[int]:
    """Return the positions of `@` that end the user part of a URL; `/` may be escaped."""
    places = []
    at = data.find(AT)
    while at >= 0:
        base = max(0, at - URL)
        slash = data.rfind(b"/", base, at)
        if slash > 0 and (data[slash - 1] not in b"/\\" or slash + 1 == at):
            # A password may contain slashes; a path without a colon is not one.
            plain, escaped = data.rfind(b"//", base, at), data.rfind(b"\\/\\/", base, at)
            slash = max(plain + 1, escaped + 3 if escaped >= 0 else 0)
            slash = slash if data.find(b":", slash, at) >= 0 else 0
        if slash > 0 and slash + 1 < at:
            places.append(at)
        at = data.find(AT, at + 1)
    return places
