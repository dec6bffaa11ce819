"""The extension MCP Apps: tools with a page that hosts show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcpspy.core.protocol.extensions.extension import FINAL, McpExtension

SOURCE = "https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx"

MEDIA_TYPE = "text/html;profile=mcp-app"
"""The type of the only apps that are specified."""

SCHEME = "ui://"

CALLERS = ("model", "app")
"""Those that may call a tool."""

EXTENSION = McpExtension(
    id="io.modelcontextprotocol/ui",
    title="MCP Apps",
    state=FINAL,
    source=SOURCE,
    since="2024-11-05",
    hidden_media=(MEDIA_TYPE,),
    audience=("ui", "visibility"),
    shapes=r"""
ui-uri = /^ui:\/\/\S+$/ EXT201 "a URI that begins with ui://"
csp-source = /^(?:[A-Za-z][A-Za-z0-9+.-]*:(?:\/\/)?)?(?:(?:\*\.)?[A-Za-z0-9_.-]+|\[[0-9A-Fa-f:]+\]|\*)?(?::(?:\d+|\*))?\/?$/ EXT208 "an origin"

ClientExtensions  ui#clientserver-capability-negotiation
  io.modelcontextprotocol/ui?  AppHost

AppHost  ui#clientserver-capability-negotiation  EXT103
  mimeTypes  [string]

ToolApp  ui#resource-discovery  EXT201
  resourceUri?  ui-uri
  visibility?  ["model"|"app"]

ToolMeta  ui#resource-discovery  EXT201
  ui?  ToolApp

Tool  ui#resource-discovery
  _meta?  ToolMeta

AppPolicy  ui#ui-resource-format  EXT203
  connectDomains? resourceDomains? frameDomains? baseUriDomains?  [csp-source]

AppPermissions  ui#ui-resource-format  EXT203
  camera? microphone? geolocation? clipboardWrite?  object

App  ui#ui-resource-format  EXT203
  csp?  AppPolicy
  permissions?  AppPermissions
  domain?  string
  prefersBorder?  boolean

ResourceMeta  ui#ui-resource-format  EXT203
  ui?  App

Resource  ui#ui-resource-format
  _meta?  ResourceMeta

Contents  ui#ui-resource-format
  _meta?  ResourceMeta
""",
)


def app_of(tool: Mapping[str, Any]) -> str | None:
    """Return the URI of the app of a listed tool; None if it has none."""
    uri = _ui_of(tool).get("resourceUri")
    return uri if isinstance(uri, str) else None


def visibility_of(tool: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the callers of a listed tool, `model` and `app`: both, unless the tool names them."""
    named = _ui_of(tool).get("visibility")
    return tuple(one for one in CALLERS if one in named) if isinstance(named, list) else CALLERS


def _ui_of(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    meta = tool.get("_meta")
    ui = meta.get("ui") if isinstance(meta, dict) else None
    return ui if isinstance(ui, dict) else {}
