"""HTTP exchanges as they come: what each carried, until it is over.

Owns what an exchange is called by the rules that look at it (`about`). Keeps of
each message no more than they ask for, and only the latest exchanges.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcpspy.analysis.lint.finding import Kind, Place
from mcpspy.core.protocol.message import AnyMessage, Failure, Request, Result
from mcpspy.core.protocol.spec import CLIENT

NOTHING = ""
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


class Posted(Struct, gc=False):
    """A message in the body of a POST."""

    kind: Kind
    method: str
    subject: str | None
    revision: str | None
    """What it says of itself."""


class Post(Struct, gc=False):
    """An HTTP exchange, as far as it has come."""

    place: Place
    number: int
    at: float
    posted: list[Posted]
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
        if Kind.REQUEST in kinds:
            return INTRODUCES if self.introduces else ASKS
        if Kind.MALFORMED in kinds:
            return UNREADABLE
        return TELLS if kinds else NOTHING

    def carry(self, what: AnyMessage, kind: Kind, method: str, subject: str | None) -> None:
        """Take a message of its body, or of its response."""
        if what.frame.side == CLIENT:
            revision = what.revision if isinstance(what, Request) and what.body.meta else None
            self.posted.append(Posted(kind, method, subject, revision))
            return
        self.heard += 1
        if isinstance(what, Result | Failure):
            self.answers.append(what.code if isinstance(what, Failure) else None)

    def _headers(self, name: str) -> dict[str, Any]:
        head = (self.head or {}).get(name)
        return head if isinstance(head, dict) else {}
