"""State that the rules share: of conversations, of HTTP exchanges, and of the server behind them.

Keeps only the state that rules need, and only of the latest conversations and exchanges: in 2026-07-28 every POST
is a conversation. Owns the names by which rules select HTTP exchanges (`about`).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Raw, Struct, field

from mcpspy.analysis.lint.finding import EntryPosition, EventKind
from mcpspy.analysis.lint.host_profiles import HostProfile
from mcpspy.analysis.lint.schemas import CheckedSchema, SchemaCache
from mcpspy.core.protocol.listing import EVERY_LISTING, Listing, ListingPages, joined
from mcpspy.core.protocol.mcp_headers import ANNOTATION, NOTHING, ParamHeaders, param_headers
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result, meta_raw
from mcpspy.core.protocol.peers import Peers
from mcpspy.core.protocol.spec import CLIENT, META, SERVER, era
from mcpspy.core.recording.decode import Header
from mcpspy.core.redact.prefilter import builtin_prefilter
from mcpspy.core.redact.redactor import Redactor
from mcpspy.core.session.exchange import Exchange

T = TypeVar("T")

MESSAGE_TYPES = ("application/json", "text/event-stream")

STATUSES = ("working", "input_required", "completed", "failed", "cancelled")
"""Of tasks."""

ENDED = (*STATUSES[2:], "answered")
"""Statuses of tasks that are final; `answered` is that of a task whose result was read."""

NO_MESSAGE = ""
"""No message: a GET or a DELETE."""

INITIALIZES = "initialize"

REQUESTS = "requests"
"""A request other than `initialize`."""

NOTIFIES = "notifies"
"""Notifications or responses, and no requests."""

UNREADABLE = "unreadable"
"""Malformed content, and no requests."""

SSE = "sse"
"""Anything over HTTP+SSE, the transport of 2024-11-05, which has other rules."""

ANSWERED = (INITIALIZES, REQUESTS)
"""Content of a POST whose response must contain messages."""

POSTED = (INITIALIZES, REQUESTS, NOTIFIES, UNREADABLE)


class PostedMessage(Struct, gc=False):
    """A message in the body of a POST."""

    kind: EventKind
    method: str
    subject: str | None
    revision: str | None
    """The revision in its `_meta`."""
    has_capabilities: bool = True
    """False for a request of 2026-07-28 without the client's capabilities."""


class HttpPost(Struct, gc=False):
    """An HTTP exchange, up to its end."""

    place: EntryPosition
    number: int
    at: float
    posted: list[PostedMessage]
    answers: list[int | None]
    """Error code of each JSON-RPC response in the HTTP response; None for a result."""
    received: int = 0
    """Number of messages in the response."""
    head: dict[str, Any] | None = None
    """The `http` note's fields."""
    answered_at: float = 0.0
    """Time of the `http` note."""
    param_headers: dict[str, str | None] | None = None
    """Headers that repeat arguments of the call in its body, with their values; None for an absent one."""
    deferred: list[Any] = field(default_factory=list)
    """Events of malformed messages of the response, to be checked when it is known whether it was cut."""

    @property
    def status(self) -> int:
        """Status of the response; 0 if there is none."""
        status = (self.head or {}).get("status")
        return status if isinstance(status, int) else 0

    @property
    def request(self) -> dict[str, Any]:
        return self._headers("request")

    @property
    def response(self) -> dict[str, Any]:
        return self._headers("response")

    @property
    def revision(self) -> str | None:
        """The revision in the `_meta` of the requests in its body."""
        return next((posted.revision for posted in self.posted if posted.revision), None)

    @property
    def era(self) -> str | None:
        """The revision whose rules hold for the requests in its body, if they name one."""
        return None if self.revision is None else era(self.revision)

    @property
    def is_answered(self) -> bool:
        """True if each request in its body has its response."""
        requests = sum(posted.kind is EventKind.REQUEST for posted in self.posted)
        return 0 < requests <= len(self.answers)

    @property
    def verb(self) -> str:
        """The HTTP method; POST until the head of the response is known."""
        return str((self.head or {}).get("method", "POST"))

    @property
    def content_type(self) -> str:
        """Media type of the response, without parameters."""
        return str(self.response.get("content-type", "")).partition(";")[0].strip().lower()

    @property
    def is_json(self) -> bool:
        """True if the response has a type that contains messages."""
        return self.content_type in MESSAGE_TYPES

    @property
    def introduces(self) -> bool:
        """True if its body contains `initialize`."""
        return any(posted.method == "initialize" for posted in self.posted)

    def category(self, *, is_sse: bool) -> str:
        """Return its content category, in the terms of the rules' `about`."""
        if is_sse:
            return SSE
        kinds = {posted.kind for posted in self.posted}
        if EventKind.REQUEST in kinds:
            return INITIALIZES if self.introduces else REQUESTS
        if EventKind.MALFORMED in kinds:
            return UNREADABLE
        return NOTIFIES if kinds else NO_MESSAGE

    def add(self, what: AnyMessage, kind: EventKind, method: str, subject: str | None) -> None:
        """Add a message of its body or of its response."""
        if what.frame.side == CLIENT:
            meta = what.meta if isinstance(what, Request) else Raw(b"")
            revision = what.revision if isinstance(what, Request) and meta else None
            has_capabilities = bool(meta_raw(meta, META + "clientCapabilities"))
            self.posted.append(PostedMessage(kind, method, subject, revision, has_capabilities))
            return
        self.received += 1
        if isinstance(what, Result | Failure):
            self.answers.append(what.code if isinstance(what, Failure) else None)

    def _headers(self, name: str) -> dict[str, Any]:
        head = (self.head or {}).get(name)
        return head if isinstance(head, dict) else {}


