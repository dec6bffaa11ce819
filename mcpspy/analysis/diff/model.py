"""What a comparison finds: changes, each with its kind, its weight and its place on both sides.

Owns the words of a difference, and which of them fail a build. Refuses to know
how it was found, or how it is shown.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Any

from msgspec import UNSET, Struct


class ChangeSeverity(StrEnum):
    """What a change means to whoever relies on the old session."""

    BREAKING = "breaking"
    """A client that worked with the old server may fail with the new one."""
    DIFFERENT = "different"
    """It is not what it was."""
    NOTE = "note"
    """Worth knowing, and no reason to stop: a version, a description, one more tool."""

    @property
    def rank(self) -> int:
        """0 is the gravest."""
        return _RANKS[self]


_RANKS = {severity: rank for rank, severity in enumerate(ChangeSeverity)}


class ChangeKind(StrEnum):
    """What sort of change it is."""

    ADDED = "added"
    """Only the new session has it."""
    REMOVED = "removed"
    """Only the old session has it."""
    REQUEST = "request"
    """The same method, tool, resource or prompt, asked for with other parameters."""
    ERROR = "error"
    """It fails where it did not, or fails otherwise."""
    RECOVERED = "recovered"
    """It is answered where it failed."""
    OUTCOME = "outcome"
    """It ends otherwise: cancelled, by a question, not at all."""
    RESULT = "result"
    """It is answered otherwise."""
    PROGRESS = "progress"
    """What came while it was under way is not what it was."""
    NOTIFICATION = "notification"
    """The same notification, with other parameters."""
    INTERFACE = "interface"
    """A tool, a resource, a template or a prompt is listed otherwise: its schema above all."""
    HANDSHAKE = "handshake"
    """The two introduce themselves otherwise."""
    ORDER = "order"
    """It comes before or after what it did not."""
    LATENCY = "latency"
    """It takes longer than it may."""
    EXIT = "exit"
    """The server left otherwise."""


class ChangePosition(Struct, frozen=True):
    """Where something stands in a session."""

    line: int
    """Line of the recording; the header is 1. Parts after the first count on."""
    exchange: int | None = None
    """Number of the exchange, from 0, as in `mcpspy show --json`; None of what is no request."""


class DiffChange(Struct, frozen=True, kw_only=True):
    """One thing that is not what it was."""

    kind: ChangeKind
    severity: ChangeSeverity
    why: str = ""
    """In a few words, where kind and values do not say it: `gained a required property`. May hold a peer's text."""
    pointer: str = ""
    """Where in the message, as a JSON pointer from its root: `/result/content/0/text`; empty of the whole.

    Two things go beyond RFC 6901: in lists without an order the name stands for
    the index (`/result/tools/echo/description`), and where a text is JSON the
    pointer goes on into it. An item of a list has its new index; one that was
    removed, its old one.
    """
    old: Any = UNSET
    """The value there was, UNSET if there was none."""
    new: Any = UNSET
    """The value there is, UNSET if there is none."""


class ComparedCase(Struct, frozen=True, kw_only=True):
    """One thing that was compared, the same or not: a request and all that came of it, a notification, the handshake."""

    method: str
    """Or, of what is no message of the protocol, what it is: `handshake`, `exit`, `not JSON`."""
    subject: str | None = None
    """Which tool, resource, prompt …"""
    old: ChangePosition | None = None
    new: ChangePosition | None = None
    latency: float | None = None
    """Seconds until the new session had its answer; None if it had none, or nobody asked."""
    changes: tuple[DiffChange, ...] = ()

    @property
    def about(self) -> str:
        """What a person calls it; holds a peer's text."""
        return f"{self.method} {self.subject}" if self.subject else self.method

    @property
    def severity(self) -> ChangeSeverity | None:
        """That of its gravest change; None if nothing changed."""
        return min((change.severity for change in self.changes), key=lambda found: found.rank, default=None)


class SessionDiff(Struct, frozen=True):
    """Two sessions, compared."""

    cases: tuple[ComparedCase, ...]
    """Everything compared, in the order of the new session; what it lacks, where the old one had it."""

    @property
    def changed(self) -> list[ComparedCase]:
        """What is not the same."""
        return [case for case in self.cases if case.changes]

    @property
    def changes(self) -> list[tuple[ComparedCase, DiffChange]]:
        """Every change, and what it is a change of."""
        return [(case, change) for case in self.cases for change in case.changes]

    @property
    def counts(self) -> dict[ChangeSeverity, int]:
        """Changes by weight, the gravest first."""
        counted = Counter(change.severity for _, change in self.changes)
        return {severity: counted[severity] for severity in ChangeSeverity}

    def is_same(self, fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT) -> bool:
        """Whether nothing as grave as this, or graver, has changed."""
        return not any(change.severity.rank <= fail_on.rank for _, change in self.changes)
