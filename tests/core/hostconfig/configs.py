"""Random configurations like those of users and hosts: any spacing, comments, unknown members, any order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import STANDARD, ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.tree import Node

Entry = dict[str, Any]
Entries = list[tuple[str, Entry]]

WORDS = [
    "npx",
    "-y",
    "@scope/server",
    "--",
    "--name",
    "C:\\x y\\z.exe",
    "/c",
    "",
    "grüße 世界 🎈",
    'a"b',
    "it's",
    "#x",
]
NAMES = ["memory", "my server", "--", "-x", "", "größe", 'a"b', "a.b", "x/y", "🎈", "name", "server-2"]
COMMENTS = ["plain", "größe ']\"{", "a-b", "x: y, z"]


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and all its descendants."""
    todo = [node]
    while todo:
        found = todo.pop()
        yield found
        todo += [member.node for member in found.members] + [item.node for item in found.items]


def entries(rng: Random, home: ServersLocation, number: int) -> Entries:
    """Return stdio and URL servers, with other members that a host may add to them."""
    names = rng.sample(NAMES, min(number, len(NAMES))) + [f"s{n}" for n in range(number - len(NAMES))]
    return [
        (name, stdio(rng, home.layout) if rng.random() < 0.6 else url(rng, home.layout)) for name in names
    ]


def stdio(rng: Random, layout: EntryLayout = STANDARD) -> Entry:
    command = rng.choice([word for word in WORDS if word])
    args = rng.choices(WORDS, k=rng.randrange(5))
    entry: Entry = {layout.command: [command, *args] if layout.is_list else command}
    if not layout.is_list and rng.random() < 0.8:
        entry[layout.args] = args
    if rng.random() < 0.5:
        entry[layout.env] = {"KEY": "välue", "OTHER": ""}
    return _more(rng, entry, layout.stdio or "stdio", is_typed=bool(layout.remote))


def url(rng: Random, layout: EntryLayout) -> Entry:
    entry: Entry = {rng.choice(layout.url): rng.choice(["http://localhost:1/mcp", "https://x.org/mcp?key=1"])}
    if rng.random() < 0.7:
        at = entry
        for key in layout.headers[:-1]:
            at = at.setdefault(key, {})
        token = "Bearer ${input:a}" if layout.fills_env else "Bearer s3cret"
        at[layout.headers[-1]] = {"Authorization": token, "X-A": "é", "X_a": "2"}
    if layout.bearer is not None and rng.random() < 0.5:
        entry[layout.bearer] = "TOKEN"
    if layout.variables is not None and rng.random() < 0.5:
        entry[layout.variables] = {"X-V": "VARIABLE"}
    for member in layout.only_remote:
        if rng.random() < 0.5:
            entry[member] = {"scope": "x"}
    return _more(rng, entry, (*layout.remote, "http")[0], is_typed=bool(layout.remote))


def _more(rng: Random, entry: Entry, kind: str, *, is_typed: bool = False) -> Entry:
    if is_typed or rng.random() < 0.3:
        entry["type"] = kind
    if rng.random() < 0.4:
        entry["disabled"] = rng.random() < 0.5
    if rng.random() < 0.4:
        entry["unknown"] = {"nested": [1, {"deep": ["x", True]}], "command": "not this one"}
    keys = list(entry)
    rng.shuffle(keys)
    return {key: entry[key] for key in keys}


def smallest(home: ServersLocation) -> str:
    """Write a configuration with one server `a`, whose command is `x`. A project's key is the current folder."""
    layout = home.layout
    entry: Entry = {"type": layout.stdio} if layout.remote else {}
    entry[layout.command] = ["x"] if layout.is_list else "x"
    if home.syntax is ConfigSyntax.TOML:
        return f'# c\n[{home.keys[0]}.a]\n{layout.command} = "x"\n'
    if home.syntax is ConfigSyntax.YAML:
        item = "- name: a\n    " if layout.named else "a:\n    "
        return f"# c\n{home.keys[0]}:\n  {item}{layout.command}: x\n"
    inside: Any = {"a": entry}
    for key in reversed(home.keys):
        inside = {str(Path.cwd()) if key == "<project>" else key: inside}
    return json.dumps(inside, indent=3)


