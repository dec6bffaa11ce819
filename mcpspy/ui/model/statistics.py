"""The statistics of a session by method and tool: counts, errors, latencies and bytes. Pure."""

from __future__ import annotations

from collections.abc import Callable

from mcpspy.analysis.stats.quantiles import Distribution
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.columns import KIND, NOTIFICATION, REQUEST, RowKind
from mcpspy.core.session.exchange import State
from mcpspy.ui.model.session_model import FAILED_STATES, IncrementalBuild

BY_SUBJECT = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "uri"}
"""Methods that are counted per subject → the filter field of the subject."""

MOST = 2000
"""Maximum number of groups; the rest is counted in one group per side and kind."""

MAY_STILL_END = frozenset({State.CANCELLED, State.DROPPED})
"""States of requests that are not pending, but may still get a response."""


class StatsGroup:
    """The requests or notifications of one side with the same method and subject."""

    def __init__(self, side: str, kind: RowKind, method: str = "", subject: str = "", name: str = "") -> None:
        self.side = side
        self.kind = kind
        self.method = method
        """Empty in totals and in groups of the remaining methods."""
        self.subject = subject
        self.what = name or sanitize(f"{method} {subject}".rstrip())
        self.count = self.errors = self.pending = self.progress = 0
        self.sent = self.back = 0
        """Bytes of the messages and of their responses."""
        self.answers = Distribution()
        """Latencies in seconds."""
        self.p50 = self.p95 = 0.0

    @property
    def is_notification(self) -> bool:
        return self.kind is RowKind.NOTIFICATION

    @property
    def most(self) -> float:
        return self.answers.most

    def settle(self) -> None:
        """Compute the quantiles, which is too slow to do for every response."""
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
        """Row of a request whose outcome may still change → True if it is pending."""

    @property
    def is_behind(self) -> bool:
        return super().is_behind or bool(self._stale) or (self._index.is_over and bool(self._open))

    def advance(self, may_continue: Callable[[], bool]) -> None:
        """Process new rows and update changed groups until `may_continue` returns False."""
        super().advance(may_continue)
        # Requests without a response change their state when the session ends.
        while self._index.is_over and self._open and not super().is_behind:
            self._settle(next(iter(self._open)))
            if not may_continue():
                return
        while self._stale and not super().is_behind:
            self._stale.pop().settle()
            if not may_continue():
                return

    def ordered(self, column: str, *, reverse: bool) -> list[StatsGroup]:
        groups = sorted(self._groups.values(), key=lambda group: group.what)
        groups.sort(key=lambda group: getattr(group, column), reverse=reverse)
        return [*(total for total in self.totals.values() if total.count), *groups]

    def filter(self, group: StatsGroup) -> str:
        """Return the narrowest filter that matches the rows of a group and that a user can type."""
        parts, method = [f"is:{group.kind.name.lower()}"], group.method
        field = BY_SUBJECT.get(method)
        if method and (field in (None, "uri") or not group.subject):
            parts.append(_term("method", method))
        if field is not None:
            parts.append(_term(field, group.subject) if group.subject else 'subject=""')
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
            kind = what[row] & KIND
            request = index.pair(row) if kind != REQUEST else None
            if kind == NOTIFICATION:
                self._add_notification(row, request)
            elif (
                kind == REQUEST and index.request(row) is not None
            ):  # A repeated request is not counted again.
                self._add_request(row)
            if request is not None and request in is_open:
                self._settle(request)

    def _add_request(self, row: int) -> None:
        size = self._index.size[row]
        for group in (self._group(row), self.totals[self._index.side(row)]):
            group.count += 1
            group.pending += 1
            group.sent += size
        self._settle(row)

    def _add_notification(self, row: int, request: int | None) -> None:
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
        """Count the outcome of a request; remember the request if its outcome may still change."""
        index = self._index
        was_pending = self._open.pop(request, True)
        state, answer = index.state(request), index.pair(request)
        if state is State.PENDING or (state in MAY_STILL_END and not index.is_over):
            self._open[request] = state is State.PENDING
        if state is State.PENDING:
            return
        failed = state in FAILED_STATES or (answer is not None and index.kind(answer) is RowKind.FAILURE)
        for group in (self._group(request), self.totals[index.side(request)]):
            group.pending -= was_pending
            group.errors += failed
            if answer is not None:
                group.back += index.size[answer]
                if (latency := index.latency(request)) is not None:
                    group.answers.add(max(latency, 0.0))
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
