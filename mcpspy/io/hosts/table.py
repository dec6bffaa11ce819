"""The hosts, one row each: where each keeps its servers, and the layout of an entry there.

Looked up in the linked pages in November 2026; where sources disagree, a comment says how. Add a host by
adding a row.
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
"""A placeholder for the key that is the folder of a project."""


class Host(NamedTuple):
    name: str
    title: str
    linux: tuple[str, ...]
    """Possible paths; the first one that exists counts. Relative paths are in the project's folder."""
    macos: tuple[str, ...]
    windows: tuple[str, ...]
    location: ServersLocation
    docs: str

    def paths(self, platform: str = sys.platform, environ: Mapping[str, str] = os.environ) -> list[Path]:
        """Return the possible paths on this system."""
        given = {"win32": self.windows, "darwin": self.macos}.get(platform, self.linux)
        folders = {
            # What is relative counts as unset (XDG base directories).
            name: set_ if (set_ := environ.get(variable, "")) and os.path.isabs(set_) else default
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
# `httpUrl` is streamable HTTP and `url` HTTP+SSE; of both, the first counts. `type` knows `http` and `sse` only.
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
        # The documentation names macOS and Windows only; builds for Linux use the folder Electron gives them.
        ("{config}/Claude/claude_desktop_config.json",),
        ("{library}/Claude/claude_desktop_config.json",),
        # The documentation names the second only. Since early 2026 it is installed as a package whose
        # writes Windows redirects to the first: with both there, the second belongs to an older one.
        (
            "{local}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            "{roaming}/Claude/claude_desktop_config.json",
        ),
        _JSON,
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
    ),
    Host("claude-code", "Claude Code, user", *_everywhere("{claude}/.claude.json"), _JSON, _CLAUDE_CODE),
    # It expands ${VAR} in args, and leaves one that is not set as it is (seen with 2.1.278; the
    # documentation says that the file then fails to load): so the variables of mcpspy reach `bridge`.
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
    # Of the default profile; another one has its own in profiles/ID/.
    Host("vscode", "VS Code, user", *_in_vscode("mcp.json"), _VSCODE, _VSCODE_DOCS),
    Host("vscode-workspace", "VS Code, workspace", *_everywhere(".vscode/mcp.json"), _VSCODE, _VSCODE_DOCS),
    # Its pages name `serverUrl` and `url`, and both are read. Variables are ${env:NAME} in some, ${NAME} in others.
    Host(
        "windsurf",
        "Windsurf",
        *_everywhere("~/.codeium/windsurf/mcp_config.json"),
        ServersLocation(
            ConfigSyntax.JSON, ("mcpServers",), EntryLayout(url=("serverUrl", "url"), stdio=None)
        ),
        "https://docs.windsurf.com/windsurf/cascade/mcp",
    ),
    # Third parties describe a nested `source` with the URL or the command in it; Zed's own pages do not.
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
    # Older pages show config.json, with the same list; give its path.
    Host(
        "continue",
        "Continue",
        *_everywhere("~/.continue/config.yaml"),
        _CONTINUE,
        "https://docs.continue.dev/customize/deep-dives/mcp",
    ),
    # Documented as the first; installations that began before it was have the second.
    Host(
        "lm-studio",
        "LM Studio",
        *_everywhere("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"),
        ServersLocation(ConfigSyntax.JSON, ("mcpServers",), EntryLayout(stdio=None)),
        "https://lmstudio.ai/docs/app/mcp",
    ),
    # The documentation names the file of the command line only; the extension has one in VS Code's storage.
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
    # Its documentation gives the name mcp_settings.json and no folder; some pages still name cline_mcp_settings.json.
    Host(
        "roo",
        "Roo Code",
        *_in_vscode("globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
        _JSON,
        _ROO,
    ),
    Host("roo-project", "Roo Code, project", *_everywhere(".roo/mcp.json"), _JSON, _ROO),
)
