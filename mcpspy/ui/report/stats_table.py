"""The statistics table: methods, and below them their tools, prompts and resources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from mcpspy.analysis import rows
from mcpspy.analysis.stats import Durations, MessageGroup, merged
from mcpspy.analysis.stats.group import BY_SUBJECT
from mcpspy.core.session.exchange import State
from mcpspy.core.session.outcome import OUTCOMES
from mcpspy.ui.report.stats_format import method, subject
from mcpspy.ui.text.numbers import BarStyle, span
from mcpspy.ui.text.width import cells, cut

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


def lines(title: str, found: Sequence[TableRow | str], look: TableStyle) -> Iterator[tuple[str, str | None]]:
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
        label = cut(label, label_width)
        padded = label + " " * (label_width - cells(label))
        return " ".join([padded, *map(str.rjust, numbers, widths), bar]).rstrip()

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
