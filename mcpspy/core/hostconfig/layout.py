"""Where members stand in an entry, and how new ones are written beside them.

Owns the three ways of writing: between brackets (JSON, and the flow style of
the others), in lines of YAML, in lines of TOML. Knows nothing of what the
members mean.

What the entry of a server looks like in a host's configuration.

Owns the names of the members, as data: a row of `io.hosts` has one. Refuses to
know where the configuration is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from mcpspy.core.hostconfig.tree import Member, Node, eol, line_indent, quoted


class ConfigSyntax(StrEnum):
    """How a configuration is written."""

    JSON = "JSON"
    """With comments or not: who reads it decides, and who edits it must keep them."""
    TOML = "TOML"
    YAML = "YAML"


class EntryLayout(NamedTuple):
    """The members of an entry. Those of a stdio entry are `command`, `args` and `env` everywhere."""

    url: tuple[str, ...] = ("url",)
    """Where the URL stands; the first that is there counts."""
    headers: tuple[str, ...] = ("headers",)
    """The way to the headers, an object of strings."""
    stdio: str | None = "stdio"
    """What `type` says of a stdio entry; None if no word of the host's does."""
    named: bool = False
    """Whether the servers are a list, and each says its name."""
    bearer: str | None = None
    """A member that names the variable which holds a bearer token."""
    variables: str | None = None
    """A member with headers whose values are variables' names."""
    passed: str | None = None
    """A member with the names of variables that the host passes on to a stdio server."""


TYPE = ("type", "transport", "transportType")
"""Members that say how to talk to a server; but for `sse`, a bridge finds that out by itself."""

LOGIN = frozenset(
    """apiKey auth authProviderType headersHelper oauth oauth_client_id oauth_resource oauthClientId
    scopes targetAudience targetServiceAccount""".split()
)
"""Members by which a host gets credentials that do not stand in the file."""

STANDARD = EntryLayout()
ANY = EntryLayout(url=("httpUrl", "serverUrl", "url"))
"""For a file of no known host."""


_BETWEEN = re.compile(r"(?:[\s,]+|//[^\r\n]*|#[^\r\n]*|/\*[\s\S]*?\*/)*")
"""What may stand between two members that are neighbours."""


class SkippedEntry(Exception):  # noqa: N818 - reads as what it says at every raise.
    """An entry that is not changed, and why."""


class EntryText:
    """An entry in its text."""

    def __init__(self, text: str, syntax: ConfigSyntax, entry: Node) -> None:
        self.text = text
        self.syntax = syntax
        self.entry = entry
        self.eol = eol(text)

    def array(self, literals: Sequence[str]) -> str:
        """Return an array in one line."""
        return f"[{', '.join(literals)}]"

    def table(self, values: Mapping[str, str], beside: Member) -> str:
        """Return an object of strings, a line a member if that is how its neighbour stands."""
        pairs = [self.pair(key, quoted(value)) for key, value in values.items()]
        indent = line_indent(self.text, beside.start)
        if indent is None or self.syntax is not ConfigSyntax.JSON:
            return f"{{{', '.join(pairs)}}}"
        inner = self.eol + indent + ("\t" if "\t" in indent else "  ")
        return f"{{{inner}{f',{inner}'.join(pairs)}{self.eol}{indent}}}"

    def pair(self, key: str, source: str, prefix: str = "") -> str:
        """Return a key and its value."""
        if self.syntax is ConfigSyntax.JSON:
            return f"{quoted(key)}: {source}"
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", key):
            key = quoted(key)
        return f"{prefix}{key} = {source}" if self.syntax is ConfigSyntax.TOML else f"{key}: {source}"

    def members(self, pairs: Sequence[tuple[str, str]], beside: Member) -> str:
        """Return members, written as the one beside them is."""
        return self.separator(beside).join(self.pair(key, source, beside.prefix) for key, source in pairs)

    def separator(self, beside: Member) -> str:
        """Return what stands between members here."""
        if self.entry.block:
            return self.eol + self.column(beside.start)
        indent = line_indent(self.text, beside.start)
        return ", " if indent is None else f",{self.eol}{indent}"

    def column(self, position: int) -> str:
        """Return the blanks that put what follows a line break under this place."""
        before = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return re.sub(r"[^\t]", " ", before.removeprefix("\ufeff"))

    def runs(self, keys: Collection[str]) -> list[tuple[Member | None, Member, Member]]:
        """Return the neighbours among these members, as the one before them, the first and the last.

        Tables under a header of their own are not among them.
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
        """Raise LeftAlone if something that is no member of the entry stands between two that are."""
        if not _BETWEEN.fullmatch(self.text, one.node.end, other.start):
            raise SkippedEntry(f"{one.key} and {other.key} do not stand together")
