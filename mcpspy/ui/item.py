"""A row as a filter sees it.

Owns which of its words each field of the filter language looks at: what
`analysis.rows` shows, before it is made inert. What the fields are is
`core.query`'s.
"""

from __future__ import annotations

from collections.abc import Collection

from mcpspy.analysis.rows import row
from mcpspy.core.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.record import Damaged, Note
from mcpspy.core.session import Change

_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "error",
    Malformed: "malformed",
    Damaged: "damaged",
}


class ChangeItem:
    """One change, as things stand now."""

    __slots__ = ("_change", "findings")

    def __init__(self, change: Change, findings: Collection[str] = ()) -> None:
        self._change = change
        self.findings = findings
        """What `lint` says of it: `ENV101 error` …"""

    @property
    def at(self) -> float:
        """Seconds since the start."""
        return self._change.what.at

    @property
    def side(self) -> str:
        """Who sent it; empty if nobody did."""
        what = self._change.what
        return "" if isinstance(what, Note | Damaged) else what.side

    @property
    def kind(self) -> str:
        """What it is."""
        what = self._change.what
        return what.kind if isinstance(what, Note) else _KINDS[type(what)]

    @property
    def method(self) -> str:
        """Of an answer, that of its request."""
        request = self._request()
        return request.method if request is not None else ""

    @property
    def subject(self) -> str:
        """Which tool, resource, prompt …"""
        request = self._request()
        return (request.subject if request is not None else None) or ""

    @property
    def id(self) -> str:
        """The id's JSON text."""
        what = self._change.what
        return (what.id if isinstance(what, Request | Result | Failure) else None) or ""

    @property
    def status(self) -> str:
        """How an answer went; of a request, only while it has none: each failure is found once."""
        what, exchange = self._change.what, self._change.exchange
        if exchange is None or not isinstance(what, Request | Result | Failure):
            return ""
        return exchange.state.value if not isinstance(what, Request) or exchange.answer is None else ""

    @property
    def latency(self) -> float | None:
        """Seconds from the request to this answer."""
        what, exchange = self._change.what, self._change.exchange
        if exchange is None or not isinstance(what, Result | Failure):
            return None
        return what.at - exchange.request.at

    @property
    def size(self) -> int:
        """Bytes of a message."""
        what = self._change.what
        return 0 if isinstance(what, Note) else len(what.data)

    @property
    def stream(self) -> str:
        """HTTP: the session it belongs to."""
        what = self._change.what
        if isinstance(what, Note):
            return str(what.fields.get("stream", ""))
        return "" if isinstance(what, Damaged) else what.frame.stream or ""

    @property
    def odd(self) -> bool:
        """Whether it breaks a rule."""
        what = self._change.what
        if isinstance(what, Note):
            return False
        return isinstance(what, Malformed | Damaged) or bool(what.flaws) or self._change.flaw is not None

    @property
    def error_code(self) -> int | None:
        """The code of a JSON-RPC error."""
        what = self._change.what
        return what.code if isinstance(what, Failure) else None

    def text(self) -> bytes:
        """Return its own bytes; what nobody said has the words of its row instead."""
        what = self._change.what
        if not isinstance(what, Note):
            return what.data
        if what.text:
            return what.text.encode("utf-8", "surrogatepass")
        said = row(self._change)
        return f"{said.subject} {said.status}".encode()

    def message(self, member: str) -> bytes:
        """Return the bytes of the message that has `params`, of an answer its request's; or `result`, or `error`."""
        if member == "params":
            request = self._request()
            return b"" if request is None else request.data
        what = self._change.what
        return what.data if isinstance(what, Result if member == "result" else Failure) else b""

    def _request(self) -> Request | Notification | None:
        """Return what says the method: the message itself, or what it answers."""
        what, exchange = self._change.what, self._change.exchange
        if isinstance(what, Request | Notification):
            return what
        if exchange is None or isinstance(what, Note | Damaged | Malformed):
            return None
        return exchange.request
