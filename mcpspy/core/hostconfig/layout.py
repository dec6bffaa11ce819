"""Layout of a server's entry: the names of its members, and writing new members beside existing ones.

Writes JSON and flow style between brackets, YAML lines and TOML lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from mcpspy.core.hostconfig.tree import Member, Node, eol, line_indent, quoted

TYPE = ("type", "transport", "transportType")
"""Members with the transport; except for `sse`, a bridge detects it."""

LOGIN = frozenset(
    """apiKey auth authProviderType headersHelper oauth oauth_client_id oauth_resource oauthClientId
    scopes targetAudience targetServiceAccount""".split()
)
"""Members by which a host gets credentials that are not in the file."""

_BETWEEN = re.compile(r"(?:[\s,]+|//[^\r\n]*|#[^\r\n]*|/\*[\s\S]*?\*/)*")
"""Text that may separate neighbouring members."""


class ConfigSyntax(StrEnum):
    JSON = "JSON"
    TOML = "TOML"
    YAML = "YAML"


class EntryLayout(NamedTuple):
    """The members of an entry. A stdio entry has `command`, `args` and `env` everywhere."""

    url: tuple[str, ...] = ("url",)
    """Members with the URL; the first one present counts."""
    headers: tuple[str, ...] = ("headers",)
    """The path to the headers, an object of strings."""
    stdio: str | None = "stdio"
    """The `type` of a stdio entry; None if the host has none."""
    named: bool = False
    """True if the servers are a list, each with its name."""
    bearer: str | None = None
    """A member that names the variable with a bearer token."""
    variables: str | None = None
    """A member with headers whose values are names of variables."""
    passed: str | None = None
    """A member with the names of variables that the host passes on to a stdio server."""


STANDARD = EntryLayout()
ANY = EntryLayout(url=("httpUrl", "serverUrl", "url"))
"""For a file of an unknown host."""


class SkippedEntry(Exception):  # noqa: N818 - reads as what it says at every raise.
    """An entry that is not changed, with the reason."""


class EntryText:
    def __init__(self, text: str, syntax: ConfigSyntax, entry: Node) -> None:
        self.text = text
        self.syntax = syntax
        self.entry = entry
        self.eol = eol(text)

    def table(self, values: Mapping[str, str], beside: Member) -> str:
        """Return an object of strings, one member per line if the neighbour begins a line."""
        pairs = [self.pair(key, quoted(value)) for key, value in values.items()]
        indent = line_indent(self.text, beside.start)
        if indent is None or self.syntax is not ConfigSyntax.JSON:
            return f"{{{', '.join(pairs)}}}"
        inner = self.eol + indent + ("\t" if "\t" in indent else "  ")
        return f"{{{inner}{f',{inner}'.join(pairs)}{self.eol}{indent}}}"

    def pair(self, key: str, source: str, prefix: str = "") -> str:
        if self.syntax is ConfigSyntax.JSON:
            return f"{quoted(key)}: {source}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key):
            key = quoted(key)
        return f"{prefix}{key} = {source}" if self.syntax is ConfigSyntax.TOML else f"{key}: {source}"

    def members(self, pairs: Sequence[tuple[str, str]], beside: Member) -> str:
        return self.separator(beside).join(self.pair(key, source, beside.prefix) for key, source in pairs)

    def separator(self, beside: Member) -> str:
        if self.entry.block:
            return self.eol + self.column(beside.start)
        indent = line_indent(self.text, beside.start)
        return ", " if indent is None else f",{self.eol}{indent}"

    def column(self, position: int) -> str:
        """Return the blanks that align a new line with this position."""
        before = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return re.sub(r"[^\t]", " ", before.removeprefix("\ufeff"))

    def runs(self, keys: Collection[str]) -> list[tuple[Member | None, Member, Member]]:
        """Return runs of neighbours among these members: the one before a run, its first and its last.

        Tables under their own header are excluded.
        """
        found: list[tuple[Member | None, Member, Member]] = []
        before: Member | None = None
        is_open = False
        for member in sorted(self.entry.members, key=lambda member: member.start):
            if member.is_table:
                continue
            if member.start < 0 or member.node.end < member.start:
                if member.key in keys:
                    raise SkippedEntry(f"{member.key} does not stand in one place")
                continue
            if member.key not in keys:
                is_open = False
                before = member
                continue
            if is_open:
                self.require_neighbours(found[-1][2], member)
                found[-1] = (found[-1][0], found[-1][1], member)
            else:
                if before is not None and found:
                    self.require_neighbours(before, member)
                found.append((before, member, member))
            is_open = True
            before = member
        return found

    def require_neighbours(self, one: Member, other: Member) -> None:
        if not _BETWEEN.fullmatch(self.text, one.node.end, other.start):
            raise SkippedEntry(f"{one.key} and {other.key} do not stand together")
