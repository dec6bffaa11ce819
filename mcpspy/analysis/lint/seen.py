"""One thing that happened, as a rule sees it.

Owns decoding, at most once for all rules and only if one of them asks.
"""

from __future__ import annotations

from typing import Any, cast

import orjson

from mcpspy.analysis.lint.conversation import Asked, Conversation, Known, Post
from mcpspy.analysis.lint.finding import Place
from mcpspy.core.exchange import Exchange
from mcpspy.core.message import AnyMessage, Failure, Message, Notification, Request, Result, loads
from mcpspy.core.record import Damaged, Note

_UNREAD = object()


class Seen:
    """A message, a note, the end of an HTTP exchange, or a request that got no answer."""

    __slots__ = (
        "_document",
        "_params",
        "_result",
        "_subject",
        "asked",
        "at",
        "conversation",
        "exchange",
        "flaw",
        "is_odd",
        "is_text",
        "known",
        "method",
        "number",
        "parts",
        "place",
        "post",
        "revision",
        "side",
        "what",
    )

    def __init__(
        self,
        what: AnyMessage | Note | Damaged,
        known: Known,
        conversation: Conversation,
        *,
        place: Place,
        number: int,
        revision: str | None,
        method: str = "",
        side: str = "",
        exchange: Exchange | None = None,
        flaw: str | None = None,
        asked: Asked | None = None,
        post: Post | None = None,
    ) -> None:
        self.what = what
        self.known = known
        self.conversation = conversation
        self.place = place
        self.number = number
        self.revision = revision
        self.method = method
        """Its own, or that of the request it answers; empty if neither is known."""
        self.side = side
        self.exchange = exchange
        self.flaw = flaw
        self.asked = asked
        self.post = post
        self.at = what.at
        self.is_odd = (
            not conversation.is_initialized
            or conversation.closed_at is not None
            or (isinstance(what, Message) and is_odd(what, flaw))
        )
        """Whether there is something about it, or the time it comes at, that most messages do not have."""
        self.is_text = False
        """Whether it is a tool's result of plain text, and nothing else."""
        self.parts: dict[str, Any] = {}
        """What a rule took out of it, for others to use."""
        self._document: Any = _UNREAD
        self._params: Any = None
        self._result: Any = None
        self._subject: Any = _UNREAD
        if method == "tools/call" and isinstance(what, Result) and exchange is not None:
            self.is_text = _is_text(self.result)

    @property
    def message(self) -> Message:
        """The message."""
        return cast(Message, self.what)

    @property
    def request(self) -> Request:
        """The request, or the one that is answered."""
        return self.what if isinstance(self.what, Request) or self.exchange is None else self.exchange.request  # type: ignore[return-value]  # A rule for requests.

    @property
    def subject(self) -> str | None:
        """Which tool, resource, prompt … the request is about."""
        subject = self._subject
        if subject is _UNREAD:
            is_answer = self.asked is not None and not isinstance(self.what, Request)
            subject = self.asked.subject if is_answer else self.request.subject  # type: ignore[union-attr]
            self._subject = subject
        return cast("str | None", subject)

    @property
    def notification(self) -> Notification:
        """The notification."""
        return cast(Notification, self.what)

    @property
    def note(self) -> Note:
        """The note."""
        return cast(Note, self.what)

    @property
    def failure(self) -> Failure:
        """The error response."""
        return cast(Failure, self.what)

    @property
    def document(self) -> Any:
        """The message, decoded; None if that cannot be."""
        if self._document is _UNREAD:
            data = self.message.data
            try:
                self._document = orjson.loads(data)
            except ValueError:
                self._document = loads(data.decode("utf-8", "replace").encode())
        return self._document

    @property
    def params(self) -> dict[str, Any]:
        """`params`; empty if it is no object."""
        if self._params is None:
            self._params = self._member("params")
        return cast("dict[str, Any]", self._params)

    @property
    def result(self) -> dict[str, Any]:
        """`result`; empty if it is no object."""
        if self._result is None:
            self._result = self._member("result")
        return cast("dict[str, Any]", self._result)

    @property
    def error(self) -> Any:
        """`error`."""
        document = self.document
        return document.get("error") if isinstance(document, dict) else None

    def has_object(self, name: str) -> bool:
        """Whether this member of the message is there, and an object."""
        document = self.document
        return isinstance(document, dict) and isinstance(document.get(name), dict)

    @property
    def is_result(self) -> bool:
        """Whether it is the result of a request that is known."""
        return isinstance(self.what, Result) and self.exchange is not None

    @property
    def capabilities(self) -> dict[str, Any] | None:
        """What the server declared; None if it has not been heard."""
        if self.conversation.introduced:
            return self.conversation.server_capabilities
        return self.known.server_capabilities

    def _member(self, name: str) -> dict[str, Any]:
        document = self.document
        value = document.get(name) if isinstance(document, dict) else None
        return value if isinstance(value, dict) else {}


def is_odd(message: Message, flaw: str | None) -> bool:
    """Whether the fold found a flaw in it, or it came in a batch, or did not end as a line does."""
    frame = message.frame
    return (
        bool(message.flaws)
        or flaw is not None
        or message.index is not None
        or (frame.eol != "\n" and frame.http is None)
    )


def _is_text(result: dict[str, Any]) -> bool:
    content = result.get("content")
    if len(result) != 1 or not isinstance(content, list):
        return False
    for block in content:
        if not isinstance(block, dict) or len(block) != 2 or block.get("type") != "text":
            return False
        if not isinstance(block.get("text"), str):
            return False
    return True
