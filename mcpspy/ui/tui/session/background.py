"""What is done with the rows of a session while nobody waits for it.

Owns when rows are judged by the filter, when they are looked at for what is
wrong, and for how long at a time: a key comes first. Which rows are shown is
`view`'s, what is wrong `findings`'.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from mcpspy.ui.tui.session.findings import LintPass, prepare
from mcpspy.ui.tui.session.loader import SessionLoader
from mcpspy.ui.tui.session.row_filter import FilteredView

LINTED = 50_000
"""Rows up to which what is wrong with them is looked for unasked: that takes some ten seconds."""

SLICE = 0.004
"""Seconds that rows are judged, or looked at, at a time: a key waits no longer."""


class BackgroundTasks:
    """Two tasks that never end, each a slice at a time."""

    def __init__(
        self,
        feed: SessionLoader,
        view: FilteredView,
        linting: LintPass,
        *,
        judged: Callable[[], None],
        found: Callable[[], None],
    ) -> None:
        """`judged` is called when the rows have caught up with the log, `found` when there are findings."""
        self._feed = feed
        self._view = view
        self._linting = linting
        self._judged = judged
        self._found = found
        self._is_behind = asyncio.Event()
        self._is_unlinted = asyncio.Event()
        self._is_asked = False
        """Whether findings are wanted of a session of any length."""

    async def judge(self) -> None:
        """Keep the rows that are shown up with the log."""
        while True:
            self._is_behind.clear()
            was_behind = self._view.is_behind
            self.judge_some()
            if self._view.is_behind:
                await asyncio.sleep(0)
                continue
            if was_behind and not self._feed.is_behind:
                self._judged()
            await self._is_behind.wait()

    async def lint(self) -> None:
        """Look for what is wrong in what was read, once nothing else is to be done."""
        linting = self._linting
        while True:
            self._is_unlinted.clear()
            if not self._may_lint:
                await self._is_unlinted.wait()
                continue
            if not linting.done:
                await asyncio.to_thread(prepare)
            news = (
                await asyncio.to_thread(linting.advance, 0.0) if linting.is_large else linting.advance(SLICE)
            )
            if news:
                self._view.reconsider(news)
                self._found()
            await asyncio.sleep(0)

    def judge_some(self) -> None:
        """Judge now, for a slice; the rest follows by itself."""
        end = time.perf_counter() + SLICE
        self._view.judge(lambda: time.perf_counter() < end)
        if self._view.is_behind:
            self._is_behind.set()

    def look(self) -> None:
        """See whether there is something to look for."""
        if self._may_lint:
            self._is_unlinted.set()

    def ask_findings(self) -> None:
        """Look for what is wrong, however long the session is."""
        self._is_asked = True
        self._is_unlinted.set()

    @property
    def lint_share(self) -> str:
        """How much was looked at; empty if it was all."""
        linting = self._linting
        return f"{linting.done * 100 // max(len(self._feed.log), 1)} %" if linting.is_behind else ""

    @property
    def _may_lint(self) -> bool:
        """Whether there is something to look at, and nobody waits for anything else."""
        is_short = len(self._feed.log) <= LINTED
        busy = self._feed.is_behind or self._view.is_behind
        return self._linting.is_behind and not busy and (is_short or self._is_asked)
