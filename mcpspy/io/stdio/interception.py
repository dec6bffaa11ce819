"""A stdio session that somebody may reach into: rules, a watchdog, viewers.

Owns the order of things for a message that is decided on: the decision, the
entry and its notes in the recording, then what is sent. Keeps the peers' own
bytes of what is held, so that a bug in the deciding costs the rules and never
the traffic. With nothing to decide the bytes go straight on, as if it were not there.

What a message, an order or the clock leads to: first recorded, then sent.

Owns that order, for several at once: one write for all that is recorded, one
for all that goes to a peer.
"""

from __future__ import annotations

from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER, note
from mcpspy.io.interception import SessionInterception, is_message
from mcpspy.io.recording.recorder import say
from mcpspy.io.stdio.base import STDERR, THROUGH
from mcpspy.io.stdio.message_channel import MessageChannel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mcpspy.core.intercept.actions import Inject, Step
    from mcpspy.core.intercept.interceptor import Interceptor
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RunOptions, Taps
    from mcpspy.io.stdio.message_channel import Leg

FLAT = 1 << 20
"""Bytes of entries that are joined and written as one; larger messages are not copied once more."""


class ActionBatch:
    """All of it or nothing: it is written down before any of it is done."""

    __slots__ = ("entries", "is_cut", "sent", "settled", "told")

    def __init__(self, entries: Iterable[bytes | bytearray] = ()) -> None:
        self.entries = list(entries)
        """Lines of the recording, in pieces."""
        self.sent: list[tuple[Callable[[bytes], None], bytes]] = []
        """Bytes, and who takes them."""
        self.settled: list[int] = []
        """Tickets of what is not held any more."""
        self.told: list[tuple[str | None, dict[str, Any]]] = []
        """Events, and which viewer is told; None is all of them."""
        self.is_cut = False
        """Whether the host is disconnected."""

    def go_on(self, hand: MessageChannel, line: bytes) -> None:
        """Have a peer's own line go on: not copied for its LF, it may be large."""
        self.sent += [(hand.say, line), (hand.say, b"\n")]

    def answers(self, hand: MessageChannel) -> int:
        """Return how many bytes go the way of a hand."""
        return sum(len(data) for who, data in self.sent if who == hand.say)


def untouched(at: float, hand: MessageChannel, line: bytes) -> ActionBatch:
    """Return the turn in which a line goes on as it came."""
    turn = ActionBatch(hand.frame(at, line, {}))
    turn.go_on(hand, line)
    return turn


def carry_out(turns: Sequence[ActionBatch], recorder: Recorder) -> None:
    """Record what the turns lead to, then send it."""
    entries: list[bytes | bytearray] = []
    sent: dict[Callable[[bytes], None], list[bytes]] = {}
    for turn in turns:
        entries += turn.entries
        for who, data in turn.sent:
            sent.setdefault(who, []).append(data)
    if entries:
        recorder.write(b"".join(entries) if sum(map(len, entries)) < FLAT else entries)
    for who, pieces in sent.items():
        who(b"".join(pieces))


BLANKS = b" \t"

AT_ONCE = 64
"""Messages that are recorded by one write, and sent by one."""

OWED = 1 << 20
"""Bytes of our answers that a peer has not read, after which we hear nothing more from it."""

UNREAD = 64 << 20
"""Bytes a peer has not read yet, after which viewers can send it nothing more."""


