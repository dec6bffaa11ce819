"""A session diff as one HTML page for people without mcpspy: no script, and it loads nothing.

All text of peers is escaped, and the page forbids scripts by a content security policy.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from mcpspy.analysis.diff import ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report.load import page_head

MOST = 2_000
"""Changes that are listed."""

VALUE = 2_000
"""Characters of a value."""

_STYLE = """
th, td { text-align: left; vertical-align: top; } td:nth-child(-n + 2) { white-space: nowrap; }
code { white-space: pre-wrap; overflow-wrap: anywhere; } .old, .new { display: block; }
.old::before { content: "- "; } .new::before { content: "+ "; }
"""


def page(difference: SessionDiff, titles: tuple[str, str], *, fail_on: ChangeSeverity) -> str:
    """Return the page. `titles` are the sanitized names of the old session and the new one."""
    return "".join(_pieces(difference, titles, fail_on))


def _pieces(difference: SessionDiff, titles: tuple[str, str], fail_on: ChangeSeverity) -> Iterator[str]:
    old, new = map(escape, titles)
    verdict = escape(diff_report.verdict(difference, fail_on))
    yield from page_head(verdict, _STYLE)
    yield f"<p>{old} {diff_report.ARROW} {new}</p>\n"
    if changes := difference.changes:
        yield "<table>\n<tr><th>severity<th>request<th>change<th>values</tr>\n"
        for case, change in changes[:MOST]:
            yield _row(case, change)
        yield "</table>\n"
        if len(changes) > MOST:
            yield f"<p>{len(changes) - MOST:,} more changes</p>\n"
    yield "</body>\n</html>\n"


def _row(case: ComparedCase, change: DiffChange) -> str:
    where = "  ".join(
        part for part in (change.kind, diff_report.short(change.pointer), diff_report.reason(change)) if part
    )
    values = "".join(
        f'<code class="{side}">{escape(value)}</code>'
        for side, value in zip(("old", "new"), diff_report.values(change, VALUE), strict=True)
        if value is not None
    )
    bad = ' class="bad"' if change.severity is ChangeSeverity.BREAKING else ""
    return (
        f"<tr><td{bad}>{change.severity}<td>{escape(diff_report.about(case))}"
        f"<td><code>{escape(where)}</code><td>{values}</tr>\n"
    )
