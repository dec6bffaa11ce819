"""Errors with HTTP 200 in the place of a refusal: of a session, a token, a request without a sign-in."""

from __future__ import annotations

import re

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.claims import Level
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS, FailedRequest
from mcpspy.core.session.exchange import SUBSCRIBE, State

_LISTEN = ex.request(SUBSCRIBE, notifications={"toolsListChanged": True})


URL_ELICITATION = -32042
_OPEN_FIRST = ex.error("This request requires more information.", URL_ELICITATION)


def _opens_urls(facts: Facts) -> bool:
    """Return whether the client has declared that it opens URLs for its user."""
    declared = facts.session.client_capabilities.get("elicitation")
    return isinstance(declared, dict) and "url" in declared


FailureRow(
    "ended-by-design",
    "an error that the specification has for something that is not a failure",
    Level.EXACT,
    why="A subscription ends with an error when its connection does, and -32042 asks the client "
    "to open a URL first.",
    title="{about} was answered with error {code}{quoted}",
    next_step="nothing; after -32042 the client opens the URL for its user, and sends the request again",
    side="",
    states=ERRORS,
    if_failed=lambda facts, failed: (
        (failed.code == URL_ELICITATION and _opens_urls(facts))
        or (failed.method == SUBSCRIBE and failed.code == -32000)
    ),
    is_observation=True,
    positive=(
        ex.session("@ 2026-07-28", _LISTEN, ex.error("Connection closed", -32000)),
        ex.session('@ client={"elicitation":{"url":{}}}', ex.call(), _OPEN_FIRST),
    ),
    negative=ex.session("@ 2026-07-28", _LISTEN, ex.error("Connection closed")),
).define(__name__)


FailureRow(
    "url-elicitation-undeclared",
    "the server wants the client to open a URL, and the client has not declared that it can",
    Level.EXACT,
    why="A server sends -32042 only to clients that declare elicitation by URL (2025-11-25, Elicitation); others show a failed call.",
    title="{about}: the server asks the user to open a URL first (error {code}), and the client has not declared elicitation by URL"
    "{quoted}",
    next_step="open the URL in data of this error, and call again; use a client that declares elicitation.url, or let the server "
    "answer other clients with the URL in a tool error",
    side="",
    states=ERRORS,
    if_failed=lambda facts, failed: failed.code == URL_ELICITATION and not _opens_urls(facts),
    positive=ex.session("@ client={}", ex.call(), _OPEN_FIRST),
    negative=ex.session('@ client={"elicitation":{"url":{}}}', ex.call(), _OPEN_FIRST),
).define(__name__)
_SESSION = (
    r"\bsession\b.{0,40}(?:not found|invalid|expired|unknown|missing|terminated|closed|does not exist)"
    r"|(?:invalid|unknown|missing|no valid|expired).{0,30}\bsession|\b(?:server|session|client) (?:is |was )?not initiali[sz]ed"
)
"""The SDKs of TypeScript, Python, Go and Rust."""


def _names_session(failed: FailedRequest) -> bool:
    """Return whether a call names a session itself: that of a browser, a terminal, a chat."""
    return any("session" in name.lower() for name in failed.arguments)


FailureRow(
    "session-refused-in-200",
    "the server refuses the session with an error in place of HTTP 404",
    Level.EXACT,
    why="A client sends initialize again after a 404; after an error of JSON-RPC it cannot know "
    "that it should.",
    title="the server refuses the session that it had assigned, with HTTP 200 and an "
    "error{quoted}: it lost its sessions, and the client cannot know that it must begin again",
    next_step="let the server answer 404 for a session that it does not know, and keep its sessions "
    "over restarts",
    states=(State.ERROR, State.LATE_ERROR),  # A tool error may be about the tool's own sessions.
    words=_SESSION,
    if_failed=lambda facts, failed: (
        not failed.is_refused and bool(facts.http.session_ids) and not _names_session(failed)
    ),
    is_together=True,
    positive=(
        ex.session("@ http", ex.call(), ex.error("Session not found", -32000)),
        ex.session(
            "@ http", ex.listed("a"), "+ 9", ex.call(3), ex.error("Server not initialized", -32002, 3)
        ),
    ),
    negative=(
        ex.session("@ http", ex.call(), ex.error("no data", -32000)),
        ex.session(
            "@ http",
            ex.request("tools/call", name="click", arguments={"sessionId": "b1"}),
            ex.error("Browser session not found: b1", -32000),
        ),
    ),
).define(__name__)


