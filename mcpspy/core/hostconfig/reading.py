"""Facts about hosts: the JSON that they refuse in configurations, the variables that they replace.

Every fact has a source: a page of the vendor, a source file, or a public issue, seen in November 2026. Nothing is
recorded where the sources do not say it or disagree (Kiro, Windsurf, LM Studio, Amp and Junie in most respects), and
then nothing is reported.
"""

from __future__ import annotations

from typing import NamedTuple

COMMENT, TRAILING_COMMA, BOM = "a comment", "a trailing comma", "a byte order mark"

STRICT = (COMMENT, TRAILING_COMMA, BOM)
"""The extensions that JSON.parse of Node refuses: anything beyond RFC 8259, and U+FEFF at the start."""

PLAIN, BARE, ENV, BRACES, PERCENT = "${NAME}", "$NAME", "${env:NAME}", "{env:NAME}", "%NAME%"
"""Forms of a variable of the environment."""

EDITOR = "${workspaceFolder}"
"""Variables of an editor, which have fixed names or a kind (`${input:key}`)."""

EVERYWHERE = ("command", "args", "env", "headers", "url", "cwd")


class HostReading(NamedTuple):
    """The known facts about a host; the defaults mean that none is known."""

    refuses: tuple[str, ...] = ()
    """The extensions of JSON with which it does not read the file."""
    refuses_source: str = ""
    variables: tuple[str, ...] | None = None
    """The forms of variables that it replaces; None if that is not known."""
    variables_source: str = ""
    parts: tuple[str, ...] = EVERYWHERE
    """The members in which `variables` holds."""
    literal_home: tuple[str, ...] = ()
    """The members in which it passes a leading `~` as it is."""
    home_source: str = ""
    typed_urls_source: str = ""
    """A page that shows that it refuses a URL without a `type`; empty if that is not known."""
    instead: str = ""
    """The member that lists variables to pass on, if there is one."""


_ISSUE = "https://github.com/{}/issues/{}".format
_CLINE = "https://github.com/cline/cline/blob/main/src/services/mcp/McpHub.ts"
_ROO = "https://github.com/RooCodeInc/Roo-Code/blob/main/src/services/mcp/McpHub.ts"
_ROO_VARIABLES = "https://github.com/RooCodeInc/Roo-Code/blob/main/src/utils/config.ts"
_CLAUDE_CODE = "https://code.claude.com/docs/en/mcp"
_GEMINI = "https://github.com/google-gemini/gemini-cli/blob/main/packages/cli/src/config/settings.ts"
_OPENCODE = "https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/config/variable.ts"

UNKNOWN = HostReading()
CLAUDE_DESKTOP = HostReading(
    # The error that it shows is that of JSON.parse; for the byte order mark: tradesdontlie/tradingview-mcp#406.
    refuses=STRICT,
    refuses_source=_ISSUE("anaisbetts/mcp-installer", 2),
    variables=(),
    variables_source=_ISSUE("modelcontextprotocol/servers", 1039),
)
CLAUDE_CODE = HostReading(
    variables=(PLAIN,),
    variables_source=_CLAUDE_CODE,
    literal_home=("command", "args"),
    home_source=_ISSUE("anthropics/claude-code", 37580),
    typed_urls_source=_ISSUE("affaan-m/ECC", 1003),
)
# Sources disagree about `~` (microsoft/vscode#247076 states that Cursor replaces it).
CURSOR = HostReading(
    refuses=(TRAILING_COMMA,),
    refuses_source=_ISSUE("upstash/context7", 563),
    variables=(ENV, EDITOR),
    variables_source="https://cursor.com/docs/context/mcp#config-interpolation",
)
# It reads JSON with comments and trailing commas, and replaces `~` (extHostMcpNode.ts).
VSCODE = HostReading(
    variables=(ENV, EDITOR),
    variables_source=_ISSUE("microsoft/vscode", 264448),
)
ZED = HostReading(variables=(), variables_source=_ISSUE("zed-industries/zed", 60459), parts=("headers",))
GEMINI = HostReading(
    # JSON.parse after the comments are removed; for the byte order mark: google-gemini/gemini-cli#25675.
    refuses=(TRAILING_COMMA, BOM),
    refuses_source=_GEMINI,
    variables=(PLAIN, BARE, PERCENT),
    variables_source="https://github.com/google-gemini/gemini-cli/pull/28248",
    literal_home=("command", "args", "env", "cwd"),
    home_source=_ISSUE("google-gemini/gemini-cli", 11778),
)
CLINE = HostReading(
    refuses=STRICT,
    refuses_source=_CLINE,
    variables=(ENV,),
    variables_source="https://github.com/cline/cline/pull/8079",
    literal_home=("command", "args"),
    home_source=_CLINE,
)
ROO = HostReading(
    refuses=STRICT,
    refuses_source=_ROO,
    variables=(ENV, EDITOR),
    variables_source=_ROO_VARIABLES,
    literal_home=("command", "args"),
    home_source=_ROO_VARIABLES,
)
GOOSE = HostReading(variables=(), variables_source=_ISSUE("aaif-goose/goose", 4307), parts=("env",))
CODEX = HostReading(
    variables=(), variables_source=_ISSUE("openai/codex", 7367), parts=("env",), instead="env_vars"
)
OPENCODE = HostReading(variables=(BRACES,), variables_source=_OPENCODE)
COPILOT = HostReading(
    variables=(PLAIN, BARE), variables_source=_ISSUE("github/copilot-cli", 903), parts=("env",)
)


