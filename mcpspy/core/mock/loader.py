"""A recorded session, read as causes and effects, entry by entry.

Owns which message of the client each message of the server has to come after,
and what it waits for besides. Answers and progress say so themselves, which is
`core.session.correlation`'s; of the rest `placement` says it. Nothing is kept here of what
was read but what still waits: the rest is on the shelf.

After which message of the client a message of the server has to come that does not say so itself.

Owns the guess. Order is all there is: a server request, a log message or a `list_changed` follows
the client's last message if that still waits for its answer, or is itself an answer; else the
youngest request that waits; else the last message. Over HTTP the exchange that carried it says so.

What mcpspy said and did while a session was recorded: the client is told what it was told then.

Owns which messages were part of its talk with the server, and what of a message of the server was
changed, dropped or delayed on its way to it, as the notes of the recording say it. A message that was
corrupted is left whole: that is for the same rule to do again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from msgspec import Struct

from mcpspy.core.mock.interaction import CANCEL, EOF, Said
from mcpspy.core.mock.matching import asked
from mcpspy.core.mock.store import MODERN, NOTICE, OPENING, SUBSCRIPTION, Introduced, Place, Shelf
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
from mcpspy.core.protocol.peers import INTRODUCTIONS, Peers
from mcpspy.core.protocol.spec import CLIENT, META, SERVER
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from mcpspy.core.redact.placeholder import MARK
from mcpspy.core.session.correlation import Key, RequestTable, event_of
from mcpspy.core.session.exchange import SUBSCRIBE, State
from mcpspy.core.session.rule_notes import RULE
from mcpspy.core.session.session import Session

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


class Placement:
    """What the client said last, and what of it still waits, in each stream."""

    def __init__(self, shelf: Shelf) -> None:
        self.posted: dict[int, int] = {}
        """Rows of the requests that HTTP exchanges carried, as long as these last."""
        self._shelf = shelf
        self._open: dict[str | None, dict[int, None]] = {}
        """Rows of the requests that wait, by stream, the oldest first."""
        self._last: dict[str | None, tuple[int, bool]] = {}
        """The row of the client's last message in a stream, and whether that was an answer."""
        self._last_stream: str | None = None

    def wait(self, row: int, stream: str | None) -> None:
        """A request waits for its answer."""
        if (waiting := self._open.get(stream)) is None:
            self._open[stream] = {row: None}
        else:
            waiting[row] = None

    def over(self, row: int, stream: str | None) -> None:
        """A request waits no more."""
        waiting = self._open.get(stream)
        if waiting is not None and row in waiting:
            del waiting[row]
            if not waiting:
                del self._open[stream]

    def moves_on(self, stream: str | None, row: int, *, is_answer: bool = False) -> None:
        """The client said something."""
        self._last[stream], self._last_stream = (row, is_answer), stream

    def may_follow(self, row: int) -> bool:
        """Whether something may still come after a message of the client, because it is what the client said last."""
        last = self._last.get(self._last_stream)
        if last is not None and last[0] == row:
            return True
        # A modern request has a stream of its own over HTTP, in which nothing follows it.
        return not self._shelf.flags(row) & MODERN and any(row == said for said, _ in self._last.values())

    def place(self, frame: Frame, method: str) -> int:
        """Return the row of the scene in which a message of the server has to come."""
        stream = frame.stream
        if frame.http is not None and (posted := self.posted.get(frame.http)) is not None:
            if not self._shelf.flags(posted) & SUBSCRIPTION or method == ACKNOWLEDGED:
                return posted
            stream = self._last_stream  # What it listens for was brought about in another stream.
        waiting = self._open.get(stream)
        if stream in self._last:
            row, is_answer = self._last[stream]
            is_subscription = row != OPENING and self._shelf.flags(row) & SUBSCRIPTION
            if not waiting or is_answer or is_subscription or row in waiting:
                return row
        return next(reversed(waiting)) if waiting else OPENING


GONE: Place = (0, 0)
"""Where a message is that never reached the client."""


