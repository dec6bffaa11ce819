"""Parser of YAML 1.2 into a tree of spans, built from the marks of ruamel.yaml's nodes.

A value that is defined elsewhere (an alias, a merged mapping) has the kind OTHER, because changing it would also
change other places.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from mcpspy.core.hostconfig.tree import ArrayItem, Member, Node, NodeKind
from mcpspy.errors import UsageError

if TYPE_CHECKING:
    from ruamel.yaml import YAML


def read(text: str) -> Node:
    """Return the document; an empty one is an empty object. Raise UsageError with the position of the error."""
    resolved(text)  # Only the constructor finds duplicate keys and unknown tags.
    bom = text.startswith("\ufeff")
    root = _parser().compose(text[bom:])
    if root is None:
        return Node(NodeKind.OBJECT, int(bom), int(bom))
    return _node(root, text, int(bom), int(bom), set())


@lru_cache(maxsize=8)
def resolved(text: str) -> object:
    """Return the content with aliases resolved; raise UsageError. The result is cached: do not change it."""
    from ruamel.yaml.error import YAMLError

    try:
        return _parser().load(text.removeprefix("\ufeff"))
    except (YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{_problem(error)}") from None


def _parser() -> YAML:
    from ruamel.yaml import YAML

    return YAML(typ="safe", pure=True)


def _node(source: Any, text: str, shift: int, after: int, open_: set[int]) -> Node:
    """Convert a node of ruamel.yaml; `after` is the earliest possible start."""
    start, end = source.start_mark.index + shift, source.end_mark.index + shift
    if start < after or id(source) in open_:
        return Node(NodeKind.OTHER, -1, after, "*")
    if source.id == "scalar":
        kind = NodeKind.STRING if source.tag == "tag:yaml.org,2002:str" else NodeKind.OTHER
        # The line break at the end of a block scalar belongs to it.
        return Node(kind, start, end, str(source.value))
    block = not source.flow_style
    inside = open_ | {id(source)}
    position = start
    members, items = [], []
    if source.id == "mapping":
        for key, value in source.value:
            name = _node(key, text, shift, position, inside)
            node = _node(value, text, shift, name.end, inside)
            members.append(Member(name.text, name.start, node))
            position = max(name.end, node.end)
    else:
        for value in source.value:
            node = _node(value, text, shift, position, inside)
            dash = text.rfind("-", position, max(node.start, position)) if block else node.start
            if dash < 0 or (block and text[dash + 1 : node.start].strip(" \t\r\n")):
                return Node(NodeKind.OTHER, start, end)
            items.append(ArrayItem(dash, node))
            position = node.end
    # The end mark of a block is after the blank lines and comments that follow it.
    kind = NodeKind.OBJECT if source.id == "mapping" else NodeKind.ARRAY
    return Node(kind, start, position if block else end, "", tuple(members), tuple(items), block)


def _problem(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).partition("\n")[0]
    return (
        f"line {mark.line + 1}, column {mark.column + 1}: not YAML: {problem}"
        if mark
        else f"not YAML: {problem}"
    )
