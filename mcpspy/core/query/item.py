"""Items that a filter tests, made of messages or exchanges; compiled parts of a filter."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from mcpspy.core.protocol.message import AnyMessage, Failure, Malformed, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session.outcome import ended_badly

T = TypeVar("T")


class FilterItem(Protocol):
    """The fields of one row that filters test: of a message, a note, or a whole exchange."""

    @property
    def at(self) -> float: ...  # Seconds since the start.
    @property
    def side(self) -> str: ...  # Sender, `client` or `server`; for an exchange, the requester; else empty.
    @property
    def kind(self) -> str: ...  # One of `core.query.fields.KINDS`, or an unknown kind of note.
    @property
    def method(self) -> str: ...  # For a response, that of its request; empty if there is none.
    @property
    def subject(self) -> str: ...  # Name or URI of the tool, resource, prompt …; empty if it has none.
    @property
    def id(self) -> str: ...  # The id's JSON text; `null` for a response without one, else empty.
    @property
    def status(self) -> str: ...  # A `State`, or empty.
    @property
    def latency(self) -> float | None: ...  # Seconds from request to response.
    @property
    def size(self) -> int: ...  # Bytes.
    @property
    def stream(self) -> str: ...  # HTTP: its session; otherwise empty.
    @property
    def has_issue(self) -> bool: ...  # True if it has a protocol issue.
    @property
    def is_failed_event(self) -> bool: ...  # True for a crash, lost entries …, and stderr next to a failure.
    @property
    def is_batch(self) -> bool: ...  # True for a message of a batch (2025-03-26).
    @property
    def error_code(self) -> int | None: ...  # The code of a JSON-RPC error.

    def text(self) -> bytes:
        """Return its bytes; for an exchange, those of request and response."""

    def message(self, member: str) -> bytes:
        """Return the message with this member: `params`, `result` or `error`; empty if there is none.

        For a response, `params` is in its request.
        """


NEAR = 20
"""Maximum entries between a line of stderr and the failure that it is next to."""


def reports_failure(note: Note) -> bool:
    """Return True for a crash, lost entries, or an error of mcpspy."""
    if note.kind != "exit":
        return note.kind in ("lost", "error")
    return ended_badly(note.fields.get("code"), note.fields.get("signal"))


def is_near_failure(place: int, count: int, failed: Callable[[int], bool | None]) -> bool:
    """Return True if only events separate an entry from a failure, before it or after it.

    `failed` returns None for an event that is not a failure, False for any other entry.
    """
    for near in (
        range(place + 1, min(place + NEAR + 1, count)),
        range(min(place, count) - 1, max(place - NEAR - 1, -1), -1),
    ):
        found = next((found for one in near if (found := failed(one)) is not None), False)
        if found:
            return True
    return False


class LintFilterItem(FilterItem, Protocol):
    """An item with lint findings."""

    @property
    def findings(self) -> Collection[str]:
        """Codes and severities, as in `ENV101 error`; for an exchange, those of both messages."""


class AnsweredRequest(Protocol):
    """The parts of a request that the item of its response shows."""

    @property
    def at(self) -> float: ...
    @property
    def method(self) -> str: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def data(self) -> bytes: ...


class MessageItem:
    """One entry of a recording; a response has its request. A subclass adds the `status`."""

    __slots__ = ("_answered", "_entry")

    def __init__(self, entry: AnyMessage | Damaged | Note, answered: AnsweredRequest | None) -> None:
        self._entry = entry
        self._answered = answered

    @property
    def at(self) -> float:
        return self._entry.at

    @property
    def side(self) -> str:
        return "" if isinstance(self._entry, Note | Damaged) else self._entry.side

    @property
    def kind(self) -> str:
        return self._entry.kind

    @property
    def method(self) -> str:
        request = self._request()
        return request.method if request is not None else ""

    @property
    def subject(self) -> str:
        request = self._request()
        return (request.subject if request is not None else None) or ""

    @property
    def id(self) -> str:
        entry = self._entry
        return entry.id or "null" if isinstance(entry, Request | Result | Failure) else ""

    @property
    def latency(self) -> float | None:
        if self._answered is None or not isinstance(self._entry, Result | Failure):
            return None
        return self._entry.at - self._answered.at

    @property
    def size(self) -> int:
        return 0 if isinstance(self._entry, Note) else len(self._entry.data)

    @property
    def stream(self) -> str:
        entry = self._entry
        if isinstance(entry, Note):
            return str(entry.fields.get("stream", ""))
        return "" if isinstance(entry, Damaged) else entry.frame.stream or ""

    @property
    def has_issue(self) -> bool:
        entry = self._entry
        if isinstance(entry, Note):
            return False
        return isinstance(entry, Malformed | Damaged) or bool(entry.flaws)

    @property
    def is_failed_event(self) -> bool:
        return isinstance(self._entry, Note) and reports_failure(self._entry)

    @property
    def is_batch(self) -> bool:
        return not isinstance(self._entry, Note | Damaged) and self._entry.index is not None

    @property
    def error_code(self) -> int | None:
        return self._entry.code if isinstance(self._entry, Failure) else None

    def text(self) -> bytes:
        entry = self._entry
        return entry.text.encode("utf-8", "surrogatepass") if isinstance(entry, Note) else entry.data

    def message(self, member: str) -> bytes:
        entry = self._entry
        if member == "params":
            request = self._request()
            return b"" if request is None else request.data
        return entry.data if isinstance(entry, Result if member == "result" else Failure) else b""

    def _request(self) -> AnsweredRequest | None:
        """Return the message with `params`: the entry itself, or the request of a response."""
        if isinstance(self._entry, Request | Notification):
            return self._entry
        return self._answered if isinstance(self._entry, Result | Failure) else None


class ExchangeItem(Struct, gc=False, eq=False):
    """A request with its response, or a notification: time and side of the request, outcome of the response."""

    at: float
    side: str
    kind: str
    method: str
    subject: str
    size: int
    stream: str
    has_issue: bool
    data: bytes
    """The request's bytes, or the notification's."""
    id: str = ""
    status: str = ""
    latency: float | None = None
    error_code: int | None = None
    answer: bytes = b""
    """The response's bytes."""
    answer_member: str = "result"
    """The member of the response: `result` or `error`."""
    is_batch: bool = False
    is_failed_event: bool = False

    def text(self) -> bytes:
        return self.data + b"\n" + self.answer if self.answer else self.data

    def message(self, member: str) -> bytes:
        if member == "params":
            return self.data
        return self.answer if member == self.answer_member else b""


Test = Callable[[FilterItem], bool]


class CompiledPart(NamedTuple, Generic[T]):
    """A test of items, and whether it takes long."""

    test: Callable[[T], bool]
    reads: bool
    """True if it reads the text of a message, or the counts of a session."""


QueryPart: TypeAlias = CompiledPart[FilterItem]


class SessionEnd:
    """The end of a session, to which a filter's times may be relative."""

    __slots__ = ("at", "is_used")

    def __init__(self) -> None:
        self.at: float | None = None
        """Seconds since the start; None: the tested item is the latest."""
        self.is_used = False
        """True if a filter has a time relative to it."""
