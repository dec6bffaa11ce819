"""Messages, exchanges and the session that the hooks of a script get (docs/scripting.md).

A method such as `replace` or `drop` only notes what is to be done; mcpspy does it when all scripts have returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeAlias

from mcpspy.core.jsontools import json_parts, one_line
from mcpspy.core.protocol.http_headers import Headers, header_flaw
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Notification,
    Request,
    Result,
    read_frame,
)
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.edit import put, to_json
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State, outcome_of
from mcpspy.errors import UsageError
from mcpspy.ui.api.exchange import BaseExchange, BaseMessage, read_query

_query = cache(read_query)

Order: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]


class ScriptSession:
    """The session that the script runs in. Public as `mcpspy.LiveSession`.

    >>> def session_started(session: mcpspy.LiveSession) -> None:
    ...     session.note(f"{session.name} over {session.transport}")
    """

    def __init__(self, hello: dict[str, Any], order: Order, note: Callable[[str], None]) -> None:
        self._order = order
        self._note = note
        self.id: str = hello["session"]
        """The id of the session."""
        self.name: str = hello["name"]
        """The name of the session."""
        self.transport: str = hello["transport"]
        """`stdio` or `http`."""
        self.file: str | None = hello["file"]
        """The recording; None if nothing is recorded."""

    async def request(self, method: str, params: dict[str, Any] | None = None, to: str = "server") -> Any:
        """Inject a request to the server or, with `to="client"`, the client, and return the result.

        Its id is unique, and neither the request nor the response reaches the other peer. Raise McpspyError for an error
        response, before the handshake is complete, and at the end of the session.

        >>> async def request(exchange: mcpspy.LiveExchange) -> None:
        ...     if exchange.tool == "echo":
        ...         tools = await exchange.session.request("tools/list")
        ...         exchange.note(f"the server has {len(tools['tools'])} tools")
        """
        return await self._order("request", {"to": to, "method": method, "params": params})

    async def notify(self, method: str, params: dict[str, Any] | None = None, to: str = "client") -> None:
        """Inject a notification. Raise McpspyError if it cannot be delivered."""
        await self._order("notify", {"to": to, "method": method, "params": params})

    def note(self, text: str) -> None:
        """Add a note to the recording. At the end of the session it is too late."""
        self._note(text)


class _Waiting:
    """A message or a head that waits for the scripts, with their decisions."""

    def __init__(self, session: ScriptSession) -> None:
        self.session: ScriptSession = session
        """The session."""
        self._effects: dict[str, Any] = {}
        self._saved: tuple[Any, dict[str, Any]] = None, {}
        """Content and effects before the current hook."""

    def tag(self, *tags: str) -> None:
        """Add notes with these tags to the recording."""
        self._effects["tags"] = [*self._effects.get("tags", ()), *map(str, tags)]

    def note(self, text: str) -> None:
        """Add a note about it to the recording."""
        self._effects["notes"] = [*self._effects.get("notes", ()), str(text)]


class LiveMessage(_Waiting, BaseMessage):
    """A message that waits for the scripts. Public as `mcpspy.LiveMessage`.

    >>> def notification(message: mcpspy.LiveMessage) -> None:
    ...     if message.method == "notifications/message":
    ...         message.replace(params={**message.params, "logger": "checked"})
    """

    def __init__(self, session: ScriptSession, message: AnyMessage) -> None:
        super().__init__(session)
        self._message: AnyMessage = message
        self._exchange: LiveExchange | None = None
        """The exchange of a response."""

    @property
    def kind(self) -> str:
        """`request`, `notification`, `result`, `error` or `malformed`."""
        return self._message.kind

    @property
    def method(self) -> str:
        """The method; for a response, that of its request."""
        message = self._message
        if isinstance(message, Request | Notification):
            return message.method
        return "" if self._exchange is None else self._exchange.method

    @property
    def subject(self) -> str:
        """Name or URI of the tool, resource or prompt; empty if there is none."""
        message = self._message
        if isinstance(message, Request | Notification):
            return message.subject or ""
        return "" if self._exchange is None else self._exchange.subject

    @property
    def data(self) -> bytes:
        """The bytes of the message as they would be sent: the peer's own, or a replacement."""
        return self._message.data

    @property
    def params(self) -> Any:
        """The decoded params; None if there are none."""
        return self._message.params if isinstance(self._message, Request | Notification) else None

    def matches(self, query: str) -> bool:
        """Return whether a filter (docs/filter.md) finds the message. Raise UsageError for an invalid filter."""
        if self._exchange is not None:
            return self._exchange.matches(query)
        from mcpspy.core.session.session import Change
        from mcpspy.ui.model.filter_items import ChangeItem

        return _query(query).matches(ChangeItem(Change(-1, self._message)))

    def replace(
        self, message: dict[str, Any] | bytes | str | None = None, *, params: Any = None, result: Any = None
    ) -> None:
        """Send another message instead, or the same with other params or another result.

        Bytes and text are sent as they are. Raise UsageError unless there is exactly one argument, or for text of
        several lines that is not JSON. The recording has both: what the peer sent, and what was sent instead.
        """
        if (message is not None) + (params is not None) + (result is not None) != 1:
            raise UsageError("replace: needs exactly one of message, params and result")
        try:
            if message is None:
                member, value = ("params", params) if params is not None else ("result", result)
                data = put(self._message.data, (member,), value)
            elif isinstance(message, dict):
                data = to_json(message)
            else:
                data = message.encode() if isinstance(message, str) else bytes(message)
            if b"\n" in data or b"\r" in data:
                json_parts(data)
                data = one_line(data).strip()
            text = data.decode()
        except ValueError as error:
            raise UsageError(f"replace: neither one line nor JSON in UTF-8: {error}") from None
        if not text:
            raise UsageError("replace: the message is empty", "use drop()")
        old = self._message
        (self._message, *_) = read_frame(Frame(old.at, old.side, text.encode(), old.frame.stream))
        self._effects["text"] = text

    def drop(self) -> None:
        """Do not forward the message. The requester gets no response."""
        self._effects["drop"] = True

    def delay(self, seconds: float) -> None:
        """Forward the message some seconds later. Later messages overtake it. Raise UsageError for a negative number."""
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"delay: {seconds}: not a number of seconds")
        self._effects["delay"] = self._effects.get("delay", 0.0) + seconds

    def hold(self) -> None:
        """Hold the message until a viewer, such as the terminal UI, or --hold-timeout releases it."""
        self._effects["hold"] = True

    def __repr__(self) -> str:
        words = " ".join(filter(None, (self.side, self.kind, self.method, self.subject)))
        return sanitize(f"<mcpspy.LiveMessage {words}>")


