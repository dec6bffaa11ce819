"""Text edits that wrap and unwrap an entry.

The command of a stdio entry moves, verbatim, to the end of mcpspy's arguments. A URL entry becomes a stdio entry
that starts the bridge: its `env` keeps the source text of the replaced members and the values of the headers; other
members stay. Unwrapping restores the original bytes, or an equivalent entry if the file was rewritten in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from mcpspy.core.hostconfig import command_line
from mcpspy.core.hostconfig.command_line import BridgeUpstream, ProxyCommand
from mcpspy.core.hostconfig.layout import LOGIN, TYPE, ConfigSyntax, EntryLayout, EntryText, SkippedEntry
from mcpspy.core.hostconfig.servers import ServerEntry, origin
from mcpspy.core.hostconfig.tree import Member, Node, NodeKind, TextEdit, line_indent, quoted
from mcpspy.core.protocol.http_headers import LOOPBACK, read_upstream

ORIGINAL = "MCPSPY_ORIGINAL"
"""Variable with the source text of the members that the bridge's command replaces."""

AFTER = "MCPSPY_ORIGINAL_AFTER"
"""Variable with the source text of other replaced members: a JSON object, by the key of the preceding member."""

TABLE = "[]"
"""Key in `AFTER` of the TOML table that the table `env` replaces."""

UPSTREAM = "MCPSPY_UPSTREAM"
"""Variable with the URL, if it may hold a secret."""

HEADER = "MCPSPY_HEADER_"
"""Prefix of the variables with the values of headers."""


class WrapTarget(NamedTuple):
    program: Sequence[str]
    options: Sequence[str] = ()
    """Options of mcpspy, for both `run` and `bridge`."""
    watch: Sequence[str] = ()
    """Options of `run` alone that restart a server when files change; URL entries are skipped."""
    insists: bool = False
    """True to wrap URL entries even if the host may log in to the server itself."""
    isolated: Sequence[str] = ()
    """The program for entries that set variables of Python; empty if it is the same."""

    @property
    def run_options(self) -> Sequence[str]:
        return [*self.options, *self.watch]

    def program_of(self, entry: Node, layout: EntryLayout) -> Sequence[str]:
        env = entry.get(layout.env)
        affects = env is not None and any(command_line.affects_python(member.key) for member in env.members)
        return self.isolated if affects and self.isolated else self.program


_VARIABLE = re.compile(r"\$|\{\w+:|\{\{")
"""The beginning of a variable that a host fills in: `${NAME}`, `$NAME`, `{env:NAME}`, `{{NAME}}`."""

_FALSE = (NodeKind.OTHER, "false")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def wrap_stdio(
    source: EntryText, server: ServerEntry, target: WrapTarget, layout: EntryLayout
) -> list[TextEdit]:
    text, entry = source.text, source.entry
    command = entry.member(layout.command)
    assert command is not None
    path, *more = target.program_of(entry, layout)
    if layout.is_list:
        words = [path, *more, *command_line.run(server.name, target.run_options, has_args=True)]
        return [_prepended(source, command.node, [*map(quoted, words)])]
    args = entry.get(layout.args)
    program = quoted(path)
    words = [*more, *command_line.run(server.name, target.run_options, has_args=args is not None)]
    literals = [*map(quoted, words), text[command.node.start : command.node.end]]
    changes = [TextEdit(command.node.start, command.node.end, program)]
    if args is None:
        new = source.members([(layout.args, f"[{', '.join(literals)}]")], command)
        # In block style, `args` is inserted before the command, because a comment may follow the command.
        if entry.block:
            return [*changes, TextEdit(command.start, command.start, new + source.separator(command))]
        return [
            TextEdit(command.node.start, command.node.end, changes[0].text + source.separator(command) + new)
        ]
    if not args.items:
        return [*changes, TextEdit(args.start + 1, args.start + 1, ", ".join(literals))]
    return [*changes, _prepended(source, args, literals)]


def _prepended(source: EntryText, words: Node, literals: Sequence[str]) -> TextEdit:
    """Return the change that puts literals before the items of a list."""
    first = words.items[0].start
    if words.block:
        lines = "".join(f"- {literal}{source.eol}{source.column(first)}" for literal in literals)
        return TextEdit(first, first, lines)
    indent = line_indent(source.text, first)
    gap = " " if indent is None else source.eol + indent
    return TextEdit(first, first, f"{', '.join(literals)},{gap}")


