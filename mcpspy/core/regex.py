"""Regular expressions of users: RE2, which searches any text in linear time.

RE2 has no look-around and no back-references. A pattern with such a construct runs on Python's `re` only if the
caller allows it, because `re` may take exponential time. Patterns are matched against UTF-8.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeAlias

AllowUnsafe: TypeAlias = Callable[[str, str], bool]
"""Called with a pattern and its construct that RE2 lacks; returns True if Python's `re` may run the pattern."""


class RegexError(ValueError):
    """An invalid regular expression; `at` is the position of the mistake."""

    def __init__(self, message: str, at: int | None = None) -> None:
        super().__init__(message)
        self.at = at


class UnsupportedRegexError(RegexError):
    """A valid regular expression that RE2 cannot run."""


class Regex(Protocol):
    """A compiled pattern. Positions in bytes are those of the bytes, positions in a text those of characters."""

    @property
    def pattern(self) -> str: ...

    def is_in(self, text: bytes) -> bool:
        """Return True if the pattern matches anywhere."""

    def spans(self, text: bytes, at: int = 0) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match."""

    def group_spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of the group of each match, or of the match if no group took part in it."""

    def text_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match in a text."""


def refuse(_pattern: str, _construct: str) -> bool:
    return False


def compile_regex(
    pattern: str, allow_unsafe: AllowUnsafe = refuse, *, ignore_case: bool = False, multiline: bool = False
) -> Regex:
    """Return the compiled pattern; raise RegexError. `multiline`: `^` and `$` match at lines."""
    try:
        source = pattern.encode()
    except UnicodeEncodeError as error:
        raise RegexError("not UTF-8", error.start) from None
    flags = (re.IGNORECASE if ignore_case else 0) | (re.MULTILINE if multiline else 0)
    try:
        import re2  # type: ignore[import-untyped]  # It has no annotations.
    except ImportError:  # There is no wheel for this system, and the package was left out.
        if not allow_unsafe(pattern, "a regular expression without the package google-re2"):
            raise UnsupportedRegexError(
                "google-re2 is not installed (install it, or use --unsafe-regex)"
            ) from None
        return _UnsafeRegex(pattern, _compiled(pattern, flags))
    if _HUGE.search(pattern):  # RE2 reads such a repetition as text.
        _compiled(pattern, flags)
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not ignore_case
    try:
        return _Re2Regex(pattern, re2.compile(b"(?m)" + source if multiline else source, options))
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace")
    fallback = _compiled(pattern, flags)  # A pattern that Python refuses, too, is invalid.
    construct, at = _unsupported(pattern, reason)
    if not allow_unsafe(pattern, construct):
        instead = _INSTEAD.get(construct, "rewrite the pattern")
        raise UnsupportedRegexError(f"{construct} is not supported ({instead}, or use --unsafe-regex)", at)
    return _UnsafeRegex(pattern, fallback)


WIDE = 64
"""Matches of one text for which all the rest of it is searched."""

WINDOW = 1 << 14
"""Bytes in which all further matches are searched for, at most; those of up to half of that are found as a whole."""


class _Re2Regex:
    """A pattern of RE2. One search takes linear time; those for all matches of `x.*y|x` would take quadratic time."""

    def __init__(self, pattern: str, compiled: Any) -> None:
        self.pattern = pattern
        self._compiled = compiled

    def is_in(self, text: bytes) -> bool:
        return self._compiled.search(text) is not None

    def spans(self, text: bytes, at: int = 0) -> Iterator[tuple[int, int]]:
        for found in self._matches(text, at):
            yield found.span()

    def group_spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        for found in self._matches(text, 0):
            yield found.span(found.lastindex or 0)

    def _matches(self, text: bytes, at: int) -> Iterator[Any]:
        for count, found in enumerate(self._compiled.finditer(text, at), 1):
            yield found
            at = found.end() + (found.end() == found.start())
            if count == WIDE:
                break
        else:
            return
        size = len(text)
        while at <= size:
            end = min(size, at + WINDOW)
            half = at + WINDOW // 2 if end < size else size + 1
            for found in self._compiled.finditer(text, at, end):
                if found.start() >= half:
                    break  # Its end may be outside.
                yield found
                at = found.end() + (found.end() == found.start())
            at = max(at, half)

    def text_spans(self, text: str) -> Iterator[tuple[int, int]]:
        data = text.encode("utf-8", "replace")
        if len(data) == len(text):
            yield from self.spans(data)
            return
        done = place = 0
        for start, end in self.spans(data):
            first = place + _characters(data[done:start])
            place = first + _characters(data[start:end])
            done = end
            yield first, place


class _UnsafeRegex:
    """A pattern of Python's `re`. An ASCII pattern runs over bytes, which is faster."""

    def __init__(self, pattern: str, compiled: re.Pattern[str]) -> None:
        self.pattern = pattern
        self._compiled = compiled
        self._bytes = _compiled_bytes(pattern, compiled.flags) if pattern.isascii() else None

    def is_in(self, text: bytes) -> bool:
        return next(self.spans(text), None) is not None

    def spans(self, text: bytes, at: int = 0) -> Iterator[tuple[int, int]]:
        if self._bytes is not None:
            yield from (found.span() for found in self._bytes.finditer(text, at))
            return
        decoded = _decoded(text)
        for found in self._compiled.finditer(decoded, len(_decoded(text[:at]))):
            yield _byte_span(decoded, found.span())

    def group_spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        decoded = _decoded(text)
        for found in self._compiled.finditer(decoded):
            yield _byte_span(decoded, found.span(found.lastindex or 0))

    def text_spans(self, text: str) -> Iterator[tuple[int, int]]:
        yield from (found.span() for found in self._compiled.finditer(text))


