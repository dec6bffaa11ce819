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
from mcpspy.core.hostconfig.reading import PRODUCTS, UNKNOWN, HostReading
from mcpspy.core.hostconfig.shapes import (
    AMP,
    CODEX,
    CONTINUE,
    CRUSH,
    GEMINI,
    GOOSE,
    MCP_SERVERS,
    OPENCODE,
    OPENCODE_2,
    UNTYPED,
    VSCODE,
    WINDSURF,
    ZED,
)

PROJECT = "<project>"
"""Placeholder for a key that is the folder of a project."""


class Host(NamedTuple):
    name: str
    title: str
    files: tuple[str, ...]
    """Possible paths; the first one that exists is used. Relative paths are in the project's folder."""
    location: ServersLocation
    docs: str
    other_locations: tuple[ServersLocation, ...] = ()
    """Locations of the servers in the same file, in other versions of the host."""
    macos: tuple[str, ...] = ()
    """Its paths on macOS, if they are others."""
    windows: tuple[str, ...] = ()

    @property
    def product(self) -> str:
        """The name without that of the file, such as `project`."""
        return self.title.partition(",")[0]

    @property
    def reading(self) -> HostReading:
        return PRODUCTS.get(self.product, UNKNOWN)

    def paths(self, platform: str = sys.platform, environ: Mapping[str, str] = os.environ) -> list[Path]:
        """Return the possible paths on this system."""
        files = {"win32": self.windows, "darwin": self.macos}.get(platform) or self.files
        folders = {
            # A relative path counts as unset (XDG base directories).
            name: value if (value := environ.get(variable, "")) and os.path.isabs(value) else default
            for name, (variable, default) in _FOLDERS.items()
        }
        folders["data"] = folders[_DATA.get(platform, "config")]
        return [Path(os.path.expanduser(path.format_map(folders))) for path in files]


_FOLDERS = {
    "config": ("XDG_CONFIG_HOME", "~/.config"),
    "library": ("", "~/Library/Application Support"),
    "roaming": ("APPDATA", "~/AppData/Roaming"),
    "local": ("LOCALAPPDATA", "~/AppData/Local"),
    "claude": ("CLAUDE_CONFIG_DIR", "~"),
    "codex": ("CODEX_HOME", "~/.codex"),
}

_DATA = {"darwin": "library", "win32": "roaming"}
"""The folder of an application's data, `{data}`; on other systems that of its configuration."""


_CLAUDE_CODE = "https://code.claude.com/docs/en/mcp"
_CURSOR = "https://cursor.com/docs/mcp"
_VSCODE_DOCS = "https://code.visualstudio.com/docs/agents/reference/mcp-configuration"
_CODEX_DOCS = "https://developers.openai.com/codex/mcp"
_ZED_DOCS = "https://zed.dev/docs/ai/mcp"
_GEMINI_DOCS = "https://geminicli.com/docs/tools/mcp-server"
_CLINE = "https://docs.cline.bot/mcp/mcp-overview"
_ROO = "https://docs.roocode.com/features/mcp/using-mcp-in-roo"
_OPENCODE = "https://opencode.ai/docs/mcp-servers"
_COPILOT = "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers"
_KIRO = "https://kiro.dev/docs/mcp/configuration"
_AMP = "https://ampcode.com/manual"
_CRUSH = "https://github.com/charmbracelet/crush#mcps"
_COPILOT_PROJECT = "https://github.com/github/copilot-cli/issues/2938"
_JUNIE = "https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html"
_VISUAL_STUDIO = "https://learn.microsoft.com/visualstudio/ide/mcp-servers"
_ANTIGRAVITY_PROJECT = "https://github.com/google-antigravity/antigravity-cli/issues/60"
_ANTIGRAVITY = "https://antigravity.google/docs/mcp"
_QWEN = "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/"
_KILO = "https://kilo.ai/docs/automate/mcp/using-in-kilo-code"

