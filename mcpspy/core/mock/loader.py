"""Loader of a recorded session: reads entries and groups them into interactions, by cause and effect.

`core.session.correlation` finds the request of each message. The loader infers the cause of messages that belong to no
request, and the gates of the server's messages. Actions of rules and viewers are applied, so that the client receives
the same messages as when the session was recorded. The interactions are stored in the store.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from itertools import accumulate, count

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from mcpspy.core.mock.causes import CauseInference, InterceptionNotes, RecordedRequest
from mcpspy.core.mock.interaction import CANCEL, EOF, PlayedMessage, ResponseWithoutId, ValidMessage
from mcpspy.core.mock.matching import RequestKey, plain_key, request_key
from mcpspy.core.mock.store import (
    MODERN,
    NOTICE,
    SUBSCRIPTION,
    InteractionStore,
    Location,
    RecordedHandshake,
)
from mcpspy.core.protocol.message import (
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    meta_raw,
    read_frame,
    text,
)
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS
from mcpspy.core.protocol.plain_line import PAYLOAD, PlainHead
from mcpspy.core.protocol.responses import error
from mcpspy.core.protocol.spec import CLIENT, META
from mcpspy.core.protocol.spec import MODERN as MODERN_REVISION
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note, read_entry
from mcpspy.core.redact.placeholder import MARK
from mcpspy.core.session.correlation import (
    CorrelatedEntry,
    Correlation,
    RepeatedEvent,
    RequestAnswered,
    RequestCancelled,
    RequestRepeated,
    ResponseMissing,
    TaskProgressed,
)
from mcpspy.core.session.exchange import SUBSCRIBE, State
from mcpspy.core.session.request_table import RequestTable
from mcpspy.core.session.rule_notes import RULE

CONNECTION_CLOSED = -32000
"""Error code of SDK servers for open requests after the client has closed its end, and for HTTP errors."""

HIDDEN = -2
"""Row of a request that did not pass between host and server, and so belongs to no interaction."""

MAX_ANSWERED = 1 << 12
"""Answered requests that are remembered: a second response to an older one is only unsolicited."""

FORGETS_EVERY = 1024
"""Requests between two calls of `forget_but`."""


class _HttpNote(Struct, gc=False):
    """The members of the notes on an HTTP exchange that matter here; every exchange has two notes."""

    t: float
    note: str
    http: int
    method: str = ""
    status: int | None = None
    hung_up: str | None = None
    body: str | None = None


_decode_note = Decoder(_HttpNote).decode


class InteractionLoader(Correlation[RecordedRequest]):
    """Loader of entries into the interactions of a store."""

    follows_posts = False

    def __init__(
        self, store: InteractionStore, header: Header | None = None, *, has_noise: bool = False
    ) -> None:
        """With `has_noise`, lines on the server's stdout that are not messages are played as well."""
        super().__init__(header, forgets=True)
        self.store = store
        self._has_noise = has_noise
        self.has_server = False
        self.exchanges = 0
        """Number of requests, of both sides."""
        self.damaged = 0
        """Lines that are not valid entries."""
        self.redacted = 0
        """Responses of the server that contain placeholders, which the client receives."""
        self.causes = CauseInference(store)
        self._closed_at: float | None = None
        self._since: dict[int, tuple[tuple[int, ...], float]] = {}
        """Row → gates of the interaction so far, and the time at which the last one opened; absent without gates."""
        self._owed: dict[int, int] = {}
        """Row → number of tasks and responses of the client that the interaction waits for."""
        self._rejected = 0
        """Lines of the client that are not messages: the mock itself responds to them, without an id."""
        self._interceptions = InterceptionNotes(store)
        self._line, self._offset = b"", 0
        """Line of the current entry, empty if it is in no file, and its offset there."""
        self._ends: Iterator[int] = iter(())
        """Offsets at which the lines end that `add_lines` has not processed."""
        self._forgets_at = FORGETS_EVERY
        store.settles = self.is_settled
        if header is not None:
            store.name, store.upstream = header.name, header.upstream

    def add_lines(self, lines: Sequence[bytes], offset: int) -> int:
        """Add consecutive lines, the first one at `offset`; return the offset of the next line."""
        sums = accumulate(map(len, lines), initial=offset)
        next(sums)
        self._ends = map(operator.add, sums, count())  # Each line ends with an LF.
        place = 0
        while (place := self.take_plain(lines, place)) < len(lines):
            line, end = lines[place], next(self._ends)
            if (note := _http_note(line)) is None:
                self.add(read_entry(line), line, end - len(line))
            else:
                self._interceptions.last = {}
                self._add_note(self._note(note), note)
            place += 1
        if self.exchanges >= self._forgets_at:
            self._forgets_at = self.exchanges + FORGETS_EVERY
            self._pairing.forget_but(MAX_ANSWERED)
        return offset + sum(map(len, lines)) + len(lines)

    def add(self, entry: Entry, line: bytes = b"", offset: int = 0) -> None:
        """Add the next entry; `line` is its line in the file. Messages that are in no file are kept in memory."""
        self._line, self._offset = line, offset
        if isinstance(entry, Note) and entry.kind == RULE:
            self._interceptions.add(entry, line, offset)
        else:
            self._interceptions.last = {}
        for change in self.changes_of(entry):
            what = change.what
            if isinstance(what, Note):
                self._add_note(change, what)
            elif isinstance(what, Damaged):
                self.damaged += 1
            elif isinstance(what, Malformed):
                if what.frame.http is None and what.side == CLIENT:
                    self._rejected += what.why != "blank line"
                elif self._has_noise and what.frame.http is None:
                    self._add_noise(what)
            elif not isinstance(change, RepeatedEvent):
                self._add_message(change, what)
                if change.task is not None and change.task.has_ended:
                    self._settle_owed(change.task.call)

    def _add_noise(self, line: Malformed) -> None:
        """Add a line to the interaction that a log without a request would belong to."""
        row = self.causes.row_of(line.frame, "")
        self._add(row, Malformed, line.at, self.store.keep(line.data))  # `read` expects JSON in the file.

    def finish(self) -> None:
        """Complete the store: the recording has no more entries."""
        self.store.is_whole, self.store.settles = True, None
        self._pairing = RequestTable()
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

    def _begin(self, message: Request) -> RecordedRequest:
        frame, method = message.frame, message.method
        request = RecordedRequest(HIDDEN, method, message.subject, message.at, frame.stream)
        request.is_modern = (message.revision or "") >= MODERN_REVISION
        request.is_subscription = method == SUBSCRIBE
        if frame.side == CLIENT and frame.by is None:
            flags = (MODERN if request.is_modern else 0) | (SUBSCRIPTION if request.is_subscription else 0)
            where = self._where(message.data)
            request.row = self.store.begin(where, message.at, self.exchanges, flags)
            if method in HANDSHAKE_METHODS:
                handshake = RecordedHandshake(method, request.row)
                self.store.index.handshakes.setdefault(method, []).append(handshake)
            else:
                self._index(request.row, request_key(message, self.store.ignored), message.data)
            self.causes.open_request(request, frame.http)
        elif frame.to is None and not self.is_injected(frame):
            self._server_request(request, frame, self._where(message.data), message.id)
        self.exchanges += 1
        return request

    def _index(self, row: int, key: RequestKey, data: bytes) -> None:
        index = self.store.index
        index.add_request(row, key.digest, key.method, key.subject, answers=key.question is not None)
        if MARK in data:
            index.redacted.append(row)
        if key.version is not None:
            index.versions.add(key.version)

    def _method_of(self, request: RecordedRequest) -> str:
        return request.method

    def _time_of(self, request: RecordedRequest) -> float:
        return request.at

    def _subject_of(self, request: RecordedRequest) -> str | None:
        return request.subject

    def _poll(self, request: RecordedRequest, call: RecordedRequest) -> None:
        request.poll_of = call

    def _where(self, data: bytes) -> Location:
        within = self._line.find(data) if self._line else -1
        return (self._offset + within, len(data)) if within >= 0 else self.store.keep(data)

    def _server_request(
        self, request: RecordedRequest, head: Frame | PlainHead, where: Location, id_text: str
    ) -> None:
        """Add a request to the interaction that caused it."""
        row = request.row = self.causes.row_of(head, request.method)
        request.place = self.store.count(row)
        self._owe(request)
        self.has_server = True
        self._add(row, Request, request.at, where, id_text)

    def _owe(self, request: RecordedRequest) -> None:
        request.is_owed = True
        self._owed[request.row] = self._owed.get(request.row, 0) + 1

    def _settle_owed(self, request: RecordedRequest) -> None:
        if request.is_owed:
            request.is_owed = False
            self._owed[request.row] -= 1

    def _add_message(self, change: CorrelatedEntry[RecordedRequest], message: ValidMessage) -> None:
        """Add a message of a known request, or a notification. New requests were added by `_begin`."""
        request, frame = change.request, message.frame
        if request is not None and request.row == HIDDEN:
            request = None
        if isinstance(message, Request):
            if isinstance(change, RequestRepeated) and request is not None:
                request.stream = frame.stream
                self.causes.open_request(request, frame.http)
        elif isinstance(message, Notification):
            if self.is_injected(frame):
                return
            if message.side == CLIENT:
                self._client_notification(change, request, message)
            elif frame.to is None:
                self.has_server = True
                self._server_notification(change, request, message)
        elif message.side == CLIENT:
            if isinstance(change, RequestAnswered) and request is not None:
                is_to_translated = self._pairing.is_translated and frame.to is not None
                self._client_response(
                    request,
                    message.at,
                    None if frame.is_ours and not is_to_translated else self._where(message.data),
                )
        else:
            self.has_server |= frame.to is None
            self.store.http.add_message(frame.http, message.data, message.id)
            if request is not None:
                self._server_response(change, request, message)
            elif message.id is None and frame.to is None and frame.by is None:
                self._response_without_id(message)

    def _client_notification(
        self,
        change: CorrelatedEntry[RecordedRequest],
        request: RecordedRequest | None,
        message: Notification,
    ) -> None:
        if message.method == "notifications/cancelled":
            if request is not None and change.flaw is None:
                if request.cancelled_at is None:
                    request.cancelled_at = message.at
                self._over(request)
        elif message.method != "notifications/progress":
            row = self.store.begin(self._where(message.data), message.at, 0, NOTICE)
            self.store.index.add_notification(message.method, row)
            self.causes.follow(message.frame.stream, row)
            if message.frame.http is not None:
                self.causes.exchanges[message.frame.http] = row, message.method

    def _client_response(self, request: RecordedRequest, at: float, where: Location | None) -> None:
        """Add a response to a request of the server; `where` is None if mcpspy answered, or the server never got it."""
        if request.place is None:
            return
        self._settle_owed(request)
        if where is not None:
            self._gate(request.row, request.place, at)
            self.store.replies.setdefault(request.row, {})[request.place] = where
            self.causes.follow(request.stream, request.row, is_answer=True)

    def _server_response(
        self,
        change: CorrelatedEntry[RecordedRequest],
        request: RecordedRequest,
        message: Result | Failure,
    ) -> None:
        frame, is_first = message.frame, isinstance(change, RequestAnswered)
        kind, where = type(message), self._where(message.data)
        if frame.to is not None or not (is_first or (request.is_withheld and frame.by is not None)):
            request.is_withheld |= is_first
            self.causes.close_request(request.row, request.stream)
            return
        request.is_withheld = False
        self._take_handshake(request, message)
        if isinstance(message, Result) and message.is_task:  # The server may still report its status.
            self._owe(request)
        if isinstance(message, Failure) and request.cancelled_at is not None:
            self._gate(request.row, CANCEL, request.cancelled_at)
        ends = request.is_subscription or (isinstance(message, Failure) and message.code == CONNECTION_CLOSED)
        if self._closed_at is not None and ends:
            self._gate(request.row, EOF, self._closed_at)
        self.redacted += MARK in message.data
        self._answer(request, kind, message.at, where, message.id)
        if isinstance(message, Result) and bytes(message.body.request_state):
            self.store.add_state(message.body.request_state, request.row)

    def _response_without_id(self, message: Result | Failure) -> None:
        """Add a response that names no request at its place, except to a message that the mock rejects as well."""
        frame = message.frame
        if frame.http is None and self._rejected and isinstance(message, Failure):
            self._rejected -= 1
        elif frame.http is None or frame.http in self.causes.exchanges:
            row = self.causes.row_of(frame, "")
            self._add(row, ResponseWithoutId, message.at, self._where(message.data))

    def _answer(
        self,
        request: RecordedRequest,
        kind: type[ValidMessage],
        at: float,
        where: Location,
        id_text: str | None = None,
    ) -> None:
        number = self.store.number_of(request.row) if request.is_subscription else None
        self._add(request.row, kind, at, where, id_text, listens=number)
        self.causes.close_request(request.row, request.stream)

    def _server_notification(
        self,
        change: CorrelatedEntry[RecordedRequest],
        request: RecordedRequest | None,
        message: Notification,
    ) -> None:
        frame, method = message.frame, message.method
        where = self._where(message.data)
        if method == "notifications/progress":
            if request is not None and request.place is None:
                self._add(request.row, Notification, message.at, where)
            return
        if isinstance(change, TaskProgressed):
            listens = text(meta_raw(message.body.meta, META + "subscriptionId"))
            request = self._pairing.subscription(frame, listens)
        elif isinstance(change, RequestCancelled) and request is not None and request.cancelled_at is None:
            request.cancelled_at = None if change.flaw is not None else message.at
        if request is not None and request.place is not None:
            self._add(request.row, Notification, message.at, where, cancels=request.place)
            return
        number = None
        if request is not None and request.is_subscription:
            number = self.store.number_of(request.row)
        self._add(self.causes.row_of(frame, method), Notification, message.at, where, listens=number)

    def _add_note(self, change: CorrelatedEntry[RecordedRequest], note: Note) -> None:
        fields, request = note.fields, change.request
        if note.kind == "eof" and fields.get("from") == CLIENT:
            self._closed_at = note.at
        if (
            request is not None
            and request.row != HIDDEN
            and request.place is None
            and not isinstance(change, ResponseMissing)
        ):
            if request.state is State.REFUSED and not self.store.is_answered(request.row):
                self._refused(request, change.why or "refused", note.at)
            self._over(request)
        number = fields.get("http")
        if note.kind == "http" and isinstance(number, int):
            self.store.http.begin(number, fields, self.causes.exchanges.get(number, (0, ""))[1])
        elif note.kind == "http-end" and isinstance(number, int):
            self.store.http.end(number, fields.get("body"))
            self.causes.exchanges.pop(number, None)

    def _refused(self, request: RecordedRequest, why: str, at: float) -> None:
        """Add an HTTP error status without a message as a response."""
        self._add(request.row, Failure, at, self.store.keep(error(b"0", CONNECTION_CLOSED, why)))

    def _over(self, request: RecordedRequest) -> None:
        if request.place is None:
            if request.state is State.CANCELLED:
                self.store.cancel(request.row)
            self.causes.close_request(request.row, request.stream)

    def _take_handshake(self, request: RecordedRequest, message: Result | Failure) -> None:
        """Read the server's name and supported revisions from a response."""
        index, self.store.server = self.store.index, self.server
        for handshake in index.handshakes.get(request.method, ())[::-1]:
            if handshake.row == request.row:
                break
        else:
            return
        result = message.result if isinstance(message, Result) else None
        handshake.is_answered, handshake.is_accepted = True, isinstance(message, Result)
        if not isinstance(result, dict):
            return
        if isinstance(revision := result.get("protocolVersion"), str):
            handshake.revision = revision
        versions = result.get("supportedVersions")
        if handshake.method == "server/discover" and isinstance(versions, list):
            index.versions.update(version for version in versions if isinstance(version, str))

    def _gate(self, row: int, gate: int, at: float) -> None:
        gates, since = self._since.get(row) or ((), self.store.at(row))
        if gate not in gates:
            self._since[row] = (*gates, gate), max(since, at)

    def _add(
        self,
        row: int,
        kind: type[PlayedMessage],
        at: float,
        where: Location,
        id_text: str | None = None,
        *,
        listens: int | None = None,
        cancels: int | None = None,
    ) -> None:
        store = self.store
        self._interceptions.last[id_text] = row, store.count(row)
        gates, since = self._since.get(row) or ((), store.at(row))
        after = max(0.0, at - since)
        is_answer = kind is Result or kind is Failure
        if gates or not is_answer or listens is not None or not store.answer(row, where, after, kind):
            store.add(row, kind, where, after, gates=gates, listens=listens, cancels=cancels)

    def _plain_request(  # noqa: PLR0917 - keywords take longer, and there are a million calls.
        self, head: PlainHead, method: str, subject: str, number: int, data: bytes, is_modern: bool
    ) -> RecordedRequest:
        request = RecordedRequest(HIDDEN, method, subject or None, head.t, head.stream, is_modern)
        store, where = self.store, (next(self._ends) - 1 - len(data), len(data))
        self._interceptions.last = {}
        if head.side == CLIENT:
            request.row = store.begin(where, head.t, self.exchanges, MODERN if is_modern else 0)
            key = plain_key(method, data, store.ignored) or self._key_of(data)
            self._index(request.row, key, data)
            self.causes.open_request(request, head.http)
        else:
            self._server_request(request, head, where, str(number))
        self.exchanges += 1
        return request

    def _key_of(self, data: bytes) -> RequestKey:
        (message,) = read_frame(Frame(0.0, CLIENT, data))
        assert isinstance(message, Request)
        return request_key(message, self.store.ignored)

    def _plain_result(self, head: PlainHead, request: RecordedRequest, data: bytes, is_error: bool) -> None:
        row, size = request.row, len(data)
        where = next(self._ends) - 1 - size, size
        if head.side == CLIENT or row in self._since or row == HIDDEN:
            self._interceptions.last = {}
            if head.side == CLIENT:
                self._client_response(request, head.t, where)
            elif row != HIDDEN:
                self.redacted += MARK in data
                self._answer(request, Result, head.t, where)
            return
        self.has_server = True
        self.redacted += MARK in data
        place, after = 0, head.t - request.at
        after = max(after, 0.0)
        if not self.store.answer(row, where, after, Result):
            place = self.store.count(row)
            self.store.add(row, Result, where, after)
        self._interceptions.last = {None: (row, place)}
        self.causes.close_request(row, request.stream)


def _http_note(line: bytes) -> Note | None:
    """Read a note on an HTTP exchange, without its headers unless it is a refusal; None for anything else."""
    if b'"note":"http' not in line or PAYLOAD in line:
        return None
    try:
        note = _decode_note(line)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if note.status is not None and note.status >= 400:
        entry = read_entry(line)
        return entry if isinstance(entry, Note) else None
    fields = {
        "http": note.http,
        "method": note.method,
        "status": note.status,
        "hung_up": note.hung_up,
        "has_session": b'"mcp-session-id":' in line and note.method != "",
        "body": note.body,
    }
    return Note(note.t, note.note, fields)
