"""What the rules know: of each conversation, and of the server behind all of them.

Owns the facts that several rules share, and keeps of each no more than they
need. Of HTTP conversations only the latest are kept: in 2026-07-28 every POST
is one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from msgspec import Struct

from mcpspy.analysis.lint.finding import Place
from mcpspy.analysis.lint.posts import Post
from mcpspy.analysis.lint.schemas import Checked, Schemas
from mcpspy.core.protocol.mcp_headers import ANNOTATION, NOTHING, ParamHeaders, mirrored
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.redact.prefilter import Prefilter
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.session.exchange import Exchange

KEPT = 4096
"""Of whatever a long session has without end, so many of the latest are remembered."""


class Asked(Struct, gc=False):
    """A request that waits for its answer."""

    exchange: Exchange
    conversation: Conversation
    place: Place
    number: int
    revision: str | None
    subject: str | None = None
    progress: float | None = None
    """The last that was reported."""


class Conversation(Peers):
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
        self.tokens: dict[tuple[str, str], Asked] = {}
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


class Tool(Struct):
    """A tool as the server listed it last."""

    definition: dict[str, Any]
    place: Place
    arguments: Checked
    output: Checked | None
    """None if it declares none."""
    mirrored: ParamHeaders = NOTHING


class Torn:
    """Lines in a row of one side that are no JSON, each by itself."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.number = -1
        """Of the last."""


class Known:
    """Everything the rules know of a recording."""

    def __init__(self, upstream: str | None) -> None:
        self.upstream = upstream
        self.conversations: OrderedDict[str | None, Conversation] = OrderedDict()
        self.revision: str | None = None
        """The one that was agreed on last, in any conversation."""
        self.open: dict[int, Asked] = {}
        """Identity of an exchange → its request, which waits for its answer."""
        self.posts: OrderedDict[int, Post] = OrderedDict()
        self.schemas = Schemas()
        self.tools: OrderedDict[str, Tool] = OrderedDict()
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
        self.torn = {CLIENT: Torn(), SERVER: Torn()}

    def conversation(self, stream: str | None) -> Conversation:
        """Return the conversation of a stream."""
        found = self.conversations.get(stream)
        if found is None:
            found = self.conversations[stream] = Conversation(stream)
            forget(self.conversations)
        return found

    def secrets_in(self, data: bytes) -> list[tuple[str, str]]:
        """Return what the redactor finds in a message: its rule, and where. Good until the next call."""
        self._secrets.clear()
        self._redactor.message(data)
        return self._secrets

    def learn_tools(self, listed: dict[str, Any], place: Place, data: bytes) -> None:
        """Take a page of tools, and the message it came in."""
        is_mirrored = ANNOTATION.encode() in data
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                output = tool.get("outputSchema")
                self.tools[name] = Tool(
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
