"""A session diff as GitHub Markdown for a pull request.

Text of peers is always in code spans or fences that it cannot end, so it is never markup and mentions no one.
The report is cut to the maximum length of a comment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mcpspy.analysis.diff import ChangeSeverity, ComparedCase, SessionDiff
from mcpspy.analysis.diff.options import IgnoreSuggestion
from mcpspy.analysis.export.markdown import code_span, longest_run
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report import diff_text

WIDE = 200

MOST = 60_000
"""Maximum characters of a report: a comment on GitHub has 65,536."""

SHOWN = 20


def markdown(
    difference: SessionDiff,
    titles: tuple[str, str],
    *,
    fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT,
    ways: IgnoreSuggestion | None = None,
) -> str:
    """Return the report; `ways` are the options that would ignore the changes, None if the sessions are the same."""
    verdict = diff_text.verdict(difference, fail_on)
    parts = [
        f"### mcpspy diff: {verdict}",
        f"{span(sanitize(titles[0]))} {diff_text.ARROW} {span(sanitize(titles[1]))}",
    ]
    if difference.changed:
        parts.append(_table(difference))
    options = diff_text.ways_to_ignore(ways)
    last = [f"To ignore these changes:\n\n{fence(options, 'sh')}"] if options else []
    left, room = len(difference.changed), MOST - sum(map(len, [*parts, *last]))
    for case in sorted(difference.changed, key=_rank):
        block = _case(case)
        if len(block) > room:
            parts.append(f"… {left} more; run `mcpspy diff` to see all.")
            break
        parts.append(block)
        left, room = left - 1, room - len(block) - 2
    return "\n\n".join(parts + last) + "\n"


def span(text: str) -> str:
    return code_span(text) if text else "` `"


def fence(block: Iterable[str], language: str = "diff") -> str:
    """Return a fenced block that the lines cannot end."""
    text = "\n".join(block)
    ticks = "`" * max(3, 1 + longest_run(text))
    return f"{ticks}{language}\n{text}\n{ticks}"


def _table(difference: SessionDiff) -> str:
    counts = Counter((change.kind, change.severity) for _, change in difference.changes)
    kinds = dict.fromkeys(kind for kind, _ in counts)
    rows = [[str(kind), *(str(counts[kind, each] or "") for each in ChangeSeverity)] for kind in kinds]
    heads = (["", *map(str, ChangeSeverity)], ["---", *["--:"] * len(ChangeSeverity)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*heads, *rows))


def _case(case: ComparedCase) -> str:
    where = diff_text.places(case)
    title = f"**{case.severity}** {span(diff_text.about(case))}" + (f" ({where})" if where else "")
    block: list[str] = []
    for change in case.changes[:SHOWN]:
        block.append(f"@@ {diff_text.change_heading(change, beside=case.severity)} @@")
        block += (f"{mark} {line}" for mark, line in diff_text.body(change, WIDE))
    if len(case.changes) > SHOWN:
        block.append(f"  … {len(case.changes) - SHOWN} more changes")
    return f"{title}\n\n{fence(block)}"


def _rank(case: ComparedCase) -> int:
    assert case.severity is not None
    return case.severity.rank
