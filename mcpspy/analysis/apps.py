"""MCP Apps in a session: tool → page → the calls that the page makes. Pure.

What the wire shows. A tool names its page (`_meta.ui.resourceUri`), the host reads that page with `resources/read`, and
shows it with the result of each call of the tool. The page then calls tools through the host, by `postMessage`, and
the host forwards these as ordinary `tools/call` requests: they have no mark, and no member that a call of the model
lacks (ext-apps, specification/2026-01-26/apps.mdx, Sandbox proxy, 8). What remains are the limits that the
specification sets for hosts (ibid., Visibility):

- A tool whose `visibility` lacks `model` is not in the model's list. A call of it comes from an app, if the host shows
  apps: it has declared the extension, or has read a page. A host that knows no apps ignores the visibility, and its
  model may call the tool.
- A tool whose `visibility` lacks `app` refuses apps. A call of it comes from the model.
- Any other call may come from either, and has no caller here. Time proves nothing: a page may call when it is loaded,
  and the model may call twice.

Which page made a call is known if the host has read only one of that server.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from mcpspy.core.counted import counted
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.ui import EXTENSION, SCHEME, app_of, visibility_of
from mcpspy.core.protocol.message import Request, Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.session.session import Change

CALL, READ, LIST = "tools/call", "resources/read", "tools/list"


class Caller(StrEnum):
    """The sender of a `tools/call`."""

    APP = "app"
    MODEL = "model"
    UNKNOWN = ""


class AppTool(Struct, frozen=True):
    """A listed tool that belongs to an app."""

    name: str
    uri: str | None
    """The URI of its page; None for a tool that only restricts its callers."""
    visibility: tuple[str, ...]


class AppLink(Struct):
    """The part of a request in an app: a call with a page, a call by a page, or the reading of a page."""

    uri: str
    """The page; empty if it is not known which one made the call."""
    tool: str = ""
    """The called tool; for a page, the first tool that names it."""
    caller: Caller = Caller.UNKNOWN
    is_page: bool = False
    page: int | None = None
    """The request that read the page, the latest before the call, else the first after it."""

    @property
    def words(self) -> str:
        """The link as it is shown with the status of the request; empty for a call of the model without a page."""
        if self.is_page:
            return f"page of {self.tool}" if self.tool else "page of no listed tool"
        if self.caller is Caller.APP:
            return f"called by the app {self.uri}" if self.uri else "called by an app"
        return f"shown by {self.uri}" if self.uri else ""

    def as_json(self) -> dict[str, str]:
        """Return the link as an object: `kind`, and `uri`, `tool` and `caller`, as far as they are known."""
        members = {"uri": self.uri, "tool": self.tool, "caller": str(self.caller)}
        return {"kind": "page" if self.is_page else "call"} | {
            name: value for name, value in members.items() if value
        }


class _Server(Struct):
    """The apps of one server."""

    tools: dict[str, AppTool] = field(default_factory=dict)
    pages: dict[str, int] = field(default_factory=dict)
    """URI → the latest request that read it."""
    waiting: dict[str, list[int]] = field(default_factory=dict)
    """URI → calls whose page was not read yet."""


class AppLinks:
    """Links of requests to apps, by the number that the caller gives each request, in the order of the wire."""

    def __init__(self) -> None:
        self.links: dict[int, AppLink] = {}
        self.is_supported = False
        """True if the client has declared the extension."""
        self._servers: dict[str, _Server] = {}

    @property
    def tools(self) -> list[AppTool]:
        """The tools that belong to apps, of all servers."""
        return [tool for server in self._servers.values() for tool in server.tools.values()]

    def add(self, change: Change, capabilities: Mapping[str, Any] | None) -> None:
        """Add a change of a session with one server; `capabilities` are those of the client so far."""
        what, exchange = change.what, change.exchange
        if exchange is None or exchange.request.side != CLIENT or exchange.request.frame.by is not None:
            return
        if isinstance(what, Request) and change.opened is not None:
            if what.method == CALL and what.subject is not None and exchange.continues is None:
                self.add_client(capabilities)
                self.add_call(change.number, what.subject)
            elif what.method == READ and what.subject is not None:
                self.add_page(change.number, what.subject)
        elif isinstance(what, Result) and exchange.request.method == LIST and may_name_apps(what.data):
            tools = result.get("tools") if isinstance(result := what.result, dict) else None
            self.add_tools(tools if isinstance(tools, list) else ())

    def add_client(self, capabilities: Mapping[str, Any] | None) -> None:
        """Add the capabilities of the client."""
        self.is_supported |= EXTENSION.id in declared(capabilities)

    def add_tools(self, tools: Iterable[Any], server: str = "") -> None:
        """Add a page of `tools/list`. `server` names the server in a merged session."""
        for tool in tools:
            name = tool.get("name") if isinstance(tool, dict) else None
            if not isinstance(name, str):
                continue
            uri, visibility = app_of(tool), visibility_of(tool)
            if uri is not None or len(visibility) == 1:
                self._server(server).tools[name] = AppTool(name, uri, visibility)
            elif server in self._servers:
                self._servers[server].tools.pop(name, None)

    def add_page(self, number: int, uri: str, server: str = "") -> None:
        """Add the reading of a resource; only `ui://` URIs are pages."""
        if not uri.startswith(SCHEME):
            return
        known = self._server(server)
        known.pages[uri] = number
        tool = next((tool.name for tool in known.tools.values() if tool.uri == uri), "")
        self.links[number] = AppLink(uri, tool, is_page=True, page=number)
        for call in known.waiting.pop(uri, ()):
            self.links[call].page = number

    def add_call(self, number: int, tool: str, server: str = "") -> None:
        """Add a `tools/call`."""
        known = self._servers.get(server)
        found = None if known is None else known.tools.get(tool)
        if known is None or found is None:
            return
        caller = self._caller(found, known)
        uri = found.uri or ""
        if caller is Caller.APP:
            uri = next(iter(known.pages)) if len(known.pages) == 1 else ""
        self.links[number] = AppLink(uri, tool, caller, page=known.pages.get(uri))
        if uri and uri not in known.pages:
            known.waiting.setdefault(uri, []).append(number)

    def words(self, number: int) -> str:
        """Return the link of a request in words; empty if it has none."""
        link = self.links.get(number)
        return "" if link is None else link.words

    def about(self, definition: Mapping[str, Any]) -> str:
        """Return the app of a listed tool in words: its page, its callers, and the calls of each; empty if it has none."""
        uri, visibility = app_of(definition), visibility_of(definition)
        if uri is None and len(visibility) == 2:
            return ""
        parts = [f"app {uri}"] if uri is not None else []
        if len(visibility) < 2:
            parts.append(f"only the {visibility[0]} may call it" if visibility else "no one may call it")
        named = {
            Caller.APP: "by the app",
            Caller.MODEL: "by the model",
            Caller.UNKNOWN: "by the model or the app",
        }
        calls = self.calls(str(definition.get("name")))
        parts += [f"{counted(count, 'call')} {named[caller]}" for caller, count in sorted(calls.items())]
        return ", ".join(parts)

    def calls(self, tool: str) -> dict[Caller, int]:
        """Return the number of calls of a tool by their caller."""
        counts: dict[Caller, int] = {}
        for link in self.links.values():
            if link.tool == tool and not link.is_page:
                counts[link.caller] = counts.get(link.caller, 0) + 1
        return counts

    def _caller(self, tool: AppTool, server: _Server) -> Caller:
        if "app" not in tool.visibility:
            return Caller.MODEL
        if "model" not in tool.visibility and (self.is_supported or server.pages):
            return Caller.APP
        return Caller.UNKNOWN

    def _server(self, name: str) -> _Server:
        return self._servers.setdefault(name, _Server())


def may_name_apps(data: bytes) -> bool:
    """Return whether a result of `tools/list` may name apps, without parsing it."""
    return b'"ui' in data or b"\\u" in data
