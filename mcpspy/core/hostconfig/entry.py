"""Adding and removing the entry of a stdio server in the text of a configuration.

Each result is verified: it must parse, and all other values must be unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcpspy.core.hostconfig.edit import ServersLocation
from mcpspy.core.hostconfig.layout import ConfigSyntax, EntryLayout
from mcpspy.core.hostconfig.servers import read
from mcpspy.core.hostconfig.tree import Node, NodeKind, eol, line_indent, plain, quoted
from mcpspy.errors import UsageError


def added(text: str, location: ServersLocation, name: str, argv: Sequence[str]) -> str:
    """Return the configuration with this server, instead of one of the same name. Raise UsageError."""
    syntax, keys, layout = location
    entry = _entry(layout, name, argv)
    old = removed(text, location, name)
    if syntax is ConfigSyntax.TOML:
        new = _with_table(old, ".".join(map(_toml_key, (*keys, name))), entry)
    elif syntax is ConfigSyntax.YAML:
        new = _with_line(old, keys, f"- {_json(entry)}" if layout.named else f"{name}: {_json(entry)}")
    else:
        old = old if old.strip() else "{}\n"
        new = _with_member(old, read(old, syntax), (*keys, name), entry)
    try:
        found = {server.name: server.argv for server in location.servers(new)}
        is_safe = found.get(name) == [*argv] and _others(new, location, name) == _others(text, location, name)
    except UsageError:
        is_safe = False
    if not is_safe:
        raise UsageError(
            f"{'.'.join(keys)}: no entry can be added here", f"add it by hand: {_json({name: entry})}"
        )
    return new


def removed(text: str, location: ServersLocation, name: str) -> str:
    """Return the configuration without this server; unchanged if it has none. Raise UsageError."""
    server = (
        next((server for server in location.servers(text) if server.name == name), None)
        if text.strip()
        else None
    )
    if server is None:
        return text
    parent = read(text, location.syntax).get(*location.keys)
    assert parent is not None
    spans = [(item.start, item.node.end) for item in parent.items]
    spans = spans or [(member.start, member.node.end) for member in parent.members]
    nodes = [item.node for item in parent.items] or [member.node for member in parent.members]
    at = max(number for number, node in enumerate(nodes) if node == server.node)
    start, end = spans[at]
    if location.syntax is ConfigSyntax.JSON:
        # With the comma before it or, of the first one, after it.
        if at:
            start = spans[at - 1][1]
        elif len(spans) > 1:
            end = spans[1][0]
        else:
            start, end = len(text[:start].rstrip()), end + len(text[end:]) - len(text[end:].lstrip())
    else:
        start = text.rfind("\n", 0, start) + 1
        end = text.find("\n", end) + 1 or len(text)
        if location.syntax is ConfigSyntax.TOML and text[:start].endswith("\n\n"):
            start -= 1
    new = text[:start] + text[end:]
    if _others(new, location, name) != _others(text, location, name):
        raise UsageError(f"{name}: its entry cannot be removed without changing others", "remove it by hand")
    if any(server.name == name for server in location.servers(new)):
        raise UsageError(f"{name}: its entry is not defined in one place", "remove it by hand")
    return new


def _entry(layout: EntryLayout, name: str, argv: Sequence[str]) -> dict[str, object]:
    kind = {} if layout.stdio is None else {"type": layout.stdio}
    words = (
        {layout.command: [*argv]} if layout.is_list else {layout.command: argv[0], layout.args: [*argv[1:]]}
    )
    return {**({"name": name} if layout.named else {}), **kind, **words}


def _with_table(text: str, path: str, entry: dict[str, object]) -> str:
    """Return a TOML document with a table at its end."""
    lines = [f"[{path}]", *(f"{_toml_key(key)} = {_json(value)}" for key, value in entry.items()), ""]
    end = eol(text)
    before = text if not text or text.endswith("\n") else text + end
    return before + (end if before else "") + end.join(lines)


def _with_line(text: str, keys: tuple[str, ...], line: str) -> str:
    """Return a YAML document with a line below these keys, as the last one."""
    parent = read(text, ConfigSyntax.YAML).get(*keys)
    children = (
        [] if parent is None else [item.start for item in parent.items] or [m.start for m in parent.members]
    )
    end = eol(text)
    if parent is None or not children:
        return (text if not text or text.endswith("\n") else text + end) + f"{keys[0]}:{end}  {line}{end}"
    indent = line_indent(text, children[0]) or ""
    at = text.find("\n", parent.end - 1) + 1
    return text[:at] + f"{indent}{line}{end}" + text[at:] if at else f"{text}{end}{indent}{line}{end}"


def _with_member(text: str, document: Node, path: tuple[str, ...], entry: dict[str, object]) -> str:
    """Return a JSON document with a member at a path; missing objects are added."""
    node, depth = document, 0
    while (
        depth < len(path) - 1
        and (found := node.get(path[depth])) is not None
        and found.kind is NodeKind.OBJECT
    ):
        node, depth = found, depth + 1
    value: object = entry
    for key in reversed(path[depth + 1 :]):
        value = {key: value}
    end = eol(text)
    outer = " " * 2 * depth
    step = "  "
    if node.members:
        inner = line_indent(text, node.members[-1].start)
        step = "\t" if inner and "\t" in inner else step
        if inner is None:  # On one line.
            position = node.members[-1].node.end
            return f"{text[:position]}, {quoted(path[depth])}: {_json(value)}{text[position:]}"
        body = _indented(value, inner, step, end)
        position = node.members[-1].node.end
        return f"{text[:position]},{end}{inner}{quoted(path[depth])}: {body}{text[position:]}"
    body = _indented(value, outer + step, step, end)
    inside = text[node.start + 1 : node.end - 1].rstrip()
    return f"{text[: node.start + 1]}{inside}{end}{outer}{step}{quoted(path[depth])}: {body}{end}{outer}{text[node.end - 1 :]}"


def _indented(value: object, indent: str, step: str, end: str) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=step)
    return text.replace("\n", f"{end}{indent}")


def _others(text: str, location: ServersLocation, name: str) -> object:
    """Return the values of a configuration without this server, and without objects that are empty then."""

    def without(value: object, keys: tuple[str, ...]) -> object:
        if isinstance(value, dict) and keys:
            rest = {key: item for key, item in value.items() if key != keys[0]}
            inner = without(value.get(keys[0]), keys[1:])
            return rest if inner in (None, {}, []) else {**rest, keys[0]: inner}
        if isinstance(value, dict):
            return {key: item for key, item in value.items() if key != name}
        if isinstance(value, list):
            return [
                item
                for item in value
                if not (isinstance(item, dict) and item.get("name") == (NodeKind.STRING, name))
            ]
        return None if value in ((NodeKind.OTHER, "null"), (NodeKind.OTHER, "")) else value

    if location.syntax is ConfigSyntax.JSON and not text.strip():
        return {}
    return without(plain(read(text, location.syntax)), location.keys)


def _toml_key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else quoted(key)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
