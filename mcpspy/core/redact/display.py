"""Command lines, URLs and other text without secrets, for terminals and logs.

Uses the rules of recordings. `[redacted]` has no tag, because the text belongs to no recording.
"""

from __future__ import annotations

from functools import cache, lru_cache

from mcpspy.core.sanitize import sanitize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpspy.core.redact.config import RedactionRules

REDACTED = "[redacted]"

LEAST = 4
"""Minimum length of a secret of a command line that is searched for in a text: shorter ones are in every text."""


def redacted_command(words: Iterable[str], rules: RedactionRules | None = None) -> list[str]:
    """Return the words of a command line, redacted."""
    from mcpspy.core.redact.command_line import command

    return command(list(words), rules or _builtin(), lambda _: REDACTED.encode(), lambda *_: None)


def shown_command(words: Iterable[str]) -> str:
    """Return a command line with the quotes of a shell, redacted, as one line without control characters."""
    import shlex

    return sanitize(shlex.join(redacted_command(words)))


def redacted_url(url: str, rules: RedactionRules | None = None) -> str:
    """Return a URL, redacted; also without parts of its path that look random."""
    return _redacted(url, rules, hides_segments=True)


def redacted_text(text: str, argv: Iterable[str] = ()) -> str:
    """Return a text, redacted, such as an error that may contain URLs or a peer's words.

    `argv` is the command line of this process; its secrets are also redacted where the text repeats them.
    """
    words = tuple(argv)
    if not _is_suspect("\n".join((text, *words))):
        return text
    for secret in _secrets(words):
        text = text.replace(secret, REDACTED)
    return _redacted(_read(text), None, hides_segments=False)


def _read(text: str) -> str:
    """Return a text without the secrets of JSON in it: a traceback may contain messages."""
    from mcpspy.core.redact.walker import apply, text_edits

    data = text.encode("utf-8", "surrogatepass")
    edits = text_edits(data, _builtin(), lambda _: REDACTED.encode())
    return apply(data, edits).decode("utf-8", "surrogatepass") if edits else text


def _is_suspect(text: str) -> bool:
    """Return False if a text certainly contains no secret. `mcpspy run` prints lines without the rules then."""
    from mcpspy.core.redact.prefilter import builtin_prefilter
    from mcpspy.core.redact.redactor import is_suspect_command

    return is_suspect_command(text.encode("utf-8", "surrogatepass"), builtin_prefilter())


@lru_cache(maxsize=4)
def _secrets(words: tuple[str, ...]) -> list[str]:
    """Return the secrets of a command line, the longest first."""
    from mcpspy.core.redact.command_line import command

    found: set[str] = set()

    def collect(secret: bytes) -> bytes:
        found.add(secret.decode("utf-8", "surrogateescape"))
        return secret

    command(list(words), _builtin(), collect, lambda *_: None)
    return sorted(
        (secret for secret in found if len(secret) >= LEAST and secret != REDACTED), key=len, reverse=True
    )


def _redacted(text: str, rules: RedactionRules | None, *, hides_segments: bool) -> str:
    from mcpspy.core.redact.url import url_spans

    data = text.encode("utf-8", "surrogatepass")
    pieces, done = [], 0
    for start, end, _ in url_spans(data, rules or _builtin(), hides_segments=hides_segments):
        if data[start:end] != REDACTED.encode():
            pieces += [data[done:start], REDACTED.encode()]
            done = end
    return b"".join([*pieces, data[done:]]).decode("utf-8", "surrogatepass") if pieces else text


@cache
def _builtin() -> RedactionRules:
    from mcpspy.core.redact.config import RedactionRules

    return RedactionRules()