_UNAUTHORIZED = (
    r"(?:invalid|expired|revoked).{0,30}(?:access )?token|token.{0,30}(?:invalid|expired|revoked)"
    r"|invalid[-_ ]authori[sz]ation|unauthori[sz]ed|(?:status|http|code|error)\W{0,6}(?:code\W{0,3})?401\b|\b401\b\W{0,3}error"
)
"""The service behind the server, in the words of its HTTP client."""

_OWN_KEY = re.compile(
    r"(?i)\bapi[ _-]?key\b|\bapi (?:error|request|call|response|returned|responded)|\b[A-Z]+_(?:TOKEN|KEY|SECRET)\b|environment variable"
)
"""Credentials of the server, which no client sends as a bearer token."""

_REFUSED_KEY = ex.done(2, "401 Unauthorized: invalid access token", isError=True)


FailureRow(
    "token-refused-in-200",
    "a refused token is hidden in a result",
    Level.EXACT,
    why="A client refreshes its token after a 401; an error in a result with HTTP 200 does not "
    "have that effect.",
    title="the token of the client is not accepted, and the server answers with a result and HTTP "
    "200{quoted}",
    next_step="let the server answer 401, so that the client refreshes its token; until then sign in again",
    states=ERRORS,
    words=_UNAUTHORIZED,
    if_failed=lambda facts, failed: (
        not failed.is_refused and facts.http.has_token and not _OWN_KEY.search(failed.words[:400])
    ),
    is_together=True,
    positive=ex.session("@ http", ex.call(), ex.answered(200, {"authorization": "Bearer x"}), _REFUSED_KEY),
    negative=(
        ex.session("@ http", ex.call(), _REFUSED_KEY),
        ex.session(
            "@ http",
            ex.call(),
            ex.answered(200, {"authorization": "Bearer x"}),
            ex.done(2, "Error code: 401 - Incorrect API key provided: sk-x", isError=True),
        ),
    ),
).define(__name__)


_OWN_LOGIN = re.compile(
    r"(?i)\b(?:run|execute|use)\b.{0,40}\blog-?in\b|\b(?:gh|gcloud|az|aws|docker|npm|heroku|vercel|wrangler) .{0,20}\blogin\b"
    r"|environment variable|\bcli\b"
)
"""A program on the server's machine that wants a sign-in there, and not the client's."""


FailureRow(
    "sign-in-hidden",
    "a server that wants a sign-in answers with a result in place of 401",
    Level.EXACT,
    why="Clients begin a sign-in after HTTP 401. A server that lets everyone in and refuses only in "
    "its tools never starts one.",
    title="{about}: the server wants a sign-in, and the client sent no token; it was answered with HTTP 200, so "
    "the client does not begin one{quoted}",
    next_step="let the server answer a request without a token with 401 and WWW-Authenticate; until then set "
    "the Authorization header in the host's configuration",
    side="",  # The server may want a token only for some tools, and the client begin a sign-in of itself.
    states=ERRORS,
    words=r"authentication credential|\bnot (?:authenticated|signed in|logged in)|\bunauthenticated\b"
    r"|(?:sign|log)[- ]?in (?:is )?required|requires? (?:oauth|(?:a )?(?:sign|log)[- ]?in)"
    r"|(?:missing|no|without) (?:an? )?(?:bearer|authorization)|no (?:valid )?access token (?:was )?(?:provided|given|found|sent)"
    r"|\bneed to (?:sign|log) in\b|^\W*access (?:is )?denied\W*$",
    if_failed=lambda facts, failed: (
        not facts.is_stdio
        and not failed.is_refused
        and not facts.http.has_token
        and not _OWN_LOGIN.search(failed.words[:400])
    ),
    is_together=True,
    positive=(
        ex.session("@ http", ex.call(), ex.done(2, "Not authenticated", isError=True)),
        ex.session("@ http", ex.call(), ex.done(2, "Access Denied", isError=True)),
    ),
    negative=(
        ex.session(ex.call(), ex.done(2, "Not authenticated", isError=True)),
        ex.session("@ http", ex.call(), ex.done(2, "Not logged in. Run gh auth login", isError=True)),
    ),
).define(__name__)
