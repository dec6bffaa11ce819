"""Interception engine: holds, edits, delays, drops and answers messages.

The I/O side passes in each message and the time, and carries out the returned actions; it decides nothing
itself. Guarantees: a message that no one wants to change is forwarded at once, unchanged; nothing waits
forever; injected ids are unique; each request gets one response.
"""

from __future__ import annotations

import heapq

from mcpspy.core.intercept.actions import (
    AddNote,
    CommandError,
    CommandReply,
    Decision,
    Disconnect,
    Dropped,
    Fields,
    Forward,
    Inject,
    Step,
    Substitute,
    remark,
)
from mcpspy.core.intercept.commands import (
    AnswerCommand,
    DropCommand,
    InterceptCommand,
    ListCommand,
    ReleaseCommand,
    SendCommand,
    read_order,
)
from mcpspy.core.intercept.evaluator import RuleEvaluator
from mcpspy.core.intercept.held import HoldBuffer, InFlightMessage, LiveItem, MessagePart, RuleDecision
from mcpspy.core.intercept.requests import Deadlines, InjectedRequests, Watchdog, about, answer
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    loads,
    read_frame,
    text,
)
from mcpspy.core.protocol.spec import other
from mcpspy.core.query.parser import Query
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.model import Rules


class Interceptor:
    """Interception of one session, in both directions."""

    def __init__(
        self,
        rules: Rules,
        *,
        call_timeout: float | None = None,
        slow: float | None = None,
        hold_timeout: float = 300.0,
        prefix: str,
    ) -> None:
        """Times are in seconds; `prefix` is random and begins the ids of injected requests."""
        self._rules = rules
        self._judge = RuleEvaluator(rules)
        self._calls = Watchdog(call_timeout, slow, keep=rules.wants_requests)
        self._ours = InjectedRequests(prefix)
        self._room = HoldBuffer()
        self._delays: list[tuple[float, int]] = []
        self._hold_timeout = hold_timeout
        self._holds = Deadlines[InFlightMessage](hold_timeout)
        self._wanted: dict[str, Query] = {}
        self._ticket = 0

    @property
    def is_idle(self) -> bool:
        """True if messages need not pass through here."""
        return not (
            self._rules or self._calls.are_watched or self._wanted or len(self._room) or len(self._ours)
        )

    @property
    def next_at(self) -> float | None:
        """The time at which `wake` has something to do, unless a message comes first; None for never."""
        times = [self._calls.timeouts.next_at, self._calls.slow.next_at, self._holds.next_at]
        if self._delays:
            times.append(self._delays[0][0])
        return min((at for at in times if at is not None), default=None)

    def opening(self) -> AddNote:
        """Return the note that lists the rules, with the seeds that reproduce the run."""
        fields: Fields = {"rules": self._rules.said(), "seed": self._rules.seed}
        calls = self._calls
        for name, seconds in ("call_timeout", calls.timeouts.seconds), ("slow", calls.slow.seconds):
            if seconds is not None:
                fields[name] = seconds
        return AddNote("rules", fields)

    def hear(self, at: float, side: str, data: bytes, *, stream: str | None = None) -> None:
        """Learn from a message that has already been forwarded."""
        for message in read_frame(Frame(at, side, data, stream)):
            if isinstance(message, Request | Notification):
                self._ours.hear(message)
            if isinstance(message, Request):
                self._calls.ask(message, None).has_gone = True
            elif isinstance(message, Result | Failure):
                self._calls.answered(stream, side, message.id)

    def take(
        self, at: float, side: str, data: bytes, *, stream: str | None = None, lane: object = None
    ) -> Decision:
        """Return the decision about a received message, given without its line end."""
        self._ticket += 1
        steps: list[Step] = []
        parts = [self._part(message, lane, steps) for message in read_frame(Frame(at, side, data, stream))]
        for part in parts:
            steps += [remark._replace(lane=lane) for remark in part.verdict.remarks]
        letter = InFlightMessage(self._ticket, at, side, data, stream=stream, lane=lane, parts=parts)
        is_kept_back = letter.is_kept_back
        if letter.delay:
            steps += self._delay(letter, at)
        else:
            steps += self._arrive(letter, at)
        return Decision(letter.ticket, is_kept_back, steps, self._room.get(letter.ticket) is not None)

    def wake(self, at: float) -> list[Step]:
        """Return the actions that are due at this time."""
        steps: list[Step] = []
        while self._delays and self._delays[0][0] <= at:
            letter = self._room.get(heapq.heappop(self._delays)[1])
            if letter is not None:
                self._room.let_out(letter)
                steps += self._arrive(letter, at)
        for letter in self._holds.due(at):
            steps += self._release(letter, at, "timeout")
        return steps + self._calls.due(at)

    def order(self, at: float, viewer: str, order: Fields) -> CommandReply:
        """Execute a viewer's command; raise CommandError, which changes nothing."""
        wanted = read_order(order)
        if isinstance(wanted, ListCommand):
            return CommandReply(self.describe(at), [])
        if isinstance(wanted, SendCommand):
            return self._say(wanted, at, viewer, order.get("n"))
        if isinstance(wanted, InterceptCommand):
            if wanted.query is None:
                return CommandReply({}, self._hold_no_more(viewer, at, "hold off"))
            self._wanted[viewer] = wanted.query
            return CommandReply({}, [])
        if isinstance(wanted, ReleaseCommand):
            return self._release_all(wanted, at, viewer)
        letter = self._find(wanted.ticket)
        if isinstance(wanted, DropCommand):
            for part in letter.parts:
                part.is_left_out = True
            return CommandReply({}, self._release(letter, at, "dropped", viewer))
        return CommandReply({}, self._answer(letter, wanted, at, viewer))

    def failed(self, at: float, id: str, why: str) -> list[Step]:  # noqa: A002
        """Return the actions after an injected request could not be delivered."""
        injected = self._ours.failed(id)
        return [] if injected is None else [injected.answer(at, {"error": why})]

    def lane_left(self, at: float, lane: object) -> list[Step]:
        """Return the actions after an HTTP exchange ended: its held messages can no longer be forwarded."""
        steps: list[Step] = []
        for letter in [letter for letter in self._room if letter.lane is lane]:
            self._room.let_out(letter)
            if letter.holder is not None:
                self._holds.stop(letter)
                steps += letter.release_steps(at, "connection closed")
        self._calls.lane_left(lane)
        return steps

    def viewer_left(self, at: float, viewer: str) -> list[Step]:
        """Return the actions after a viewer disconnected: its held messages are released."""
        return self._hold_no_more(viewer, at, "viewer left")

    def end(self, at: float, side: str | None = None) -> list[Step]:
        """Return the actions at the end of the session, or of one `side`: held messages are released."""
        steps: list[Step] = []
        for letter in [letter for letter in self._room if side in (None, letter.side)]:
            if letter.holder is not None:
                steps += self._release(letter, at, "session ended")
            else:
                self._room.let_out(letter)
                steps += self._go(letter)
        for injected in self._ours.waiting:
            if side in (None, other(injected.side)):
                steps += self.failed(at, injected.id, "the session has ended")
        return steps

    @property
    def is_opening(self) -> bool:
        """True if the handshake is under way: an injected request could decide the protocol era."""
        return self._ours.is_opening

    @property
    def has_heard(self) -> bool:
        """True if the client has sent anything: the first message on a pipe decides the protocol era."""
        return self._ours.has_heard

    def describe(self, at: float) -> Fields:
        """Return the state of interception for viewers."""
        held = [letter for letter in self._room if letter.holder is not None]
        return {
            "rules": self._rules.said(),
            "holds": {viewer: query.text for viewer, query in self._wanted.items()},
            "held": [
                {**letter.shown(self._hold_timeout), "age": round(at - letter.held_at, 3)} for letter in held
            ],
            "delayed": len(self._room) - len(held),
            "bytes": self._room.bytes,
            "injected": [
                {"id": each.id, "from": each.side, "method": each.method, "viewer": each.viewer}
                for each in self._ours.waiting
            ],
        }

    def _part(self, message: AnyMessage, lane: object, steps: list[Step]) -> MessagePart:
        """Return a message with the decision about it; add other actions to `steps`."""
        side, stream, asked = message.side, message.frame.stream, None
        if isinstance(message, Result | Failure):
            if (injected := self._ours.answered(side, message.id)) is not None:
                steps.append(injected.answer(message.at, {"message": loads(message.data)}))
                return MessagePart(message, None, _to_us())
            if (late := self._calls.late(stream, side, message.id)) is not None:
                steps.append(remark("swallowed", about(message, late), lane))
                return MessagePart(message, None, _to_us())
            asked = self._calls.answered(stream, side, message.id)
        elif isinstance(message, Notification):
            if (injected := self._ours.reported(side, text(message.body.progress_token))) is not None:
                steps.append(injected.event("progress", {"message": loads(message.data)}))
                return MessagePart(message, None, _to_us())
            self._calls.hear(message)
            self._ours.hear(message)
        verdict = self._judge.verdict(message, asked) if self._rules else RuleDecision()
        if isinstance(message, Request):
            self._ours.hear(message)
            waits = not verdict.is_disconnected and (verdict.answer is None or verdict.delay > 0)
            asked = self._calls.ask(message, lane, waits=waits)
        return MessagePart(message, asked, verdict)

    def _delay(self, letter: InFlightMessage, at: float) -> list[Step]:
        if not self._room.take_in(letter):
            return [letter.no_room("delay"), *self._arrive(letter, at)]
        heapq.heappush(self._delays, (at + letter.delay, letter.ticket))
        return []

    def _arrive(self, letter: InFlightMessage, at: float) -> list[Step]:
        """Hold the message if a rule or a viewer wants that; otherwise deliver it."""
        holder = self._holder(letter)
        if holder is None:
            return self._go(letter)
        if not self._room.take_in(letter):
            return [letter.no_room("hold"), *self._go(letter)]
        letter.holder, letter.held_at = holder, at
        self._holds.start(letter, at)
        for part in letter.parts:
            if part.asked is not None:
                self._calls.stop(part.asked)  # A person looks at it: it does not hang.
        return letter.hold_steps(self._hold_timeout)

    def _holder(self, letter: InFlightMessage) -> tuple[str, str] | None:
        """Return the rule, or the viewer by its query, that holds the message."""
        if letter.is_kept_back:
            return None
        for part in letter.parts:
            if part.verdict.holder is not None:
                return "rule", part.verdict.holder
        for part in letter.parts:
            item = LiveItem(part.message, part.asked)
            for viewer, query in self._wanted.items():
                if not part.is_left_out and query.matches(item):
                    return "viewer", viewer
        return None

    def _go(self, letter: InFlightMessage) -> list[Step]:
        """Forward the message or its replacement, or carry out what was decided instead."""
        steps: list[Step] = []
        for part in letter.parts:
            message, asked, verdict = part.message, part.asked, part.verdict
            if asked is None:
                continue
            if asked.is_over:  # The watchdog was faster than a delay.
                if not part.is_left_out and not isinstance(message, Request):
                    steps.append(remark("swallowed", about(message, asked), letter.lane))
                part.is_left_out = True
            elif verdict.answer is not None:
                self._calls.give_up(asked)
                steps.append(Inject(other(letter.side), verdict.answer, letter.lane, letter.stream))
            elif part.is_left_out:
                continue
            elif isinstance(message, Request):
                asked.has_gone = True
            elif not verdict.is_lost or letter.edited is not None:
                self._calls.stop(asked)
        if letter.is_disconnected:
            return [*steps, Disconnect(letter.lane)]
        if all(part.is_left_out for part in letter.parts):
            return [*steps, Dropped(letter.side, letter.lane, letter.ticket)]
        instead = letter.outgoing()
        if instead is None:
            return [*steps, Forward(letter.side, letter.data, letter.lane, letter.ticket)]
        return [*steps, Substitute(letter.side, instead, letter.lane, letter.ticket, letter.is_cut)]

    def _release(self, letter: InFlightMessage, at: float, why: str, viewer: str | None = None) -> list[Step]:
        self._room.let_out(letter)
        self._holds.stop(letter)
        for part in letter.parts:
            if part.asked is not None and not (isinstance(part.message, Request) and part.asked.is_answered):
                self._calls.watch(part.asked, at)
        return [*letter.release_steps(at, why, viewer), *self._go(letter)]

    def _release_all(self, wanted: ReleaseCommand, at: float, viewer: str) -> CommandReply:
        held = [letter.ticket for letter in self._room if letter.holder is not None]
        tickets = held if wanted.tickets is None else sorted(set(wanted.tickets))
        steps: list[Step] = []
        for letter in [self._find(ticket) for ticket in tickets]:
            letter.edited = wanted.data
            steps += self._release(letter, at, "accepted" if wanted.data is None else "edited", viewer)
        return CommandReply({"released": len(tickets)}, steps)

    def _answer(self, letter: InFlightMessage, wanted: AnswerCommand, at: float, viewer: str) -> list[Step]:
        """Answer a held request in place of its peer."""
        if letter.request is None:
            raise CommandError(f"ticket {letter.ticket} is no request: there is nothing to answer")
        letter.first.is_left_out = True
        letter.first.verdict.answer = answer(letter.request.id, wanted.member, wanted.value)
        return self._release(letter, at, "answered", viewer)

    def _say(self, say: SendCommand, at: float, viewer: str, n: object) -> CommandReply:
        injected, data = None, b""
        if say.is_request:
            injected, data = self._ours.ask(say, viewer, n, at)
        else:
            data = self._ours.notify(say)
        (message,) = read_frame(Frame(at, say.side, data, say.stream))
        speak = Inject(say.side, data, None, say.stream, injected.id if injected is not None else None)
        noted = remark("inject", {"viewer": viewer, **about(message, None)})
        return CommandReply({"id": injected.id} if injected is not None else {}, [speak, noted])

    def _hold_no_more(self, viewer: str, at: float, why: str) -> list[Step]:
        self._wanted.pop(viewer, None)
        steps: list[Step] = []
        for letter in [letter for letter in self._room if letter.holder == ("viewer", viewer)]:
            steps += self._release(letter, at, why)
        return steps

    def _find(self, ticket: int) -> InFlightMessage:
        letter = self._room.get(ticket)
        if letter is None or letter.holder is None:
            raise CommandError(f"no message is held under ticket {ticket}")
        return letter


def _to_us() -> RuleDecision:
    """Return the decision for a response to an injected request, which is not forwarded."""
    verdict = RuleDecision()
    verdict.is_dropped = True
    return verdict
