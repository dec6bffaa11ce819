"""Recorded HTTP responses to early requests, notifications, GET and DELETE, which no session answers.

Such a request is recognised by its shape: the HTTP method, the method of its message, and whether it named a session.
A shape that succeeded at least once in the recording has no recorded response: the mock handles it by itself. A
challenge to authorize (a response with `WWW-Authenticate`) is not repeated, because the mock has no authorization server
(RFC 9110, 11.6.1), and neither is a 404 that ended a session, because its client would begin sessions for ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from mcpspy.core.protocol.http_headers import JSON, SESSION

HEADERS = {"content-type": "Content-Type", "allow": "Allow", "retry-after": "Retry-After"}
"""Headers of a refusal that its client may act on; the others describe the connection or the server."""


class HttpShape(NamedTuple):
    http_method: str
    method: str
    """Method of the message that a POST carried; empty otherwise."""
    has_session: bool


class HttpReply(Struct):
    status: int
    headers: dict[str, str] = {}
    body: bytes = b""
    has_id: bool = False
    """True if the body is a message with an id: that of the request."""


class HttpReplies:
    """The recorded responses by shape, filled while the recording is read."""

    def __init__(self) -> None:
        self.has_sessions = False
        """True once a client named a session: the server issued one."""
        self._found: dict[HttpShape, HttpReply | None] = {}
        """Shape → its first response; None if it succeeded."""
        self._open: dict[int, HttpReply] = {}
        """Exchange whose response has begun → that response."""

    def begin(self, number: int, fields: Mapping[str, Any], method: str) -> None:
        """Take the head of a response, the fields of a note `http`. `method` is that of the client's message."""
        status, http_method = fields.get("status"), str(fields.get("method"))
        request, response = (_headers(fields.get(name)) for name in ("request", "response"))
        has_session = bool(fields.get("has_session")) or SESSION.lower() in request
        self.has_sessions |= has_session
        if not isinstance(status, int) or "error" in fields or "by" in fields:
            return
        if http_method not in ("GET", "DELETE") and not (http_method == "POST" and method):
            return
        shape = HttpShape(http_method, method, has_session)
        if status < 300:
            self._found[shape] = HttpReply(status) if http_method == "DELETE" else None
        elif (
            status >= 400
            and shape not in self._found
            and "www-authenticate" not in response
            and not (status == 404 and has_session)
        ):
            headers = {title: response[name] for name, title in HEADERS.items() if name in response}
            self._found[shape] = self._open[number] = HttpReply(status, headers)

    def add_message(self, number: int | None, data: bytes, id_text: str | None) -> None:
        """Take a message in the body of a response, which may be a refusal."""
        reply = None if number is None else self._open.get(number)
        if reply is not None and not reply.body:
            reply.body, reply.has_id = data, id_text is not None
            reply.headers["Content-Type"] = JSON

    def end(self, number: int, body: object) -> None:
        """Take the end of an exchange, with the text of a refusal that was not a message."""
        reply = self._open.pop(number, None)
        if reply is not None and isinstance(body, str):
            reply.body = body.encode("utf-8", "replace")

    def find(self, http_method: str, method: str, *, has_session: bool) -> tuple[bool, HttpReply | None]:
        """Return whether this shape was recorded, and the response to repeat; None if the mock handles it.

        Of a server that issued no session, what its clients sent without one is what they send with one to the mock.
        """
        shape = HttpShape(http_method, method, has_session and self.has_sessions)
        return shape in self._found, self._found.get(shape)


def _headers(value: object) -> dict[str, str]:
    """Return the recorded headers, whose names are in lower case."""
    return {name: str(each) for name, each in value.items()} if isinstance(value, dict) else {}
