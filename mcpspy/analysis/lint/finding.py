"""What a rule found: which rule, how grave, where, and in what words.

Owns the scale, the place, and the kinds of what a rule looks at. Refuses to know how a finding is written down.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct


class Severity(StrEnum):
    """How grave, the gravest first."""

    ERROR = "error"
    """The specification says MUST; some peer will fail over it."""
    WARNING = "warning"
    """It says SHOULD; or it is allowed, and nearly always a mistake."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


class EventKind(StrEnum):
    """What a rule looks at."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    FAILURE = "failure"
    MALFORMED = "malformed"
    NOTE = "note"
    POST = "post"
    """The end of an HTTP exchange, with all that was in it."""
    END = "end"
    """The end of the session; once for each request that has no answer."""

    __hash__ = str.__hash__


class EntryPosition(NamedTuple):
    """Where an entry is in a recording."""

    line: int = 0
    """Of its file; the header is line 1. 0 if nobody counted."""
    part: int = 1
    """Which of the session's files, counted from 1."""


class Finding(Struct, frozen=True):
    """One breach of one rule."""

    code: str
    severity: Severity
    message: str
    """What is wrong, in one line; may hold text of a peer, which is not inert yet."""
    excerpt: str
    """The offending part, as the peer wrote it; not inert either. Empty if nobody wrote it."""
    place: EntryPosition
    number: int
    """Place of the change among those of its session, from 0 (`core.session.session.Change.number`)."""
    at: float
    """Seconds since the recording started."""
    side: str
    """Who sent what was found; empty if nobody did."""
