"""The server of an entry in a host's configuration, as the host would start it or connect to it."""

from __future__ import annotations

import difflib
import os
import re

from mcpspy.core.hostconfig.original import original
from mcpspy.core.hostconfig.servers import ServerEntry
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.client.base import ServerAddress, ServerCommand, ServerTarget
from mcpspy.io.hosts.configuration import ConfigTarget, find

_VARIABLE = re.compile(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
"""`${NAME}` and `${NAME:-default}` of Claude Code, Gemini CLI and others, `${env:NAME}` of VS Code and Cursor."""


def server_of(which: str) -> tuple[str, ServerTarget]:
    """Return name and server of `HOST/SERVER`, or of `FILE/SERVER`. Raise UsageError or CannotStart."""
    host, slash, name = which.rpartition("/")
    if not slash or not host or not name:
        raise UsageError(
            sanitize(f"{which}: not an entry of a host"), "use HOST/SERVER; mcpspy hosts lists them"
        )
    configuration = find(host)
    entries = {entry.name: entry for entry in configuration.servers()}
    if name not in entries:
        near = difflib.get_close_matches(name, entries, 1)
        known = f"did you mean {near[0]}?" if near else f"it has {', '.join(entries) or 'none'}"
        raise UsageError(sanitize(f"{host}: no server {name}"), sanitize(known))
    return name, target_of(configuration, entries[name])


def target_of(configuration: ConfigTarget, entry: ServerEntry) -> ServerTarget:
    """Return the server of an entry; of a wrapped one, the original server. Raise UsageError."""
    server = original(entry, configuration.location.layout)
    if server is None:
        raise UsageError(sanitize(f"{configuration.file.path}: {entry.name}: {entry.why}"))
    if server.url:
        headers = tuple((name, _filled(entry, value)) for name, value in server.headers.items())
        return ServerAddress(_filled(entry, server.url), headers)
    folder = os.path.expanduser(_filled(entry, server.cwd)) if server.cwd else None
    variables = {name: _filled(entry, value) for name, value in server.environment.items()}
    return ServerCommand([_filled(entry, word) for word in server.command], folder, variables)


def _filled(entry: ServerEntry, text: str) -> str:
    """Return a text with the values of its variables. Raise UsageError for one that is not set and has no default."""

    def value(found: re.Match[str]) -> str:
        known = os.environ.get(found[1], found[2])
        if known is None:
            raise UsageError(sanitize(f"{entry.name}: environment variable {found[1]} is not set"))
        return known

    return _VARIABLE.sub(value, text)
