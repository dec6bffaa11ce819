"""The visitors of a session, in a thread of their own: for a pump that has no loop.

Owns that thread and nothing else: what is ready is `polled`'s business, and runs
under the pump's lock, as everything does that touches the session.
"""

from __future__ import annotations

import select
import socket
import threading

from mcpspy.io.control.polled import READABLE, WRITABLE, Polled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.io.control.room import Live


class Threaded:
    """The door of a session, and who has come in."""

    def __init__(self, live: Live, lock: threading.Lock) -> None:
        """Listen; raise CannotStart. Call with the lock held."""
        self._lock = lock
        self._routes: dict[int, tuple[Callable[[int], None], int]] = {}
        # What another thread changes is looked at once this one wakes.
        self._asleep, self._alarm = socket.socketpair()
        self._asleep.setblocking(False)
        self._alarm.setblocking(False)
        self.route(self._asleep.fileno(), self._on_alarm, READABLE)
        self._polled = Polled(self, live)
        self.path = self._polled.path
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """Say that it is over, and close. Call with the lock held."""
        self._polled.close()

    def route(self, fd: int, handler: Callable[[int], None], events: int) -> None:
        """Call the handler when the descriptor is ready."""
        if self._routes.get(fd, (None, 0))[1] != events:
            self._routes[fd] = handler, events
            self._wake()

    def unroute(self, fd: int) -> None:
        """Wait for nothing more on it."""
        self._routes.pop(fd, None)
        self._wake()

    def _wake(self) -> None:
        try:
            self._alarm.send(b"!")
        except BlockingIOError:  # It will wake up as it is.
            pass

    def _on_alarm(self, _events: int) -> None:
        self._asleep.recv(512)

    def _run(self) -> None:
        while True:
            with self._lock:
                wanted = {fd: events for fd, (_, events) in self._routes.items()}
            readers = [fd for fd, events in wanted.items() if events & READABLE]
            writers = [fd for fd, events in wanted.items() if events & WRITABLE]
            try:
                readable, writable, _ = select.select(readers, writers, [])
            except (OSError, ValueError):  # One of them was closed meanwhile: look again at which there are.
                continue
            with self._lock:
                for fd in {*readable, *writable}:
                    handler, _events = self._routes.get(fd, (None, 0))
                    if handler is not None:
                        handler(READABLE * (fd in readable) | WRITABLE * (fd in writable))
