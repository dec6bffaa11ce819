"""The poll loop of `mcpspy run` on POSIX: one process, one thread, one poll().

Handles the three directions, signals, the server's final output, and the control socket, which opens once
traffic is quiet. The loop never blocks on one direction while another could flow, never reads data that it
cannot write, and never kills a server that the host still uses.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from mcpspy.errors import McpspyError
from mcpspy.io.recording.recorder import say
from mcpspy.io.stdio.base import STDERR, has_reader, unread_bytes
from mcpspy.io.stdio.channel import Channel, TerminalWriter
from mcpspy.io.stdio.process import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.io.control.server_poll import PollServer
    from mcpspy.io.recording.recorder import Recorder
    from mcpspy.io.stdio.base import RunOptions, Taps
    from mcpspy.io.stdio.interception import StdioInterception
    from mcpspy.io.stdio.process import Child

    assert sys.platform != "win32"

LINGER = 0.25
"""Seconds without output, after the server's exit, that end a session whose pipes a grandchild keeps open."""

FINAL_TIMEOUT = 5.0
"""Seconds after the server's exit in which the output of grandchildren is forwarded. Hosts wait for the exit."""

MAX_FINAL_OUTPUT = 4 << 20
"""Bytes per pipe that are forwarded after the server's exit: more than a pipe holds of the server's own output."""

GROUP_SIGNAL_WAIT = 0.05
"""Seconds to wait until the guard reports that a signal reached the whole group; then the signal is forwarded."""

EXIT_TIMEOUT = 1.0
"""Seconds that the host gets to read the final output after it requested mcpspy to stop. Contract: exit within 2 s."""

QUIET_TIME = 100
"""Milliseconds without traffic after which the control socket is opened. Opening it takes some time."""

