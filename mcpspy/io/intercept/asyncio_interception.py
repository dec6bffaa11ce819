"""Interception on an asyncio loop, for `mcpspy http` and `mcpspy bridge`."""

from __future__ import annotations

import asyncio

from mcpspy.io.intercept.interception import SessionInterception


class AsyncioInterception(SessionInterception):
    """The alarm of an interception. A subclass executes the steps."""

    _alarm: asyncio.TimerHandle | None = None
    _alarm_at = 0.0

    def _set_alarm(self, next_at: float | None) -> None:
        """Set the timer. An earlier one stays, because nearly all deadlines are met: `wake` sets it again."""
        if next_at is None or (self._alarm is not None and self._alarm_at <= next_at):
            return
        self._cancel_alarm()
        self._alarm_at = next_at
        self._alarm = asyncio.get_running_loop().call_later(max(next_at - self.now(), 0.0), self._ring)

    def _cancel_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _ring(self) -> None:
        self._alarm = None
        self.wake()