def wrap_url(
    source: EntryText, server: ServerEntry, target: WrapTarget, layout: EntryLayout
) -> list[TextEdit]:
    """Return the changes that turn a URL entry into one that starts the bridge; raise SkippedEntry."""
    if target.watch:
        raise SkippedEntry("--watch restarts only servers that the host starts by a command")
    text, entry = source.text, source.entry
    words, env, passed = _bridge(server, target, layout)
    url_members = members_of_url(layout)
    tables = [member for member in entry.members if member.is_table and member.key in url_members]
    if len(tables) > 1:
        raise SkippedEntry(f"{' and '.join(table.key for table in tables)} are tables (write one as {{ … }})")
    if not (runs := source.runs(url_members)):
        raise SkippedEntry("its URL is not defined in one place")
    (_, first, last), *others = runs
    env[ORIGINAL] = text[first.start : last.node.end]
    after = {}
    changes = []
    for before, _, end in others:
        assert before is not None
        after[before.key] = text[before.node.end : end.node.end]
        changes.append(TextEdit(before.node.end, end.node.end, ""))
    if tables:
        after[TABLE] = text[tables[0].start : tables[0].node.end]
    if after:
        env[AFTER] = json.dumps(after, ensure_ascii=False)
    if layout.is_list:
        pairs = [(layout.command, _array([target.program[0], *words]))]
    else:
        pairs = [(layout.command, quoted(target.program[0])), (layout.args, _array(words))]
    if layout.stdio is not None and entry.get("type") is not None:
        pairs.insert(0, ("type", quoted(layout.stdio)))
    if passed:
        assert layout.passed is not None
        pairs.append((layout.passed, _array(passed)))
    if tables:
        changes.append(_env_table(source, tables[0], layout.env, env))
    else:
        pairs.append((layout.env, source.table(env, first)))
    return [*changes, TextEdit(first.start, last.node.end, source.members(pairs, first))]


def _bridge(
    server: ServerEntry, target: WrapTarget, layout: EntryLayout
) -> tuple[list[str], dict[str, str], list[str]]:
    """Return the arguments that start the bridge, the variables to define, and those that the host passes."""
    has_variable = _VARIABLE.search(server.url) is not None
    if read_upstream(server.url) is None and not has_variable:
        raise SkippedEntry("its URL is not an HTTP URL")
    headers = _strings(server, *layout.headers)
    if not layout.fills_env and (has_variable or any(_VARIABLE.search(value) for _, value in headers)):
        raise SkippedEntry("it uses variables of the host, which the host does not fill in for the bridge")
    references, env, passed = _references(server, layout, headers)
    bearer = server.node.get(layout.bearer) if layout.bearer is not None else None
    if bearer is not None:
        passed = [*dict.fromkeys([*passed, bearer.text])]
    if not target.insists:
        _require_no_login(server, bool(references) or bearer is not None)
    url = server.url
    if "?" in url or has_variable:  # A query may hold a key, and the host expands variables.
        url, env[UPSTREAM] = "", server.url
    is_sse = any(node.text == "sse" for key in TYPE if (node := server.node.get(key)) is not None)
    upstream = BridgeUpstream(url, UPSTREAM, references, bearer.text if bearer is not None else "", is_sse)
    words = [*target.program[1:], *command_line.bridge(server.name, target.options, upstream)]
    return words, env, passed


def members_of_url(layout: EntryLayout) -> frozenset[str]:
    """Return the keys of a URL entry that wrapping replaces; all others stay."""
    more = (layout.headers[0], layout.bearer, layout.variables, layout.passed, *layout.of_command, layout.env)
    return frozenset((*layout.url, *TYPE, *layout.only_remote, *(key for key in more if key is not None)))


def members_of_bridge(entry_type: str | None, layout: EntryLayout) -> frozenset[str]:
    """Return the keys that wrapping puts in their place."""
    keys = {*layout.of_command, layout.env, *([layout.passed] if layout.passed else [])}
    return frozenset(keys | ({"type"} if entry_type is not None and entry_type == layout.stdio else set()))


