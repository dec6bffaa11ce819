"""MCP Apps in a session: the tools with a page, their calls, and the pages that were read."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct, field

from mcpspy.analysis.explain.evidence import EvidenceLine, evidence
from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.core.protocol.extensions.ui import SCHEME, app_of, visibility_of
from mcpspy.core.protocol.message import Request, Result

CALL, READ = "tools/call", "resources/read"

MAX_APPS = 100
"""Tools with a page that are kept."""

MAX_PAGE = 2_000_000
"""Characters of a page that are searched."""

_LOADED = re.compile(
    r"""(?i)<(?:(?P<frame>iframe)|script|img|video|audio|source|link)\b[^>]{0,500}?\s(?:src|href)\s*=\s*["']?"""
    r"""(?P<origin>https?://[a-z0-9.-]+(?::\d+)?)"""
)
"""An element that loads something from another origin; a link also names one for other reasons (`_IS_LOADED`)."""

_IS_LOADED = re.compile(r"""(?i)\srel\s*=\s*["']?(?:stylesheet|preload|modulepreload|icon)""")


class AppFacts(Struct):
    tools: dict[str, tuple[str, EvidenceLine]] = field(default_factory=dict)
    """Tool that the model may call → the URI of its page, and the line with the list."""
    called: dict[str, EvidenceLine] = field(default_factory=dict)
    """Such a tool → the line with the first result of a call."""
    pages: set[str] = field(default_factory=set)
    """URIs of the pages that the client read."""
    blocked: list[tuple[str, str, str, EvidenceLine]] = field(default_factory=list)
    """Page, an origin from which it loads something, the member of `csp` that lacks it, and the line with the page."""

    def concerns(self, request: Request) -> bool:
        """Return whether the result of a request has to be passed to `add_result`."""
        subject = request.subject or ""
        return subject.startswith(SCHEME) if request.method == READ else subject in self.tools

    def add_tool(self, tool: dict[str, Any], name: str, place: EntryPosition) -> None:
        uri = app_of(tool)
        if uri is not None and "model" in visibility_of(tool) and len(self.tools) < MAX_APPS:
            self.tools[name] = uri, evidence(place, f"{name}: _meta.ui.resourceUri is {uri}")

    def add_result(self, what: Result, request: Request, place: EntryPosition) -> None:
        """Add the result of a call, or of a page that was read."""
        subject = request.subject or ""
        if request.method == CALL and subject in self.tools:
            self.called.setdefault(subject, evidence(place, f"tools/call {subject}: result"))
        elif request.method == READ and subject.startswith(SCHEME) and subject not in self.pages:
            self.pages.add(subject)
            result = what.result
            contents = result.get("contents") if isinstance(result, dict) else None
            for item in contents if isinstance(contents, list) else ():
                if isinstance(item, dict) and isinstance(text := item.get("text"), str):
                    self._add_page(subject, text[:MAX_PAGE], item.get("_meta"), place)

    def _add_page(self, uri: str, text: str, meta: Any, place: EntryPosition) -> None:
        ui = meta.get("ui") if isinstance(meta, dict) else None
        policy = ui.get("csp") if isinstance(ui, dict) else None
        allowed = policy if isinstance(policy, dict) else {}
        for found in _LOADED.finditer(text):
            if found[0][:5].lower() == "<link" and not _IS_LOADED.search(text, *_tag(text, found.start())):
                continue
            member = "frameDomains" if found["frame"] else "resourceDomains"
            origin = found["origin"].lower()
            if not _allows(allowed.get(member), origin):
                line = evidence(place, f"{uri}: {found[0][:120]}")
                self.blocked.append((uri, origin, member, line))
                return


def _tag(text: str, start: int) -> tuple[int, int]:
    end = text.find(">", start)
    return start, end if end >= 0 else len(text)


def _allows(domains: Any, origin: str) -> bool:
    """Return whether a list of `csp` names an origin, also as `https://*.example.com`."""
    for domain in domains if isinstance(domains, list) else ():
        scheme, _, host = str(domain).lower().rstrip("/").rpartition("://")
        own_scheme, _, own_host = origin.partition("://")
        is_host = own_host == host or (host.startswith("*.") and own_host.endswith(host[1:])) or host == "*"
        if is_host and scheme in ("", own_scheme):
            return True
    return False