class LiveExchange(BaseExchange):
    """A request, and in the hook `response` its response. Public as `mcpspy.LiveExchange`.

    The methods that change something are about the response if there is one, otherwise about the request.

    >>> def request(exchange: mcpspy.LiveExchange) -> None:
    ...     if exchange.arguments.get("message") == "delete everything":
    ...         exchange.answer(error={"code": -32000, "message": "not allowed"})
    >>> def response(exchange: mcpspy.LiveExchange) -> None:
    ...     if exchange.latency > 1:
    ...         exchange.tag("slow")
    """

    def __init__(self, request: LiveMessage | Frame, response: LiveMessage | None = None) -> None:
        """The request of a response may be a frame, which is decoded when a hook needs it."""
        self._request = request
        self.response: LiveMessage | None = response
        """The response, in the hook `response`; None in `request`."""
        if response is not None:
            response._exchange = self

    @property
    def request(self) -> LiveMessage:
        """The request."""
        if isinstance(self._request, Frame):
            self._request = LiveMessage(self.session, read_frame(self._request)[0])
        return self._request

    @property
    def session(self) -> ScriptSession:
        """The session."""
        if self.response is not None:
            return self.response.session
        return self.request.session

    @property
    def _asked(self) -> AnyMessage:
        return self.request._message

    @property
    def _answered(self) -> AnyMessage | None:
        return None if self.response is None else self.response._message

    @property
    def status(self) -> str:
        """The state, as in the filter language: `pending`, `ok`, `error`, `tool error` …"""
        message = self._answered
        return (outcome_of(message) if isinstance(message, Result | Failure) else State.PENDING).value

    @property
    def latency(self) -> float | None:
        """Seconds from request to response; None without a response."""
        return None if self.response is None else self.response.at - self.request.at

    @property
    def message(self) -> LiveMessage:
        """The message that waits: the response if there is one, otherwise the request."""
        return self.request if self.response is None else self.response

    def matches(self, query: str) -> bool:
        """Return whether a filter (docs/filter.md) finds the exchange, its request or its response.

        Raise UsageError for an invalid filter.
        """
        asked, answered = self._asked, self._answered
        if not isinstance(asked, Request):  # A script has replaced it with something else.
            return self.request.matches(query)
        from mcpspy.core.session.exchange import Exchange
        from mcpspy.ui.model.filter_items import exchange_matches

        response = answered if isinstance(answered, Result | Failure) else None
        return exchange_matches(_query(query), Exchange(0, asked, State(self.status), response))

    def answer(self, result: dict[str, Any] | None = None, *, error: dict[str, Any] | None = None) -> None:
        """Respond in the peer's place; the request is not forwarded. Only in the hook `request`.

        `error` has `code` and `message`, and may have `data`. Raise UsageError unless there is exactly one argument.
        """
        if self.response is not None:
            raise UsageError("answer: the request has a response", "use replace(result=…)")
        if (result is None) == (error is None):
            raise UsageError("answer: needs either a result or an error")
        if error is not None and not (
            isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
        ):
            raise UsageError("answer: error needs an integer code and a string message")
        self.request._effects |= {"result": result} if error is None else {"error": error}

    def replace(
        self, message: dict[str, Any] | bytes | str | None = None, *, params: Any = None, result: Any = None
    ) -> None:
        """Replace the message that waits, as `LiveMessage.replace` does."""
        self.message.replace(message, params=params, result=result)

    def drop(self) -> None:
        """Do not forward the message that waits."""
        self.message.drop()

    def delay(self, seconds: float) -> None:
        """Forward the message that waits some seconds later. Later messages overtake it."""
        self.message.delay(seconds)

    def hold(self) -> None:
        """Hold the message that waits, until a viewer or --hold-timeout releases it."""
        self.message.hold()

    def tag(self, *tags: str) -> None:
        """Add notes with these tags to the recording."""
        self.message.tag(*tags)

    def note(self, text: str) -> None:
        """Add a note about the message that waits to the recording."""
        self.message.note(text)

    def __repr__(self) -> str:
        words = " ".join(filter(None, (self.method, self.subject)))
        return sanitize(f"<mcpspy.LiveExchange {words}: {self.status}>")


