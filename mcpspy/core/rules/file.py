"""A file of rules: TOML, an array of tables `[[rule]]`.

Owns where a mistake stands: file, line and column. What the keys mean is
`read`'s. Source: TOML 1.0.0.
"""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

from mcpspy.core.config import toml
from mcpspy.core.config.node import Kind, Node, where
from mcpspy.core.rules.read import Mistake, read_rule, seed
from mcpspy.core.rules.rule import Rule
from mcpspy.errors import UsageError

HINT = "see docs/rules.md"


def read_file(text: str, name: str, first: int = 1) -> list[Rule]:
    """Return the rules of a file, numbered from `first`; raise UsageError with the place of a mistake."""
    text = text.removeprefix("\ufeff")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{name}: not TOML: {error}") from None
    root = toml.read(text)
    for key in document:
        if key not in ("rule", "seed"):
            place = _place(text, root, [key])
            raise UsageError(f'{name}: {place}: unknown key "{key}": there are [[rule]] and seed', HINT)
    tables = document.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(
            f"{name}: {_place(text, root, ['rule'])}: rules are tables, each under [[rule]]", HINT
        )
    try:
        of_all = seed(document)
    except Mistake as mistake:
        raise UsageError(f"{name}: {_place(text, root, ['seed'])}: {mistake}", HINT) from None
    rules = []
    for number, table in enumerate(tables):
        try:
            rule = read_rule(first + number, table)
        except Mistake as mistake:
            place = _place(text, root, ["rule", number, *mistake.path], mistake.offset)
            raise UsageError(f"{name}: {place}: {mistake}", HINT) from None
        rules.append(replace(rule, seed=of_all) if rule.seed is None else rule)
    return rules


def _place(text: str, node: Node, path: list[Any], offset: int = 0) -> str:
    """Return where the last key of the path stands, or its value if something in that is wrong."""
    at = 0
    for key in path:
        if isinstance(key, int):
            item = node.items[key]
            at, node = item.start, item.node
            continue
        member = node.member(key) if node.kind is Kind.OBJECT else None
        if member is None:
            break
        at, node = (member.start if member.start >= 0 else at), member.node
    if offset and node.kind is Kind.STRING and text[node.start + 1 : node.end - 1] == node.text:
        at = node.start + 1 + offset
    return where(text, at)
