"""An event that rules check: a message, a note, or the end of an HTTP exchange or of a session.

Owns the views that several rules need; each is computed at most once, when the first rule reads it.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import orjson
from msgspec import DecodeError, Raw, Struct
from msgspec.json import decode

from mcpspy.analysis.lint.finding import EntryPosition, EventKind, Report
from mcpspy.analysis.lint.shapes import LEGACY, shape_of
from mcpspy.analysis.lint.state import (
    ConversationState,
    HttpPost,
    LintState,
    ListedTool,
    ListHistory,
    PendingRequest,
)
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    loads,
)
from mcpspy.core.protocol.spec import MODERN, SERVER
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session.exchange import Exchange

_READ_FAILS = object()

LINE_LIMIT = 4096
"""The smallest usual limit of a line in bytes; the others, such as 64 KiB, are powers of two, too."""

TASK_NOTIFICATIONS = ("notifications/tasks/status", "notifications/tasks")

_EXACT_INTEGERS = orjson.OPT_STRICT_INTEGER


class LintEvent(Struct, gc=False, eq=False):
    """A message, a note, the end of an HTTP exchange, or a request without a response at the end."""

    what: AnyMessage | Note | Damaged
    state: LintState
    conversation: ConversationState
    place: EntryPosition
    number: int
    revision: str | None
    method: str = ""
    """Method of the message or its request; kind of a note; content category of an HTTP exchange."""
    side: str = ""
    exchange: Exchange | None = None
    flaw: str | None = None
    pending: PendingRequest | None = None
    """The request that it responds to, or reports progress of."""
    subject: str | None = None
    """The tool, resource, prompt … that the request is about."""
    post: HttpPost = None  # type: ignore[assignment]  # Set for the end of an HTTP exchange.
    is_unusual: bool = True
    """Set if it has a flaw, or does not come between the handshake and the end of the session."""
    data: bytes = b""
    """The bytes of a message. Read more often than a property should be."""
    hung_up: str | None = None
    """The side that disconnected during the HTTP response with this message."""
    _document: Any = _READ_FAILS
    _params: dict[str, Any] | None = None
    _result: dict[str, Any] | None = None
    _violations: dict[str, list[Report]] | None = None

    @property
    def at(self) -> float:
        """Seconds since the recording started."""
        return self.what.at

    @property
    def message(self) -> Message:
        return self.what  # type: ignore[return-value]  # A rule for messages.

    @property
    def request(self) -> Request:
        """The request, or the one that the message responds to."""
        return self.what if isinstance(self.what, Request) or self.exchange is None else self.exchange.request  # type: ignore[return-value]  # A rule for requests.

    @property
    def tool(self) -> ListedTool | None:
        """The called tool; None if it was not listed."""
        tool: ListedTool | None = self.state.tools.get(self.subject or "")
        return tool

    @property
    def notification(self) -> Notification:
        return self.what  # type: ignore[return-value]  # A rule for notifications.

    @property
    def note(self) -> Note:
        return self.what  # type: ignore[return-value]  # A rule for notes.

    @property
    def failure(self) -> Failure:
        return self.what  # type: ignore[return-value]  # A rule for errors.

    @property
    def document(self) -> Any:
        """The decoded message; None if it cannot be decoded."""
        if self._document is _READ_FAILS:
            try:
                self._document = orjson.loads(self.data)
            except ValueError:
                self._document = loads(self.data.decode("utf-8", "replace").encode())
        return self._document

    @property
    def is_compact(self) -> bool:
        """True if orjson writes the same bytes: then it has no duplicate keys, no escapes and no integers beyond 2^53."""
        document = self._document
        if document is _READ_FAILS:
            document = self.document
        try:
            return orjson.dumps(document, option=_EXACT_INTEGERS) == self.data
        except TypeError:  # Integers beyond 2^53, lone surrogates.
            return False

    @property
    def cut(self) -> str | None:
        """The reason why the end of the message is missing; None unless it is truncated JSON with a known reason."""
        frame = self.message.frame
        if not isinstance(self.what, Malformed):
            return None
        if frame.http is not None:
            why = (
                f"the {self.hung_up} disconnected".replace("the mcpspy", "mcpspy")
                if self.hung_up is not None
                else None
            )
        elif frame.eol == "":
            closed = self.side == SERVER and self.conversation.closed_at is not None
            why = f"the {self.side}'s stream ended" + (
                ", after the client had closed stdin" if closed else ""
            )
        else:
            why = (
                "a wrapper or library split the line at its limit" if is_line_limit(len(self.data)) else None
            )
        return why if why is not None and is_truncated(self.data) else None

    @property
    def is_plain(self) -> bool:
        """True for most calls and results of tools: with nothing but a name and arguments, or plain text."""
        if isinstance(self.what, Result):
            return self.exchange is not None and is_text(self.result)
        # Since 2026-07-28, each request has `_meta`.
        return isinstance(self.what, Request) and (self.revision or LEGACY) < MODERN and is_call(self.params)

    @property
    def params(self) -> dict[str, Any]:
        """`params`; empty if it is not an object."""
        if self._params is None:
            self._params = self._object("params") or {}
        return self._params

    @property
    def result(self) -> dict[str, Any]:
        """`result`; empty if it is not an object."""
        if self._result is None:
            self._result = self._object("result") or {}
        return self._result

    @property
    def error(self) -> Any:
        document = self.document
        return document.get("error") if isinstance(document, dict) else None

    def listed(self, name: str) -> list[dict[str, Any]]:
        """Return the objects in a list of the result."""
        return objects(self.result.get(name))

    @property
    def listing(self) -> ListHistory:
        """The list that the message is about."""
        stream = self.conversation.stream if (self.revision or "") < MODERN else None
        return self.state.listing(stream, self.method.removeprefix("notifications/").removesuffix("_changed"))

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """The tasks whose status the message reports."""
        is_modern = (self.revision or "") >= MODERN
        if self.method in TASK_NOTIFICATIONS:
            return [self.params]
        if not isinstance(self.what, Result):
            return []
        if self.method == "tasks/get" or (self.method == "tasks/cancel" and not is_modern):
            return [self.result]
        if not self.what.is_task:
            return []
        return objects([self.result if is_modern else self.result.get("task")])

    def has_object(self, name: str) -> bool:
        """Return whether this member of the message exists and is an object."""
        return self._object(name) is not None

    @property
    def is_result(self) -> bool:
        """True for the result of a known request."""
        return isinstance(self.what, Result) and self.exchange is not None

    @property
    def capabilities(self) -> dict[str, Any] | None:
        """The server's capabilities; None until it has declared them."""
        if self.conversation.has_capabilities:
            return self.conversation.server_capabilities
        return self.state.server_capabilities

    @property
    def is_shaped(self) -> bool:
        """True for most messages: the shape of their params or result has no violations."""
        if self._violations is None:
            self._violations = self._check_shape()
        return not self._violations

    def violations(self, code: str) -> list[Report]:
        """Return the violations with this code of the shape of the params or the result (`shapes`)."""
        return [] if self.is_shaped or self._violations is None else self._violations.get(code, [])

    def _check_shape(self) -> dict[str, list[Report]]:
        what, method, document = self.what, self.method, self.document
        if isinstance(what, Result):
            kind, where = EventKind.RESULT, "result"
            if what.is_task:
                method = "task"
            elif (self.revision or LEGACY) >= MODERN and (result_type := what.result_type) != "complete":
                method = result_type
        else:
            kind, where = EventKind.REQUEST if isinstance(what, Request) else EventKind.NOTIFICATION, "params"
        value = document.get(where, {}) if isinstance(document, dict) else None
        shape = shape_of(kind, method, self.revision)
        return (
            {}
            if not isinstance(value, dict) or shape.accepts(value)
            else shape.violations(value, self.method)
        )

    def _object(self, name: str) -> dict[str, Any] | None:
        document = self._document
        if document is _READ_FAILS:
            document = self.document
        value = document.get(name) if isinstance(document, dict) else None
        return value if isinstance(value, dict) else None


