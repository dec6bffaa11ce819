"""`mcpspy mock` on stdio: serves a recording in place of its server.

Uses the descriptors, the clock and signals. A thread reads; the main thread writes (`io.stdio.lines`).
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from types import FrameType
from typing import NamedTuple, NoReturn, TypeAlias

from mcpspy.core.mock.selector import Selector
from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.stdio.lines import END, STDOUT, read_together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mcpspy.io.serving.live_server import LiveServer, LiveServerThread

LONGEST = 3600.0
"""Maximum seconds of one wait, because a recording may contain a time that no clock can wait for."""

TOGETHER = 64
"""Number of lines whose responses are sent in one write when many lines arrive at once."""

LARGE = 1 << 20
"""Bytes of responses that are written before more are read from the recording."""

ENDING = (signal.SIGTERM, signal.SIGINT)


class EndedBySignal(BaseException):
    """A signal ends the mock. Not an Exception, so that no handler mistakes it for a failure."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number
        self.selector: Selector | None = None
        """The selector, with the requests until then."""


class RealServerData(NamedTuple):
    data: bytes


InputQueue: TypeAlias = "SimpleQueue[list[bytes] | RealServerData | None]"
"""Batches of lines from stdin, END at its end, and messages of the real server."""


def serve(
    loader: RecordingsLoader,
    options: MockOptions,
    complain: Callable[[str], None],
    real: LiveServer | None = None,
) -> Selector:
    """Serve on stdin and stdout until the client closes its end. Return the selector, which knows the requests.

    Raises UsageError or CannotStart, for a small recording before the first response, and EndedBySignal on a signal.
    """
    queue: InputQueue = SimpleQueue()
    read_together(queue.put)
    session: MockSession | None = None
    upstream: LiveServerThread | None = None
    if real is not None:
        # Imported late: without a real server, asyncio is not needed.
        from mcpspy.io.serving.live_server import LiveServerThread

        upstream = LiveServerThread(real, lambda data: queue.put(RealServerData(data)))
    try:
        session = MockSession(loader.begin(), options, monotonic())
        try:
            _run(session, loader, queue, complain, upstream)
        except BrokenPipeError:
            pass  # The client has disconnected and needs nothing more.
    except EndedBySignal as ended:
        ended.selector = session.selector if session is not None else None
        raise
    finally:
        if upstream is not None:
            upstream.close()
    return session.selector


def end_by_signals() -> None:
    """Raise EndedBySignal on the first SIGTERM or SIGINT; a second one ends the process at once."""

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        for each in ENDING:
            signal.signal(each, signal.SIG_DFL)
        raise EndedBySignal(number)

    for number in ENDING:
        signal.signal(number, end)


def _undisturbed(step: Callable[[], bool]) -> bool:
    """Run a step that a signal must not interrupt. Raise the signal again after it."""
    received: list[int] = []
    before = {number: signal.signal(number, lambda number, _: received.append(number)) for number in ENDING}
    try:
        return step()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if received:
            signal.raise_signal(received[0])


def _run(
    session: MockSession,
    loader: RecordingsLoader,
    queue: InputQueue,
    complain: Callable[[str], None],
    upstream: LiveServerThread | None,
) -> None:
    """Pass messages between client and session until the client has closed its end and has every response.

    Reads more of the recording whenever there is nothing to send.
    """
    is_open = is_more = True
    while True:
        _send(session)
        if not (is_open or session.owes):
            return
        is_quiet = False
        try:
            received = queue.get(timeout=0.0 if is_more else _until(session.next_at))
        except Empty:
            is_quiet = True
        else:
            if received is END:
                is_open = False
                session.close(monotonic())
            elif isinstance(received, RealServerData):
                session.receive_from_server(received.data, monotonic())
            else:
                _receive(session, received)
        if is_more and (is_quiet or session.waits):
            is_more = _undisturbed(loader.read_on)
            session.resume(monotonic())
        passthrough = session.passthrough
        if passthrough is not None and upstream is not None:
            for data in passthrough.take_outgoing():
                upstream.send(data, passthrough.initialize)
        for text in (*loader.take_warnings(), *session.complaints()):
            complain(text)


def _receive(session: MockSession, lines: list[bytes]) -> None:
    for number, line in enumerate(lines):
        if number and not number % TOGETHER:
            _send(session)
        session.receive(line, monotonic())


def _until(due: float | None) -> float | None:
    return None if due is None else min(max(0.0, due - monotonic()), LONGEST)


def _send(session: MockSession) -> None:
    pieces: list[bytes] = []
    size = 0
    for outgoing in session.take(monotonic()):
        pieces += outgoing.data, b"\n"
        size += len(outgoing.data)
        if size > LARGE:
            _write(b"".join(pieces))
            pieces, size = [], 0
    _write(b"".join(pieces))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(STDOUT, data) :]