def _references(
    server: ServerEntry, layout: EntryLayout, headers: Sequence[tuple[str, str]]
) -> tuple[list[tuple[str, str]], dict[str, str], list[str]]:
    """Return the headers' names and variables, the variables to define, and those that the host passes."""
    references, env, passed = [], {}, []
    around = server.node.get(*layout.headers[:-1])
    unusable = (
        [m.key for m in around.members if m.key != layout.headers[-1]]
        if around and len(layout.headers) > 1
        else []
    )
    if unusable:
        raise SkippedEntry(f"the bridge does not support {layout.headers[0]}.{unusable[0]}")
    for name, value in headers:
        slug = re.sub(r"[^A-Z0-9]", "_", name.upper())
        variable = HEADER + slug
        number = 2
        while variable in env:
            variable, number = f"{HEADER}{slug}_{number}", number + 1
        env[variable] = value
        references.append((name, variable))
    if layout.variables is not None:
        references += (of_variables := _strings(server, layout.variables))
        passed += [variable for _, variable in of_variables]
    for name, _ in references:
        if not _HEADER_NAME.fullmatch(name):
            raise SkippedEntry(f"{name} is not a valid name of a header")
    return references, env, [*dict.fromkeys(passed)]


def _array(words: Sequence[str]) -> str:
    return f"[{', '.join(map(quoted, words))}]"


def _strings(server: ServerEntry, *keys: str) -> list[tuple[str, str]]:
    node = server.node.get(*keys)
    if node is None:
        return []
    known = {member.key: member.node for member in node.members}
    if node.kind is not NodeKind.OBJECT or any(value.kind is not NodeKind.STRING for value in known.values()):
        raise SkippedEntry(f"its {'.'.join(keys)} are not an object of strings")
    return [(name, value.text) for name, value in known.items()]


def _require_no_login(server: ServerEntry, has_headers: bool) -> None:
    """Raise SkippedEntry if the host may have credentials that are not in the file.

    A remote HTTPS server without headers and query may be public, or it may require the host to log in: the file
    does not show which.
    """
    switches = [member for member in server.node.members if member.key in ("oauth", "requiresOAuth")]
    off = {member.key for member in switches if (member.node.kind, member.node.text) == _FALSE}
    source = origin(server.url)
    instead = f"record it with mcpspy http --upstream {source}/…, or wrap it anyway with --bridge-oauth"
    named = sorted((LOGIN - off) & {member.key for member in server.node.members})
    if named:
        raise SkippedEntry(f"the host logs in itself ({named[0]}), which the bridge cannot do; {instead}")
    upstream = read_upstream(server.url)
    if off or has_headers or upstream is None or upstream.query or not upstream.origin.startswith("https:"):
        return
    if upstream.host.partition(":")[0] not in LOOPBACK:
        raise SkippedEntry(
            f"the host may log in to {source} itself (OAuth), which the bridge cannot do; {instead}"
        )


def _env_table(source: EntryText, table: Member, key: str, env: dict[str, str]) -> TextEdit:
    assert source.syntax is ConfigSyntax.TOML
    lines = [f"[{table.prefix}{key}]", *(source.pair(key, quoted(value)) for key, value in env.items())]
    between = source.eol + source.column(table.start)
    return TextEdit(table.start, table.node.end, between.join(lines))


def unwrap_stdio(source: EntryText, server: ServerEntry, layout: EntryLayout) -> list[TextEdit]:
    text, entry = source.text, source.entry
    command = entry.member(layout.command)
    assert command is not None
    assert server.proxy is not None
    if layout.is_list:
        words = command.node.items
        if server.proxy.at >= len(words):
            raise SkippedEntry("no command follows the arguments of mcpspy")
        return [TextEdit(words[0].start, words[server.proxy.at].start, "")]
    args = entry.member(layout.args)
    at = server.proxy.at - 1  # Index in `args`, which does not include the command itself.
    if args is None or at >= len(args.node.items):
        raise SkippedEntry("no command follows the arguments of mcpspy")
    items = args.node.items
    original = items[at].node
    if original.kind is not NodeKind.STRING:
        raise SkippedEntry("the value after the arguments of mcpspy is not a command")
    changes = [TextEdit(command.node.start, command.node.end, text[original.start : original.end])]
    if at + 1 < len(items):
        return [*changes, TextEdit(items[0].start, items[at + 1].start, "")]
    if server.proxy.is_joined:
        return [*changes, _removal(source, args)]
    if args.node.block:
        return [*changes, TextEdit(args.node.start, args.node.end, "[]")]
    # A host that rewrote the file may have added a trailing comma.
    end = original.end
    rest = text[end : args.node.end - 1]
    comma = len(rest) - len(rest.lstrip()) if rest.lstrip().startswith(",") else -1
    return [*changes, TextEdit(items[0].start, end + comma + 1, "")]


