"""The negotiated state of an HTTP connection, and the state of one body. No I/O.

Each message carries its own revision: requests of 2026-07-28 name it, and `initialize` starts a session.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mcpspy import __version__
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import SESSION
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result
from mcpspy.core.protocol.spec import MODERN

if TYPE_CHECKING:
    from mcpspy.io.client.http_exchange import ResponsePart


ACCEPTED_TYPES = "application/json, text/event-stream"

MCPSPY_HEADERS = {"Accept-Encoding": "identity", "User-Agent": f"mcpspy/{__version__}"}
"""Headers of every request. Identity, so that a recording shows the body as it was sent."""


class HttpState:
    """The state of a connection that determines its headers."""

    def __init__(self, extra: dict[str, str]) -> None:
        self.session: str | None = None
        self.stream: str | None = None
        """Name of the session in the recording, for revisions with a handshake."""
        self.is_modern = False
        """True if the last request was of a revision without sessions."""
        self.is_sse = False
        """True for HTTP+SSE (2024-11-05), which has neither sessions nor headers."""
        self._version: str | None = None
        """Revision that `initialize` negotiated or the last request named."""
        self._extra = extra
        self._tools = ToolParamHeaders()

    def begins(self, message: AnyMessage) -> bool:
        """Update the state for a message that will be sent. Return whether it starts a new session."""
        if not isinstance(message, Request):
            return False
        version = message.revision
        if version is not None and version >= MODERN:
            self.is_modern, self._version = True, version
        elif message.method == "initialize":
            self.is_modern, self._version, self.session = False, None, None
            if not self.is_sse:
                self.stream = None
            return True
        elif self.is_modern:
            self.is_modern, self._version = False, None
        return False

    def stream_of(self, message: AnyMessage) -> str | None:
        """Return the stream of a message that will be sent; None if it starts one."""
        if not isinstance(message, Request):
            return None if self.is_modern else self.stream
        is_modern = message.revision is not None and message.revision >= MODERN
        is_first = message.method == "initialize" and not self.is_sse
        return None if is_modern or is_first else self.stream

    def learn(self, result: Result, method: str | None) -> None:
        """Learn from a response what later messages must repeat."""
        if method == "tools/list":
            self._tools.learn(result)
        elif method == "initialize" and isinstance(fields := result.result, dict):
            version = fields.get("protocolVersion")
            self._version = version if isinstance(version, str) else None

    def headers(self, message: AnyMessage | None) -> dict[str, str]:
        """Return the headers for a message, or for a GET or DELETE if it is None."""
        found = {"Accept": ACCEPTED_TYPES}
        if message is not None:
            found["Content-Type"] = "application/json"
        if self.is_modern and isinstance(message, Request):
            found |= mcp_headers.headers(message) | self._tools.headers(message)
        elif self.is_modern and isinstance(message, Notification):
            found |= {
                mcp_headers.VERSION: self._version or MODERN,
                mcp_headers.METHOD: mcp_headers.encoded(message.method),
            }
        elif not self.is_sse:
            if self.session is not None:
                found[SESSION] = self.session
            if self._version is not None:
                found["MCP-Protocol-Version"] = self._version
        return {**found, **MCPSPY_HEADERS, **self._extra}


EVENTS_KEPT = 64
"""Events of a stream that are compared with those of the stream that resumes it."""


class BodyState:
    """The messages of one POST; a GET has none."""

    def __init__(self, messages: Iterable[AnyMessage], session: str | None) -> None:
        self.requests = {message.id: message.method for message in messages if isinstance(message, Request)}
        """Methods of the requests, by id."""
        self.pending = list(self.requests)
        """Ids of requests without a response so far."""
        self.session = session
        """Session in which it was sent."""
        self.last_id: str | None = None
        """Id of the event after which to resume."""
        self.retry: int | None = None
        """Milliseconds to wait before resuming, if the server specified them."""
        self._received: dict[str, int] = {}
        """Id → hash of the message, of the last EVENTS_KEPT events."""

    def is_repeated(self, event: ResponsePart) -> bool:
        """Note an event. Return whether it was received before, which servers do when a stream is resumed.

        A server may also use one id for several events, so the message counts too.
        """
        self.last_id, self.retry = event.id or self.last_id, event.retry or self.retry
        if event.id is None:
            return False
        before, now = self._received.pop(event.id, None), hash(event.data)
        self._received[event.id] = now
        if len(self._received) > EVENTS_KEPT:
            del self._received[next(iter(self._received))]
        return before == now

    @property
    def only_request_id(self) -> str | None:
        """The id of the request, if there is exactly one."""
        return next(iter(self.requests)) if len(self.requests) == 1 else None

    @property
    def is_initialize(self) -> bool:
        return "initialize" in self.requests.values()

    def settle(self, answer: Result | Failure, status: int) -> None:
        """Mark a request as answered, by its id, or by an error status if it is the only one."""
        if answer.id in self.pending:
            self.pending.remove(answer.id)
        elif status >= 400 and len(self.requests) == 1:
            self.pending.clear()
