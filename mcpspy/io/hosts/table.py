"""The table of hosts: the location of each configuration file, and the layout of a server in it.

Taken from the linked pages in November 2026; comments mention where sources disagree. To add a host, add an
entry.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax, EntryLayout

PROJECT = "<project>"
"""Placeholder for a key that is the folder of a project."""


class Host(NamedTuple):
    name: str
    title: str
    linux: tuple[str, ...]
    """Possible paths; the first one that exists is used. Relative paths are in the project's folder."""
    macos: tuple[str, ...]
    windows: tuple[str, ...]
    location: ServersLocation
    docs: str

    def paths(self, platform: str = sys.platform, environ: Mapping[str, str] = os.environ) -> list[Path]:
        """Return the possible paths on this system."""
        given = {"win32": self.windows, "darwin": self.macos}.get(platform, self.linux)
        folders = {
            # A relative path counts as unset (XDG base directories).
            name: value if (value := environ.get(variable, "")) and os.path.isabs(value) else default
            for name, (variable, default) in _FOLDERS.items()
        }
        return [Path(os.path.expanduser(path.format_map(folders))) for path in given]


_FOLDERS = {
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "library": ("", "~/Library/Application Support"),
    "roaming": ("APPDATA", "~/AppData/Roaming"),
    "local": ("LOCALAPPDATA", "~/AppData/Local"),
    "claude": ("CLAUDE_CONFIG_DIR", "~"),
    "codex": ("CODEX_HOME", "~/.codex"),
}

