"""Result of a comparison: changes with kind, severity and position in both sessions."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct


class ChangeSeverity(StrEnum):
    """Effect of a change on users of the old session."""

    BREAKING = "breaking"
    """A client that worked with the old server may fail with the new one."""
    DIFFERENT = "different"
    NOTE = "note"
    """Informational: a version, a description, an additional tool."""

    @property
    def rank(self) -> int:
        """0 is the most severe."""
        return list(ChangeSeverity).index(self)


class ChangeKind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    REQUEST = "request"
    """The same method, tool, resource or prompt with other parameters."""
    ERROR = "error"
    """It fails and did not fail before, or the error is different."""
    RECOVERED = "recovered"
    OUTCOME = "outcome"
    """It ends differently: cancelled, with input required, or without a response."""
    RESULT = "result"
    PROGRESS = "progress"
    NOTIFICATION = "notification"
    INTERFACE = "interface"
    HANDSHAKE = "handshake"
    ORDER = "order"
    LATENCY = "latency"
    EXIT = "exit"


class ChangePosition(Struct, frozen=True):
    line: int
    """Line of the recording; the header is 1. Counted across all parts."""
    exchange: int | None = None
    """Number of the exchange, from 0, as in `mcpspy show --json`; None if it is not a request."""


class DiffChange(Struct, frozen=True, kw_only=True):
    kind: ChangeKind
    severity: ChangeSeverity
    why: str = ""
    """A short reason: `gained a required property`. May contain a peer's text."""
    pointer: str = ""
    """JSON pointer from the message's root: `/result/content/0/text`; empty for the whole message.

    Two extensions of RFC 6901: in lists without an order the name replaces the index
    (`/result/tools/echo/description`), and the pointer continues into a text that is JSON. An item of a list
    has its new index; a removed item has its old one.
    """
    old: Any = UNSET
    """UNSET if it was added."""
    new: Any = UNSET
    """UNSET if it was removed."""


class ComparedCase(Struct, frozen=True, kw_only=True):
    """One compared item, changed or not: a request with its outcome, a notification, the handshake."""

    method: str
    """Or `handshake`, `exit`, `not JSON`, if it is not a message of the protocol."""
    subject: str | None = None
    old: ChangePosition | None = None
    new: ChangePosition | None = None
    latency: float | None = None
    """Seconds until the response in the new session; None without one."""
    changes: tuple[DiffChange, ...] = ()

    @property
    def about(self) -> str:
        """Display name; contains a peer's text."""
        return f"{self.method} {self.subject}" if self.subject else self.method

    @property
    def severity(self) -> ChangeSeverity | None:
        return min((change.severity for change in self.changes), key=lambda found: found.rank, default=None)


class SessionDiff(Struct, frozen=True):
    cases: tuple[ComparedCase, ...]
    """Everything compared, in the order of the new session; removed cases at their old position."""

    @property
    def changed(self) -> list[ComparedCase]:
        return [case for case in self.cases if case.changes]

    @property
    def changes(self) -> list[tuple[ComparedCase, DiffChange]]:
        return [(case, change) for case in self.cases for change in case.changes]

    @property
    def counts(self) -> dict[ChangeSeverity, int]:
        counted = Counter(change.severity for _, change in self.changes)
        return {severity: counted[severity] for severity in ChangeSeverity}

    def is_same(self, fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT) -> bool:
        """Return whether there is no change of at least this severity."""
        return not any(change.severity.rank <= fail_on.rank for _, change in self.changes)
