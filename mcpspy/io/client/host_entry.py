"""The server of an entry in a host's configuration, as the host would start it or connect to it."""

from __future__ import annotations

import difflib
import os
import re

from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry
from mcpspy.core.hostconfig.tree import Node, NodeKind
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
    layout = configuration.location.layout
    if entry.what is EntryKind.INVALID:
        raise UsageError(sanitize(f"{configuration.file.path}: {entry.name}: {entry.why}"))
    if entry.what is EntryKind.URL:
        headers = [(name, _filled(entry, value)) for name, value in texts(entry.node.get("headers"))]
        return ServerAddress(_filled(entry, entry.url), tuple(headers))
    words = entry.argv if entry.proxy is None else entry.argv[entry.proxy.at :]
    cwd = entry.node.get("cwd")
    variables = {name: _filled(entry, value) for name, value in texts(entry.node.get(layout.env))}
    folder = None if cwd is None else os.path.expanduser(_filled(entry, cwd.text))
    return ServerCommand([_filled(entry, word) for word in words], folder, variables)


def texts(node: Node | None) -> list[tuple[str, str]]:
    """Return the members of an object that are texts."""
    members = () if node is None else node.members
    return [(each.key, each.node.text) for each in members if each.node.kind is NodeKind.STRING]


def _filled(entry: ServerEntry, text: str) -> str:
    """Return a text with the values of its variables. Raise UsageError for one that is not set and has no default."""

    def value(found: re.Match[str]) -> str:
        known = os.environ.get(found[1], found[2])
        if known is None:
            raise UsageError(sanitize(f"{entry.name}: environment variable {found[1]} is not set"))
        return known

    return _VARIABLE.sub(value, text)
