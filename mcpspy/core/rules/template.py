"""Places in a rule's values that are filled from the message: `{{params.name}}`.

Owns their spelling: members and indices joined by dots, or a JSON pointer; of
an answer, `request.` begins what its request said. A text that is nothing but
one place becomes the value itself, whatever its type. What leads nowhere stays
as it is written: who reads the message sees which name was wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from mcpspy.core.jsontools import pointer
from mcpspy.core.rules.edit import written

Look: TypeAlias = Callable[[str], Any]
"""Returns what a part of the message is: `message` or `request`; None if there is none."""

REQUEST = "request"

_PLACE = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")

_NOTHING = object()


def has_places(value: Any) -> bool:
    """Whether a value has anything to fill."""
    if isinstance(value, str):
        return _PLACE.search(value) is not None
    if isinstance(value, dict):
        return any(map(has_places, value)) or any(map(has_places, value.values()))
    return isinstance(value, list) and any(map(has_places, value))


def asks_request(value: Any) -> bool:
    """Whether a place asks for the request of an answer."""
    if isinstance(value, str):
        return any(_is_of_request(found[1]) for found in _PLACE.finditer(value))
    if isinstance(value, dict):
        return any(map(asks_request, value)) or any(map(asks_request, value.values()))
    return isinstance(value, list) and any(map(asks_request, value))


def filled(value: Any, look: Look) -> Any:
    """Return the value with its places filled."""
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        if whole is not None:
            found = _find(whole[1], look)
            return value if found is _NOTHING else found
        return _PLACE.sub(lambda found: _as_text(_find(found[1], look), found[0]), value)
    if isinstance(value, dict):
        return {
            filled(key, look) if has_places(key) else key: filled(item, look) for key, item in value.items()
        }
    if isinstance(value, list):
        return [filled(item, look) for item in value]
    return value


def _is_of_request(path: str) -> bool:
    return path == REQUEST or path.startswith(REQUEST + ".")


def _find(path: str, look: Look) -> Any:
    """Return what a place leads to."""
    if path.startswith("/"):
        try:
            tokens, value = pointer(path), look("message")
        except ValueError:
            return _NOTHING
    else:
        tokens = tuple(path.split("."))
        of_request = _is_of_request(path)
        value = look(REQUEST if of_request else "message")
        tokens = tokens[of_request:]
    for token in tokens:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isascii() and token.isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return _NOTHING
    return value


def _as_text(value: Any, place: str) -> str:
    if value is _NOTHING:
        return place
    return value if isinstance(value, str) else written(value).decode("utf-8", "replace")
