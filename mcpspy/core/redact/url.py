"""Secrets in URLs: the password, and the values of secret parameters.

In a URL, the structure shows what a value is, so `?token=abc` is a secret whatever `abc` looks like, and a password
may contain `:` and `@`. `core.redact.text` finds tokens, which are secret anywhere.
"""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from mcpspy.core.redact.patterns import NameVerdict, is_harmless, is_random
from mcpspy.core.redact.text import SecretSpan, is_documented, merged_spans, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpspy.core.redact.config import RedactionRules

PARAMETERS = frozenset(
    b"key sig signature xamzsignature xgoogsignature code auth pwd jwt sas codeverifier".split()
)
"""Parameters that are secret in a URL, in addition to the names that are secret everywhere; without separators."""

SEGMENT = 16
"""Minimum bytes of a part of a path that looks random, as in `https://example.com/s/KEY/mcp`."""

_URL = re.compile(
    rb"""(?x)
    (?<![A-Za-z0-9]) [A-Za-z][A-Za-z0-9+.-]{0,31}:// (?P<authority> [^\s"'`<>/?\#]* )
    (?P<path> [^\s"'`<>?\#]* ) (?P<rest> [^\s"'`<>]* )
    """
)
_PARAMETER = re.compile(rb"(?<=[?&;#])(?P<name>[^?&;#=]{1,160})=(?P<value>\$\{[^{}]*\}|[^&;#]*)")
_DEFAULT = re.compile(rb"\$\{[A-Za-z_][A-Za-z0-9_]*:?[-=](?P<value>[^{}]*)\}")
_SEGMENT = re.compile(rb"[^/]+")
_SEPARATORS = re.compile(rb"[^a-z0-9]+")
_SMALL_NUMBER = re.compile(rb"[0-9]{1,3}")


def url_spans(text: bytes, rules: RedactionRules, *, hides_segments: bool = False) -> list[SecretSpan]:
    """Return the secrets of a text that is a URL or contains some, in order and without overlaps.

    `hides_segments` also returns parts of paths that look random. A recording keeps them: they identify the server.
    """
    found = spans(text, rules)
    for url in _URL.finditer(text):
        found += _userinfo(url["authority"], url.start("authority"))
        found += _parameters(url["rest"], url.start("rest"), rules)
        if hides_segments:
            found += _segments(url["path"], url.start("path"))
    return merged_spans(found)


def secret_part(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of the secret in the value of a secret name; None if it is harmless.

    Of `${VAR:-default}`, only the default can be a secret.
    """
    variable = _DEFAULT.fullmatch(data, start, end)
    if variable is not None:
        start, end = variable.span("value")
    return None if is_harmless(data[start:end]) else (start, end)


def _userinfo(authority: bytes, start: int) -> Iterator[SecretSpan]:
    user, at, _host = authority.rpartition(b"@")
    name, colon, password = user.partition(b":")
    value = password if colon else name
    if not at or is_harmless(value) or is_documented(value) or not (colon or is_random(value, SEGMENT)):
        return
    end = start + len(user)
    yield SecretSpan(end - len(value), end, "url-password")


def _parameters(rest: bytes, start: int, rules: RedactionRules) -> Iterator[SecretSpan]:
    for parameter in _PARAMETER.finditer(rest):
        name = unquote_to_bytes(parameter["name"])
        value = parameter["value"]
        if parameter.end() == len(rest):
            value = value.rstrip(b":,.)")  # The URL may be in a sentence.
        is_secret = (
            rules.verdict(name) != NameVerdict.NOTHING or _SEPARATORS.sub(b"", name.lower()) in PARAMETERS
        )
        part = (
            secret_part(rest, parameter.start("value"), parameter.start("value") + len(value))
            if is_secret
            else None
        )
        if part is not None and not _SMALL_NUMBER.fullmatch(value):
            yield SecretSpan(start + part[0], start + part[1], "url-parameter")


def _segments(path: bytes, start: int) -> Iterator[SecretSpan]:
    for segment in _SEGMENT.finditer(path):
        if is_random(segment[0], SEGMENT) and not is_harmless(segment[0]):
            yield SecretSpan(start + segment.start(), start + segment.end(), "url-path")
