"""What the rules know: of each conversation, and of the server behind all of them.

Owns the facts that several rules share, and keeps of each no more than they
need. Of HTTP conversations only the latest are kept: in 2026-07-28 every POST
is one.

HTTP exchanges as they come: what each carried, until it is over.

Owns what an exchange is called by the rules that look at it (`about`). Keeps of
each message no more than they ask for, and only the latest exchanges.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec import Struct

from mcpspy.analysis.lint.finding import EntryPosition, EventKind
from mcpspy.analysis.lint.schemas import CheckedSchema, SchemaCache
from mcpspy.core.protocol.mcp_headers import ANNOTATION, NOTHING, ParamHeaders, mirrored
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.redact.prefilter import Prefilter
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.session.exchange import Exchange

NO_MESSAGE = ""
"""No message was posted: a GET, a DELETE."""

INTRODUCES = "initialize"

ASKS = "asks"
"""A request was posted, by a client that is past its introduction."""

TELLS = "tells"
"""Notifications or answers, and no request."""

UNREADABLE = "unreadable"
"""Something that is no message, and no request."""

SSE = "sse"
"""Anything over HTTP+SSE, the transport of 2024-11-05, where most of this is different."""

POSTED = (INTRODUCES, ASKS, TELLS, UNREADABLE)


class PostedMessage(Struct, gc=False):
    """A message in the body of a POST."""

    kind: EventKind
    method: str
    subject: str | None
    revision: str | None
    """What it says of itself."""


class HttpPost(Struct, gc=False):
    """An HTTP exchange, as far as it has come."""

    place: EntryPosition
    number: int
    at: float
    posted: list[PostedMessage]
    answers: list[int | None]
    """Of each answer in the response: the error's code, None for a result."""
    heard: int = 0
    """Messages in the response."""
    head: dict[str, Any] | None = None
    """The `http` note's fields."""
    mirrored: dict[str, str] | None = None
    """Headers that the arguments of the call in its body want, and their values."""

    @property
    def status(self) -> int:
        """The response's status; 0 if there is none."""
        status = (self.head or {}).get("status")
        return status if isinstance(status, int) else 0

    @property
    def request(self) -> dict[str, Any]:
        """The request's headers."""
        return self._headers("request")

    @property
    def response(self) -> dict[str, Any]:
        """The response's headers."""
        return self._headers("response")

    @property
    def revision(self) -> str | None:
        """What the requests in its body say of themselves."""
        return next((posted.revision for posted in self.posted if posted.revision), None)

    @property
    def introduces(self) -> bool:
        """Whether a handshake began in it."""
        return any(posted.method == "initialize" for posted in self.posted)

    def said(self, *, is_sse: bool) -> str:
        """Return what it carried, as rules are `about` it."""
        if is_sse:
            return SSE
        kinds = {posted.kind for posted in self.posted}
        if EventKind.REQUEST in kinds:
            return INTRODUCES if self.introduces else ASKS
        if EventKind.MALFORMED in kinds:
            return UNREADABLE
        return TELLS if kinds else NO_MESSAGE

    def carry(self, what: AnyMessage, kind: EventKind, method: str, subject: str | None) -> None:
        """Take a message of its body, or of its response."""
        if what.frame.side == CLIENT:
            revision = what.revision if isinstance(what, Request) and what.body.meta else None
            self.posted.append(PostedMessage(kind, method, subject, revision))
            return
        self.heard += 1
        if isinstance(what, Result | Failure):
            self.answers.append(what.code if isinstance(what, Failure) else None)

    def _headers(self, name: str) -> dict[str, Any]:
        head = (self.head or {}).get(name)
        return head if isinstance(head, dict) else {}


KEPT = 4096
"""Of whatever a long session has without end, so many of the latest are remembered."""


class PendingRequest(Struct, gc=False):
    """A request that waits for its answer."""

    exchange: Exchange
    conversation: ConversationState
    place: EntryPosition
    number: int
    revision: str | None
    subject: str | None = None
    progress: float | None = None
    """The last that was reported."""


