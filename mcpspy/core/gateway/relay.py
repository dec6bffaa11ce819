"""Session of one HTTP client whose messages go to a server on stdio.

`core.protocol.passthrough` decides which stream carries a message of the server. Time is an argument. No input of a peer
raises an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mcpspy.core.mock.session import Outgoing
from mcpspy.core.mock.steering import RequestNote
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    read_frame,
    text,
)
from mcpspy.core.protocol.passthrough import CANCELLED, Passthrough
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame

MAX_SHOWN = 200
"""Characters of a line that is not a message in the report of it."""


class RelaySession:
    next_at: float | None = None
    """Nothing is scheduled: messages are due when they arrive."""

    def __init__(self) -> None:
        self.revision: str | None = None
        self.passthrough = Passthrough()
        self.cancelled: list[bytes] = []
        """Ids, as JSON text, of requests that the client has cancelled; the caller takes them."""
        self._answered_late: dict[str, None] = {}
        """Ids, as JSON text, of cancelled requests to which the server may still respond."""
        self._queue: list[Outgoing] = []
        self._complaints: list[str] = []

    @property
    def owes(self) -> bool:
        return self.passthrough.is_waiting

    @property
    def waits(self) -> bool:
        return self.passthrough.is_initializing

    def receive(self, data: bytes, now: float, messages: Sequence[AnyMessage] | None = None) -> None:
        """Pass on a body of the client; `messages` are its decoded messages, if available."""
        for message in messages if messages is not None else read_frame(Frame(now, CLIENT, data)):
            if isinstance(message, Request):
                self.passthrough.forward(message)
            elif isinstance(message, Notification):
                self.passthrough.forward(message)
                if message.method == CANCELLED and (id := text(message.body.request_id)) is not None:  # noqa: A001
                    self.cancelled.append(id.encode())
                    self._answered_late[id] = None
            elif isinstance(message, Result | Failure) and not self.passthrough.forward_response(message):
                self._complaints.append(f"a response to unknown request id {message.id} is not forwarded")

    def receive_from_server(self, data: bytes, now: float) -> None:
        for message in read_frame(Frame(now, SERVER, data)):
            if isinstance(message, Malformed) and data.strip():
                shown = data[:MAX_SHOWN].decode("utf-8", "replace")
                self._complaints.append(f"a line of the server is not a message ({message.why}): {shown}")
            elif isinstance(message, Result | Failure) and not self.passthrough.is_open(message.id):
                if message.id not in self._answered_late:
                    self._complaints.append(
                        f"the server's response to unknown request id {message.id} is not forwarded"
                    )
                self._answered_late.pop(message.id or "", None)
        self._queue += [Outgoing(now, *message) for message in self.passthrough.received(data)]
        self.revision = self.revision or self.passthrough.revision

    def take(self, now: float) -> Iterator[Outgoing]:
        taken, self._queue = self._queue, []
        yield from taken

    def cancel(self, id: str, now: float) -> None:  # noqa: A002
        """Cancel a request whose response the client has closed (2026-07-28)."""
        self.passthrough.forward_cancellation(id)

    def close(self, now: float) -> None:
        """End the session. The server learns it from the end of its process, or from `SharedServer.leave`."""

    def resume(self, now: float) -> None:
        """Do nothing: no message waits for the rest of a recording."""

    def complaints(self) -> list[str]:
        """Return the messages for the user since the last call, one line each."""
        taken, self._complaints = self._complaints, []
        return taken

    def notes(self) -> list[RequestNote]:
        return []
