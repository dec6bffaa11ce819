"""Requests of our own, in the name of one side.

Owns their ids, which nobody else can come upon, and what a request of
2026-07-28 has to say of its sender (basic/index, `_meta`): the same as the
client's own. What they are answered is told to whoever asked for them, and
forwarded to nobody.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from mcpspy.core.intercept.orders import Say
from mcpspy.core.intercept.steps import Fields, Tell
from mcpspy.core.message import Notification, Request, loads
from mcpspy.core.rules.patch import written
from mcpspy.core.spec import CLIENT, META, MODERN, other

OPENING = ("initialize", "server/discover", "ping")
"""Requests after which a server of an earlier revision still waits for `notifications/initialized`."""


class Injected(NamedTuple):
    """A request of ours that waits."""

    id: str
    """JSON text."""
    side: str
    """In whose name."""
    method: str
    viewer: str
    n: object
    """The number of the order."""
    at: float

    def answer(self, at: float, fields: Fields) -> Tell:
        """Return the event for the viewer that sent it: `message`, or why there is none."""
        return self.event("answer", {**fields, "seconds": round(at - self.at, 6)})

    def event(self, name: str, fields: Fields) -> Tell:
        """Return an event about it, for the viewer that sent it."""
        return Tell(self.viewer, {"event": name, "n": self.n, "id": self.id, **fields})


class Ours:
    """Our requests that wait for their answers."""

    def __init__(self, prefix: str) -> None:
        """`prefix` begins every id; random, or a peer could come upon one."""
        self._prefix = prefix
        self._number = 0
        self._open: dict[tuple[str, str], Injected] = {}
        self._introduction: dict[str, Any] = {}
        self.is_opening = False
        """Whether the client has begun to introduce itself, and no more."""
        self.has_heard = False
        """Whether the client has said anything at all."""
        self._has_begun = False

    def __len__(self) -> int:
        return len(self._open)

    @property
    def waiting(self) -> list[Injected]:
        """All of them."""
        return list(self._open.values())

    def hear(self, said: Request | Notification) -> None:
        """Learn from what a client says whether the session has begun, and what it says of itself in each request."""
        if said.side != CLIENT:
            return
        self.has_heard = True
        revision = said.revision if isinstance(said, Request) else None
        if said.method not in OPENING or (revision or "") >= MODERN:
            self._has_begun = True
        self.is_opening = not self._has_begun
        if isinstance(said, Request) and revision is not None:
            meta = loads(said.body.meta)
            self._introduction = {key: value for key, value in meta.items() if key.startswith(META)}

    def ask(self, say: Say, viewer: str, n: object, at: float) -> tuple[Injected, bytes]:
        """Return a request, and its text."""
        self._number += 1
        said = self._prefix + str(self._number)
        id_text = orjson.dumps(said).decode()
        injected = Injected(id_text, say.side, say.method, viewer, n, at)
        self._open[say.side, id_text] = injected
        return injected, _message(say.method, self._params(say, said), id_text)

    def notify(self, say: Say) -> bytes:
        """Return the text of a notification."""
        return _message(say.method, say.params, None)

    def answered(self, side: str, id: str | None) -> Injected | None:  # noqa: A002
        """Return the request of ours that this side's answer is for, which waits no more."""
        return self._open.pop((other(side), id or ""), None)

    def reported(self, side: str, token: str | None) -> Injected | None:
        """Return the request of ours that this side reports on: its progress token is its id."""
        return self._open.get((other(side), token or ""))

    def failed(self, id: str) -> Injected | None:  # noqa: A002
        """Return the request of ours under this id, which waits no more."""
        key = next((key for key in self._open if key[1] == id), None)
        return self._open.pop(key) if key is not None else None

    def _params(self, say: Say, said: str) -> dict[str, Any] | None:
        """Return the params with what this session's requests have to say of their sender.

        A request that is sent again brings the progress token of the first one,
        which is the host's: ours has one of ours.
        """
        introduction = self._introduction if say.side == CLIENT else {}
        params = dict(say.params or {})
        meta = params.get("_meta")
        given = dict(meta) if isinstance(meta, dict) else {}
        if "progressToken" in given:
            given["progressToken"] = said
        if given or introduction:
            params["_meta"] = {**introduction, **given}
        return params if params or say.params is not None else None


def _message(method: str, params: dict[str, Any] | None, id_text: str | None) -> bytes:
    message = b'{"jsonrpc":"2.0"'
    if id_text is not None:
        message += b',"id":' + id_text.encode()
    message += b',"method":' + written(method)
    return message + (b',"params":' + written(params) if params is not None else b"") + b"}"
