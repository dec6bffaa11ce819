"""Tokens recognised by their pattern (formats.toml), and names whose values are secret.

Each prefilter literal has the pattern of the whole token, and a test where patterns alone match too
much. A pattern is matched at its literal only, and no two matches of one begin in the same run of
token characters: so matching takes linear time. Names are compared by their ending, without case and separators.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from functools import cache, lru_cache

from mcpspy.core.redact.format_table import FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.redact.format_table import Row

    Test = Callable[[bytes], bool]

STRONG = """
    password passwd passphrase secret apikey appkey accesskey secretkey secretaccesskey privatekey
    signingkey encryptionkey masterkey accountkey subscriptionkey sharedkey authkey deploykey
    accesstoken refreshtoken authtoken idtoken bearertoken sessiontoken apitoken bottoken usertoken
    clientsecret credential authorization cookie
""".split()
"""Endings of names whose value is always secret; also in the plural."""

_STRONG = tuple(name.encode() + plural for name in STRONG for plural in (b"", b"s"))
_PAGES = re.compile(
    rb"(?:page|next|prev|previous|progress|continuation|sync|cursor|max|min|start|end|stop)token$"
)
_NOT_LETTERS = re.compile(rb"[^a-z0-9]+")
_PATH = re.compile(rb"[/~.]|[A-Za-z]:[\\\\/]")
_WORD_BYTES = re.compile(rb"[^\s\"'<>{}()\[\]]+")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_RUN = re.compile(rb"[A-Za-z0-9]{16}")

MAX_JWT_HEADER = 2048
"""Bytes searched backwards for the first part of a JWT."""

_HARMLESS = re.compile(
    rb"""(?ix)
    null | none | nil | undefined | true | false | yes | no | required | optional | include | omit | same-origin
    | string | number | integer | boolean | object | array | hidden | masked | disabled | enabled | unset
    | bearer | basic | digest | oauth2? | oidc | api[-_]?key | jwt
    | (?-i: \$ [A-Z_][A-Z0-9_]* | % [A-Z_][A-Z0-9_]* % )
    | \$\{ [^{}]* \} | \$\( [^()]* \) | \{\{ [^{}]* \}\} | \{ \w+ \} | < [^<>]* >
    | (?:process\.env|os\.environ|env|secrets|vars|config|settings|self|this)\b [.\[(] [\w.\[\]'"()]*
    | your [-_ ] [\w -]* | (?: [*xX._-] | \u2022 ){4,256} | \W{0,3}
    | (?: [\w-]+ [ ] )? \[redacted(?::[0-9a-f]{8})?\]
    """.replace(rb"\u2022", "\u2022".encode()),
    re.DOTALL,
)


class NameVerdict:
    """Class of a name; WEAK: its value is secret if it looks random, because `token` has other meanings too."""

    NOTHING, WEAK, STRONG = range(3)


@lru_cache(maxsize=1024)
def verdict(name: bytes) -> int:
    plain = _NOT_LETTERS.sub(b"", name[-80:].lower())
    if plain.endswith(_STRONG):
        return NameVerdict.STRONG
    if plain == b"pass" or (plain.endswith(b"token") and not _PAGES.search(plain)):
        return NameVerdict.WEAK
    return NameVerdict.NOTHING


def is_plural(name: bytes) -> bool:
    """Return True for a plural: of the values below it, only plain ones are secrets."""
    return name[-1:] in b"sS"


def looks_secret(name: bytes, value: bytes) -> bool:
    """Return True if the value of a weak name looks like a secret."""
    if name.lower() == b"pass":
        return _WORD_BYTES.fullmatch(value) is not None and not _PATH.match(value)
    return is_random(value)


def is_harmless(value: bytes) -> bool:
    """Return True if a value is empty, a placeholder of any kind, or the name of a variable or type."""
    return len(value) < 256 and _HARMLESS.fullmatch(value) is not None


def is_random(value: bytes, least: int = 8) -> bool:
    """Return True if a value looks like a token: letters and digits, no white space, several characters."""
    head = value[:256]
    return (
        len(value) >= least
        and len(set(head)) >= min(6, least)
        and _WORD_BYTES.fullmatch(head) is not None
        and _DIGIT.search(head) is not None
        and _LETTER.search(head) is not None
    )


class TokenPattern:
    """One token format. A match neither begins nor ends inside a word."""

    def __init__(self, row: Row) -> None:
        self.rule, literals, self.back, lead, self._lead_max, check, self._pattern = row
        self._lead = lead.encode()
        self._test = CHECKS[check]
        # Any run of base64 may contain a literal of letters, and base64 has these two characters.
        is_strict = self.back > 0 or any(map(str.isalnum, literals))
        self._before = _TOKEN_LETTERS + b"+/" if is_strict else _TOKEN_LETTERS

    def at(self, text: bytes, place: int) -> tuple[int, int] | None:
        """Return the span of the token whose literal begins at `place`."""
        start = place - self.back
        if self._lead:
            start -= tail(text, start, self._lead_max, self._lead)
        if start < 0 or (start and text[start - 1] in self._before and self._is_inside(text, start)):
            return None
        found = _compiled(self._pattern).match(text, start)
        if found is None or (text[found.end() - 1 : found.end() + 1].isalnum() and found.end() < len(text)):
            return None
        start, end = found.span(found.lastindex or 0)
        return (start, end) if self._test(text[start:end]) else None

    def _is_inside(self, text: bytes, start: int) -> bool:
        """Return True if the character before a position belongs to the same word, not to an escape of JSON."""
        is_escape = text[start - 1] in b"nrtbf" and text[start - 2 : start - 1] == b"\\"
        return text[start] in self._before and not is_escape


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


def _is_varied(token: bytes) -> bool:
    """Return False for the `ghp_xxxxxxxx` of documentation."""
    return len(set(token[-16:])) > 4 and (len(token) < 32 or len(set(token)) > 8)


def _is_mixed(token: bytes) -> bool:
    """Return False for words as well: a token has a digit, or letters of both cases."""
    if not _is_varied(token):
        return False
    return _DIGIT.search(token) is not None or not (token.islower() or token.isupper())


def _is_sk(token: bytes) -> bool:
    """Return False for `sk-` followed by words and dashes."""
    return (
        _is_varied(token)
        and is_random(token)
        and (_RUN.search(token) is not None or token.startswith(b"sk-ant-"))
    )


def _is_basic(encoded: bytes) -> bool:
    """Return True for base64 of `name:password` (RFC 7617)."""
    try:
        return b":" in a2b_base64(encoded + b"=" * (-len(encoded) % 4))
    except ValueError:
        return False


_TOKEN_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

CHECKS: dict[str, Test] = {
    "mixed": _is_mixed,
    "varied": _is_varied,
    "sk": _is_sk,
    "bearer": lambda token: is_random(token, 12),
    "basic": _is_basic,
    "none": bool,
}

_SCHEMES: tuple[Row, ...] = (
    ("bearer", ("earer ",), 1, "", 0, "bearer", "[Bb]earer {1,4}([A-Za-z0-9._~+/-]{12,}=*)"),
    ("basic", ("asic ",), 1, "", 0, "basic", "[Bb]asic {1,4}([A-Za-z0-9+/]{6,}={0,2})"),
)
"""Credentials of HTTP after their scheme (RFC 7617, RFC 6750)."""

SHAPES: dict[bytes, TokenPattern] = {
    literal.encode(): shape
    for row in (*_SCHEMES, *FORMATS)
    for shape in (TokenPattern(row),)
    for literal in row[1]
}
"""Literal of the prefilter → its token. Other literals are parts of names, or of JWTs and PEM keys."""


_JWT = re.compile(rb"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?")
_PEM = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")


def tail(text: bytes, place: int, most: int, letters: bytes) -> int:
    """Return the number of these letters directly before a position, at most `most`."""
    before = text[max(0, place - most) : place]
    return len(before) - len(before.rstrip(letters))


def jwt(text: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of the JSON Web Token whose second part begins after the dot at `place`."""
    found = _JWT.match(text, place - tail(text, place, MAX_JWT_HEADER, _TOKEN_LETTERS))
    return None if found is None else found.span()


def pem(text: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of the private key between its two lines; to the end if the second is missing."""
    found = _PEM.match(text, place)
    if found is None:
        return None
    end = text.find(b"-----END", found.end())
    return found.end(), len(text) if end < 0 else end
