"""The shapes of configurations: where the servers are in a file, and the layout of an entry.

The files of known hosts have one shape or two; in the file of an unknown host, mcpspy looks for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import ANY, STANDARD, ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry, servers
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.errors import UsageError

MCP_SERVERS = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), STANDARD)
UNTYPED = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), EntryLayout(stdio=None))
"""For hosts that document no `type`."""
VSCODE = ServersLocation(ConfigSyntax.JSON, ("servers",), STANDARD)
ZED = ServersLocation(ConfigSyntax.JSON, ("context_servers",), EntryLayout(stdio=None))
CODEX = ServersLocation(
    ConfigSyntax.TOML,
    ("mcp_servers",),
    EntryLayout(
        headers=("http_headers",),
        stdio=None,
        bearer="bearer_token_env_var",
        variables="env_http_headers",
        passed="env_vars",
    ),
)
# `httpUrl` is streamable HTTP and `url` is HTTP+SSE; the first one wins. `type` is `http` or `sse` only.
GEMINI = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), EntryLayout(url=("httpUrl", "url"), stdio=None))
WINDSURF = ServersLocation(
    ConfigSyntax.JSON, ("mcpServers",), EntryLayout(url=("serverUrl", "url"), stdio=None)
)
CONTINUE = ServersLocation(
    ConfigSyntax.YAML, ("mcpServers",), EntryLayout(headers=("requestOptions", "headers"), named=True)
)
AMP = ServersLocation(ConfigSyntax.JSON, ("amp.mcpServers",), EntryLayout(stdio=None))
CRUSH = ServersLocation(ConfigSyntax.JSON, ("mcp",), STANDARD)
# Goose fills in variables in headers, from `env_keys` and the keyring, but not in `envs`.
GOOSE = ServersLocation(
    ConfigSyntax.YAML,
    ("extensions",),
    EntryLayout(
        command="cmd",
        env="envs",
        url=("uri",),
        builtin=("builtin", "platform", "frontend", "inline_python"),
        fills_env=False,
    ),
)
# Its schema refuses `oauth` in a local entry.
_OPENCODE = EntryLayout(
    env="environment", is_list=True, stdio="local", remote=("remote",), only_remote=("oauth",)
)
OPENCODE = ServersLocation(ConfigSyntax.JSON, ("mcp",), _OPENCODE)
OPENCODE_2 = ServersLocation(ConfigSyntax.JSON, ("mcp", "servers"), _OPENCODE)
"""OpenCode 2 has the servers one level deeper."""
DEVCONTAINER = ServersLocation(
    ConfigSyntax.JSON, ("customizations", "vscode", "mcp", "servers"), STANDARD
)  # https://code.visualstudio.com/docs/agents/reference/mcp-configuration
PLUGIN = ServersLocation(ConfigSyntax.JSON, (), STANDARD)
"""The `.mcp.json` of a Claude Code plugin, if it has no `mcpServers`: https://code.claude.com/docs/en/mcp"""
# https://www.librechat.ai/docs/configuration/librechat_yaml/object_structure/mcp_servers
LIBRECHAT = ServersLocation(ConfigSyntax.YAML, ("mcpServers",), STANDARD)


def _anywhere(*keys: str) -> tuple[ServersLocation, ServersLocation]:
    """Return the locations of an object and of a list of servers, in the file of an unknown host."""
    found = ServersLocation(ConfigSyntax.JSON, keys, ANY)
    return found, found._replace(layout=ANY._replace(named=True))


SHAPES: tuple[ServersLocation, ...] = (
    *_anywhere("mcpServers"),
    *_anywhere("servers"),
    *_anywhere("context_servers"),
    OPENCODE_2,
    *_anywhere("mcp", "servers"),
    OPENCODE,
    *_anywhere("mcp"),
    AMP,
    DEVCONTAINER,
    PLUGIN,
    CODEX,
    CONTINUE,
    LIBRECHAT,
    GOOSE,
)
"""All shapes, in the order in which mcpspy looks for them."""


def locate(document: Node, locations: Iterable[ServersLocation]) -> ServersLocation | None:
    """Return the first location with servers, otherwise the deepest one that exists; None without any."""
    present = []
    for location in locations:
        try:
            found = servers(document, location.keys, location.layout)
        except UsageError:  # A value of another type.
            continue
        if location.keys:
            is_here = any(_fits(server, location.layout) for server in found)
            if document.get(*location.keys) is not None:
                present.append(location)
        else:
            found = [server for server in found if server.name != "$schema"]
            is_here = bool(found) and all(_fits(server, location.layout) for server in found)
        if is_here:
            return location
    return max(present, key=lambda location: len(location.keys), default=None)


def places(syntax: ConfigSyntax) -> str:
    """Return the keys under which mcpspy looks for servers in a file of this syntax."""
    keys = [".".join(shape.keys) for shape in SHAPES if shape.syntax is syntax and shape.keys]
    return ", ".join(dict.fromkeys(keys))


def _fits(server: ServerEntry, layout: EntryLayout) -> bool:
    if server.what is EntryKind.INVALID:
        return False
    type_ = server.node.get("type")
    if server.argv or not layout.remote:
        return True
    return type_ is not None and type_.kind is NodeKind.STRING and type_.text in layout.remote
