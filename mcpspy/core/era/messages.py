"""The parts of messages that differ between the eras: `_meta`, capabilities, results, errors.

What neither era changes keeps its bytes. Sources: basic/index (General fields), server/utilities/caching, changelog and
schema of 2026-07-28; schema of 2025-11-25.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import DecodeError, Raw
from msgspec.json import Decoder, encode

from mcpspy.core.protocol import responses
from mcpspy.core.protocol.extensions import EXTENSION_METHODS
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    loads,
    meta_raw,
    raw_members,
    read_frame,
)
from mcpspy.core.protocol.spec import META, MODERN, REVISIONS, UNSUPPORTED_VERSION
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.edit import to_json
from mcpspy.core.session.exchange import SUBSCRIBE

LEGACY = REVISIONS[-2]
"""The last revision with a handshake."""

INITIALIZE, INITIALIZED, DISCOVER, LISTEN = (
    "initialize",
    "notifications/initialized",
    "server/discover",
    SUBSCRIBE,
)
CANCELLED, PROGRESS, LOG = "notifications/cancelled", "notifications/progress", "notifications/message"
SET_LEVEL, SUBSCRIBE_TO, UNSUBSCRIBE = "logging/setLevel", "resources/subscribe", "resources/unsubscribe"
ACKNOWLEDGED, UPDATED = "notifications/subscriptions/acknowledged", "notifications/resources/updated"

CACHEABLE = frozenset(
    "server/discover tools/list prompts/list resources/list resources/templates/list resources/read".split()
)
"""Methods whose results say how long they may be cached (server/utilities/caching, 2026-07-28)."""

ASKING = frozenset("tools/call prompts/get resources/read".split())
"""Methods that a server may answer with `input_required` (basic/patterns/mrtr, 2026-07-28: Supported Requests)."""

QUESTIONS = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""Requests to the host → the capability of a host that answers them."""

LISTS = {
    f"notifications/{kind}/list_changed": (kind, f"{kind}ListChanged")
    for kind in ("tools", "prompts", "resources")
}
"""Notification of a changed list → the server's capability, and the member of the filter of `subscriptions/listen`."""

SUBSCRIPTION, SERVER_INFO, LEVEL = f"{META}subscriptionId", f"{META}serverInfo", f"{META}logLevel"

UNKNOWN_PEER = {"name": "unknown", "version": "0"}
"""`clientInfo` or `serverInfo` of a peer that gave none: both eras require one."""

TASKS_EXTENSION = EXTENSION_METHODS["tasks/update"][0].id

_items = Decoder(list[Raw]).decode


class OwnIds:
    """Ids of mcpspy's requests to both sides, as JSON text."""

    def __init__(self, prefix: str) -> None:
        """`prefix` begins them; neither peer must be able to guess it."""
        self._prefix = prefix
        self._number = 0

    def new(self) -> str:
        self._number += 1
        return f'"{self._prefix}{self._number}"'

    def has(self, id: str) -> bool:  # noqa: A002
        return id.startswith(f'"{self._prefix}')


def read(side: str, data: bytes) -> list[AnyMessage]:
    return read_frame(Frame(0.0, side, data))


def is_modern(message: AnyMessage) -> bool:
    """Return whether a request names a revision without a handshake."""
    return isinstance(message, Request) and (message.revision or "") >= MODERN


def edited(data: bytes, path: tuple[str, ...], members: Mapping[str, bytes | None]) -> bytes:
    """Return an object with these members, as JSON text, in the object at a path; None removes one."""
    found = raw_members(Raw(data or b"{}"))
    if path:
        first, *rest = path
        found[first] = Raw(edited(bytes(found.get(first, b"")), tuple(rest), members))
    else:
        for name, value in members.items():
            if value is None:
                found.pop(name, None)
            else:
                found[name] = Raw(value)
    return encode(found)


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (to_json(method), to_json(params))


def cancelled(id: str, why: str = "") -> bytes:  # noqa: A002
    """Return the cancellation of a request; `id` is JSON text."""
    return notification(CANCELLED, {"requestId": loads(id.encode()), **({"reason": why} if why else {})})


def request(id: str, method: str, params: Mapping[str, Any]) -> bytes:  # noqa: A002
    """Return a request; `id` is JSON text."""
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        id.encode(),
        to_json(method),
        to_json(params),
    )


def result(id: str, value: Any) -> bytes:  # noqa: A002
    return responses.result(id.encode(), value)


def error(id: str, code: int, why: str) -> bytes:  # noqa: A002
    return responses.error(id.encode(), code, f"mcpspy bridge: {why}")


def params_of(message: Request | Notification) -> dict[str, Any]:
    return found if isinstance(found := message.params, dict) else {}


def result_of(message: Result) -> dict[str, Any]:
    return found if isinstance(found := message.result, dict) else {}


def object_in(value: object, name: str) -> dict[str, Any]:
    """Return the object of this name in a value; empty if there is none."""
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def meta_of(message: Request | Notification | Result) -> dict[str, Any]:
    return found if isinstance(found := loads(message.meta), dict) else {}