KEPT = 4096
"""Maximum items that are kept of anything that grows with the session."""


class PendingRequest(Struct, gc=False):
    """A request without a response so far."""

    exchange: Exchange
    conversation: ConversationState
    place: EntryPosition
    number: int
    revision: str | None
    subject: str | None = None
    progress: float | None = None
    """The last reported progress."""
    hung_up: str | None = None
    """The side that closed its HTTP exchange before the response."""
    log_level: str | None = None
    """The `logLevel` in its `_meta`."""
    is_late: bool = False
    """The client had closed the server's stdin, so it cannot respond: another rule reports that."""


class ConversationState(Peers):
    """State of one client and one server."""

    def __init__(self, stream: str | None) -> None:
        super().__init__()
        self.stream = stream
        self.initialize_sent = False
        """`initialize` was sent."""
        self.is_negotiated = False
        """`initialize` has its result."""
        self.is_initialized = False
        self.has_capabilities = False
        """The server has declared its capabilities in this conversation."""
        self.is_sse = False
        """The transport is HTTP+SSE of 2024-11-05, whatever the revision."""
        self.log_level: str | None = None
        self.logs_requested = False
        """A request contained a log level (2026-07-28)."""
        self.tokens: dict[tuple[str, str], PendingRequest] = {}
        """Side of the request and progress token → the request."""
        self.was_malformed = {CLIENT: False, SERVER: False}
        """True if that side sent something malformed and has not received an error for it."""
        self.has_notified = {CLIENT: False, SERVER: False}
        """True if the last message of that side was a notification."""
        self.closed_at: float | None = None
        """Seconds from the start until the client closed the server's stdin, if the server had not ended before."""
        self.signal = ""
        """The signal that mcpspy received and passed to the server, if it did."""
        self.is_ended = False
        """True if the server has closed its stdout."""

    def close(self, side: object, at: float) -> None:
        """A side has closed its output."""
        if side == SERVER:
            self.is_ended = True
        elif side == CLIENT and not self.is_ended:
            self.closed_at = at

    @property
    def is_usual(self) -> bool:
        """True between the handshake and the end."""
        return self.is_negotiated and self.is_initialized and self.closed_at is None


class ListedTool(Struct):
    """A tool of the last listing."""

    definition: dict[str, Any]
    place: EntryPosition
    arguments: CheckedSchema
    output: CheckedSchema | None
    """None without an outputSchema."""
    param_headers: ParamHeaders = NOTHING


ANNOUNCED = {method: each for method, each in EVERY_LISTING.items() if "templates" not in method}
"""The lists whose changes a `list_changed` notification of the same name announces."""


