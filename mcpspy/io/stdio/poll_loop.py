"""The poll loop of `mcpspy run` on POSIX: one process, one thread, one poll().

Handles the three directions, signals, the server's final output, and the control socket, which opens once
traffic is quiet. The loop never blocks on one direction while another could flow, never reads data that it
cannot write, and never kills a server that the host still uses. If other processes have the pipes of a server
that has exited, a fork of mcpspy, the relay, continues the loop, because the host waits for mcpspy's own exit.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from mcpspy.errors import McpspyError
from mcpspy.io.recording.recorder import say
from mcpspy.io.stdio.base import MAX_OWN_OUTPUT, STDERR
from mcpspy.io.stdio.channel import Channel, TerminalWriter
from mcpspy.io.stdio.guard import ANSWER
from mcpspy.io.stdio.process import leave, outcome, signal_name
from mcpspy.io.stdio.silence import SilenceNotes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.io.control.server_poll import PollServer
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RunOptions, Taps
    from mcpspy.io.stdio.interception import StdioInterception
    from mcpspy.io.stdio.process import Child

    assert sys.platform != "win32"

END_TOGETHER = 0.01
"""Seconds after the server's exit in which processes that end with it, by a signal to the group, need no relay."""

GUARD_TIMEOUT = 1.0
"""Seconds to wait until the guard answers whether a signal reached the whole group; then the signal is forwarded."""

SAME_SIGNAL = 0.01
"""Seconds between mcpspy's and the guard's copy of a signal to the group. Also those between two signals with the same
number to the server, of which the kernel would deliver one if the server has not received the first one yet."""

EXIT_TIMEOUT = 1.0
"""Seconds that the host gets to read the final output after it requested mcpspy to stop. Contract: exit within 2 s."""

QUIET_TIME = 100
"""Milliseconds without traffic after which the control socket is opened. Opening it takes some time."""

MAX_POLLS = 500
"""Number of polls after which the control socket is opened anyway. Polling with a timeout takes 1.5 µs longer."""

SHORTEST = 0.001
"""Seconds of a timer whose time has come."""

NEVER = float("inf")

TERMINATING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
"""Signals that request the server, and then mcpspy, to stop."""


