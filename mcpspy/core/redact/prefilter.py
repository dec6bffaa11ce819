"""A fast test for bytes that may contain a secret.

Every known secret comes with a literal: a part of a key's name, the start of a token, an escape that
could hide either. No hit means no secret; a hit means that the message must be read. One pass of a
vectorized Aho-Corasick over a chunk takes as long as copying it, and a session without secrets imports
only this module of redaction.
"""

from __future__ import annotations

from functools import partial

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from mcpspy.core.redact.literals import LITERALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Hit = tuple[int, bytes]
    """Its position, and the literal."""

    Matches = list[tuple[int, int, int]]
    """Index of the literal, start, end."""

    Find = Callable[[bytes], Matches]

NAMES = rb"""assw ASSW "pass assphrase ecret ECRET _key _KEY -key -Key Key" Key\ Key= Key: pikey PIKEY
    _token _TOKEN "token 'token oken: ccessToken hToken nToken dToken rToken tToken iToken -token -Token oken= OKEN= uthoriz ookie redential""".split()
"""Parts of names whose values are secret, in common spellings: `Password`, `api_key`, `X-Api-Key`."""

SHAPES = (b".eyJ", b"-----BEGIN", b"earer ", b"asic ", *LITERALS)
"""Parts of tokens recognised by their pattern alone (`core.redact.patterns`), in a separate search."""

ESCAPE = b"\\u00"
"""An escape of JSON, which may hide a letter of the above."""

B64 = b'"b64":"'
"""A line of the recording whose payload is not text."""

LONG = (*NAMES, ESCAPE, B64)
"""At most 64, each of 4 bytes or more: otherwise the search is not vectorized, and ten times slower."""

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


class Prefilter:
    def __init__(self, more: Iterable[bytes] = ()) -> None:
        self.long, self.short = _finder(LONG), _overlapping_finder(SHAPES)
        custom = sorted({literal for literal in more if literal})
        self.custom = _finder(custom) if custom else None
        self.overlap = max(OVERLAP, *map(len, custom)) if custom else OVERLAP

    def hits(self, data: bytes) -> list[Hit]:
        """Return the hits in order; nearly always none."""
        return self.ordered(data, self.long(data), self.short(data))

    def ordered(self, data: bytes, long: Matches, short: Matches) -> list[Hit]:
        """Return the hits of a text, given the matches of `self.long` and `self.short`."""
        if not long and not short and AT_SIGN not in data and self.custom is None:
            return []
        found = [(start, LONG[number]) for number, start, _ in long]
        found += [(start, SHAPES[number]) for number, start, _ in short]
        if self.custom is not None:
            found += [(start, CUSTOM) for _, start, _ in self.custom(data)]
        if AT_SIGN in data:
            found += [(at, AT) for at in _passwords(data)]
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


def _finder(literals: Sequence[bytes]) -> Find:
    # Only leftmost match kinds have the vectorized search.
    return BytesAhoCorasick(literals, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes


def _overlapping_finder(literals: Sequence[bytes]) -> Find:
    # A literal may begin in another one. The speed of a DFA does not depend on the number of literals.
    search = BytesAhoCorasick(
        literals, matchkind=MatchKind.Standard, implementation=Implementation.DFA
    ).find_matches_as_indexes
    return partial(search, overlapping=True)


def _passwords(data: bytes) -> list[int]:
    """Return the positions of `@` that end the user part of a URL; `/` may be escaped."""
    places = []
    at = data.find(b"@")
    while at >= 0:
        slash = data.rfind(b"/", max(0, at - URL), at)
        if slash > 0 and data[slash - 1] in b"/\\" and slash + 1 < at:
            places.append(at)
        at = data.find(b"@", at + 1)
    return places
