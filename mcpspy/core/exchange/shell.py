"""The shell of an exchange over HTTP, and the scope that it shares with others.

The shell does what the machine lets it do, in the order of the calls. It turns callbacks of its connections, and steps
of the interception, into calls of the machine's events. It may carry out three calls later: what follows a `record` is
carried out once its lines are in the file, what follows a `take_turn` when other exchanges had theirs, and what
follows a `decide` after the steps that it delivered at once. Meanwhile events wait, except the loss of a side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpspy.core.exchange.heads import RequestHead
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.protocol.http_headers import Headers, Upstream
    from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
    from mcpspy.core.protocol.oauth import OAuthTracker
    from mcpspy.core.recording.encode import Lines, Value


class Shell(Protocol):
    """Carries out what an exchange decides."""

    def record(self, lines: Lines, size: int) -> None:
        """Append lines to the recording."""

    def ask(self, method: str, head: bytes, body: bytes, is_last: bool) -> None:
        """Connect, and send the head of the request, with the whole body unless `is_last` is False: then it follows."""

    def to_server(self, data: bytes, is_last: bool) -> None:
        """Send a part of the request's body."""

    def half_close_server(self) -> None:
        """Pass on that the client sends nothing after this request."""

    def close_server(self) -> None:
        """End the server's side at once. What has not arrived of the response is given up."""

    def accept_body(self) -> None:
        """Send `100 Continue` (RFC 9110, 10.1.1)."""

    def to_client(self, data: bytes) -> None:
        """Send bytes to the client."""

    def respond(self, status: int, body: bytes) -> None:
        """Send a response of mcpspy. The client's side ends with it."""

    def finish(self, keeps_alive: bool) -> None:
        """End the client's side, which has its whole response."""

    def hang_up(self, at_once: bool) -> None:
        """Close the client's connection; `at_once` without what is not sent yet."""

    def wait(self) -> None:
        """Call `waited` in a moment."""

    def take_turn(self, long_step: Callable[[], None] | None) -> None:
        """Call `proceed` when other exchanges had their turn, and after `long_step`, which runs in a thread."""

    def pause(self, side: str, is_paused: bool) -> None:
        """Stop reading from a side, or continue."""

    def decide(
        self, side: str, data: bytes, raw: bytes, event: SseEvent | None, fields: dict[str, Value]
    ) -> bool:
        """Let the interception decide on a message, record it, and deliver the steps.

        Return whether the first steps were delivered. If not, `proceed` is called after that.
        """

    def decide_head(self, headers: Headers, status: int | None) -> None:
        """Let the scripts decide on a head; of a response if it has a status."""

    def open_stream(self, is_inspected: bool) -> None:
        """Let messages be injected into the response; at once, or after `inspect`."""

    def close_stream(self) -> None:
        """Let nothing be injected any more."""

    def intercept(self) -> None:
        """Let the interception decide on messages of this exchange."""

    def leave(self, is_settled: bool) -> None:
        """End the part of the interception in this exchange. `is_settled`: none of its messages waits."""

    def report_once(self, what: str, value: object, keeps_method: bool) -> None:
        """Print something about the server for the user, once."""

    def fail(self, id: str, why: str) -> None:  # noqa: A002
        """Report that an injected request has no response."""

    def to_stream(self, data: bytes) -> None:
        """Forward a message that arrived with the response to an injected request to a stream of the client."""


class Streams(Protocol):
    """The sessions of a server, and the addresses that belong to them."""

    def has_path(self, target: str) -> bool: ...
    def is_endpoint(self, target: str) -> bool: ...
    def is_address(self, target: str) -> bool: ...
    def of(self, session: str | None, target: str, number: int) -> str: ...
    def bind(self, session: str, stream: str) -> None: ...
    def bind_address(self, target: str, stream: str) -> None: ...
    def end(self, session: str) -> None: ...
    def end_address(self, target: str) -> None: ...
    def add_endpoint(self, path: str) -> None: ...


class Scope(Protocol):
    """The surroundings that the exchanges with one server share."""

    upstream: Upstream
    oauth: OAuthTracker
    max_body: int

    @property
    def policy(self) -> DecisionPolicy: ...
    @property
    def streams(self) -> Streams: ...
    def public_origin(self, request: RequestHead) -> str:
        """Return the origin under which the client of this request knows the server."""

    def upstream_head(
        self, method: str, target: str, headers: Headers, body: bytes | None, *, has_body: bool
    ) -> bytes:
        """Return the head of a request. A body of bytes gets its length; another one is chunked unless it has one."""

    def client_process(self, client: object, stream: str) -> Mapping[str, Any] | None:
        """Return the process of a client once, when it was found."""


class DecisionPolicy(Protocol):
    """The choice of messages that the interception decides on."""

    is_on: bool
    changed_heads: frozenset[str]
    """The sides whose heads a script may change."""

    @property
    def decides_responses(self) -> bool:
        """True if a message of the server may need a decision, while messages are intercepted."""

    @property
    def tools(self) -> ToolParamHeaders:
        """Headers that calls of the server's tools require."""

    def decides(self, side: str, body: bytes) -> bool: ...
    def learn_tools(self, data: bytes) -> None: ...