class ConversationState(Peers):
    """One client and one server, as far as they have come."""

    def __init__(self, stream: str | None) -> None:
        super().__init__()
        self.stream = stream
        self.has_asked = False
        """Whether `initialize` was sent."""
        self.is_agreed = False
        """Whether it was answered by a result."""
        self.is_initialized = False
        self.introduced = False
        """Whether the server has told its capabilities here."""
        self.is_sse = False
        """Whether it is HTTP+SSE, the transport of 2024-11-05, whatever revision is spoken over it."""
        self.log_level: str | None = None
        self.wants_logs = False
        """Whether a request said a log level of its own (2026-07-28)."""
        self.tokens: dict[tuple[str, str], PendingRequest] = {}
        """Side that asked and progress token → the request."""
        self.cursors: dict[str, set[str]] = {}
        """Method → the cursors of the listing under way."""
        self.was_malformed = {CLIENT: False, SERVER: False}
        """Whether that side sent something unreadable that nobody has answered yet."""
        self.has_notified = {CLIENT: False, SERVER: False}
        """Whether the last that side sent was a notification."""
        self.closed_at: float | None = None
        """When the client closed the server's stdin, in seconds since the start."""

    @property
    def is_usual(self) -> bool:
        """Whether it is under way: past its beginning, and before its end."""
        return self.is_initialized and self.closed_at is None


class ListedTool(Struct):
    """A tool as the server listed it last."""

    definition: dict[str, Any]
    place: EntryPosition
    arguments: CheckedSchema
    output: CheckedSchema | None
    """None if it declares none."""
    mirrored: ParamHeaders = NOTHING


class NonJsonRun:
    """Lines in a row of one side that are no JSON, each by itself."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.number = -1
        """Of the last."""


class LintState:
    """Everything the rules know of a recording."""

    def __init__(self, upstream: str | None) -> None:
        self.upstream = upstream
        self.conversations: OrderedDict[str | None, ConversationState] = OrderedDict()
        self.revision: str | None = None
        """The one that was agreed on last, in any conversation."""
        self.open: dict[int, PendingRequest] = {}
        """Identity of an exchange → its request, which waits for its answer."""
        self.posts: OrderedDict[int, HttpPost] = OrderedDict()
        self.schemas = SchemaCache()
        self.tools: OrderedDict[str, ListedTool] = OrderedDict()
        self.tasks: OrderedDict[str, str] = OrderedDict()
        """Task → its status."""
        self.is_listed = False
        """Whether a listing of the tools came to its end."""
        self.server_capabilities: dict[str, Any] | None = None
        self.session_ids: set[str] = set()
        self.events: OrderedDict[tuple[str | None, str], int] = OrderedDict()
        """Stream and id of a server-sent event → hash of its message."""
        self.gate = Prefilter()
        self._secrets: list[tuple[str, str]] = []
        self._redactor = Redactor(b"", found=lambda rule, pointer: self._secrets.append((rule, pointer)))
        self.torn = {CLIENT: NonJsonRun(), SERVER: NonJsonRun()}

    def conversation(self, stream: str | None) -> ConversationState:
        """Return the conversation of a stream."""
        found = self.conversations.get(stream)
        if found is None:
            found = self.conversations[stream] = ConversationState(stream)
            forget(self.conversations)
        return found

    def secrets_in(self, data: bytes) -> list[tuple[str, str]]:
        """Return what the redactor finds in a message: its rule, and where. Good until the next call."""
        self._secrets.clear()
        self._redactor.message(data)
        return self._secrets

    def learn_tools(self, listed: dict[str, Any], place: EntryPosition, data: bytes) -> None:
        """Take a page of tools, and the message it came in."""
        is_mirrored = ANNOTATION.encode() in data
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                output = tool.get("outputSchema")
                self.tools[name] = ListedTool(
                    tool,
                    place,
                    self.schemas.check(tool.get("inputSchema")),
                    None if output is None else self.schemas.check(output),
                    mirrored(tool.get("inputSchema")) if is_mirrored else NOTHING,
                )
        forget(self.tools)
        self.is_listed = listed.get("nextCursor") is None


def forget(kept: OrderedDict[Any, Any]) -> None:
    """Drop what is older than the latest."""
    while len(kept) > KEPT:
        kept.popitem(last=False)
