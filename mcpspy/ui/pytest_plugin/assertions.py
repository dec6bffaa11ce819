"""Assertions on a session: it has no protocol violations, matches a recording, or meets a contract.

The failure message is the report of `mcpspy lint`, `mcpspy diff` or `mcpspy check`. A session is the value of the fixture (its messages
so far), or the path of a recording.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from mcpspy.analysis.contract import CallLimit, Contract, check, term_lines
from mcpspy.analysis.diff import ChangeSeverity, DiffOptions, compare, ignored, unlisted
from mcpspy.analysis.diff.model import LISTED, ignore_suggestion
from mcpspy.analysis.lint import Severity as LintSeverity
from mcpspy.analysis.lint import selected
from mcpspy.core.counted import counted
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.pytest_plugin.cassettes import recorded, shown_path
from mcpspy.ui.pytest_plugin.fixture import McpRecording
from mcpspy.ui.report.diff import MOST_PATTERNS, terminal
from mcpspy.ui.report.lint import finding_lines
from mcpspy.ui.report.lint_scan import LintScan, LintSettings

SessionSource: TypeAlias = McpRecording | str | os.PathLike[str]

WIDTH = 110
"""Columns of a `diff` report: pytest does not provide a width."""


def assert_lint_clean(
    session: SessionSource,
    *,
    ignore: Iterable[str] = (),
    select: Iterable[str] = (),
    fail_on: str | None = None,
) -> None:
    """Fail if a session violates the protocol.

    `ignore` and `select` are rule codes or prefixes of them (docs/lint.md). Findings below the severity `fail_on`
    (error, warning, info) are ignored. Each replaces the same setting of the project (`[tool.mcpspy.lint]`).
    """
    __tracebackhide__ = True
    ignore, select = list(ignore), list(select)
    selected(select, ignore)
    settings = LintSettings(select=select, ignore=ignore, fail_on=fail_on and LintSeverity(fail_on))
    lines: list[str] = []
    count = 0
    for path in _paths(session):
        rules, least = settings.of(Recording(path).header.name or path.stem)
        for finding in LintScan(path, rules).findings():
            if finding.severity.rank <= least.rank:
                count += 1
                lines += (
                    line for line, _ in finding_lines(finding, f"{shown_path(path)}:{finding.place.line}")
                )
    if lines:
        total = "1 finding" if count == 1 else f"{count} findings"
        raise AssertionError("\n".join([f"{total} (mcpspy lint --explain CODE explains a rule)", *lines]))


def assert_matches(
    session: SessionSource,
    recording: SessionSource | None = None,
    *,
    ignore: Iterable[str] = (),
    only: Iterable[str] = (),
    dates: bool = False,
    volatile: bool | None = None,
    fail_on: str = "different",
) -> None:
    """Fail if a session differs from a recording.

    Without `recording`, the session is compared with the recording of its fixture: the code under test must send
    exactly the recorded requests. `ignore` contains patterns of `mcpspy diff --ignore-path`; `only` (tools, resources,
    prompts), `dates`, `volatile` and `fail_on` (breaking, different, note) are options of `mcpspy diff`. The default of
    `volatile` is the option of the fixture, if one of the sessions is its value.
    """
    __tracebackhide__ = True
    if recording is None:
        if not isinstance(session, McpRecording):
            raise TypeError("assert_matches: a path needs a second argument, the recording")
        if session.records_all:  # The session becomes the recording.
            return
        recording = session.path
    if unknown := set(only) - set(LISTED):
        raise ValueError(f"only={sorted(unknown)}: not one of {', '.join(LISTED)}")
    if volatile is None:
        volatile = any(each.volatile for each in (session, recording) if isinstance(each, McpRecording))
    patterns = tuple(map(ignored, ignore))
    options = DiffOptions(only=frozenset(only), ignored=patterns, dates=dates, volatile=volatile)
    least = ChangeSeverity(fail_on)
    new, old = _paths(session), _paths(recording)
    if len(new) != len(old):
        raise AssertionError(
            f"{counted(len(new), 'session')} in this run, {counted(len(old), 'session')} in the recording"
        )
    for pair in zip(old, new, strict=True):
        sessions = Recording(pair[0]).session(), Recording(pair[1]).session()
        for path, read in zip(pair, sessions, strict=True):
            if missing := unlisted(read, options):
                raise AssertionError(
                    f"{shown_path(path)}: its client never listed the {' and '.join(missing)}"
                )
        difference = compare(*sessions, options)
        if not difference.is_same(least):
            report = [line for line, _ in terminal(difference, width=WIDTH, fail_on=least)]
            ways = ignore_suggestion(difference, least)
            if ways.volatile:
                report.append(f"volatile=True would ignore {ways.volatile} of {ways.changes} changes")
            if ways.patterns:
                report.append(f"ignore={ways.patterns[:MOST_PATTERNS]} would ignore them")
            recorded_path, new_path = map(shown_path, pair)
            raise AssertionError("\n".join([f"{new_path} differs from {recorded_path}", *report]))


def assert_contract(
    session: SessionSource,
    *,
    expect_tools: Iterable[str] = (),
    forbid_tools: Iterable[str] = (),
    max_calls: int | Mapping[str, int] | None = None,
    max_duration: float | None = None,
    no_errors: bool = False,
    no_issues: bool = False,
) -> None:
    """Fail if a session breaks a term of a contract: the options of `mcpspy check`.

    Tools are names or patterns with `*`. `max_calls` is a number for all tools, or a mapping from tools to numbers;
    `max_duration` is in seconds. With several sessions, each must meet every term.
    """
    __tracebackhide__ = True
    limits = {} if max_calls is None else {"*": max_calls} if isinstance(max_calls, int) else max_calls
    contract = Contract(
        expect_tools=tuple(expect_tools),
        forbid_tools=tuple(forbid_tools),
        max_calls=tuple(CallLimit(tool, most) for tool, most in limits.items()),
        max_duration=max_duration,
        no_errors=no_errors,
        no_issues=no_issues,
    )
    for path in _paths(session):
        broken = [result for result in check(Recording(path).session(), contract) if not result.is_met]
        if broken:
            raise AssertionError(
                "\n".join(
                    [f"{shown_path(path)} breaks its contract", *(line for line, _ in term_lines(broken))]
                )
            )


def _paths(source: SessionSource) -> list[Path]:
    """Return the files of a session, or of a recording with several sessions."""
    if isinstance(source, McpRecording):
        return source.sessions
    return recorded(Path(source)) or [Path(source)]