class PollLoop:
    """Forwards all directions until the server has exited and its final output is delivered."""

    def __init__(self, child: Child, recorder: Recorder, taps: Taps, options: RunOptions) -> None:
        self._child = child
        self._recorder = recorder
        self._taps = taps
        self._options = options
        self._poller = select.poll()
        self._routes: dict[int, Callable[[int], None]] = {}
        self._status: int | None = None
        self._ended_at = 0.0
        self._is_relay = False
        self._stop_requested_at = 0.0
        self._exit_deadline = NEVER
        # False until the first signal (SIGCHLD included) or alarm. Until then, the loop only forwards bytes.
        self._is_busy = False
        self._received: list[tuple[float, int, int]] = []
        """Time, question to the guard, and number of the signals that are not handled yet."""
        self._sent: dict[int, float] = {}
        """Number of a signal → when it was last sent to the server."""
        self._terminals: list[TerminalWriter] = []
        self._wake = child.signals
        self._guard = child.guard
        self._asked = 0
        self._answered = 0.0 if child.guard is not None else NEVER
        """Number of questions that the guard has answered; without a guard, there is no need to ask."""
        self._group_signals: list[tuple[float, int]] = []
        self._channels: list[Channel] = []
        self._silence = SilenceNotes(recorder, taps, self._count_unread, self._set_timer)
        self._interception: StdioInterception | None = None
        self._control: PollServer | None = None

    def run(self) -> int:
        """Run until the session ends, perhaps in another process. Return the server's wait status."""
        taps = self._taps
        self.route(self._wake, self._on_signal, select.POLLIN)
        if self._guard is not None:
            self.route(self._guard.seen, self._on_group_signal, select.POLLIN)
        child = self._child
        self._channels = [
            Channel(self, 0, child.stdin, taps[0]),
            Channel(self, child.stdout, self._writable(1), taps[1]),
            Channel(self, child.stderr, self._writable(2), taps[2], is_shared=self._options.noise == STDERR),
        ]
        self._channels[0].silence = self._silence
        signal.signal(signal.SIGALRM, lambda *_: None)
        if self._options.intercepts:
            self._intercept().begin()
        # Until glibc has freed a large block once, it returns the top of the heap to the system with every chunk and
        # faults it in again: 80 of 100 µs per chunk under load.
        bytes(1 << 22)
        self._reap()  # The server may have exited before SIGCHLD was watched.
        poll, routes = self._poller.poll, self._routes
        quiet_timeout: int | None = QUIET_TIME
        if self._options.interception.scripts.files:
            quiet_timeout = None
            self._open_control()
        polls = 0
        while True:
            quiet = True
            for fd, events in poll(self._timeout(quiet_timeout) if self._is_busy else quiet_timeout):
                handler = routes.get(fd)  # A previous handler may have closed this descriptor.
                if handler is not None:
                    quiet = False
                    handler(events)
            if quiet_timeout is not None:
                polls += 1
                if (quiet or polls >= MAX_POLLS) and (self._status is None or self._is_relay):
                    quiet_timeout = None
                    self._open_control()
            if self._is_busy and self._run_due():
                break
        self._finish()
        assert self._status is not None
        return self._status

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        self._routes[fd] = handler
        self._poller.register(fd, events)

    def unroute(self, fd: int) -> None:
        if self._routes.pop(fd, None) is not None:
            self._poller.unregister(fd)

    def _writable(self, fd: int) -> int:
        """Return a descriptor that can replace `fd` for writing. A terminal may block even after POLLOUT."""
        if not os.isatty(fd):
            return fd
        terminal = TerminalWriter(fd)
        self._terminals.append(terminal)
        return terminal.input_fd

    def alarm(self) -> None:
        """Check deadlines from now on."""
        self._is_busy = True

    def _timeout(self, quiet_timeout: int | None) -> float | None:
        """Return the timeout of poll() in milliseconds. None means no timeout, which is the usual case."""
        now = time.monotonic()
        due = [
            now + SAME_SIGNAL if question <= self._answered else at + GUARD_TIMEOUT
            for at, question, _ in self._received
        ]
        if quiet_timeout is not None:
            due.append(now + quiet_timeout / 1000)
        if self._interception is not None and self._interception.due_at is not None:
            due.append(self._interception.due_at)
        if self._status is not None:
            due.append(self._exit_deadline)
            if not self._is_relay and now < self._ended_at + END_TOGETHER:
                due.append(self._ended_at + END_TOGETHER)
            elif not self._is_relay and self._terminals:  # Their threads do not wake this one.
                due.append(now + END_TOGETHER)
        first = min(due, default=NEVER)
        return None if first == NEVER else max(0.0, first - now) * 1000

    def _run_due(self) -> bool:
        """Run everything that is due. Return whether the session is done."""
        if self._received:
            self._forward()
        if self._interception is not None:
            self._interception.wake()
        if self._status is not None:
            return self._is_done()
        self._is_busy = bool(self._received) or (
            self._interception is not None and self._interception.due_at is not None
        )
        return False

    def _intercept(self) -> StdioInterception:
        """Return the interception. It is idle until a rule or a viewer needs it."""
        if self._interception is None:
            from mcpspy.io.stdio.interception import StdioInterception

            self._interception = StdioInterception(
                self._recorder, self._options, self._taps, self._channels, self.alarm
            )
        return self._interception

    def _open_control(self) -> None:
        """Let viewers connect. A failure affects viewers only."""
        try:
            from mcpspy.io.control.server_poll import PollServer

            self._recorder.prepare()
            self._control = PollServer(self, self._intercept())
        except McpspyError as error:
            say(f"viewers cannot connect to this session: {error}")
        except Exception as error:
            say(f"viewers cannot connect to this session: a bug in mcpspy: {type(error).__name__}: {error}")
        if self._control is None and self._interception is not None:
            self._interception.listening(None)

    def _is_done(self) -> bool:
        """Return whether all output is delivered, or its time is up."""
        outputs = self._channels[1:]
        now = time.monotonic()
        if now >= self._exit_deadline or all(channel.is_done for channel in outputs):
            return True
        if not self._is_relay and now >= self._ended_at + END_TOGETHER and self._has_delivered():
            return not self._continue_in_relay()
        return False

    def _has_delivered(self) -> bool:
        """Return whether all output of the exited server itself is delivered."""
        outputs = self._channels[1:]
        if not all(channel.has_read(MAX_OWN_OUTPUT) for channel in outputs):
            return False
        if self._interception is not None:
            if self._interception.is_deciding:
                return False
            self._interception.release_server()
        return all(channel.has_written(MAX_OWN_OUTPUT) for channel in outputs) and all(
            terminal.is_idle() for terminal in self._terminals
        )

    def _continue_in_relay(self) -> bool:
        """Exit, and let a fork of this process forward for the processes that have the pipes of the exited server.

        Without mcpspy, they would keep talking to the host after its server has exited. Returns in the relay, which has
        the lock of the recording, the control socket and all decisions; False if it could not be started.
        """
        assert self._status is not None
        # This process handles no more signals, because it exits. One to the group also reaches the relay.
        signal.pthread_sigmask(signal.SIG_BLOCK, self._child.caught)
        self._take_last_signals()
        outputs = zip(("stdout", "stderr"), self._channels[1:], strict=True)
        self._recorder.exit(*outcome(self._status), [name for name, output in outputs if not output.is_done])
        for terminal in self._terminals:
            terminal.pause()
        try:
            is_ready, ready = os.pipe()
            if _fork():
                os.close(ready)
                os.read(
                    is_ready, 1
                )  # The host may close its pipes when it sees the exit, and expect EPIPE at once.
                leave(self._status)
            os.close(is_ready)
        except OSError as error:
            say(f"cannot forward for the processes that the server left behind: {error.strerror}")
            for terminal in self._terminals:
                terminal.resume()
        else:
            self._is_relay = True
            self._set_timer()  # A fork has none.
            self._stop_requested_at, self._exit_deadline = 0.0, NEVER
            for terminal in self._terminals:
                terminal.start()
            os.close(ready)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, self._child.caught)
        return self._is_relay

    def _on_signal(self, _events: int) -> None:
        self._is_busy = True
        try:
            numbers = os.read(self._wake, 512)
        except BlockingIOError:
            return
        if signal.SIGALRM in numbers:
            self._silence.wake()
            self._set_timer()
        received = [number for number in numbers if number not in (signal.SIGCHLD, signal.SIGALRM)]
        if len(received) < len(numbers):
            self._reap()
        if received:
            if self._guard is not None:
                self._guard.ask()
                self._asked += 1
            now = time.monotonic()
            self._received += [(now, self._asked, number) for number in received]

    def _set_timer(self) -> None:
        """Have SIGALRM wake the loop for the notes on silences: a timeout would make every poll() slower."""
        due_at = self._silence.due_at
        left = 0.0 if due_at is None else max(due_at - time.monotonic(), SHORTEST)  # 0 stops the timer.
        signal.setitimer(signal.ITIMER_REAL, left)

    def _count_unread(self) -> int | None:
        return self._channels[0].count_unread()

    def _on_group_signal(self, _events: int) -> None:
        assert self._guard is not None
        seen = os.read(self._guard.seen, 512)
        if not seen:  # The guard was killed: forward every signal from now on.
            self.unroute(self._guard.seen)
            self._answered = NEVER
        now = time.monotonic()
        self._answered += seen.count(ANSWER)
        self._group_signals += [(now, number) for number in seen if number != ANSWER]

    def _forward(self) -> None:
        """Forward each signal to the server once, unless the whole process group received it.

        The kernel signals the guard before mcpspy, because it joined the group later. So when the guard has answered a
        question that mcpspy asked after a signal, it has reported its own copy.
        """
        now = time.monotonic()
        waiting = []
        for signal_received in self._received:
            at, question, number = signal_received
            if question > self._answered and now < at + GUARD_TIMEOUT:
                waiting.append(signal_received)
                continue
            # The guard may have received two signals where mcpspy received one: the second is not a later signal.
            self._group_signals = [seen for seen in self._group_signals if at < seen[0] + SAME_SIGNAL]
            duplicate = next((seen for seen in self._group_signals if seen[1] == number), None)
            if duplicate is not None:
                self._group_signals.remove(duplicate)
            elif self._status is None:
                if now < self._sent.get(number, 0.0) + SAME_SIGNAL:
                    waiting.append(signal_received)
                    continue
                self._sent[number] = now
                os.kill(self._child.pid, number)
            if number in TERMINATING:
                self._stop_requested_at = at
                self._set_exit_deadline()
            self._recorder.note("signal", signal=signal_name(number))
        self._received = waiting

    def _set_exit_deadline(self) -> None:
        if self._stop_requested_at and self._status is not None and self._exit_deadline == NEVER:
            self._exit_deadline = max(self._stop_requested_at, self._ended_at) + EXIT_TIMEOUT

    def _reap(self) -> None:
        if self._status is not None:
            return
        pid, status = os.waitpid(self._child.pid, os.WNOHANG)
        if pid:
            self._is_busy = True
            self._status = status
            self._ended_at = time.monotonic()
            for channel in self._channels:
                channel.is_counting = True
            self._set_exit_deadline()

    def _finish(self) -> None:
        self._silence.due_at = None
        self._set_timer()
        self._take_last_signals()
        if self._interception is not None:
            self._interception.finish()
        for channel in self._channels:
            channel.close()
        for terminal in self._terminals:
            terminal.drain(lambda: time.monotonic() >= self._exit_deadline or self._has_signal())
        if self._control is not None:
            self._control.close()

    def _take_last_signals(self) -> None:
        """Handle signals that arrived with the end: they ended the server, and also request mcpspy to stop."""
        self._dismiss_guard()
        self._on_signal(0)
        self._forward()

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self.unroute(self._guard.seen)
            self._guard.dismiss()
            self._guard = None
            self._answered = NEVER

    def _has_signal(self) -> bool:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        return bool(poller.poll(0))


def _fork() -> int:
    import warnings

    with warnings.catch_warnings():
        # Python 3.12 warns about threads: those of terminals, which the relay starts again.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
