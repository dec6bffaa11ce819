"""The fold of a long session: entries in, rows out.

Owns what a list of a million rows shows, counts and jumps to. Its rows are the
changes of `core.session.session`, in their order, and say the same; a property test
holds the two together. What belongs to what is `core.session.correlation`'s.

Most messages are plain, and `core.session.index_fast` takes them; whatever is not is
read here, as `core.protocol.message` reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Raw

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
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.protocol.spec import CLIENT, META, MODERN
from mcpspy.core.recording.decode import Entry, Frame, Header, Note, read_entry
from mcpspy.core.session.columns import (
    DAMAGED,
    FAILURE,
    FROM_CLIENT,
    FROM_NOBODY,
    FROM_SERVER,
    MALFORMED,
    NOTE,
    NOTIFICATION,
    REQUEST,
    RESULT,
    TOLD,
    Columns,
)
from mcpspy.core.session.correlation import Correlation, question
from mcpspy.core.session.exchange import SUBSCRIBE, Event, State
from mcpspy.core.session.index_fast import PlainLines, Slot
from mcpspy.core.session.rule_notes import RULE, words
from mcpspy.core.session.session import COMES_AGAIN, event_of

_ABSENT = Raw()

_KINDS = {
    Request: REQUEST,
    Notification: NOTIFICATION,
    Result: RESULT,
    Failure: FAILURE,
    Malformed: MALFORMED,
}


class Index(Columns, Peers):
    """The rows of a session, as far as it has been read."""

    def __init__(self, header: Header | None = None, sessions: int = 1) -> None:
        """Begin with no rows; of several sessions merged, say how many have to end."""
        Columns.__init__(self)
        Peers.__init__(self)
        self.header = header
        self.exit: Note | None = None
        self.is_over = False
        """Whether nothing more will come."""
        self.last_at = 0.0
        """Seconds from the start to the last entry."""
        self.messages = 0
        """All rows but the notes."""
        self.unanswered = 0
        """Requests that the end left without an answer."""
        self._pairing = Correlation[Slot]()
        self._plain = PlainLines(self, self, self._pairing)
        self._running = sessions
        self.held: dict[int, int] = {}
        """Ticket → row of a message that is held."""
        self._offset_now = self._length_now = 0

    @property
    def pending(self) -> int:
        """Requests that wait for their answer."""
        return sum(1 for _ in self._pairing.pending())

    def begin_part(self, number: int | None = None) -> None:
        """What is added from here on is in this one of the files, counted from 0; None is the next."""
        self._part_numbers.append(len(self._part_rows) if number is None else number)
        self._part_rows.append(len(self))

    def add_lines(self, lines: Sequence[bytes], offset: int) -> int:
        """Take lines that follow each other in a file, the first at `offset`; return where the next one begins."""
        place = 0
        while True:
            before = self._count
            place, offset = self._plain.take(lines, place, offset)
            if self._count > before:
                self.messages += self._count - before
                self.last_at = self.at[self._count - 1]
            if place == len(lines):
                return offset
            line = lines[place]
            self.add(read_entry(line), offset, len(line))
            place, offset = place + 1, offset + len(line) + 1

    def add(self, entry: Entry, offset: int, length: int) -> None:
        """Take the next entry, and where its line is: bytes from the start of its file, without its LF."""
        self._offset_now, self._length_now = offset, length
        if isinstance(entry, Frame):
            self.last_at = entry.at
            self._add_frame(entry)
        elif isinstance(entry, Note):
            self.last_at = entry.at
            self._add_note(entry)
        else:
            row = self._row(DAMAGED | FROM_NOBODY, entry.at, len(entry.data), offset, length)
            self._is_odd(row, entry.why)

    def end(self) -> None:
        """Nothing more will come."""
        if self.is_over:
            return
        self.is_over = True
        self._leave(self._pairing.end())

    def end_session(self, stream: str) -> None:
        """Nothing more will come of one of the sessions that are merged."""
        self._leave(self._pairing.end(lambda of: of is not None and (of + "/").startswith(stream + "/")))

    def _leave(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            self._settle(slot.row, slot.state)
            if slot.state is State.UNANSWERED:
                self.unanswered += 1
                self._fails(slot.row)

    def _add_frame(self, frame: Frame) -> None:
        again = self._pairing.comes_again(frame)
        for message in read_frame(frame):
            row = len(self)
            if again:
                self._show(message)
                self._is_odd(row, COMES_AGAIN)
            elif isinstance(message, Request):
                self._take_request(message)
            elif isinstance(message, Notification):
                self._take_notification(message)
            elif isinstance(message, Result | Failure):
                self._take_answer(message)
            else:
                self._show(message)
            is_told = isinstance(message, Request) or (isinstance(message, Result) and not message.is_task)
            if is_told and frame.by is None and row not in self.flaws:
                self.what[row] |= TOLD
            if isinstance(message, Malformed):
                self._is_odd(row, message.why)
            if message.index:
                self._batch[row] = message.index
            for flaw in message.flaws:
                self._is_odd(row, flaw)

    def _take_request(self, message: Request) -> None:
        body, frame = message.body, message.frame
        slot = self._ask(
            frame,
            message.id,
            size=len(message.data),
            method=message.method,
            subject=self._text(message.subject or ""),
            token=message.progress_token if bytes(body.meta) else None,
            revision=message.revision or "",
        )
        if bytes(body.request_state) or bytes(body.input_responses):
            asked = question(
                frame.stream, message.method, message.subject, body.request_state, body.input_responses
            )
            if (earlier := self._pairing.continued(asked)) is not None:
                self.continues[slot.row] = earlier.row
                self.continued_by[earlier.row] = slot.row
        self.hear_request(message)

    def _take_notification(self, message: Notification) -> None:
        body = message.body
        listens = meta_raw(body.meta, META + "subscriptionId") if bytes(body.meta) else _ABSENT
        self._notify(
            message.frame,
            size=len(message.data),
            method=message.method,
            subject=self._text(message.subject or ""),
            token=body.progress_token,
            wanted=body.request_id,
            listens=listens,
        )

    def _take_answer(self, message: Result | Failure) -> None:
        event = event_of(message)
        row = len(self)
        slot = self._answer(message.frame, len(message.data), message.id, event)
        if isinstance(message, Failure):
            if message.code is not None:
                self.codes[row] = message.code
            self._fails(row)
        if slot is None:
            return
        method = self.texts[self.method[slot.row]]
        self.hear_answer(message, method)
        if isinstance(message, Failure):
            return
        slot.is_task = message.is_task
        if event is Event.QUESTION:
            stream = self.texts[self.stream[slot.row]] or None
            subject = self.texts[self.subject[slot.row]] or None
            body = message.body
            asked = question(stream, method, subject, body.request_state, body.input_requests)
            self._pairing.asks(asked, slot)

    def _add_note(self, note: Note) -> None:
        row = self._row(NOTE | FROM_NOBODY, note.at, 0, self._offset_now, self._length_now)
        self.method[row] = self._text(note.kind)
        fields = note.fields
        http, stream = fields.get("http"), fields.get("stream")
        if isinstance(stream, str):
            self.stream[row] = self._text(stream)
        if isinstance(http, int) and 0 < http < 1 << 32:
            self._http[row] = http
        if note.kind in ("lost", "error"):
            self._fails(row)
        elif note.kind == "exit":
            self._running -= 1
            if not self._running:
                self.exit = note
                self.end()
        elif note.kind == RULE:
            self._effect(row, fields)
        elif note.kind == "http":
            self._pairing.http(http, fields.get("status"))
            if isinstance(http, int):
                self.heads[http] = row
        elif note.kind == "http-end":
            slot, flaw = self._pairing.http_end(http, fields.get("hung_up"))
            if slot is not None:
                self._pair[row] = slot.row + 1
                self._settle(slot.row, slot.state)
            if slot is not None and flaw is not None:
                self._is_odd(slot.row, flaw)
                self._fails(slot.row)

    def _effect(self, note: int, fields: dict[str, Any]) -> None:
        """Keep what was done to a message with the message; `note` is the row that says so."""
        ticket = fields.get("ticket")
        row = self.held.pop(ticket, None) if isinstance(ticket, int) else None
        if row is None and (row := self._before(note, fields.get("id"))) is None:
            return
        if fields.get("action") == "hold" and isinstance(ticket, int):
            self.held[ticket] = row
        if ("sent" in fields or "sent_b64" in fields) and fields.get("why") != "answered":
            self.instead[row] = note
        said, before = words(fields), self.effects.get(row)
        self.effects[row] = said if before is None else f"{before}; {said}"

    def _before(self, note: int, id: object) -> int | None:  # noqa: A002
        """Return the row of the message before a note: of a batch, the one with this id."""
        row, rule = note - 1, self.method[note]
        while row >= 0 and self.what[row] == NOTE | FROM_NOBODY and self.method[row] == rule:
            row -= 1
        if row < 0:
            return None
        offset = self._offset[row]
        while row >= 0 and self._offset[row] == offset and self.side(row):
            if self.id(row) == id:
                return row
            row -= 1
        return None

    def _ask(
        self,
        frame: Frame,
        id: str,  # noqa: A002
        *,
        size: int,
        method: str,
        subject: int,
        token: str | None,
        revision: str,
    ) -> Slot:
        row = self._message(REQUEST, frame, size)
        self.method[row] = self._text(method)
        self.subject[row] = subject
        self._id[row] = self._id_code(id)
        slot = Slot(row, method == SUBSCRIBE, revision >= MODERN)
        flaw = self._pairing.request(slot, frame, id, token, modern=self.is_modern)
        if flaw is not None:
            self._is_odd(row, flaw)
        return slot

    def _answer(self, frame: Frame, size: int, id: str | None, event: Event) -> Slot | None:  # noqa: A002
        row = self._message(FAILURE if event is Event.FAILURE else RESULT, frame, size)
        if id is not None:
            self._id[row] = self._id_code(id)
        slot, flaw = self._pairing.answer(frame, id, event)
        about = slot
        if slot is not None:
            self._pair[slot.row] = row + 1
            self._settle(slot.row, slot.state)
        else:
            about, flaw = self._pairing.stray(frame, id)
        if about is not None:
            self._pair[row] = about.row + 1
            self.method[row] = self.method[about.row]
            self.subject[row] = self.subject[about.row]
        if event is Event.TOOL_ERROR:
            self._fails(row)
        if flaw is not None and not frame.is_ours:
            self._is_odd(row, flaw)
        return slot

    def _notify(
        self,
        frame: Frame,
        *,
        size: int,
        method: str,
        subject: int,
        token: Raw,
        wanted: Raw,
        listens: Raw,
    ) -> None:
        row = self._message(NOTIFICATION, frame, size)
        self.method[row] = self._text(method)
        self.subject[row] = subject
        flaw = None
        if method == "notifications/progress":
            slot, flaw = self._pairing.progress(frame, text(token))
            if slot is not None:
                self.progress[slot.row] = row
        elif method == "notifications/cancelled":
            slot, flaw = self._pairing.cancel(frame, text(wanted))
            if slot is not None:
                self._settle(slot.row, slot.state)
        else:
            slot = self._pairing.subscription(frame, text(listens))
        if slot is not None:
            self._pair[row] = slot.row + 1
        if flaw is not None and not frame.is_ours:
            self._is_odd(row, flaw)

    def _show(self, message: AnyMessage) -> None:
        """Add a row for a message that is paired with nothing."""
        row = self._message(_KINDS[type(message)], message.frame, len(message.data))
        self._is_alone(row)
        if isinstance(message, Request | Notification):
            self.method[row] = self._text(message.method)
            self.subject[row] = self._text(message.subject or "")
        if isinstance(message, Request | Result | Failure) and message.id is not None:
            self._id[row] = self._id_code(message.id)

    def _message(self, kind: int, frame: Frame, size: int) -> int:
        self.messages += 1
        side = FROM_CLIENT if frame.side == CLIENT else FROM_SERVER
        row = self._row(kind | side, frame.at, size, self._offset_now, self._length_now)
        if frame.stream is not None:
            number = self.stream[row] = self._text(frame.stream)
            self.streams.add(number)
        if frame.http is not None and 0 < frame.http < 1 << 32:
            self._http[row] = frame.http
        return row
