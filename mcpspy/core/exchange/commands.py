"""The events of an exchange over HTTP, and the commands about them.

The shell turns callbacks of its connections, and steps of the interception, into events, and executes the commands in
their order. Two of them may take long: what follows a `RecordLines` is executed once its lines are in the file, and what
follows a `Decide` after the steps that it delivered at once. Meanwhile events wait, except the loss of a side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from msgspec import Struct

from mcpspy.core.intercept.actions import AbortUpstream, Disconnect, Dropped, Forward, HeadDecided, Substitute

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.core.exchange.heads import ResponseHead
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.protocol.http_headers import Headers
    from mcpspy.core.recording.encode import Lines, Value


class RequestData(NamedTuple):
    """A part of the request's body; the first one comes with the head, and may be empty."""

    data: bytes
    is_last: bool


class Injected(NamedTuple):
    """A message of a viewer for the server, in an exchange that has no client."""

    data: bytes
    id: str | None


class ResponseBegins(NamedTuple):
    """The head of the response, with as much of its body as has arrived."""

    head: ResponseHead
    keeps_alive: bool
    """False if the server has announced that it closes the connection."""
    data: bytes
    is_last: bool


class ResponseData(NamedTuple):
    """A part of the response's body."""

    data: bytes
    is_last: bool


class Waited(NamedTuple):
    """The moment is over for which a head waits for its body."""


class Worked(NamedTuple):
    """The commands before a `Continue` were executed, or the turn of another exchange is over."""


class Answer(NamedTuple):
    """A response of mcpspy to a message of this exchange, recorded."""

    data: bytes


class Insert(NamedTuple):
    """A message of mcpspy for the stream of this exchange, recorded."""

    data: bytes


class Taken(NamedTuple):
    """The number under which the interception decides on a message, before its steps."""

    ticket: int
    raw: bytes
    """The message as it arrived."""
    event: SseEvent | None


class Inspect(NamedTuple):
    """From the next event on, each one is to be decided on."""


class HalfClosed(NamedTuple):
    """The client has closed its sending side (RFC 9293, 3.6), and may still wait for the response."""


class ClientGone(NamedTuple):
    """The client is lost, or mcpspy ends the exchange."""

    by: str
    lacks: str = ""
    """The missing end of the response's body."""


class ServerGone(NamedTuple):
    """There will be no response, or nothing more of it."""

    error: str
    is_connected: bool = True
    """False if it was not reached."""
    lacks: str = ""
    """The missing end of the response's body."""


Event: TypeAlias = (
    RequestData
    | Injected
    | ResponseBegins
    | ResponseData
    | Waited
    | Worked
    | Taken
    | Answer
    | Insert
    | Inspect
    | HalfClosed
    | ClientGone
    | ServerGone
    | Forward
    | Substitute
    | Dropped
    | Disconnect
    | AbortUpstream
    | HeadDecided
)


class RecordLines(Struct, frozen=True, gc=False):
    """Append lines to the recording."""

    lines: Lines
    size: int


class Ask(Struct, frozen=True, gc=False):
    """Connect, and send the head of the request, with the whole body if that is given."""

    method: str
    head: bytes
    body: bytes
    is_last: bool
    """False if the body follows."""


class ToServer(NamedTuple):
    """Send a part of the request's body."""

    data: bytes
    is_last: bool


class HalfCloseServer(NamedTuple):
    """Pass on that the client sends nothing after this request."""


class CloseServer(NamedTuple):
    """End the server's side at once. What has not arrived of the response is given up."""


class AcceptBody(NamedTuple):
    """Send `100 Continue` (RFC 9110, 10.1.1)."""


class ToClient(Struct, frozen=True, gc=False):
    """Send bytes to the client."""

    data: bytes


class Respond(NamedTuple):
    """Send a response of mcpspy. The client's side ends with it."""

    status: int
    body: bytes


class Finish(NamedTuple):
    """The client has its whole response."""

    keeps_alive: bool


class HangUp(NamedTuple):
    """Close the client's connection; `at_once` without what is not sent yet."""

    at_once: bool


class Wait(NamedTuple):
    """Send `Waited` in a moment."""


class Continue(NamedTuple):
    """Send `Worked` at once, after what precedes it, or `in_turn` when other exchanges had theirs."""

    in_turn: bool
    long_step: Callable[[], None] | None = None
    """Runs in a thread first: it may take more than a few milliseconds."""


class Pause(NamedTuple):
    """Stop reading from a side, or continue."""

    side: str
    is_paused: bool


class Decide(NamedTuple):
    """Let the interception decide on a message, record it, and deliver the steps."""

    side: str
    data: bytes
    raw: bytes
    event: SseEvent | None
    fields: dict[str, Value]


class DecideHead(NamedTuple):
    """Let the scripts decide on a head; of a response if it has a status."""

    headers: Headers
    status: int | None


class OpenStream(NamedTuple):
    """Messages may be injected into the response; at once, or after `Inspect`."""

    is_inspected: bool


class CloseStream(NamedTuple):
    """Nothing can be injected any more."""


class Intercept(NamedTuple):
    """The interception decides on messages of this exchange."""


class Leave(NamedTuple):
    """The interception has nothing more to do with this exchange."""

    is_settled: bool
    """True if none of its messages waits."""


class ReportOnce(NamedTuple):
    """Tell the user something about the server, once."""

    what: str
    value: object
    keeps_method: bool = False


class Fail(NamedTuple):
    """An injected request has no response."""

    id: str
    why: str


class ToStream(NamedTuple):
    """Forward a message that arrived with the response to an injected request to a stream of the client."""

    data: bytes


Command: TypeAlias = (
    RecordLines
    | Ask
    | ToServer
    | HalfCloseServer
    | CloseServer
    | AcceptBody
    | ToClient
    | Respond
    | Finish
    | HangUp
    | Wait
    | Continue
    | Pause
    | Decide
    | DecideHead
    | OpenStream
    | CloseStream
    | Intercept
    | Leave
    | ReportOnce
    | Fail
    | ToStream
)
