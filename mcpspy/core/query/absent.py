"""The reason why a filter of messages matches nothing: a name that the session does not have. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from mcpspy.core.query.fields import SUBJECTS
from mcpspy.core.query.highlight import wanted
from mcpspy.core.query.parser import parse_tree
from mcpspy.core.query.values import text_test

SHOWN = 8
"""Maximum number of names that are listed."""

_NOUNS = {"tool": "tool", "prompt": "prompt", "uri": "resource", "method": "method"}


def absent_name(text: str, names: Iterable[tuple[str, str]]) -> str:
    """Return which name of a valid filter a session does not have, and which it has; empty if it has all of them.

    `names` are the methods of the session's messages with their subjects: `("tools/call", "echo")`.
    """
    if (node := parse_tree(text)) is None:
        return ""
    known = list(dict.fromkeys(names))
    for atom in wanted(node):
        if (noun := _NOUNS.get(atom.field)) is None:
            continue
        methods = SUBJECTS.get(atom.field)
        present = [
            method if methods is None else subject
            for method, subject in known
            if method and (methods is None or (method in methods and subject))
        ]
        present = sorted(dict.fromkeys(present))
        if not any(map(text_test(atom), present)):
            return _sentence(noun, atom.value, present)
    return ""


def _sentence(noun: str, value: str, present: list[str]) -> str:
    lower = {name.lower(): name for name in present}
    near = difflib.get_close_matches(value.lower(), lower, 1, 0.6)
    meant = f": did you mean {lower[near[0]]}?" if near else "."
    if not present:
        return f'no {noun} matches "{value}", and the session has none'
    more = f" and {len(present) - SHOWN} more" if len(present) > SHOWN else ""
    return (
        f'no {noun} matches "{value}"{meant} {noun.capitalize()}s here are {", ".join(present[:SHOWN])}{more}'
    )