class StdioInterception(SessionInterception):
    """The session. Nothing here raises but `order`."""

    transport = "stdio"

    def __init__(
        self,
        recorder: Recorder,
        options: RunOptions,
        taps: Taps,
        legs: Sequence[Leg],
        alarm: Callable[[], None],
    ) -> None:
        """`alarm` is called when `due_at` has been set."""
        super().__init__(recorder, options.interception, options.called)
        self._noise = options.noise
        self._alarm = alarm
        self._hands = {
            CLIENT: MessageChannel(CLIENT, legs[0], taps[0], self),
            SERVER: MessageChannel(SERVER, legs[1], taps[1], self),
        }
        self._stderr = legs[2]
        self._kept: dict[int, tuple[MessageChannel, bytes]] = {}
        """What is held, in its order: whose it is, and the peer's own line."""
        self._is_cut = False

    @property
    def due_at(self) -> float | None:
        """When `wake` is to be called, on the monotonic clock; None: not by the clock."""
        next_at = None if self._desk is None else self._desk.next_at
        return None if next_at is None else self._epoch + next_at

    def begin(self) -> None:
        """Do what was asked for on the command line, from the first byte on."""
        if self._interception.is_active:
            try:
                self._desk = self._interception.desk()
                opening = self._desk.opening()
                self._recorder.note(opening.kind, **opening.fields)
            except Exception as error:
                self._give_up(error)
        self._settle()

    # What the pump says.

    def take(self, hand: MessageChannel, lines: list[bytes]) -> None:
        """Decide on lines, without their LF, in their order."""
        at = self.now()
        for some in range(0, len(lines), AT_ONCE):
            turns = []
            for line in lines[some : some + AT_ONCE]:
                try:
                    turns.append(self._turn(at, hand, line))
                except Exception as error:
                    turns += [self._given_up(error), untouched(at, hand, line)]
            self._commit(turns)
            self._hold_back(hand, turns)
        self._settle()

    def end_of(self, hand: MessageChannel) -> None:
        """Have what a side said and is held go on, in its order: nothing more comes."""
        self._run(lambda desk, at: desk.end(at, hand.side))
        self._commit([self._let_go(lambda whose: whose is hand)])

    def wake(self) -> None:
        """Do what is due by now."""
        next_at = None if self._desk is None else self._desk.next_at
        if next_at is not None and next_at <= self.now():
            super().wake()

    def finish(self) -> None:
        """End: what is held goes on, if there is still somebody to take it, and half a line as well."""
        self._run(lambda desk, at: desk.end(at))
        self._commit([self._let_go()])
        for hand in self._hands.values():
            hand.off()
        self.is_on = False

    # What viewers say.

    def _admit(self, desk: Interceptor, order: dict[str, Any]) -> None:
        from mcpspy.core.intercept.actions import CommandError

        if (to := order.get("to", SERVER)) in (CLIENT, SERVER):
            leg = self._hands[CLIENT if to == SERVER else SERVER].leg
            if not leg.is_taking:
                raise CommandError(f"the {to} cannot be told anything any more: the way to it is closed")
            if leg.backlog > UNREAD:
                raise CommandError(f"the {to} does not read: {leg.backlog} bytes wait for it")
        # Without a recording it is not known what was said before.
        is_silent = self._recorder.writer is not None and not desk.has_heard
        if desk.is_opening or is_silent:
            raise CommandError("the session has not begun: say it again when the handshake is over")
        # Before anything is said: not in the middle of a line, and an answer to us is ours from its first byte.
        for hand in self._hands.values():
            hand.on()

    # How it is done.

    def _carry_out(self, at: float, steps: Iterable[Step]) -> None:
        turn = ActionBatch()
        self._perform(turn, at, steps)
        self._commit([self._written(turn)])

    def _turn(self, at: float, hand: MessageChannel, line: bytes) -> ActionBatch:
        """Return what becomes of a line; raise whatever a bug raises, and leave all as it was then."""
        data = line.removesuffix(b"\r")
        if self._is_cut:
            return ActionBatch(hand.frame(at, line, {"to": MCPSPY}))
        drops_noise = self._drops_noise(hand)
        if not _is_message(data, thoroughly=drops_noise):
            return self._without(at, hand, line) if drops_noise else untouched(at, hand, line)
        if self._desk is None or not self.is_on:  # Then only noise is looked for.
            return untouched(at, hand, line)
        ruling = self._desk.take(at, hand.side, data)
        if ruling.is_untouched:
            return untouched(at, hand, line)
        turn = ActionBatch(hand.frame(at, line, {"to": MCPSPY} if ruling.to_mcpspy else {}))
        self._kept[ruling.ticket] = (hand, line)
        try:
            self._perform(turn, at, ruling.steps)
        except Exception:
            del self._kept[ruling.ticket]
            raise
        if not ruling.is_held:
            turn.settled.append(ruling.ticket)
        return self._written(turn)

    def _drops_noise(self, hand: MessageChannel) -> bool:
        return hand.side == SERVER and self._noise != THROUGH

    def _without(self, at: float, hand: MessageChannel, line: bytes) -> ActionBatch:
        turn = ActionBatch((*hand.frame(at, line, {"to": MCPSPY}), note(at, "noise", {"did": self._noise})))
        if self._noise == STDERR:
            turn.sent.append((self._stderr.put, line + b"\n"))
        return turn

    def _written(self, turn: ActionBatch) -> ActionBatch:
        """Take a turn as done, once all of it is written down: whatever breaks after it, it will be."""
        for ticket in turn.settled:
            self._kept.pop(ticket, None)
        self._is_cut = self._is_cut or turn.is_cut
        return turn

    def _perform(self, turn: ActionBatch, at: float, steps: Iterable[Step]) -> None:
        """Write down what is to be done for these steps."""
        from mcpspy.core.intercept.actions import (
            AddNote,
            Disconnect,
            Dropped,
            Forward,
            Inject,
            Notify,
            Substitute,
        )

        for step in steps:
            match step:
                case Forward(ticket=ticket):
                    turn.go_on(*self._kept[ticket])
                    turn.settled.append(ticket)
                case Substitute(side=side, data=data, ticket=ticket, raw=raw):
                    turn.sent.append((self._hands[side].say, data if raw else data + b"\n"))
                    turn.settled.append(ticket)
                case Inject():
                    self._speak(turn, at, step)
                case AddNote(kind=kind, fields=fields):
                    turn.entries.append(note(at, kind, fields))
                case Dropped(ticket=ticket):
                    turn.settled.append(ticket)
                case Notify(viewer=viewer, event=event):
                    turn.told.append((viewer, event))
                case Disconnect():
                    turn.is_cut = True

    def _speak(self, turn: ActionBatch, at: float, step: Inject) -> None:
        """Say something ourselves, unless nobody is there any more to hear it."""
        hand = self._hands[step.side]
        if hand.leg.is_taking:
            turn.entries += hand.frame(at, step.data, {"by": MCPSPY})
            turn.sent.append((hand.say, step.data + b"\n"))
        elif step.id is not None and self._desk is not None:
            self._perform(turn, at, self._desk.failed(at, step.id, "the way to it is closed"))

    def _commit(self, turns: Sequence[ActionBatch]) -> None:
        """Do what is written down."""
        carry_out(turns, self._recorder)
        for turn in turns:
            for viewer, event in turn.told:
                self.tell(viewer, event)
            if turn.is_cut:
                for hand in self._hands.values():
                    hand.leg.shut()

    def _hold_back(self, hand: MessageChannel, turns: Sequence[ActionBatch]) -> None:
        """Take nothing more from who makes us answer, and does not read the answers: memory is not for that."""
        (other,) = (each for each in self._hands.values() if each is not hand)
        answered = sum(turn.answers(other) for turn in turns)
        if answered:
            other.owed = answered if other.leg.backlog <= answered else other.owed + answered
            if other.owed > OWED:
                hand.leg.wait_for(other.leg)

    def _switch(self, *, is_wanted: bool) -> bool:
        for hand in self._hands.values():
            if is_wanted or hand.has_more_to_say or self._drops_noise(hand):
                hand.on()
            else:
                hand.off()
        return self._hands[CLIENT].is_on

    def _set_alarm(self, next_at: float | None) -> None:
        if next_at is not None:
            self._alarm()

    def _let_go(self, of: Callable[[MessageChannel], bool] = lambda _: True) -> ActionBatch:
        """Return the turn in which all that is held goes on, in its order."""
        turn = ActionBatch()
        for ticket, (hand, line) in self._kept.items():
            if of(hand):
                turn.go_on(hand, line)
                turn.settled.append(ticket)
        return self._written(turn)

    def _give_up(self, error: Exception) -> None:
        self._commit([self._given_up(error)])

    def _given_up(self, error: Exception) -> ActionBatch:
        """Throw the desk away because of a bug of ours; return the turn in which all that is held goes on."""
        self._desk = None
        self._failed = f"rules and holds stopped by a bug in mcpspy: {type(error).__name__}: {error}"
        say(f"{self._failed}; traffic goes on without them")
        turn = self._let_go()
        turn.entries.append(note(self.now(), "error", {"text": self._failed}))
        return turn


def _is_message(line: bytes, *, thoroughly: bool) -> bool:
    """Return whether a line is a JSON object or array; not `thoroughly`: whether it has the brackets of one."""
    from mcpspy.core.protocol.message import loads

    return is_message(line, BLANKS) and (not thoroughly or loads(line.strip(BLANKS)) is not None)
