"""Mistakes in a configuration that its host does not report.

It does not read the file or the server, or passes a wrong value: a refused file is often replaced by an empty one, and
a variable that is not replaced looks like a wrong password. What only some hosts refuse is decided by `reading`; the rest is wrong for every host.
A mistake never contains a value that may be a secret: only the reference, the placeholder, or the first word.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from mcpspy.core.hostconfig import jsonc, reading
from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import ConfigSyntax
from mcpspy.core.hostconfig.reading import HostReading, IgnoredPlace
from mcpspy.core.hostconfig.servers import EntryKind, ServerEntry, read
from mcpspy.core.hostconfig.tree import Node, NodeKind
from mcpspy.core.unfilled import REMOTE, SCRIPTS, is_placeholder
from mcpspy.errors import UsageError

LONGEST = 60
"""Characters of a value in a mistake."""

_KEYS = (("mcpServers",), ("servers",), ("mcp_servers",), ("context_servers",), ("mcp", "servers"))
"""Keys of other hosts, which are copied from their documentation."""

_LAUNCHERS = frozenset(
    """npx npm pnpm yarn bun bunx deno node uvx uv pipx python python3 py docker podman java go cargo dotnet cmd
    cmd.exe npx.cmd uvx.exe uv.exe""".split()
)
_MEMBERS = frozenset("command cmd args env envs environment url httpUrl serverUrl uri headers cwd".split())
_REFERENCE = re.compile(
    r"\$\{\{.*?\}\}|\$\{(?P<inner>[^{}]+)\}|(?<!\$)\{env:(?P<braces>[^{}]+)\}|^(?:\w+ +)?\$(?P<bare>[A-Z_][A-Z0-9_]+)(?=$|[/\\])"
    r"|(?<!\$)\$(?P<known>HOME|USER|USERNAME|USERPROFILE|APPDATA|PWD)\b"
    r"|^%(?P<percent>[A-Za-z_]\w*)%(?=$|[/\\])"
)
_EDITOR = frozenset(
    """workspaceFolder workspaceFolderBasename userHome pathSeparator / cwd execPath file fileBasename fileDirname
    workspaceRoot selectedText lineNumber""".split()
)


class Mistake(NamedTuple):
    line: int
    """The line in the file, from 1; 0 if the whole file is meant."""
    place: str
    """The keys, joined by dots: `mcpServers.github.env.TOKEN`; empty for the file."""
    server: str
    """The server, or empty."""
    text: str
    """The mistake, with the value."""
    fix: str
    source: str
    """A page that shows it, for what only some hosts do; otherwise empty."""


def mistakes(
    text: str,
    location: ServersLocation,
    host: str,
    how: HostReading,
    *,
    allows_bare: bool = False,
    others: Collection[tuple[str, ...]] = (),
) -> list[Mistake]:
    """Return the mistakes in a configuration, in the order of the file. Raise UsageError if it cannot be read.

    `host` is the name of the product in a sentence; `allows_bare` accepts servers without a key around them. `others`
    are keys in this file whose servers the product reads for another scope, such as the user's beside a project's.
    """
    document = read(text, location.syntax)
    found = [
        *_syntax(text, location, host, how),
        *_duplicates(text, document, location.keys),
        *unread(text, document, location, host, allows_bare=allows_bare, others=others),
    ]
    for server in location.servers(text):
        found += _Entry(text, location, host, how, server).mistakes()
    return sorted(dict.fromkeys(found), key=lambda mistake: mistake.line)


def ignored(text: str, place: IgnoredPlace, host: str) -> Mistake | None:
    """Return that a host ignores the servers of this file; None if there are none."""
    try:
        node = read(text, ConfigSyntax.JSON).get(*place.keys)
    except UsageError:
        return None
    if node is None or not _servers_in(node):
        return None
    names = ", ".join(member.key for member in node.members[:3]) + (", …" if len(node.members) > 3 else "")
    return Mistake(
        _line(text, node.start),
        ".".join(place.keys),
        "",
        f"{host} does not read servers from this file: {names}",
        place.instead,
        place.source,
    )


def _syntax(text: str, location: ServersLocation, host: str, how: HostReading) -> Iterator[Mistake]:
    if location.syntax is not ConfigSyntax.JSON:
        return
    fixes = {
        reading.BOM: "save it as UTF-8 without a byte order mark",
        reading.COMMENT: "delete it",
        reading.TRAILING_COMMA: "delete the comma before the closing bracket",
    }
    for what, at in jsonc.extensions(text).items():
        if what in how.refuses:
            yield Mistake(
                _line(text, at), "", "", f"{host} refuses a file with {what}", fixes[what], how.refuses_source
            )


def _duplicates(text: str, node: Node, keys: tuple[str, ...]) -> Iterator[Mistake]:
    """Yield the keys that occur twice on the way to the servers, in the servers, and in their entries."""
    todo: list[tuple[Node, tuple[str, ...]]] = [(node, ())]
    while todo:
        parent, path = todo.pop()
        seen: dict[str, int] = {}
        for member in parent.members:
            here = (*path, member.key)
            if member.key in seen and not (member.is_table or member.prefix):
                first = _line(text, seen[member.key])
                yield Mistake(
                    _line(text, member.start),
                    ".".join(here),
                    path[len(keys)] if len(path) > len(keys) else "",
                    f"the key {member.key} occurs twice, and only the last one counts (the first is in line {first})",
                    "merge them into one",
                    "",
                )
            seen[member.key] = member.start
            is_on_the_way = len(here) <= len(keys) and here == keys[: len(here)]
            if is_on_the_way or (here[: len(keys)] == keys and len(here) <= len(keys) + 2):
                todo.append((member.node, here))


def unread(
    text: str,
    document: Node,
    location: ServersLocation,
    host: str,
    *,
    allows_bare: bool,
    others: Collection[tuple[str, ...]] = (),
) -> Iterator[Mistake]:
    """Yield servers under the key of another host."""
    own = location.keys
    for keys in _KEYS:
        node = document.get(*keys)
        if not own or node is None or keys in others or keys[: len(own)] == own or own[: len(keys)] == keys:
            continue
        if _servers_in(node):
            yield Mistake(
                _line(text, node.start),
                ".".join(keys),
                "",
                f"{host} reads servers under {'.'.join(own)}, not under {'.'.join(keys)}",
                f"rename the key to {'.'.join(own)}",
                "",
            )
    if not allows_bare and own == ("mcpServers",) and document.get(*own) is None and _servers_in(document):
        yield Mistake(
            _line(text, document.start),
            "",
            "",
            f"{host} reads servers under {own[0]}, and this file has them without it",
            f'put them into {{"{own[0]}": …}}',
            "",
        )


class _Entry:
    """The mistakes of one entry."""

    def __init__(
        self, text: str, location: ServersLocation, host: str, how: HostReading, server: ServerEntry
    ) -> None:
        self.text = text
        self.layout = location.layout
        self.host = host
        self.how = how
        self.server = server
        self.path = (*location.keys, server.name)

    def mistakes(self) -> Iterator[Mistake]:
        node = self.server.node
        for member in node.members:
            if member.key in ("mcpServers", "servers") and _servers_in(member.node):
                yield self.at(
                    member.start, (member.key,), f"{member.key} is nested in a server", "move its servers up"
                )
            elif member.key != member.key.strip() and member.key.strip() in _MEMBERS:
                yield self.at(
                    member.start,
                    (member.key,),
                    f'the key "{member.key}" contains a blank, so no host reads it',
                    f'write "{member.key.strip()}"',
                )
        if self.server.name in ("mcpServers", "servers") and _servers_in(node):
            yield self.at(
                node.start, (), f"{self.server.name} is nested in {self.path[-2]}", "move its servers up"
            )
        if self.how.typed_urls_source and self.server.url and not self.server.proxy and not node.get("type"):
            yield self.at(
                node.start,
                (),
                f"{self.host} refuses a URL without a type",
                'add "type": "http" (or "sse")',
                self.how.typed_urls_source,
            )
        yield from self.command()
        for part, path, value in self.values():
            yield from self.value(part, path, value)

    def command(self) -> Iterator[Mistake]:
        """Find arguments in the name of the program, which only a shell would split."""
        if self.server.what is not EntryKind.STDIO:
            return
        proxy = self.server.proxy
        words = self.server.argv if proxy is None else self.server.argv[proxy.at :]
        first, blank, rest = (words[0] if words else "").strip().partition(" ")
        program = first.replace("\\", "/").rpartition("/")[2].lower()
        if blank and rest.strip() and program in _LAUNCHERS:
            node = self.server.node.get(self.layout.command) or self.server.node
            yield self.at(
                node.start,
                (self.layout.command,),
                f'"{first} …" is one word with blanks, and no program has this name',
                f'write "{first}" and each argument as an own string in '
                + ("the list" if self.layout.is_list else self.layout.args),
            )

    def values(self) -> Iterator[tuple[str, tuple[str, ...], Node]]:
        """Yield the strings of the entry with their part and their keys."""
        node, layout = self.server.node, self.layout
        members = {layout.command: "args" if layout.is_list else "command", layout.args: "args"}
        members |= {layout.env: "env", "cwd": "cwd"} | dict.fromkeys(layout.url, "url")
        members[layout.headers[0]] = "headers"
        for member in node.members:
            part = members.get(member.key)
            if part is None:
                continue
            for keys, value in _strings(member.node):
                yield part, (member.key, *keys), value

    def value(self, part: str, path: tuple[str, ...], node: Node) -> Iterator[Mistake]:
        value = node.text
        if path[-1] == "MCPSPY_ORIGINAL" or (part == "args" and self.is_for_a_shell(path)):
            return
        if value[:1] in jsonc.QUOTES and value[:1]:
            yield self.at(
                node.start, path, f"the value begins with the quotation mark {value[0]}", 'keep only the "'
            )
        how = self.how
        if how.variables is not None and part in how.parts:
            for form, written, name in _references(value):
                if form not in how.variables:
                    yield self.at(
                        node.start,
                        path,
                        f"{self.host} does not replace {written[:LONGEST]}",
                        _instead(form, name, how),
                        how.variables_source,
                    )
        if part in how.literal_home and value[:2] in ("~/", "~\\"):
            yield self.at(
                node.start,
                path,
                f"{self.host} does not replace the ~ of {value[:LONGEST]}",
                "write the whole path",
                how.home_source,
            )
        rest = value.rpartition("=")[2] if part == "args" else value
        if is_placeholder(rest) and rest[0] not in "$%{~" and not _references(rest):
            yield self.at(
                node.start, path, f"{rest[:LONGEST]} is a placeholder of a guide", "write your own value"
            )

    def is_for_a_shell(self, path: tuple[str, ...]) -> bool:
        """Return whether a shell replaces the variables of this argument."""
        argv = self.server.argv
        proxy = self.server.proxy
        words = argv if proxy is None else argv[proxy.at :]
        if words and words[0].replace("\\", "/").rpartition("/")[2].lower() in REMOTE:
            return True
        args = self.server.node.get(*path[:-1])
        at = int(path[-1]) if path[-1].isdigit() else 0
        return args is not None and 0 < at <= len(args.items) and args.items[at - 1].node.text in SCRIPTS

    def at(self, position: int, path: tuple[str, ...], text: str, fix: str, source: str = "") -> Mistake:
        return Mistake(
            _line(self.text, position), ".".join((*self.path, *path)), self.server.name, text, fix, source
        )


def _strings(node: Node) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Yield the strings of a value, an object of strings, or a list of strings."""
    if node.kind is NodeKind.STRING:
        yield (), node
    for member in node.members:
        for keys, value in _strings(member.node):
            yield (member.key, *keys), value
    for number, item in enumerate(node.items):
        for keys, value in _strings(item.node):
            yield (str(number), *keys), value