def text(rng: Random, home: ServersLocation, servers: Entries) -> str:
    """Write a configuration with these servers."""
    write: Callable[[Random, ServersLocation, Entries], str] = {
        ConfigSyntax.JSON: _json,
        ConfigSyntax.TOML: _toml,
        ConfigSyntax.YAML: _yaml,
    }[home.syntax]
    written = write(rng, home, servers)
    if rng.random() < 0.3:
        written = written.rstrip("\n")
    if rng.random() < 0.3:
        written = written.replace("\n", "\r\n")
    return ("\ufeff" if rng.random() < 0.2 else "") + written


def document(home: ServersLocation, servers: Entries) -> dict[str, Any]:
    """Return the data of a configuration with these servers."""
    inside: Any = [{"name": n, **e} for n, e in servers] if home.layout.named else dict(servers)
    for key in reversed(home.keys):
        inside = {key: inside}
    return {
        "before": {"mcpServers": 1},
        **inside,
        "after": [None if home.syntax is ConfigSyntax.JSON else 0, "ü"],
    }


def _json(rng: Random, home: ServersLocation, servers: Entries) -> str:
    value = document(home, servers)
    style = rng.randrange(4)
    if style == 0:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=rng.random() < 0.5)
    if style == 1:
        indent: str = rng.choice(["  ", "    ", "\t"])
        return json.dumps(value, indent=indent, ensure_ascii=False) + "\n"
    blanks = ["", "", " ", "\n    ", "\t", "  "]
    if style == 3:
        blanks += [f"// {comment}\n  " for comment in COMMENTS] + ["/* c\n */"]

    def gap() -> str:
        return rng.choice(blanks)

    def written(value: object) -> str:
        if isinstance(value, dict | list):
            parts = (
                [f"{gap()}{json.dumps(k)}{gap()}:{gap()}{written(v)}{gap()}" for k, v in value.items()]
                if isinstance(value, dict)
                else [f"{gap()}{written(item)}{gap()}" for item in value]
            )
            comma = f",{gap()}" if style == 3 and parts and rng.random() < 0.3 else ""
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            return f"{opening}{','.join(parts) or gap()}{comma}{closing}"
        return json.dumps(value, ensure_ascii=rng.random() < 0.5)

    return f"{gap()}{written(value)}{gap()}\n"