HOSTS: tuple[Host, ...] = (
    Host(
        "claude-desktop",
        "Claude Desktop",
        # The documentation names macOS and Windows only; builds for Linux use Electron's default folder.
        ("{data}/Claude/claude_desktop_config.json",),
        MCP_SERVERS,
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        # The documentation names the second path only. Since early 2026, Claude Desktop is installed as a package whose
        # writes Windows redirects to the first path. If both exist, the second belongs to an older installation.
        windows=(
            "{local}/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
            "{roaming}/Claude/claude_desktop_config.json",
        ),
    ),
    Host("claude-code", "Claude Code, user", ("{claude}/.claude.json",), MCP_SERVERS, _CLAUDE_CODE),
    # Expands ${VAR} in args, and does not offer a server for approval whose variable is unset, so mcpspy writes none.
    # A plugin has a file of this name, too; without `mcpServers` it is the object of servers itself (PLUGIN).
    Host("claude-code-project", "Claude Code, project", (".mcp.json",), MCP_SERVERS, _CLAUDE_CODE),
    Host(
        "claude-code-local",
        "Claude Code, local",
        ("{claude}/.claude.json",),
        MCP_SERVERS._replace(keys=("projects", PROJECT, "mcpServers")),
        _CLAUDE_CODE,
    ),
    Host("cursor", "Cursor, user", ("~/.cursor/mcp.json",), MCP_SERVERS, _CURSOR),
    Host("cursor-project", "Cursor, project", (".cursor/mcp.json",), MCP_SERVERS, _CURSOR),
    # The file of the default profile; other profiles have their own in profiles/ID/.
    Host("vscode", "VS Code, user", ("{data}/Code/User/mcp.json",), VSCODE, _VSCODE_DOCS),
    Host("vscode-workspace", "VS Code, workspace", (".vscode/mcp.json",), VSCODE, _VSCODE_DOCS),
    # The documentation names `serverUrl` and `url`, and both are read. Variables are ${env:NAME} or ${NAME}.
    Host(
        "windsurf",
        "Windsurf",
        ("~/.codeium/windsurf/mcp_config.json",),
        WINDSURF,
        "https://docs.windsurf.com/windsurf/cascade/mcp",
    ),
    # Third parties describe a nested `source` with the URL or the command; Zed's own pages do not.
    Host(
        "zed",
        "Zed",
        ("{config}/zed/settings.json",),
        ZED,
        _ZED_DOCS,
        macos=("~/.config/zed/settings.json",),
        windows=("{roaming}/Zed/settings.json",),
    ),
    Host("zed-project", "Zed, project", (".zed/settings.json",), ZED, _ZED_DOCS),
    Host("codex", "Codex", ("{codex}/config.toml",), CODEX, _CODEX_DOCS),
    Host("codex-project", "Codex, project", (".codex/config.toml",), CODEX, _CODEX_DOCS),
    Host("gemini", "Gemini CLI, user", ("~/.gemini/settings.json",), GEMINI, _GEMINI_DOCS),
    Host("gemini-project", "Gemini CLI, project", (".gemini/settings.json",), GEMINI, _GEMINI_DOCS),
    # Older pages show config.json with the same list; for that, name its path.
    Host(
        "continue",
        "Continue",
        ("~/.continue/config.yaml",),
        CONTINUE,
        "https://docs.continue.dev/customize/deep-dives/mcp",
    ),
    # The first path is documented; older installations use the second.
    Host(
        "lm-studio",
        "LM Studio",
        ("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"),
        UNTYPED,
        "https://lmstudio.ai/docs/app/mcp",
    ),
    # The documentation names only the file of the CLI; the extension uses a file in VS Code's storage.
    Host(
        "cline",
        "Cline",
        ("{data}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",),
        MCP_SERVERS,
        _CLINE,
    ),
    Host("cline-cli", "Cline CLI", ("~/.cline/data/settings/cline_mcp_settings.json",), MCP_SERVERS, _CLINE),
    # The documentation names mcp_settings.json without a folder; some pages still name cline_mcp_settings.json.
    Host(
        "roo",
        "Roo Code",
        ("{data}/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",),
        MCP_SERVERS,
        _ROO,
    ),
    Host("roo-project", "Roo Code, project", (".roo/mcp.json",), MCP_SERVERS, _ROO),
    Host(
        "vscode-insiders", "VS Code Insiders", ("{data}/Code - Insiders/User/mcp.json",), VSCODE, _VSCODE_DOCS
    ),
    # The folder is the one that VSCodium documents; that it reads mcp.json as VS Code does is not documented.
    Host(
        "vscodium",
        "VSCodium",
        ("{data}/VSCodium/User/mcp.json",),
        VSCODE,
        "https://github.com/VSCodium/vscodium/blob/master/docs/migration.md",
    ),
    # The documentation shows stdio entries only; `uri` and `headers` are those that `goose configure` writes.
    Host(
        "goose",
        "Goose",
        ("{config}/goose/config.yaml",),
        GOOSE,
        "https://github.com/block/goose/blob/main/documentation/docs/guides/config-files.md",
        macos=("~/.config/goose/config.yaml",),
        windows=("{roaming}/Block/goose/config/config.yaml",),
    ),
    # Version 2 (https://opencode.ai/v2/docs/mcp-servers) has the servers under `mcp.servers`. OpenCode merges its
    # files; name the FILE if the servers are not in the first one.
    Host(
        "opencode",
        "OpenCode, user",
        ("{config}/opencode/opencode.json", "{config}/opencode/opencode.jsonc"),
        OPENCODE,
        _OPENCODE,
        (OPENCODE_2,),
    ),
    Host(
        "opencode-project",
        "OpenCode, project",
        ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        OPENCODE,
        _OPENCODE,
        (OPENCODE_2,),
    ),
    # `type` is `local` or `stdio`, which mean the same. Copilot CLI reads .mcp.json, too (claude-code-project).
    Host("copilot-cli", "Copilot CLI", ("~/.copilot/mcp-config.json",), MCP_SERVERS, _COPILOT),
    Host("copilot-cli-project", "Copilot CLI, project", (".github/mcp.json",), MCP_SERVERS, _COPILOT_PROJECT),
    Host("kiro", "Kiro, user", ("~/.kiro/settings/mcp.json",), UNTYPED, _KIRO),
    Host("kiro-project", "Kiro, project", (".kiro/settings/mcp.json",), UNTYPED, _KIRO),
    # The same path on every system. The key contains a dot.
    Host("amp", "Amp, user", ("~/.config/amp/settings.json", "~/.config/amp/settings.jsonc"), AMP, _AMP),
    Host("amp-project", "Amp, project", (".amp/settings.json", ".amp/settings.jsonc"), AMP, _AMP),
    # Crush expands shell syntax in every member.
    Host(
        "crush",
        "Crush, user",
        ("{config}/crush/crush.json",),
        CRUSH,
        _CRUSH,
        windows=("{local}/crush/crush.json",),
    ),
    Host("crush-project", "Crush, project", (".crush.json", "crush.json"), CRUSH, _CRUSH),
    # The page of the IDE plugin describes stdio only; that of the CLI was not available. Laravel Boost and other
    # installers of servers write these paths.
    Host("junie", "Junie, user", ("~/.junie/mcp/mcp.json",), UNTYPED, _JUNIE),
    Host("junie-project", "Junie, project", (".junie/mcp/mcp.json",), UNTYPED, _JUNIE),
    # Runs on Windows only. It also reads the solution's .mcp.json: name that FILE.
    Host("visual-studio", "Visual Studio, user", ("~/.mcp.json",), VSCODE, _VISUAL_STUDIO),
    Host("visual-studio-project", "Visual Studio, solution", (".vs/mcp.json",), VSCODE, _VISUAL_STUDIO),
    # The first path is shared by the IDE and the CLI since version 2; older installations use the second.
    Host(
        "antigravity",
        "Antigravity, user",
        ("~/.gemini/config/mcp_config.json", "~/.gemini/antigravity/mcp_config.json"),
        WINDSURF,
        _ANTIGRAVITY,
    ),
    Host(
        "antigravity-project",
        "Antigravity, project",
        (".agents/mcp_config.json",),
        WINDSURF,
        _ANTIGRAVITY_PROJECT,
    ),
    # Qwen Code 1 adds servers to .qwen/settings.local.json and .mcp.json, too: name the FILE.
    Host("qwen", "Qwen Code, user", ("~/.qwen/settings.json",), GEMINI, _QWEN),
    Host("qwen-project", "Qwen Code, project", (".qwen/settings.json",), GEMINI, _QWEN),
    Host("kilo", "Kilo Code, user", ("{config}/kilo/kilo.json", "{config}/kilo/kilo.jsonc"), OPENCODE, _KILO),
    Host(
        "kilo-project",
        "Kilo Code, project",
        ("kilo.json", "kilo.jsonc", ".kilo/kilo.json", ".kilo/kilo.jsonc"),
        OPENCODE,
        _KILO,
    ),
    # The files of the older extension.
    Host(
        "kilo-legacy",
        "Kilo Code (legacy), user",
        ("{data}/Code/User/globalStorage/kilocode.kilo-code/settings/mcp_settings.json",),
        MCP_SERVERS,
        _KILO,
    ),
    Host("kilo-legacy-project", "Kilo Code (legacy), project", (".kilocode/mcp.json",), MCP_SERVERS, _KILO),
)
