"""The rows of a session that the list shows, and their order.

Rows are filtered in portions until the caller's time is up. Pure: row numbers
in, row numbers out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct
from msgspec.structs import replace

from mcpspy.core.query.item import NEAR
from mcpspy.core.query.parser import Query, parse
from mcpspy.core.session.columns import FAILURE, KIND, NOTE, NOTIFICATION, REQUEST, RESULT
from mcpspy.core.session.rule_notes import RULE
from mcpspy.ui.model.filter_items import RowItem
from mcpspy.ui.model.notes import OAUTH, FlowRows
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.text.numbers import Cycle

PORTION = 512
"""Rows filtered between two checks of the clock; a tenth of that if message text has to be read."""

HTTP = ("http", "http-end", "sse")


MOST_SORTED = 200_000
"""Maximum rows that can be sorted without delaying keys."""

PROBLEMS = "is:problem"

STDERR = "stderr line"

KINDS_OF_PROBLEMS = [
    (name, parse(text).matches)
    for name, text in {
        "error": "is:error or note:lost or note:error",
        "unanswered": "is:unanswered",
        "crash": "note:exit",
        "protocol issue": "is:issue",
        "slow": "is:slow",
        STDERR: "note:stderr",
    }.items()
]
"""Name → test of a problem. Each row counts for the first one that matches."""


class SortOrder(Cycle):
    TIME = "time"
    LATENCY = "latency"
    SIZE = "size"


class ViewOptions(Struct, frozen=True):
    """The user's selection of rows, and their order."""

    exchanges: bool = True
    """One row per exchange instead of one per message."""
    notifications: bool = True
    events: bool = True
    """Stderr, signals and the exit."""
    http: bool = False
    query: Query = parse("")
    problems: bool = False
    """True if the query has `is:problem` in addition to the user's filter."""
    only_marked: bool = False
    order: SortOrder = SortOrder.TIME
    """Latency and size sort the largest first."""
    reverse: bool = False

    @property
    def is_sorted(self) -> bool:
        return self.order is not SortOrder.TIME or self.reverse

    @property
    def is_downward(self) -> bool:
        """True if the largest value, or the latest row, is first."""
        return (self.order is not SortOrder.TIME) != self.reverse

    @property
    def is_all(self) -> bool:
        return (
            not (self.exchanges or self.query.text or self.only_marked or self.is_sorted)
            and self.notifications
            and self.events
            and self.http
        )


ROW_KINDS = {
    "notifications": "notifications",
    "events": "stderr and events",
    "http": "HTTP exchanges",
}
"""Fields of ViewOptions that show kinds of rows, and their labels."""


def changed_options(options: ViewOptions, what: str, count: int) -> tuple[ViewOptions, str]:
    """Return options with one change, and the message to show; `count` is the number of rows."""
    if what in ROW_KINDS:
        on = not getattr(options, what)
        return replace(options, **{what: on}), f"{ROW_KINDS[what]} {'shown' if on else 'hidden'}"
    if what == "exchanges":
        options = replace(options, exchanges=not options.exchanges)
        return options, "one row per exchange" if options.exchanges else "one row per message, in wire order"
    if what == "order":
        wanted = replace(options, order=options.order.following, reverse=False)
    elif what in list(SortOrder):  # In reverse if it already is the order.
        is_again = options.order == what and not options.reverse
        wanted = replace(options, order=SortOrder(what), reverse=is_again)
    else:
        wanted = replace(options, reverse=not options.reverse)
    if wanted.is_sorted and count > MOST_SORTED:
        return options, f"too many rows to sort (more than {MOST_SORTED:,}); filter first"
    return wanted, ordered(wanted)


def ordered(options: ViewOptions) -> str:
    if not options.is_sorted:
        return "sorted by time"
    way = "latest" if options.order is SortOrder.TIME else "smallest" if options.reverse else "largest"
    return f"sorted by {options.order}, {way} first"


