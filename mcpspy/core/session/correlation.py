"""Correlation of requests with their outcome: the fold over the entries of a recording.

`Correlation` reads entries and yields typed changes for `Session`, `Index`, `StatsCollector` and the mock's loader,
which choose the type of a request. `core.session.request_table` finds the request of a message;
`core.session.exchange` owns the states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar
from zlib import crc32

from msgspec import UNSET, DecodeError, Struct

from mcpspy.core.protocol.message import (
    NEVER_COMPLETED,
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
from mcpspy.core.protocol.peers import HANDSHAKE_METHODS, Peer, Peers, client_of, peer_of
from mcpspy.core.protocol.plain_line import PAYLOAD, SUBJECTS, PlainHead, decode_head, decode_message
from mcpspy.core.protocol.spec import CLIENT, META, METHODS, MODERN, SERVER, other
from mcpspy.core.recording.decode import Damaged, Entry, Frame, Header, Note
from mcpspy.core.recording.encode import OVERSIZED
from mcpspy.core.session import outcome
from mcpspy.core.session.exchange import (
    SUBSCRIBE,
    TRANSITIONS,
    Correlatable,
    Event,
    State,
    event_of,
    transition,
)
from mcpspy.core.session.http_exchanges import HttpExchanges, RecordedHttpExchange
from mcpspy.core.session.outcome import cancelled_by, never_completed
from mcpspy.core.session.request_table import Key, RequestTable, id_key, id_of_part, question
from mcpspy.core.session.restart_notes import RESTART
from mcpspy.core.session.rule_notes import RULE, not_forwarded, words
from mcpspy.core.session.tasks import (
    POLLS,
    REPORTS,
    TaskChange,
    TaskReport,
    event_of_poll,
    read_report,
)
from mcpspy.core.session.translation_notes import TRANSLATION

P = TypeVar("P", bound=Correlatable)

REPEATED_EVENT = "repeated event: its stream was resumed"

_END = ord("}")

# Reading a member of an Enum runs Python code; reading a name does not.
_PENDING, _OK, _TOOL_ERROR = State.PENDING, State.OK, State.TOOL_ERROR


class CorrelatedEntry(Struct, Generic[P], gc=False):
    """One message, note or damaged line, and its meaning for a request."""

    what: AnyMessage | Note | Damaged
    request: P | None = None
    """The request that it opens, answers, cancels or reports on."""
    flaw: str | None = None
    why: str | None = None
    """The reason for the state of the request, if it is new (`Exchange.why`); of a note without a request, what it did."""
    task: TaskChange[P] | None = None
    """Its effect on the task of a call: of the request, or of the call that the request polls."""
    http: RecordedHttpExchange | None = None
    """The HTTP exchange that a note begins or ends, or whose allowed refusal has this error as its text."""


class RequestOpened(CorrelatedEntry[P], Generic[P], gc=False):
    continues: P | None = None
    """The request whose question this one answers (2026-07-28, input required)."""


class RequestRepeated(CorrelatedEntry[P], Generic[P], gc=False):
    """A redirected request that was sent again: it is pending again, and opens no other request."""


class RequestAnswered(CorrelatedEntry[P], Generic[P], gc=False):
    """A response; its request has its final state."""

    event: Event = Event.RESULT


class UnsolicitedResponse(CorrelatedEntry[P], Generic[P], gc=False):
    """A response that no open request waits for."""


class ResponseKept(CorrelatedEntry[P], Generic[P], gc=False):
    """A response that mcpspy keeps in a translated session: its requester gets another one."""


class RequestProgressed(CorrelatedEntry[P], Generic[P], gc=False):
    """A progress notification, or a notification for a subscription."""


class RequestCancelled(CorrelatedEntry[P], Generic[P], gc=False):
    """A `notifications/cancelled`; its request has its new state, unless there is an issue."""


class RepeatedEvent(CorrelatedEntry[P], Generic[P], gc=False):
    """An event that a resumed stream repeated: it counts once."""


class ResponseTorn(CorrelatedEntry[P], Generic[P], gc=False):
    """Part of a response that was never completed."""


class TaskProgressed(CorrelatedEntry[P], Generic[P], gc=False):
    """A notification about the task of a call."""


class ResponseMissing(CorrelatedEntry[P], Generic[P], gc=False):
    """The end of an HTTP exchange without the response to its request, which stays open."""


class HttpExchangeEnded(CorrelatedEntry[P], Generic[P], gc=False):
    """The end of an HTTP exchange that settled its request: refused, redirected, cancelled or closed."""


_SLOW_REQUESTS = frozenset(
    {*HANDSHAKE_METHODS, *POLLS, SUBSCRIBE}
    | {name for name, method in METHODS.items() if method.subject and name not in SUBJECTS}
)
"""Requests for which a `PlainMessage` holds too little."""

_SLOW_NOTIFICATIONS = frozenset(
    {*HANDSHAKE_METHODS, *REPORTS, SUBSCRIBE, "notifications/cancelled", "notifications/initialized"}
)


class Correlation(Peers, ABC, Generic[P]):
    """The correlation of a recording: entries in, typed changes out."""

    follows_progress = True
    """True if progress notifications are related to their requests. They never change a state."""

    follows_posts = True
    """True if the HTTP exchange of each message is followed, and not only GETs and refusals."""

    def __init__(
        self,
        header: Header | None = None,
        *,
        sessions: int = 1,
        forgets: bool = False,
        recall: Callable[[dict[Key, P]], None] | None = None,
    ) -> None:
        """`sessions`: number of merged sessions that have to end; `forgets`, `recall`: see `RequestTable`."""
        super().__init__()
        self.header = header
        self.exit: Note | None = None
        self._exited: Note | None = None
        """The exit of a server that left its pipes to other processes, which may still answer."""
        self.last_at = 0.0
        """Time of the last entry, in seconds since the start."""
        self._pairing = RequestTable[P](forgets=forgets, recall=recall, is_merged=sessions > 1)
        self.http_exchanges = HttpExchanges(forgets=forgets, follows_all=self.follows_posts)
        self._running = sessions
        self.held: dict[int, int] = {}
        """Ticket of a held message → its row."""
        self.clients: dict[str, Peer] = {}
        """HTTP stream → the client that opened it; empty if the correlation forgets."""
        self._names_clients = not forgets
        self._handshakes: Counter[str] = Counter()
        """Name of a client → number of its `initialize` requests."""

    @abstractmethod
    def _begin(self, message: Request) -> P:
        """Return a new pending request."""

    @abstractmethod
    def _method_of(self, request: P) -> str:
        """Return the method of a request."""

    @abstractmethod
    def _time_of(self, request: P) -> float:
        """Return the time of a request."""

    @abstractmethod
    def _subject_of(self, request: P) -> str | None:
        """Return the subject of a request."""

    @abstractmethod
    def _poll(self, request: P, call: P) -> None:
        """Make a new request one that polls the task of a call."""

    def _restated(self, request: P, before: State) -> None:
        """Handle a request that was settled, and whose state is another one now."""

    def _ended(self, over: list[P]) -> None:
        """Handle the requests that were open when the session ended, in their final state."""

    def _lost(self, requests: list[P]) -> None:
        """Handle requests whose responses may not have been recorded, in their new state."""

    def _held(self, request: P, note: Note, seconds: float) -> None:
        """Handle a hold (0 s so far), a release or a delay of an open request, by these seconds."""

    def end(self) -> list[P]:
        """End the session; return the requests that stay unanswered."""
        if self.exit is None:
            self.exit = self._exited
        over = self._pairing.end()
        self._ended(over)
        for request in self._pairing.end_questions():
            self._restated(request, State.INPUT_REQUIRED)
        return [request for request in over if request.state is State.UNANSWERED]

    def is_injected(self, frame: Frame) -> bool:
        """Return whether a request is none of the client and the server: mcpspy sent it.

        In a translated session, one that mcpspy sends to the client is the server's in the form of the client's era; the
        one that it kept for that is not counted.
        """
        if self._pairing.is_translated and frame.side == SERVER:
            return frame.by is None and frame.to is not None
        return frame.by is not None

    def client_label(self, stream: str | None) -> str:
        """Return the name of the client that opened a stream, with the stream's number if others have that name.

        Without a name it is the number alone; empty without a stream.
        """
        if stream is None or (client := self.clients.get(stream)) is None:
            return stream or ""
        return client.name if self._handshakes[client.name] < 2 else f"{client.name} #{stream}"

    def changes_of(self, entry: Entry) -> Iterator[CorrelatedEntry[P]]:
        """Yield the changes of an entry: one, or one for each message of a batch. Use each before the next."""
        if isinstance(entry, Frame):
            self.last_at = entry.at
            if self.http_exchanges.listening:
                self.http_exchanges.add_event(entry.http)
            again = self._pairing.is_repeated(entry)
            for message in read_frame(entry):
                yield RepeatedEvent(message, flaw=REPEATED_EVENT) if again else self._change_of(message)
        elif isinstance(entry, Note):
            self.last_at = entry.at
            yield self._note(entry)
        else:
            yield CorrelatedEntry(entry)

    def _change_of(self, message: AnyMessage) -> CorrelatedEntry[P]:
        if isinstance(message, Request):
            return self._open_request(message)
        if isinstance(message, Malformed):
            if not message.frame.eol:
                return self._tear(message)
            if message.frame.http is not None and message.frame.side == SERVER:
                self.http_exchanges.add_body(message.frame.http, message.data)
            return CorrelatedEntry(message)
        change = (
            self._relate_notification(message)
            if isinstance(message, Notification)
            else self._settle_request(message)
        )
        if message.frame.is_ours:  # mcpspy responded for a peer, whose own response it dropped.
            change.flaw = None
        return change

    def _open_request(self, message: Request) -> RequestOpened[P] | RequestRepeated[P]:
        frame, body, method = message.frame, message.body, message.method
        if self._pairing.moved and (again := self._pairing.repeated(frame, message.id)) is not None:
            if (
                frame.stream is not None
                and self._names_clients
                and (client := client_of(message)) is not None
            ):
                self.clients.setdefault(frame.stream, client)
            return RequestRepeated(message, again)
        request = self._begin(message)
        if method in POLLS:
            call = self._pairing.task(frame, frame.side, message.subject or "")
            if call is not None:
                self._poll(request, call)
        token = message.progress_token if self.follows_progress and body.meta else None
        flaw = self._pairing.request(request, frame, message.id, token, modern=self.is_modern)
        continues = None
        if body.request_state or body.input_responses:
            continues = self._pairing.continued(
                question(method, message.subject, body.request_state, body.input_responses)
            )
        if method in HANDSHAKE_METHODS or method in POLLS:  # Their responses are never plain.
            self._pairing.open_request(frame.stream, frame.side, message.id)
        if frame.stream is not None and self._names_clients and (client := client_of(message)) is not None:
            self.clients.setdefault(frame.stream, client)
            self._handshakes[client.name] += method == "initialize"
        self.add_request(message)
        return RequestOpened(message, request, flaw, continues=continues)

    def _settle_request(self, message: Result | Failure) -> CorrelatedEntry[P]:
        frame, event = message.frame, event_of(message)
        report = read_report(message) if event is Event.TASK and isinstance(message, Result) else None
        if event is Event.TASK and report is None:
            event = Event.RESULT
        if self._pairing.is_withheld(frame, message.id, event):
            if event is Event.FAILURE and self.http_exchanges.open:
                self.http_exchanges.add_answer(frame, settles=True)
            return ResponseKept(message)
        request, flaw = self._pairing.answer(frame, message.id, event)
        if event is Event.FAILURE and self.http_exchanges.open:
            refusal = self.http_exchanges.add_answer(frame, settles=request is not None)
            if refusal is not None and request is None:
                return CorrelatedEntry(message, http=refusal)
        if request is None:
            return UnsolicitedResponse(message, *self._pairing.explain_unsolicited(frame, message.id))
        method = self._method_of(request)
        if event is Event.QUESTION and isinstance(message, Result):
            body, subject = message.body, self._subject_of(request)
            key = question(method, subject, body.request_state, body.input_requests)
            self._pairing.add_question(key, request, frame.stream)
        self.add_response(message, method)
        task = None
        if report is not None and isinstance(message, Result):
            if request.state is State.WORKING:
                self._pairing.add_task(frame, report.id, request)
                task = self._take_report(request, report, message)
        elif (call := request.poll_of) is not None:
            task = self._take_poll(method, call, message)  # type: ignore[arg-type]  # It is a `P` as well.
        return RequestAnswered(message, request, flaw, task=task, event=event)

    def _take_poll(self, method: str, call: P, message: Result | Failure) -> TaskChange[P] | None:
        """Process the response to a request about the task of a call."""
        if (
            isinstance(message, Result)
            and method != "tasks/result"
            and (report := read_report(message)) is not None
        ):
            return self._take_report(call, report, message, self_cancelled=method == "tasks/cancel")
        event = event_of_poll(method, message)
        if event is None or (call.state is State.CANCELLED and event is not Event.TASK_CANCELLED):
            return None
        why = None
        if event is Event.TASK_CANCELLED:
            why = cancelled_by(other(message.side), message.at - self._time_of(call))
        elif isinstance(message, Failure):
            why = message.description
        is_final = event is not Event.TASK_CANCELLED and not (
            call.state is State.OK and event is Event.FAILURE
        )
        return self._change_task(call, event, message.at, why, is_final=is_final)

    def _take_report(
        self, call: P, report: TaskReport, message: Result | Notification, *, self_cancelled: bool = False
    ) -> TaskChange[P] | None:
        """Process the status of the task of a call."""
        event, why = report.event, report.reason(message.frame)
        if call.state is State.CANCELLED and event in (Event.FAILURE, Event.PROGRESS):
            return None
        if event is Event.TASK_CANCELLED:
            by = other(message.side) if self_cancelled else message.side
            why = cancelled_by(by, message.at - self._time_of(call))
        is_final = isinstance(message, Result) and bool(bytes(report.result) or bytes(report.error))
        return self._change_task(call, event, message.at, why, is_final=is_final)

    def _change_task(
        self, call: P, event: Event, at: float, why: str | None, *, is_final: bool
    ) -> TaskChange[P] | None:
        before = call.state
        is_new = transition(call, event)
        # A second result of a task may differ from the first, which has decided on the call.
        is_final = is_final and TRANSITIONS[State.PENDING].get(event) is call.state
        has_ended = is_new and event is not Event.PROGRESS
        if is_new and not outcome.of(before).is_open and before is not State.UNKNOWN:
            self._restated(call, before)
        if not is_new and not is_final:
            return None
        return TaskChange(call, why if is_new else None, has_ended, is_final)

    def _tear(self, message: Malformed) -> CorrelatedEntry[P]:
        """Process part of a line, an event or a body that was never completed."""
        frame, data = message.frame, message.data
        is_whole = message.why == NEVER_COMPLETED
        named = id_of_part(data, is_whole=is_whole)
        request = None if not is_whole and b'"method"' in data else self._pairing.tear(frame, named)
        # A peer that disconnects because it has cancelled may cut the response.
        if request is None or (request.state is State.CANCELLED and not is_whole):
            return CorrelatedEntry(message)
        gave_up = request.state is State.CANCELLED
        if not transition(request, Event.TEAR):
            return CorrelatedEntry(message)
        unit, missing = "line", "no newline"
        if frame.http is not None:
            is_stream = self._pairing.is_event_stream(frame.http) or frame.event_id is not None
            unit, missing = ("event", "no blank line") if is_stream else ("body", "cut")
        if not is_whole:
            missing = "cut"
        if frame.lacks is not None:  # Older recordings do not have it.
            missing = f"no {frame.lacks}"
        why = never_completed(unit, frame.size or len(frame.data), missing)
        return ResponseTorn(
            message, request, why=f"{why}; its request was cancelled before" if gave_up else why
        )

    def _relate_notification(self, message: Notification) -> CorrelatedEntry[P]:
        frame, body = message.frame, message.body
        if message.method == "notifications/cancelled":
            request, flaw, is_new = self._pairing.cancel(frame, text(body.request_id))
            why = (
                self._why_cancelled(request, frame.side, frame.at) if request is not None and is_new else None
            )
            return RequestCancelled(message, request, flaw, why)
        if message.method == "notifications/initialized":
            self.accept_revision()
        if message.method in REPORTS and (change := self._take_task_notification(message)) is not None:
            return change
        if not self.follows_progress:
            return CorrelatedEntry(message)
        if message.method == "notifications/progress":
            request, flaw = self._pairing.progress(frame, text(body.progress_token))
            if self._pairing.is_translated and frame.side == SERVER:
                flaw = None  # A request of an older server continues while the client is asked.
            return RequestProgressed(message, request, flaw)
        subscription_id = text(meta_raw(body.meta, META + "subscriptionId")) if body.meta else None
        subscription = self._pairing.subscription(frame, subscription_id)
        return CorrelatedEntry(message) if subscription is None else RequestProgressed(message, subscription)

    def _take_task_notification(self, message: Notification) -> CorrelatedEntry[P] | None:
        report = read_report(message)
        call = None if report is None else self._pairing.task(message.frame, other(message.side), report.id)
        if report is None or call is None:
            return None
        return TaskProgressed(message, call, task=self._take_report(call, report, message))

    def _note(self, note: Note) -> CorrelatedEntry[P]:  # noqa: PLR0912 - one branch for each kind.
        fields, kind = note.fields, note.kind
        if kind == "http":
            self._pairing.http(fields.get("http"), fields.get("status"), fields)
            return CorrelatedEntry(note, http=self.http_exchanges.begin(note))
        if kind == "http-end":
            return self._end_http(note)
        if note.is_end:
            self._running -= 1
            if self._running <= 0:
                self.exit = note
                self.end()
        elif kind == "exit":
            self._exited = note
        elif kind == TRANSLATION:
            self._translate(fields.get("refused"))
        elif kind in ("lost", RESTART):
            self._lost(self._lost_by(note))
        elif kind == OVERSIZED and "pipe" not in fields:
            side, stream = str(fields.get("from")), fields.get("stream")
            self._lost(self._pairing.lose_message(side, stream, fields.get("http")))
        elif kind == RULE:
            self._take_hold(note)
            if fields.get("action") == "disconnect" and isinstance(number := fields.get("http"), int):
                self._pairing.disconnected[number] = words(fields)
            if (event := not_forwarded(fields)) is not None:
                request = self._noted_request(fields)
                if request is not None and transition(request, event):
                    return CorrelatedEntry(note, request)
        elif kind == "sse" and self.http_exchanges.listening:
            self.http_exchanges.add_event(fields.get("http"))
        return CorrelatedEntry(note)

    def _translate(self, refused: object) -> None:
        """Take the beginning of a translation: the refusals of these requests do not answer them."""
        self._pairing.is_translated = True
        for request in self._pairing.reopen(
            [str(each) for each in refused] if isinstance(refused, list) else []
        ):
            self._restated(request, State.REFUSED)

    def _lost_by(self, note: Note) -> list[P]:
        """Return the requests whose responses were not recorded, or whose server was replaced, in their new state."""
        stream = note.fields.get("stream")
        stream = stream if isinstance(stream, str) else None
        if note.kind != RESTART:
            return self._pairing.lose(stream)
        if "process" in note.fields:
            return []  # Over HTTP, each question of a server has an id of mcpspy, so late answers are recognised.
        did = note.fields.get("did")
        if did == "stopping":
            self._pairing.stopping.add(stream)
        return self._pairing.restart_server(stream) if did in ("started", "failed") else []

    def _end_http(self, note: Note) -> CorrelatedEntry[P]:
        number, hung_up = note.fields.get("http"), note.fields.get("hung_up")
        exchange = self.http_exchanges.end(note)
        request, why = self._pairing.http_end(number, hung_up, note.at)
        did = self._pairing.disconnected.pop(number, None) if isinstance(number, int) else None
        if request is None:
            return CorrelatedEntry(note, why=did, http=exchange)
        if exchange is not None and why is not None and why.startswith("HTTP "):
            exchange.is_told = True
            why = f"{why}: {exchange.words}" if exchange.words else why
        if request.state is State.PENDING:
            return ResponseMissing(note, request, why=why, http=exchange)
        why = why or self._why_cancelled(request, CLIENT, note.at)
        return HttpExchangeEnded(note, request, why=why, http=exchange)

    def _why_cancelled(self, request: P, side: str, at: float) -> str | None:
        """Return by whom a request was cancelled, and after how long; None for a subscription, which is closed."""
        return cancelled_by(side, at - self._time_of(request)) if request.state is State.CANCELLED else None

    def _take_hold(self, note: Note) -> None:
        """Pass on the time for which a request was held or delayed: it is not the server's."""
        fields, seconds = note.fields, note.fields.get("seconds", 0.0)
        if (
            fields.get("action") not in ("hold", "release", "delay")
            or not isinstance(seconds, int | float)
            or fields.get("why") == "full"
        ):
            return
        if (request := self._noted_request(fields)) is not None:
            self._held(request, note, max(float(seconds), 0.0))

    def _noted_request(self, fields: dict[str, Any]) -> P | None:
        """Return the open request that a rule note is about."""
        id_text = fields.get("id")
        if not isinstance(id_text, str):
            return None
        request = self._pairing.open_request(fields.get("stream"), str(fields.get("from")), id_text)
        # The note of a response has the same id, and the method of its request.
        return request if request is not None and self._method_of(request) == fields.get("method") else None

    def _noted(self, row: int, fields: dict[str, Any]) -> int | None:
        """Return the row of the message that a rule note is about; the note comes after `row`.

        It is the message that was held under the note's ticket, or the one before the note: of a batch, the one
        with the note's id.
        """
        ticket = fields.get("ticket")
        noted = self.held.pop(ticket, None) if isinstance(ticket, int) else None
        if noted is None:
            while row >= 0 and self._spot(row) == RULE:
                row -= 1
            spot = self._spot(row) if row >= 0 else None
            while spot is not None and row >= 0 and self._spot(row) == spot:
                if self._id_of(row) == fields.get("id"):
                    noted = row
                    break
                row -= 1
        if noted is not None and isinstance(ticket, int) and fields.get("action") == "hold":
            self.held[ticket] = noted
        return noted

    def _spot(self, row: int) -> object:
        """Return the identity of a message's line, RULE for a rule note, None for any other row."""
        raise NotImplementedError

    def _id_of(self, row: int) -> str | None:
        raise NotImplementedError

    def take_plain(self, lines: Sequence[bytes], place: int) -> int:  # noqa: PLR0912, PLR0915 - see below.
        """Process lines from `place` on while they are plain; return the place of the first that is not.

        A short cut past `changes_of` for messages that need no decision except which request a result belongs to:
        nearly all of a long recording. A processed line has the same effect, a rejected one none. Because the user
        waits for a million lines, `plain_line_raw` and the methods of `RequestTable` are inlined.
        """
        pairing, unusual, follows_progress = self._pairing, self._pairing.unusual, self.follows_progress
        open_requests, posted, highest = pairing._open, pairing._posted, pairing.highest
        checksums = pairing.checksums
        answered = pairing._answered if pairing.recall is None else None
        # A plain message never adds information about its sender.
        may_ask = self.is_agreed and self.client is not None and not pairing.moved
        may_answer = self.server is not None
        take_request, take_result = self._plain_request, self._plain_result
        listening = self.http_exchanges.listening
        head, end = None, len(lines)
        while place < end:
            start, _, payload = lines[place].partition(PAYLOAD)
            if not payload:  # A note; an exception would take longer.
                break
            data = payload[:-1]
            try:
                message = decode_message(data)
                now = decode_head(start + b"}")
                if not data.isascii():
                    data.decode()
            except (DecodeError, UnicodeDecodeError, RecursionError):
                break
            if payload[-1] != _END:
                break
            method, result, side, number = message.method, message.result, now.side, message.id
            if number is UNSET:
                if (
                    method is UNSET
                    or result is not UNSET
                    or method in _SLOW_NOTIFICATIONS
                    or not self._plain_notification(now, method, data)
                ):
                    break
                if listening and now.http in listening:
                    self.http_exchanges.add_event(now.http)
                place, head = place + 1, now
                continue
            if number <= 0:  # 0 may have been `-0`, which is another id.
                break
            id_text = str(number)
            if method is UNSET:
                key = now.stream, SERVER if side == CLIENT else CLIENT, id_text
                waiting = open_requests.get(key)
                if (
                    result is UNSET
                    or not may_answer
                    or waiting is None
                    or len(waiting) > 1
                    or (request := waiting[0]).state is not _PENDING
                    or (unusual and key in unusual)
                ):
                    break
                del open_requests[key]
                if answered is not None:
                    answered[key] = request
                if listening and now.http in listening:
                    self.http_exchanges.add_event(now.http)
                is_error = result.is_error
                request.state = _TOOL_ERROR if is_error else _OK
                take_result(now, request, data, is_error)
            else:
                if result is not UNSET or not may_ask or method in _SLOW_REQUESTS:
                    break
                stream = now.stream
                key, sender = (stream, side, id_text), (stream, side)
                if number > highest.get(sender, 0):
                    highest[sender] = number
                elif key in open_requests or key in pairing.answered:
                    break
                subject, is_modern, params, token = "", False, message.params, None
                if params is not UNSET:
                    if (attribute := SUBJECTS.get(method)) is not None:
                        subject = getattr(params, attribute)
                    if (meta := params.meta) is not None:
                        is_modern = meta.revision >= MODERN
                        if follows_progress:
                            token = text(meta.token)
                        if stream is not None and self._names_clients and (client := peer_of(meta.client)):
                            self.clients.setdefault(stream, client)
                request = take_request(now, method, subject, number, data, is_modern)
                open_requests[key] = [request]
                if token is not None:
                    pairing._progress[stream, side, id_key(token)] = request
                if now.http is not None and side == CLIENT:
                    posted[now.http] = None if now.http in posted else key
                    checksums[now.http] = len(data), crc32(data)
                elif listening and now.http in listening:
                    self.http_exchanges.add_event(now.http)
            place, head = place + 1, now
        if head is not None:
            self.last_at = head.t
        return place

    def _plain_request(  # noqa: PLR0917 - keywords take longer, and there are a million calls.
        self, head: PlainHead, method: str, subject: str, number: int, data: bytes, is_modern: bool
    ) -> P:
        """Return a new pending request: `_begin` and `RequestOpened` for a plain line."""
        raise NotImplementedError

    def _plain_result(self, head: PlainHead, request: P, data: bytes, is_error: bool) -> None:
        """Process the result of a request: `RequestAnswered` for a plain line."""
        raise NotImplementedError

    def _plain_notification(self, head: PlainHead, method: str, data: bytes) -> bool:
        """Process a notification; return False to receive it as a change instead."""
        return False
