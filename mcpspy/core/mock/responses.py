"""Messages that no recording holds: errors, empty results, introductions made up from what is known.

What is said of a request that was not recorded: to the client, and to a person.

Owns the search for the nearest recorded requests, and for the exact places at
which they differ.
"""

from __future__ import annotations

import json
from heapq import nsmallest
from itertools import islice
from typing import Any

from msgspec import Struct

from mcpspy.core.jsontools import differences
from mcpspy.core.mock.matching import Asked, Key, asked, whole
from mcpspy.core.mock.recordings import Library
from mcpspy.core.protocol.message import Request
from mcpspy.core.protocol.spec import META, REVISIONS

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INTERNAL_ERROR, UNSUPPORTED_VERSION = -32603, -32022


def result(id: bytes, value: Any) -> bytes:  # noqa: A002
    """Return the answer to a request; `id` is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, _written(value))


def error(id: bytes, code: int, message: str, data: Any = None) -> bytes:  # noqa: A002
    """Return an error; `id` is JSON text, `null` if it is not known."""
    value = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _written(value))


def initialized(library: Library, asked: Any) -> dict[str, Any]:
    """Return what a server of a recording without its handshake would say of itself."""
    version = asked if isinstance(asked, str) and asked in REVISIONS[:-1] else REVISIONS[-2]
    return {
        "protocolVersion": version,
        "capabilities": _capabilities(library),
        "serverInfo": _info(library),
    }


def discovered(library: Library) -> dict[str, Any]:
    """Return what a server of 2026-07-28 that was never probed would say of itself."""
    return {
        "supportedVersions": library.versions,
        "capabilities": _capabilities(library),
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": _info(library)},
    }


def _info(library: Library) -> dict[str, str]:
    if library.server is None:
        return {"name": library.name or "mcpspy mock", "version": "0"}
    return library.server._asdict()


def _capabilities(library: Library) -> dict[str, Any]:
    """Return the capabilities that the recorded requests show."""
    capabilities: dict[str, Any] = {}
    for method in library.methods:
        first = method.partition("/")[0]
        if first in ("tools", "prompts", "resources", "logging"):
            capabilities.setdefault(first, {})
        elif first == "completion":
            capabilities["completions"] = {}
        if method == "resources/subscribe":
            capabilities.setdefault("resources", {})["subscribe"] = True
    return capabilities


def _written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


NEAREST = 3
DIFFERENCES = 20
LOOKED_AT = 300
"""Requests of the method, and of others, compared for a miss; a recording may have a hundred thousand."""


class Near(Struct, frozen=True):
    """A recorded request that is not quite the one that was asked for."""

    asked: Asked
    differs: list[str]
    """JSON pointers, at most `DIFFERENCES`."""


class Miss(Struct, frozen=True):
    """A request without its answer."""

    asked: Asked
    is_used_up: bool
    """Whether it was recorded, but not so often."""
    nearest: list[Near]

    @property
    def text(self) -> str:
        """What happened, in a few words."""
        why = "every recorded answer is used up" if self.is_used_up else "not recorded"
        return f"{why}: {self.asked.about}"

    @property
    def line(self) -> str:
        """What a person is told."""
        near = "; ".join(f"{near.asked.about} differs at {', '.join(near.differs)}" for near in self.nearest)
        return f"{self.text}; nearest: {near}" if near else self.text

    @property
    def data(self) -> dict[str, Any]:
        """What the client is told, as the error's `data`."""
        return {
            "mcpspy": "used up" if self.is_used_up else "not recorded",
            "nearest": [
                {"method": near.asked.method, "about": near.asked.subject, "differs": near.differs}
                for near in self.nearest
            ],
        }


def miss(request: Request, library: Library) -> Miss:
    """Return what there is to say of a request that nothing is answered to."""
    wanted = asked(request, library.ignored)
    if library.queue(wanted.digest) is not None:
        return Miss(wanted, True, [])
    live = whole(request, library.ignored)
    found: dict[Key, tuple[tuple[bool, bool, int], Near]] = {}
    for scene in library.near(wanted, LOOKED_AT):
        recorded = scene.cause
        if not isinstance(recorded, Request) or (its := asked(recorded, library.ignored)).key in found:
            continue
        differs = _differences(live, recorded, library)
        rank = (its.method != wanted.method, its.subject != wanted.subject, len(differs))
        found[its.key] = rank, Near(its, differs)
    nearest = nsmallest(NEAREST, found.values(), key=lambda entry: entry[0])
    return Miss(wanted, False, [near for _, near in nearest])


def _differences(live: dict[str, Any], request: Request, library: Library) -> list[str]:
    recorded = whole(request, library.ignored)
    if live["method"] != recorded["method"]:
        return ["/method"]
    try:
        return list(islice(differences(live, recorded), DIFFERENCES))
    except RecursionError:
        return ["/params"]
