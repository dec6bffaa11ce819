"""Symptoms: what is wrong in a session, before any reason is given.

A symptom is a failed or unanswered request, a refused HTTP request, a response that its receiver ignored, the end of a
server or a client, or a finding of lint that peers are known to react to. Causes claim symptoms (`claims`). Requests that
failed in the same way are one symptom, which bounds the memory.
"""

from __future__ import annotations

from msgspec import Struct, field

from mcpspy.analysis.explain.evidence import EvidenceLine, NamedError, PrintedLine
from mcpspy.analysis.lint.finding import EntryPosition, Finding
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.session.exchange import State

MAX_EVIDENCE = 5
"""Maximum number of lines that are kept of one symptom."""


class Symptom(Struct, eq=False, kw_only=True):
    at: float
    """Seconds since the start: when it began."""
    place: EntryPosition
    lines: list[EvidenceLine] = field(default_factory=list)
    """Lines of the recording that show it; at most `MAX_EVIDENCE`."""
    count: int = 1

    def add_line(self, line: EvidenceLine) -> None:
        if len(self.lines) < MAX_EVIDENCE and line not in self.lines:
            self.lines.append(line)


class RefusedExchange(Symptom, eq=False, kw_only=True):
    """HTTP requests that were not answered as they should be, all alike."""

    number: int
    method: str
    path: str
    """Without its query."""
    has_query: bool = False
    status: int | None
    """None if the exchange ended without a response."""
    asked: str = ""
    """The posted message in words, such as `notifications/initialized`; empty for GET, DELETE and OPTIONS."""
    request_number: int | None = None
    """Number of the request that was posted: then the symptom is its `FailedRequest`, which has this one."""
    is_response: bool = False
    """True if the posted message answers a request of the server."""
    request: dict[str, str] = field(default_factory=dict)
    response: dict[str, str] = field(default_factory=dict)
    """Recorded headers, with lower-case names."""
    words: str = ""
    """The text of the refusal: its body in one line, or its challenge. Not sanitized."""
    error: str = ""
    """The reason for a response by mcpspy itself: the server cannot be reached, mcpspy refused the client."""
    stream: str = ""
    took: float = 0.0
    succeeded_at: float | None = None
    """Time at which the same request succeeded later."""
    is_plain: bool = False
    """True if its response was to have a JSON body: it is only of interest if the body never came."""
    hung_up: str | None = None
    ended_at: float | None = None
    """Time at which the response ended."""
    last_at: float = 0.0
    """Time of the last of them."""

    @property
    def line(self) -> str:
        """The request and its status in words."""
        status = "no response" if self.status is None else f"HTTP {self.status}"
        asked = f" {self.asked}" if self.asked else ""
        return f"{self.method} {self.path}{asked}: {status}"

    @property
    def agent(self) -> str:
        """The User-Agent of the client; empty if it sent none."""
        return self.request.get("user-agent", "")

    @property
    def session_id(self) -> str | None:
        """The session id that the client sent."""
        return self.request.get("mcp-session-id")

    @property
    def has_token(self) -> bool:
        return "authorization" in self.request

    @property
    def challenge(self) -> str:
        """The way to sign in that the refusal names; may be empty."""
        return self.response.get("www-authenticate", "")

    @property
    def is_for_metadata(self) -> bool:
        """True for a request of a document for signing in (RFC 8615)."""
        return ".well-known" in self.path

    @property
    def is_stream(self) -> bool:
        """True for a GET that is answered with events."""
        return self.method == "GET" and self.status == 200 and self.media_type == EVENTS

    @property
    def media_type(self) -> str:
        return self.response.get("content-type", "").partition(";")[0].strip().lower()


ERRORS = (State.ERROR, State.TOOL_ERROR, State.LATE_ERROR, State.LATE_TOOL_ERROR)
"""The states of requests that a message answered with an error."""


