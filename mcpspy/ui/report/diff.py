"""A session diff for a terminal, as JSON with complete values, and as Markdown for a pull request.

The text of a change is sanitized here for all reports. In Markdown, text of peers is always in code spans or fences
that it cannot end, so it is never markup and mentions no one; the report is cut to the maximum length of a comment.
"""

from __future__ import annotations

import difflib
import json
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import orjson
from msgspec import UNSET

from mcpspy.analysis import rows
from mcpspy.analysis.diff import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    SessionDiff,
)
from mcpspy.analysis.diff.model import IgnoreSuggestion
from mcpspy.analysis.diff.upgrade import INTERFACE, grouped, listed_name, upgrade_of
from mcpspy.analysis.rows import duration
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize

_REASONS = {
    ChangeKind.ADDED: "only in the new session",
    ChangeKind.REMOVED: "only in the old session",
}

TOO_DEEP = "(nested too deep)"
"""Replaces a value that cannot be serialized."""

ARROW = "→"

LONG = 300
"""Maximum characters of a name or a pointer: peers choose how long they are."""

MOST_PATTERNS = 20


def ways_to_ignore(ways: IgnoreSuggestion | None) -> list[str]:
    """Return the options of `mcpspy diff` that would ignore the changes, one per line."""
    if ways is None:
        return []
    lines = [f"--volatile  # {ways.volatile} of {ways.changes}"] if ways.volatile else []
    lines += [f"--ignore-path {shlex.quote(pattern)}" for pattern in ways.patterns[:MOST_PATTERNS]]
    more = len(ways.patterns) - MOST_PATTERNS
    return [*lines, f"… {more} more"] if more > 0 else lines


def short(text: str) -> str:
    text = sanitize(text)
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def about(case: ComparedCase) -> str:
    return short(case.about)


def places(case: ComparedCase) -> str:
    """Return the positions: `exchange 3 → 4, line 12 → 14`; one number if both are equal."""
    parts = []
    exchanges = [None if place is None else place.exchange for place in (case.old, case.new)]
    if exchanges != [None, None]:
        parts.append("exchange " + _both(exchanges))
    lines = [None if place is None else place.line for place in (case.old, case.new)]
    if any(lines):
        parts.append("line " + _both(lines))
    return ", ".join(parts)


def _both(numbers: list[int | None]) -> str:
    old, new = ("-" if number is None else str(number) for number in numbers)
    return new if old == new else f"{old} {ARROW} {new}"


def place(where: ChangePosition | None) -> dict[str, int]:
    if where is None:
        return {}
    return {"line": where.line, **({} if where.exchange is None else {"exchange": where.exchange})}


def reason(change: DiffChange) -> str:
    """Return the reason of a change, in addition to kind, pointer and values; may be empty."""
    return short(change.why) or _REASONS.get(change.kind, "")


def values(change: DiffChange, width: int) -> tuple[str | None, str | None]:
    """Return both values in at most `width` characters, without a common prefix if needed."""
    if change.kind is ChangeKind.LATENCY:
        return duration(change.old), duration(change.new)
    old, new = (None if value is UNSET else one_line(value) for value in (change.old, change.new))
    if old is None or new is None:
        return _cut(old, 0, width), _cut(new, 0, width)
    differs = next((n for n, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), 0)
    longest = max(len(old), len(new))
    start = 0 if longest <= width or differs < width // 2 else differs - width // 3
    return _cut(old, start, width), _cut(new, start, width)


