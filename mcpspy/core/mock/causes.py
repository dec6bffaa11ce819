"""The causes of recorded messages that name none, and what interception did to messages.

The correlation has no answer for them: a log or a request of the server names no request, and a note of a rule follows
the message that it changed.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcpspy.core.mock.store import MODERN, OPENING, SUBSCRIPTION, InteractionStore, Location
from mcpspy.core.protocol.plain_line import PlainHead
from mcpspy.core.protocol.spec import SERVER
from mcpspy.core.recording.decode import Frame, Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.rule_notes import not_forwarded
from mcpspy.core.session.translation_notes import TRANSLATE

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

GONE: Location = (0, 0)
"""Location of a message that never reached the client."""


class RecordedRequest(Struct, gc=False, eq=False):
    """A request that the correlation tracks, and its place in the interactions."""

    row: int
    method: str
    subject: str | None
    at: float
    stream: str | None
    is_modern: bool = False
    is_subscription: bool = False
    place: int | None = None
    """Place of a server request in its interaction; None for a client request."""
    state: State = State.PENDING
    poll_of: RecordedRequest | None = None
    cancelled_at: float | None = None
    is_owed: bool = False
    """True while its interaction waits for the client's response, or for the end of its task."""
    is_withheld: bool = False
    """True if the client did not receive the server's response: mcpspy may respond."""

    @property
    def is_counted(self) -> bool:
        return self.poll_of is None


class CauseInference:
    """Inference of the cause of server messages that do not name one, such as requests, logs and `list_changed`.

    Only the order of messages matters. The cause is the client's last message in the stream if it is unanswered or
    itself a response, else the latest open request, else the last message. Over HTTP, it is the request of the
    exchange that carried the message.
    """

    def __init__(self, store: InteractionStore) -> None:
        self.exchanges: dict[int, tuple[int, str]] = {}
        """Open HTTP exchange → row and method of the client's message that it carried."""
        self._store = store
        self._open: dict[str | None, dict[int, None]] = {}
        """Stream → rows of open requests, the oldest first."""
        self._last: dict[str | None, tuple[int, bool]] = {}
        """Stream → row of the client's last message, and True if that message was a response."""
        self._last_stream: str | None = None

    def open_request(self, request: RecordedRequest, http: int | None) -> None:
        """Add a request of the client; `http` is the exchange that carried it."""
        row, stream = request.row, request.stream
        if http is not None:
            self.exchanges[http] = row, request.method
        if not request.is_subscription:
            if (waiting := self._open.get(stream)) is None:
                self._open[stream] = {row: None}
            else:
                waiting[row] = None
        self._last[stream], self._last_stream = (row, False), stream

    def close_request(self, row: int, stream: str | None) -> None:
        waiting = self._open.get(stream)
        if waiting is not None and row in waiting:
            del waiting[row]
            if not waiting and stream is not None:  # Each request of 2026-07-28 has another stream.
                del self._open[stream]

    def follow(self, stream: str | None, row: int, *, is_answer: bool = False) -> None:
        """Note the row of the client's last message."""
        self._last[stream], self._last_stream = (row, is_answer), stream

    def may_follow(self, row: int) -> bool:
        """Return True if the server may still react to a message, because it is the client's last one."""
        last = self._last.get(self._last_stream)
        if last is not None and last[0] == row:
            return True
        # Over HTTP, a modern request has its own stream, in which no other message of the client follows.
        return not self._store.flags(row) & MODERN and any(
            row == last_row for last_row, _ in self._last.values()
        )

    def row_of(self, frame: Frame | PlainHead, method: str) -> int:
        """Return the row of the interaction that a server message belongs to."""
        stream = frame.stream
        if frame.http is not None and (posted := self.exchanges.get(frame.http)) is not None:
            row = posted[0]
            if not self._store.flags(row) & SUBSCRIPTION or method == ACKNOWLEDGED:
                return row
            stream = self._last_stream  # The cause of a subscribed event is in another stream.
        waiting = self._open.get(stream)
        if stream in self._last:
            row, is_answer = self._last[stream]
            is_subscription = row != OPENING and self._store.flags(row) & SUBSCRIPTION
            if not waiting or is_answer or is_subscription or row in waiting:
                return row
        return next(reversed(waiting)) if waiting else OPENING


_CHANGES = ("replace", "repair", "release", TRANSLATE)
"""Actions whose `sent` the client received."""


class InterceptionNotes:
    """Changes to the server's messages by interception during the recording, from notes of kind `rule`.

    A corrupted message is not changed: the same rule corrupts it again in the mock.
    """

    def __init__(self, store: InteractionStore) -> None:
        self.last: dict[str | None, tuple[int, int]] = {}
        """Id of each server message in the preceding entry → its row and place, because notes on it come next."""
        self._store = store
        self._held: dict[object, tuple[int, int]] = {}

    def may_change(self, row: int) -> bool:
        """Return True if a note may still change a message of this row."""
        return any(row == noted for noted, _ in (*self.last.values(), *self._held.values()))

    def add(self, note: Note, line: bytes, offset: int) -> None:
        """Apply a note; `line` is its line in the file, or empty if it is in no file."""
        fields = note.fields
        ticket, action = fields.get("ticket"), fields.get("action")
        is_held = isinstance(ticket, int)
        target = self._held.pop(ticket, None) if is_held and action == "release" else self._noted(fields)
        if target is None or fields.get("from") != SERVER:
            return
        if is_held and action == "hold":
            self._held[ticket] = target
            return
        seconds, sent = fields.get("seconds"), fields.get("sent")
        if action not in ("delay", "release") or not isinstance(seconds, int | float):
            seconds = 0.0
        later = max(0.0, seconds)
        if not_forwarded(fields) is not None:
            self._store.amend(*target, GONE)
        elif isinstance(sent, str) and sent[:1] + sent[-1:] == "{}" and action in _CHANGES:
            where = (
                self._store.noted(offset, len(line))
                if line
                else self._store.keep(sent.encode("utf-8", "replace"))
            )
            self._store.amend(*target, where, later)
        elif later:
            self._store.amend(*target, None, later)

    def _noted(self, fields: dict[str, Any]) -> tuple[int, int] | None:
        """Return the message before a note; of a batch, the one with the id of the note."""
        latest, id_text = next(reversed(self.last.values()), None), fields.get("id")
        return self.last.get(id_text, latest) if isinstance(id_text, str) else latest