class LiveHead(_Waiting):
    """The head of an HTTP request or response that waits for the scripts. Public as `mcpspy.LiveHead`.

    Names of headers are compared without case. Those of the connection and Content-Length are not among them.

    >>> def http_request(head: mcpspy.LiveHead) -> None:
    ...     head.set("X-Request-Source", "mcpspy")
    """

    def __init__(self, session: ScriptSession, fields: dict[str, Any]) -> None:
        super().__init__(session)
        self.at: float = fields["at"]
        """Seconds since the start of the session."""
        self.method: str = fields["method"]
        """The method of the request, such as `POST`."""
        self.path: str = fields["path"]
        """The target of the request: path and query."""
        self.status: int | None = fields["status"]
        """The status of a response; None for a request."""
        self._message = [(name, value) for name, value in fields["headers"]]

    @property
    def headers(self) -> list[tuple[str, str]]:
        """A copy of the headers, in their order, as they would be sent."""
        return list(self._message)

    def get(self, name: str) -> str | None:
        """Return the first value of a header; None without one."""
        return next((value for each, value in self._message if each.lower() == name.lower()), None)

    def add(self, name: str, value: str) -> None:
        """Add a header after the others. Raise UsageError for one that only mcpspy sets, or that is invalid."""
        if why := header_flaw(name, value):
            raise UsageError(f"header {why}")
        self._change([*self._message, (name, value)])

    def set(self, name: str, value: str) -> None:
        """Replace all headers of this name with one, as `add` does."""
        before = self._message
        self.add(name, value)
        self._change([*(pair for pair in before if pair[0].lower() != name.lower()), (name, value)])

    def remove(self, name: str) -> None:
        """Remove all headers of this name, if there are any."""
        rest = [pair for pair in self._message if pair[0].lower() != name.lower()]
        if rest != self._message:
            self._change(rest)

    def _change(self, headers: Headers) -> None:
        self._message = self._effects["headers"] = headers

    def __repr__(self) -> str:
        status = "" if self.status is None else f": {self.status}"
        return sanitize(f"<mcpspy.LiveHead {self.method} {self.path}{status}>")
