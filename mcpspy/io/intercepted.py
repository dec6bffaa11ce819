"""A stdio session that somebody may reach into: rules, a watchdog, viewers.

Owns the order of things for a message that is decided on: the decision, the
entry and its notes in the recording, then what is sent. Keeps the peers' own
bytes of what is held, so that a bug in the deciding costs the rules and never
the traffic. With nothing to decide the bytes go straight on, as if it were not there.
"""

from __future__ import annotations

import os
from time import monotonic

from mcpspy.core.envelope import CLIENT, MCPSPY, SERVER, note
from mcpspy.io.hand import Hand
from mcpspy.io.recorder import say
from mcpspy.io.stdio_base import STDERR, THROUGH
from mcpspy.io.turn import Turn, carry_out, untouched

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from mcpspy.core.intercept.desk import Desk
    from mcpspy.core.intercept.steps import Speak, Step
    from mcpspy.io.hand import Leg
    from mcpspy.io.recorder import Recorder
    from mcpspy.io.stdio_base import Options, Taps

AT_ONCE = 64
"""Messages that are recorded by one write, and sent by one."""

OWED = 1 << 20
"""Bytes of our answers that a peer has not read, after which we hear nothing more from it."""

UNREAD = 64 << 20
"""Bytes a peer has not read yet, after which viewers can send it nothing more."""


