"""Rules of a user's own file: the form of docs/token_formats.toml, or a configuration of gitleaks.

A rule has a regular expression; keywords, entropy and allowlists limit it. Reading reports in one line what cannot
be honoured, because a message is neither a file nor a commit.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, Protocol

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from mcpspy.core.redact import gitleaks
from mcpspy.core.redact.entropy import entropy
from mcpspy.core.redact.formats import FormatError, TokenFormat, read_formats
from mcpspy.core.redact.patterns import CHECKS


class UserPattern(Protocol):
    """A compiled regular expression of a user."""

    def spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match."""

    def group_spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and end of the group of each match, or of the match if no group took part in it."""


Compile = Callable[[str], UserPattern]
"""Returns the compiled pattern; raises ValueError with the reason."""


class UserRule(NamedTuple):
    id: str
    pattern: UserPattern
    keywords: tuple[bytes, ...] = ()
    """One of them is in each text with a match, in any case of letters; empty: no text is ruled out."""
    entropy: float = 0.0
    """Minimum entropy of a secret, in bits per character."""
    is_secret: Callable[[bytes], bool] = bool
    is_allowed: Callable[[bytes, bytes, bytes], bool] | None = None
    """Called with the secret, its match and its line; True for a match that is not redacted."""
    literals: tuple[str, ...] = ()
    """For the prefilter: one of them is in each match, in this case of letters."""

    def matches(self, text: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and rule of the secrets in a text."""
        matches = zip(self.pattern.spans(text), self.pattern.group_spans(text), strict=True)
        line, line_end = b"", -1
        for (match_start, match_end), (start, end) in matches:
            secret = text[start:end]
            if not secret or not self.is_secret(secret) or (self.entropy and entropy(secret) <= self.entropy):
                continue
            if self.is_allowed is not None:
                if end > line_end:
                    line_end = text.find(b"\n", end) % (len(text) + 1)
                    line = text[text.rfind(b"\n", 0, start) + 1 : line_end]
                if self.is_allowed(secret, text[match_start:match_end], line):
                    continue
            yield start, end, f"rule:{self.id}"


class UserRules:
    """The rules of all files of a user."""

    def __init__(self, rules: Iterable[UserRule]) -> None:
        self._rules = list(rules)
        self.literals = [literal for rule in self._rules for literal in rule.literals]
        self.is_thorough = any(not rule.literals for rule in self._rules)
        """True if a rule has no literal for the prefilter."""
        keywords = {word: None for rule in self._rules for word in rule.keywords}
        self._keywords = list(keywords)
        self._search = BytesAhoCorasick(self._keywords, matchkind=MatchKind.Standard) if keywords else None

    def matches(self, text: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield start, end and rule of the secrets in a text."""
        seen: set[bytes] = set()
        if self._search is not None:
            found = self._search.find_matches_as_indexes(text.lower(), overlapping=True)
            seen = {self._keywords[number] for number, *_ in found}
        for rule in self._rules:
            if not rule.keywords or not seen.isdisjoint(rule.keywords):
                yield from rule.matches(text)


def read_file(text: str, name: str, compiled: Compile) -> tuple[list[UserRule], str]:
    """Return the rules of a file, and one line on what is not honoured; raise ValueError with file, rule and reason."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{name}: {error}") from None
    try:
        if "format" in tables:
            if other := sorted(tables.keys() - {"format"}):
                raise ValueError(f"unknown key {other[0]}")
            return [_of_format(each, compiled) for each in read_formats(tables["format"])], ""
        if "rules" not in tables:
            raise ValueError("no rules: write [[format]] tables, or use the [[rules]] of gitleaks")
        read = gitleaks.read(tables)
        rules = [_of_gitleaks(rule, compiled) for rule in read.rules]
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return rules, f"{name}: {read.ignored}" if read.ignored else ""


def _of_format(each: TokenFormat, compiled: Compile) -> UserRule:
    try:
        pattern = compiled(each.pattern)
    except ValueError as error:
        raise FormatError(repr(each.id), f"pattern: {error}") from None
    return UserRule(each.id, pattern, (), each.entropy, CHECKS[each.check], None, each.literals)


def _of_gitleaks(rule: gitleaks.GitleaksRule, compiled: Compile) -> UserRule:
    try:
        pattern = compiled(gitleaks.portable(rule.regex, rule.group))
        allowed = [_allowed(each, compiled) for each in rule.allowlists]
    except ValueError as error:
        raise ValueError(f"rule {rule.id!r}: {error}") from None

    def is_allowed(secret: bytes, match: bytes, line: bytes) -> bool:
        return any(test(secret, match, line) for test in allowed)

    keywords = tuple(word.lower().encode() for word in rule.keywords)
    return UserRule(rule.id, pattern, keywords, rule.entropy, bool, is_allowed if allowed else None)


def _allowed(allowlist: gitleaks.Allowlist, compiled: Compile) -> Callable[[bytes, bytes, bytes], bool]:
    patterns = [compiled(gitleaks.portable(regex, None)) for regex in allowlist.regexes]
    stopwords = [word.lower().encode() for word in allowlist.stopwords]

    def test(secret: bytes, match: bytes, line: bytes) -> bool:
        target = {"match": match, "line": line}.get(allowlist.target, secret)
        results = []
        if patterns:
            results.append(any(next(pattern.group_spans(target), None) is not None for pattern in patterns))
        if stopwords:
            lowered = secret.lower()
            results.append(any(word in lowered for word in stopwords))
        return all(results) if allowlist.needs_all else any(results)

    return test
