"""The requests of servers to the client: those that are open, and those of servers that have ended.

The client may answer a request after its server has ended. That answer must not reach the next server, which often uses
the same ids: a request with the id of such a stale one gets another id, until the client has answered the stale one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mcpspy.core.jsontools import replaced
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result, text
from mcpspy.core.session.request_table import id_key


class AskedOfClient:
    def __init__(self, new_id: Callable[[], str]) -> None:
        """`new_id` returns an id, as JSON text, that neither peer uses."""
        self._new_id = new_id
        self._open: dict[str, str | None] = {}
        """Requests without a response → their progress token, by `id_key`."""
        self._stale: dict[str, str | None] = {}
        """The same of servers that have ended."""
        self._renamed: dict[str, str] = {}
        """Id that the client got → the server's own id."""

    def requested(self, request: Request, data: bytes) -> bytes | None:
        """Take a request of the server. Return it with another id, None if it may keep its own."""
        id_, replacement = request.id, None
        if id_key(id_) in self._stale:
            id_ = self._new_id()
            self._renamed[id_] = request.id
            replacement = replaced(data, ("id",), id_.encode())
        self._open[id_key(id_)] = request.progress_token
        return replacement

    def answered(self, id_: str) -> None:
        self._open.pop(id_key(id_), None)

    def cancelled(self, id_: str, data: bytes) -> bytes | None:
        """Take a `notifications/cancelled` of the server. Return it with the id that the client got, if it is another."""
        given = next((new for new, own in self._renamed.items() if own == id_), None)
        if given is None:
            self._open.pop(id_key(id_), None)
            return None
        del self._renamed[given]
        self._open.pop(id_key(given), None)
        return replaced(data, ("params", "requestId"), given.encode())

    def expire(self) -> list[str]:
        """Take the end of the server. Return the ids of its open requests, as the client got them."""
        expired = list(self._open)
        self._stale |= self._open
        self._open.clear()
        return expired

    def is_stale(self, messages: Sequence[AnyMessage]) -> bool:
        """Return whether a message of the client is about a request of a server that has ended."""
        if not self._stale or len(messages) != 1:
            return False
        (message,) = messages
        if isinstance(message, Result | Failure) and message.id is not None:
            if (key := id_key(message.id)) in self._stale:
                del self._stale[key]
                return True
        elif isinstance(message, Notification) and message.method == "notifications/progress":
            token = text(message.body.progress_token)
            return token is not None and token in self._stale.values() and token not in self._open.values()
        return False

    def renamed(self, messages: Sequence[AnyMessage], data: bytes) -> bytes | None:
        """Return a response of the client with the id that the server had used; None if it is the same."""
        message = messages[0]
        if not isinstance(message, Result | Failure) or message.id not in self._renamed:
            return None
        self._open.pop(id_key(message.id), None)
        return replaced(data, ("id",), self._renamed.pop(message.id).encode())
