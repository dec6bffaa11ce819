"""Statistics of several sessions as a table: totals, then methods and tools with one row per session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from mcpspy.analysis import rows
from mcpspy.analysis.stats import MessageGroup, merged
from mcpspy.analysis.stats.group import BY_SUBJECT, GroupKind
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.ui.report import stats_table
from mcpspy.ui.report.stats_format import CountedSession, arrow, ending, method, subject
from mcpspy.ui.text.numbers import share, span
from mcpspy.ui.text.width import cells, cut

Lines = Iterator[tuple[str, str | None]]

T = TypeVar("T")

_WHOLE = "\0"
"""Key of the whole method instead of a subject. No tool can have this name."""

TITLE = 28

MANY = 50
"""Number of sessions above which their rows are merged into one."""

_HEADS = ("", "time", "messages", "requests", "err", "init", "p50", "p95", "max", "server", "state")


def comparison(sessions: Sequence[CountedSession], look: stats_table.TableStyle) -> Lines:
    """Yield the tables; those of more than MANY sessions have the newest of them, and the totals of all."""
    yield from _wholes(sessions)
    for side in (CLIENT, SERVER):
        yield from _requests(sessions, side, look)


def _wholes(sessions: Sequence[CountedSession]) -> Lines:
    found = [list(_HEADS)]
    for counted in sessions[-MANY:]:
        stats = counted.stats
        total = stats.groups.total(CLIENT)
        times, first = total.took.times(), stats.handshakes.first
        found.append(
            [
                cut(counted.title, TITLE),
                span(stats.last_at),
                f"{sum(stats.messages.values()):,}",
                f"{total.count:,}",
                f"{total.errors:,}" if total.errors else "·",
                span(first.took) if first is not None else "·",
                *(span(time) if times.answers else "·" for time in (times.p50, times.p95, times.most)),
                share(stats.flight.served, stats.last_at),
                "live" if counted.is_live else ending(counted).partition(":")[0],
            ]
        )
    if len(sessions) > MANY:
        found.insert(1, _total(sessions))
    widths = [max(map(cells, column)) for column in zip(*found, strict=True)]
    for number, row in enumerate(found):
        first_cell = row[0] + " " * (widths[0] - cells(row[0]))
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        yield " ".join([first_cell, *middle, row[-1]]), None if number else rows.QUIET


def _total(sessions: Sequence[CountedSession]) -> list[str]:
    whole = merged(counted.stats.groups.total(CLIENT) for counted in sessions)
    times = whole.took.times()
    return [
        f"all {len(sessions):,}, newest {MANY}:",
        span(sum(counted.stats.last_at for counted in sessions)),
        f"{sum(sum(counted.stats.messages.values()) for counted in sessions):,}",
        f"{whole.count:,}",
        f"{whole.errors:,}" if whole.errors else "·",
        "·",
        *(span(time) if times.answers else "·" for time in (times.p50, times.p95, times.most)),
        "·",
        "",
    ]


def _requests(sessions: Sequence[CountedSession], side: str, look: stats_table.TableStyle) -> Lines:
    by_method: dict[str, dict[str | None, list[tuple[str, MessageGroup]]]] = {}
    for counted in sessions:
        alike: dict[str, list[MessageGroup]] = {}
        for group in counted.stats.groups.of(side, GroupKind.REQUEST):
            if group.count:
                alike.setdefault(group.method, []).append(group)
        for name, groups in alike.items():
            about = by_method.setdefault(name, {_WHOLE: []})
            about[_WHOLE].append((counted.title, merged(groups, name)))
            for group in groups if name in BY_SUBJECT else ():
                about.setdefault(group.subject, []).append((counted.title, group))
    if not by_method:
        return
    if len(sessions) > MANY:
        for each in by_method.values():
            for key, same in each.items():
                each[key] = [_merged(same)]
    found: list[stats_table.TableRow | str] = []
    hidden = 0
    for about in _ordered(by_method.values(), lambda about: about[_WHOLE], look.sort):
        whole = about.pop(_WHOLE)
        found += [method(whole[0][1]), *_rows(whole, 1)]
        subjects = _ordered(about.values(), lambda same: same, look.sort)
        for same in subjects[: look.top]:
            found += ["  " + subject(same[0][1]), *_rows(same, 2)]
        hidden += len(subjects[look.top :])
    yield "", None
    yield from stats_table.lines(f"{arrow(side)} requests", found, look)
    if hidden:
        yield f"  and {hidden:,} more: --top {look.top + hidden}", rows.QUIET


def _merged(same: list[tuple[str, MessageGroup]]) -> tuple[str, MessageGroup]:
    first = same[0][1]
    whole = merged((group for _, group in same), first.method)
    whole.subject = first.subject
    return f"{len(same):,} sessions", whole


def _rows(same: Sequence[tuple[str, MessageGroup]], depth: int) -> list[stats_table.TableRow]:
    row = stats_table.TableRow
    return [row(cut(title, TITLE), group, group.took.times(), depth) for title, group in same]


def _ordered(found: Iterable[T], of: Callable[[T], Sequence[tuple[str, MessageGroup]]], sort: str) -> list[T]:
    key = stats_table.SORTS[sort]
    return sorted(found, key=lambda each: -sum(key(group, group.took.times()) for _, group in of(each)))
