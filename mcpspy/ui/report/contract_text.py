"""The results of a contract as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

from mcpspy.analysis import rows
from mcpspy.analysis.contract import TermResult
from mcpspy.core.sanitize import sanitize

MOST = 10
"""Messages that are printed per term."""


def term_lines(results: Sequence[TermResult]) -> list[tuple[str, str]]:
    """Return the lines of a session's report, each with its tone."""
    lines = []
    for result in results:
        mark, tone = ("ok", rows.OK) if result.is_met else ("FAILED", rows.BAD)
        lines.append((f"  {mark:6}  {sanitize(result.term)}: {sanitize(result.found)}", tone))
        if result.is_met:
            continue
        shown = [f"{rows.moment(one.at):>9}  {sanitize(one.text)}" for one in result.evidence[:MOST]]
        if (more := len(result.evidence) - MOST) > 0:
            shown.append(f"{'':9}  and {more} more")
        lines += [(f"          {line}", rows.QUIET) for line in shown]
    return lines
