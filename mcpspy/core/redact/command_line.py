"""Redact the command line of a server, for the header of a recording.

An option's value may be the next word; everything else (`NAME=value`, tokens) is plain text, with the secrets of
URLs. Of `${VAR:-default}`, only the default can be a secret.
"""

from __future__ import annotations

import re

from mcpspy.core.redact.patterns import NameVerdict
from mcpspy.core.redact.text import SecretSpan
from mcpspy.core.redact.url import secret_part, url_spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.redact.config import RedactionRules
    from mcpspy.core.redact.walker import Mask

_OPTION = re.compile(rb"--?(?P<name>[A-Za-z][A-Za-z0-9_.-]*)(?P<sign>=?)(?P<value>.*)", re.DOTALL)
_LOGINS = {"-u": "curl", "--user": "curl", "-U": "curl", "--proxy-user": "curl"}
"""Options whose value is `user:password`, and the program they belong to."""

_PASSWORDS = {"-p": ("sshpass", "login"), "-a": ("redis-cli",)}
"""Options whose value is a password, and the programs they belong to: `docker login`, `az login` …"""

_PROGRAMS = frozenset((*_LOGINS, *_PASSWORDS))

_HEADERS = ("-H", "--header", "--headers")
_HEADER = re.compile(
    rb"(?P<name>[A-Za-z][A-Za-z0-9_ -]*)(?P<sign>[:=])[ ]*(?:(?i:bearer|basic|digest|token|apikey|negotiate)[ ]+)?(?P<value>.*)",
    re.DOTALL,
)
_SETTING = re.compile(rb"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)", re.DOTALL)
_NOT_SECRET = re.compile(rb"-[A-Za-z-]|[0-9]{1,3}\Z")


def command(
    words: list[str], rules: RedactionRules, mask: Mask, report: Callable[[str, tuple[str, ...]], None]
) -> list[str]:
    redacted: list[str] = []
    expected = False
    for number, word in enumerate(words):
        data = _bytes(word)
        before = words[number - 1] if number else ""
        is_header = before in _HEADERS
        option = _HEADER.fullmatch(data) if is_header else _OPTION.fullmatch(data) or _SETTING.fullmatch(data)
        if option is not None and rules.verdict(option["name"]) == NameVerdict.NOTHING:
            option = None
        programs = [word.rpartition("/")[2] for word in words[:number]] if before in _PROGRAMS else []
        is_password = any(name in programs for name in _PASSWORDS.get(before, ()))
        found: list[SecretSpan] = []
        if _LOGINS.get(before) in programs and b":" in data:
            found = _value(data, data.index(b":") + 1)
        elif is_password or (expected and not _NOT_SECRET.match(data)):
            found = _value(data, 0)
        elif not expected and option is not None:
            found = _value(data, option.start("value"))
        found = found or url_spans(data, rules)
        expected = option is not None and data.startswith(b"-") and not option["value"]
        pieces: list[bytes] = []
        done = 0
        for start, end, rule in found:
            pieces += (data[done:start], mask(data[start:end]))
            report(rule, ("command", str(number)))
            done = end
        redacted.append(b"".join([*pieces, data[done:]]).decode("utf-8", "surrogateescape"))
    return redacted


def _bytes(word: str) -> bytes:
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # A surrogate that represents no byte: in a recording of another program.
        return word.encode("utf-8", "surrogatepass")


def _value(data: bytes, start: int) -> list[SecretSpan]:
    """Return the secret in the value of a secret option, from `start` to the end of its word."""
    part = secret_part(data, start, len(data))
    return [] if part is None else [SecretSpan(*part, "argv")]
