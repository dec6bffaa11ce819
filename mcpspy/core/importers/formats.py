"""The formats that can be imported, and their recognition by content.

A module is imported when its format is recognised. A signature consists of the keys of the file's first
object, so that incomplete and damaged files are recognised too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from mcpspy.core.importers.base import ImportedSession
from mcpspy.errors import UsageError

HEAD = 1 << 16
"""Bytes of a file that are needed to recognise its format."""

DATABASE = b"SQLite format 3\0"

_TOKEN = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?|[{}\[\]]', re.DOTALL)


class ImportFormat(NamedTuple):
    name: str
    about: str
    module: str
    """Its `sessions` takes the bytes of a file, or the rows of a database."""
    opening: bytes
    """The first bytes of a file."""
    keys: frozenset[str]
    """Keys of its first object."""

    def importer(self) -> Callable[..., list[ImportedSession]]:
        """Import the format's module and return the function that reads a file."""
        read: Callable[..., list[ImportedSession]] = import_module(self.module).sessions
        return read


def _format(name: str, about: str, module: str, keys: str, opening: bytes = b"{") -> ImportFormat:
    return ImportFormat(name, about, f"{__package__}.{module}", opening, frozenset(keys.split()))


FORMATS = {
    each.name: each
    for each in (
        _format("har", "HTTP Archive 1.2: browsers, mitmproxy, mcpspy export", "har", "log"),
        _format("mcp-cassette", "its cassettes", "mcp_cassette", "format_version recorded_at"),
        _format("mcp-recorder", "its cassettes", "mcp_recorder", "version metadata"),
        _format("mcp-rec", "its JSONL", "mcp_rec", "ts dir msg"),
        _format("mcphawk", "its SQLite database", "mcphawk", "", DATABASE),
        _format("mcpsnoop", "its JSONL", "mcpsnoop", "session_id seq direction"),
        _format(
            "inspector",
            "the MCP Inspector's Protocol export",
            "inspector",
            "id timestamp direction message",
            b"[",
        ),
        _format(
            "inspector-network",
            "the MCP Inspector's Network export",
            "inspector_network",
            "timestamp method url requestHeaders",
            b"[",
        ),
    )
}


def recognise(head: bytes) -> ImportFormat:
    """Return the format of a file by its first bytes; raise UsageError if there is none."""
    if head.startswith(DATABASE):
        return FORMATS["mcphawk"]
    opening, keys = first_keys(head)
    if "mcpspy" in keys:
        raise UsageError("an mcpspy recording: there is nothing to import", "mcpspy show reads it as it is")
    for each in FORMATS.values():
        if each.keys and opening == each.opening and each.keys <= keys:
            return each
    if not head:
        raise UsageError("empty: there is nothing to import")
    kind = "neither JSON nor SQLite"
    if opening:
        members = ", ".join(sorted(key[:20] for key in keys)[:6])
        kind = f"JSON, whose first object has {members or 'no members'}"
    raise UsageError(
        f"of no format that mcpspy reads: {kind}", f"there are {', '.join(FORMATS)}; --format NAME insists"
    )


def first_keys(head: bytes) -> tuple[bytes, set[str]]:
    """Return the first bracket of a JSON text and the keys of its first object, as far as the text goes."""
    data = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    opening = data[:1]
    if opening not in (b"{", b"["):
        return b"", set()
    keys: set[str] = set()
    depth, own = 0, 1 if opening == b"{" else 2
    for token in _TOKEN.finditer(data):
        what = token[0]
        if what in b"{[":
            depth += 1
        elif what in b"}]":
            depth -= 1
            if depth < own:
                break
        elif depth == own and token[2]:
            keys.add(token[1].decode("utf-8", "replace"))
    return opening, keys
