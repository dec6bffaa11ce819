"""A finding: the rule, its severity, the position, and a message; and the kinds of events checked."""

from __future__ import annotations

import hashlib
import re
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct


class Severity(StrEnum):
    """Severity of a rule, the most severe first."""

    ERROR = "error"
    """The specification requires it (MUST); some peer will fail."""
    WARNING = "warning"
    """The specification recommends it (SHOULD), or allows what is nearly always a mistake."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the most severe."""
        return list(Severity).index(self)


class EventKind(StrEnum):
    """The kinds of events that rules check."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    FAILURE = "failure"
    MALFORMED = "malformed"
    NOTE = "note"
    POST = "post"
    """The end of an HTTP exchange, with everything it carried."""
    END = "end"
    """The end of the session; one event for each request without a response."""
    SESSION_END = "session-end"
    """The end of the session, once; its position is that of the last page of tools."""

    __hash__ = str.__hash__


class EntryPosition(NamedTuple):
    """Position of an entry in a recording."""

    line: int = 0
    """Of its file; the header is line 1. 0 if lines are not counted."""
    part: int = 1
    """Number of the session's file, from 1."""


STABLE = 100
"""Characters of an excerpt that count for a fingerprint."""

_VOLATILE = re.compile(
    r"""(?<="id":)\s*"[^"]*"|(?<="progressToken":)\s*"[^"]*"|(?<="requestId":)\s*"[^"]*"  # ids that are strings
    |\b[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}\b|\b(?=[a-f]*\d)[0-9a-f]{12,}\b  # UUIDs, and long numbers in hex
    |\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d[\d:.,Z]*  # times
    |(?<![\w.-])-?\d+(?:\.\d+)?(?![\w-])  # numbers""",
    re.VERBOSE,
)


class Report(NamedTuple):
    """A violation that a check found."""

    message: str
    excerpt: Any = None
    """A value, or bytes as received; None for the whole message."""


class Finding(Struct, frozen=True):
    """One violation of a rule."""

    code: str
    severity: Severity
    message: str
    """Description in one line; may contain text of a peer that is not sanitized yet."""
    excerpt: str
    """The offending part as the peer wrote it, not sanitized either; empty if no peer wrote it."""
    place: EntryPosition
    number: int
    """Index of the change in its session (`core.session.session.Change.number`)."""
    at: float
    """Seconds since the recording started."""
    side: str
    """The sender of the offending entry; empty if there is none."""
    about: str = ""
    """Method and subject of the message, or of its request; kind of a note."""
    is_whole: bool = False
    """True if the excerpt is the beginning of the whole message."""
    id: str | None = None
    """JSON text of the id of the message; None if it has none, or if the entry is not a message."""
    kind: str = ""
    """`core.protocol.message.Message.kind`; empty if the entry is not a message."""
    error: str | None = None
    """The words of a response that reports an error of JSON-RPC or of a tool; None for all others."""

    def fingerprint(self, server: str) -> str:
        """Return 16 hex digits that identify the finding in every recording of this server.

        They do not depend on its line, the time, the order of messages, ids, and separate numbers.
        """
        excerpt = "" if self.is_whole else _VOLATILE.sub("0", self.excerpt)[:STABLE]
        message = _VOLATILE.sub("0", self.message)
        parts = (server, self.code, self.side, self.about, message, excerpt)
        return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]
