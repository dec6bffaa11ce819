"""Interception on an asyncio loop, for `mcpspy http` and `mcpspy bridge`."""

from __future__ import annotations

import asyncio

from mcpspy.io.interception import SessionInterception


class AsyncioInterception(SessionInterception):
    """The alarm of an interception. A subclass executes the steps."""

    _alarm: asyncio.TimerHandle | None = None

    def _set_alarm(self, next_at: float | None) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if next_at is not None:
            delay = max(next_at - self.now(), 0.0)
            self._alarm = asyncio.get_running_loop().call_later(delay, self.wake)
