"""A request whose outcome is not final, and the words of an error with those in its data."""

from __future__ import annotations

from msgspec import Struct

from mcpspy.analysis.explain.evidence import PrintedLine, named_error
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.analysis.lint.failure_text import words_of
from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.protocol.message import Failure, Message, Notification, loads, meta_raw
from mcpspy.core.session.exchange import Exchange

MAX_DATA_LINES = 200
"""Lines of the `data` of an error that are read."""


def with_data(failure: Failure, words: str) -> str:
    """Return the words of an error, and those in its `data`, which often has the exception behind "Internal error"."""
    raw = bytes(meta_raw(failure.raw_error, "data"))
    data = loads(raw)
    if not isinstance(data, str | dict) or not data:
        return words
    told = words_of(raw.decode("utf-8", "replace")) if isinstance(data, dict) else data
    if told.startswith("{"):
        return words  # An object without words.
    place = EntryPosition(0)
    named = named_error([PrintedLine(0.0, place, line) for line in told.splitlines()[:MAX_DATA_LINES]])
    told = told.strip() if named is None else named.text
    if told in words:
        return words
    return told if words and words in told else ": ".join(filter(None, (words, told)))


class OpenRequest(Struct, gc=False):
    """A request whose outcome is not final."""

    exchange: Exchange
    place: EntryPosition
    is_first: bool
    before: Message | None = None
    """The message of the same side before it."""
    findings: tuple[Finding, ...] = ()
    words: str = ""
    code: int | None = None
    answer_at: float | None = None
    answer_place: EntryPosition | None = None
    cancelled_by: str = ""
    reason: str = ""
    cancel_at: float | None = None
    cancel_place: EntryPosition | None = None
    progress: int = 0
    progress_at: float | None = None
    """Time of the first progress."""
    progress_words: str = ""
    """The message of the last progress that had one."""
    asked_at: float | None = None
    """Time of the last request of the server in the stream of its response."""
    asked_method: str = ""
    waiting: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    carrier: RefusedExchange | None = None
    """The HTTP exchange that carried it, once it has ended, if it is not an ordinary one."""

    def add_notification(self, what: Notification, place: EntryPosition) -> None:
        if what.method == "notifications/progress":
            self.progress += 1
            self.progress_at = what.at if self.progress_at is None else self.progress_at
            message = what.params.get("message") if isinstance(what.params, dict) else None
            self.progress_words = message if isinstance(message, str) else self.progress_words
        elif what.method == "notifications/cancelled" and self.cancel_at is None:
            params = what.params
            reason = params.get("reason") if isinstance(params, dict) else None
            self.cancelled_by, self.cancel_at, self.cancel_place = what.side, what.at, place
            self.reason = reason if isinstance(reason, str) else ""