PRODUCTS = {
    "Claude Desktop": CLAUDE_DESKTOP,
    "Claude Code": CLAUDE_CODE,
    "Cursor": CURSOR,
    "VS Code": VSCODE,
    "VS Code Insiders": VSCODE,
    "VSCodium": VSCODE,
    "Zed": ZED,
    "Codex": CODEX,
    "Gemini CLI": GEMINI,
    "Cline": CLINE,
    "Roo Code": ROO,
    "Goose": GOOSE,
    "OpenCode": OPENCODE,
    "Copilot CLI": COPILOT,
}
"""Product → how it reads its files; the products of other hosts are unknown."""


class IgnoredPlace(NamedTuple):
    """A file in which servers are often configured, and which the host does not read for them."""

    path: str
    keys: tuple[str, ...]
    instead: str
    source: str


_SETTINGS = _ISSUE("anthropics/claude-code", 24477)
_TO_CLAUDE = "use `claude mcp add --scope user`, which writes ~/.claude.json"
_TO_PROJECT = "move them to .mcp.json in the folder of the project"
_TO_CODEX = "write [mcp_servers.NAME] tables in config.toml of the same folder"

IGNORED: dict[str, tuple[IgnoredPlace, ...]] = {
    "claude-code": (
        IgnoredPlace("~/.claude/settings.json", ("mcpServers",), _TO_CLAUDE, _SETTINGS),
        IgnoredPlace("~/.claude/settings.local.json", ("mcpServers",), _TO_CLAUDE, _SETTINGS),
        IgnoredPlace(
            "~/.claude/mcp.json", ("mcpServers",), _TO_CLAUDE, _ISSUE("anthropics/claude-code", 37245)
        ),
    ),
    "claude-code-project": (
        IgnoredPlace(".claude/settings.json", ("mcpServers",), _TO_PROJECT, _SETTINGS),
        IgnoredPlace(".claude/settings.local.json", ("mcpServers",), _TO_PROJECT, _SETTINGS),
        IgnoredPlace(
            ".claude/.mcp.json", ("mcpServers",), _TO_PROJECT, _ISSUE("anthropics/claude-code", 5037)
        ),
    ),
    "cursor-project": (
        IgnoredPlace(
            ".cursor/mcp-configs/mcp-servers.json",
            ("mcpServers",),
            "move them to .cursor/mcp.json",
            _ISSUE("affaan-m/ECC", 1518),
        ),
    ),
    "codex": (
        IgnoredPlace(
            "~/.codex/config.json",
            ("mcpServers",),
            _TO_CODEX,
            "https://github.com/nicobailon/pi-mcp-adapter/pull/31",
        ),
    ),
    "codex-project": (
        IgnoredPlace(
            ".codex/mcp.json", ("mcpServers",), _TO_CODEX, "https://github.com/sortie-ai/sortie/pull/923"
        ),
    ),
}
"""Host → places that it ignores."""
