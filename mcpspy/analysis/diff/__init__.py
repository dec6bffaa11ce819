"""Two sessions compared: what the new one says otherwise than the old one.

    compare(old, new, options) -> Difference            two sessions, whole or live
    compare_exchanges(old, new, options) -> Case        two requests and what came of them
    DiffOptions(only=, ignored=, dates=, slower_than=)
    ignored("tools/call clock /result/content/*/text")  what may differ, as people type it
    slower("2x")                                        how slow is too slow, as people type it
    unlisted(session, options) -> list[str]             what `only` asks for and the session never listed

A `Difference` has `cases`, one for everything compared, each with its
`changes`; `is_same(fail_on)` is the verdict. Pure, and says nothing about how a
difference is shown: that is `mcpspy.ui.report`.
"""

from __future__ import annotations

from mcpspy.analysis.diff.compare import compare, compare_exchanges, unlisted
from mcpspy.analysis.diff.ignore import Ignored, ignored
from mcpspy.analysis.diff.model import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)
from mcpspy.analysis.diff.options import DiffOptions, LatencyLimit, slower

__all__ = [
    "ChangeKind",
    "ChangePosition",
    "ChangeSeverity",
    "ComparedCase",
    "DiffChange",
    "DiffOptions",
    "Ignored",
    "LatencyLimit",
    "SessionDiff",
    "compare",
    "compare_exchanges",
    "ignored",
    "slower",
    "unlisted",
]
