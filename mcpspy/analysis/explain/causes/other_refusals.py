"""HTTP requests that were refused for no reason that another cause knows."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import (
    NO_ROUTE,
    exchanges,
    said,
    says_nothing,
    side_of,
)
from mcpspy.analysis.explain.causes.statuses import STATUSES
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.protocol.spec import SERVER

_OF_FRONT = re.compile(r"(?i)web server failed to respond|the request timed out")
"""The page of Azure's front end, which waited for the server behind it."""

FailureRow(
    "server-error",
    "the server failed at a request",
    Level.GENERAL,
    why="An HTTP status of 500 and more without a message: an exception that nothing caught.",
    title="{about}: {who} failed with HTTP {status}{quoted}",
    next_step="look into the log of what failed at this time, the server or the proxy: an exception is there",
    side=lambda _, exchange: (
        "" if exchange is None or side_of(exchange) == "proxy" or _OF_FRONT.search(exchange.words) else SERVER
    ),
    statuses=tuple(status for status in range(500, 1000) if status not in STATUSES),
    positive=ex.list_answer(500, "Internal Server Error"),
    negative=ex.list_answer(429),
).define(__name__)


def _is_of_mcp(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return False for a metadata address, and for a GET for a stream that a server refuses without
    a word.
    """
    is_silent_get = exchange.method == "GET" and facts.server.messages and not exchange.words
    return not exchange.is_for_metadata and not is_silent_get and exchange.method != "HEAD"


_OF_FORM = re.compile(
    r"(?i)^\W*(?:invalid request|method not found|bad request)\W*$|\b(?:missing|no) handler\b|(?<!session[ _-])\bid\b.{0,20}\b(?:required|missing|must)\b"
    r"|\b(?:required|missing|no)\b.{0,20}(?<!session[ _-])\bid\b"
)
"""The words of a server that takes a notification for a request."""


_NO_METHOD = re.compile(r"(?i)\bmethod (?:\S{1,60} )?not (?:found|allowed)|\bno resource method\b")
"""A router of HTTP, or of JSON-RPC, that does not have the method of a notification."""


FailureRow(
    "notification-refused",
    "a notification is refused where requests are answered",
    Level.SPECIFIC,
    why="A handler that answers only requests leaves notifications to the framework, which answers 404 or 405.",
    title="{about} was refused with HTTP {status}, at the endpoint that had answered requests{quoted}",
    next_step="let the server answer each notification with 202 Accepted and no body, also one that it does nothing with",
    # What the Server header names may have passed the status on.
    side=lambda _, exchange: "" if exchange is None or side_of(exchange) == "proxy" else SERVER,
    statuses=(400, 404, 405, 500, 501),
    if_refused=lambda facts, exchange: (
        exchange.asked.startswith("notifications/")
        and bool(facts.answered)
        and (
            not exchange.words
            or any(pattern.search(exchange.words) for pattern in (_OF_FORM, NO_ROUTE, _NO_METHOD))
            or says_nothing(exchange.words)
        )
    ),
    positive=(
        ex.notification_answer(404, {"mcp-session-id": None}),
        ex.notification_answer(400, "Invalid Request: id is required"),
        ex.notification_answer(404, {}, {"content-type": "text/html"}, "Cannot POST /mcp"),
    ),
    negative=(
        ex.notification_answer(202),
        ex.first_answer(404),
        ex.notification_answer(400, "Invalid or missing session id"),
    ),
).define(__name__)


_OF_USER = re.compile(
    r"(?i)\bapi[ _-]?key|\bx-[\w-]*(?:key|token|id)\b|\bquery (?:string|param)|\bpayment|\bbilling|\bsubscription|\btrial\b"
    r"|\bcredits?\b|\b(?:upgrade|update) (?:your|to a|the) (?:plan|client|app|version)|please (?:upgrade|update)"
    r"|\b(?:missing|required?)\b.{0,20}\b(?:authori[sz]ation|bearer|(?:access|auth) token|credentials)"
    r"|\b(?:missing|required?|invalid|unknown)\b.{0,20}\b(?:tenant|workspace|project|organi[sz]ation|account)\b"
)
"""Words of what a user has to give, such as a key, a parameter of the URL or a plan."""

_WANTS_TLS = r"HTTP request (?:was sent )?to (?:an )?HTTPS"
"""The words of Go's net/http and of nginx at a port for TLS."""


def _side_of_refusal(facts: Facts, exchange: RefusedExchange | None) -> str:
    """Return the side if the words name what a user has to give; else a refusal does not decide who is wrong."""
    words = next((said(each, symptom) for each, symptom in exchanges(facts) if each is exchange), "")
    is_of_user = exchange is not None and (exchange.status == 402 or _OF_USER.search(words))
    return "configuration" if is_of_user or re.search(_WANTS_TLS, words) else ""


FailureRow(
    "request-refused",
    "the server refused an HTTP request",
    Level.GENERAL,
    why="A status of 400 to 499, with the text of the refusal.",
    title="{about}: {who} refused it with HTTP {status}{quoted}",
    next_step=(
        (
            r"not (?:been )?initiali[sz]ed|initiali[sz]e first|before initiali|expect(?:s|ed)? (?:an )?initiali[sz]e",
            ("the client must send initialize first, and then notifications/initialized with the session id"),
        ),
        (_WANTS_TLS, "use https:// in place of http:// in the URL: this port speaks TLS"),
        (
            r"csrf|xsrf|page expired",
            (
                "exempt the endpoint from the check of forms of its framework (Django: csrf_exempt; Laravel: except of its "
                "middleware; Rails: skip_forgery_protection)"
            ),
        ),
        (
            r"\bapi[ _-]?key|\bauthori[sz]ation\b|\bbearer\b|\btoken\b|credentials",
            "give the client what the refusal names in the host's configuration; the server should answer 401 for that",
        ),
        ("", "correct what the refusal names; signing in would not help"),
    ),
    side=_side_of_refusal,
    statuses=tuple(
        status for status in range(400, 500) if status == 409 or status not in (401, 403, *STATUSES)
    ),
    if_refused=_is_of_mcp,
    positive=(
        ex.list_answer(400, "Bad Request: no such list"),
        ex.first_answer(400, "Client sent an HTTP request to an HTTPS server."),
        ex.first_answer(400, "Missing API key. Provide the x-api-key header"),
        ex.first_answer(402),
        ex.first_answer(400, "bad request: missing required Authorization header"),
        ex.first_answer(419, "Page Expired"),
    ),
    negative=ex.list_answer(500),
).define(__name__)


@cause(
    "http-refused",
    "an HTTP request was refused",
    Level.QUOTE,
    positive=ex.session("@ http", ex.call(), ex.done(), ex.http("PUT", 304, head={})),
)
def http_refused(facts: Facts) -> Iterator[Claim]:
    """The status and the text of the refusal are the best explanation there is."""
    for refusal in facts.of(RefusedExchange):
        title = f"{refusal.line}{clause(refusal.error or refusal.words)}"
        next_step = "look into the log of the server, or of the proxy in front of it, at this time"
        yield Claim(title, next_step, [refusal])
