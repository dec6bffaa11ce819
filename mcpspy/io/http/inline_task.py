"""Tasks that continue inside the callback for which they wait.

A task of asyncio continues in a later iteration of the event loop, and each iteration asks the system for events. A
message that passes through a proxy would wait for several. An `InlineTask` that awaits a `Wakeup` continues while
`Wakeup.set` runs; whatever else it awaits, it continues as any task does. Source: "Extending asyncio" in the
documentation of Python, task lifetime support.
"""

from __future__ import annotations

import asyncio
from asyncio.tasks import _enter_task, _leave_task
from collections.abc import Coroutine
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Wakeup(asyncio.Future[None]):
    """A future without a value. An `InlineTask` that awaits it continues inside `set`."""

    task: InlineTask[Any] | None = None

    def set(self) -> None:
        """Wake the task. Does nothing the second time."""
        if not self.done():
            self.set_result(None)
            if self.task is not None:
                self.task.resume()


class InlineTask(asyncio.Future[T]):
    """A running coroutine, and its result. It starts at once."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._work = work
        self._awaited: asyncio.Future[Any] | None = None
        self._is_cancelled = False
        """True from `cancel` until the coroutine gets the CancelledError."""
        self._cancellations = 0
        if asyncio.current_task() is None:
            self._step()
        else:
            self._loop.call_soon(self._step)

    def cancel(self, msg: Any | None = None) -> bool:
        """Raise CancelledError in the coroutine, soon. Return False if it has ended."""
        if self.done():
            return False
        self._cancellations += 1
        awaited = self._awaited
        if isinstance(awaited, Wakeup):
            awaited.cancel()
            self._awaited, self._is_cancelled = None, True
            self._loop.call_soon(self._step)
        elif awaited is None or not awaited.cancel():
            self._is_cancelled = True
        return True

    def cancelling(self) -> int:
        """Return the number of cancellations, for `asyncio.timeout`."""
        return self._cancellations

    def uncancel(self) -> int:
        """Take back a cancellation, for `asyncio.timeout`. Return the number of the others."""
        self._cancellations -= 1
        return self._cancellations

    def resume(self) -> None:
        """Continue after the awaited `Wakeup`, at once unless another task is running."""
        self._awaited = None
        if asyncio.current_task() is None:
            self._step()
        else:
            self._loop.call_soon(self._step)

    def _after(self, _: asyncio.Future[Any]) -> None:
        self._awaited = None
        self._step()

    def _step(self) -> None:
        if self.done():
            return
        task = cast("asyncio.Task[Any]", self)
        _enter_task(self._loop, task)
        try:
            if self._is_cancelled:
                self._is_cancelled = False
                awaited = self._work.throw(asyncio.CancelledError())
            else:
                awaited = self._work.send(None)
        except StopIteration as stop:
            self.set_result(stop.value)
        except asyncio.CancelledError:
            super().cancel()
        except Exception as error:
            self.set_exception(error)
        else:
            self._wait_for(awaited)
        finally:
            _leave_task(self._loop, task)

    def _wait_for(self, awaited: Any) -> None:
        if awaited is None:  # asyncio.sleep(0)
            self._loop.call_soon(self._step)
            return
        awaited._asyncio_future_blocking = False
        self._awaited = awaited
        if isinstance(awaited, Wakeup):
            awaited.task = self
        else:
            awaited.add_done_callback(self._after)
        if self._is_cancelled:  # Cancelled from within.
            self._is_cancelled = False
            self._cancellations -= 1
            self.cancel()
