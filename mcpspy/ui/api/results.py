"""Lint, diff and statistics of the public API: the same results as those of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mcpspy.analysis.diff import DiffOptions, SessionDiff, compare, ignored
from mcpspy.analysis.lint import Finding
from mcpspy.analysis.stats import StatsCollector
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.scan import RecordingScan
from mcpspy.ui.api.session import ReadSession
from mcpspy.ui.report.lint_scan import LintScan
from mcpspy.ui.report.stats import members
from mcpspy.ui.report.stats_table import counted_session


def lint(session: ReadSession) -> list[Finding]:
    """Return the protocol violations of a session, of its selected entries if it is filtered.

    A finding has `code`, `severity`, `message`, `excerpt`, `side`, `about`, and `at` in seconds since the start
    (docs/lint.md).

    >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
    >>> sorted({str(finding.severity) for finding in mcpspy.lint(session)})
    ['error', 'warning']
    """
    findings = LintScan(session.path).findings()
    if session.query is None:
        return list(findings)
    selected = {change.number for change in session.table.selected()}
    return [finding for finding in findings if finding.number in selected]


def diff(
    old: ReadSession,
    new: ReadSession,
    *,
    ignore_paths: Sequence[str] = (),
    dates: bool = False,
    volatile: bool = False,
) -> SessionDiff:
    """Compare two whole sessions, with the options of `mcpspy diff` (docs/diff.md).

    `is_same()` of the result is True if there are only notes; `changes` has each compared item with each change of
    it: `kind`, `severity`, `why`, `pointer`, `old`, `new`. Raise UsageError for a filtered session, and for an
    invalid path.

    >>> session = mcpspy.read("recordings/everything-sdk-auto.jsonl")
    >>> difference = mcpspy.diff(session, session)
    >>> difference.is_same(), difference.changes
    (True, [])
    """
    for session in old, new:
        if session.query is not None:
            raise UsageError("diff: a filtered session cannot be compared", "compare the whole sessions")
    patterns = []
    for text in ignore_paths:
        try:
            patterns.append(ignored(text))
        except ValueError as error:
            raise UsageError(sanitize(f"ignore_paths {text}: {error}"), "use '/result/**/time'") from None
    options = DiffOptions(ignored=tuple(patterns), dates=dates, volatile=volatile)
    return compare(Recording(old.path).session(), Recording(new.path).session(), options)


def stats(session: ReadSession) -> dict[str, Any]:
    """Return the statistics of a session as the object of `mcpspy stats --format json` (docs/stats.md).

    Times are in seconds, sizes in bytes. The filter of a session limits requests and notifications.

    >>> numbers = mcpspy.stats(mcpspy.read("recordings/everything-sdk-auto.jsonl"))
    >>> numbers["transport"], numbers["damaged"]
    ('stdio', 0)
    """
    recording = Recording(session.path)
    is_live = recording.state is RecordingState.LIVE
    if session.query is not None:
        session.query.end = session.last_at
    collector = StatsCollector(recording.header, session.query)
    return members(
        counted_session(session.path.stem, RecordingScan(session.path), collector, is_live=is_live)
    )
