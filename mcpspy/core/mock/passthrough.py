"""What one client asks the real server, because it was not recorded.

Owns what goes on to that server and under which ids what it says comes back: requests keep the
client's own, as nothing else is ever asked there; the server's own requests get ids that no
recorded one has.
"""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol.message import Failure, Malformed, Request, Result, read_frame
from mcpspy.core.protocol.spec import SERVER
from mcpspy.core.recording.decode import Frame


class Said(NamedTuple):
    """A message of the real server, for the client."""

    data: bytes
    request: bytes | None
    """JSON text of the id of the request whose stream carries it."""
    is_answer: bool


class Relay:
    """What is under way."""

    def __init__(self) -> None:
        self.introduction: bytes | None = None
        """The client's `initialize`."""
        self._outgoing: list[bytes] = []
        self._open: dict[str, None] = {}
        self._asked: dict[str, bytes] = {}
        """Requests of the server: our id → its own. Both are JSON text."""
        self._numbers = 0

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is still to come."""
        return bool(self._open)

    def outgoing(self) -> list[bytes]:
        """Return what is to be said to the server since the last call."""
        said, self._outgoing = self._outgoing, []
        return said

    def ask(self, message: Request) -> None:
        """Send a request on."""
        self._open[message.id] = None
        self._outgoing.append(one_line(message.data))

    def cancel(self, id: str) -> None:  # noqa: A002
        """Send a cancellation on, if what it cancels went there."""
        if id in self._open:
            del self._open[id]
            self._outgoing.append(
                b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}'
                % id.encode()
            )

    def answer(self, message: Result | Failure) -> bool:
        """Send an answer on, if it is to a request of that server; whether it is."""
        its = self._asked.pop(message.id or "", None)
        if its is None:
            return False
        self._outgoing.append(replaced(one_line(message.data), ("id",), its))
        return True

    def heard(self, data: bytes) -> list[Said]:
        """Return what the client gets of a line or body of the server."""
        # A notification does not say whose it is; most come while one request is open.
        last = next(reversed(self._open), None)
        carrier = None if last is None else last.encode()
        said = []
        for message in read_frame(Frame(0.0, SERVER, data)):
            text = one_line(message.data)
            if isinstance(message, Result | Failure):
                if message.id is not None and message.id in self._open:
                    del self._open[message.id]
                    said.append(Said(text, message.id.encode(), True))
            elif isinstance(message, Request):
                self._numbers += 1
                ours = f'"relayed-{self._numbers}"'
                self._asked[ours] = message.id.encode()
                said.append(Said(replaced(text, ("id",), ours.encode()), carrier, False))
            elif not isinstance(message, Malformed):
                said.append(Said(text, carrier, False))
        return said
