"""Wrapping and unwrapping of servers in the text of a configuration.

Each result is verified: it must parse, everything else must be unchanged, and it must unwrap to the original
bytes. A server that fails the check stays unchanged, with a reason.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.core.hostconfig import wrap, yaml
from mcpspy.core.hostconfig.layout import ConfigSyntax, EntryLayout, EntryText, SkippedEntry
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry, read, servers
from mcpspy.core.hostconfig.tree import NodeKind, TextEdit, plain, spliced
from mcpspy.core.hostconfig.wrap import WrapTarget
from mcpspy.errors import UsageError


class ServersLocation(NamedTuple):
    """The location of the servers in a file, and the layout of their entries."""

    syntax: ConfigSyntax
    keys: tuple[str, ...]
    layout: EntryLayout

    def servers(self, text: str) -> list[ServerEntry]:
        """Return the servers of a configuration; raise UsageError if it cannot be read."""
        return servers(read(text, self.syntax), self.keys, self.layout)


@dataclass(slots=True)
class EditResult:
    text: str
    done: list[str] = field(default_factory=list)
    already: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    """Servers that were left unchanged → reason."""


UNSAFE = "its entry cannot be changed in a way that unwrap can undo byte for byte"


def wrapped(text: str, location: ServersLocation, names: Collection[str], target: WrapTarget) -> EditResult:
    """Wrap these servers, so that the host starts them through mcpspy."""
    edited = EditResult(text)
    changes: dict[str, list[TextEdit]] = {}
    for server in location.servers(text):
        if server.name not in names:
            continue
        if server.proxy is not None:
            edited.already.append(server.name)
            continue
        source = EntryText(text, location.syntax, server.node)
        try:
            if server.what is EntryKind.INVALID:
                raise SkippedEntry(server.why)
            edits = (
                wrap.wrap_stdio(source, server, target, location.layout)
                if server.what is EntryKind.STDIO
                else wrap.wrap_url(source, server, target, location.layout)
            )
        except SkippedEntry as why:
            edited.left[server.name] = str(why)
        else:
            # A list may have two servers with the same name: both are changed.
            changes.setdefault(server.name, []).extend(edits)
    if not changes:
        return edited
    new = spliced(text, [edit for edits in changes.values() for edit in edits])
    if _is_safe(text, new, location, changes.keys()):
        edited.text, edited.done = new, [*changes]
    elif len(changes) == 1:
        edited.left.update(dict.fromkeys(changes, UNSAFE))
    else:
        for name in changes:
            one = wrapped(edited.text, location, [name], target)
            edited.text = one.text
            edited.done += one.done
            edited.left.update(one.left)
    return edited


def unwrapped(text: str, location: ServersLocation, names: Collection[str]) -> EditResult:
    edited = EditResult(text)
    changes: list[TextEdit] = []
    bridged: dict[str, ServerEntry] = {}
    for server in location.servers(text):
        if server.name not in names:
            continue
        if server.proxy is None:
            edited.already.append(server.name)
            continue
        source = EntryText(text, location.syntax, server.node)
        try:
            if server.what is EntryKind.URL:
                changes += wrap.unwrap_url(source, server, location.layout)
                bridged[server.name] = server
            else:
                changes += wrap.unwrap_stdio(source, server, location.layout)
        except SkippedEntry as why:
            edited.left[server.name] = str(why)
        else:
            edited.done.append(server.name)
    edited.text = spliced(text, changes)
    if bridged:
        edited.text = _renewed(edited.text, location, bridged)
    if changes and _rest(text, location, edited.done) != _rest(edited.text, location, edited.done):
        raise UsageError("its servers cannot be unwrapped without changing something else", "see the backup")
    return edited


def _renewed(text: str, location: ServersLocation, bridged: dict[str, ServerEntry]) -> str:
    changes = []
    for server in location.servers(text):
        if server.name in bridged and server.proxy is None:
            changes += wrap.renewed(server.node, bridged[server.name], location.layout)
    return spliced(text, changes)


def _is_safe(old: str, new: str, location: ServersLocation, names: Collection[str]) -> bool:
    """Return True if these servers are wrapped correctly; `unwrapped` checks that everything else is unchanged."""
    try:
        before, after = (
            {s.name: s for s in location.servers(text) if s.name in names} for text in (old, new)
        )
        return (
            before.keys() == after.keys()
            and all(_is_wrapped(before[name], after[name], location.layout) for name in names)
            and unwrapped(new, location, names).text == old
        )
    except (UsageError, ValueError, SkippedEntry):
        return False


def _is_wrapped(old: ServerEntry, new: ServerEntry, layout: EntryLayout) -> bool:
    """Return True if the new entry starts the old one through mcpspy and is otherwise equal."""
    proxy = new.proxy
    if proxy is None or new.what is not old.what:
        return False
    if old.what is EntryKind.STDIO:
        keys = layout.of_command
        return new.argv[proxy.at :] == old.argv and _others(old, keys) == _others(new, keys)
    url_members = wrap.members_of_url(layout)
    replaced = wrap.members_of_bridge(layout.stdio, layout)
    return new.url == old.url and _others(old, url_members) == _others(new, replaced)


def _others(server: ServerEntry, keys: Collection[str]) -> dict[str, object]:
    return {member.key: plain(member.node) for member in server.node.members if member.key not in keys}


def _rest(text: str, location: ServersLocation, names: Collection[str]) -> str:
    """Return the configuration without these servers, for comparison."""
    # Aliases in YAML are resolved, because the target of an alias may be part of an entry.
    document = (
        deepcopy(yaml.resolved(text))
        if location.syntax is ConfigSyntax.YAML
        else plain(read(text, location.syntax))
    )
    inside = document
    for key in location.keys:
        inside = inside.get(key) if isinstance(inside, dict) else None
    if isinstance(inside, dict):
        for name in names:
            inside.pop(name, None)
    elif isinstance(inside, list):
        own = {
            *names,
            *((NodeKind.STRING, name) for name in names),
        }  # As YAML's value, and as `plain` has it.
        inside[:] = [entry for entry in inside if not (isinstance(entry, dict) and entry.get("name") in own)]
    return repr(document)