class ListHistory:
    """The latest listing of a method, as the names or URIs of its items, and the one before."""

    def __init__(self) -> None:
        self.listing: Listing[list[str]] = Listing([], None, "", None)
        """Without a page, another one is awaited."""
        self.before: list[str] | None = None
        """Those of the listing before, if it was complete."""
        self.is_announced = False
        """The peer has announced a change since the first page."""
        self.was_announced = False
        """The peer announced a change between the two listings."""

    def add(self, listing: Listing[list[str]]) -> None:
        """Add a listing up to its latest page."""
        if listing.cursor is None:
            self.before = self.names if self.listing.is_whole else None
            self.was_announced, self.is_announced = self.is_announced, False
        self.listing = listing

    @property
    def names(self) -> list[str]:
        return joined(self.listing)

    @property
    def is_changed(self) -> bool:
        """True if it has other items than the listing before."""
        return self.listing.is_whole and self.before is not None and sorted(self.before) != sorted(self.names)


class Subscription(Struct):
    """A `subscriptions/listen` request (2026-07-28)."""

    wanted: dict[str, Any]
    """Its filter."""
    accepted: dict[str, Any] | None = None
    """The part of it that the server acknowledged; None until then."""
    is_closed: bool = False
    """The server has responded to it."""


class TaskHistory(Struct):
    """The status of a task, and its input requests, from the messages about it."""

    tool: str | None = None
    """The tool whose call began it; None if it is older than the recording."""
    status: str | None = None
    """The latest; `answered` if only its result was read."""
    begun_at: float | None = None
    """Time of the result that began it; None if it is older than the recording."""
    ttl: float | None = None
    """Seconds that the server keeps it; None for ever."""
    is_cancelled: bool = False
    """Its cancellation was requested."""
    requests: dict[str, Any] = field(default_factory=dict)
    """Key → the latest input request."""
    opened: set[str] = field(default_factory=set)
    """Keys of the input requests of the latest status."""
    answered: set[str] = field(default_factory=set)
    """Keys of those whose responses the server has acknowledged."""

    @property
    def is_ended(self) -> bool:
        return self.status in ENDED

    @property
    def shown(self) -> str:
        return self.status or "unknown"


class NonJsonRun:
    """Consecutive lines of one side that are not JSON."""

    def __init__(self) -> None:
        self.cut = b""
        """The last line, if its end was cut."""
        self.lines: list[bytes] = []
        self.number = -1
        """Of the last line."""


