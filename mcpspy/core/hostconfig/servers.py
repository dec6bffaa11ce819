"""The servers of a configuration: the kind of each entry, and whether it is wrapped.

An entry that cannot be read is returned with a reason. Also owns the default timeouts of hosts by
`clientInfo` name, looked up in November 2026. Claude Code's default is some 28 hours and the Python SDK has
none; users may configure another time, and some hosts restart it with each progress notification.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.core.hostconfig import command_line, jsonc, toml, yaml
from mcpspy.core.hostconfig.command_line import ProxyCommand
from mcpspy.core.hostconfig.layout import ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.errors import UsageError


class EntryKind(StrEnum):
    STDIO = "stdio"
    URL = "url"
    ODD = "odd"
    """Neither, or both."""


class ServerEntry(NamedTuple):
    name: str
    node: Node
    what: EntryKind
    """For a wrapped entry, its original kind."""
    proxy: ProxyCommand | None
    """The command line of mcpspy, if it is wrapped."""
    argv: list[str]
    url: str
    """For a wrapped URL entry, the upstream of the bridge."""
    why: str = ""

    @property
    def disabled(self) -> bool:
        for key, off in (("disabled", "true"), ("enabled", "false")):
            node = self.node.get(key)
            if node is not None and (node.kind, node.text) == (NodeKind.OTHER, off):
                return True
        return False


@lru_cache(maxsize=8)
def read(text: str, syntax: ConfigSyntax) -> Node:
    """Parse a document; raise UsageError with the place of the error.

    Verifying a change reads the same few texts several times, and YAML is parsed at 100 KB/s.
    """
    return {ConfigSyntax.JSON: jsonc.read, ConfigSyntax.TOML: toml.read, ConfigSyntax.YAML: yaml.read}[
        syntax
    ](text)


def servers(document: Node, keys: tuple[str, ...], layout: EntryLayout) -> list[ServerEntry]:
    """Return the servers under a key, none if it is missing; raise UsageError if it is something else."""
    node = document.get(*keys)
    if node is None or (node.kind, node.text) in ((NodeKind.OTHER, "null"), (NodeKind.OTHER, "")):
        return []
    if node.kind is not (NodeKind.ARRAY if layout.named else NodeKind.OBJECT):
        raise UsageError(f"{'.'.join(keys)} is no {'list' if layout.named else 'object'} of servers")
    if not layout.named:
        known = {member.key: member.node for member in node.members}
        return [_server(name, entry, layout) for name, entry in known.items()]
    return [
        _server(name.text, item.node, layout)
        for item in node.items
        if (name := item.node.get("name")) is not None and name.kind is NodeKind.STRING
    ]


def _server(name: str, node: Node, layout: EntryLayout) -> ServerEntry:
    command, args = node.get("command"), node.get("args")
    url = next((found for key in layout.url if (found := node.get(key)) is not None), None)

    def unusable(why: str) -> ServerEntry:
        return ServerEntry(name, node, EntryKind.ODD, None, [], "", why)

    if node.kind is not NodeKind.OBJECT:
        return unusable("its entry is no object")
    if command is not None and url is not None:
        return unusable("it has both a command and a URL")
    if command is not None:
        if command.kind is not NodeKind.STRING:
            return unusable("its command is no string")
        if args is not None and args.kind is not NodeKind.ARRAY:
            return unusable("its args are no list")
        line = [command.text, *(args.strings if args is not None else [])]
        proxy = command_line.read(line)
        if proxy is not None and proxy.does == "bridge":
            return ServerEntry(name, node, EntryKind.URL, proxy, line, _upstream(node, proxy))
        return ServerEntry(name, node, EntryKind.STDIO, proxy, line, "")
    if url is None:
        return unusable("it has neither a command nor a URL")
    if url.kind is not NodeKind.STRING:
        return unusable("its URL is no string")
    return ServerEntry(name, node, EntryKind.URL, None, [], url.text)


def _upstream(node: Node, proxy: ProxyCommand) -> str:
    """Return the upstream of a bridge, which may be in a variable of the entry."""
    upstream = proxy.option("--upstream") or ""
    variable = node.get("env", upstream[2:-1]) if upstream.startswith("${") else None
    return variable.text if variable is not None else upstream


def origin(url: str) -> str:
    """Return the part of a URL that holds no secret."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


class HostTimeouts(NamedTuple):
    host: str
    seconds: float
    method: str = ""
    """The method of the requests; empty: all."""


_HOSTS = {
    # Not documented; the default of the TypeScript SDK, and what its users measure:
    # https://github.com/anthropics/claude-code/issues/22542
    "claude-ai": HostTimeouts("Claude Desktop", 60),
    # DEFAULT_MCP_TIMEOUT_SECONDS: https://github.com/cline/cline/blob/main/src/shared/mcp.ts
    "Cline": HostTimeouts("Cline", 60, "tools/call"),
    # MCP_DEFAULT_TIMEOUT_MSEC:
    # https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/tools/mcp-client.ts
    "gemini-cli-mcp-client": HostTimeouts("Gemini CLI", 600, "tools/call"),
}


def response_timeout(client: str, method: str) -> HostTimeouts | None:
    """Return how long a client waits for the response to this method; None if unknown."""
    for name, found in _HOSTS.items():
        # Gemini CLI adds the name of the server to its own.
        if (client == name or client.startswith(f"{name}-")) and found.method in ("", method):
            return found
    return None