def objects(value: Any) -> list[dict[str, Any]]:
    """Return the items of a list that are objects; none if it is not a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_line_limit(size: int) -> bool:
    """Return whether a line of this size, with or without its newline, probably reached a limit."""
    return size >= LINE_LIMIT - 1 and 0 in (size & (size - 1), size & (size + 1))


def is_truncated(data: bytes) -> bool:
    """Return whether data is the beginning of a JSON object or array, without its end."""
    try:
        decode(data.decode("utf-8", "ignore"), type=Raw)
    except DecodeError as error:
        return data.lstrip()[:1] in (b"{", b"[") and "truncated" in str(error)
    except RecursionError:
        pass
    return False


def is_number(value: Any) -> TypeGuard[int | float]:
    """Return whether a value is a JSON number; bool is an int in Python."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def seconds_of(milliseconds: Any) -> float | None:
    """Return milliseconds as seconds; None if they are not a number, or more than any float."""
    try:
        return milliseconds / 1000 if is_number(milliseconds) else None
    except OverflowError:
        return None


def is_unusual(message: Message, flaw: str | None) -> bool:
    """Return whether a message is flawed, part of a batch, or does not end with a newline."""
    frame = message.frame
    return (
        bool(message.flaws)
        or flaw is not None
        or message.index is not None
        or (frame.eol != "\n" and frame.http is None)
    )


def is_call(params: dict[str, Any]) -> bool:
    return (
        len(params) == 2 and isinstance(params.get("name"), str) and isinstance(params.get("arguments"), dict)
    )


def is_text(result: dict[str, Any]) -> bool:
    content = result.get("content")
    if len(result) != 1 or not isinstance(content, list):
        return False
    for block in content:
        if not isinstance(block, dict) or len(block) != 2 or block.get("type") != "text":
            return False
        if not isinstance(block.get("text"), str):
            return False
    return True