def glob_regex(glob: str) -> re.Pattern[str]:
    """Return a glob of `*` and `?` as a pattern for `fullmatch`.

    It does not backtrack: each part between two stars is matched where it first occurs, and stays there.
    """
    first, *rest = (
        "".join("." if character == "?" else re.escape(character) for character in part)
        for part in re.split(r"\*+", glob)
    )
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1])
    return re.compile(first + middle + (f".*{rest[-1]}" if rest else ""), re.DOTALL)


_HUGE = re.compile(r"\{[0-9]{8}")

_NAMES = {
    "(?=": "look-ahead (?=",
    "(?!": "look-ahead (?!",
    "(?<=": "look-behind (?<=",
    "(?<!": "look-behind (?<!",
    "(?>": "atomic group (?>",
    "(?(": "conditional group (?(",
    "(?#": "comment (?#",
}
_ESCAPES = {"\\Z": "\\Z", "\\u": "escape \\u", "\\U": "escape \\U", "\\N": "escape \\N"}
_INSTEAD = {
    "\\Z": "use \\z",
    **dict.fromkeys(("escape \\u", "escape \\U", "escape \\N"), "use \\x{20AC}"),
    "comment (?#": "remove it",
}


def _unsupported(pattern: str, reason: str) -> tuple[str, int]:
    """Return the construct that RE2 lacks, and its position, by the error of RE2."""
    found = reason.partition(": ")[2]
    at = max(pattern.find(found), 0) if found else 0
    if found == "(?P":
        return "back-reference (?P=", max(pattern.find("(?P="), 0)
    if found[:1] == "\\" and found[1:].isdecimal():
        return f"back-reference {found}", at
    if found in _ESCAPES:
        return _ESCAPES[found], at
    if found in _NAMES:
        return _NAMES[found], at
    if found.startswith("(?"):
        return f"flag {found}", at
    if found.endswith("+") and len(found) > 1:
        return f"possessive quantifier {found}", at
    if reason.startswith("invalid repetition size"):
        return f"repetition of more than 1000 {found}", at
    return (f"{reason.partition(':')[0]} {found}" if found else reason), at


def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Warnings about future syntax do not concern the user.
            return re.compile(pattern, flags)
    except re.error as error:
        raise RegexError(error.msg, error.pos) from None
    except (OverflowError, RecursionError) as error:
        raise RegexError(str(error)) from None


def _compiled_bytes(pattern: str, flags: int) -> re.Pattern[bytes] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern.encode(), flags & ~re.UNICODE)
    except (re.error, ValueError):  # It has an escape or a flag of characters, such as \u20ac or (?u).
        return None


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def _byte_span(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    at = start if text.isascii() else _size(text[:start])
    return at, at + _size(text[start:end])


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _characters(data: bytes) -> int:
    """Return the number of characters in whole UTF-8 characters."""
    return len(data) - sum(1 for byte in data if byte & 0xC0 == 0x80)
