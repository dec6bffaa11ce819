r"""The cheap test on raw bytes: may there be a secret here at all?

Owns the literals that every secret we know comes with: a part of a key's name,
the beginning of a token, an escape that could hide either. No hit means no
secret; a hit means that somebody has to look. One pass of a vectorized
Aho-Corasick over a chunk costs what copying it costs, and this module is all of
redaction that a session without secrets ever imports.
"""

from __future__ import annotations

from ahocorasick_rs import BytesAhoCorasick, MatchKind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Hit = tuple[int, bytes]
    """Where it is, and which literal."""

    Matches = list[tuple[int, int, int]]
    """Which literal, where it begins and ends."""

    Find = Callable[[bytes], Matches]

NAMES = rb"""assw ASSW "pass assphrase ecret ECRET _key _KEY -key -Key Key" Key\ Key= Key: pikey PIKEY
    _token _TOKEN "token 'token oken: ccessToken hToken nToken dToken rToken tToken iToken -token -Token oken= OKEN= uthoriz ookie redential""".split()
"""Parts of names whose values are secret, in the spellings that are in use: `Password`, `api_key`, `X-Api-Key`."""

SHAPES = (
    *b"""ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xapp- k_live_ k_test_ whsec_ AKIA ASIA AIza ya29. GOCSPX- .eyJ
    -----BEGIN npm_ pypi- dop_v1_ shpat_ lin_api_ sntry""".split(),
    b"earer ",
    b"asic ",
)
"""Parts of tokens that are told by their shape alone; `shapes` has the rest of each."""

SHORT = (b"sk-", b"xox", b"hf_", b"SG.", b"ntn_", b"figd_", b"tvly-")
"""The same, in a search of their own: one of three bytes would make the whole of the other slow."""

ESCAPE = b"\\u00"
"""An escape of JSON, which may stand for a letter of the above."""

B64 = b'"b64":"'
"""A line of the recording whose payload is no text."""

LONG = (*NAMES, *SHAPES, ESCAPE, B64)
"""At most 64, and none shorter than 4 bytes: past either, the search is no longer vectorized and ten times slower."""

AT = b"@"
"""The end of a URL's user and password: no literal, but a hit."""

AT_SIGN = ord(AT)
"""A number, as are others that are looked for: one byte as bytes is found only once CPython has dropped a TypeError."""

ASKED = b""
"""What a person asked for."""

URL = 256
"""Bytes looked back from an `@` for the `//` of a URL with a password in it."""

SEAM = 128
"""Bytes around the place where two buffers meet that are searched as one; no literal of ours is longer."""


class Prefilter:
    """Finds the places that somebody has to look at."""

    def __init__(self, more: Iterable[bytes] = ()) -> None:
        """`more` is literals that a person asks for besides ours."""
        self.long, self.short = _finder(LONG), _finder(SHORT)
        asked = sorted({literal for literal in more if literal})
        self.asked = _finder(asked) if asked else None
        self.seam = max(SEAM, *map(len, asked)) if asked else SEAM

    def hits(self, data: bytes) -> list[Hit]:
        """Return what is suspicious, in order; nearly always nothing."""
        return self.ordered(data, self.long(data), self.short(data))

    def ordered(self, data: bytes, long: Matches, short: Matches) -> list[Hit]:
        """Return the hits of a text in which `long` and `short` found this."""
        if not long and not short and AT_SIGN not in data and self.asked is None:
            return []
        found = [(start, LONG[number]) for number, start, _ in long]
        found += [(start, SHORT[number]) for number, start, _ in short]
        if self.asked is not None:
            found += [(start, ASKED) for _, start, _ in self.asked(data)]
        if AT_SIGN in data:
            found += [(at, AT) for at in _passwords(data)]
        found.sort()
        return found

    def is_hit(self, buffers: Iterable[bytes | bytearray]) -> bool:
        """Whether there is a hit in the buffers as a whole, without joining them."""
        tail = b""
        for buffer in buffers:
            data = bytes(buffer)
            if self.hits(data) or (tail and self.hits(tail + data[: self.seam])):
                return True
            tail = (tail + data)[-self.seam :] if len(data) < self.seam else data[-self.seam :]
        return False


def _finder(literals: Sequence[bytes]) -> Find:
    # Only the leftmost kinds have the vectorized search.
    return BytesAhoCorasick(literals, matchkind=MatchKind.LeftmostFirst).find_matches_as_indexes


def _passwords(data: bytes) -> list[int]:
    """Return the `@` that end the user's part of a URL; `/` may be escaped."""
    places = []
    at = data.find(b"@")
    while at >= 0:
        slash = data.rfind(b"/", max(0, at - URL), at)
        if slash > 0 and data[slash - 1] in b"/\\" and slash + 1 < at:
            places.append(at)
        at = data.find(b"@", at + 1)
    return places
