"""Player of a replay plan: the messages to send to a live server, and their times.

Owns the state of one run: the steps that are left, the responses received, and the live id of each recorded
one. Time is an argument, in seconds of any monotonic clock. Never raises, whatever the server sends, and
never waits forever. A request of the server gets the recorded response to the same request, or else the next
recorded response for its method, or else a JSON-RPC error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct

from mcpspy.core.jsontools import one_line, replaced
from mcpspy.core.mock.responses import METHOD_NOT_FOUND, error, result
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, read_frame, text
from mcpspy.core.protocol.spec import SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.redact.placeholder import restored
from mcpspy.core.replay.plan import (
    PlanStep,
    ReplayPlan,
    ServerRequest,
    WaitCondition,
    WaitKind,
    comparable,
    expects_answer,
    notification_key,
)
from mcpspy.core.replay.substitution import SubstitutionRule, Substitutions
from mcpspy.core.session.exchange import Event, event_of

MIN_WAITS = {WaitKind.RESPONSE: 1.0, WaitKind.SERVER_REQUEST: 2.0, WaitKind.NOTIFICATION: 0.5}
"""Minimum seconds to wait for the response to a cancelled request, a server request, a notification."""

WAIT_FACTOR = 3.0
"""The factor by which these may take longer than in the recording."""

TIMEOUT = 30.0

MAX_TIMEOUTS = 2
"""Consecutive timeouts, with nothing received in between, after which the server counts as hanging."""


class ReceivedMessages:
    """Messages from the server so far, with their times."""

    def __init__(self) -> None:
        self.settled: dict[int, float] = {}
        """Recorded exchange that is over → the time of its end."""
        self._times: defaultdict[tuple[WaitKind, object], list[float]] = defaultdict(list)

    def add(self, what: WaitKind, key: object, now: float) -> None:
        """Record that a server request or a notification of this kind has arrived."""
        self._times[what, key].append(now)

    def missing(self, step: PlanStep) -> list[WaitCondition]:
        """Return the uncertain messages that a step waits for and that have not arrived."""
        return [wait for wait in step.waits if not wait.is_certain and self._at(wait) is None]

    def since(self, step: PlanStep, ready: float) -> float:
        """Return the arrival time of the last message that a step waits for, but not before `ready`."""
        return max([ready, *(at for wait in step.waits if (at := self._at(wait)) is not None)])

    def waits_until(self, step: PlanStep, ready: float, most: float) -> float:
        """Return the time until which a step waits for uncertain messages."""
        waits = [max(MIN_WAITS[wait.what], wait.delay * WAIT_FACTOR) for wait in self.missing(step)]
        return self.since(step, ready) + min(max(waits, default=0.0), most)

    def _at(self, wait: WaitCondition) -> float | None:
        if wait.what is WaitKind.RESPONSE:
            return self.settled.get(wait.key) if isinstance(wait.key, int) else None
        if isinstance(wait.key, tuple) and (over := self.settled.get(wait.key[1])) is not None:
            return over  # Progress on an exchange that is over.
        add = self._times[wait.what, wait.key]
        return add[wait.count - 1] if len(add) >= wait.count else None


class ServerRequestReply(Struct, frozen=True):
    """The response to a server request."""

    data: bytes | None
    """None: the recorded client never responded either."""
    after: float
    """Seconds it took in the recording."""
    token: str | None = None
    """JSON text of the recorded request's progress token."""
    warning: str | None = None
    """A line for the user."""


class ServerRequests:
    """The recorded server requests, and those of them that the live server has not sent yet."""

    def __init__(self, recorded: Sequence[ServerRequest]) -> None:
        self._recorded = list(recorded)
        self._left = list(recorded)

    def reply(self, request: Request) -> ServerRequestReply:
        id = request.id.encode()  # noqa: A001
        question = self._choose(request.method, comparable(request))
        if question is None:
            if request.method == "ping":
                return ServerRequestReply(result(id, {}), 0.0)
            warning = f"{request.method} of the server is not in the recording: answered with an error"
            return ServerRequestReply(
                error(id, METHOD_NOT_FOUND, f"not in the recording: {request.method}"), 0.0, warning=warning
            )
        answer = question.exchange.answer
        if not isinstance(answer, Result | Failure):
            return ServerRequestReply(None, 0.0)
        token = question.exchange.request.progress_token
        return ServerRequestReply(replaced(answer.data, ("id",), id), question.exchange.latency or 0.0, token)

    def _choose(self, method: str, params: str | None) -> ServerRequest | None:
        for questions, same in ((self._left, True), (self._left, False), (self._recorded, True)):
            for question in questions:
                if question.exchange.request.method == method and (not same or question.params == params):
                    if question in self._left:
                        self._left.remove(question)
                    return question
        return None


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
        while not self.is_over:
            step = self._step
            due = self._due(step)
            if due is None or due > now:
                break
            self._ready = now
            if step is self.plan.end:
                self._is_over = True
                break
            self._next += 1
            messages += self._send(step, now)
        return messages

    @property
    def next_at(self) -> float | None:
        """The time at which `take` is due, if nothing is received before."""
        times = [due for due, _ in self._replies] + list(self._open.values())
        if not self.is_over:
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
            return self._send_request(step, message, exchange.number, now)
        if _is_cancellation(step):
            return self._cancel(step)
        assert message is not None  # The end, which is not sent.
        if isinstance(message, Notification) and message.method == "notifications/progress":
            token = self._tokens.get(text(message.body.progress_token) or "")
            path = ("params", "progressToken")
            return [] if token is None else [replaced(message.data, path, token.encode())]
        if isinstance(message, Notification):
            return [self._restored(self.substitutions.apply(message, message.data), message.method)]
        return [message.data]

    def _send_request(self, step: PlanStep, message: Request, number: int, now: float) -> list[bytes]:
        if (why := self._reason_to_skip(step, message)) is not None:
            self.warnings.append(f"{SentRequest(step, now).about}: not sent, because {why}")
            self._received.settled[number] = now
            return []
        live = str(next(self._ids))
        data = self.substitutions.apply(message, one_line(message.data))
        data = replaced(data, ("id",), live.encode())
        data = replaced(data, ("params", "_meta", "progressToken"), live.encode())
        data = self._restored(data, SentRequest(step, now).about)
        self._live[live] = number
        self.sent[number] = SentRequest(step, now)
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
        recorded = sent.step.exchange.answer if sent.step.exchange is not None else None
        if recorded is not None:
            self.substitutions.learn(recorded, message)

    def _fail(self, number: int, why: str, now: float) -> None:
        self._open.pop(number, None)
        if number in self._received.settled:
            return
        self._received.settled[number] = now
        sent = self.sent[number]
        sent.failed = why
        recorded = sent.step.exchange.answer if sent.step.exchange is not None else None
        if recorded is not None:
            self.substitutions.learn(recorded, None)

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
