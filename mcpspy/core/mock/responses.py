"""Generated responses: errors, empty results, handshakes, and reports of unrecorded requests (misses)."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from mcpspy.core.mock.matching import RequestKey
from mcpspy.core.mock.recordings import Near, Recordings
from mcpspy.core.protocol.message import Malformed
from mcpspy.core.protocol.spec import META

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND = -32700, -32600, -32601
INTERNAL_ERROR, UNSUPPORTED_VERSION = -32603, -32022

UNREADABLE = ("not JSON", "starts with a byte order mark", "nested too deep", "blank line")


def result(id: bytes, value: Any) -> bytes:  # noqa: A002
    """Return a result; `id` is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, _written(value))


def error(id: bytes, code: int, message: str, data: Any = None) -> bytes:  # noqa: A002
    """Return an error; `id` is JSON text, `null` if it is unknown."""
    value = {"code": code, "message": message, **({"data": data} if data is not None else {})}
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, _written(value))


def rejection(message: Malformed) -> bytes:
    code = PARSE_ERROR if message.why.startswith(UNREADABLE) else INVALID_REQUEST
    return error(b"null", code, message.why[:200])


def initialized(recordings: Recordings) -> dict[str, Any]:
    """Return a result of `initialize`, without the revision, for a server whose handshake was not recorded."""
    return {"capabilities": _capabilities(recordings), "serverInfo": _info(recordings)}


def discovered(recordings: Recordings) -> dict[str, Any]:
    """Return a result of `server/discover` for a server of 2026-07-28 whose recording has none."""
    return {
        "supportedVersions": recordings.versions,
        "capabilities": _capabilities(recordings),
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": _info(recordings)},
    }


class Miss(Struct, frozen=True):
    key: RequestKey
    is_exhausted: bool
    """True if the request was recorded, but all recorded responses have been used."""
    nearest: list[Near]

    @property
    def text(self) -> str:
        why = "every recorded answer is used up" if self.is_exhausted else "not recorded"
        return f"{why}: {self.key.about}"

    @property
    def line(self) -> str:
        near = "; ".join(f"{near.key.about} differs at {', '.join(near.differs)}" for near in self.nearest)
        return f"{self.text}; nearest: {near}" if near else self.text

    @property
    def data(self) -> dict[str, Any]:
        return {
            "mcpspy": "used up" if self.is_exhausted else "not recorded",
            "nearest": [
                {"method": near.key.method, "about": near.key.subject, "differs": near.differs}
                for near in self.nearest
            ],
        }


def _info(recordings: Recordings) -> dict[str, str]:
    if recordings.server is None:
        return {"name": recordings.name or "mcpspy mock", "version": "0"}
    return recordings.server._asdict()


def _capabilities(recordings: Recordings) -> dict[str, Any]:
    capabilities: dict[str, Any] = {}
    for method in recordings.methods:
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
