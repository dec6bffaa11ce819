"""Items: the values that a filter tests, and the parts that a filter consists of.

Owns the item protocol, the items made of messages and of exchanges, and the
end of a session that times may be counted back from. Refuses to know the
language.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, Protocol

from msgspec import Struct

from mcpspy.core.protocol.message import AnyMessage, Failure, Malformed, Notification, Request, Result
from mcpspy.core.recording.decode import Damaged, Note


class FilterItem(Protocol):
    """What a filter asks of one row: a message, a note, or a whole exchange."""

    @property
    def at(self) -> float:
        """Seconds since the start."""

    @property
    def side(self) -> str:
        """Who sent it, of an exchange who asked: `client` or `server`; empty if nobody did."""

    @property
    def kind(self) -> str:
        """`request`, `notification`, `result`, `error`, `malformed`, `exchange`; of a note, the note's."""

    @property
    def method(self) -> str:
        """Of an answer, that of its request; empty if it has none."""

    @property
    def subject(self) -> str:
        """Which tool, resource, prompt …; empty if none."""

    @property
    def id(self) -> str:
        """The id's JSON text; empty if it has none."""

    @property
    def status(self) -> str:
        """A `State`, or empty."""

    @property
    def latency(self) -> float | None:
        """Seconds from request to answer."""

    @property
    def size(self) -> int:
        """Bytes."""

    @property
    def stream(self) -> str:
        """HTTP: the session it belongs to; else empty."""

    @property
    def odd(self) -> bool:
        """Whether it has a flaw."""

    @property
    def error_code(self) -> int | None:
        """The code of a JSON-RPC error."""

    def text(self) -> bytes:
        """Return its own bytes; of an exchange, the request's and the answer's."""

    def message(self, member: str) -> bytes:
        """Return the bytes of the message whose `params`, `result` or `error` is meant; empty if there is none.

        Of an answer, the request is the one with `params`.
        """


class LintFilterItem(FilterItem, Protocol):
    """One that knows what `lint` says of it."""

    @property
    def findings(self) -> Collection[str]:
        """Codes and severities, as in `ENV101 error`; of an exchange, of both messages."""


class AnsweredRequest(Protocol):
    """The parts of an answered request that an answer's item shows."""

    @property
    def at(self) -> float: ...
    @property
    def method(self) -> str: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def data(self) -> bytes: ...


_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "error",
    Malformed: "malformed",
    Damaged: "damaged",
}


class MessageItem:
    """One entry of a recording, with the request that it answers; a subclass adds the `status`."""

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
        entry = self._entry
        return entry.kind if isinstance(entry, Note) else _KINDS[type(entry)]

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
        return (entry.id if isinstance(entry, Request | Result | Failure) else None) or ""

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
    def odd(self) -> bool:
        entry = self._entry
        if isinstance(entry, Note):
            return False
        return isinstance(entry, Malformed | Damaged) or bool(entry.flaws)

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
        """Return the message with `params`: the entry itself, or the request that it answers."""
        if isinstance(self._entry, Request | Notification):
            return self._entry
        return self._answered if isinstance(self._entry, Result | Failure) else None


class ExchangeItem(Struct, gc=False, eq=False):
    """A request with its answer, or a notification: time and side of the request, the outcome of the answer."""

    at: float
    side: str
    kind: str
    method: str
    subject: str
    size: int
    stream: str
    odd: bool
    data: bytes
    """The request's bytes, or the notification's."""
    id: str = ""
    status: str = ""
    latency: float | None = None
    error_code: int | None = None
    answer: bytes = b""
    """The answer's bytes."""
    answer_member: str = "result"
    """The member of the answer that counts: `result` or `error`."""

    def text(self) -> bytes:
        return self.data + b"\n" + self.answer if self.answer else self.data

    def message(self, member: str) -> bytes:
        if member == "params":
            return self.data
        return self.answer if member == self.answer_member else b""


Test = Callable[[FilterItem], bool]


class QueryPart(NamedTuple):
    """A test, and what it costs."""

    test: Test
    reads: bool
    """Whether it asks for text."""


class SessionEnd:
    """The end of a session, which a filter may count back from."""

    __slots__ = ("at", "is_asked")

    def __init__(self) -> None:
        self.at: float | None = None
        """Seconds since the start; None: whatever is asked about is the latest there is."""
        self.is_asked = False
        """Whether a filter counts back from it."""
