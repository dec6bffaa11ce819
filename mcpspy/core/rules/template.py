"""Template expressions in a rule's values, filled from the message: `{{params.name}}`.

An expression is a dotted path of members and indices, or a JSON pointer; `request.` begins a path into
the request of a response. A text that is only an expression becomes the value itself, of any type. An
unknown path stays as written, so that readers of the message see which name was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from mcpspy.core.jsontools import ABSENT, pointer, value_at
from mcpspy.core.rules.edit import to_json

Lookup: TypeAlias = Callable[[str], Any]
"""Returns the `message`, or its `request`; None if there is none."""

REQUEST = "request"

_EXPRESSION = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")


def _paths(value: Any) -> Iterator[str]:
    """Yield the paths of all expressions in a value."""
    if isinstance(value, str):
        yield from _EXPRESSION.findall(value)
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _paths(part)
    elif isinstance(value, list):
        for part in value:
            yield from _paths(part)


def uses_request(value: Any) -> bool:
    """Return True if an expression refers to the request of a response."""
    return any(map(_is_of_request, _paths(value)))


def filled(value: Any, lookup: Lookup) -> Any:
    if isinstance(value, str):
        whole = _EXPRESSION.fullmatch(value)
        if whole is not None:
            found = _find(whole[1], lookup)
            return value if found is ABSENT else found
        return _EXPRESSION.sub(lambda found: _as_text(_find(found[1], lookup), found[0]), value)
    if isinstance(value, dict):
        return {filled(key, lookup): filled(item, lookup) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, lookup) for item in value]
    return value


def _is_of_request(path: str) -> bool:
    return path == REQUEST or path.startswith(REQUEST + ".")


def _find(path: str, lookup: Lookup) -> Any:
    if path.startswith("/"):
        try:
            tokens, value = pointer(path), lookup("message")
        except ValueError:
            return ABSENT
    else:
        tokens = tuple(path.split("."))
        of_request = _is_of_request(path)
        value = lookup(REQUEST if of_request else "message")
        tokens = tokens[of_request:]
    return value_at(value, tokens)


def _as_text(value: Any, expression: str) -> str:
    if value is ABSENT:
        return expression
    return value if isinstance(value, str) else to_json(value).decode("utf-8", "replace")
