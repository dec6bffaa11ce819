"""A server's URL, and headers for it: `Name: value`, with variables of the environment.

Owns that no secret has to stand in a command line. Never shows a value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from mcpspy.core.protocol.http_headers import Upstream, read_upstream
from mcpspy.errors import UsageError

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def read_header(option: str, text: str) -> tuple[str, str]:
    """Return name and value; raise UsageError, in the name of `option`."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip() or "\n" in text or "\r" in text:
        raise UsageError(f"{option} takes 'Name: value'")
    return name.strip(), filled(f"{option} {name.strip()}", value).strip()


def read_headers(option: str, texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return names and values; raise UsageError, in the name of `option`."""
    return tuple(read_header(option, text) for text in texts)


def read_endpoint(option: str, url: str, given: str | None = None) -> Upstream:
    """Return the server that a URL names, `given` with variables; raise UsageError, in the name of `option`."""
    upstream = read_upstream(url)
    if upstream is None:
        raise UsageError(
            f"{option} {given or url} is not a URL of a server", "like http://localhost:3001/mcp"
        )
    return upstream


def filled(option: str, text: str) -> str:
    """Return the text with each `${NAME}` replaced by that variable of the environment."""
    missing = [variable for variable in _VARIABLE.findall(text) if variable not in os.environ]
    if missing:
        raise UsageError(
            f"{option}: the variable {missing[0]} is not set", "a host's config has an env for it"
        )
    return _VARIABLE.sub(lambda found: os.environ[found[1]], text)
