"""`mcpspy mock` on stdio: a recording in the place of the server it was made from.

Owns the descriptors, the clock and the signals; what is said, and when, is
`core.mock`'s. Reads in a thread and writes in the main one (`io.stdio.lines`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import NamedTuple, NoReturn

from mcpspy.core.mock.selector import Choice
from mcpspy.core.mock.session import Conversation, Options, Patient
from mcpspy.io.mock.loader import Served
from mcpspy.io.stdio.lines import END, STDOUT, read_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.io.mock.upstream import InThread, Real

LONGEST = 3600.0
"""Seconds of one wait: a recording may hold a time that no clock can wait for."""

TOGETHER = 64
"""Lines of a flood whose answers go out in one write."""

LARGE = 1 << 20
"""Bytes of answers that are written before more are read from the recording."""

ENDING = (signal.SIGTERM, signal.SIGINT)


class Ended(BaseException):
    """A signal asks us to end. Not an Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.choice: Choice | None = None
        """What was asked for until then."""


class Relayed(NamedTuple):
    """What the real server said."""

    data: bytes


class Input:
    """The lines of stdin, those that came at once together, and what else comes from outside."""

    def __init__(self) -> None:
        self._lines: SimpleQueue[list[bytes] | Relayed | None] = SimpleQueue()
        read_together(self._lines.put)

    def get(self, seconds: float | None) -> list[bytes] | Relayed | None:
        """Return the next, END at the end of stdin; raise Empty if none comes in time."""
        return self._lines.get(timeout=seconds)

    def relay(self, data: bytes) -> None:
        """Put what the real server said behind the lines that are there; from any thread."""
        self._lines.put(Relayed(data))


def serve(
    served: Served, options: Options, complain: Callable[[str], None], real: Real | None = None
) -> Choice:
    """Serve on stdin and stdout until the client has closed its end; return what was asked for.

    Raises UsageError or CannotStart, of a small recording before anything is
    served, and Ended, with what was asked for until then, for a signal.
    """
    lines = Input()
    conversation: Patient | None = None
    behind: InThread | None = None
    if real is not None:
        # Not at the top: without a real server nobody should wait for asyncio.
        from mcpspy.io.mock.upstream import InThread

        behind = InThread(real, lines.relay)
    try:
        conversation = Patient(served.begin(), options, monotonic())
        try:
            _talk(conversation, served, lines, complain, behind)
        except BrokenPipeError:
            pass  # The client is gone, and needs nothing more.
    except Ended as ended:
        ended.choice = conversation.choice if conversation is not None else None
        raise
    finally:
        if behind is not None:
            behind.close()
    return conversation.choice


def end_by_signals() -> None:
    """Have the first SIGTERM or SIGINT raise Ended; a second one ends us at once."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for each in ENDING:
            signal.signal(each, signal.SIG_DFL)
        raise Ended(number)

    for number in ENDING:
        signal.signal(number, end)


def _undisturbed(step: Callable[[], bool]) -> bool:
    """Do something that a signal must not leave half done; it ends us after that."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in ENDING}
    try:
        return step()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _talk(
    conversation: Patient,
    served: Served,
    lines: Input,
    complain: Callable[[str], None],
    behind: InThread | None,
) -> None:
    """Pass lines in and messages out, until the client has closed its end and has got what it is owed.

    Reads on in the recording whenever there is nothing to say.
    """
    is_open = is_more = True
    while True:
        _send(conversation)
        if not (is_open or conversation.owes):
            return
        is_quiet = False
        try:
            said = lines.get(0.0 if is_more else _until(conversation.next_at))
        except Empty:
            is_quiet = True
        else:
            if said is END:
                is_open = False
                conversation.close(monotonic())
            elif isinstance(said, Relayed):
                conversation.hear(said.data, monotonic())
            else:
                _hear(conversation, said)
        if is_more and (is_quiet or conversation.waits):
            is_more = _undisturbed(served.read_on)
            conversation.go_on(monotonic())
        relay = conversation.relay
        if relay is not None and behind is not None:
            for data in relay.outgoing():
                behind.send(data, relay.introduction)
        for text in (*served.take_remarks(), *conversation.complaints()):
            complain(text)


def _hear(conversation: Conversation, lines: list[bytes]) -> None:
    for number, line in enumerate(lines):
        if number and not number % TOGETHER:
            _send(conversation)
        conversation.receive(line, monotonic())


def _until(due: float | None) -> float | None:
    return None if due is None else min(max(0.0, due - monotonic()), LONGEST)


def _send(conversation: Conversation) -> None:
    pieces: list[bytes] = []
    size = 0
    for outgoing in conversation.take(monotonic()):
        pieces += outgoing.data, b"\n"
        size += len(outgoing.data)
        if size > LARGE:
            _write(b"".join(pieces))
            pieces, size = [], 0
    _write(b"".join(pieces))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(STDOUT, data) :]
