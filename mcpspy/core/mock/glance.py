"""What a plain request asks for, at a glance: what `asked` says of it, for a fifth of the time.

Owns the key of requests of which nothing is odd, recorded or live. Refuses the rest, questions that
are answered and what only a lenient reader takes: of these it says nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple

import orjson

from mcpspy.core.canonical import Pointer, canonical_bytes, quickly
from mcpspy.core.message import loads
from mcpspy.core.mock.asked import comparable, digest, distinction
from mcpspy.core.spec import META, METHODS, MODERN

_VERSION = META + "protocolVersion"

_SUBJECTS = {name: method.subject for name, method in METHODS.items()}

_apart = lru_cache(maxsize=64)(distinction)


class Wanted(NamedTuple):
    """A plain request, as it is matched."""

    digest: bytes
    """As of `Asked`."""
    subject: str | None
    version: str | None
    token: str | None
    """JSON text of the progress token."""


def is_plain(id: bytes) -> bool:  # noqa: A002
    """Whether the JSON text of an id is the only one of its value."""
    return id.isdigit() or (id[:1] == b'"' and b"\\" not in id)


def glance(method: str, data: bytes, ignored: Collection[Pointer] = ()) -> Wanted | None:
    """Return what a request with these params asks for; None if that takes more than a look."""
    try:
        params = orjson.loads(data) if data else {}
    except ValueError:
        return None
    if not isinstance(params, dict) or "requestState" in params or "inputResponses" in params:
        return None
    version = token = subject = None
    meta = params.pop("_meta", None)
    if meta is not None:
        if not isinstance(meta, dict) or not isinstance(number := meta.get("progressToken", ""), str | int):
            return None
        if isinstance(said := meta.get(_VERSION), str) and said >= MODERN:
            version = said
        if "progressToken" in meta:
            token = orjson.dumps(number).decode()
    if (name := _SUBJECTS.get(method)) is not None:
        subject = params.get(name)
        if subject is not None and not isinstance(subject, str):
            return None
    if not ignored and params.get("arguments") == {}:
        del params["arguments"]
    written = None if ignored else quickly(params)
    if written is None:  # orjson makes floats of integers beyond 64 bits.
        try:
            written = canonical_bytes(comparable(loads(data) if data else {}, ignored))
        except RecursionError:
            return None
    return Wanted(digest(written, _apart(method, version)), subject, version, token)
