"""The headers of a request that has another body than it came with.

Owns what follows from the body: its length, and the headers in which a request
of 2026-07-28 says again what is in it. `Mcp-Param-*` repeats an argument; which
one is in the schema of the tool. Where that has not passed here it shows in the
request itself: it is the argument with that value. Source:
basic/transports/streamable-http, 2026-07-28 (standard and custom headers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcpspy.core import mirrored, routing
from mcpspy.core.headers import Headers
from mcpspy.core.message import Request, read_frame
from mcpspy.core.mirrored import Tools
from mcpspy.core.record import Frame
from mcpspy.core.spec import CLIENT

PARAM = mirrored.PREFIX.lower()

_ROUTING = tuple(name.lower() for name in (routing.METHOD, routing.NAME, routing.VERSION))


def for_body(headers: Headers, before: bytes, after: bytes, tools: Tools) -> Headers:
    """Return a request's headers for a body that was changed on its way."""
    kept = [(name, value) for name, value in headers if name.lower() != "content-length"]
    old, new = _request(before), _request(after)
    if new is None or not any(name.lower() == routing.METHOD.lower() for name, _ in kept):
        return kept
    said = {name.lower(): (name, value) for name, value in _said(new, tools).items()}
    declared = {name.lower() for each in (old, new) if each is not None for name in tools.places(each)}
    changed: Headers = []
    for name, value in kept:
        lower = name.lower()
        if lower in _ROUTING or lower in declared:
            if lower in said:
                changed.append((name, said.pop(lower)[1]))
        elif lower.startswith(PARAM) and old is not None:
            again = _again(lower.removeprefix(PARAM), routing.decoded(value), old, new)
            if again is not None:
                changed.append((name, value if again == routing.decoded(value) else routing.encoded(again)))
        else:
            changed.append((name, value))
    return changed + list(said.values())


def of_ours(headers: Headers, body: bytes, tools: Tools) -> Headers:
    """Return the headers for a request of ours, after those of one of the client's."""
    gone = ("content-length", "content-encoding", "last-event-id", *_ROUTING)
    kept = [
        (name, value)
        for name, value in headers
        if name.lower() not in gone and not name.lower().startswith(PARAM)
    ]
    request = _request(body)
    is_modern = any(name.lower() == routing.METHOD.lower() for name, _ in headers)
    if request is not None and (is_modern or request.revision is not None):
        return [*kept, *_said(request, tools).items()]
    return kept + [(name, value) for name, value in headers if name.lower() == routing.VERSION.lower()]


def _said(request: Request, tools: Tools) -> dict[str, str]:
    return routing.headers(request) | tools.headers(request)


def _request(body: bytes) -> Request | None:
    messages = read_frame(Frame(0.0, CLIENT, body))
    return messages[0] if len(messages) == 1 and isinstance(messages[0], Request) else None


def _again(name: str, value: str, old: Request, new: Request) -> str | None:
    """Return what a header says of the new request; None if there is nothing to say any more."""
    found = [path for path, held in _scalars(_arguments(old), ()) if held == value]
    plain = _letters(name)
    path = next((path for path in found if _letters(path[-1]) == plain), None)
    if path is None and len(found) != 1:
        return value  # Nothing says which argument it is.
    return mirrored.text(mirrored.at(_arguments(new), path or found[0]))


def _arguments(request: Request) -> Any:
    params = request.params
    return params.get("arguments") if isinstance(params, dict) else None


def _scalars(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, (*path, key))
    elif path and (text := mirrored.text(value)) is not None:
        yield path, text


def _letters(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