def revision_of(initialize: Request) -> str:
    """Return the revision for a host that asks for this one: its own, or the newest that has a handshake."""
    asked = params_of(initialize).get("protocolVersion")
    return asked if asked in REVISIONS and asked < MODERN else LEGACY


def capabilities(declared: object) -> dict[str, Any]:
    """Return the capabilities of a peer that the other one may use: all but tasks.

    Those of the core of 2025-11-25 and those of the extension (2026-07-28) differ in who decides on a task, in their
    methods and in where a result is (changelog, 6), so that no message of one is one of the other.
    """
    found = (
        {key: value for key, value in declared.items() if key != "tasks"}
        if isinstance(declared, dict)
        else {}
    )
    if TASKS_EXTENSION in object_in(found, "extensions"):
        found["extensions"] = {
            key: value for key, value in found["extensions"].items() if key != TASKS_EXTENSION
        }
    return found


def request_meta(initialize: Request, declared: dict[str, Any]) -> dict[str, Any]:
    """Return what a request of 2026-07-28 needs in `_meta`, in the name of a host with a handshake.

    `declared` are the capabilities that the host has for this server.
    """
    return {
        f"{META}protocolVersion": MODERN,
        f"{META}clientInfo": params_of(initialize).get("clientInfo") or UNKNOWN_PEER,
        f"{META}clientCapabilities": declared,
    }


def without_subscription(data: bytes, at: tuple[str, ...] = ("params",)) -> bytes:
    """Return a notification as a host with a handshake gets it, without the id of the subscription."""
    return _without_meta(data, at, (SUBSCRIPTION,))


def without_request_meta(data: bytes) -> bytes:
    """Return a request without what every request of 2026-07-28 has in `_meta`."""
    names = [
        name
        for name in raw_members(meta_raw(meta_raw(Raw(data), "params"), "_meta"))
        if name.startswith(META)
    ]
    return _without_meta(data, ("params",), names)


def _without_meta(data: bytes, at: tuple[str, ...], names: Any) -> bytes:
    """Return a message without these members of `_meta`, and without `_meta` if it is empty then."""
    inner = Raw(data)
    for name in at:
        inner = meta_raw(inner, name)
    meta = raw_members(meta_raw(inner, "_meta"))
    if not meta.keys() & set(names):
        return data
    left = {name: value for name, value in meta.items() if name not in names}
    return edited(data, at, {"_meta": encode(left) if left else None})


def for_older_host(data: bytes, method: str) -> bytes:
    """Return a result of 2026-07-28 as a host with a handshake gets it."""
    removed = {"resultType": None, **({"ttlMs": None, "cacheScope": None} if method in CACHEABLE else {})}
    members = raw_members(meta_raw(Raw(data), "result"))
    changed: dict[str, bytes | None] = {name: None for name in removed if name in members}
    # 2026-07-28 allows any value and any schema (changelog, minor 10); earlier hosts refuse what is not an object.
    if method == "tools/call" and bytes(members.get("structuredContent", b"{"))[:1] != b"{":
        changed["structuredContent"] = None
    elif method == "tools/list" and "tools" in members:
        changed["tools"] = _each(members["tools"], _older_tool)
    if changed:
        data = edited(data, ("result",), changed)
    return _without_meta(data, ("result",), (SERVER_INFO,))


def _older_tool(tool: Raw) -> Raw:
    schema = meta_raw(tool, "outputSchema")
    if not bytes(schema) or loads(meta_raw(schema, "type")) == "object":
        return tool
    return Raw(edited(bytes(tool), (), {"outputSchema": None}))


def _each(items: Raw, change: Callable[[Raw], Raw]) -> bytes:
    try:
        return encode([change(item) for item in _items(items)])
    except (DecodeError, RecursionError):  # Not an array.
        return bytes(items)


def for_newer_host(data: bytes, method: str, server: object) -> bytes:
    """Return a result of an earlier revision as a host of 2026-07-28 gets it; `server` is the server's `serverInfo`.

    It is stale at once, and for no other user: earlier servers say neither (server/utilities/caching, 2026-07-28).
    """
    members: dict[str, bytes | None] = {"resultType": b'"complete"'}
    if method in CACHEABLE:
        members |= {"ttlMs": b"0", "cacheScope": b'"private"'}
    data = edited(data, ("result",), members)
    return (
        edited(data, ("result", "_meta"), {SERVER_INFO: to_json(server)})
        if isinstance(server, dict)
        else data
    )


def supports_modern(message: Result | Failure) -> bool:
    """Return whether a response names 2026-07-28: the result of `server/discover`, or the error for the revision."""
    if isinstance(message, Result):
        versions = result_of(message).get("supportedVersions")
    else:
        versions = object_in(message.error, "data").get("supported")
        versions = versions if message.code == UNSUPPORTED_VERSION else None
    return isinstance(versions, list) and MODERN in versions