class Tampering:
    """The fold over notes of kind `rule`."""

    def __init__(self, shelf: Shelf) -> None:
        self.last: tuple[int, int] | None = None
        """Row and place of the server's message, if it is what came last: notes on it come next."""
        self._shelf = shelf
        self._held: dict[object, tuple[int, int]] = {}
        """The same of what is held, by ticket."""

    def may_change(self, row: int) -> bool:
        """Whether something may still be done to a message of this row."""
        return (self.last is not None and self.last[0] == row) or any(
            row == its for its, _ in self._held.values()
        )

    def add(self, note: Note, line: bytes, offset: int) -> None:
        """Take a note, and its line, if it is in a file."""
        fields = note.fields
        ticket, action = fields.get("ticket"), fields.get("action")
        is_held = isinstance(ticket, int)
        which = self._held.pop(ticket, None) if is_held and action == "release" else self.last
        if which is None or fields.get("from") != SERVER:
            return
        if is_held and action == "hold":
            self._held[ticket] = which
            return
        seconds, sent = fields.get("seconds"), fields.get("sent")
        if action not in ("delay", "release") or not isinstance(seconds, int | float):
            seconds = 0.0
        later = max(0.0, seconds)
        if fields.get("why") in ("dropped", "connection closed"):
            self._shelf.amend(*which, GONE)
        elif isinstance(sent, str) and sent[:1] + sent[-1:] == "{}" and action in ("replace", "release"):
            where = (
                self._shelf.noted(offset, len(line))
                if line
                else self._shelf.keep(sent.encode("utf-8", "replace"))
            )
            self._shelf.amend(*which, where, later)
        elif later:
            self._shelf.amend(*which, None, later)


def is_heard(message: AnyMessage) -> TypeGuard[Said]:
    """Whether the host said it, or heard it from its server.

    What we said to the server in the host's name, its answers to that, what we dropped, and what a viewer said to the
    host is no part of their talk. An answer of ours is: the host had no other.
    """
    frame = message.frame
    if isinstance(message, Malformed) or (frame.side == SERVER and frame.to is not None):
        return False
    return frame.by is None or (frame.side == SERVER and isinstance(message, Result | Failure))


CONNECTION_CLOSED = -32000
"""What SDK servers answer to everything that still waits when the client has closed its end."""


class Slot(Struct, gc=False, eq=False):
    """A request as pairing knows it, and the scene it belongs to."""

    row: int
    number: int
    key: Key
    place: int | None = None
    """Of a request of the server: its place in the scene."""
    is_owed: bool = False
    """Whether the client's answer is still to come."""
    introduced: Introduced | None = None
    is_subscription: bool = False
    is_modern: bool = False
    is_task: bool = False
    state: State = State.PENDING
    cancelled_at: float | None = None


class Waiting(RequestTable[Slot]):
    """Pairing that can let go of a request that was answered: nothing here asks for it again."""

    def knows(self, key: Key) -> bool:
        """Whether a request waits under this key."""
        return key in self._asked

    def forget(self, key: Key) -> None:
        """Keep nothing of it."""
        self._answered.pop(key, None)


