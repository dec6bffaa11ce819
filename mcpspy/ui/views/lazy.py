"""Results of functions of the user, computed in a thread, so that a slow one does not stop the screen.

The last request is computed first: it is about what is visible now. A function that takes longer than LIMIT is not
called again, and what waits for it gets a line that says so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

LIMIT = 5.0
"""Maximum seconds of one call."""

KEPT = 5000
"""Maximum number of results that are kept."""

WAITING = 500
"""Maximum number of calls that wait; the oldest are dropped, and requested again when they are visible again."""


class Failed(NamedTuple):
    """The reason why there is no result, on one line."""

    why: str


class _Call(NamedTuple):
    key: Hashable
    function: Callable[[Any], Any]
    argument: Any
    started: float = 0.0


class LazyResults:
    """The results of all functions, by a key of the caller."""

    def __init__(self, failure: Callable[[Callable[[Any], Any], BaseException], str]) -> None:
        """`failure` returns the line about an exception of a function."""
        self.on_result: Callable[[], None] = lambda: None
        """Called after each result, mostly in another thread."""
        self._failure = failure
        self._results: dict[Hashable, Any] = {}
        self._calls: dict[Hashable, _Call] = {}
        self._running: _Call | None = None
        self._too_slow: set[Callable[[Any], Any]] = set()
        self._changed = threading.Condition()

    def get(
        self,
        key: Hashable,
        function: Callable[[Any], Any],
        argument: Callable[[], Any],
        wait: float = 0.0,
    ) -> Any:
        """Return a result, Failed, or None if it is not there after `wait` seconds.

        `argument` returns the argument of the function, or Failed. It is called here, and only if it is needed.
        """
        with self._changed:
            self._stop_slow_call()
            if key in self._results:
                return self._results[key]
            if function in self._too_slow:
                return _slow()
            if self._running is None or self._running.key != key:
                call = self._calls.pop(key, None) or _Call(key, function, argument())
                if isinstance(call.argument, Failed):
                    return call.argument
                self._calls[key] = call
                if len(self._calls) > WAITING:
                    del self._calls[next(iter(self._calls))]
            if self._running is None:
                self._start()
            until = time.monotonic() + wait
            while key not in self._results and (left := until - time.monotonic()) > 0:
                self._changed.wait(min(left, LIMIT))
                self._stop_slow_call()
                if function in self._too_slow:
                    return _slow()
            return self._results.get(key)

    def stop_slow_call(self) -> None:
        """Give up a call that takes too long."""
        with self._changed:
            self._stop_slow_call()

    def _start(self) -> None:
        """Start a thread that computes what waits, if anything does. The caller has the lock."""
        self._running = self._next()
        if self._running is not None:
            threading.Thread(target=self._compute, args=(self._running,), daemon=True).start()

    def _next(self) -> _Call | None:
        """Take the call that was requested last."""
        return self._calls.popitem()[1]._replace(started=time.monotonic()) if self._calls else None

    def _compute(self, call: _Call) -> None:
        while True:
            try:
                result = call.function(call.argument)
            except (Exception, SystemExit) as error:
                result = Failed(self._failure(call.function, error))
            with self._changed:
                if self._running is not call:  # It took too long, and another thread has its place.
                    return
                if len(self._results) > KEPT:
                    self._results.clear()
                self._results[call.key] = result
                self._changed.notify_all()
                self._running = following = self._next()
            self.on_result()
            if following is None:
                return
            call = following

    def _stop_slow_call(self) -> None:
        running = self._running
        if running is None or time.monotonic() - running.started < LIMIT:
            return
        # Python cannot end its thread.
        self._too_slow.add(running.function)
        self._calls = {key: call for key, call in self._calls.items() if call.function != running.function}
        self._start()
        self.on_result()


def _slow() -> Failed:
    return Failed(f"not done after {LIMIT:g} s; not called again")
