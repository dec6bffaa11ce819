"""Loader of a recorded session: reads entries and groups them into interactions, by cause and effect.

It determines the cause and the gates of each server message. `core.session.request_table` finds the request of
responses and progress; the cause of other messages is inferred. Actions of rules and viewers are applied, so that
the client receives the same messages as when the session was recorded. The interactions are stored in the store.
"""

from __future__ import annotations

from typing import TypeGuard

from msgspec import Struct

from mcpspy.core.mock.interaction import CANCEL, EOF, ValidMessage
from mcpspy.core.mock.matching import request_key
from mcpspy.core.mock.store import (
    MODERN,
    NOTICE,
    OPENING,
    SUBSCRIPTION,
    InteractionStore,
    Location,
    RecordedHandshake,
)
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    meta_raw,
    read_frame,
    text,
)
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS, Peers
from mcpspy.core.protocol.spec import CLIENT, META, SERVER
from mcpspy.core.recording.decode import Entry, Frame, Header, Note
from mcpspy.core.redact.placeholder import MARK
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import SUBSCRIBE, State, event_of
from mcpspy.core.session.request_table import Key, RequestTable
from mcpspy.core.session.rule_notes import RULE

CONNECTION_CLOSED = -32000
"""Error code of SDK servers for open requests after the client has closed its end."""

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

# Globals, because access to a member of an Enum runs Python code.
PENDING, OK = State.PENDING, State.OK

GONE: Location = (0, 0)
"""Location of a message that never reached the client."""


class TrackedRequest(Struct, gc=False, eq=False):
    row: int
    number: int
    key: Key
    place: int | None = None
    """Place of a server request in its interaction; None for a client request."""
    is_owed: bool = False
    """True until the client has responded."""
    handshake: RecordedHandshake | None = None
    is_subscription: bool = False
    is_modern: bool = False
    is_task: bool = False
    is_counted: bool = True
    poll_of: None = None
    state: State = State.PENDING
    cancelled_at: float | None = None


class LoaderPairing(RequestTable[TrackedRequest]):
    """Request table that can forget answered requests, which the loader never looks up again."""

    def knows(self, key: Key) -> bool:
        return key in self._open

    def forget(self, key: Key) -> None:
        self._answered.pop(key, None)

    def take_pending(self, key: Key) -> TrackedRequest | None:
        """Remove and return the only pending request of a key, answered by a result; None in all other cases."""
        waiting = self._open.get(key)
        if waiting is None or len(waiting) > 1 or waiting[0].state is not PENDING:
            return None
        del self._open[key]
        waiting[0].state = OK
        return waiting[0]


class CauseInference:
    """Inference of the cause of server messages that do not name one, such as requests, logs and `list_changed`.

    Only the order of messages matters. The cause is the client's last message in the stream if it is unanswered or
    itself a response, else the latest open request, else the last message. Over HTTP, it is the request of the
    exchange that carried the message.
    """

    def __init__(self, store: InteractionStore) -> None:
        self.exchanges: dict[int, int] = {}
        """Open HTTP exchange → row of its request."""
        self._store = store
        self._open: dict[str | None, dict[int, None]] = {}
        """Stream → rows of open requests, the oldest first."""
        self._last: dict[str | None, tuple[int, bool]] = {}
        """Stream → row of the client's last message, and True if that message was a response."""
        self._last_stream: str | None = None

    def open_request(self, row: int, stream: str | None) -> None:
        if (waiting := self._open.get(stream)) is None:
            self._open[stream] = {row: None}
        else:
            waiting[row] = None

    def close_request(self, row: int, stream: str | None) -> None:
        waiting = self._open.get(stream)
        if waiting is not None and row in waiting:
            del waiting[row]
            if not waiting:
                del self._open[stream]

    def follow(self, stream: str | None, row: int, *, is_answer: bool = False) -> None:
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

    def row_of(self, frame: Frame, method: str) -> int:
        """Return the row of the interaction that a server message belongs to."""
        stream = frame.stream
        if frame.http is not None and (row := self.exchanges.get(frame.http)) is not None:
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


