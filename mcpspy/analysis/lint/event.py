"""One thing that happened, as a rule sees it.

Owns what all rules share of it: each is worked out at most once, and only if one of them asks.
"""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Struct

from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.analysis.lint.state import ConversationState, HttpPost, LintState, ListedTool, PendingRequest
from mcpspy.core.protocol.message import AnyMessage, Failure, Message, Notification, Request, Result, loads
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.session.exchange import Exchange

_UNREAD = object()

_FOLD = bytes(0x30 if 0x30 <= byte <= 0x39 else byte for byte in bytes(range(256)).lower())


class LintEvent(Struct, gc=False, eq=False):
    """A message, a note, the end of an HTTP exchange, or a request that got no answer."""

    what: AnyMessage | Note | Damaged
    known: LintState
    conversation: ConversationState
    place: EntryPosition
    number: int
    revision: str | None
    method: str = ""
    """Its own, or that of the request it answers; of an HTTP exchange, what it carried; empty if none is known."""
    side: str = ""
    exchange: Exchange | None = None
    flaw: str | None = None
    pending: PendingRequest | None = None
    """The request that it answers, or reports on."""
    subject: str | None = None
    """Which tool, resource, prompt … the request is about, or the one that it answers."""
    post: HttpPost | None = None
    is_unusual: bool = True
    """Whether there is something about it, or the time it comes at, that most messages do not have."""
    blocks: list[Any] | None = None
    """Its content blocks, once a rule has asked for them."""
    _document: Any = _UNREAD
    _params: dict[str, Any] | None = None
    _result: dict[str, Any] | None = None
    _is_compact: bool | None = None
    _folded: bytes | None = None

    @property
    def at(self) -> float:
        """Seconds since the recording started."""
        return self.what.at

    @property
    def message(self) -> Message:
        """The message."""
        return self.what  # type: ignore[return-value]  # A rule for messages.

    @property
    def data(self) -> bytes:
        """The message's own bytes."""
        return self.what.data  # type: ignore[union-attr]  # A rule for messages.

    @property
    def request(self) -> Request:
        """The request, or the one that is answered."""
        return self.what if isinstance(self.what, Request) or self.exchange is None else self.exchange.request  # type: ignore[return-value]  # A rule for requests.

    @property
    def tool(self) -> ListedTool | None:
        """The tool that the call is of, or the answer to one; None if it was not listed."""
        tool: ListedTool | None = self.known.tools.get(self.subject or "")
        return tool

    @property
    def notification(self) -> Notification:
        """The notification."""
        return self.what  # type: ignore[return-value]  # A rule for notifications.

    @property
    def note(self) -> Note:
        """The note."""
        return self.what  # type: ignore[return-value]  # A rule for notes.

    @property
    def failure(self) -> Failure:
        """The error response."""
        return self.what  # type: ignore[return-value]  # A rule for errors.

    @property
    def document(self) -> Any:
        """The message, decoded; None if that cannot be."""
        if self._document is _UNREAD:
            try:
                self._document = orjson.loads(self.data)
            except ValueError:
                self._document = loads(self.data.decode("utf-8", "replace").encode())
        return self._document

    @property
    def is_compact(self) -> bool:
        """Whether it is written as orjson would write it: then no key is there twice, and its bytes hide nothing."""
        if self._is_compact is None:
            try:
                self._is_compact = orjson.dumps(self.document) == self.data
            except TypeError:  # Integers beyond 64 bits, lone surrogates.
                self._is_compact = False
        return self._is_compact

    @property
    def folded(self) -> bytes:
        """Its bytes, letters in lower case and every digit a 0: to search for words and for numbers."""
        if self._folded is None:
            self._folded = self.data.translate(_FOLD)
        return self._folded

    @property
    def is_text(self) -> bool:
        """Whether it is a result as tools have it, of plain text and nothing else."""
        return self.is_result and _is_text(self.result)

    @property
    def params(self) -> dict[str, Any]:
        """`params`; empty if it is no object."""
        if self._params is None:
            self._params = self._object("params") or {}
        return self._params

    @property
    def result(self) -> dict[str, Any]:
        """`result`; empty if it is no object."""
        if self._result is None:
            self._result = self._object("result") or {}
        return self._result

    @property
    def error(self) -> Any:
        """`error`."""
        document = self.document
        return document.get("error") if isinstance(document, dict) else None

    def has_object(self, name: str) -> bool:
        """Whether this member of the message is there, and an object."""
        return self._object(name) is not None

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

    def _object(self, name: str) -> dict[str, Any] | None:
        document = self.document
        value = document.get(name) if isinstance(document, dict) else None
        return value if isinstance(value, dict) else None


def is_unusual(message: Message, flaw: str | None) -> bool:
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