class Intercepted:
    """The session. Nothing here raises but `order`."""

    def __init__(
        self,
        recorder: Recorder,
        options: Options,
        taps: Taps,
        legs: Sequence[Leg],
        alarm: Callable[[], None],
    ) -> None:
        """`alarm` is called when `due_at` has been set."""
        self._recorder = recorder
        self._options = options
        self._alarm = alarm
        self._hands = {
            CLIENT: Hand(CLIENT, legs[0], taps[0], self),
            SERVER: Hand(SERVER, legs[1], taps[1], self),
        }
        self._stderr = legs[2]
        self._epoch = monotonic() - recorder.now()
        self._desk: Desk | None = None
        self._kept: dict[int, tuple[Hand, bytes]] = {}
        """What is held, in its order: whose it is, and the peer's own line."""
        self._known_until = 0.0
        """Seconds from the start up to which the desk knows what was said."""
        self._failed = ""
        self._is_cut = False
        self.session = recorder.id or os.urandom(4).hex()
        self.tell: Callable[[str | None, dict[str, Any]], None] = _nobody
        """How a viewer is reached; None: all of them. Calls nothing here."""

    @property
    def due_at(self) -> float | None:
        """When `wake` is to be called, on the monotonic clock; None: not by the clock."""
        if self._desk is None or self._desk.next_at is None:
            return None
        return self._epoch + self._desk.next_at

    def begin(self) -> None:
        """Do what was asked for on the command line, from the first byte on."""
        if self._options.interception.is_active:
            try:
                self._desk = self._options.interception.desk()
                opening = self._desk.opening()
                self._recorder.note(opening.kind, **opening.fields)
            except Exception as error:
                self._commit([self._give_up(error)])
        self._settle()

    # What the pump says.

    def take(self, hand: Hand, lines: list[bytes]) -> None:
        """Decide on lines, without their LF, in their order."""
        at = self._now()
        for some in range(0, len(lines), AT_ONCE):
            turns = []
            for line in lines[some : some + AT_ONCE]:
                try:
                    turns.append(self._turn(at, hand, line))
                except Exception as error:
                    turns += [self._give_up(error), untouched(at, hand, line)]
            self._commit(turns)
            self._hold_back(hand, turns)
        self._settle()

    def end_of(self, hand: Hand) -> None:
        """Have what a side said and is held go on, in its order: nothing more comes."""
        self._run(lambda desk, at: desk.end(at, hand.side))
        self._commit([self._let_go(lambda whose: whose is hand)])

    def wake(self) -> None:
        """Do what is due by now."""
        due_at = self.due_at
        if due_at is not None and monotonic() >= due_at:
            self._run(lambda desk, at: desk.wake(at))
            self._settle()

    def finish(self) -> None:
        """End: what is held goes on, if there is still somebody to take it, and half a line as well."""
        self._run(lambda desk, at: desk.end(at))
        self._commit([self._let_go()])
        for hand in self._hands.values():
            hand.off()

    # What viewers say.

    def hello(self) -> dict[str, Any]:
        """Return what a viewer is told first."""
        return {
            "session": self.session,
            "file": self._recorder.path,
            "name": self._options.called,
            "transport": "stdio",
            "pid": os.getpid(),
            "state": {} if self._desk is None else self._desk.describe(self._now()),
        }

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        """Do as a viewer wants, and return the answer; raise OrderError."""
        from mcpspy.core.intercept.steps import OrderError

        if self._failed:
            raise OrderError(self._failed)
        self._check(order)
        try:
            desk = self._learned()
            # Without a recording it is not known what was said before.
            is_silent = self._recorder.writer is not None and not desk.has_heard
            if (desk.is_opening or is_silent) and order.get("order") in ("request", "notify"):
                raise OrderError("the session has not begun: say it again when the handshake is over")
            answer, steps = desk.order(self._now(), viewer, order)
            turn = self._performed(self._now(), steps)
        except OrderError:
            raise
        except Exception as error:
            self._commit([self._give_up(error)])
            self._settle()
            raise OrderError(self._failed) from None
        # Before anything is said: not in the middle of a line, and an answer to us is ours from its first byte.
        for hand in self._hands.values():
            hand.on()
        self._commit([turn])
        self._settle()
        return answer

    def viewer_left(self, viewer: str) -> None:
        """Let go of what this viewer held."""
        self._run(lambda desk, at: desk.viewer_left(at, viewer))
        self._settle()

    def _check(self, order: dict[str, Any]) -> None:
        """Raise OrderError if a peer cannot be told anything."""
        from mcpspy.core.intercept.steps import OrderError

        if order.get("order") in ("request", "notify") and (to := order.get("to", SERVER)) in (
            CLIENT,
            SERVER,
        ):
            leg = self._hands[CLIENT if to == SERVER else SERVER].leg
            if not leg.is_taking:
                raise OrderError(f"the {to} cannot be told anything any more: the way to it is closed")
            if leg.backlog > UNREAD:
                raise OrderError(f"the {to} does not read: {leg.backlog} bytes wait for it")

    def _learned(self) -> Desk:
        """Return a desk that knows from the recording what was said while nobody asked it."""
        from mcpspy.io.past import frames

        desk = self._desk
        if desk is None:
            desk = self._desk = self._options.interception.desk()
        if not self._hands[CLIENT].is_on:
            for frame in frames(self._recorder, self._known_until):
                desk.hear(frame.at, frame.side, frame.data)
        return desk

    # How it is done.

    def _now(self) -> float:
        return monotonic() - self._epoch

    def _run(self, decide: Callable[[Desk, float], list[Step]]) -> None:
        """Do what the desk wants done, without a message."""
        if self._desk is not None:
            at = self._now()
            try:
                turn = self._performed(at, decide(self._desk, at))
            except Exception as error:
                turn = self._give_up(error)
            self._commit([turn])

    def _turn(self, at: float, hand: Hand, line: bytes) -> Turn:
        """Return what becomes of a line; raise whatever a bug raises, and leave all as it was then."""
        data = line.removesuffix(b"\r")
        if self._is_cut:
            return Turn(hand.frame(at, line, {"to": MCPSPY}))
        drops_noise = self._drops_noise(hand)
        if not _is_message(data, thoroughly=drops_noise):
            return self._noise(at, hand, line) if drops_noise else untouched(at, hand, line)
        if self._desk is None or not self._hands[CLIENT].is_on:  # Then only noise is looked for.
            return untouched(at, hand, line)
        ruling = self._desk.take(at, hand.side, data)
        if ruling.is_untouched:
            return untouched(at, hand, line)
        turn = Turn(hand.frame(at, line, {"to": MCPSPY} if ruling.to_mcpspy else {}))
        self._kept[ruling.ticket] = (hand, line)
        try:
            self._perform(turn, at, ruling.steps)
        except Exception:
            del self._kept[ruling.ticket]
            raise
        if not ruling.is_held:
            turn.settled.append(ruling.ticket)
        return self._written(turn)

    def _drops_noise(self, hand: Hand) -> bool:
        return hand.side == SERVER and self._options.noise != THROUGH

    def _noise(self, at: float, hand: Hand, line: bytes) -> Turn:
        turn = Turn((*hand.frame(at, line, {"to": MCPSPY}), note(at, "noise", {"did": self._options.noise})))
        if self._options.noise == STDERR:
            turn.sent.append((self._stderr.put, line + b"\n"))
        return turn

    def _performed(self, at: float, steps: Iterable[Step]) -> Turn:
        """Return what is to be done without a message."""
        turn = Turn()
        self._perform(turn, at, steps)
        return self._written(turn)

    def _written(self, turn: Turn) -> Turn:
        """Take a turn as done, once all of it is written down: whatever breaks after it, it will be."""
        for ticket in turn.settled:
            self._kept.pop(ticket, None)
        self._is_cut = self._is_cut or turn.is_cut
        return turn

    def _perform(self, turn: Turn, at: float, steps: Iterable[Step]) -> None:
        """Write down what is to be done for these steps."""
        from mcpspy.core.intercept.steps import Cut, Gone, Pass, Remark, Send, Speak, Tell

        for step in steps:
            match step:
                case Pass(ticket=ticket):
                    turn.go_on(*self._kept[ticket])
                    turn.settled.append(ticket)
                case Send(side=side, data=data, ticket=ticket, raw=raw):
                    turn.sent.append((self._hands[side].say, data if raw else data + b"\n"))
                    turn.settled.append(ticket)
                case Speak():
                    self._speak(turn, at, step)
                case Remark(kind=kind, fields=fields):
                    turn.entries.append(note(at, kind, fields))
                case Gone(ticket=ticket):
                    turn.settled.append(ticket)
                case Tell(viewer=viewer, event=event):
                    turn.told.append((viewer, event))
                case Cut():
                    turn.is_cut = True

    def _speak(self, turn: Turn, at: float, step: Speak) -> None:
        """Say something ourselves, unless nobody is there any more to hear it."""
        hand = self._hands[step.side]
        if hand.leg.is_taking:
            turn.entries += hand.frame(at, step.data, {"by": MCPSPY})
            turn.sent.append((hand.say, step.data + b"\n"))
        elif step.id is not None and self._desk is not None:
            self._perform(turn, at, self._desk.failed(at, step.id, "the way to it is closed"))

    def _commit(self, turns: Sequence[Turn]) -> None:
        """Do what is written down."""
        carry_out(turns, self._recorder)
        for turn in turns:
            for viewer, event in turn.told:
                self.tell(viewer, event)
            if turn.is_cut:
                for hand in self._hands.values():
                    hand.leg.shut()

    def _hold_back(self, hand: Hand, turns: Sequence[Turn]) -> None:
        """Take nothing more from who makes us answer, and does not read the answers: memory is not for that."""
        (other,) = (each for each in self._hands.values() if each is not hand)
        answered = sum(turn.answers(other) for turn in turns)
        if answered:
            other.owed = answered if other.leg.backlog <= answered else other.owed + answered
            if other.owed > OWED:
                hand.leg.wait_for(other.leg)

    def _settle(self) -> None:
        """Have a hand in what somebody wants a hand in, and in nothing else."""
        is_wanted = self._desk is not None and not self._desk.is_idle
        for hand in self._hands.values():
            if is_wanted or hand.has_more_to_say or self._drops_noise(hand):
                hand.on()
            elif hand.is_on:
                hand.off()
                self._known_until = self._now()
        if self.due_at is not None:
            self._alarm()

    def _let_go(self, of: Callable[[Hand], bool] = lambda _: True) -> Turn:
        """Return the turn in which all that is held goes on, in its order."""
        turn = Turn()
        for ticket, (hand, line) in self._kept.items():
            if of(hand):
                turn.go_on(hand, line)
                turn.settled.append(ticket)
        return self._written(turn)

    def _give_up(self, error: Exception) -> Turn:
        """Throw the desk away because of a bug of ours; the traffic goes on."""
        self._desk = None
        self._failed = f"rules and holds stopped by a bug in mcpspy: {type(error).__name__}: {error}"
        say(f"{self._failed}; traffic goes on without them")
        turn = self._let_go()
        turn.entries.append(note(self._now(), "error", {"text": self._failed}))
        return turn


def _is_message(line: bytes, *, thoroughly: bool) -> bool:
    """Whether a line is a JSON object or array; not `thoroughly`: whether it has the brackets of one."""
    text = line.strip(b" \t")
    if (text[:1], text[-1:]) not in ((b"{", b"}"), (b"[", b"]")):
        return False
    if not thoroughly:
        return True
    from mcpspy.core.message import loads

    return loads(text) is not None


def _nobody(viewer: str | None, event: dict[str, Any]) -> None:
    """Nobody looks."""