class InterceptionNotes:
    """Changes to the server's messages by interception during the recording, from notes of kind `rule`.

    A corrupted message is not changed: the same rule corrupts it again in the mock.
    """

    def __init__(self, store: InteractionStore) -> None:
        self.last: tuple[int, int] | None = None
        """Row and place of the preceding entry if it is a server message, because notes on it come next."""
        self._store = store
        self._held: dict[object, tuple[int, int]] = {}

    def may_change(self, row: int) -> bool:
        """Return True if a note may still change a message of this row."""
        return (self.last is not None and self.last[0] == row) or any(
            row == held for held, _ in self._held.values()
        )

    def add(self, note: Note, line: bytes, offset: int) -> None:
        """Apply a note; `line` is its line in the file, or empty if it is in no file."""
        fields = note.fields
        ticket, action = fields.get("ticket"), fields.get("action")
        is_held = isinstance(ticket, int)
        target = self._held.pop(ticket, None) if is_held and action == "release" else self.last
        if target is None or fields.get("from") != SERVER:
            return
        if is_held and action == "hold":
            self._held[ticket] = target
            return
        seconds, sent = fields.get("seconds"), fields.get("sent")
        if action not in ("delay", "release") or not isinstance(seconds, int | float):
            seconds = 0.0
        later = max(0.0, seconds)
        if fields.get("why") in ("dropped", "connection closed"):
            self._store.amend(*target, GONE)
        elif isinstance(sent, str) and sent[:1] + sent[-1:] == "{}" and action in ("replace", "release"):
            where = (
                self._store.noted(offset, len(line))
                if line
                else self._store.keep(sent.encode("utf-8", "replace"))
            )
            self._store.amend(*target, where, later)
        elif later:
            self._store.amend(*target, None, later)


