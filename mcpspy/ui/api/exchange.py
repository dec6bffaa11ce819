"""Common properties of the messages and exchanges of recorded and of live sessions.

It imports almost nothing, because the process that runs scripts uses it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpspy.core.protocol.message import AnyMessage, Failure, Message, Notification, Request, Result, loads

if TYPE_CHECKING:
    from mcpspy.core.query.parser import Query


class BaseMessage:
    """A message. A subclass has it as `_message`."""

    __slots__ = ()
    _message: Message

    @property
    def at(self) -> float:
        """Seconds since the start of the session."""
        return self._message.at

    @property
    def side(self) -> str:
        """The sender: `client` or `server`."""
        return self._message.side

    @property
    def stream(self) -> str | None:
        """Over HTTP, the stream in which ids are matched (docs/format.md); None on stdio."""
        return self._message.frame.stream

    @property
    def json(self) -> Any:
        """The decoded message: an object for JSON-RPC, as a dict. None if it is not JSON."""
        return loads(self._message.data)


class BaseExchange:
    """A request and its response. A subclass returns both, the status and the latency."""

    __slots__ = ()

    @property
    def _asked(self) -> AnyMessage:
        """The request; a script may have replaced it with something else."""
        raise NotImplementedError

    @property
    def _answered(self) -> AnyMessage | None:
        raise NotImplementedError

    @property
    def at(self) -> float:
        """Time of the request: seconds since the start of the session."""
        return self._asked.at

    @property
    def side(self) -> str:
        """The requester: `client` or `server`."""
        return self._asked.side

    @property
    def id(self) -> Any:
        """The JSON-RPC id: a number or a text."""
        return loads(self._asked.id.encode()) if isinstance(self._asked, Request) else None

    @property
    def method(self) -> str:
        """The method, such as `tools/call`."""
        return self._asked.method if isinstance(self._asked, Request | Notification) else ""

    @property
    def subject(self) -> str:
        """Name or URI of the tool, resource or prompt; empty if there is none."""
        return (self._asked.subject or "") if isinstance(self._asked, Request | Notification) else ""

    @property
    def params(self) -> Any:
        """The decoded params; None if there are none."""
        return self._asked.params if isinstance(self._asked, Request | Notification) else None

    @property
    def tool(self) -> str:
        """The name of the called tool; empty for other requests."""
        return self.subject if self.method == "tools/call" else ""

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments for a tool or a prompt; empty if the request has none."""
        found = self.params.get("arguments") if isinstance(self.params, dict) else None
        return found if isinstance(found, dict) else {}

    @property
    def result(self) -> Any:
        """The decoded result; None without one."""
        return self._answered.result if isinstance(self._answered, Result) else None

    @property
    def error(self) -> Any:
        """The decoded JSON-RPC error; None without one. A tool error is a `result`."""
        return self._answered.error if isinstance(self._answered, Failure) else None


def read_query(text: str) -> Query:
    """Return the query of a filter (docs/filter.md). Raise UsageError."""
    from mcpspy.core.query.parser import QueryError, parse

    try:
        return parse(text)
    except QueryError as error:
        raise error.located("filter", "see docs/filter.md") from None