_JSON = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), STANDARD)
_VSCODE = ServersLocation(ConfigSyntax.JSON, ("servers",), STANDARD)
_ZED = ServersLocation(ConfigSyntax.JSON, ("context_servers",), EntryLayout(stdio=None))
_CODEX = ServersLocation(
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
_GEMINI = ServersLocation(ConfigSyntax.JSON, ("mcpServers",), EntryLayout(url=("httpUrl", "url"), stdio=None))
_CONTINUE = ServersLocation(
    ConfigSyntax.YAML, ("mcpServers",), EntryLayout(headers=("requestOptions", "headers"), named=True)
)


def _everywhere(*paths: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    return paths, paths, paths


def _in_vscode(path: str) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    at = f"Code/User/{path}"
    return (f"{{config}}/{at}",), (f"{{library}}/{at}",), (f"{{roaming}}/{at}",)


_CLAUDE_CODE = "https://code.claude.com/docs/en/mcp"
_CURSOR = "https://cursor.com/docs/mcp"
_VSCODE_DOCS = "https://code.visualstudio.com/docs/agents/reference/mcp-configuration"
_CODEX_DOCS = "https://developers.openai.com/codex/mcp"
_ZED_DOCS = "https://zed.dev/docs/ai/mcp"
_GEMINI_DOCS = "https://geminicli.com/docs/tools/mcp-server"
_CLINE = "https://docs.cline.bot/mcp/mcp-overview"
_ROO = "https://docs.roocode.com/features/mcp/using-mcp-in-roo"

HOSTS: tuple[Host, ...] = (
    Host(
        "claude-desktop",
        "Claude Desktop",
        # The documentation names macOS and Windows only; builds for Linux use Electron's default folder.
        ("{config}/Claude/claude_desktop_config.json",),
        ("{library}/Claude/claude_desktop_config.json",),
        # The documentation names the second path only. Since early 2026, Claude Desktop is installed as a package whose
        # writes Windows redirects to the first path. If both exist, the second belongs to an older installation.
        (
            "{local}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            "{roaming}/Claude/claude_desktop_config.json",
        ),
        _JSON,
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    ),
    Host("claude-code", "Claude Code, user", *_everywhere("{claude}/.claude.json"), _JSON, _CLAUDE_CODE),
    # Expands ${VAR} in args, and leaves unset variables unchanged (observed with 2.1.278; according to the
    # documentation, the file then fails to load). So the variables of mcpspy reach `bridge`.
    Host("claude-code-project", "Claude Code, project", *_everywhere(".mcp.json"), _JSON, _CLAUDE_CODE),
    Host(
        "claude-code-local",
        "Claude Code, local",
        *_everywhere("{claude}/.claude.json"),
        ServersLocation(ConfigSyntax.JSON, ("projects", PROJECT, "mcpServers"), STANDARD),
        _CLAUDE_CODE,
    ),
    Host("cursor", "Cursor, user", *_everywhere("~/.cursor/mcp.json"), _JSON, _CURSOR),
    Host("cursor-project", "Cursor, project", *_everywhere(".cursor/mcp.json"), _JSON, _CURSOR),
    # The file of the default profile; other profiles have their own in profiles/ID/.
    Host("vscode", "VS Code, user", *_in_vscode("mcp.json"), _VSCODE, _VSCODE_DOCS),
    Host("vscode-workspace", "VS Code, workspace", *_everywhere(".vscode/mcp.json"), _VSCODE, _VSCODE_DOCS),
    # The documentation names `serverUrl` and `url`, and both are read. Variables are ${env:NAME} or ${NAME}.
    Host(
        "windsurf",
        "Windsurf",
        *_everywhere("~/.codeium/windsurf/mcp_config.json"),
        ServersLocation(
            ConfigSyntax.JSON, ("mcpServers",), EntryLayout(url=("serverUrl", "url"), stdio=None)
        ),
        "https://docs.windsurf.com/windsurf/cascade/mcp",
    ),
    # Third parties describe a nested `source` with the URL or the command; Zed's own pages do not.
    Host(
        "zed",
        "Zed",
        ("{config}/zed/settings.json",),
        ("~/.config/zed/settings.json",),
        ("{roaming}/Zed/settings.json",),
        _ZED,
        _ZED_DOCS,
    ),
    Host("zed-project", "Zed, project", *_everywhere(".zed/settings.json"), _ZED, _ZED_DOCS),
    Host("codex", "Codex", *_everywhere("{codex}/config.toml"), _CODEX, _CODEX_DOCS),
    Host("codex-project", "Codex, project", *_everywhere(".codex/config.toml"), _CODEX, _CODEX_DOCS),
    Host("gemini", "Gemini CLI, user", *_everywhere("~/.gemini/settings.json"), _GEMINI, _GEMINI_DOCS),
    Host(
        "gemini-project", "Gemini CLI, project", *_everywhere(".gemini/settings.json"), _GEMINI, _GEMINI_DOCS
    ),
    # Older pages show config.json with the same list; for that, name its path.
    Host(
        "continue",
        "Continue",
        *_everywhere("~/.continue/config.yaml"),
        _CONTINUE,
        "https://docs.continue.dev/customize/deep-dives/mcp",
    ),
    # The first path is documented; older installations use the second.
    Host(
        "lm-studio",
        "LM Studio",
        *_everywhere("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"),
        ServersLocation(ConfigSyntax.JSON, ("mcpServers",), EntryLayout(stdio=None)),
        "https://lmstudio.ai/docs/app/mcp",
    ),
    # The documentation names only the file of the CLI; the extension uses a file in VS Code's storage.
    Host(
        "cline",
        "Cline",
        *_in_vscode("globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
        _JSON,
        _CLINE,
    ),
    Host(
        "cline-cli",
        "Cline CLI",
        *_everywhere("~/.cline/data/settings/cline_mcp_settings.json"),
        _JSON,
        _CLINE,
    ),
    # The documentation names mcp_settings.json without a folder; some pages still name cline_mcp_settings.json.
    Host(
        "roo",
        "Roo Code",
        *_in_vscode("globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        _JSON,
        _ROO,
    ),
    Host("roo-project", "Roo Code, project", *_everywhere(".roo/mcp.json"), _JSON, _ROO),
)
