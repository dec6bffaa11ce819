"""Player of a replay plan: the messages to send to a live server, and their times.

Owns the state of one run: the steps that are left, the responses received, and the live id of each recorded
one. Time is an argument, in seconds of any monotonic clock. Never raises, whatever the server sends, and
never waits forever. A request of the server gets the recorded response to the same request, or else the next
recorded response for its method, or else a JSON-RPC error.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, read_frame, text
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.redact.placeholder import restored
from mcpspy.core.replay.plan import PlanStep, ReplayPlan, WaitKind, expects_answer, notification_key
from mcpspy.core.replay.received import ReceivedMessages, ServerRequests
from mcpspy.core.replay.substitution import SubstitutionRule, Substitutions
from mcpspy.core.session.exchange import Event, event_of

TIMEOUT = 30.0

SKIPPED = "you skipped it"
"""The reason for a request that the user skipped."""

MAX_TIMEOUTS = 2
"""Consecutive timeouts, with nothing received in between, after which the server counts as hanging."""


class PlayerOptions(Struct, frozen=True, kw_only=True):
    speed: float = 0.0
    """Factor of the recorded speed; 0: wait only for the server."""
    timeout: float = TIMEOUT
    serial: bool = False
    """True if a request waits for all earlier responses, even if the recorded client did not."""
    carry: tuple[SubstitutionRule, ...] = ()
    secrets: dict[str, str] = {}
    """Live values for redacted ones, by tag or key."""


class SentRequest(Struct):
    step: PlanStep
    at: float
    answer: Result | Failure | None = None
    answered_at: float | None = None
    failed: str | None = None
    """The reason why there will be no response."""

    @property
    def about(self) -> str:
        """Method and subject, for the user."""
        message = self.step.message
        assert isinstance(message, Request)
        return f"{message.method} {message.subject}" if message.subject else message.method


class Player:
    """One run of a plan."""

    def __init__(self, plan: ReplayPlan, options: PlayerOptions, ids: Iterator[int], now: float) -> None:
        self.plan = plan
        self.sent: dict[int, SentRequest] = {}
        """By the number of the recorded exchange."""
        self.warnings: list[str] = []
        """Lines for the user."""
        self.stopped: str | None = None
        """The reason why it stopped before the end, if it did."""
        self.unsent: dict[int, str] = {}
        """Number of a recorded exchange → the reason why its request was not sent."""
        self.changed: list[int] = []
        """Numbers of exchanges that were sent, answered or given up since the list was last emptied."""
        self.allowed: int | None = None
        """Number of requests that may still be sent; None for all of them."""
        self._skipped: set[int] = set()
        self._edited: dict[int, Request] = {}
        self._options = options
        self._ids = ids
        self.substitutions = Substitutions(options.carry)
        self._server_requests = ServerRequests(plan.questions)
        self._next = 0
        self._received = ReceivedMessages()
        self._live: dict[str, int] = {}
        """Live id → number of the recorded exchange."""
        self._open: dict[int, float] = {}
        """Request whose response is certain → its deadline."""
        self._ready = now
        """Time at which the next step could begin to wait for uncertain messages."""
        self._replies: list[tuple[float, bytes]] = []
        self._tokens: dict[str, str] = {}
        self._timeouts = 0
        self._is_over = False

    @property
    def is_over(self) -> bool:
        return self._is_over or self.stopped is not None

    @property
    def next_request(self) -> int | None:
        """The number of the exchange whose request is next; None at the end."""
        for place in range(self._next, len(self.plan.steps)):
            exchange = self.plan.steps[place].exchange
            is_request = isinstance(self.plan.steps[place].message, Request)
            if is_request and exchange is not None and exchange.number not in self._skipped:
                return exchange.number
        return None

    def number_of(self, live: str | None) -> int | None:
        """Return the number of the recorded exchange of a live id, as JSON text."""
        return self._live.get((live or "").strip('"'))

    def skip(self) -> None:
        """Do not send the next request. What needs a value of its response is not sent either."""
        if (number := self.next_request) is not None:
            self._skipped.add(number)
            self.unsent[number] = SKIPPED
            self.changed.append(number)

    def edit(self, data: bytes) -> bool:
        """Send this in place of the next request; return False if it is not a request."""
        number, (message, *others) = self.next_request, read_frame(Frame(0.0, CLIENT, data))
        if number is None or others or not isinstance(message, Request):
            return False
        self._edited[number] = message
        return True

    def again(self, number: int, now: float) -> bool:
        """Send a request again, as it was sent, with a new id; return False if it was not sent or is still open."""
        sent = self.sent.get(number)
        if sent is None or number in self._open or self.is_over:
            return False
        del self._received.settled[number]
        self._replies += [
            (now, data) for data in self._send_request(sent.step, self._message(sent.step), number, now)
        ]
        return True

    @property
    def waiting(self) -> str:
        """The awaited message, for the user."""
        waiting = next(iter(self._open), None)
        return self.sent[waiting].about if waiting is not None else "messages of the server"

    def end(self, why: str, now: float) -> None:
        """Record that the connection ended: `the server ended with exit code 1`."""
        waiting = next(iter(self._open), None)
        self._stop(why if waiting is None else f"{why} before it answered {self.sent[waiting].about}", now)

    def received(self, data: bytes, now: float, request: str | None = None, status: int = 200) -> bool:
        """Read server output; return True if it was a message. `request` names its HTTP exchange."""
        is_message = False
        for message in read_frame(Frame(now, SERVER, data)):
            if isinstance(message, Result | Failure):
                self._answer(message, now, request if status >= 400 else None)
            elif isinstance(message, Request):
                self._receive_request(message, now)
            elif isinstance(message, Notification):
                self._receive_notification(message, now)
            else:
                continue
            is_message = True
            self._timeouts = 0
        return is_message

    def refused(self, request: str | None, why: str, now: float, *, is_gone: bool = False) -> None:
        """Record the refusal of a request or another message. `is_gone`: there was no server."""
        number = self._live.get(request) if request is not None else None
        if number is None:
            self.warnings.append(why)
            return
        self._timeouts = 0
        self._fail(number, why, now)
        about = self.sent[number].about
        if about == "initialize" or (is_gone and not self.is_answered):
            self._stop(f"{about}: {why}", now)

    @property
    def is_answered(self) -> bool:
        return any(sent.answer is not None for sent in self.sent.values())

    def take(self, now: float) -> list[bytes]:
        """Return the messages to be sent now, in order."""
        self._time_out(now)
        messages = [data for due, data in self._replies if due <= now]
        self._replies = [reply for reply in self._replies if reply[0] > now]
        while not self.is_over and self.allowed != 0:
            step = self._step
            due = self._due(step)
            if due is None or due > now:
                break
            self._ready = now
            if step is self.plan.end:
                self._is_over = True
                break
            self._next += 1
            sent = self._send(step, now)
            if sent and self.allowed is not None and isinstance(step.message, Request):
                self.allowed -= 1
            messages += sent
        return messages

    @property
    def next_at(self) -> float | None:
        """The time at which `take` is due, if nothing is received before."""
        times = [due for due, _ in self._replies] + list(self._open.values())
        if not self.is_over and self.allowed != 0:
            due = self._due(self._step)
            if due is not None:
                times.append(due)
        return min(times, default=None)

    @property
    def _step(self) -> PlanStep:
        return self.plan.steps[self._next] if self._next < len(self.plan.steps) else self.plan.end

    def _due(self, step: PlanStep) -> float | None:
        """Return the time at which a step is due, as far as known; None if a response must arrive first."""
        if self._blocked(step):
            return None
        if self._received.missing(step):
            since = self._received.waits_until(step, self._ready, self._options.timeout)
        else:
            since = self._received.since(step, self._ready)
        return since + (step.gap / self._options.speed if self._options.speed else 0.0)

    def _blocked(self, step: PlanStep) -> bool:
        """Return True if the step waits for a response or its timeout."""
        if self._options.serial and self._open and not _is_cancellation(step):
            return True
        return any(wait.is_certain and wait.key in self._open for wait in step.waits)

    def _send(self, step: PlanStep, now: float) -> list[bytes]:
        message, exchange = step.message, step.exchange
        if isinstance(message, Request):
            assert exchange is not None
            return self._send_request(step, self._message(step), exchange.number, now)
        if _is_cancellation(step):
            return self._cancel(step)
        if message is None:
            return []
        if isinstance(message, Notification) and message.method == "notifications/progress":
            token = self._tokens.get(text(message.body.progress_token) or "")
            path = ("params", "progressToken")
            return [] if token is None else [replaced(message.data, path, token.encode())]
        if isinstance(message, Notification):
            return [self._restored(self.substitutions.apply(message, message.data), message.method)]
        return [message.data]

    def _message(self, step: PlanStep) -> Request:
        """Return the request of a step, as the user edited it."""
        assert isinstance(step.message, Request)
        assert step.exchange is not None
        return self._edited.get(step.exchange.number, step.message)

    def _send_request(self, step: PlanStep, message: Request, number: int, now: float) -> list[bytes]:
        if (why := self._reason_to_skip(step, message)) is not None:
            self.unsent[number] = why
            self.changed.append(number)
            if why != SKIPPED:
                self.warnings.append(f"{SentRequest(step, now).about}: not sent, because {why}")
            self._received.settled[number] = now
            self._learn(step, None)
            return []
        live = str(next(self._ids))
        data = self.substitutions.apply(message, one_line(message.data))
        data = replaced(data, ("id",), live.encode())
        data = replaced(data, ("params", "_meta", "progressToken"), live.encode())
        data = self._restored(data, SentRequest(step, now).about)
        self._live[live] = number
        self.sent[number] = SentRequest(step, now)
        self.changed.append(number)
        assert step.exchange is not None
        if expects_answer(step.exchange):
            self._open[number] = now + self._options.timeout
        return [data]

    def _restored(self, data: bytes, about: str) -> bytes:
        """Insert live secrets as far as they are known."""
        data, missing = restored(data, self._options.secrets)
        if missing:
            tags = ", ".join(sorted(missing))
            self.warnings.append(f"{about}: sent with placeholders of redacted secrets: {tags}")
        return data

    def _reason_to_skip(self, step: PlanStep, message: Request) -> str | None:
        """Return the reason why a request cannot be sent to this server now, if there is one."""
        if step.exchange is not None and step.exchange.number in self._skipped:
            return SKIPPED
        if (missing := self.substitutions.missing(message)) is not None:
            return f"the server returned no {missing} this time"
        before = step.exchange.continues if step.exchange is not None else None
        earlier = self.sent.get(before.number) if before is not None else None
        if earlier is None or earlier.answer is None or event_of(earlier.answer) is Event.QUESTION:
            return None
        return "the server asked no question this time"

    def _cancel(self, step: PlanStep) -> list[bytes]:
        number = step.exchange.number if step.exchange is not None else None
        live = next((live for live, known in self._live.items() if known == number), None)
        if live is None:
            return []
        if step.message is None:
            params = b'{"requestId":%b}' % live.encode()
            return [b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":%b}' % params]
        return [replaced(step.message.data, ("params", "requestId"), live.encode())]

    def _answer(self, message: Result | Failure, now: float, request: str | None) -> None:
        id = message.id if request is None else request  # noqa: A001
        number = self._live.get((id or "").strip('"'))  # Some servers answer 1 with "1".
        if number is None or number in self._received.settled:
            return
        self._open.pop(number, None)
        self._received.settled[number] = now
        sent = self.sent[number]
        sent.answer, sent.answered_at = message, now
        self.changed.append(number)
        self._learn(sent.step, message)

    def _fail(self, number: int, why: str, now: float) -> None:
        self._open.pop(number, None)
        if number in self._received.settled:
            return
        self._received.settled[number] = now
        sent = self.sent[number]
        sent.failed = why
        self.changed.append(number)
        self._learn(sent.step, None)

    def _learn(self, step: PlanStep, live: Result | Failure | None) -> None:
        """Learn which values the live server returned in place of the recorded ones; None if it gave no response."""
        recorded = step.exchange.answer if step.exchange is not None else None
        if recorded is not None:
            self.substitutions.learn(recorded, live)

    def _stop(self, why: str, now: float) -> None:
        """Stop, and leave open requests without a response."""
        if not self.is_over:
            self.stopped = why
        for number in list(self._open):
            self._fail(number, why, now)

    def _time_out(self, now: float) -> None:
        late = [number for number, until in self._open.items() if until <= now]
        for number in late:
            why = f"no response to {self.sent[number].about} within {self._options.timeout:g} s"
            self.warnings.append(why)
            self._fail(number, why, now)
            self._timeouts += 1
            if not self.is_answered or self.sent[number].about == "initialize":
                self._stop(why, now)
            elif self._timeouts >= MAX_TIMEOUTS:
                self._stop(f"{why}, nor to the request before: the server hangs", now)

    def _receive_request(self, message: Request, now: float) -> None:
        self._received.add(WaitKind.SERVER_REQUEST, message.method, now)
        reply = self._server_requests.reply(message)
        if reply.token is not None:
            self._tokens[reply.token] = message.progress_token or "null"
        if reply.warning is not None:
            self.warnings.append(reply.warning)
        if reply.data is not None:
            after = reply.after / self._options.speed if self._options.speed else 0.0
            data = self._restored(one_line(reply.data), f"the response to {message.method}")
            self._replies.append((now + after, data))

    def _receive_notification(self, message: Notification, now: float) -> None:
        token = (text(message.body.progress_token) or "").strip('"')
        key = notification_key(message, self._live.get(token))
        if key is not None:
            self._received.add(WaitKind.NOTIFICATION, key, now)


def _is_cancellation(step: PlanStep) -> bool:
    message = step.message
    if message is None:
        return step.exchange is not None
    return isinstance(message, Notification) and message.method == "notifications/cancelled"