def unwrap_url(source: EntryText, server: ServerEntry, layout: EntryLayout) -> list[TextEdit]:
    entry = source.entry
    env = entry.get(layout.env)
    original = entry.get(layout.env, ORIGINAL)
    if env is None or original is None or original.kind is not NodeKind.STRING:
        raise SkippedEntry(
            f"{ORIGINAL} is missing from its {layout.env}, so the original entry is lost; see the backup"
        )
    after = _kept_after(entry, layout)
    type_ = entry.get("type")
    bridge_members = members_of_bridge(type_.text if type_ is not None else None, layout)
    (_, first, last), *others = source.runs(bridge_members)
    kept = original.text
    changes = [TextEdit(before.node.end, end.node.end, "") for before, _, end in others if before is not None]
    tables = [member for member in entry.members if member.is_table and member.key in bridge_members]
    changes += [TextEdit(table.start, table.node.end, after.pop(TABLE, "")) for table in tables]
    for key, piece in after.items():
        before = entry.member(key)
        if before is None or key in bridge_members or before.is_table:
            kept += piece
        else:
            changes.append(TextEdit(before.node.end, before.node.end, piece))
    return [*changes, TextEdit(first.start, last.node.end, kept)]


def renewed(entry: Node, wrapped: ServerEntry, layout: EntryLayout) -> list[TextEdit]:
    """Return the changes that keep a URL or headers edited while the entry was wrapped."""
    assert wrapped.proxy is not None
    changes = []
    url = next((node for key in layout.url if (node := entry.get(key)) is not None), None)
    if url is not None and url.text != wrapped.url:
        changes.append(TextEdit(url.start, url.end, quoted(wrapped.url)))
    for name, value in unwrapped_headers(wrapped, wrapped.proxy, layout):
        header = entry.get(*layout.headers, name)
        if header is not None and header.text != value:
            changes.append(TextEdit(header.start, header.end, quoted(value)))
    return changes


def unwrapped_headers(
    wrapped: ServerEntry, proxy: ProxyCommand, layout: EntryLayout
) -> list[tuple[str, str]]:
    """Return the headers whose values are in the entry, also in the form of older versions."""
    found = []
    for flag, option in proxy.options:
        if flag == "--header-env":
            name, _, reference = option.partition("=")
        elif flag == "--header" and ": ${" in option:
            name, _, reference = option.removesuffix("}").partition(": ${")
        else:
            continue
        variable = wrapped.node.get(layout.env, reference)
        if variable is not None:
            found.append((name, variable.text))
    return found


def _kept_after(entry: Node, layout: EntryLayout) -> dict[str, str]:
    node = entry.get(layout.env, AFTER)
    if node is None:
        return {}
    try:
        after = json.loads(node.text)
    except ValueError:
        after = None
    if not isinstance(after, dict) or not all(isinstance(piece, str) for piece in after.values()):
        raise SkippedEntry(f"{AFTER} in its {layout.env} is not the value that mcpspy wrote; see the backup")
    return after


def _removal(source: EntryText, gone: Member) -> TextEdit:
    """Return the change that removes a member and its separator."""
    others = [m for m in source.entry.members if not m.is_table and m.start >= 0 and m is not gone]
    before = max((m for m in others if m.start < gone.start), key=lambda m: m.start, default=None)
    after = min((m for m in others if m.start > gone.start), key=lambda m: m.start, default=None)
    if after is not None and (source.entry.block or before is None):
        source.require_neighbours(gone, after)
        return TextEdit(gone.start, after.start, "")
    assert before is not None  # The command remains.
    source.require_neighbours(before, gone)
    return TextEdit(before.node.end, gone.node.end, "")
