"""Two sessions compared: steps, results, listings, schemas.

`compare` takes whole or live sessions, `compare_exchanges` two requests, `compare_chosen` two of a user's choice. `ignored` and `slower` parse option
values. `mcpspy.ui.report` formats the differences.
"""

from __future__ import annotations

from mcpspy.analysis.diff.compare import compare, compare_chosen, compare_exchanges, unlisted
from mcpspy.analysis.diff.model import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    DiffOptions,
    Ignored,
    LatencyLimit,
    SessionDiff,
    ignored,
    slower,
)

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
    "compare_chosen",
    "compare_exchanges",
    "ignored",
    "slower",
    "unlisted",
]