def one_line(value: Any) -> str:
    try:
        return sanitize(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    except (RecursionError, ValueError):
        return TOO_DEEP


def texts(change: DiffChange) -> tuple[list[str], list[str]] | None:
    """Return the lines of two texts if one of them has several lines; otherwise None."""
    old, new = change.old, change.new
    if not isinstance(old, str) or not isinstance(new, str) or "\n" not in old + new:
        return None
    return [sanitize(line) for line in old.split("\n")], [sanitize(line) for line in new.split("\n")]


def verdict(difference: SessionDiff, fail_on: ChangeSeverity) -> str:
    """Return the summary line: `changed: 1 breaking, 2 notes; 43 of 45 unchanged`."""
    counts = difference.counts
    notes = counts[ChangeSeverity.NOTE]
    found = [f"{counts[severity]} {severity}" for severity in ChangeSeverity if counts[severity]]
    if notes > 1:
        found[-1] += "s"
    compared = len(difference.cases)
    unchanged = f"{compared - len(difference.changed)} of {compared} unchanged"
    word = "same" if difference.is_same(fail_on) else "changed"
    return f"{word}: {', '.join(found)}; {unchanged}" if found else f"{word}: {unchanged}"


def _cut(text: str | None, start: int, width: int) -> str | None:
    if text is None or (start == 0 and len(text) <= width):
        return text
    before = "…" if start else ""
    room = max(width - 2, 1)
    rest = len(text) - start - room
    return f"{before}{text[start : start + room]}" + (f"… {rest} more" if rest > 0 else "")


OLD, NEW, SAME = "-", "+", " "

MOST_LINES = 40

WEIGHED = 4_000
"""Maximum lines of two texts for a line-by-line comparison."""


def change_heading(change: DiffChange, kind_width: int = 0, *, beside: ChangeSeverity | None = None) -> str:
    """Return kind, pointer and reason of a change; and the severity, if it is not `beside`."""
    weight = "" if beside in (None, change.severity) else f"({change.severity})"
    parts = (f"{change.kind:{kind_width}}", short(change.pointer), reason(change), weight)
    return "  ".join(part for part in parts if part)


def body(change: DiffChange, width: int) -> Iterator[tuple[str, str]]:
    if (pair := texts(change)) is not None and len(pair[0]) + len(pair[1]) <= WEIGHED:
        yield from _line_diff(*pair, width)
        return
    old, new = values(change, width)
    if old is not None:
        yield OLD, old
    if new is not None:
        yield NEW, new


def _line_diff(old: list[str], new: list[str], width: int) -> Iterator[tuple[str, str]]:
    lines = islice(difflib.unified_diff(old, new, n=1, lineterm=""), 2, None)  # Without the two header lines.
    marked = [(line[:1], line[1:]) for line in lines if not line.startswith("@@")]
    for mark, line in marked[:MOST_LINES]:
        yield mark, line if len(line) <= width else line[: width - 1] + "…"
    if len(marked) > MOST_LINES:
        yield SAME, f"… {len(marked) - MOST_LINES} more lines"


TONES = {
    ChangeSeverity.BREAKING: rows.BAD,
    ChangeSeverity.DIFFERENT: rows.OPEN,
    ChangeSeverity.NOTE: rows.QUIET,
}
MARKS = {OLD: rows.BAD, NEW: rows.OK, SAME: rows.QUIET}

KINDS = max(map(len, ChangeKind))

TERMINAL_WIDTH = 120
"""Characters of a value if the output has no width."""


def terminal(
    difference: SessionDiff,
    *,
    width: int = 0,
    fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT,
    show: ChangeSeverity = ChangeSeverity.NOTE,
) -> Iterator[tuple[str, str | None]]:
    """Yield the lines of the report with their tones, what breaks first; `width` 0 for lines of any length.

    Changes below the severity `show` are only counted.
    """
    hidden = 0
    for case in gravest_first(difference):
        severity = case.severity
        assert severity is not None
        changes = sorted(case.changes, key=lambda change: change.severity.rank)
        shown = [change for change in changes if change.severity.rank <= show.rank]
        hidden += len(changes) - len(shown)
        if not shown:
            continue
        where = places(case)
        yield f"{severity:10} {about(case)}" + (f"  · {where}" if where else ""), TONES[severity]
        for group in grouped(shown):
            yield from _change_lines(group, severity, width)
    if hidden:
        yield f"… {counted(hidden, 'lesser change')} not shown: --show note", rows.QUIET
    yield verdict(difference, fail_on), None if difference.is_same(fail_on) else rows.BAD
    if (meaning := upgrade(difference)) is not None:
        yield meaning


def upgrade(difference: SessionDiff) -> tuple[str, str | None] | None:
    """Return what a changed interface means for clients, with its tone; None if it is the same."""
    if (found := upgrade_of(difference)) is None:
        return None
    count, tone = len(found.changes), TONES[found.severity]
    if found.severity is ChangeSeverity.NOTE:
        return "upgrade: breaks no client: only additions and descriptions", rows.OK
    if found.severity is ChangeSeverity.DIFFERENT:
        return f"upgrade: breaks no client; {counted(count, 'change')} may matter", tone
    case, first = found.changes[0]
    name = listed_name(first) or (case.about if first.kind not in INTERFACE else "")
    why = reason(first) or short(first.pointer)
    more = f", and {counted(count - 1, 'more breaking change')}" if count > 1 else ""
    return f"upgrade: breaks clients: {short(name) + ': ' if name else ''}{why}{more}", tone


def _change_lines(
    group: list[DiffChange], severity: ChangeSeverity, width: int
) -> Iterator[tuple[str, str | None]]:
    change = group[0]
    head = f"  {change_heading(change, KINDS, beside=severity)}"
    room = (width or TERMINAL_WIDTH) - 6
    old, new = values(change, room)
    if texts(change) is None and old is not None and new is not None:
        both = f"{head}  {old} {ARROW} {new}"
        if len(both) <= (width or TERMINAL_WIDTH):
            yield both, None
            yield from _others(group, room)
            return
    yield head, None
    for mark, line in body(change, room):
        yield f"    {mark} {line}", MARKS[mark]
    yield from _others(group, room)


def _others(group: list[DiffChange], room: int) -> Iterator[tuple[str, str | None]]:
    """Yield a line with the others that have the same change."""
    if len(group) > 1:
        names = [name for name in dict.fromkeys(map(listed_name, group)) if name != listed_name(group[0])]
        line = f"also in {len(names)}: {short(', '.join(names))}"
        yield f"      {line if len(line) <= room else line[: room - 1] + '…'}", rows.QUIET


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
    changes = [_change_members(case, change) for case, change in difference.changes]
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


def _change_members(case: ComparedCase, change: DiffChange) -> dict[str, Any]:
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


MARKDOWN_WIDTH = 200

MAX_REPORT = 60_000
"""Maximum characters of a report: a comment on GitHub has 65,536."""

SHOWN_CHANGES = 20


def markdown(
    difference: SessionDiff,
    titles: tuple[str, str],
    *,
    fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT,
    ways: IgnoreSuggestion | None = None,
) -> str:
    """Return the report; `ways` are the options that would ignore the changes, None if the sessions are the same."""
    parts = [
        f"### mcpspy diff: {verdict(difference, fail_on)}",
        f"{span(sanitize(titles[0]))} {ARROW} {span(sanitize(titles[1]))}",
    ]
    if (meaning := upgrade(difference)) is not None:
        parts.append(span(meaning[0]))
    if difference.changed:
        parts.append(_markdown_table(difference))
    options = ways_to_ignore(ways)
    last = [f"To ignore these changes:\n\n{fence(options, 'sh')}"] if options else []
    left, room = len(difference.changed), MAX_REPORT - sum(map(len, [*parts, *last]))
    for case in gravest_first(difference):
        block = _markdown_case(case)
        if len(block) > room:
            parts.append(f"… {left} more; run `mcpspy diff` to see all.")
            break
        parts.append(block)
        left, room = left - 1, room - len(block) - 2
    return "\n\n".join(parts + last) + "\n"


def span(text: str) -> str:
    from mcpspy.analysis.export.markdown import code_span  # Only reports in Markdown need it.

    return code_span(text) if text else "` `"


def fence(block: Iterable[str], language: str = "diff") -> str:
    """Return a fenced block that the lines cannot end."""
    from mcpspy.analysis.export.markdown import longest_run

    text = "\n".join(block)
    ticks = "`" * max(3, 1 + longest_run(text))
    return f"{ticks}{language}\n{text}\n{ticks}"


def _markdown_table(difference: SessionDiff) -> str:
    counts = Counter((change.kind, change.severity) for _, change in difference.changes)
    kinds = dict.fromkeys(kind for kind, _ in counts)
    rows = [[str(kind), *(str(counts[kind, each] or "") for each in ChangeSeverity)] for kind in kinds]
    heads = (["", *map(str, ChangeSeverity)], ["---", *["--:"] * len(ChangeSeverity)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (*heads, *rows))


def _markdown_case(case: ComparedCase) -> str:
    where = places(case)
    title = f"**{case.severity}** {span(about(case))}" + (f" ({where})" if where else "")
    block: list[str] = []
    groups = list(grouped(sorted(case.changes, key=lambda change: change.severity.rank)))
    for group in groups[:SHOWN_CHANGES]:
        block.append(f"@@ {change_heading(group[0], beside=case.severity)} @@")
        block += (f"{mark} {line}" for mark, line in body(group[0], MARKDOWN_WIDTH))
        block += (f"  {line.lstrip()}" for line, _ in _others(group, MARKDOWN_WIDTH))
    if len(groups) > SHOWN_CHANGES:
        block.append(f"  … {len(groups) - SHOWN_CHANGES} more changes")
    return f"{title}\n\n{fence(block)}"


def gravest_first(difference: SessionDiff) -> list[ComparedCase]:
    return sorted(difference.changed, key=lambda case: (case.severity or ChangeSeverity.NOTE).rank)
