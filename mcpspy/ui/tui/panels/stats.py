"""What was called how often, how long that took, how much went over the wire.

Owns the groups that calls are counted in, their order, and the filter that
shows a group's rows. Pure.
"""

from __future__ import annotations

from collections.abc import Callable

from mcpspy.analysis.stats.quantiles import Distribution
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import NOTIFICATION, REQUEST, RowKind
from mcpspy.core.session.exchange import State
from mcpspy.ui.tui.panels.panel_screen import IncrementalBuild

BY_SUBJECT = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "uri"}
"""Methods that are counted by what they are about, and the filter's word for that."""

MOST = 2000
"""Groups there may be: a session that reads a million resources is counted all the same, in one line a side."""

FAILED = frozenset({State.ERROR, State.TOOL_ERROR, State.REFUSED, State.UNANSWERED})

COLUMNS = ("what", "count", "errors", "pending", "p50", "p95", "most", "sent", "back", "progress")
"""What groups can be sorted by."""


class StatsGroup:
    """Requests, or notifications, of one side that are alike."""

    def __init__(self, side: str, kind: RowKind, method: str = "", subject: str = "", name: str = "") -> None:
        self.side = side
        self.kind = kind
        self.method = method
        """Empty: of every method."""
        self.subject = subject
        self.what = name or sanitize(f"{method} {subject}".rstrip())
        """What it is called."""
        self.count = self.errors = self.pending = self.progress = 0
        self.sent = self.back = 0
        """Bytes of the messages themselves, and of their answers."""
        self.answers = Distribution()
        """Seconds to each answer."""
        self.p50 = self.p95 = 0.0

    @property
    def most(self) -> float:
        return self.answers.most

    def settle(self) -> None:
        """Compute what is too dear to be computed at every answer."""
        self.p50, self.p95 = self.answers.quantiles(0.5, 0.95)


class StatsModel(IncrementalBuild):
    """The groups of a session."""

    def _begin(self) -> None:
        self.totals = {
            side: StatsGroup(side, RowKind.REQUEST, name="all requests") for side in (CLIENT, SERVER)
        }
        self.notifications = self.progress = 0
        self._groups: dict[tuple[int, int, int], StatsGroup] = {}
        self._stale: set[StatsGroup] = set()
        self._open: dict[int, bool] = {}
        """Rows of requests of which more may come, and whether they are pending."""

    @property
    def is_behind(self) -> bool:
        """Whether there is something to do."""
        return super().is_behind or bool(self._stale) or (self._index.is_over and bool(self._open))

    def judge(self, goes_on: Callable[[], bool]) -> None:
        """Take the rows that have come, and settle the groups that they changed, while there is time for it."""
        super().judge(goes_on)
        # What the end left without an answer says so only now.
        while self._index.is_over and self._open and not super().is_behind:
            self._settle(next(iter(self._open)))
            if not goes_on():
                return
        while self._stale and not super().is_behind:
            self._stale.pop().settle()
            if not goes_on():
                return

    def ordered(self, column: str, *, reverse: bool) -> list[StatsGroup]:
        """Return the totals, and below them the groups in the order of a column."""
        groups = sorted(self._groups.values(), key=lambda group: group.what)
        groups.sort(key=lambda group: getattr(group, column), reverse=reverse)
        return [*(total for total in self.totals.values() if total.count), *groups]

    def filter(self, group: StatsGroup) -> str:
        """Return the filter that shows a group's rows, and no others where that can be typed."""
        parts, method = [f"is:{group.kind.name.lower()}"], group.method
        field = BY_SUBJECT.get(method)
        if method and (field in (None, "uri") or not group.subject):
            parts.append(_wanted("method", method))
        if field is not None:
            parts.append(_wanted(field, group.subject) if group.subject else 'subject=""')
        twins = (
            other
            for other in self._groups.values()
            if (other.kind, other.method, other.subject) == (group.kind, method, group.subject)
        )
        if not method or any(other.side != group.side for other in twins):
            parts.append(f"dir:{group.side}")
        return " ".join(part for part in parts if part)

    def _take(self, begin: int, end: int) -> None:
        index, is_open = self._index, self._open
        what = index.what
        for row in range(begin, end):
            kind = what[row] & 7
            request = index.pair(row) if kind != REQUEST else None
            if kind == NOTIFICATION:
                self._notify(row, request)
            elif (
                kind == REQUEST and index.request(row) is not None
            ):  # One that comes again is no second call.
                self._ask(row)
            if request is not None and request in is_open:
                self._settle(request)

    def _ask(self, row: int) -> None:
        size = self._index.size[row]
        for group in (self._group(row), self.totals[self._index.side(row)]):
            group.count += 1
            group.pending += 1
            group.sent += size
        self._settle(row)

    def _notify(self, row: int, request: int | None) -> None:
        index, group = self._index, self._group(row)
        self.notifications += 1
        group.count += 1
        group.sent += index.size[row]
        if index.texts[index.method[row]] == "notifications/progress":
            self.progress += 1
            if request is not None:
                self._group(request).progress += 1
                self.totals[index.side(request)].progress += 1

    def _settle(self, request: int) -> None:
        """Count what became of a request; if that may still change, keep it in mind."""
        index = self._index
        was_pending = self._open.pop(request, True)
        state, answer = index.state(request), index.pair(request)
        if state is State.PENDING or (state is State.CANCELLED and not index.is_over):
            self._open[request] = state is State.PENDING
        if state is State.PENDING:
            return
        failed = state in FAILED or (answer is not None and index.kind(answer) is RowKind.FAILURE)
        for group in (self._group(request), self.totals[index.side(request)]):
            group.pending -= was_pending
            group.errors += failed
            if answer is not None:
                group.back += index.size[answer]
                group.answers.add(max(index.latency(request) or 0.0, 0.0))
                self._stale.add(group)

    def _group(self, row: int) -> StatsGroup:
        index = self._index
        what, method = index.what[row], index.method[row]
        name = index.texts[method]
        subject = index.subject[row] if name in BY_SUBJECT else 0
        key = (what & 31, method, subject)
        group = self._groups.get(key)
        if group is None:
            kind, side = index.kind(row), index.side(row)
            if len(self._groups) < MOST:
                group = StatsGroup(side, kind, name, index.texts[subject])
            else:
                key = (what & 31, 0, 0)
                group = self._groups.get(key) or StatsGroup(side, kind, name=f"(other {kind.name.lower()}s)")
            self._groups[key] = group
        return group


def _wanted(field: str, text: str) -> str:
    """Return the part of a filter that wants this text; of one that cannot be shown, the longest part that can."""
    part, op = text, "="
    if sanitize(text) != text:
        shown = (character if sanitize(character) == character else "\n" for character in text)
        part, op = max("".join(shown).split("\n"), key=len), ":"
    if not part.strip() and op == ":":
        return ""
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'{field}{op}"{escaped}"'
