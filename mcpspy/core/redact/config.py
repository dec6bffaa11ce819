"""The rules of redaction: built in, and the user's own keys, patterns, pointers and values.

Raises ValueError for rules that could never match.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote_from_bytes, quote_plus

from mcpspy.core.redact.patterns import NameVerdict, verdict
from mcpspy.core.redact.prefilter import Prefilter
from mcpspy.core.regex import AllowUnsafe, Regex, RegexError, UnsupportedRegexError, compile_regex, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.core.redact.user_rules import UserRule

MIN_LITERAL = 3
"""Minimum bytes of a custom literal of the prefilter: shorter ones are in every message."""

MIN_VALUE = 4
"""Minimum bytes of a value that is searched for everywhere: shorter ones are in every message."""

MIN_ENCODED = 8
"""Minimum letters of a value in Base64, which has too many short texts by chance."""

_URL_SAFE = bytes.maketrans(b"+/", b"-_")

Pointer = tuple[str, ...]
"""A JSON pointer's reference tokens, unescaped (RFC 6901)."""

_NOT_LETTERS = re.compile(r"[\W_]+")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class RedactionRules:
    """Immutable, and shared between redactors."""

    def __init__(
        self,
        keys: Iterable[str] = (),
        patterns: Iterable[str] = (),
        pointers: Iterable[str] = (),
        values: Mapping[str, str] | None = None,
        allow_unsafe: AllowUnsafe = refuse,
        *,
        files: Iterable[UserRule] = (),
        entropy: bool = False,
    ) -> None:
        """`values` maps environment variables to their values; `files` are the rules of the user's files.

        With `entropy`, values that look random are secrets. `allow_unsafe` decides on a pattern that RE2
        cannot run. Raises ValueError for an invalid rule.
        """
        self._keys = {_plain(key): key for key in keys}
        if "" in self._keys:
            raise ValueError(f"{self._keys['']!r} is not a key: it contains no letter or digit")
        self._patterns = [compile_user_pattern(pattern, allow_unsafe) for pattern in patterns]
        self.pointers = frozenset(_pointer(pointer) for pointer in pointers)
        self._values = [
            (f"env:{name}", form)
            for name, value in (values or {}).items()
            if value
            for form in _forms(_value(name, value))
        ]
        ends = [next((token for token in reversed(p) if not token.isdigit()), "") for p in self.pointers]
        self._more: list[Callable[[bytes], Iterator[tuple[int, int, str]]]] = []
        literals: list[str] = []
        is_thorough = bool(self._patterns) or entropy
        if user_rules := list(files):
            from mcpspy.core.redact.user_rules import UserRules

            of_files = UserRules(user_rules)
            self._more.append(of_files.matches)
            literals = of_files.literals
            is_thorough = is_thorough or of_files.is_thorough
        if entropy:
            from mcpspy.core.redact.entropy import random_values

            self._more.append(random_values)
        parts = [
            _plainest(text)
            for text in (*map(str.encode, (*ends, *literals)), *(value for _, value in self._values))
        ]
        self.is_thorough = (
            is_thorough
            or any(len(part) < MIN_LITERAL for part in parts)
            or not all(key.isascii() for key in self._keys.values())
        )
        """True if every message must be read, because a custom rule has no literal for the prefilter."""
        self.prefilter = Prefilter(
            [*parts, *(form for key in self._keys.values() for form in _spellings(key))]
        )

    def verdict(self, name: bytes) -> int:
        if self._keys and _plain(name.decode("utf-8", "replace")) in self._keys:
            return NameVerdict.STRONG
        return verdict(name)

    def custom_matches(self, text: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield the matches of custom values and patterns in a text: start, end, rule."""
        for rule, value in self._values:
            at = text.find(value)
            while at >= 0:
                yield at, at + len(value), rule
                at = text.find(value, at + len(value))
        for pattern in self._patterns:
            for start, end in pattern.group_spans(text):
                if start < end:
                    yield start, end, f"pattern:{pattern.pattern}"
        for matches in self._more:
            yield from matches(text)


def compile_user_pattern(text: str, allow_unsafe: AllowUnsafe = refuse) -> Regex:
    """Return a regular expression of a user, compiled; raise ValueError."""
    try:
        return compile_regex(text, allow_unsafe)
    except UnsupportedRegexError as error:
        raise ValueError(f"{text!r}: {error}") from None
    except RegexError as error:
        raise ValueError(f"{text!r} is not a regular expression: {error}") from None


def _plain(key: str) -> str:
    return _NOT_LETTERS.sub("", key.casefold())


def _pointer(text: str) -> Pointer:
    if not text.startswith("/"):
        raise ValueError(f"{text!r} is not a JSON pointer: it must begin with /, like /params/arguments/pin")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in text.split("/")[1:])


def _value(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "surrogateescape")
    if len(data) < MIN_VALUE:
        raise ValueError(f"the value of {name} has fewer than {MIN_VALUE} bytes: it would match everywhere")
    return data


def _forms(value: bytes) -> list[bytes]:
    """Return a value as it is, encoded for a URL, and as the middle of any Base64 text that contains it."""
    forms = [value, quote_from_bytes(value, safe="").encode(), quote_plus(value).encode()]
    for before in range(3):
        # Three bytes are four letters: letters that depend on the bytes around the value are left out.
        encoded = b2a_base64(b"\0" * before + value, newline=False).rstrip(b"=")
        known = (before + len(value)) * 8 // 6
        inner = encoded[-(-before * 8 // 6) : known]
        if len(inner) >= MIN_ENCODED:
            forms += [inner, inner.translate(_URL_SAFE)]
    return list(dict.fromkeys(forms))


def _spellings(key: str) -> Iterator[bytes]:
    """Yield the spellings of a key: pin_code, pin-code, pinCode, PinCode, PIN_CODE; quoted, or before a sign."""
    words = [word.lower() for word in _WORDS.findall(key)]
    titles = [word.capitalize() for word in words]
    title = "".join(titles)
    joined = {sign.join(words) for sign in ("_", "-", "")}
    for written in {
        key,
        *joined,
        "_".join(words).upper(),
        "-".join(titles),
        title,
        title[:1].lower() + title[1:],
    }:
        for form in ('"{}', "'{}", "{}=", "{}:", "-{} "):
            yield form.format(written).encode()


def _plainest(text: bytes) -> bytes:
    """Return the longest part of a text that JSON never escapes."""
    return max(re.split(rb"[^A-Za-z0-9 _.,:;-]+", text), key=len)
