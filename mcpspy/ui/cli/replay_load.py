"""Load test of `mcpspy replay`: its options, its report and its exit code."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from mcpspy.analysis.load import gate
from mcpspy.core.redact.display import redacted_text
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import FINDINGS, UsageError
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.diff import STDOUT, write_report
from mcpspy.ui.cli.options import Option, duration
from mcpspy.ui.cli.parser import finite, integer, reading
from mcpspy.ui.report import load as load_report
from mcpspy.ui.text.terminal import Output, StatusLine

if TYPE_CHECKING:
    from mcpspy.io.load import LoadOptions
    from mcpspy.io.replay import ReplayOptions, ReplayRun

FORMATS = ("csv", "html")
"""Formats that only the report of a load test has."""

STATUS_INTERVAL = 1.0
"""Minimum seconds between status lines."""

MAX_WARNINGS = 10


def _rate(text: str) -> float:
    if (number := finite(text)) is None or number <= 0:
        raise UsageError("not a rate", "use runs per second: 5, 0.5")
    return number


_COUNT = integer("count", "use a positive integer")

LOAD = (
    Option("--repeat", "N",
        "replay N times: per client, or with --rate in total (default: 1, with --duration no limit)",
        read=_COUNT),
    Option("--clients", "N",
        "load test: run N clients concurrently; with --rate, at most N (default: 100)",
        read=_COUNT),
    Option("--rate", "N", "load test: start N runs per second, even if earlier ones are not over", read=_rate,
        requires="--duration or --repeat"),
    Option("--duration", "TIME", "load test: start no run after this time: 30s, 5min", read=duration),
    Option("--ramp", "TIME",
        "load test: start the clients, or increase the rate up to --rate, evenly over this time",
        read=duration, default=0.0),
    Option("--fail-if", "CONDITION",
        "load test: exit 1 only under this condition: 'p95>200ms or errors>1%%'; metrics: p50, p90, p95, "
        "p99, max, mean, errors, rate (runs per second), different (runs)",
        read=reading(gate, "e.g. 'p95>200ms or errors>1%'")),
)  # fmt: skip


def read_load(args: argparse.Namespace) -> LoadOptions | None:
    """Return the options of a load test, None for a comparison; raise UsageError."""
    options = (args.rate, args.duration, args.ramp or None, args.fail_if)
    if args.format not in FORMATS and (args.clients or 1) == 1 and all(each is None for each in options):
        return None
    for name in ("junit", "markdown"):
        if args.format == name or getattr(args, name, None) is not None:
            raise UsageError(f"replay: a load test has no {name} report", "use --format json, csv or html")

    from mcpspy.io.load import load_options

    return load_options(args.clients, args.repeat, args.rate, args.duration, args.ramp)


class LoadTest:
    def __init__(
        self,
        options: ReplayOptions,
        load: LoadOptions,
        args: argparse.Namespace,
        title: str,
    ) -> None:
        from mcpspy.io.load import LoadRunner

        self._gate, self._args, self._title = args.fail_if, args, title
        self._runner = LoadRunner(options, load, self._look)
        self.result = self._runner.result
        self._status = StatusLine()
        self._shown = 0.0

    @property
    def collected(self) -> list[ReplayRun]:
        """The first runs, with their sessions."""
        return self._runner.collected

    def run(self) -> int | None:
        """Return the signal that ended it, or None; raise CannotStart."""
        with self._status:
            return self._runner.run()

    def _look(self, *_: object) -> None:
        if (now := monotonic()) - self._shown >= STATUS_INTERVAL:
            self._shown = now
            self._status.show(
                f"the load test: {self.result.runs} runs, {self.result.errors} errors",
                now - self._runner.started,
            )

    def report(self, is_same: Callable[[ReplayRun], bool]) -> int:
        """Compare the collected runs, write the report, and return the exit code."""
        result, args = self.result, self._args
        self._runner.compare(is_same)
        path = STDOUT if args.output is None else args.output
        if args.format == "text" or path != STDOUT:
            output = Output()
            for line in load_report.lines(result):
                output.line(line)
        if args.format != "text":
            write_report(path, self._document(args.format))
        sys.stdout.flush()  # In order with the report, even if both streams are one file.
        for warning in list(dict.fromkeys(line for run in self.collected for line in run.warnings))[
            :MAX_WARNINGS
        ]:
            say(sanitize(warning))
        for remark in load_report.remarks(result, len(self.collected)):
            say(remark)
        if self._gate is None:
            return FINDINGS if result.different else 0
        say(load_report.gate_words(self._gate, result))
        return FINDINGS if self._gate.met(result) else 0

    def _document(self, form: str) -> bytes:
        if form == "csv":
            return load_report.histogram_csv(self.result)
        if form == "html":
            from mcpspy.ui.report.load import page

            return page(self.result, redacted_text(self._title), self._gate)
        return load_report.document(self.result, self._gate)
