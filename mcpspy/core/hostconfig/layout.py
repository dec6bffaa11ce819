"""Layout of a server's entry: names of its members, and source text of new members.

New members are written as JSON or YAML flow style between brackets, as YAML lines, or as TOML lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from mcpspy.core.hostconfig.tree import Member, Node, eol, line_indent, quoted

TYPE = ("type", "transport", "transportType")
"""Members that name the transport; a bridge detects it, except `sse`."""

LOGIN = frozenset(
    """apiKey auth authProviderType headersHelper oauth oauth_client_id oauth_resource oauthClientId
    requiresOAuth scopes targetAudience targetServiceAccount""".split()
)
"""Members that make a host obtain credentials that are not in the file."""

_BETWEEN = re.compile(r"(?:[\s,]+|//[^\r\n]*|#[^\r\n]*|/\*[\s\S]*?\*/)*")
"""Text that may separate neighbouring members."""


class ConfigSyntax(StrEnum):
    JSON = "JSON"
    TOML = "TOML"
    YAML = "YAML"


class EntryLayout(NamedTuple):
    """Names of the members of an entry."""

    command: str = "command"
    args: str = "args"
    env: str = "env"
    is_list: bool = False
    """True if the command is a list with the arguments, and no member has them alone."""
    url: tuple[str, ...] = ("url",)
    """Members that may hold the URL; the first one present is used."""
    headers: tuple[str, ...] = ("headers",)
    """Path of the headers, an object of strings."""
    stdio: str | None = "stdio"
    """The `type` of a stdio entry; None if the host uses none."""
    named: bool = False
    """True if the servers are a list in which each entry has a name."""
    bearer: str | None = None
    """Member with the name of the variable that holds a bearer token."""
    variables: str | None = None
    """Member with headers whose values are names of variables."""
    passed: str | None = None
    """Member with the names of variables that the host passes to a stdio server."""
    remote: tuple[str, ...] = ()
    """The `type` of a URL entry, if the host requires one."""
    builtin: tuple[str, ...] = ()
    """The `type` of entries without a server that could be wrapped."""
    only_remote: tuple[str, ...] = ()
    """Members of a URL entry that the host refuses in a stdio entry."""
    fills_env: bool = True
    """True if the host fills in variables in `env` as it does in headers."""

    @property
    def of_command(self) -> tuple[str, ...]:
        """Members with the command line of a stdio entry."""
        return (self.command,) if self.is_list else (self.command, self.args)


STANDARD = EntryLayout()
ANY = EntryLayout(url=("httpUrl", "serverUrl", "url"))
"""Layout for the file of an unknown host."""


class SkippedEntry(Exception):  # noqa: N818 - The name reads well at every raise.
    """The reason why an entry is not changed."""


class EntryText:
    def __init__(self, text: str, syntax: ConfigSyntax, entry: Node) -> None:
        self.text = text
        self.syntax = syntax
        self.entry = entry
        self.eol = eol(text)

    def table(self, values: Mapping[str, str], beside: Member) -> str:
        """Return the source of an object of strings, with one member per line if `beside` begins a line."""
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
        """Return the runs of adjacent members with these keys: the member before the run, its first and its last.

        Tables with their own header are excluded.
        """
        found: list[tuple[Member | None, Member, Member]] = []
        before: Member | None = None
        is_open = False
        for member in sorted(self.entry.members, key=lambda member: member.start):
            if member.is_table:
                continue
            if member.start < 0 or member.node.end < member.start:
                if member.key in keys:
                    raise SkippedEntry(f"{member.key} is not defined in one place")
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
            raise SkippedEntry(f"{one.key} and {other.key} are not adjacent")
