"""Interception engine: holds, edits, delays, drops and answers messages.

The I/O side passes in each message and the time, and carries out the returned actions; it makes no decisions.
Guarantees: a message that matches no rule or query is forwarded at once, unchanged; no message is held forever;
injected ids are unique; each request gets one response.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

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
    StepReceiver,
    Substitute,
    rule_note,
)
from mcpspy.core.intercept.commands import (
    AnswerCommand,
    DecideCommand,
    DropCommand,
    InterceptCommand,
    ListCommand,
    NoteCommand,
    ReleaseCommand,
    ScriptsCommand,
    SendCommand,
    parse_command,
)
from mcpspy.core.intercept.evaluator import MessageChecks
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.intercept.held import HoldBuffer, InFlightMessage, LiveItem, MessagePart, RuleDecision
from mcpspy.core.intercept.requests import (
    Deadlines,
    InjectedRequests,
    Watchdog,
    about,
    answer,
)
from mcpspy.core.intercept.scripts import ScriptQueue, apply
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
from mcpspy.core.regex import AllowUnsafe, refuse
from mcpspy.core.rules.model import Rules

if TYPE_CHECKING:
    from mcpspy.core.intercept.trust_guard import TrustGuard


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
        allow_unsafe: AllowUnsafe = refuse,
        scripts: ScriptQueue | None = None,
        trust: TrustGuard | None = None,
    ) -> None:
        """Timeouts are in seconds; `prefix` is the random prefix of the ids of injected requests.

        `allow_unsafe` decides on a viewer's regular expression that RE2 cannot run.
        """
        self.scripts = scripts
        self._allow_unsafe = allow_unsafe
        self._rules = rules
        self._checks = MessageChecks(rules, trust)
        keep = rules.needs_requests or scripts is not None or trust is not None
        self._watchdog = Watchdog(call_timeout, slow, keep=keep)
        self._trust = trust
        self.injected = InjectedRequests(prefix)
        self._buffer = HoldBuffer()
        self._delays: list[tuple[float, int]] = []
        self._hold_timeout = hold_timeout
        self._deadlines = Deadlines[InFlightMessage](hold_timeout)
        self._queries: dict[str, Query] = {}
        self._ticket = 0
        self._has_rules = bool(rules) or self._watchdog.is_enabled

    @property
    def is_idle(self) -> bool:
        """True if messages need not pass through the engine."""
        return self._trust is None and self._needs_no_parsing

    @property
    def _needs_no_parsing(self) -> bool:
        """True if nothing but the check of trust may concern a message."""
        return not (
            self._has_rules
            or self._queries
            or (self.scripts is not None and self.scripts.is_active)
            or self._buffer
            or self.injected
        )

    @property
    def next_at(self) -> float | None:
        """Time of the next call of `run_due`, unless a message arrives earlier; None if none is needed."""
        times = [self._deadlines.next_at]
        if self._watchdog.is_enabled:
            times += self._watchdog.timeouts.next_at, self._watchdog.slow.next_at
        if self._delays:
            times.append(self._delays[0][0])
        if self.scripts is not None:
            times.append(self.scripts.next_at)
        known = [at for at in times if at is not None]
        return min(known) if known else None

    def rules_note(self) -> AddNote:
        """Return the note that lists the rules, with the seeds that make the run reproducible."""
        fields: Fields = {"rules": self._rules.said(), "seed": self._rules.seed}
        for name, limit in ("call_timeout", self._watchdog.timeouts), ("slow", self._watchdog.slow):
            if limit.seconds is not None:
                fields[name] = limit.seconds
        if self.scripts is not None:
            fields["scripts"] = self.scripts.names
        return AddNote("rules", fields)

    def observe(self, at: float, side: str, data: bytes, *, stream: str | None = None) -> None:
        """Learn from a message that has already been forwarded."""
        for message in read_frame(Frame(at, side, data, stream)):
            if isinstance(message, Request | Notification):
                self.injected.observe(message)
            if isinstance(message, Request):
                self._watchdog.track(message, None).is_forwarded = True
            elif isinstance(message, Result | Failure):
                self._watchdog.resolve(stream, side, message.id)

    @property
    def only_check(self) -> TrustGuard | None:
        """The check of trust, if nothing else may concern a message now; else None."""
        return self._trust if self.injected.has_begun and self._needs_no_parsing else None

    def passes(self, side: str, data: bytes) -> bool:
        """Return True if a received message is forwarded unchanged, and need not be processed."""
        check = self.only_check
        return check is not None and check.passes(side, data)

    def process(
        self,
        at: float,
        side: str,
        data: bytes,
        *,
        stream: str | None = None,
        exchange: StepReceiver | None = None,
    ) -> Decision:
        """Return the decision about a received message; `data` has no line end."""
        self._ticket += 1
        if self._trust is not None and self.passes(side, data):
            return Decision(self._ticket, False, [Forward(side, data, exchange, self._ticket)], False)
        steps: list[Step] = []
        messages = read_frame(Frame(at, side, data, stream))
        parts = [self._decide(message, exchange, steps) for message in messages]
        for part in parts:
            steps += [note._replace(exchange=exchange) for note in part.decision.notes]
        flight = InFlightMessage(self._ticket, at, side, data, stream=stream, exchange=exchange, parts=parts)
        is_blocked = flight.is_blocked
        if flight.delay:
            steps += self._delay(flight, at)
        else:
            steps += self._proceed(flight, at)
        return Decision(flight.ticket, is_blocked, steps, self._buffer.get(flight.ticket) is not None)

    def process_head(self, head: HttpHead) -> list[Step]:
        """Return the actions for an HTTP head, whose ticket is set here; `HeadDecided` may follow later."""
        self._ticket += 1
        head.ticket = self._ticket
        steps = None if self.scripts is None else self.scripts.add(head, head.at)
        return head.decide(()) if steps is None else steps

    def run_due(self, at: float) -> list[Step]:
        """Return the actions that are due at this time."""
        steps: list[Step] = []
        while self._delays and self._delays[0][0] <= at:
            flight = self._buffer.get(heapq.heappop(self._delays)[1])
            if flight is not None:
                self._buffer.remove(flight)
                steps += self._proceed(flight, at)
        for flight in self._deadlines.due(at):
            steps += self._release(flight, at, "timeout")
        return steps + self._watchdog.due(at)

    def execute(self, at: float, viewer: str, fields: Fields) -> CommandReply:
        """Execute a viewer's command; raise CommandError for a rejected one, which has no effect."""
        command = parse_command(fields, self._allow_unsafe)
        if isinstance(command, ListCommand):
            return CommandReply(self.describe(at), [])
        if isinstance(command, SendCommand):
            return self.injected.send(command, viewer, fields.get("n"), at)
        if isinstance(command, InterceptCommand):
            if command.query is None:
                return CommandReply({}, self._stop_holding(viewer, at, "hold off"))
            self._queries[viewer] = command.query
            return CommandReply({}, [])
        if isinstance(command, ReleaseCommand):
            return self._release_all(command, at, viewer)
        if isinstance(command, ScriptsCommand | DecideCommand | NoteCommand):
            return self._execute_for_scripts(command, at, viewer)
        flight = self._find(command.ticket)
        if isinstance(command, DropCommand):
            for part in flight.parts:
                part.is_removed = True
            return CommandReply({}, self._release(flight, at, "dropped", viewer))
        return CommandReply({}, self._answer(flight, command, at, viewer))

    def scripts_failed(self, at: float, why: str, *, is_final: bool) -> list[Step]:
        """Return the actions after a failure of the script process: the messages that it had are released."""
        assert self.scripts is not None
        note = self.scripts.failure_note(why, self.scripts.fail(is_final=is_final))
        return [note, *self._continue_scripted(at)]

    def injection_failed(self, at: float, id: str, why: str) -> list[Step]:  # noqa: A002
        """Return the actions for an injected request that could not be delivered."""
        injected = self.injected.remove(id)
        return [] if injected is None else [injected.answer(at, {"error": why})]

    def exchange_ended(self, at: float, exchange: StepReceiver) -> list[Step]:
        """Return the actions for the end of an HTTP exchange, whose held messages can no longer be forwarded."""
        steps: list[Step] = []
        for flight in [flight for flight in self._buffer if flight.exchange is exchange]:
            self._buffer.remove(flight)
            if self.scripts is not None:
                self.scripts.forget(flight)
            if flight.holder is not None:
                self._deadlines.stop(flight)
                steps += flight.release_steps(at, "connection closed")
        self._watchdog.exchange_ended(exchange)
        return steps

    def viewer_left(self, at: float, viewer: str) -> list[Step]:
        """Return the actions for a disconnected viewer: the messages it holds are released."""
        return self._stop_holding(viewer, at, "viewer left")

    def end(self, at: float, side: str | None = None) -> list[Step]:
        """Return the actions for the end of the session or of one `side`: held messages are released."""
        steps: list[Step] = []
        for flight in [flight for flight in self._buffer if side in (None, flight.side)]:
            if flight.holder is not None:
                steps += self._release(flight, at, "session ended")
            else:
                self._buffer.remove(flight)
                if self.scripts is not None:
                    self.scripts.forget(flight)
                steps += self._deliver(flight)
        for injected in self.injected.waiting:
            if side in (None, other(injected.side)):
                steps += self.injection_failed(at, injected.id, "the session has ended")
        return steps

    def describe(self, at: float) -> Fields:
        """Return the state of interception for viewers."""
        held = [flight for flight in self._buffer if flight.holder is not None]
        return {
            "rules": self._rules.said(),
            "holds": {viewer: query.text for viewer, query in self._queries.items()},
            "held": [
                {**flight.viewer_fields(self._hold_timeout), "age": round(at - flight.held_at, 3)}
                for flight in held
            ],
            "delayed": len(self._buffer) - len(held),
            "bytes": self._buffer.bytes,
            "injected": [injected.viewer_fields for injected in self.injected.waiting],
        }

    def _decide(self, message: AnyMessage, exchange: StepReceiver | None, steps: list[Step]) -> MessagePart:
        """Return a message with the decision about it; append other actions to `steps`."""
        side, stream, request = message.side, message.frame.stream, None
        if isinstance(message, Result | Failure):
            if (injected := self.injected.resolve(side, message.id)) is not None:
                steps.append(injected.answer(message.at, {"message": loads(message.data)}))
                return MessagePart(message, None, RuleDecision(is_dropped=True))
            if (late := self._watchdog.late(stream, side, message.id)) is not None:
                steps.append(rule_note("swallowed", about(message, late), exchange))
                return MessagePart(message, None, RuleDecision(is_dropped=True))
            request = self._watchdog.resolve(stream, side, message.id)
        elif isinstance(message, Notification):
            token = text(message.body.progress_token)
            if (injected := self.injected.by_progress_token(side, token)) is not None:
                steps.append(injected.event("progress", {"message": loads(message.data)}))
                return MessagePart(message, None, RuleDecision(is_dropped=True))
            self._watchdog.observe(message)
            self.injected.observe(message)
        decision = self._checks.decide(message, request)
        if isinstance(message, Request):
            self.injected.observe(message)
            waits = not decision.is_disconnected and (decision.answer is None or decision.delay > 0)
            request = self._watchdog.track(message, exchange, waits=waits)
        return MessagePart(message, request, decision)

    def _delay(self, flight: InFlightMessage, at: float) -> list[Step]:
        if not self._buffer.add(flight):
            return [flight.full_note("delay"), *self._proceed(flight, at)]
        heapq.heappush(self._delays, (at + flight.delay, flight.ticket))
        return []

    def _proceed(self, flight: InFlightMessage, at: float) -> list[Step]:
        """Pass the message to the scripts, unless they have decided on it; otherwise hold or deliver it."""
        steps = None
        if self.scripts is not None and not (flight.is_scripted or flight.is_blocked):
            steps = self.scripts.add(flight, at)
        if steps is None:
            return self._hold_or_deliver(flight, at)
        self._buffer.add(flight, is_limited=False)
        return steps

    def _execute_for_scripts(
        self, command: ScriptsCommand | DecideCommand | NoteCommand, at: float, viewer: str
    ) -> CommandReply:
        """Execute a command of the script process."""
        scripts = self.scripts
        if isinstance(command, ScriptsCommand):
            if scripts is None or command.token != scripts.token:
                raise CommandError("scripts: not a script process of this session")
            scripts.viewer = viewer
            steps: list[Step] = []
            if command.failed:
                steps.append(scripts.failure_note(command.failed, 0, command.script))
            if command.hooks is None:
                return CommandReply({}, steps)
            scripts.ready(command.hooks, command.timeout)
            return CommandReply({}, [*steps, *scripts.ask(at), *self._continue_scripted(at)])
        if scripts is None or viewer != scripts.viewer:
            raise CommandError(f"{viewer} is not a script process of this session")
        if isinstance(command, NoteCommand):
            return CommandReply({}, [rule_note("note", {"script": command.script, "text": command.text})])
        scripts.decide(at, command)
        return CommandReply({}, [*self._continue_scripted(at), *scripts.ask(at)])

    def _continue_scripted(self, at: float) -> list[Step]:
        """Return the actions for the messages that no longer wait for a script."""
        assert self.scripts is not None
        steps: list[Step] = []
        for flight, decisions in self.scripts.released():
            if isinstance(flight, HttpHead):
                steps += flight.decide(decisions)
                continue
            self._buffer.remove(flight)
            flight.is_scripted = True
            for part in flight.parts:
                part.decision.delay = 0.0
            for part, decision in zip(flight.parts, decisions, strict=False):
                if not part.is_removed:
                    steps += apply(flight, part, decision)
            steps += self._delay(flight, at) if flight.delay else self._hold_or_deliver(flight, at)
        return steps

    def _hold_or_deliver(self, flight: InFlightMessage, at: float) -> list[Step]:
        """Hold the message if a rule or a viewer's query matches; otherwise deliver it."""
        holder = self._holder(flight)
        if holder is None:
            return self._deliver(flight)
        if not self._buffer.add(flight):
            return [flight.full_note("hold"), *self._deliver(flight)]
        flight.holder, flight.held_at = holder, at
        self._deadlines.start(flight, at)
        for part in flight.parts:
            if part.request is not None:
                self._watchdog.stop(part.request)  # The request waits for the user, not for the server.
        return flight.hold_steps(self._hold_timeout)

    def _holder(self, flight: InFlightMessage) -> tuple[str, str] | None:
        """Return the rule or the viewer that holds the message; None if there is none."""
        if flight.is_blocked:
            return None
        for part in flight.parts:
            if part.decision.holder is not None:
                return part.decision.holder_kind, part.decision.holder
        for part in flight.parts if self._queries else ():
            item = LiveItem(part.message, part.request)
            for viewer, query in self._queries.items():
                if not part.is_removed and query.matches(item):
                    return "viewer", viewer
        return None

    def _deliver(self, flight: InFlightMessage) -> list[Step]:
        """Forward the message or its replacement, or carry out another decision."""
        steps: list[Step] = []
        for part in flight.parts:
            message, request, decision = part.message, part.request, part.decision
            if request is None:
                continue
            if request.is_abandoned:  # The watchdog answered the request during a delay.
                if not part.is_removed and not isinstance(message, Request):
                    steps.append(rule_note("swallowed", about(message, request), flight.exchange))
                part.is_removed = True
            elif decision.answer is not None:
                self._watchdog.abandon(request)
                steps.append(Inject(other(flight.side), decision.answer, flight.exchange, flight.stream))
            elif part.is_removed:
                continue
            elif isinstance(message, Request):
                request.is_forwarded = True
            elif not decision.hides_response or flight.edited is not None:
                self._watchdog.stop(request)
        if flight.is_disconnected:
            return [*steps, Disconnect(flight.exchange)]
        if flight.is_blocked:
            return [*steps, Dropped(flight.side, flight.exchange, flight.ticket)]
        replacement = flight.outgoing()
        if replacement is None:
            return [*steps, Forward(flight.side, flight.data, flight.exchange, flight.ticket)]
        return [*steps, Substitute(flight.side, replacement, flight.exchange, flight.ticket, flight.is_cut)]

    def _release(self, flight: InFlightMessage, at: float, why: str, viewer: str | None = None) -> list[Step]:
        self._buffer.remove(flight)
        self._deadlines.stop(flight)
        for part in flight.parts:
            if part.request is not None and not (
                isinstance(part.message, Request) and part.request.is_answered
            ):
                self._watchdog.watch(part.request, at)
        return [*flight.release_steps(at, why, viewer), *self._deliver(flight)]

    def _release_all(self, command: ReleaseCommand, at: float, viewer: str) -> CommandReply:
        held = [flight.ticket for flight in self._buffer if flight.holder is not None]
        tickets = held if command.tickets is None else sorted(set(command.tickets))
        steps: list[Step] = []
        for flight in [self._find(ticket) for ticket in tickets]:
            flight.edited = command.data
            steps += self._release(flight, at, "accepted" if command.data is None else "edited", viewer)
        return CommandReply({"released": len(tickets)}, steps)

    def _answer(self, flight: InFlightMessage, command: AnswerCommand, at: float, viewer: str) -> list[Step]:
        if flight.request is None:
            raise CommandError(f"ticket {flight.ticket} is not a request: it cannot be answered")
        flight.first.is_removed = True
        flight.first.decision.answer = answer(flight.request.id, command.member, command.value)
        return self._release(flight, at, "answered", viewer)

    def _stop_holding(self, viewer: str, at: float, why: str) -> list[Step]:
        self._queries.pop(viewer, None)
        steps: list[Step] = []
        for flight in [flight for flight in self._buffer if flight.holder == ("viewer", viewer)]:
            steps += self._release(flight, at, why)
        return steps

    def _find(self, ticket: int) -> InFlightMessage:
        flight = self._buffer.get(ticket)
        if flight is None or flight.holder is None:
            raise CommandError(f"no message is held under ticket {ticket}")
        return flight
