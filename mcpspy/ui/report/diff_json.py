"""A session diff as one strict JSON document with complete values."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
from msgspec import UNSET

from mcpspy.analysis.diff import ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.analysis.diff.options import IgnoreSuggestion
from mcpspy.ui.report.diff_text import TOO_DEEP, place


def document(
    difference: SessionDiff,
    titles: tuple[str, str],
    *,
    fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT,
    ways: IgnoreSuggestion | None = None,
) -> bytes:
    """Return the document, with a line ending. `titles` name the old and the new session.

    `ways` are the options that would ignore the changes; None if the sessions are the same.
    """
    changes = [_change(case, change) for case, change in difference.changes]
    report: dict[str, Any] = {
        "same": difference.is_same(fail_on),
        "old": titles[0],
        "new": titles[1],
        "compared": len(difference.cases),
        "counts": {str(severity): count for severity, count in difference.counts.items()},
        "changes": changes,
        "to_ignore": {
            "volatile": 0 if ways is None else ways.volatile,
            "ignore_path": [] if ways is None else ways.patterns,
        },
    }
    try:
        return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # Integers beyond 64 bits, lone surrogates, nested too deep.
        report["changes"] = [_written(change) for change in changes]
        return json.dumps(report, indent=2).encode() + b"\n"


def _written(change: dict[str, Any]) -> dict[str, Any]:
    try:
        finite: dict[str, Any] = _finite(change)
        json.dumps(finite, indent=2)
    except RecursionError:
        sides = {side: change[side] and {**change[side], "value": TOO_DEEP} for side in ("old", "new")}
        return {**change, **sides}
    return finite


def _change(case: ComparedCase, change: DiffChange) -> dict[str, Any]:
    return {
        "kind": str(change.kind),
        "severity": str(change.severity),
        "method": case.method,
        "about": case.subject,
        "pointer": change.pointer,
        "why": change.why,
        "old": place(case.old) | ({} if change.old is UNSET else {"value": change.old}) or None,
        "new": place(case.new) | ({} if change.new is UNSET else {"value": change.new}) or None,
    }


def _finite(value: Any) -> Any:
    """Return a value with null for non-finite numbers, as orjson writes them."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