class FilteredView:
    def __init__(self, model: SessionModel, options: ViewOptions = ViewOptions()) -> None:  # noqa: B008 - it is frozen.
        self._model = model
        self.options = options
        self.marked: Collection[int] = ()
        self.held: AbstractSet[int] = frozenset()
        """Rows with held messages: always shown."""
        self.generation = 0
        self.problems: Counter[str] = Counter()
        """Name of a kind of problem → number of rows, if only problems are shown."""
        self._was_over = False
        self._unanswered = 0
        """Number of unanswered requests when they were last filtered."""
        self._processed = self._length = self._fresh = self._changes = 0
        self._begin()

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows(self) -> Sequence[int]:
        """The rows shown; none if the file was just truncated or replaced: the old ones may not exist any more."""
        if self._model_generation != self._model.generation:
            return ()
        return range(self._processed) if self._is_all else self._sorted if self._is_sorted else self._rows

    @property
    def unfiltered(self) -> int:
        """The number of rows that would be shown without the query, of those filtered so far."""
        return len(self) if not self.options.query.text else self._seen - len(self._left_out)

    @property
    def processed(self) -> int:
        return self._processed

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes whenever a position shows another row."""
        return self.generation, self._changes

    @property
    def is_behind(self) -> bool:
        return self._processed < len(self._model) or self._model_generation != self._model.generation

    def want(self, options: ViewOptions) -> None:
        if options != self.options:
            self.again(options)

    def again(self, options: ViewOptions | None = None) -> None:
        self.options = options or self.options
        self._begin()

    @property
    def is_stale(self) -> bool:
        """True if rows were added or changed since the last sort."""
        return self.options.is_sorted and self._sorted_at != (self._length, self._changes)

    def sort(self) -> None:
        if self.options.is_sorted and len(self._rows) > MOST_SORTED:  # A filter was removed.
            self.options = replace(self.options, order=SortOrder.TIME, reverse=False)
            self._is_sorted, self._changes = False, self._changes + 1
        elif self.options.is_sorted:
            self._sorted = array("I", sorted(self._rows, key=self._key(), reverse=self.options.is_downward))
            self._changes += 1
            self._sorted_at = self._length, self._changes

    def place_of(self, row: int) -> int:
        if self.options.is_sorted:
            return self._sorted.index(row) if row in self._sorted else 0
        return max(min(bisect_left(self.rows, row), len(self) - 1), 0)

    def contains(self, row: int) -> bool:
        if self.options.is_sorted:
            return row in self._sorted
        place = bisect_left(self.rows, row)
        return place < len(self) and self.rows[place] == row

    def advance(self, may_continue: Callable[[], bool]) -> bool:
        """Filter new rows while `may_continue`; return whether the shown rows have changed."""
        if self._model_generation != self._model.generation:
            self._begin()
            return True
        was_behind = self.is_behind
        if self._length != len(self._model):
            self._length, self._fresh = len(self._model), self._processed
        before, changes = len(self), self._changes
        portion = PORTION // 10 if self.options.query.reads_text else PORTION
        while self._processed < len(self._model):
            self._process_rows(min(self._processed + portion, len(self._model)))
            if not may_continue():
                break
        unanswered = self._model.index.unanswered
        if (
            self._model.is_over
            and not self.is_behind
            and not (self._was_over and self._unanswered == unanswered)
        ):
            # Only at the end do requests without a response become unanswered.
            self._was_over, self._unanswered = True, unanswered
            if (
                self.options.query.is_relative_to_end and self.options.query.end != self._model.index.last_at
            ):  # The end is known only now.
                self._begin()
                self._was_over = True
                return True
            for row in self._model.index.wrong if self.options.query.text else ():
                self._reevaluate(row)
        if was_behind and not self.is_behind and not self._sorted:
            self.sort()
        return len(self) != before or self._changes != changes

    def reconsider(self, rows: Iterable[int]) -> None:
        """Filter changed rows again, and the requests of changed responses."""
        index = self._model.index
        for row in () if self.options.is_all else rows:
            for one in {row, index.pair(row) if index.is_answer(row) else None}:
                if one is not None and one < self._processed:
                    self._reevaluate(one)

    def _begin(self) -> None:
        self.generation += 1
        self.options.query.end = self._model.index.last_at
        self._model_generation = self._model.generation
        self._is_all, self._is_sorted = self.options.is_all, self.options.is_sorted
        self._rows: array[int] = array("I")
        self._sorted = array("I")
        self._sorted_at = 0, 0
        self._processed = 0
        self._length = 0
        self._fresh = 0
        self._changes = 0
        self._seen = 0
        """Number of rows filtered, without the responses that belong to their requests."""
        self._left_out = array("I")
        """Rows that are hidden whatever the query is."""
        self._kinds: dict[int, str] = {}
        """Row → its kind of problem."""
        self._flows = FlowRows(self._model)
        self._folded = 0
        """Number of GETs that were found to belong to an earlier one."""
        self.problems.clear()
        self._was_over, self._unanswered = False, 0
        self._item = RowItem(self._model, exchanges=self.options.exchanges)

    def _process_rows(self, end: int) -> None:
        index = self._model.index
        begin, self._processed = self._processed, end
        if self.options.is_all:
            return
        options, what, held, item = self.options, index.what, self.held, self._item
        add, matches, filters = self._rows.append, options.query.matches, bool(options.query.text)
        fresh = self._fresh if filters else 0
        # Of a million rows, half are requests and half are responses: avoid a call for each.
        leaves_out = (
            options.exchanges and not fresh
        )  # Otherwise a response may change the row of its request.
        is_any_folded = options.exchanges and not leaves_out and bool(index.folded)
        request_kind = None if options.only_marked or is_any_folded else REQUEST
        passed = [*(self._flows.update(end) if options.exchanges else ()), *self._folded_streams(begin)]
        rows = index.leading(begin, end) if leaves_out else range(begin, end)
        self._seen += len(rows)
        for row in rows:
            if what[row] & KIND == request_kind:
                item.row = row
                if not filters or matches(item) or row in held:
                    add(row)
            elif not self._is_candidate(row):
                self._left_out.append(row)
            elif not filters or self._matches(row):
                add(row)
            # A new row may change the text of an earlier one.
            if fresh and (request := self._request_of(row)) is not None and request < fresh:
                self._reevaluate(request)
        for row in passed:  # A later step of its flow, or an earlier stream, has its place.
            self._reevaluate(row)
        for row in self._rows[bisect_left(self._rows, begin) :] if options.problems else ():
            self._count_problem(row)
        if begin == fresh:  # A failure also changes the lines of stderr before it.
            for row in range(max(fresh - NEAR, 0), fresh):
                if what[row] & KIND == NOTE:
                    self._reevaluate(row)

    def _folded_streams(self, begin: int) -> list[int]:
        """Return the rows before `begin` of GETs that were found to belong to an earlier one."""
        index, done = self._model.index, self._folded
        folded = index.http_exchanges.folded
        self._folded = len(folded)
        return [head for number in folded[done:] if (head := index.heads.get(number, begin)) < begin]

    def _request_of(self, row: int) -> int | None:
        """Return the request whose row a row may change: for a poll of a task, the call that created the task."""
        request = self._model.index.request(row)
        return None if request is None else self._model.index.polls.get(request, request)

    def _reevaluate(self, row: int) -> None:
        is_candidate = self._is_candidate(row)
        if not (self.options.exchanges and self._model.index.is_answer(row)):
            _put(self._left_out, row, on=not is_candidate)
        is_shown = is_candidate and self._matches(row)
        self._changes += _put(self._rows, row, on=is_shown)
        if self.options.problems:
            if (before := self._kinds.pop(row, None)) is not None:
                self.problems[before] -= 1
            if is_shown:
                self._count_problem(row)

    def _count_problem(self, row: int) -> None:
        self._item.row = row
        kind = next((name for name, matches in KINDS_OF_PROBLEMS if matches(self._item)), None)
        if kind is not None:  # A held message is shown, too.
            self._kinds[row] = kind
            self.problems[kind] += 1

    def _matches(self, row: int) -> bool:
        self._item.row = row
        return row in self.held or self.options.query.matches(self._item)

    def _is_candidate(self, row: int) -> bool:
        """Return whether a row is shown if it matches the query."""
        options, index = self.options, self._model.index
        if row in self.held:
            return True
        if (options.only_marked and row not in self.marked) or (options.exchanges and row in index.folded):
            return False
        kind = index.what[row] & KIND
        if kind in (RESULT, FAILURE):
            if options.exchanges and index.is_answer(row):
                return False
        elif kind == NOTE:
            note = index.texts[index.method[row]]
            if note in HTTP:
                if not (options.http or (options.events and index.is_get_stream(row))):
                    return False
            elif note == RULE:
                if options.exchanges or not options.events:  # Shown in the row of its message.
                    return False
            elif (not options.events and not options.problems and note not in ("lost", "error")) or (
                note == OAUTH and options.exchanges and not self._flows.is_last(row)
            ):
                return False
        elif kind == NOTIFICATION and (
            not options.notifications or (options.exchanges and self._is_shown_by_request(row))
        ):
            return False
        return True

    def _key(self) -> Callable[[int], float]:
        index = self._model.index
        if self.options.order is SortOrder.LATENCY:
            return lambda row: index.latency(row) or 0.0
        if self.options.order is SortOrder.SIZE:
            return lambda row: (
                index.size[row] + (index.size[other] if (other := index.answer(row)) is not None else 0)
            )
        return float

    def _is_shown_by_request(self, row: int) -> bool:
        """Return whether the row of its request shows a notification: progress or cancellation without issues."""
        index = self._model.index
        method = index.texts[index.method[row]]
        return (
            method in ("notifications/progress", "notifications/cancelled")
            and index.pair(row) is not None
            and row not in index.flaws
            and not self._model.findings.of(row)
        )


def _put(rows: array[int], row: int, *, on: bool) -> bool:
    """Add or remove a row of sorted rows; return whether they changed."""
    place = bisect_left(rows, row)
    is_there = place < len(rows) and rows[place] == row
    if on and not is_there:
        rows.insert(place, row)
    elif is_there and not on:
        del rows[place]
    return on != is_there
