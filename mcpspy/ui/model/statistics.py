"""The statistics of a session by method and tool, as `mcpspy stats` counts them, while its file grows.

`analysis.stats` counts: the lines are read again, in slices, by one collector per recording. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from mcpspy.analysis.stats import MessageGroup, RunningUnion, StatsCollector
from mcpspy.analysis.stats.group import BY_SUBJECT, GroupKind
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Header
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.model.session_model import IncrementalBuild, SessionModel

SUBJECT_FIELDS = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "uri"}
"""Methods that are counted per subject → the filter field of the subject."""

MAX_ROWS, MAX_BYTES = 256, 1 << 16
"""Rows that are counted between two checks of the clock, about 1 ms, and their bytes, unless one line has more."""

SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}

Origin = Callable[[int], tuple[int, Header]]
"""Number of a file → number and header of its recording."""


class StatsGroup:
    """The requests or notifications of one side with the same method and subject, of all recordings."""

    def __init__(self, side: str, kind: GroupKind, method: str, subject: str | None, name: str = "") -> None:
        self.side = side
        self.kind = kind
        self.method = method
        """Empty in totals and in groups of the remaining methods."""
        self.subject = subject
        """None for all subjects, or if the method has none."""
        about = "(others)" if method in BY_SUBJECT and subject is None else subject or ""
        self.what = name or sanitize(f"{method} {about}".rstrip()) or f"(other {kind}s)"
        self.counted: list[MessageGroup] = []
        self.open: list[MessageGroup] = []
        """The requests whose outcome is not known yet, as they are counted so far."""
        self.answers = 0
        """Number of latencies."""
        self.p50 = self.p95 = self.p99 = self.most = 0.0
        """Latencies in seconds."""
        self._latencies = RunningUnion()

    @property
    def is_notification(self) -> bool:
        return self.kind is GroupKind.NOTIFICATION

    @property
    def count(self) -> int:
        return self._sum(lambda group: group.count)

    @property
    def errors(self) -> int:
        return self._sum(lambda group: group.errors)

    @property
    def unanswered(self) -> int:
        return self._sum(lambda group: group.unanswered)

    @property
    def pending(self) -> int:
        return self._sum(lambda group: group.pending)

    @property
    def sent(self) -> int:
        """Bytes of the messages."""
        return self._sum(lambda group: group.sent)

    @property
    def back(self) -> int:
        """Bytes of the responses to them."""
        return self._sum(lambda group: group.back)

    def settle(self) -> Iterator[None]:
        """Compute the latencies in short steps: that is too slow to do for every response."""
        if sum(len(group.took) for group in self.counted) == self.answers:
            return
        yield from self._latencies.update([group.took for group in self.counted])
        for name, share in SHARES.items():
            setattr(self, name, self._latencies.quantile(share))
            yield
        self.most, self.answers = self._latencies.most, len(self._latencies)

    def _sum(self, of: Callable[[MessageGroup], int]) -> int:
        return sum(map(of, self.counted)) + sum(map(of, self.open))


class StatsModel(IncrementalBuild):
    """The groups of a session."""

    def __init__(self, model: SessionModel, origin: Origin | None = None) -> None:
        """`origin` is given for merged sessions: each recording is counted for itself."""
        self._origin = origin or (lambda _: (0, model.header))
        super().__init__(model)

    def _begin(self) -> None:
        self.totals = {
            side: StatsGroup(side, GroupKind.REQUEST, "", None, "all requests") for side in (CLIENT, SERVER)
        }
        self._groups: dict[tuple[str, GroupKind, str, str | None], StatsGroup] = {}
        self._known: dict[MessageGroup, StatsGroup] = {}
        self._collectors: dict[int, StatsCollector] = {}
        self._finished: set[int] = set()
        """The recordings whose last requests are counted as unanswered."""
        self._is_stale = False
        self._settling: Iterator[None] | None = None

    @property
    def is_behind(self) -> bool:
        return super().is_behind or self._is_stale or self._settling is not None or self._is_to_finish

    @property
    def peak(self) -> int | None:
        """The peak concurrency of the client's requests; None for merged sessions."""
        collectors = list(self._collectors.values())
        return None if self._model.is_merged or not collectors else collectors[0].flight.peak

    def advance(self, may_continue: Callable[[], bool]) -> None:
        """Count new lines, then update the groups, until `may_continue` returns False."""
        if self.is_replaced or self._settling is None:
            super().advance(may_continue)
            if super().is_behind:
                return
            if self._is_to_finish:
                self._finish()
            if not self._is_stale:
                return
            self._is_stale, self._settling = False, self._settle()
        for _ in self._settling:
            if not may_continue():
                return
        self._settling = None

    def ordered(self, column: str, *, reverse: bool) -> list[StatsGroup]:
        self._list_groups()
        groups = sorted(
            (group for group in self._groups.values() if group.count), key=lambda group: group.what
        )
        groups.sort(key=lambda group: getattr(group, column), reverse=reverse)
        return [*(total for total in self.totals.values() if total.count), *groups]

    def notifications(self, method: str = "") -> int:
        """Return the number of notifications, of one method if it is given."""
        return sum(
            group.count
            for group in self._groups.values()
            if group.is_notification and method in ("", group.method)
        )

    def filter(self, group: StatsGroup) -> str:
        """Return the narrowest filter that matches the rows of a group and that a user can type."""
        parts, method = [f"is:{group.kind}"], group.method
        field = None if group.is_notification else SUBJECT_FIELDS.get(method)
        if method and (field in (None, "uri") or not group.subject):
            parts.append(_term("method", method))
        if field is not None and group.subject is not None:
            parts.append(_term(field, group.subject) if group.subject else 'subject=""')
        twins = (
            other
            for other in self._groups.values()
            if (other.kind, other.method, other.subject) == (group.kind, method, group.subject)
        )
        if not method or any(other.side != group.side for other in twins):
            parts.append(f"dir:{group.side}")
        return " ".join(part for part in parts if part)

    @property
    def _is_to_finish(self) -> bool:
        return self._index.is_over and len(self._finished) < len(self._collectors)

    def _portion(self, begin: int) -> int:
        return self._index.lines_from(begin, min(begin + MAX_ROWS, len(self._index)), MAX_BYTES)[1]

    def _take(self, begin: int, end: int) -> None:
        self._is_stale = True
        where, _ = self._index.lines_from(begin, end, MAX_BYTES)
        number, header = self._origin(where.part)
        collector = self._collectors.get(number)
        if collector is None:
            collector = self._collectors[number] = StatsCollector(header, top=0)
        # An incomplete last line does not count.
        *lines, _ = self._model.read(where.part, where.offset, where.length + 1).split(b"\n")
        collector.add_lines(lines)

    def _finish(self) -> None:
        for number, collector in self._collectors.items():
            if number not in self._finished:
                collector.finish(is_over=True)
        self._finished.update(self._collectors)
        self._is_stale = True

    def _settle(self) -> Iterator[None]:
        """Bring the groups up to date: the requests that are open, and the latencies."""
        self._list_groups()
        is_open: dict[StatsGroup, list[MessageGroup]] = {}
        for collector in self._collectors.values():
            for counted, waiting in collector.open_groups().items():
                for group in self._groups_of(counted):
                    is_open.setdefault(group, []).append(waiting)
        yield
        for group in (*self.totals.values(), *self._groups.values()):
            group.open = is_open.get(group, [])
            yield from group.settle()

    def _list_groups(self) -> None:
        """Add the groups that are new."""
        for collector in self._collectors.values():
            for side, kind in product((CLIENT, SERVER), GroupKind):
                for counted in collector.groups.of(side, kind):
                    self._groups_of(counted)

    def _groups_of(self, counted: MessageGroup) -> Sequence[StatsGroup]:
        """Return the group of one recording's group, and the total of its side."""
        group, total = self._known.get(counted), self.totals[counted.side]
        if group is None:
            key = counted.side, counted.kind, counted.method, counted.subject
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = StatsGroup(*key)
            self._known[counted] = group
            group.counted.append(counted)
            if not group.is_notification:
                total.counted.append(counted)
        return (group,) if group.is_notification else (group, total)


def _term(field: str, text: str) -> str:
    """Return the filter term for a text, or for the longest printable part of it."""
    part, op = text, "="
    if sanitize(text) != text:
        printable = (character if sanitize(character) == character else "\n" for character in text)
        part, op = max("".join(printable).split("\n"), key=len), ":"
    if not part.strip() and op == ":":
        return ""
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'{field}{op}"{escaped}"'
