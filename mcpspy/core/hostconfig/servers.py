"""Servers of a configuration: the kind of each entry, and the mcpspy command line of wrapped entries.

An invalid entry is returned with a reason. The module also holds the default timeouts of hosts by `clientInfo`
name, as of November 2026. The default of Claude Code is about 28 hours and the Python SDK has none; users may
configure another timeout, and some hosts restart it at each progress notification.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.core.hostconfig import command_line, jsonc, toml, yaml
from mcpspy.core.hostconfig.command_line import ProxyCommand
from mcpspy.core.hostconfig.layout import ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.tree import Node, NodeKind, where
from mcpspy.core.redact.display import redacted_url
from mcpspy.errors import UsageError

_VARIABLE = re.compile(r"\$\{[^{}]*\}")


class EntryKind(StrEnum):
    STDIO = "stdio"
    URL = "url"
    INVALID = "invalid"
    """Has neither a command nor a URL, or both, or one of a wrong type."""


class ServerEntry(NamedTuple):
    name: str
    node: Node
    what: EntryKind
    """The kind; of a wrapped entry, the original one."""
    proxy: ProxyCommand | None
    """The command line of mcpspy if the entry is wrapped."""
    argv: list[str]
    url: str
    """The URL; of a wrapped URL entry, the upstream of the bridge."""
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
    """Parse a document; raise UsageError with the position of the error.

    The result is cached: verifying a change reads the same texts several times, and YAML is parsed at 100 KB/s.
    """
    return {ConfigSyntax.JSON: jsonc.read, ConfigSyntax.TOML: toml.read, ConfigSyntax.YAML: yaml.read}[
        syntax
    ](text)


def servers(document: Node, keys: tuple[str, ...], layout: EntryLayout) -> list[ServerEntry]:
    """Return the servers at a path of keys; none if it does not exist. Raise UsageError for a value of another type."""
    node = document.get(*keys)
    if node is None or (node.kind, node.text) in ((NodeKind.OTHER, "null"), (NodeKind.OTHER, "")):
        return []
    if node.kind is not (NodeKind.ARRAY if layout.named else NodeKind.OBJECT):
        raise UsageError(f"{'.'.join(keys)} is not {'a list' if layout.named else 'an object'} of servers")
    if not layout.named:
        known = {member.key: member.node for member in node.members}
        return [_server(name, entry, layout) for name, entry in known.items()]
    return [
        _server(name.text, item.node, layout)
        for item in node.items
        if (name := item.node.get("name")) is not None and name.kind is NodeKind.STRING
    ]


def repeated(text: str, node: Node, keys: tuple[str, ...]) -> list[str]:
    """Return the keys that the objects on a path have twice, with their places: parsers keep only the last one."""
    found, current = [], node
    for depth in range(len(keys) + 1):
        seen: set[str] = set()
        for member in current.members:
            if member.key in seen:
                found.append(
                    f"{where(text, member.start)}: {member.key!r} is given twice, and only the last one counts"
                )
            seen.add(member.key)
        below = current.get(keys[depth]) if depth < len(keys) else None
        if below is None:
            break
        current = below
    return found


def misplaced(document: Node, layout: EntryLayout) -> str:
    """Return the path of the first entry with a command or URL, at most two levels deep; empty if there is none."""
    for member in document.members:
        for path, node in (
            (member.key, member.node),
            *((f"{member.key}.{each.key}", each.node) for each in member.node.members),
        ):
            values = [node.get(key) for key in (layout.command, *layout.url)]
            if any(value is not None and value.kind in (NodeKind.STRING, NodeKind.ARRAY) for value in values):
                return path
    return ""


def doubts(server: ServerEntry, layout: EntryLayout) -> list[str]:
    """Return what hosts refuse or misunderstand in the entry of a server that mcpspy can read."""
    found = []
    env = server.node.get(layout.env)
    names = [member.key for member in env.members if member.node.kind is not NodeKind.STRING] if env else []
    if names:
        found.append(f"{layout.env} has values that are not strings: {', '.join(names)}")
    program = server.argv[0] if server.argv and server.what is EntryKind.STDIO else ""
    if len(server.argv) == 1 and re.match(r"[\w.-]+ \S", program):
        found.append(f"{layout.command} {program!r} holds the arguments too, which belong into {layout.args}")
    return found


def _server(name: str, node: Node, layout: EntryLayout) -> ServerEntry:
    command = node.get(layout.command)
    args = None if layout.is_list else node.get(layout.args)
    url = next((found for key in layout.url if (found := node.get(key)) is not None), None)

    def unusable(why: str) -> ServerEntry:
        return ServerEntry(name, node, EntryKind.INVALID, None, [], "", why)

    if node.kind is not NodeKind.OBJECT:
        return unusable("its entry is not an object")
    if command is not None and url is not None:
        return unusable("it has both a command and a URL")
    if command is not None:
        if layout.is_list:
            if not _is_list_of_words(command):
                return unusable(f"its {layout.command} is not a list of strings")
            line = command.strings
        elif command.kind is not NodeKind.STRING:
            return unusable(f"its {layout.command} is not a string")
        elif args is not None and args.kind is not NodeKind.ARRAY:
            return unusable(f"its {layout.args} are not a list")
        else:
            line = [command.text, *(args.strings if args is not None else [])]
        proxy = command_line.read(line)
        if proxy is not None and proxy.does == "bridge":
            return ServerEntry(name, node, EntryKind.URL, proxy, line, _upstream(node, proxy, layout))
        return ServerEntry(name, node, EntryKind.STDIO, proxy, line, "")
    if url is None:
        type_ = node.get("type")
        if type_ is not None and type_.text in layout.builtin:
            return unusable(f"it is a part of the host (type {type_.text})")
        return unusable("it has neither a command nor a URL")
    if url.kind is not NodeKind.STRING:
        return unusable("its URL is not a string")
    return ServerEntry(name, node, EntryKind.URL, None, [], url.text)


def _is_list_of_words(node: Node) -> bool:
    return (
        node.kind is NodeKind.ARRAY
        and bool(node.items)
        and all(item.node.kind is NodeKind.STRING for item in node.items)
    )


def _upstream(node: Node, proxy: ProxyCommand, layout: EntryLayout) -> str:
    """Return the upstream of a bridge; the entry may hold it in a variable."""
    upstream = proxy.option("--upstream") or ""
    name = proxy.option("--upstream-env") or (upstream[2:-1] if upstream.startswith("${") else None)
    variable = node.get(layout.env, name) if name is not None else None
    return variable.text if variable is not None else upstream


def origin(url: str) -> str:
    """Return the scheme, host and port of a URL, the parts that hold no secret.

    Return a leading `${VAR:-default}` whole, except secrets in the default.
    """
    if variable := _VARIABLE.match(url):
        return redacted_url(variable[0])
    try:
        parts = urlsplit(url)
    except ValueError:
        return "its URL"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if parts.netloc else "its URL"


class HostTimeouts(NamedTuple):
    host: str
    seconds: float
    method: str = ""
    """The method that the timeout applies to; empty: all methods."""


_HOSTS = {
    # Not documented; this is the default of the TypeScript SDK, and users measure the same:
    # https://github.com/anthropics/claude-code/issues/22542
    "claude-ai": HostTimeouts("Claude Desktop", 60),
    # DEFAULT_MCP_TIMEOUT_SECONDS: https://github.com/cline/cline/blob/main/src/shared/mcp.ts
    "Cline": HostTimeouts("Cline", 60, "tools/call"),
    # MCP_DEFAULT_TIMEOUT_MSEC:
    # https://github.com/google-gemini/gemini-cli/blob/main/packages/core/src/tools/mcp-client.ts
    "gemini-cli-mcp-client": HostTimeouts("Gemini CLI", 600, "tools/call"),
}


def response_timeout(client: str, method: str) -> HostTimeouts | None:
    """Return the timeout of a client for the response to this method; None if it is unknown."""
    for name, found in _HOSTS.items():
        # Gemini CLI appends the name of the server to its own name.
        if (client == name or client.startswith(f"{name}-")) and found.method in ("", method):
            return found
    return None