class InteractionLoader(Peers):
    """Loader of entries into the interactions of a store."""

    def __init__(self, store: InteractionStore, header: Header | None = None) -> None:
        super().__init__()
        self.store = store
        self.has_server = False
        self._pairing = LoaderPairing()
        self.exchanges = 0
        self.damaged = 0
        """Lines that are not valid entries."""
        self._closed_at: float | None = None
        self._since: dict[int, tuple[tuple[int, ...], float]] = {}
        """Row → gates of the interaction so far, and the time at which the last one opened; absent without gates."""
        self.causes = CauseInference(store)
        self._owed: dict[int, int] = {}
        """Row → number of tasks and responses of the client that the interaction waits for."""
        self._interceptions = InterceptionNotes(store)
        store.settles = self.is_settled
        if header is not None:
            store.name, store.upstream = header.name, header.upstream

    def add(self, entry: Entry, line: bytes = b"", offset: int = 0) -> None:
        """Add the next entry; `line` is its line in the file. Messages that are in no file are kept in memory."""
        if isinstance(entry, Note) and entry.kind == RULE:
            self._interceptions.add(entry, line, offset)
            return
        self._interceptions.last = None
        if isinstance(entry, Frame):
            if self._pairing.is_repeated(entry):
                return
            for message in read_frame(entry):
                if was_forwarded(message):
                    self._add_message(message, self._where(message.data, line, offset))
                else:
                    self.exchanges += isinstance(message, Request)
        elif isinstance(entry, Note):
            self._add_note(entry)
        else:
            self.damaged += 1

    def end(self) -> None:
        self.store.is_whole, self.store.settles = True, None
        self._pairing = LoaderPairing()
        self.causes = CauseInference(self.store)
        self._since.clear()
        self._owed.clear()

    def is_settled(self, row: int) -> bool:
        """Return True if the unread rest of the recording cannot add anything to an interaction.

        It can while the interaction waits for a response of either side or belongs to the client's last message.
        """
        flags = self.store.flags(row)
        if not flags & NOTICE and (flags & SUBSCRIPTION or not self.store.is_answered(row)):
            return False
        return not (self._owed.get(row) or self._interceptions.may_change(row) or self.causes.may_follow(row))

    def _where(self, data: bytes, line: bytes, offset: int) -> Location:
        within = line.find(data)
        return (offset + within, len(data)) if within >= 0 and line else self.store.keep(data)

    def _add_message(self, message: ValidMessage, where: Location) -> None:
        if message.side == CLIENT:
            if isinstance(message, Request):
                self._client_request(message, where)
            elif isinstance(message, Notification):
                self._client_notification(message, where)
            else:
                self._client_response(message, where)
            return
        self.has_server = True
        if isinstance(message, Request):
            self._server_request(message, where)
        elif isinstance(message, Notification):
            self._server_notification(message, where)
        else:
            self._server_response(message, where)

    def _client_request(self, message: Request, where: Location) -> None:
        frame, store = message.frame, self.store
        matched = request_key(message, store.ignored)
        tracked = TrackedRequest(len(store), self.exchanges, (frame.stream, CLIENT, message.id))
        tracked.is_modern = matched.version is not None
        tracked.is_subscription = message.method == SUBSCRIBE
        token = message.progress_token if bytes(message.body.meta) else None
        self._pairing.request(tracked, frame, message.id, token, modern=True)
        self._begin(tracked, message.at, where)
        self.add_request(message)
        if message.method in HANDSHAKE_METHODS:
            tracked.handshake = RecordedHandshake(message.method, tracked.row)
            store.index.handshakes.setdefault(message.method, []).append(tracked.handshake)
        else:
            answers = matched.question is not None
            store.index.add_request(
                tracked.row, matched.digest, message.method, matched.subject, answers=answers
            )
            if MARK in message.data:
                store.index.redacted.append(tracked.row)
            if matched.version is not None:
                store.index.versions.add(matched.version)
        if frame.http is not None:
            self.causes.exchanges[frame.http] = tracked.row
        if not tracked.is_subscription:
            self.causes.open_request(tracked.row, frame.stream)
        self.causes.follow(frame.stream, tracked.row)

    def _client_notification(self, message: Notification, where: Location) -> None:
        frame = message.frame
        if message.method == "notifications/cancelled":
            tracked, flaw, _ = self._pairing.cancel(frame, text(message.body.request_id))
            if tracked is not None:
                if flaw is None and tracked.cancelled_at is None:
                    tracked.cancelled_at = message.at
                self._over(tracked, frame.stream)
        elif message.method != "notifications/progress":
            row = self.store.begin(where, message.at, 0, NOTICE)
            self.store.index.add_notification(message.method, row)
            self.causes.follow(frame.stream, row)

    def _client_response(self, message: Result | Failure, where: Location) -> None:
        tracked, _ = self._pairing.answer(message.frame, message.id, event_of(message))
        if tracked is None:
            tracked, _ = self._pairing.explain_unsolicited(message.frame, message.id)
        if tracked is not None and tracked.place is not None:
            self._gate(tracked.row, tracked.place, message.at)
            self.store.replies.setdefault(tracked.row, {})[tracked.place] = where
            if tracked.is_owed:
                tracked.is_owed = False
                self._owed[tracked.row] -= 1
            self.causes.follow(message.frame.stream, tracked.row, is_answer=True)

    def _server_response(self, message: Result | Failure, where: Location) -> None:
        tracked, _ = self._pairing.answer(message.frame, message.id, event_of(message))
        if tracked is None:
            return
        self._take_handshake(tracked, message)
        if isinstance(message, Result):
            tracked.is_task = message.is_task
            if tracked.is_task:  # The server may still report its status.
                self._owed[tracked.row] = self._owed.get(tracked.row, 0) + 1
        kind = Result if isinstance(message, Result) else Failure
        self._answered(
            tracked, kind, message.at, where, message.code if isinstance(message, Failure) else None
        )
        if isinstance(message, Result) and bytes(message.body.request_state):
            self.store.add_state(message.body.request_state, tracked.row)

    def _server_request(self, message: Request, where: Location) -> None:
        frame = message.frame
        row = self.causes.row_of(frame, message.method)
        tracked = TrackedRequest(row, self.exchanges, (frame.stream, SERVER, message.id))
        tracked.place = self.store.count(row)
        tracked.is_owed = True
        self.exchanges += 1
        self._owed[row] = self._owed.get(row, 0) + 1
        token = message.progress_token if bytes(message.body.meta) else None
        self._pairing.request(tracked, frame, message.id, token, modern=True)
        self.add_request(message)
        self._add(row, Request, message.at, where)

    def _server_notification(self, message: Notification, where: Location) -> None:
        frame, body = message.frame, message.body
        if message.method == "notifications/progress":
            tracked, _ = self._pairing.progress(frame, text(body.progress_token))
            if tracked is not None and tracked.place is None:
                self._add(tracked.row, Notification, message.at, where)
            return
        if message.method == "notifications/cancelled":
            tracked, flaw, _ = self._pairing.cancel(frame, text(body.request_id))
            if tracked is not None and flaw is None and tracked.cancelled_at is None:
                tracked.cancelled_at = message.at
        else:
            listens = text(meta_raw(body.meta, META + "subscriptionId")) if bytes(body.meta) else None
            tracked = self._pairing.subscription(frame, listens)
        if tracked is None:
            self._add(self.causes.row_of(frame, message.method), Notification, message.at, where)
        elif tracked.place is not None:
            self._add(tracked.row, Notification, message.at, where, cancels=tracked.place)
        else:
            number = tracked.number if tracked.is_subscription else None
            self._add(
                self.causes.row_of(frame, message.method), Notification, message.at, where, listens=number
            )

    def _add_note(self, note: Note) -> None:
        fields = note.fields
        if note.kind == "eof" and fields.get("from") == CLIENT:
            self._closed_at = note.at
        elif note.kind == "exit":
            self._pairing.end()
        elif note.kind == "http":
            self._pairing.http(fields.get("http"), fields.get("status"), fields)
        elif note.kind == "http-end":
            number = fields.get("http")
            tracked, flaw = self._pairing.http_end(number, fields.get("hung_up"))
            if tracked is not None and tracked.state is not State.PENDING:
                if tracked.state is State.REFUSED and not self.store.is_answered(tracked.row):
                    self._refused(tracked, flaw or "refused", note.at)
                self._over(tracked, tracked.key[0])
            if isinstance(number, int):
                self.causes.exchanges.pop(number, None)

    def _refused(self, tracked: TrackedRequest, why: str, at: float) -> None:
        """Add an HTTP error status without a message as a response."""
        data = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32000,"message":"%b"}}' % (
            tracked.key[2].encode(),
            why.encode(),
        )
        self._add(tracked.row, Failure, at, self.store.keep(data))

    def _over(self, tracked: TrackedRequest, stream: str | None) -> None:
        if tracked.place is None:
            if tracked.state is State.CANCELLED or outcome.of(tracked.state).is_late:
                self.store.cancel(tracked.row)
            self.causes.close_request(tracked.row, stream)

    def _take_handshake(self, tracked: TrackedRequest, message: Result | Failure) -> None:
        """Read the server's name and supported revisions from a response."""
        handshake = tracked.handshake
        self.add_response(message, "" if handshake is None else handshake.method)
        self.store.server = self.server
        if handshake is None:
            return
        handshake.is_answered, handshake.is_accepted = True, isinstance(message, Result)
        result = message.result if isinstance(message, Result) else None
        if not isinstance(result, dict):
            return
        if isinstance(revision := result.get("protocolVersion"), str):
            handshake.revision = revision
        if handshake.method == "server/discover" and isinstance(
            versions := result.get("supportedVersions"), list
        ):
            self.store.index.versions.update(version for version in versions if isinstance(version, str))

    def _answered(
        self,
        tracked: TrackedRequest,
        kind: type[ValidMessage],
        at: float,
        where: Location,
        code: int | None = None,
    ) -> None:
        row, is_subscription = tracked.row, tracked.is_subscription
        self._pairing.forget(tracked.key)
        if tracked.cancelled_at is not None and kind is Failure:
            self._gate(row, CANCEL, tracked.cancelled_at)
        if self._closed_at is not None and (is_subscription or code == CONNECTION_CLOSED):
            self._gate(row, EOF, self._closed_at)
        self._add(row, kind, at, where, listens=tracked.number if is_subscription else None)
        self.causes.close_request(row, tracked.key[0])

    def _begin(self, tracked: TrackedRequest, at: float, where: Location) -> None:
        self.exchanges += 1
        flags = MODERN if tracked.is_modern else 0
        if tracked.is_subscription:
            flags |= SUBSCRIPTION
        self.store.begin(where, at, tracked.number, flags)

    def _gate(self, row: int, gate: int, at: float) -> None:
        gates, since = self._since.get(row) or ((), self.store.at(row))
        if gate not in gates:
            self._since[row] = (*gates, gate), max(since, at)

    def _add(
        self,
        row: int,
        kind: type[ValidMessage],
        at: float,
        where: Location,
        *,
        listens: int | None = None,
        cancels: int | None = None,
    ) -> None:
        store = self.store
        self._interceptions.last = row, store.count(row)
        gates, since = self._since.get(row) or ((), store.at(row))
        after = max(0.0, at - since)
        is_answer = kind is Result or kind is Failure
        if gates or not is_answer or listens is not None or not store.answer(row, where, after, kind):
            store.add(row, kind, where, after, gates=gates, listens=listens, cancels=cancels)


def was_forwarded(message: AnyMessage) -> TypeGuard[ValidMessage]:
    """Return True if a message passed between host and server.

    Excluded are dropped messages, messages that mcpspy sent to the server, responses to these, and messages that a
    viewer sent to the host. A response by mcpspy is included, because the host received no other.
    """
    frame = message.frame
    if isinstance(message, Malformed) or (frame.side == SERVER and frame.to is not None):
        return False
    return frame.by is None or (frame.side == SERVER and isinstance(message, Result | Failure))