def _servers_in(node: Node) -> bool:
    """Return whether a value is an object of entries with a command or a URL."""
    return node.kind is NodeKind.OBJECT and any(
        (found := member.node.get(key)) is not None and found.kind in (NodeKind.STRING, NodeKind.ARRAY)
        for member in node.members
        if member.key != "$schema"
        for key in ("command", "url", "httpUrl", "serverUrl")
    )


def _references(value: str) -> list[tuple[str, str, str]]:
    """Return the variables in a value: form, source text, name."""
    found = []
    for match in _REFERENCE.finditer(value):
        inner = match["inner"]
        if inner is None:
            for group, form in (
                ("braces", reading.BRACES),
                ("bare", reading.BARE),
                ("known", reading.BARE),
                ("percent", reading.PERCENT),
            ):
                if match[group]:
                    written = f"${match[group]}" if form == reading.BARE else match[0]
                    found.append((form, written, match[group]))
            continue
        kind, colon, name = inner.partition(":")
        if colon and kind == "env":
            found.append((reading.ENV, match[0], name.partition(":")[0]))
        elif kind in _EDITOR or (colon and kind.isalpha() and kind.islower() and name[:1] != "-"):
            found.append((reading.EDITOR, match[0], ""))
        elif re.fullmatch(r"[A-Za-z_]\w*", kind):
            found.append((reading.PLAIN, match[0], kind))
    return found


def _instead(form: str, name: str, how: HostReading) -> str:
    """Return what to write in place of a variable that is not replaced."""
    forms = [own for own in how.variables or () if "NAME" in own]
    if name and how.instead:
        return f"delete it here, and add {name} to {how.instead}"
    if not name or not forms:
        return "write the value itself"
    return f"write {forms[0].replace('NAME', name)}"


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, max(position, 0)) + 1
