"""The process of a load test for a viewer: the options and results of `mcpspy replay --clients`.

`LoadEngine` sends the state of the test twice a second, and at its end what limits the result. It answers the orders
`stop` and `report`.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import monotonic

from msgspec import convert

from mcpspy.analysis.diff import ChangeSeverity
from mcpspy.analysis.load import gate
from mcpspy.core.recording.origin import REPLAY
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import McpspyError, UsageError
from mcpspy.io.engine import Engine, EngineViewer, serve
from mcpspy.io.load import LoadOptions, LoadRunner
from mcpspy.io.recording.atomic import save
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import ReplayRun
from mcpspy.ui.model.replayed import compared, diff_options, prepare_replay
from mcpspy.ui.report import load as load_report

EVERY = 0.5
"""Seconds between two states."""

WARNINGS = 10
"""Maximum number of warnings."""


class LoadEngine(Engine):
    """One load test, and its results until the viewer ends."""

    def __init__(self, viewer: EngineViewer, folder: str) -> None:
        super().__init__(viewer)
        config = viewer.config
        self._gate = gate(config["fail_if"]) if config.get("fail_if") else None
        self._options = diff_options(config)
        self._where = RecordingTarget()
        self._where.origin, self._where.record = REPLAY, folder
        self._runner: LoadRunner | None = None
        self._task: asyncio.Task[bool] | None = None
        self._sent = 0.0
        self._is_over = False

    async def _play(self) -> None:
        config = self._viewer.config
        try:
            session, warnings, options = await asyncio.to_thread(prepare_replay, config, self._where)
            runner = self._runner = LoadRunner(options, convert(config["load"], LoadOptions), self._look)
            self._viewer.send("began")
            self._task = asyncio.create_task(runner.play())
            try:
                is_stopped = await self._task
            except asyncio.CancelledError:
                self._task.cancel()
                await asyncio.gather(self._task, return_exceptions=True)
                task = asyncio.current_task()
                if task is None or task.cancelling():  # The viewer ended.
                    raise
                is_stopped = True  # Before its first run.
            failed = next((run.failed for run in runner.collected if run.failed is not None), None)
            if failed is not None:
                raise UsageError(failed)
        except McpspyError as error:
            self._viewer.send(
                "failed", why=sanitize(redacted_text(str(error.args[0]))), hint=sanitize(error.hint)
            )
            return
        await asyncio.to_thread(runner.compare, lambda run: self._is_same(session, run))
        self._is_over = True
        self._show()
        lines = list(load_report.remarks(runner.result, len(runner.collected)))
        lines += [load_report.gate_words(self._gate, runner.result)] if self._gate is not None else []
        found = dict.fromkeys([*warnings, *(line for run in runner.collected for line in run.warnings)])
        is_bad = (
            bool(self._gate.met(runner.result)) if self._gate is not None else runner.result.different > 0
        )
        self._viewer.send(
            "ended",
            stopped=is_stopped,
            bad=is_bad,
            lines=[sanitize(line) for line in [*lines, *list(found)[:WARNINGS]]],
        )

    def _is_same(self, session: Session, run: ReplayRun) -> bool:
        """Return whether every request was sent, and every response is as recorded."""
        if run.unsent or run.stopped is not None:
            return False
        difference = compared(session, run.session, run.sent, self._options, is_complete=True)
        return difference.is_same(ChangeSeverity.DIFFERENT)

    def _look(self, *_: object) -> None:
        if (now := monotonic()) - self._sent >= EVERY:
            self._sent = now
            self._show()

    def _show(self) -> None:
        runner = self._runner
        assert runner is not None
        result = runner.result
        lines = list(load_report.lines(result))
        self._viewer.send("load", runs=result.runs, requests=result.sent, errors=result.errors, lines=lines)

    # Orders.

    async def _order_stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _order_report(self, path: str) -> None:
        """Write a report in the format of the suffix: `.html`, `.json` or `.csv`."""
        if not self._is_over or self._runner is None:
            raise UsageError("the load test has not ended yet", "stop it, or wait for its end")
        result, suffix = self._runner.result, Path(path).suffix
        if suffix == ".html":
            data = load_report.page(result, redacted_text(Path(self._viewer.config["path"]).name), self._gate)
        elif suffix == ".json":
            data = load_report.document(result, self._gate)
        elif suffix == ".csv":
            data = load_report.histogram_csv(result)
        else:
            raise UsageError(f"{Path(path).name}: the file name must end in .html, .json or .csv")
        size = await asyncio.to_thread(save, path, [data])
        self._viewer.send("reported", path=path, size=size)


async def main(viewer: EngineViewer) -> None:
    with tempfile.TemporaryDirectory(prefix="mcpspy-load-") as folder:
        await LoadEngine(viewer, folder).main()


if __name__ == "__main__":
    serve(main)
