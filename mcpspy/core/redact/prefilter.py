"""A fast test for bytes that may contain a secret.

Every known secret contains a literal: the name of its key in one of its spellings or a context
(`core.redact.names`, from which the rules are made too), the start of a token, an escape that could hide
any of them. No literal means no secret; a hit means that the message must be read. The search has two
stages, both in the lower-case chunk: a vectorized Aho-Corasick finds parts that literals share, and one with
a DFA, whose speed does not depend on the number of literals, finds the literals around them. A session
without secrets imports only this module of redaction and the names.
"""

from __future__ import annotations

from functools import cached_property

from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

from mcpspy.core.redact.names import FRAGMENTS, NAMED, PLACED, QUERIED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Hit = tuple[int, bytes]
    """Its position, and the literal."""

    Matches = list[tuple[int, int, int]]
    """Index of the literal, start, end."""

SHAPES = (
    *b"""ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xapp- k_live_ k_test_ whsec_ AKIA ASIA AIza ya29. GOCSPX- .eyJ
    -----BEGIN npm_ pypi- dop_v1_ shpat_ lin_api_ sntry""".split(),
    *(b"sk-", b"xox", b"hf_", b"SG.", b"ntn_", b"figd_", b"tvly-"),
    *(b"earer ", b"asic "),
)
"""Parts of tokens recognised by their pattern alone (`core.redact.patterns`); case counts."""

ESCAPE = b"\\u00"
"""An escape of JSON, which may hide a letter of the above."""

B64 = b'"b64":"'
"""A line of the recording whose payload is not text."""

LITERALS = (*NAMED, *QUERIED, *PLACED, *SHAPES, ESCAPE, B64)
"""All literals; a hit is one of them."""

INSENSITIVE = len(NAMED) + len(QUERIED) + len(PLACED)
"""How many of them are hits in any case of letters."""

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


VECTORIZED = 64
"""Most literals of a vectorized search."""

DENSE = 256
"""Bytes per match of a fragment, below which the whole text is searched for literals."""

PROGRESS = (b"progress", b"nextpage")
"""Text in front of `token` in names of the protocol, which are not secret."""


class Prefilter:
    def __init__(self, more: Iterable[bytes] = ()) -> None:
        custom = sorted({literal for literal in more if literal})
        literals = [literal.lower() for literal in (*LITERALS, *custom)]
        self.overlap = max(OVERLAP, *map(len, custom)) if custom else OVERLAP
        self._longest = max(map(len, literals))
        self._all = literals
        self._fragments = [
            BytesAhoCorasick(group, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes
            for group in _groups(_fragments(literals))
        ]

    @cached_property
    def _literals(self) -> Callable[..., Matches]:
        """The exact search, built at the first match of a fragment: many sessions have none."""
        return BytesAhoCorasick(
            self._all, matchkind=MatchKind.Standard, implementation=Implementation.DFA
        ).find_matches_as_indexes

    def find(self, data: bytes) -> Matches:
        """Return the matches of literals, in order; all of them, also overlapping ones."""
        lower = data.lower()
        found: Matches = []
        for search in self._fragments:
            if matches := search(lower):
                found += matches
        if not found:
            return found
        if len(found) * DENSE > len(data):
            return self._literals(lower, overlapping=True)
        matches = []
        end = 0
        for start in sorted(start for _, start, _ in found):
            first, last = max(end, start - self._longest), start + self._longest
            if first < last:
                # A literal that begins before `end` and ends after it is in this window too.
                first = max(0, first - self._longest)
                window = self._literals(lower[first:last], overlapping=True)
                matches += [(number, first + at, first + to) for number, at, to in window if first + to > end]
                end = min(last, len(lower))
        return matches

    def hits(self, data: bytes) -> list[Hit]:
        """Return the hits in order; nearly always none."""
        matches = self.find(data)
        return self.ordered(data, matches) if matches or AT_SIGN in data else []

    def ordered(self, data: bytes, matches: Matches) -> list[Hit]:
        """Return the hits of a text, given the matches of `self.find`."""
        found: list[Hit] = []
        for number, start, end in matches:
            if number >= len(LITERALS):
                found.append((start, CUSTOM))
                continue
            literal = LITERALS[number]
            if number >= INSENSITIVE:
                if data[start:end] == literal:
                    found.append((start, literal))
            elif literal != b"token" or data[start - 8 : start].lower() not in PROGRESS:
                found.append((start, literal))
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


def _fragments(literals: list[bytes]) -> list[bytes]:
    """Return fragments of which every literal contains one; each literal without a fragment is its own."""
    shared = [fragment.encode() for fragment in FRAGMENTS]
    return [*shared, *{literal for literal in literals if not any(map(literal.__contains__, shared))}]


def _groups(fragments: list[bytes]) -> list[list[bytes]]:
    """Split by length: those of three bytes would slow down the search for the others."""
    fragments.sort(key=len, reverse=True)
    long = sum(len(fragment) > 3 for fragment in fragments)
    groups = [fragments[at : min(at + VECTORIZED, long)] for at in range(0, long, VECTORIZED)]
    return [*groups, fragments[long:]] if long < len(fragments) else groups


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