MAX_POLLS = 500
"""Number of polls after which the control socket is opened anyway. Polling with a timeout takes 1.5 µs longer."""

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
        self._quiet_at = NEVER
        self._final_bytes = 0
        self._unread_at_exit = 0
        self._stop_requested_at = 0.0
        self._exit_deadline = NEVER
        # False until the first signal (SIGCHLD included) or alarm. Until then, the loop only forwards bytes.
        self._is_busy = False
        self._received: list[tuple[float, int]] = []
        self._relays: list[TerminalWriter] = []
        self._wake = child.signals
        self._guard = child.guard
        self._group_signals: list[tuple[float, int]] = []
        self._channels: list[Channel] = []
        self._interception: StdioInterception | None = None
        self._control: PollServer | None = None

    def run(self) -> int:
        """Run until the session ends. Return the server's wait status."""
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
                if quiet or polls == MAX_POLLS:
                    quiet_timeout = None
                    self._open_control()
            if self._is_busy and self._run_due(quiet=quiet):
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
        relay = TerminalWriter(fd)
        self._relays.append(relay)
        return relay.input_fd

    def alarm(self) -> None:
        """Check deadlines from now on."""
        self._is_busy = True

    def _timeout(self, quiet_timeout: int | None) -> float | None:
        """Return the timeout of poll() in milliseconds. None means no timeout, which is the usual case."""
        now = time.monotonic()
        due = [at + GROUP_SIGNAL_WAIT for at, _ in self._received]
        if quiet_timeout is not None:
            due.append(now + quiet_timeout / 1000)
        if self._interception is not None and self._interception.due_at is not None:
            due.append(self._interception.due_at)
        if self._status is not None:
            if now < self._quiet_at:
                due.append(self._quiet_at)
            elif not any(channel.pending for channel in self._channels):
                return 0
            due.append(self._exit_deadline)
        first = min(due, default=NEVER)
        return None if first == NEVER else max(0.0, first - now) * 1000

    def _run_due(self, *, quiet: bool) -> bool:
        """Run everything that is due. Return whether the session is done."""
        if self._received:
            self._forward()
        if self._interception is not None:
            self._interception.wake()
        if self._status is not None:
            return self._is_done(quiet=quiet)
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
        if self._status is not None and not self._has_successor():
            return
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

    def _has_successor(self) -> bool:
        """Return whether the command was a launcher: it left a server behind, which the host can still reach.

        If the command has failed, the process that it left behind must have read from stdin since then.
        """
        return self._is_reachable() and (self._status == 0 or self._bytes_consumed() > 0)

    def _is_reachable(self) -> bool:
        """Return whether a process has the stdin and the stdout of the exited command."""
        client_input = self._channels[0]
        return client_input.is_open and self._is_stdout_in_use() and has_reader(client_input.target)

    def _is_stdout_in_use(self) -> bool:
        return not self._stop_requested_at and not self._channels[1].is_done

    def _bytes_consumed(self) -> int:
        """Return the number of bytes that were read from the server's stdin since its exit; 0 if unknown."""
        client_input = self._channels[0]
        written = client_input.bytes_read - client_input.backlog
        return self._unread_at_exit + written - unread_bytes(client_input.target, default=written)

    def _is_done(self, *, quiet: bool) -> bool:
        """Return whether the output of the exited server and of its grandchildren is delivered, or its time is up."""
        client_input, *outputs = self._channels
        now = time.monotonic()
        if now >= self._exit_deadline or all(channel.is_done for channel in outputs):
            return True
        if self._interception is not None and self._interception.is_deciding:
            return False
        if self._has_successor():
            self._dismiss_guard()
            self._ended_at, self._quiet_at, self._final_bytes = now, NEVER, 0
            for channel in outputs:
                channel.bytes_read = 0
            return False
        limit = self._ended_at + FINAL_TIMEOUT
        if now >= limit or not self._is_reachable():
            client_input.close()
        final_bytes = sum(channel.bytes_read for channel in outputs)
        if final_bytes != self._final_bytes or self._quiet_at == NEVER:
            self._final_bytes = final_bytes
            self._quiet_at = min(now + LINGER, limit)
        for channel in outputs:
            if channel.is_open and not channel.pending and channel.bytes_read >= MAX_FINAL_OUTPUT:
                channel.close()
        if now < self._quiet_at:
            return False
        is_stdin_in_use = client_input.is_open or (self._status == 0 and self._child.is_stdin_open())
        if now < limit and quiet and self._is_stdout_in_use() and is_stdin_in_use:
            self._quiet_at = min(now + LINGER, limit)
            return False
        if quiet and self._interception is not None:
            self._interception.finish()
        return quiet and not any(channel.pending for channel in outputs)

    def _on_signal(self, _events: int) -> None:
        self._is_busy = True
        for number in os.read(self._wake, 512):
            if number == signal.SIGCHLD:
                self._reap()
            else:
                self._received.append((time.monotonic(), number))

    def _on_group_signal(self, _events: int) -> None:
        assert self._guard is not None
        seen = os.read(self._guard.seen, 512)
        if not seen:  # The guard was killed: forward every signal from now on.
            self.unroute(self._guard.seen)
        now = time.monotonic()
        self._group_signals += [(now, number) for number in seen]

    def _forward(self) -> None:
        """Forward each signal to the server once, unless the whole process group received it."""
        now = time.monotonic()
        waiting = []
        # Two signals may reach mcpspy as one and the guard as two: the second must not count for a later signal.
        self._group_signals = [
            (at, number) for at, number in self._group_signals if now < at + GROUP_SIGNAL_WAIT
        ]
        for at, number in self._received:
            duplicate = next((duplicate for duplicate in self._group_signals if duplicate[1] == number), None)
            if duplicate is not None:
                self._group_signals.remove(duplicate)
            elif self._guard is not None and now < at + GROUP_SIGNAL_WAIT:
                waiting.append((at, number))
                continue
            elif self._status is None:
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
            self._quiet_at = self._ended_at + LINGER
            if self._channels[0].is_open:
                self._unread_at_exit = unread_bytes(self._channels[0].target, default=0)
            for channel in self._channels:
                channel.is_counting = True
            self._set_exit_deadline()

    def _finish(self) -> None:
        if self._received:  # The signal reached the server and also requests mcpspy to stop.
            self._exit_deadline = min(self._exit_deadline, time.monotonic() + EXIT_TIMEOUT)
        if self._interception is not None:
            self._interception.finish()
        for channel in self._channels:
            channel.close()
        for relay in self._relays:
            relay.drain(lambda: time.monotonic() >= self._exit_deadline or self._has_signal())
        if self._control is not None:
            self._control.close()
        self._dismiss_guard()

    def _dismiss_guard(self) -> None:
        if self._guard is not None:
            self.unroute(self._guard.seen)
            self._guard.dismiss()
            self._guard = None

    def _has_signal(self) -> bool:
        poller = select.poll()
        poller.register(self._wake, select.POLLIN)
        return bool(poller.poll(0))