class LintState:
    """State of one recording."""

    lacks_discover = False
    """The server has refused `server/discover`."""

    def __init__(self, header: Header | None) -> None:
        self._header = header
        self.server = (header.name if header is not None else None) or ""
        """Name of the session, which is that of the server in the host's configuration."""
        self.hosts: tuple[HostProfile, ...] = ()
        """The hosts whose limits are checked."""
        self.conversations: OrderedDict[str | None, ConversationState] = OrderedDict()
        self.revision: str | None = None
        """The revision negotiated last, in any conversation."""
        self.open: dict[int, PendingRequest] = {}
        """id() of an exchange → its request, which has no response yet."""
        self.posts: OrderedDict[int, HttpPost] = OrderedDict()
        self.schemas = SchemaCache()
        self.tools: OrderedDict[str, ListedTool] = OrderedDict()
        self.tasks: OrderedDict[str, TaskHistory] = OrderedDict()
        """By id, as of the message before."""
        self.known_tasks: OrderedDict[str, None] = OrderedDict()
        """Ids of the tasks that requests have begun."""
        self.is_listed = False
        """All pages of the latest tool listing were received."""
        self.server_capabilities: dict[str, Any] | None = None
        self.is_legacy_server: bool | None = None
        """True if a server responds to 2026-07-28 as in an earlier revision; None until its first response."""
        self.refused = 0
        """Number of requests of 2026-07-28 that the server refused probably because `initialize` is missing."""
        self.tools_changed_at: float | None = None
        """Time of a `notifications/tools/list_changed` after the last listing."""
        self.pages = ListingPages[list[str]]()
        """The names or URIs on each page of a list."""
        self.listings: OrderedDict[tuple[str | None, str], ListHistory] = OrderedDict()
        """Stream and method → the list."""
        self.cursors: OrderedDict[str, Any] = OrderedDict()
        """Each `nextCursor` → the `cacheScope` of its page."""
        self.subscriptions: OrderedDict[tuple[str | None, str | None], Subscription] = OrderedDict()
        """Stream and id → the subscription."""
        self.elicitations: OrderedDict[str, None] = OrderedDict()
        """Ids of URL elicitations."""
        self.authorized: OrderedDict[str, None] = OrderedDict()
        """Session ids that were sent with an Authorization header."""
        self.last_page: tuple[EntryPosition, int, float] = EntryPosition(), 0, 0.0
        """Position of the last page of tools: its entry, its change, its time."""
        self.refusals: OrderedDict[str, tuple[float, float, str]] = OrderedDict()
        """Session id, or method and subject → start and end of the time in which a client must not send it, and why."""
        self.session_ids: set[str] = set()
        self.events: OrderedDict[tuple[str | None, str], int] = OrderedDict()
        """Stream and id of a server-sent event → hash of its data."""
        self._secrets: list[tuple[str, str]] = []
        self._has_hits = builtin_prefilter().hits
        self._redactor = Redactor(b"", found=lambda rule, pointer: self._secrets.append((rule, pointer)))
        self.non_json = {CLIENT: NonJsonRun(), SERVER: NonJsonRun()}
        self.memory = RuleMemory()

    @property
    def upstream(self) -> str | None:
        """URL of the server over HTTP."""
        return self._header.upstream if self._header is not None else None

    @property
    def started(self) -> str | None:
        """Start of the recording, in ISO 8601."""
        return self._header.started if self._header is not None else None

    @property
    def has_listed_tools(self) -> bool:
        """True if the server has listed its tools, also if there are none."""
        return self.last_page[1] > 0

    def conversation(self, stream: str | None) -> ConversationState:
        found = self.conversations.get(stream)
        if found is None:
            found = self.conversations[stream] = ConversationState(stream)
            forget(self.conversations)
        return found

    def post(self, number: int, place: EntryPosition, change: int, at: float) -> HttpPost:
        """Return an HTTP exchange; these are the position and time of its first entry."""
        found = self.posts.get(number)
        if found is None:
            found = self.posts[number] = HttpPost(place, change, at, [], [])
            forget(self.posts)
        return found

    def secrets_in(self, data: bytes) -> list[tuple[str, str]]:
        """Return the rule and JSON pointer of each secret in a message; valid until the next call."""
        self._secrets.clear()
        if self._has_hits(data):  # Most messages have none, and need not be read.
            self._redactor.message(data)
        return self._secrets

    def listing(self, stream: str | None, method: str) -> ListHistory:
        """Return the list of a method; `stream` is None in 2026-07-28, where all conversations share it."""
        found = self.listings.get((stream, method))
        if found is None:
            found = self.listings[stream, method] = ListHistory()
            forget(self.listings)
        return found

    def learn_tools(self, listed: dict[str, Any], place: EntryPosition, data: bytes) -> None:
        """Add a page of tools; `data` is the message that contains it."""
        has_param_headers = ANNOTATION.encode() in data
        tools = listed.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                output = tool.get("outputSchema")
                self.tools[name] = ListedTool(
                    tool,
                    place,
                    self.schemas.check(tool.get("inputSchema")),
                    None if output is None else self.schemas.check(output),
                    param_headers(tool.get("inputSchema")) if has_param_headers else NOTHING,
                )
        forget(self.tools)


class RuleMemory(dict[type[Any], Any]):
    """Objects in which rules remember the session, by type; each is made when it is first needed."""

    if TYPE_CHECKING:

        def __getitem__(self, kind: type[T]) -> T: ...

    def __missing__(self, kind: type[T]) -> T:
        made = self[kind] = kind()
        return made


def forget(kept: OrderedDict[Any, Any]) -> None:
    """Drop all but the latest `KEPT` items."""
    while len(kept) > KEPT:
        kept.popitem(last=False)
