"""Messages, exchanges and the session that the hooks of a script get (docs/scripting.md).

A method such as `replace` or `drop` only notes what is to be done; mcpspy does it when all scripts have returned.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from mcpspy.core.jsontools import one_line
from mcpspy.core.protocol.message import (
    AnyMessage,
    Failure,
    Malformed,
    Notification,
    Request,
    Result,
    loads,
    read_frame,
)
from mcpspy.core.recording.decode import Frame
from mcpspy.core.rules.edit import put, to_json
from mcpspy.core.session.exchange import State, outcome_of
from mcpspy.errors import UsageError
from mcpspy.ui.api.exchange import BaseExchange

_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "result",
    Failure: "error",
    Malformed: "malformed",
}

Order: TypeAlias = Callable[[str, dict[str, Any]], Awaitable[Any]]


class ScriptSession:
    """The session that the script runs in. Public as `mcpspy.LiveSession`."""

    def __init__(self, hello: dict[str, Any], order: Order, note: Callable[[str], None]) -> None:
        self._order = order
        self._note = note
        self.id: str = hello["session"]
        self.name: str = hello["name"]
        self.transport: str = hello["transport"]
        """`stdio` or `http`."""
        self.file: str | None = hello["file"]
        """The recording; None if nothing is recorded."""

    async def request(self, method: str, params: dict[str, Any] | None = None, to: str = "server") -> Any:
        """Inject a request and return the result. The peers do not notice: its id is unique.

        Raise McpspyError for an error response, before the handshake is complete, and at the end of the session.
        """
        return await self._order("request", {"to": to, "method": method, "params": params})

    async def notify(self, method: str, params: dict[str, Any] | None = None, to: str = "client") -> None:
        """Inject a notification. Raise McpspyError if it cannot be delivered."""
        await self._order("notify", {"to": to, "method": method, "params": params})

    def note(self, text: str) -> None:
        """Add a note to the recording. At the end of the session it is too late."""
        self._note(text)


class LiveMessage:
    """A message that waits for the scripts. Public as `mcpspy.LiveMessage`."""

    def __init__(self, session: ScriptSession, message: AnyMessage) -> None:
        self.session = session
        self._message = message
        self._exchange: LiveExchange | None = None
        """The exchange of a response."""
        self._effects: dict[str, Any] = {}
        self._saved = message, self._effects
        """Message and effects before the current hook."""

    @property
    def at(self) -> float:
        """Seconds since the start of the session."""
        return self._message.at

    @property
    def side(self) -> str:
        """The sender: `client` or `server`."""
        return self._message.side

    @property
    def kind(self) -> str:
        """`request`, `notification`, `result`, `error` or `malformed`."""
        return _KINDS[type(self._message)]

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
    def json(self) -> Any:
        """The decoded message; None if it is not JSON."""
        return loads(self._message.data)

    @property
    def params(self) -> Any:
        """The decoded params; None if there are none."""
        return self._message.params if isinstance(self._message, Request | Notification) else None

    def replace(
        self, message: dict[str, Any] | bytes | str | None = None, *, params: Any = None, result: Any = None
    ) -> None:
        """Send another message instead, or the same with other params or another result.

        Bytes and text are sent as they are. Raise UsageError unless there is exactly one argument, or for text of
        several lines that is not JSON.
        """
        if (message is not None) + (params is not None) + (result is not None) != 1:
            raise UsageError("replace: needs exactly one of message, params and result")
        if message is None:
            member, value = ("params", params) if params is not None else ("result", result)
            data = put(self._message.data, (member,), value)
        elif isinstance(message, dict):
            data = to_json(message)
        else:
            data = message.encode() if isinstance(message, str) else bytes(message)
        try:
            text = (one_line(data).strip() if b"\n" in data or b"\r" in data else data).decode()
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
        """Forward the message later. Later messages overtake it."""
        if not 0 <= seconds < float("inf"):
            raise UsageError(f"delay: {seconds}: not a number of seconds")
        self._effects["delay"] = self._effects.get("delay", 0.0) + seconds

    def hold(self) -> None:
        """Hold the message until a viewer, such as the terminal UI, or --hold-timeout releases it."""
        self._effects["hold"] = True

    def tag(self, *tags: str) -> None:
        """Add notes with these tags to the recording."""
        self._effects["tags"] = [*self._effects.get("tags", ()), *map(str, tags)]

    def note(self, text: str) -> None:
        """Add a note about this message to the recording."""
        self._effects["notes"] = [*self._effects.get("notes", ()), str(text)]

    def __repr__(self) -> str:
        return f"<mcpspy.LiveMessage {self.side} {self.kind} {self.method} {self.subject}>".replace(" >", ">")


class LiveExchange(BaseExchange):
    """A request, and in the hook `response` its response. Public as `mcpspy.LiveExchange`.

    The methods that change something are about the response if there is one, otherwise about the request.
    """

    def __init__(self, request: LiveMessage | Frame, response: LiveMessage | None = None) -> None:
        """The request of a response may be a frame, which is decoded when a hook needs it."""
        self._request = request
        self.response = response
        if response is not None:
            response._exchange = self

    @property
    def request(self) -> LiveMessage:
        if isinstance(self._request, Frame):
            self._request = LiveMessage(self.session, read_frame(self._request)[0])
        return self._request

    @property
    def session(self) -> ScriptSession:
        if self.response is not None:
            return self.response.session
        return self.request.session

    @property
    def at(self) -> float:
        """Time of the request: seconds since the start of the session."""
        return self.request.at

    @property
    def side(self) -> str:
        """The requester: `client` or `server`."""
        return self.request.side

    @property
    def id(self) -> Any:
        """The JSON-RPC id."""
        message = self.request._message
        return loads(message.id.encode()) if isinstance(message, Request) else None

    @property
    def method(self) -> str:
        return self.request.method

    @property
    def subject(self) -> str:
        """Name or URI of the tool, resource or prompt; empty if there is none."""
        return self.request.subject

    @property
    def params(self) -> Any:
        """The decoded params; None if there are none."""
        return self.request.params

    @property
    def result(self) -> Any:
        """The decoded result; None without one."""
        message = None if self.response is None else self.response._message
        return message.result if isinstance(message, Result) else None

    @property
    def error(self) -> Any:
        """The decoded JSON-RPC error; None without one. A tool error is a `result`."""
        message = None if self.response is None else self.response._message
        return message.error if isinstance(message, Failure) else None

    @property
    def status(self) -> str:
        """The state, as in the filter language: `pending`, `ok`, `error`, `tool error` …"""
        message = None if self.response is None else self.response._message
        return (outcome_of(message) if isinstance(message, Result | Failure) else State.PENDING).value

    @property
    def latency(self) -> float | None:
        """Seconds from request to response; None without a response."""
        return None if self.response is None else self.response.at - self.request.at

    @property
    def message(self) -> LiveMessage:
        """The message that waits: the response if there is one, otherwise the request."""
        return self.request if self.response is None else self.response

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
        """Forward the message that waits later. Later messages overtake it."""
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
        return f"<mcpspy.LiveExchange {self.method} {self.subject}: {self.status}>".replace(" :", ":")