class Script(Peers):
    """The fold: entries in, scenes on a shelf."""

    def __init__(self, shelf: Shelf, header: Header | None = None) -> None:
        super().__init__()
        self.shelf = shelf
        self.has_server = False
        """Whether a server said anything so far."""
        self._pairing = Waiting()
        self.exchanges = 0
        """How many requests there were so far, of both sides."""
        self._closed_at: float | None = None
        """When the client closed its end."""
        self._since: dict[int, tuple[tuple[int, ...], float]] = {}
        """The gates of a scene so far, and when the last of them opened; none and its beginning, if it is not here."""
        self.placement = Placement(shelf)
        self._owed: dict[int, int] = {}
        """Rows that wait for answers of the client, or for what their tasks bring; how many."""
        self._tampering = Tampering(shelf)
        shelf.settles = self.is_settled
        if header is not None:
            shelf.name, shelf.upstream = header.name, header.upstream

    def add(self, entry: Entry, line: bytes = b"", offset: int = 0) -> None:
        """Take the next entry, and its line, if it is in a file; what is in none is kept."""
        if isinstance(entry, Note) and entry.kind == RULE:
            self._tampering.add(entry, line, offset)
            return
        self._tampering.last = None
        if isinstance(entry, Frame):
            if self._pairing.comes_again(entry):
                return
            for message in read_frame(entry):
                if is_heard(message):
                    self._add_message(message, self._where(message.data, line, offset))
                else:
                    self.exchanges += isinstance(message, Request)
        elif isinstance(entry, Note):
            self._add_note(entry)

    def end(self) -> None:
        """Nothing more will come."""
        self.shelf.is_whole, self.shelf.settles = True, None
        self._pairing = Waiting()
        self.placement = Placement(self.shelf)
        self._since.clear()
        self._owed.clear()

    def is_settled(self, row: int) -> bool:
        """Whether nothing that may still come belongs to a scene.

        It may, as long as the scene waits for an answer of the server or of the
        client, or is what the client said last.
        """
        flags = self.shelf.flags(row)
        if not flags & NOTICE and (flags & SUBSCRIPTION or not self.shelf.is_answered(row)):
            return False
        return not (self._owed.get(row) or self._tampering.may_change(row) or self.placement.may_follow(row))

    def _where(self, data: bytes, line: bytes, offset: int) -> Place:
        within = line.find(data)
        return (offset + within, len(data)) if within >= 0 and line else self.shelf.keep(data)

    def _add_message(self, message: Said, where: Place) -> None:
        if message.side == CLIENT:
            if isinstance(message, Request):
                self._client_asks(message, where)
            elif isinstance(message, Notification):
                self._client_notifies(message, where)
            else:
                self._client_answers(message)
            return
        self.has_server = True
        if isinstance(message, Request):
            self._server_asks(message, where)
        elif isinstance(message, Notification):
            self._server_notifies(message, where)
        else:
            self._server_answers(message, where)

    def _client_asks(self, message: Request, where: Place) -> None:
        frame, shelf = message.frame, self.shelf
        wanted = asked(message, shelf.ignored)
        slot = Slot(len(shelf), self.exchanges, (frame.stream, CLIENT, message.id))
        slot.is_modern = wanted.version is not None
        slot.is_subscription = message.method == SUBSCRIBE
        token = message.progress_token if bytes(message.body.meta) else None
        self._pairing.request(slot, frame, message.id, token, modern=True)
        self._begin(slot, message.at, where)
        self.hear_request(message)
        if message.method in INTRODUCTIONS:
            slot.introduced = Introduced(message.method, slot.row)
            shelf.keys.introductions.setdefault(message.method, []).append(slot.introduced)
        else:
            answers = wanted.question is not None
            shelf.keys.file(slot.row, wanted.digest, message.method, wanted.subject, answers=answers)
            if MARK in message.data:
                shelf.keys.redacted.append(slot.row)
            if wanted.version is not None:
                shelf.keys.versions.add(wanted.version)
        if frame.http is not None:
            self.placement.posted[frame.http] = slot.row
        if not slot.is_subscription:
            self.placement.wait(slot.row, frame.stream)
        self.placement.moves_on(frame.stream, slot.row)

    def _client_notifies(self, message: Notification, where: Place) -> None:
        frame = message.frame
        if message.method == "notifications/cancelled":
            slot, flaw = self._pairing.cancel(frame, text(message.body.request_id))
            if slot is not None:
                if flaw is None and slot.cancelled_at is None:
                    slot.cancelled_at = message.at
                self._over(slot, frame.stream)
        elif message.method != "notifications/progress":
            row = self.shelf.begin(where, message.at, 0, NOTICE)
            self.shelf.keys.notice(message.method, row)
            self.placement.moves_on(frame.stream, row)

    def _client_answers(self, message: Result | Failure) -> None:
        slot, _ = self._pairing.answer(message.frame, message.id, event_of(message))
        if slot is None:
            slot, _ = self._pairing.stray(message.frame, message.id)
        if slot is not None and slot.place is not None:
            self._gate(slot.row, slot.place, message.at)
            if slot.is_owed:
                slot.is_owed = False
                self._owed[slot.row] -= 1
            self.placement.moves_on(message.frame.stream, slot.row, is_answer=True)

    def _server_answers(self, message: Result | Failure, where: Place) -> None:
        slot, _ = self._pairing.answer(message.frame, message.id, event_of(message))
        if slot is None:
            return
        self._hear(slot, message)
        if isinstance(message, Result):
            slot.is_task = message.is_task
            if slot.is_task:  # What becomes of it may still be told.
                self._owed[slot.row] = self._owed.get(slot.row, 0) + 1
        kind = Result if isinstance(message, Result) else Failure
        self._answered(slot, kind, message.at, where, message.code if isinstance(message, Failure) else None)

    def _server_asks(self, message: Request, where: Place) -> None:
        frame = message.frame
        row = self.placement.place(frame, message.method)
        slot = Slot(row, self.exchanges, (frame.stream, SERVER, message.id))
        slot.place = self.shelf.count(row)
        slot.is_owed = True
        self.exchanges += 1
        self._owed[row] = self._owed.get(row, 0) + 1
        token = message.progress_token if bytes(message.body.meta) else None
        self._pairing.request(slot, frame, message.id, token, modern=True)
        self.hear_request(message)
        self._add(row, Request, message.at, where)

    def _server_notifies(self, message: Notification, where: Place) -> None:
        frame, body = message.frame, message.body
        if message.method == "notifications/progress":
            slot, _ = self._pairing.progress(frame, text(body.progress_token))
            if slot is not None and slot.place is None:
                self._add(slot.row, Notification, message.at, where)
            return
        if message.method == "notifications/cancelled":
            slot, flaw = self._pairing.cancel(frame, text(body.request_id))
            if slot is not None and flaw is None and slot.cancelled_at is None:
                slot.cancelled_at = message.at
        else:
            listens = text(meta_raw(body.meta, META + "subscriptionId")) if bytes(body.meta) else None
            slot = self._pairing.subscription(frame, listens)
        if slot is None:
            self._add(self.placement.place(frame, message.method), Notification, message.at, where)
        elif slot.place is not None:
            self._add(slot.row, Notification, message.at, where, withdraws=slot.place)
        else:
            number = slot.number if slot.is_subscription else None
            self._add(
                self.placement.place(frame, message.method), Notification, message.at, where, listens=number
            )

    def _add_note(self, note: Note) -> None:
        fields = note.fields
        if note.kind == "eof" and fields.get("from") == CLIENT:
            self._closed_at = note.at
        elif note.kind == "exit":
            self._pairing.end()
        elif note.kind == "http":
            self._pairing.http(fields.get("http"), fields.get("status"))
        elif note.kind == "http-end":
            number = fields.get("http")
            slot, flaw = self._pairing.http_end(number, fields.get("hung_up"))
            if slot is not None:
                if slot.state is State.REFUSED and not self.shelf.is_answered(slot.row):
                    self._refused(slot, flaw or "refused", note.at)
                self._over(slot, slot.key[0])
            if isinstance(number, int):
                self.placement.posted.pop(number, None)

    def _refused(self, slot: Slot, why: str, at: float) -> None:
        """Take an HTTP error without a message for the answer it was."""
        data = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32000,"message":"%b"}}' % (
            slot.key[2].encode(),
            why.encode(),
        )
        self._add(slot.row, Failure, at, self.shelf.keep(data))

    def _over(self, slot: Slot, stream: str | None) -> None:
        """Nothing more comes of a request of the client that was cancelled or hung up."""
        if slot.place is None:
            if slot.state in (State.CANCELLED, State.LATE):
                self.shelf.cancel(slot.row)
            self.placement.over(slot.row, stream)

    def _hear(self, slot: Slot, message: Result | Failure) -> None:
        """Take what an answer says of the server."""
        introduced = slot.introduced
        self.hear_answer(message, "" if introduced is None else introduced.method)
        self.shelf.server = self.server
        if introduced is None:
            return
        introduced.is_answered, introduced.is_taken = True, isinstance(message, Result)
        said = message.result if isinstance(message, Result) else None
        if not isinstance(said, dict):
            return
        if isinstance(revision := said.get("protocolVersion"), str):
            introduced.revision = revision
        if introduced.method == "server/discover" and isinstance(
            versions := said.get("supportedVersions"), list
        ):
            self.shelf.keys.versions.update(version for version in versions if isinstance(version, str))

    def _answered(
        self, slot: Slot, kind: type[Said], at: float, where: Place, code: int | None = None
    ) -> None:
        row, is_subscription = slot.row, slot.is_subscription
        self._pairing.forget(slot.key)
        if slot.cancelled_at is not None and kind is Failure:
            self._gate(row, CANCEL, slot.cancelled_at)
        if self._closed_at is not None and (is_subscription or code == CONNECTION_CLOSED):
            self._gate(row, EOF, self._closed_at)
        self._add(row, kind, at, where, listens=slot.number if is_subscription else None)
        self.placement.over(row, slot.key[0])

    def _begin(self, slot: Slot, at: float, where: Place) -> None:
        self.exchanges += 1
        flags = MODERN if slot.is_modern else 0
        if slot.is_subscription:
            flags |= SUBSCRIPTION
        self.shelf.begin(where, at, slot.number, flags)

    def _gate(self, row: int, gate: int, at: float) -> None:
        gates, since = self._since.get(row) or ((), self.shelf.at(row))
        if gate not in gates:
            self._since[row] = (*gates, gate), max(since, at)

    def _add(
        self,
        row: int,
        kind: type[Said],
        at: float,
        where: Place,
        *,
        listens: int | None = None,
        withdraws: int | None = None,
    ) -> None:
        shelf = self.shelf
        self._tampering.last = row, shelf.count(row)
        gates, since = self._since.get(row) or ((), shelf.at(row))
        after = max(0.0, at - since)
        is_answer = kind is Result or kind is Failure
        if gates or not is_answer or listens is not None or not shelf.answer(row, where, after, kind):
            shelf.add(row, kind, where, after, gates=gates, listens=listens, withdraws=withdraws)


def entries(session: Session) -> Iterator[Entry]:
    """Yield the entries that a session was made of."""
    before: Frame | None = None
    for change in session.changes:
        if isinstance(change.what, Note | Damaged):
            yield change.what
        elif change.what.frame is not before:
            before = change.what.frame
            yield before
