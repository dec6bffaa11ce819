"""The statistics of recordings in their current state, their texts, and their tables.

A table has methods, and below them their tools, prompts and resources; that of several sessions has the totals, and
then one row per session. All text is sanitized here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, TypeVar

from mcpspy.analysis import rows
from mcpspy.analysis.stats import Durations, MessageGroup, StatsCollector, merged
from mcpspy.analysis.stats.group import BY_SUBJECT, GroupKind
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import OUTCOMES
from mcpspy.io.recording.scan import LineBlock
from mcpspy.ui.text.numbers import BarStyle, share, span
from mcpspy.ui.text.terminal import scanned
from mcpspy.ui.text.width import cells, cut, pad


class CountedSession(NamedTuple):
    title: str
    stats: StatsCollector
    is_live: bool
    paths: tuple[str, ...]


def count_session(path: Path, title: str, stats: StatsCollector, *, is_live: bool) -> CountedSession:
    """Return the statistics of a whole recording, with a progress bar while it is read."""
    with closing(scanned(path, is_live=is_live)) as blocks:
        return counted_session(title, blocks, stats, is_live=is_live)


def counted_session(
    title: str, blocks: Iterable[LineBlock], stats: StatsCollector, *, is_live: bool
) -> CountedSession:
    """Return the statistics of these lines. `is_live` is the state before the first block was read."""
    parts: list[Path] = []
    for block in blocks:
        if block.path not in parts:
            parts.append(block.path)
            stats.begin_part()
        stats.add_lines(block.lines)
    stats.finish(is_over=not is_live)
    return CountedSession(sanitize(title), stats, is_live, tuple(map(str, parts)))


def head(counted: CountedSession) -> list[str]:
    stats, header = counted.stats, counted.stats.header
    assert header is not None
    what = rows.server(header)
    clients = stats.handshakes.clients
    client = str(stats.client or "?")
    if clients.total() > 1:
        client = ", ".join(
            f"{name or '?'} x{count}" if count > 1 else name or "?" for name, count in clients.most_common(3)
        ) + ("…" if len(clients) > 3 else "")
    parts = [
        f"{client} → {stats.server or '?'}" if stats.client or stats.server else "",
        f"protocol {stats.revision_text}" if stats.revision_text else "",
        ending(counted),
    ]
    return [
        sanitize(" · ".join(filter(None, (header.name, header.id, header.started, what)))),
        sanitize(" · ".join(filter(None, parts))),
    ]


def ending(counted: CountedSession) -> str:
    if counted.is_live:
        return "live: numbers so far"
    return rows.ending(counted.stats.exit) or "died: no exit note"


def states(group: MessageGroup) -> str:
    """Return the number of requests by state: `13: 9 ok, 2 error, 1 no answer, 1 apart`."""
    parts = [f"{group.states[state]:,} {state}" for state in State if group.states[state]]
    if group.apart:
        parts.append(f"{group.apart:,} apart")
    return f"{group.count:,}: {', '.join(parts)}" if parts else f"{group.count:,}"


def method(group: MessageGroup) -> str:
    return sanitize(group.method) or f"(other {group.kind}s)"


def subject(group: MessageGroup) -> str:
    return "(others)" if group.subject is None else sanitize(group.subject) or '""'


Lines = Iterator[tuple[str, str | None]]

T = TypeVar("T")

NARROWEST, WIDEST = 14, 60

LEAST, MOST = 6, 40

SORTS: dict[str, Callable[[MessageGroup, Durations], float]] = {
    "time": lambda group, times: times.total,
    "count": lambda group, times: group.count,
    "errors": lambda group, times: group.errors,
    "p50": lambda group, times: times.p50,
    "p95": lambda group, times: times.p95,
    "p99": lambda group, times: times.p99,
    "max": lambda group, times: times.most,
    "sent": lambda group, times: group.sent,
    "back": lambda group, times: group.back,
}


class TableStyle(NamedTuple):
    width: int
    bars: BarStyle
    sort: str
    top: int


class TableRow(NamedTuple):
    label: str
    group: MessageGroup
    times: Durations
    depth: int = 0


class _Column(NamedTuple):
    head: str
    cell: Callable[[TableRow], str]
    always: bool = True


def _number(number: int) -> str:
    return f"{number:,}" if number else "·"


def _time(of: Callable[[Durations], float]) -> Callable[[TableRow], str]:
    return lambda row: span(of(row.times)) if row.times.answers else "·"


def _state(*states: State) -> Callable[[TableRow], str]:
    return lambda row: _number(sum(row.group.states[state] for state in states))


COLUMNS = (
    _Column("count", lambda row: _number(row.group.count)),
    _Column("err", lambda row: _number(row.group.errors)),
    _Column("unans", lambda row: _number(row.group.unanswered)),
    _Column("open", lambda row: _number(row.group.pending), always=False),
    _Column("input", _state(State.INPUT_REQUIRED), always=False),
    _Column("canc", _state(State.CANCELLED, State.LATE_OK), always=False),
    _Column(
        "drop", _state(*(state for state, judged in OUTCOMES.items() if judged.is_withheld)), always=False
    ),
    _Column("unkn", _state(State.UNKNOWN), always=False),
    _Column("p50", _time(lambda times: times.p50)),
    _Column("p95", _time(lambda times: times.p95)),
    _Column("p99", _time(lambda times: times.p99)),
    _Column("max", _time(lambda times: times.most)),
    _Column("sent", lambda row: rows.size(row.group.sent)),
    _Column("back", lambda row: rows.size(row.group.back)),
)


def methods(groups: Sequence[MessageGroup], sort: str) -> list[list[TableRow]]:
    by_method: dict[str, list[MessageGroup]] = {}
    for group in groups:
        by_method.setdefault(group.method, []).append(group)
    found = []
    for alike in by_method.values():
        whole = merged(alike, alike[0].method)
        about = [TableRow(subject(group), group, group.took.times(), depth=1) for group in alike]
        if alike[0].method not in BY_SUBJECT:
            about = []
        found.append([TableRow(method(whole), whole, whole.took.times()), *ordered(about, sort)])
    heads = ordered([rows[0] for rows in found], sort)
    return sorted(found, key=lambda rows: heads.index(rows[0]))


def ordered(found: Sequence[TableRow], sort: str) -> list[TableRow]:
    key = SORTS[sort]
    return sorted(found, key=lambda row: (-key(row.group, row.times), row.label))


def lines(title: str, found: Sequence[TableRow | str], look: TableStyle) -> Lines:
    """Yield the lines of a table with tones; bars show total response times. Texts are kept as lines."""
    width, bars = look.width, look.bars
    only = [row for row in found if isinstance(row, TableRow)]
    shown = [column for column in COLUMNS if column.always or any(column.cell(row) != "·" for row in only)]
    heads = [column.head for column in shown]
    table = [[column.cell(row) for column in shown] for row in only]
    widths = [max(map(cells, column)) for column in zip(heads, *table, strict=True)]
    numbers = sum(widths) + len(widths)
    labels = [title, *(_label(row) for row in only)]
    label_width = min(max(map(cells, labels)), max(width - numbers - LEAST - 1, NARROWEST), WIDEST)
    bar_width = min(width - label_width - numbers - 1, MOST)
    most = max((row.times.total for row in only), default=0.0)

    def line(label: str, numbers: Sequence[str], bar: str) -> str:
        name = pad(label, label_width)
        return " ".join([name, *map(str.rjust, numbers, widths), bar]).rstrip()

    yield line(title, heads, "time" if bar_width >= LEAST else ""), rows.QUIET
    numbered = iter(table)
    for row in found:
        if isinstance(row, str):
            yield row, None
            continue
        bar = bars.bar(row.times.total / most, bar_width) if most and bar_width >= LEAST else ""
        yield line(_label(row), next(numbered), bar), rows.OPEN if row.group.pending else None


def _label(row: TableRow) -> str:
    return "  " * row.depth + row.label


_WHOLE = "\0"
"""Key of the whole method instead of a subject. No tool can have this name."""

TITLE = 28

MANY = 50
"""Number of sessions above which their rows are merged into one."""

_HEADS = ("", "time", "messages", "requests", "err", "init", "p50", "p95", "max", "server", "state")


def comparison(sessions: Sequence[CountedSession], look: TableStyle) -> Lines:
    """Yield the tables; those of more than MANY sessions have the newest of them, and the totals of all."""
    yield from _wholes(sessions)
    for side in (CLIENT, SERVER):
        yield from _compared_requests(sessions, side, look)


def _wholes(sessions: Sequence[CountedSession]) -> Lines:
    found = [list(_HEADS)]
    if len(sessions) > MANY:
        whole = merged(counted.stats.groups.total(CLIENT) for counted in sessions)
        title = f"all {len(sessions):,}, newest {MANY}:"
        found.append([*_numbers(title, sessions, whole, "·"), "·", ""])
    for counted in sessions[-MANY:]:
        stats, first = counted.stats, counted.stats.handshakes.first
        took = span(first.took) if first is not None else "·"
        numbers = _numbers(cut(counted.title, TITLE), [counted], stats.groups.total(CLIENT), took)
        state = "live" if counted.is_live else ending(counted).partition(":")[0]
        found.append([*numbers, share(stats.flight.served, stats.last_at), state])
    widths = [max(map(cells, column)) for column in zip(*found, strict=True)]
    for number, row in enumerate(found):
        middle = map(str.rjust, row[1:-1], widths[1:-1])
        yield " ".join([pad(row[0], widths[0]), *middle, row[-1]]), None if number else rows.QUIET


def _numbers(title: str, sessions: Sequence[CountedSession], total: MessageGroup, took: str) -> list[str]:
    """Return the cells of sessions; `total` has their requests, `took` is the time of the handshake."""
    times = total.took.times()
    return [
        title,
        span(sum(counted.stats.last_at for counted in sessions)),
        f"{sum(sum(counted.stats.messages.values()) for counted in sessions):,}",
        f"{total.count:,}",
        f"{total.errors:,}" if total.errors else "·",
        took,
        *(span(time) if times.answers else "·" for time in (times.p50, times.p95, times.most)),
    ]


def _compared_requests(sessions: Sequence[CountedSession], side: str, look: TableStyle) -> Lines:
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
    found: list[TableRow | str] = []
    hidden = 0
    for about in _ordered_sessions(by_method.values(), lambda about: about[_WHOLE], look.sort):
        whole = about.pop(_WHOLE)
        found += [method(whole[0][1]), *_session_rows(whole, 1)]
        subjects = _ordered_sessions(about.values(), lambda same: same, look.sort)
        for same in subjects[: look.top]:
            found += ["  " + subject(same[0][1]), *_session_rows(same, 2)]
        hidden += len(subjects[look.top :])
    yield "", None
    yield from lines(f"{rows.arrow(side)} requests", found, look)
    if hidden:
        yield f"  and {hidden:,} more: --top {look.top + hidden}", rows.QUIET


def _merged(same: list[tuple[str, MessageGroup]]) -> tuple[str, MessageGroup]:
    first = same[0][1]
    whole = merged((group for _, group in same), first.method)
    whole.subject = first.subject
    return f"{len(same):,} sessions", whole


def _session_rows(same: Sequence[tuple[str, MessageGroup]], depth: int) -> list[TableRow]:
    row = TableRow
    return [row(cut(title, TITLE), group, group.took.times(), depth) for title, group in same]


def _ordered_sessions(
    found: Iterable[T], of: Callable[[T], Sequence[tuple[str, MessageGroup]]], sort: str
) -> list[T]:
    key = SORTS[sort]
    return sorted(found, key=lambda each: -sum(key(group, group.took.times()) for _, group in of(each)))