class FailedRequest(Symptom, eq=False, kw_only=True):
    """Requests that failed, or got no outcome, in the same way."""

    side: str
    """Its sender."""
    id: str
    """JSON text of its id."""
    method: str
    subject: str
    state: State
    words: str
    """The words of its receiver: the text of the error, of the tool error or of the refusal. Not sanitized; may be empty."""
    why: str = ""
    """The reason for its state (`Exchange.why`)."""
    code: int | None = None
    """The code of a JSON-RPC error."""
    asked_at: float
    took: float
    """Seconds to its response or cancellation, or to the end of the session."""
    cancelled_by: str = ""
    reason: str = ""
    """The reason that a cancellation gives."""
    gave_up_at: float | None = None
    answer_at: float | None = None
    has_token: bool = False
    """True if it asked for progress."""
    arguments: frozenset[str] = frozenset()
    """Names of the arguments of a call."""
    json_arguments: tuple[str, ...] = ()
    """Those whose value is a string with a JSON array or object."""
    texts: tuple[str, ...] = ()
    """Short texts among the values of its arguments, at most some: an error that quotes one is about it."""
    progress: int = 0
    progress_words: str = ""
    """The message of the last progress; not sanitized."""
    batch: int | None = None
    """Its place in a batch."""
    effects: list[str] = field(default_factory=list)
    """Actions of rules and viewers of mcpspy on its messages."""
    findings: list[Finding] = field(default_factory=list)
    """Findings of lint on its messages."""
    redirect: str = ""
    """The redirects in words, that were followed: `307 → /login`."""
    carrier: RefusedExchange | None = None
    """Its HTTP exchange if it was refused, or had not ended when the outcome was known, such as an event stream."""
    stderr: list[PrintedLine] = field(default_factory=list)
    """Lines on stderr while it was open."""
    waiting: list[str] = field(default_factory=list)
    """Of a request of the server: the requests of the client that were open meanwhile, in words."""
    stream: str = ""
    before: str = ""
    """The message of its sender before it, in words; empty if it was the first one."""
    is_first: bool = False
    """True if no request of this side was answered before it was sent."""
    succeeded_at: float | None = None
    """Time at which the same request succeeded later."""
    numbers: set[int] = field(default_factory=set)
    """Numbers of the exchanges; at most some of them."""

    @property
    def about(self) -> str:
        return f"{self.method} {self.subject}".strip()

    @property
    def waited(self) -> str:
        return duration(max(self.took, 0.0))

    @property
    def until(self) -> float:
        """Time of its response or cancellation, or of the end of the session."""
        return self.asked_at + max(self.took, 0.0)

    @property
    def is_refused(self) -> bool:
        """True if HTTP refused it, or no message answered it: an error of JSON-RPC in an event stream is not a refusal."""
        is_success = self.carrier is not None and 200 <= (self.carrier.status or 0) < 300
        return self.carrier is not None and not (is_success and self.state in ERRORS)

    @property
    def is_handshake(self) -> bool:
        return self.method in ("initialize", "server/discover")


class IgnoredResponse(Symptom, eq=False, kw_only=True):
    """A response that arrived, and after which its requester acted as if there was none."""

    side: str
    """The side that ignored it."""
    about: str
    waited: float
    """Seconds from the response to the cancellation."""
    findings: list[Finding] = field(default_factory=list)
    """Findings of lint on the response."""


class ServerEnd(Symptom, eq=False, kw_only=True):
    """The server's process ended, or did not start, although the client had not asked for it."""

    code: int | None
    signal: str | None
    has_answered: bool
    error: str = ""
    """The reason why it could not be started."""
    named: NamedError | None = None
    """The error that its stderr names."""
    is_forced: bool = False
    """True if it was killed because it did not end when its stdin was closed."""
    during: list[FailedRequest] = field(default_factory=list)
    """The requests that were open."""

    @property
    def words(self) -> str:
        if self.code is None and self.signal is None:  # Logs of hosts do not have it.
            return "an unknown exit status"
        return f"exit code {self.code}" if self.signal is None else f"killed by {self.signal}"


class ClientLeft(Symptom, eq=False, kw_only=True):
    """The client ended the session right after a message of the server, before it had used the session."""

    after: float
    """Seconds between the message and the end."""
    message: str
    """The message in words."""
    is_initialized: bool
    """True if it had accepted the result of `initialize`."""
    is_before_answer: bool = False
    """True if the result of `initialize` came only after it had left."""
    findings: list[Finding] = field(default_factory=list)
    """Findings of lint on the message."""


class Violation(Symptom, eq=False, kw_only=True):
    """Findings of one rule that peers are known to react to."""

    code: str
    side: str
    findings: list[Finding] = field(default_factory=list)
    """The first ones."""
