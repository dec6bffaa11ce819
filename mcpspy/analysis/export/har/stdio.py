"""Messages of stdio sessions as HAR pseudo-requests with `stdio:` URLs (docs/export.md).

A request is a POST to its receiver with the method as path, and its response is the HTTP response. As over
HTTP, a notification is a POST with status 202. Other messages have no entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import RecordedSession, WallClock
from mcpspy.analysis.export.har.entry import answered, asked, timed
from mcpspy.core.protocol.message import Failure, Notification, Request
from mcpspy.core.protocol.spec import CLIENT, METHODS
from mcpspy.core.session.exchange import Exchange

JSON = {"content-type": "application/json"}


def entries(session: RecordedSession) -> Iterator[dict[str, Any]]:
    """Yield the entries of a stdio session, in the order of the requests."""
    clock = WallClock(session.header.started)
    server = session.header.name or "server"
    for change in session.wanted():
        what, exchange = change.what, change.exchange
        if isinstance(what, Request) and exchange is not None:
            yield _entry(what, server, clock, _result(exchange), exchange)
        elif isinstance(what, Notification):
            result = {**timed(0.0, 0.0), "response": answered(202, None, {}, b"")}
            yield _entry(what, server, clock, result, exchange)


def _entry(
    message: Request | Notification,
    server: str,
    clock: WallClock,
    result: dict[str, Any],
    exchange: Exchange | None,
) -> dict[str, Any]:
    return {
        "startedDateTime": clock.iso(message.at),
        "request": asked("POST", _url(message, server), JSON, message.data),
        **result,
        "_resourceType": "fetch",
        "_from": message.side,
        **({"_exchange": exchange.number} if exchange is not None else {}),
    }


def _result(exchange: Exchange) -> dict[str, Any]:
    """Return response and times. The status is 0 without a response, as in a browser."""
    answer, request = exchange.answer, exchange.request
    words = rows.outcome(exchange)[0]
    if answer is None:
        over = exchange.cancel.at if exchange.cancel is not None else request.at
        response = answered(0, words, {}, b"")
        return {**timed(over - request.at, 0.0), "response": response, "_error": words, "comment": words}
    status = 500 if isinstance(answer, Failure) else 200
    response = answered(status, str(exchange.state), JSON, answer.data)
    return {**timed(answer.at - request.at, 0.0), "response": response, "comment": words}


def _url(message: Request | Notification, server: str) -> str:
    """Return receiver and method as URL: `stdio://weather/tools/call?name=forecast`."""
    whom = server if message.side == CLIENT else "client"
    known = METHODS.get(message.method)
    parameter = known.subject if known is not None else None
    query = ""
    if parameter not in (None, "message") and message.subject:  # The text of a question is no name.
        query = f"?{urlencode({parameter: message.subject}, errors='replace')}"
    return f"stdio://{_quoted(whom, '')}/{_quoted(message.method, '/')}{query}"


def _quoted(text: str, safe: str) -> str:
    return quote(text, safe, errors="replace")
