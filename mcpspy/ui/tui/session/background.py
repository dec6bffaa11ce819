"""Filtering and linting of a session's rows in the background, in short slices of time.

The linter reads the file again and keeps no message. Merged recordings are
linted separately.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

from mcpspy.core.recording.decode import Header, read_entry
from mcpspy.errors import McpspyError
from mcpspy.ui.model.apps import AppsModel
from mcpspy.ui.model.row_filter import FilteredView
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.model.session_model import SessionModel

if TYPE_CHECKING:
    from mcpspy.analysis.lint import Finding, Linter
    from mcpspy.core.session.streaming import StreamingSession
    from mcpspy.ui.report.lint_scan import LintSettings

LARGE = 1 << 17
"""Bytes from which linting a line takes longer than a slice."""


class _Source:
    def __init__(self, header: Header, settings: LintSettings | None) -> None:
        from mcpspy.analysis.lint import RULES, Linter
        from mcpspy.core.session.streaming import StreamingSession

        self.session: StreamingSession = StreamingSession(header)
        self.linter: Linter = Linter(header, settings.of(header.name)[0] if settings is not None else RULES)
        self.rows = array("I")
        """Change number → row."""


class LintPass:
    def __init__(self, model: SessionModel, origin: Callable[[int], tuple[int, Header]]) -> None:
        """`origin` maps the number of a file to the number and the header of its recording."""
        self._model = model
        self._origin = origin
        self._settings: LintSettings | None = None
        self._news: list[int] = []
        self._is_over = False
        self._begin()

    def prepare(self) -> None:
        """Import the linter and read its settings. Run this in a thread: it takes longer than a slice.

        Raises UsageError or CannotStart for wrong settings; all rules apply then.
        """
        import jsonschema_rs  # noqa: F401 - Imported by `analysis.lint.schemas` with the first schema.

        from mcpspy.analysis.lint import Linter
        from mcpspy.ui.report.lint_scan import LintSettings

        Linter()
        self._settings = LintSettings()

    @property
    def is_behind(self) -> bool:
        model = self._model
        is_new = self._generation != model.generation
        return is_new or self.done < len(model) or (model.is_over and not self._is_over)

    @property
    def is_large(self) -> bool:
        """True if linting the next line takes longer than a slice and therefore needs a thread."""
        return self.done < len(self._model) and self._model.index.where(self.done).length > LARGE

    def advance(self, seconds: float) -> list[int]:
        """Lint for `seconds`, at least one line and at most one large line; return the rows with new findings."""
        end = time.perf_counter() + seconds
        if self._generation != self._model.generation:
            self._begin()
        while self.done < len(self._model):
            self._look()
            if self.is_large or time.perf_counter() >= end:
                break
        if self._model.is_over and not self._is_over and self.done == len(self._model):
            self._is_over = True
            for source in self._sources.values():
                source.session.end()
                self._keep(source, source.linter.end())
            self._sources.clear()  # Another session may join a run.
        self._is_over &= self._model.is_over
        news = self._news.copy()
        self._news.clear()
        return news

    def _begin(self) -> None:
        self._generation = self._model.generation
        self.done = 0
        self._is_over = False
        self._sources: dict[int, _Source] = {}
        self._news.clear()

    def _look(self) -> None:
        """Lint the line of the next row; a batch has several rows."""
        row, model = self.done, self._model
        where = model.index.where(row)
        self.done = row + 1
        line = model.read(where.part, where.offset, where.length)
        if (
            where.item or len(line) < where.length
        ):  # Linted with the first message of its batch, or truncated.
            return
        number, header = self._origin(where.part)
        source = self._sources.get(number)
        if source is None:
            source = self._sources[number] = _Source(header, self._settings)
        changes = source.session.add(read_entry(line))
        source.rows.extend(range(row, row + len(changes)))
        for change in changes:
            self._keep(source, source.linter.add(change))

    def _keep(self, source: _Source, findings: list[Finding]) -> None:
        for finding in findings:
            row = source.rows[finding.number]
            self._model.findings.add(row, finding)
            self._news.append(row)


LINTED = 50_000
"""Maximum rows of a session that is linted automatically: that takes about ten seconds."""

SLICE = 0.004
"""Seconds of work at a time: the longest delay of a key."""


class BackgroundTasks:
    """The filter task and the lint task, which run until the screen closes."""

    def __init__(
        self,
        loader: SessionLoader,
        view: FilteredView,
        lint_pass: LintPass,
        apps: AppsModel,
        *,
        processed: Callable[[], None],
        found: Callable[[], None],
        report: Callable[[str], None],
    ) -> None:
        """`processed` is called when the filter has caught up, `found` when there are findings, and `report` with an
        error in the settings.
        """
        self._loader = loader
        self._view = view
        self._lint_pass = lint_pass
        self._apps = apps
        self._filtered = processed
        self._found = found
        self._report = report
        self._is_behind = asyncio.Event()
        self._is_unlinted = asyncio.Event()
        self._is_prepared = False
        self._is_forced = False
        """True to lint a session of any length."""

    async def filter_rows(self) -> None:
        while True:
            self._is_behind.clear()
            was_behind = self._view.is_behind or self._apps.is_behind
            self.filter_slice()
            if self._view.is_behind or self._apps.is_behind:
                await asyncio.sleep(0)
                continue
            if was_behind and not self._loader.is_behind:
                self._filtered()
            await self._is_behind.wait()

    async def lint(self) -> None:
        """Lint the rows read so far, while there is no other work."""
        lint_pass = self._lint_pass
        while True:
            self._is_unlinted.clear()
            if not self._may_lint:
                await self._is_unlinted.wait()
                continue
            if not lint_pass.done and not self._is_prepared:
                self._is_prepared = True
                try:
                    await asyncio.to_thread(lint_pass.prepare)
                except McpspyError as error:
                    self._report(str(error))
            news = (
                await asyncio.to_thread(lint_pass.advance, 0.0)
                if lint_pass.is_large
                else lint_pass.advance(SLICE)
            )
            if news:
                self._view.reconsider(news)
                self._found()
            await asyncio.sleep(0)

    def filter_slice(self) -> None:
        """Filter for one slice, and schedule the rest."""
        end = time.perf_counter() + SLICE
        self._view.advance(lambda: time.perf_counter() < end)
        if not self._view.is_behind:
            self._apps.advance(lambda: time.perf_counter() < end)
        if self._view.is_behind or self._apps.is_behind:
            self._is_behind.set()

    def look(self) -> None:
        if self._may_lint:
            self._is_unlinted.set()

    def force_lint(self) -> None:
        self._is_forced = True
        self._is_unlinted.set()

    @property
    def lint_share(self) -> str:
        """The linted share of the rows; empty once all rows are linted."""
        lint_pass = self._lint_pass
        return f"{lint_pass.done * 100 // max(len(self._loader.model), 1)} %" if lint_pass.is_behind else ""

    @property
    def _may_lint(self) -> bool:
        """True if rows are left to lint and there is no more urgent work."""
        is_short = len(self._loader.model) <= LINTED
        busy = self._loader.is_behind or self._view.is_behind
        return self._lint_pass.is_behind and not busy and (is_short or self._is_forced)
