"""The open `subscriptions/listen` of a host of 2026-07-28, at a server that has `resources/subscribe`."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct
from msgspec.json import encode

from mcpspy.core.era.messages import (
    ACKNOWLEDGED,
    LISTS,
    SUBSCRIPTION,
    edited,
    object_in,
    params_of,
)
from mcpspy.core.protocol.message import Notification, Request
from mcpspy.core.rules.edit import to_json


class _Subscription(Struct, eq=False):
    wanted: dict[str, Any]
    """The part of the filter of the host that the server can fulfil."""
    pending: set[str]
    """URIs that the server has not accepted yet."""
    is_acknowledged: bool = False


class HostSubscriptions:
    def __init__(self) -> None:
        self._open: dict[str, _Subscription] = {}
        """By the id of the host's request, as JSON text."""

    @property
    def uris(self) -> list[str]:
        """The resources that the host is subscribed to, each once."""
        return list(dict.fromkeys(uri for each in self._open.values() for uri in _uris(each.wanted)))

    def listen(self, message: Request, offered: dict[str, Any]) -> list[str]:
        """Open a subscription to what a server with these capabilities offers. Return the URIs to subscribe to."""
        wanted = object_in(params_of(message), "notifications")
        agreed: dict[str, Any] = {
            member: True
            for kind, member in LISTS.values()
            if wanted.get(member) is True and object_in(offered, kind).get("listChanged")
        }
        uris = wanted.get("resourceSubscriptions")
        named = [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []
        if named and object_in(offered, "resources").get("subscribe"):
            agreed["resourceSubscriptions"] = list(dict.fromkeys(named))
        pending = {uri for each in self._open.values() for uri in each.pending}
        known = set(self.uris) - pending
        missing = [uri for uri in _uris(agreed) if uri not in known]
        self._open[message.id] = _Subscription(agreed, set(missing))
        return [uri for uri in missing if uri not in pending]

    def take(self, uri: str, *, is_accepted: bool) -> None:
        """Take the server's response to a subscription to a resource."""
        for each in self._open.values():
            each.pending.discard(uri)
            if not is_accepted and uri in _uris(each.wanted):
                each.wanted["resourceSubscriptions"] = [other for other in _uris(each.wanted) if other != uri]

    def acknowledged(self) -> list[bytes]:
        """Return the acknowledgements that are due now."""
        found = []
        for id_, each in self._open.items():
            if not each.pending and not each.is_acknowledged:
                each.is_acknowledged = True
                params = {"_meta": {SUBSCRIPTION: Raw(id_.encode())}, "notifications": each.wanted}
                found.append(
                    b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (to_json(ACKNOWLEDGED), encode(params))
                )
        return found

    def cancel(self, id: str) -> list[str] | None:  # noqa: A002
        """End a subscription. Return the URIs to unsubscribe from; None if it is not open."""
        subscription = self._open.pop(id, None)
        if subscription is None:
            return None
        left = set(self.uris)
        return [uri for uri in _uris(subscription.wanted) if uri not in left]

    def tagged(self, message: Notification, data: bytes) -> list[bytes]:
        """Return a notification of a change for each subscription that has agreed to it."""
        member = LISTS[message.method][1] if message.method in LISTS else ""
        uri = params_of(message).get("uri")
        return [
            edited(data, ("params", "_meta"), {SUBSCRIPTION: id_.encode()})
            for id_, each in self._open.items()
            if each.is_acknowledged and (each.wanted.get(member) if member else uri in _uris(each.wanted))
        ]


def _uris(wanted: dict[str, Any]) -> list[str]:
    found = wanted.get("resourceSubscriptions")
    return found if isinstance(found, list) else []
