"""The server of an entry, without mcpspy: of a wrapped entry, the original one."""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.hostconfig.layout import EntryLayout
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.core.hostconfig.wrap import unwrapped_headers

_OWN = "MCPSPY_"
"""Prefix of the variables that `mcpspy wrap` adds."""


class OriginalServer(NamedTuple):
    """Texts of the file: variables are not replaced. Either a command or a URL."""

    command: list[str]
    cwd: str
    """Its working directory; empty if the entry has none."""
    environment: dict[str, str]
    url: str
    headers: dict[str, str]


def original(entry: ServerEntry, layout: EntryLayout) -> OriginalServer | None:
    """Return the server of an entry; None for an invalid entry."""
    if entry.what is EntryKind.INVALID:
        return None
    if entry.what is EntryKind.URL:
        headers = _texts(entry.node.get(*layout.headers))
        if entry.proxy is not None:
            headers |= dict(unwrapped_headers(entry, entry.proxy, layout))
        return OriginalServer([], "", {}, entry.url, headers)
    words = entry.argv if entry.proxy is None else entry.argv[entry.proxy.at :]
    cwd, variables = entry.node.get("cwd"), _texts(entry.node.get(layout.env))
    own = {name: value for name, value in variables.items() if not name.startswith(_OWN)}
    return OriginalServer(words, "" if cwd is None else cwd.text, own, "", {})


def _texts(node: Node | None) -> dict[str, str]:
    """Return the members of an object that are texts."""
    members = () if node is None else node.members
    return {each.key: each.node.text for each in members if each.node.kind is NodeKind.STRING}
