"""The settings of a client at its server, and their agreements: each new server gets them again."""

from __future__ import annotations

from typing import Any, NamedTuple

from mcpspy.core.protocol.message import Notification, Request, loads, meta_raw, text
from mcpspy.core.protocol.spec import META
from mcpspy.core.restart.listings import ServerHandshake
from mcpspy.core.rules.edit import to_json
from mcpspy.core.session.exchange import SUBSCRIBE
from mcpspy.core.session.request_table import id_key


class Setting(NamedTuple):
    """A request that restores what the client had set."""

    method: str
    params: bytes
    subject: str = ""


class ClientState:
    def __init__(self) -> None:
        self.initialize = b""
        """The client's `initialize`, once a server has answered it with a result."""
        self.is_initialized = False
        self.is_modern = False
        """True from the first result on that answers a request of 2026-07-28."""
        self.meta: dict[str, Any] = {}
        """The members of `_meta` that every request of 2026-07-28 has."""
        self.first: ServerHandshake | None = None
        """The handshake that the client has seen."""
        self._subscriptions: dict[str, bytes] = {}
        self._level = b""
        self._listens: dict[str, dict[str, Any]] = {}
        """Open `subscriptions/listen` requests, by `id_key` → the notifications that the server acknowledged."""
        self._repeated: set[str] = set()
        """Those that were sent again, and whose acknowledgement the client has."""

    @property
    def revision(self) -> str | None:
        """The revision of the client's requests, from 2026-07-28 on."""
        return self.meta.get(f"{META}protocolVersion")

    @property
    def has_begun(self) -> bool:
        """Return whether the session may be used: the client has seen the handshake, where there is one."""
        return self.is_modern or self.is_initialized

    def initialized(self, initialize: bytes) -> None:
        """Begin a session with a handshake."""
        self.initialize, self.is_initialized, self.is_modern, self.first = initialize, False, False, None

    def has_shown(self, handshake: ServerHandshake) -> None:
        """Take a handshake that another client has seen, who shares the session."""
        if self.first is not None:
            capabilities = {**handshake.capabilities, **self.first.capabilities}
            self.first = self.first._replace(capabilities=capabilities)

    def modernized(self, request: Request) -> None:
        """Begin a session of 2026-07-28."""
        self.is_modern = True
        self.meta = {key: value for key, value in loads(request.meta).items() if key.startswith(META)}

    def sent(self, request: Request) -> None:
        if request.method == SUBSCRIBE:
            self._listens[id_key(request.id)] = {}

    def ended(self, key: str) -> None:
        """Take the end of a request: its response, or its cancellation."""
        self._listens.pop(key, None)

    def accepted(self, request: Request) -> None:
        """Remember a setting that the server has accepted."""
        if request.method == "resources/subscribe" and request.subject is not None:
            self._subscriptions[request.subject] = bytes(request.raw_params)
        elif request.method == "resources/unsubscribe" and request.subject is not None:
            self._subscriptions.pop(request.subject, None)
        elif request.method == "logging/setLevel" and isinstance(request.params, dict):
            self._level = bytes(request.raw_params)

    @property
    def settings(self) -> list[Setting]:
        """The requests that restore what the client had set, until 2025-11-25."""
        subscribed = [
            Setting("resources/subscribe", params, uri) for uri, params in self._subscriptions.items()
        ]
        return subscribed + ([Setting("logging/setLevel", self._level)] if self._level else [])

    def repeats(self, key: str) -> bool:
        """Return whether the next server gets this open request again, which is a subscription."""
        if key not in self._listens:
            return False
        self._repeated.add(key)
        return True

    def acknowledged(self, message: Notification) -> bool:
        """Take the acknowledgement of a subscription. Return whether the client has it already."""
        key = id_key(text(meta_raw(message.meta, f"{META}subscriptionId")) or "")
        if key in self._repeated:
            self._repeated.discard(key)
            return True
        agreed = message.params.get("notifications") if isinstance(message.params, dict) else None
        if key in self._listens and isinstance(agreed, dict):
            self._listens[key] = agreed
        return False

    def forget_repeated(self) -> None:
        """Expect no acknowledgement of a server that has ended."""
        self._repeated.clear()

    def list_changed(self, kind: str) -> list[bytes]:
        """Return the notifications of changed lists of a kind that the client has agreed to."""
        method = f"notifications/{kind}/list_changed"
        if not self.is_modern:
            is_agreed = self.first is not None and self.first.has(kind)
            return [b'{"jsonrpc":"2.0","method":"%b"}' % method.encode()] if is_agreed else []
        return [
            notification(method, {"_meta": {f"{META}subscriptionId": loads(id_.encode())}})
            for id_, agreed in self._listens.items()
            if agreed.get(f"{kind}ListChanged") is True
        ]


def notification(method: str, params: dict[str, Any]) -> bytes:
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (to_json(method), to_json(params))
