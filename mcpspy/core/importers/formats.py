"""Formats that can be imported, and their recognition by content.

The module of a format is imported only when its format is recognised. The keys of the first object in the file, or
the start of a line, identify the format, so that incomplete and damaged files are recognised too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from mcpspy.core.importers.base import ImportedSession
from mcpspy.errors import UsageError

HEAD = 1 << 16
"""Number of bytes at the start of a file that are needed to recognise its format."""

DATABASE = b"SQLite format 3\0"

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)


class ImportFormat(NamedTuple):
    name: str
    about: str
    module: str
    """Module whose function `sessions` takes the bytes of a file, or the rows of a database."""
    opening: bytes
    """First bytes of a file."""
    keys: frozenset[str]
    """Required keys of the first object in the file."""
    line: re.Pattern[bytes] | None = None
    """Start of a line, in a file that is not JSON."""

    def importer(self) -> Callable[..., list[ImportedSession]]:
        """Import the format's module and return the function that reads a file."""
        read: Callable[..., list[ImportedSession]] = import_module(self.module).sessions
        return read


def _format(
    name: str, about: str, module: str, keys: str = "", opening: bytes = b"{", *, line: bytes = b""
) -> ImportFormat:
    pattern = re.compile(line, re.ASCII | re.MULTILINE) if line else None
    return ImportFormat(name, about, f"{__package__}.{module}", opening, frozenset(keys.split()), pattern)


FORMATS = {
    each.name: each
    for each in (
        _format("har", "HTTP Archive 1.2: browsers, mitmproxy, mcpspy export", "har", "log"),
        _format("mcp-cassette", "mcp-cassette cassettes", "mcp_cassette", "format_version recorded_at"),
        _format("mcp-recorder", "mcp-recorder cassettes", "mcp_recorder", "version metadata"),
        _format("mcp-rec", "mcp-rec JSONL files", "mcp_rec", "ts dir msg"),
        _format("mcphawk", "mcphawk SQLite databases", "mcphawk", "", DATABASE),
        _format("mcpsnoop", "mcpsnoop JSONL files", "mcpsnoop", "session_id seq direction"),
        _format(
            "inspector",
            "exports of the MCP Inspector's Protocol tab",
            "inspector",
            "id timestamp direction message",
            b"[",
        ),
        _format(
            "inspector-network",
            "exports of the MCP Inspector's Network tab",
            "inspector_network",
            "timestamp method url requestHeaders",
            b"[",
        ),
        _format(
            "mcp-vcr",
            "mcp-vcr transcripts, YAML or NDJSON",
            "mcp_vcr",
            "_type session_id server_command",
            line=rb"\A(?:meta:\r?\n {2}\w+: |messages:\r?\n- dir: [cs]2[cs]\r?\n)",
        ),
        _format(
            "claude-desktop",
            "logs of Claude Desktop: mcp-server-NAME.log, mcp.log",
            "claude_desktop",
            line=rb"^\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z \[[^\]\n]*\] \[[^\]\n]*\] ",
        ),
        _format(
            "vscode",
            "output of VS Code's MCP servers (log level Trace)",
            "vscode",
            line=rb"^\d{4}-\d\d-\d\d [\d:]{8}\.\d{3} \[[a-z]+\] (?:\[(?:editor|server|Client|Server) "
            rb"|Starting server |Server command line: |Connection state: )",
        ),
        _format("otlp", "OpenTelemetry spans of MCP calls, OTLP/JSON", "otlp", "resourceSpans"),
    )
}


def recognise(head: bytes) -> ImportFormat:
    """Return the format of a file by its first bytes; raise UsageError if it is not supported."""
    if head.startswith(DATABASE):
        return FORMATS["mcphawk"]
    opening, keys = first_keys(head)
    if "mcpspy" in keys:
        raise UsageError("already an mcpspy recording", "mcpspy show reads it directly")
    for each in FORMATS.values():
        if each.keys and opening == each.opening and each.keys <= keys:
            return each
    for each in FORMATS.values():
        if each.line is not None and each.line.search(head.removeprefix(b"\xef\xbb\xbf")):
            return each
    if not head:
        raise UsageError("the file is empty")
    kind = "neither JSON nor SQLite"
    if opening:
        members = ", ".join(sorted(key[:20] for key in keys)[:6])
        kind = f"JSON, whose first object has {members or 'no members'}"
    raise UsageError(f"unknown format: {kind}", f"use --from with one of {', '.join(FORMATS)}")


def first_keys(head: bytes) -> tuple[bytes, set[str]]:
    """Return the first bracket of a JSON text, which may be incomplete, and the keys of its first object."""
    data = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    opening = data[:1]
    if opening not in (b"{", b"["):
        return b"", set()
    keys: set[str] = set()
    depth, own = 0, 1 if opening == b"{" else 2
    for token in _TOKEN.finditer(data):
        source = token[0]
        if source in b"{[":
            depth += 1
        elif source in b"}]":
            depth -= 1
            if depth < own:
                break
        elif depth == own and token[2]:
            keys.add(token[1].decode("utf-8", "replace"))
    return opening, keys
