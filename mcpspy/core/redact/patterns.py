"""Tokens recognised by their pattern (docs/token_formats.toml), and names whose values are secret.

Each prefilter literal has the pattern of the whole token, and a test where patterns alone match too
much. A pattern is matched at its literal only, and no two matches of one begin in the same run of
token characters: so matching takes linear time. Names are compared by their ending, in any case of letters.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from functools import cache, lru_cache

from mcpspy.core.redact.format_table import FORMATS
from mcpspy.core.redact.names import FOREIGN, QUERY, SHORT, STRONG, SUFFIXES, WEAK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.redact.format_table import Row

    Test = Callable[[bytes], bool]

_SEPARATOR = "(?:_{1,2}|[-. ])?"


def _any(names: list[str]) -> str:
    return f"(?:{'|'.join(name.replace('-', _SEPARATOR) for name in names)})"


_SUFFIX = f"(?:{_SEPARATOR}{_any(SUFFIXES)})?(?:{_SEPARATOR}[0-9]{{1,3}})?"
STRONG_NAME = f"{_any(STRONG)}s?{_SUFFIX}"
"""The end of a name whose value is always secret."""
WEAK_NAME = f"{_any(WEAK)}{_SUFFIX}"
"""The end of a name whose value is secret if it looks like one."""

_TRAILING = r"(?:[^A-Za-z0-9]{0,3}|\.{4,40})\Z"
"""Signs after the last letter of a name: of Markdown, or the dots that lead to a value in a list."""
_STRONG = re.compile(f"(?:(?i:{STRONG_NAME})|{'|'.join(FOREIGN)}){_TRAILING}".encode())
_WEAK = re.compile(f"(?i){WEAK_NAME}{_TRAILING}".encode())
_SHORT_NAME = re.compile(
    rf"(?:(?i:(?<![a-z0-9]){_any(SHORT)})|(?<=[a-z0-9]){_any([name.title() for name in SHORT])})\Z".encode()
)
_QUERY = re.compile(rf"(?i)(?:{_any(QUERY)}|[\w-]*signature)".encode())
_PAGES = re.compile(
    rb"(?:page|next|prev|previous|progress|continuation|sync|cursor|max|min|start|end|stop)token|mcpsessionid"
)
"""Names of the protocol and of others that end like a weak name: `Mcp-Session-Id` correlates a session."""
_PURPOSE = re.compile(rb"(?i)(?<=\w) (?:for|of|to|on|in|from) .*", re.DOTALL)
_NOT_LETTERS = re.compile(rb"[^a-z0-9]+")
_PATH = re.compile(rb"[/~.]|[A-Za-z]:[\\\\/]")
_WORD_BYTES = re.compile(rb"[^\s\"'<>{}()\[\]]+")
_ONE_TIME = re.compile(rb"[0-9]{3}[ -]?[0-9]{3,5}")
_EXAMPLE = re.compile(rb"EXAMPLE(?:KEY)?\Z")
_SLASH = re.compile(rb"[/\\]")
_FEW_DIGITS = re.compile(rb"[0-9]{1,5}")
_CAPITAL_AMID = re.compile(rb"[a-z][A-Z](?![a-z]{2})")
_DIGIT = re.compile(rb"[0-9]")
_LETTER = re.compile(rb"[A-Za-z]")
_RUN = re.compile(rb"[A-Za-z0-9]{16}")

MAX_JWT_HEADER = 2048
"""Bytes searched backwards for the first part of a JWT."""

_HARMLESS = re.compile(
    rb"""(?ix)
    null | none | nil | undefined | true | false | yes | no | required | optional | include | omit | same-origin
    | string | number | integer | boolean | object | array | hidden | masked | disabled | enabled | unset
    | bearer | basic | digest | oauth2? | oidc | api[-_]?key | jwt | (?: bearer | basic ) [ ] (?: token | credentials? )
    | (?: not [ ] (?: set | configured | provided | available ) \b | set; [ ] ) .*
    | (?-i: \$ [A-Z_][A-Z0-9_]* | % [A-Z_][A-Z0-9_]* % )
    | \$\{ [^{}]* \} | \$\( [^()]* \) | \{\{ [^{}]* \}\} | \{ \w+ \} | < [^<>]* >
    | (?:process\.env|os\.environ|env|secrets|vars|config|settings|self|this)\b [.\[(] [\w.\[\]'"()]*
    | your [-_ ] [\w -]* | (?: [*xX._-] | \u2022 ){4,256} | \W{0,3} | (?: [a-z]{1,8} [-_] ){0,2} (?: \.{3} | \u2026 )
    | (?: change | replace | fill ) [-_ ]? (?: me | it | this ) | [a-z_ -]{1,40} [-_ ] here | (?-i: [A-Za-z0-9/+]* EXAMPLE (?:KEY)? )
    | (?: [~.]{0,2} | [a-z]: ) [/\\] [\w ./\\@+-]{1,200} \. (?: json | ya?ml | toml | pem | key | crt | p12 | pfx | jks | txt | env )
    | /run/secrets/ [\w.-]{1,80}
    | (?: [\w-]+ [ ] )? \[redacted(?::[0-9a-f]{8})?\]
    """.replace(rb"\u2022", "\u2022".encode()).replace(rb"\u2026", "\u2026".encode()),
    re.DOTALL,
)


class NameVerdict:
    """Class of a name; WEAK: its value is secret if it looks random, because `token` has other meanings too."""

    NOTHING, WEAK, STRONG = range(3)


@lru_cache(maxsize=1024)
def verdict(name: bytes) -> int:
    end = _PURPOSE.sub(b"", name[-80:]) if b" " in name else name[-80:]
    if _STRONG.search(end):
        return NameVerdict.STRONG
    if _SHORT_NAME.search(end) or (
        _WEAK.search(end) and not _PAGES.search(_NOT_LETTERS.sub(b"", end.lower()))
    ):
        return NameVerdict.WEAK
    return NameVerdict.NOTHING


def is_query(name: bytes) -> bool:
    """Return True for a parameter of a query whose value is secret if it looks random."""
    return _QUERY.fullmatch(name) is not None


def is_plural(name: bytes) -> bool:
    """Return True for a plural: of the values below it, only plain ones are secrets."""
    return name[-1:] in b"sS"


def looks_secret(name: bytes, value: bytes) -> bool:
    """Return True if the value of a weak name looks like a secret."""
    end = name[-4:].lower()
    if end == b"auth":
        return _is_basic(value)
    if end.endswith(b"otp"):
        return _ONE_TIME.fullmatch(value) is not None or is_random(value)
    if end == b"pass":
        # `"pass": 1767` beside `"fail": 3` is a number of tests.
        is_count = _FEW_DIGITS.fullmatch(value) is not None
        return not is_count and _WORD_BYTES.fullmatch(value) is not None and not _PATH.match(value)
    if end.endswith(b"pwd"):
        return len(value) > 3 and _WORD_BYTES.fullmatch(value) is not None and not _SLASH.search(value)
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


def is_jumbled(value: bytes) -> bool:
    """Return True for letters of both cases in an order that no word has: one generated password in thirty has no digit.

    In `camelCase`, at least three letters follow the capital of a word.
    """
    head = value[:256]
    return (
        len(value) >= 12
        and len(_CAPITAL_AMID.findall(head)) > 1
        and len(set(head)) > 8
        and _WORD_BYTES.fullmatch(head) is not None
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
    """Return False for the `ghp_xxxxxxxx` and the `AKIAIOSFODNN7EXAMPLE` of documentation."""
    return (
        _EXAMPLE.search(token) is None
        and len(set(token[-16:])) > 4
        and (len(token) < 32 or len(set(token)) > 8)
    )


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
FIRST_PEM_LINE = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
REDACTED = re.compile(rb"(?:\s|\\[rnt]|\[redacted:[0-9a-f]{8}\])*")


def tail(text: bytes, place: int, most: int, letters: bytes) -> int:
    """Return the number of these letters directly before a position, at most `most`."""
    before = text[max(0, place - most) : place]
    return len(before) - len(before.rstrip(letters))


def jwt(text: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of the JSON Web Token whose second part begins after the dot at `place`."""
    found = _JWT.match(text, place - tail(text, place, MAX_JWT_HEADER, _TOKEN_LETTERS))
    return None if found is None else found.span()


def pem(text: bytes, place: int) -> tuple[int, int] | None:
    """Return the span of the private key between its two lines; to the end if the second is missing.

    None if nothing is between them that is not redacted yet: other lines may be separate entries.
    """
    found = FIRST_PEM_LINE.match(text, place)
    if found is None:
        return None
    end = text.find(b"-----END", found.end())
    start, end = found.end(), len(text) if end < 0 else end
    return None if REDACTED.fullmatch(text, start, end) else (start, end)
