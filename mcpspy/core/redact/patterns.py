"""Tokens recognised by their pattern, and names whose values are secret (docs/redact.md lists both).

Each prefilter literal has the pattern of the whole token, and a test where patterns alone match too
much. A pattern is matched at its literal only, and no two matches of one begin in the same run of
token characters: so matching takes linear time. Names are compared by their ending, in any case of letters.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from functools import cache, lru_cache

from mcpspy.core.redact.names import QUERY, SHORT, STRONG, SUFFIXES, WEAK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[[bytes], bool]

_SEPARATOR = "(?:_{1,2}|[-. ])?"


def _any(names: list[str]) -> str:
    return f"(?:{'|'.join(name.replace('-', _SEPARATOR) for name in names)})"


_SUFFIX = f"(?:{_SEPARATOR}{_any(SUFFIXES)})?(?:{_SEPARATOR}[0-9]{{1,3}})?"
STRONG_NAME = f"{_any(STRONG)}s?{_SUFFIX}"
"""The end of a name whose value is always secret."""
WEAK_NAME = f"{_any(WEAK)}{_SUFFIX}"
"""The end of a name whose value is secret if it looks like one."""

_TRAILING = r"[^A-Za-z0-9]{0,3}\Z"
_STRONG = re.compile(f"(?i){STRONG_NAME}{_TRAILING}".encode())
_WEAK = re.compile(f"(?i){WEAK_NAME}{_TRAILING}".encode())
_SHORT_NAME = re.compile(
    rf"(?:(?i:(?<![a-z0-9]){_any(SHORT)})|(?<=[a-z0-9]){_any([name.title() for name in SHORT])})\Z".encode()
)
_QUERY = re.compile(rf"(?i)(?:{_any(QUERY)}|[\w-]*signature)".encode())
_PAGES = re.compile(
    rb"(?:page|next|prev|previous|progress|continuation|sync|cursor|max|min|start|end|stop)token"
)
_NOT_LETTERS = re.compile(rb"[^a-z0-9]+")
_PATH = re.compile(rb"[/~.]|[A-Za-z]:[\\\\/]")
_WORD_BYTES = re.compile(rb"[^\s\"'<>{}()\[\]]+")
_SLASH = re.compile(rb"[/\\]")
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
    end = name[-80:]
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
    if end == b"pass":
        return _WORD_BYTES.fullmatch(value) is not None and not _PATH.match(value)
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


class TokenPattern:
    def __init__(self, rule: str, pattern: str, test: Test | None = None, back: int = 0) -> None:
        self.rule = rule
        self.back = back
        """Bytes of the pattern before the literal."""
        self._pattern = pattern
        self._test = test

    def at(self, text: bytes, place: int) -> tuple[int, int] | None:
        """Return the span of the token whose literal begins at `place`."""
        found = _compiled(self._pattern).match(text, max(0, place - self.back))
        if found is None:
            return None
        start, end = found.span(found.lastindex or 0)
        return None if self._test is not None and not self._test(text[start:end]) else (start, end)


@cache
def _compiled(pattern: str) -> re.Pattern[bytes]:
    return re.compile(pattern.encode())


def _is_varied(token: bytes) -> bool:
    """Return False for the `ghp_xxxxxxxx` of documentation."""
    return len(set(token[-16:])) > 4


def _is_sk(token: bytes) -> bool:
    """Return False for `sk-` followed by words and dashes."""
    return is_random(token) and (_RUN.search(token) is not None or token.startswith(b"sk-ant-"))


def _is_basic(encoded: bytes) -> bool:
    """Return True for base64 of `name:password` (RFC 7617)."""
    try:
        return b":" in a2b_base64(encoded + b"=" * (-len(encoded) % 4))
    except ValueError:
        return False


_LEFT = r"(?<![A-Za-z0-9_-])"


def _prefixed(rule: str, prefix: str, body: str, *, least: int, back: int = 0) -> TokenPattern:
    return TokenPattern(rule, f"{_LEFT}{prefix}[{body}]{{{least},}}+", _is_varied, back)


_WORD = "A-Za-z0-9_-"
_ALNUM = "A-Za-z0-9"
_GITHUB = _prefixed("github-token", "gh[opusr]_", "A-Za-z0-9_", least=20)
_STRIPE = _prefixed("stripe-key", "[sr]k_(?:live|test)_", _ALNUM, least=16, back=1)
_AWS = TokenPattern(
    "aws-access-key", r"(?<![A-Za-z0-9+/])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])", _is_varied
)

SHAPES: dict[bytes, TokenPattern] = {
    **dict.fromkeys((b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"), _GITHUB),
    b"github_pat_": _prefixed("github-token", "github_pat_", "A-Za-z0-9_", least=22),
    b"glpat-": _prefixed("gitlab-token", "glpat-", _WORD, least=20),
    b"xox": _prefixed("slack-token", "xox[a-z]-", "A-Za-z0-9-", least=10),
    b"xapp-": _prefixed("slack-token", "xapp-", "A-Za-z0-9-", least=10),
    b"sk-": TokenPattern("sk-key", _LEFT + r"sk-[A-Za-z0-9_-]{20,}+", _is_sk),
    b"hf_": _prefixed("hugging-face-token", "hf_", _ALNUM, least=30),
    b"SG.": TokenPattern("sendgrid-key", r"(?<![A-Za-z0-9_.-])SG\.[A-Za-z0-9_-]{16,}+\.[A-Za-z0-9_-]{16,}+", _is_varied),
    b"dop_v1_": _prefixed("digitalocean-token", "dop_v1_", "a-f0-9", least=64),
    b"shpat_": _prefixed("shopify-token", "shpat_", "A-Fa-f0-9", least=32),
    b"tvly-": _prefixed("tavily-key", "tvly-", _WORD, least=20),
    **dict.fromkeys((b"k_live_", b"k_test_"), _STRIPE),
    b"whsec_": _prefixed("stripe-key", "whsec_", "A-Za-z0-9+/=", least=24),
    **dict.fromkeys((b"AKIA", b"ASIA"), _AWS),
    b"AIza": TokenPattern("google-key", r"(?<![A-Za-z0-9_+/-])AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])", _is_varied),
    b"ya29.": _prefixed("google-token", r"ya29\.", _WORD, least=20),
    b"GOCSPX-": _prefixed("google-secret", "GOCSPX-", _WORD, least=20),
    b"npm_": TokenPattern("npm-token", _LEFT + r"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])", _is_varied),
    b"pypi-": _prefixed("pypi-token", "pypi-", _WORD, least=50),
    b"lin_api_": _prefixed("linear-key", "lin_api_", _ALNUM, least=32),
    b"ntn_": _prefixed("notion-token", "ntn_", _ALNUM, least=40),
    b"figd_": _prefixed("figma-token", "figd_", _WORD, least=32),
    b"sntry": _prefixed("sentry-token", "sntry[a-z]_", "A-Za-z0-9_=+/", least=40),
    b"earer ": TokenPattern(
        "bearer", r"(?<![A-Za-z0-9])[Bb]earer {1,4}([A-Za-z0-9._~+/-]{12,}+=*+)", lambda token: is_random(token, 12), back=1
    ),
    b"asic ": TokenPattern("basic", r"(?<![A-Za-z0-9])[Bb]asic {1,4}([A-Za-z0-9+/]{6,}+={0,2}+)", _is_basic, back=1),
}  # fmt: skip
"""Literal of the prefilter → its token. Other literals are parts of names, or of JWTs and PEM keys."""

_JWT = re.compile(rb"eyJ[A-Za-z0-9_-]{8,}+\.eyJ[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+)?")
_PEM = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
REDACTED = re.compile(rb"(?:\s|\\[rnt]|\[redacted:[0-9a-f]{8}\])*")
_TOKEN_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"


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
    found = _PEM.match(text, place)
    if found is None:
        return None
    end = text.find(b"-----END", found.end())
    start, end = found.end(), len(text) if end < 0 else end
    return None if REDACTED.fullmatch(text, start, end) else (start, end)