def _toml(rng: Random, home: ServersLocation, servers: Entries) -> str:
    def gap() -> str:
        return rng.choice(["", " ", "  ", "\t"])

    def key(name: str) -> str:
        return (
            name
            if re.fullmatch("[A-Za-z0-9_-]+", name) and rng.random() < 0.8
            else json.dumps(name, ensure_ascii=False)
        )

    def written(value: object, *, lines: bool = True) -> str:
        if isinstance(value, dict):
            inner = f",{gap()}".join(
                f"{gap()}{key(k)}{gap()}={gap()}{written(v, lines=False)}" for k, v in value.items()
            )
            return f"{{{inner}{gap()}}}"
        if isinstance(value, list):
            if lines and rng.random() < 0.4:
                return "[" + "".join(f"\n  {written(v)}, # {rng.choice(COMMENTS)}" for v in value) + "\n]"
            return f"[{gap()}{f',{gap()}'.join(written(v, lines=False) for v in value)}{gap()}]"
        if isinstance(value, str) and "'" not in value and rng.random() < 0.4:
            return f"'{value}'"
        return json.dumps(value, ensure_ascii=False)

    def line(name: str, value: object, prefix: str = "") -> str:
        after = f"{gap()}# {rng.choice(COMMENTS)}" if rng.random() < 0.3 else ""
        return f"{gap()}{prefix}{key(name)}{gap()}={gap()}{written(value)}{after}\n"

    root = home.keys[0]
    lines = [f"# {COMMENTS[1]}\n", line("before", {"mcpServers": 1}), "\n"]
    later = []
    inline: list[str] = []
    for name, entry in servers:
        style = rng.randrange(4)
        if style == 0:
            inline.append(line(name, entry))
        elif style == 1:
            inline += [line(k, v, f"{key(name)}.") for k, v in entry.items()]
        else:
            tables = [k for k, v in entry.items() if isinstance(v, dict) and style == 3]
            # Entries of real hosts have at most one table of headers; wrap skips an entry with two.
            if "http_headers" in tables and "env_http_headers" in tables:
                tables.remove("http_headers")
            later.append(f"{gap()}[{gap()}{root}.{key(name)}{gap()}] # {rng.choice(COMMENTS)}\n")
            later += [line(k, v) for k, v in entry.items() if k not in tables]
            for table in tables:
                later.append(f"\n[{root}.{key(name)}.{table}]\n")
                later += [line(k, v) for k, v in entry[table].items()]
            later.append(rng.choice(["", "\n", "# x\n"]))
    if inline:
        lines += [f"[{root}]\n", *inline]
    return "".join(
        [*lines, *later, "[[other.list]]\nx = 1979-05-27 07:32:00\n[after]\nü = 1\n".replace("ü", '"ü"')]
    )


def _yaml(rng: Random, home: ServersLocation, servers: Entries) -> str:
    flow = json.dumps

    def scalar(value: object) -> str:
        if not isinstance(value, str):
            return json.dumps(value)
        if re.fullmatch(r"[A-Za-z@/][\w/@.]*", value) and value[0] != "@" and rng.random() < 0.7:
            return value
        if rng.random() < 0.4:
            return "'" + value.replace("'", "''") + "'"
        return json.dumps(value, ensure_ascii=False)

    def comment() -> str:
        return f"  # {rng.choice(COMMENTS)}" if rng.random() < 0.3 else ""

    def block(value: object, indent: str) -> str:
        """Return the source text after a colon."""
        if isinstance(value, dict | list) and (not value or rng.random() < 0.3):
            return f" {flow(value, ensure_ascii=False)}{comment()}\n"
        if isinstance(value, dict):
            inner = indent + rng.choice(["  ", "    "])
            return f"{comment()}\n" + "".join(
                f"{inner}{scalar(k)}:{block(v, inner)}" for k, v in value.items()
            )
        if isinstance(value, list):
            inner = indent + rng.choice(["", "  "])
            return f"{comment()}\n" + "".join(
                f"{rng.choice(['', inner + '# c - d' + chr(10)])}{inner}- {scalar(v)}{comment()}\n"
                if not isinstance(v, dict | list)
                else f"{inner}- {flow(v)}\n"
                for v in value
            )
        return f" {scalar(value)}{comment()}\n"

    lines = ["# top\n", "before: {mcpServers: 1}\n"]
    indent = rng.choice(["", "  "])
    lines.append(f"{home.keys[0]}:{comment()}\n" if servers else f"{home.keys[0]}: []\n")
    if not home.layout.named:
        lines[-1:] = [f"{home.keys[0]}:{block(dict(servers), '') if servers else ' {}' + chr(10)}"]
        return "".join([*lines, 'after: [0, "ü"]\n'])
    for name, entry in servers:
        named = list({"name": name, **entry}.items())
        rng.shuffle(named)
        if rng.random() < 0.2:
            lines.append(f"{indent}- {flow(dict(named), ensure_ascii=False)}\n")
            continue
        pad = indent + "  "
        members = [f"{scalar(k)}:{block(v, pad)}" for k, v in named]
        lines.append(f"{indent}- {pad.join(members)}{rng.choice(['', chr(10), '    # between' + chr(10)])}")
    return "".join([*lines, 'after: [0, "ü"]\n'])
