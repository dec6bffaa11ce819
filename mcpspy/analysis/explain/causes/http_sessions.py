"""Sessions over HTTP: their ids, and copies of a server that do not share them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow, define
from mcpspy.analysis.explain.causes.exchanges import (
    NO_ROUTE,
    about,
    exchanges,
    is_overcome,
    said,
    says_nothing,
    side_of,
    who_refused,
)
from mcpspy.analysis.explain.causes.http_sse import endpoints, lost_query
from mcpspy.analysis.explain.causes.requests import LONG_WAIT, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import BUG, clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange, Symptom
from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.http_headers import JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

_ID = "mcp-session-id"


def _has_none(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether a message was posted without the session id that the server had not assigned."""
    is_unassigned = not facts.http.session_ids and facts.answered[CLIENT, "initialize"] > 0
    is_unassigned = is_unassigned and not endpoints(facts)  # HTTP+SSE has the session in the address.
    return is_unassigned and exchange.method == "POST" and exchange.session_id is None


define(
    __name__,
    FailureRow(
        "session-not-assigned",
        "the server wants a session id, and none came with the result of initialize",
        Level.EXACT,
        why="A gateway or proxy between mcpspy and the server drops Mcp-Session-Id from the "
        "response, or the server forgets it.",
        title="the response to initialize had no Mcp-Session-Id, and {about} without one is refused "
        "with HTTP {status}: {words}",
        next_step="let the gateway or proxy behind mcpspy pass on the header Mcp-Session-Id of responses; "
        "ask the server directly to compare",
        side="proxy",
        statuses=(400, 404),
        words="session",
        if_refused=_has_none,
        is_together=True,
        positive=ex.session(
            "@ http bare",
            ex.initialize(),
            ex.answered(200, {}, {_ID: None}),
            ex.welcome(),
            ex.request("tools/list"),
            ex.answered(400, {_ID: None}),
            ex.error("Bad Request: Missing session ID", -32600, None),
        ),
    ),
)


_EXPIRED_ALONE = re.compile(r"(?i)^(?!.*\b(?:or|invalid)\b).*\bexpired\b")
"""Words that say of a token that its time is over, and nothing else."""

_SESSION = re.compile(r"(?i)session|initiali[sz]")
_STALE = re.compile(r"(?i)session|initiali[sz]ed")
_OTHER_SESSION = re.compile(
    r"(?i)\b(?:browser|database|db|sql\w*|chat|login|sign-in|playwright|query|shell|ssh|debug\w*)[ _-]?sessions?\b"
    r"|\b(?:creat|start|open|acquir|launch|establish)\w* .{0,20}sessions?\b"
    r"|mismatch|\bbelongs?\b|(?:another|different|other) (?:user|client)|\bowner|not (?:allowed|permitted|authori[sz]ed)"
)
"""Words of a session of another kind, or of the session of another user."""
_SIGNED_OUT = re.compile(r"(?i)\blog(?:ged)? ?(?:in|out)\b|\bsign(?:ed)? ?(?:in|out)\b|authenticat")
"""Words of 401 or 403 of a sign-in that is over."""
_OTHER_THING = re.compile(
    r"(?i)\b(?:method|tool|(?<!requested )(?<!static )resource|prompt|task|template|project|workspace|tenant|user|file|document|record|model)s?\b"
    r"(?! session).{0,60}\b(?:not (?:be )?found|unknown|does(?: not|n't) exist|not (?:supported|implemented|available))"
    r"|\b(?:unknown|no such|invalid|unsupported)\b.{0,4} ?(?:method|tool|resource|prompt|task|project|workspace|tenant|user|file)\b"
)
"""Words of a 404 that is about what a request names, and not about its session."""
_AGAIN = re.compile(r"(?i)already initiali[sz]ed")
_ALREADY = re.compile(r"(?i)already (?:connected|initiali[sz]ed|started)")
"""The SDKs: no session with this id, a second initialize, and a server object that has a transport."""


def _is_of_other_session(exchange: RefusedExchange, words: str) -> bool:
    """Return whether the words of a refusal are about a session that is not that of MCP, or of a sign-in."""
    is_signed_out = exchange.status in (401, 403) and _SIGNED_OUT.search(words) is not None
    return is_signed_out or _OTHER_SESSION.search(words) is not None


def _unreadable_by(origin: str | None) -> str:
    return (
        f"the page at {quote(origin or '', 60)} cannot read it, since Access-Control-Expose-Headers does not name "
        f"Mcp-Session-Id"
    )


_WITHOUT_ID = (ex.call(), ex.answered(200, {_ID: None}))


@cause(
    "session-header-missing",
    "the client does not send the session id that it was given",
    Level.EXACT,
    rules="HTTP202",
    positive=(
        ex.list_answer(400, {_ID: None}, "Missing session id"),
        ex.list_answer(400, {_ID: None}, "Bad Request: Server not initialized"),
        ex.session("@ http", ex.ping_answered(400, {_ID: None}, {}, "Bad Request")),
        ex.session("@ http", *_WITHOUT_ID, ex.error("invalid during session initialization", 0)),
        ex.session("@ http", *_WITHOUT_ID, ex.error("Invalid request parameters", -32602)),
    ),
    negative=(
        ex.list_answer(400, "Missing session id"),
        ex.session(
            "@ http",
            *_WITHOUT_ID,
            ex.done(),
            ex.call(3),
            ex.answered(200, {_ID: None}),
            ex.error("no", -32602, 3),
        ),
        ex.session("@ http", *_WITHOUT_ID, ex.error("KeyError: 'a' is not defined")),
    ),
)
def session_header_missing(facts: Facts) -> Iterator[Claim]:
    """A proxy drops the header, a page cannot read it (Access-Control-Expose-Headers), or the
    client knows no sessions.
    """
    assigned_at = min(facts.http.session_ids.values(), default=None)
    begin = facts.http.heads.get("initialize")
    exposed = "" if begin is None else begin.response.get("access-control-expose-headers", "").lower()
    expose = "let the server answer with Access-Control-Expose-Headers: Mcp-Session-Id (CORS)"
    for exchange, symptom in exchanges(facts, 400, 401, 403, 404):
        if assigned_at is None or exchange.at < assigned_at or exchange.session_id is not None:
            continue
        is_other = exchange.asked in ("initialize", "server/discover") or exchange.is_for_metadata
        if is_other or exchange.method not in ("POST", "GET", "DELETE"):
            continue
        # A client that works without the id is refused for something else, such as an expired sign-in.
        if _is_of_other_session(exchange, said(exchange, symptom)):
            continue
        origin = exchange.request.get("origin")
        is_hidden = (
            bool(origin) and begin is not None and _ID not in exposed and not facts.http.accepted_count
        )
        is_bare_response = exchange.is_response and exchange.status in (400, 404)
        if not (is_hidden or is_bare_response or _SESSION.search(said(exchange, symptom))):
            continue
        title = (
            f"{about(exchange)} came without the session id that the server had assigned, and got HTTP "
            f"{exchange.status}"
        )
        next_step = (
            "let the client send Mcp-Session-Id with each request after initialize; look whether a proxy "
            "between client and mcpspy drops it"
        )
        if is_hidden:
            title, next_step = f"{title}: {_unreadable_by(origin)}", expose
        same = [each for other, each in exchanges(facts, exchange.status or 0) if other.session_id is None]
        lost = [
            each
            for each in exchanges(facts, 404)
            if each[0].session_id is not None and each[0].at < exchange.at
        ]
        if lost and not is_hidden and not any(at > lost[0][0].at for at in facts.http.session_ids.values()):
            title = (
                f"the server no longer knows the session (HTTP 404{clause(said(*lost[0]))}), and the client continued "
                f"without an id and without a new initialize: {about(exchange)} got HTTP {exchange.status}"
            )
            next_step = (
                "the client must send initialize again after a 404 for its session; keep the server's sessions over "
                "restarts, or make it stateless"
            )
            same += [each for _, each in lost]
        symptoms, side = [*same, *facts.violations("HTTP202")], SERVER if is_hidden else CLIENT
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)
        return
    # Without the id, each request begins another session in some servers, in which nothing is initialized.
    lacking = facts.violations("HTTP202")
    has_worked = any(side == CLIENT and method != "initialize" for side, method in facts.answered)
    errors = [each for each in facts.failed(State.ERROR) if each.side == CLIENT and not each.effects]
    if (
        assigned_at is None
        or not lacking
        or has_worked
        or not errors
        or any(each.is_handshake for each in errors)
        or not any(JSON in finding.excerpt for each in lacking for finding in each.findings)  # Of GET alone.
        or BUG.search(errors[0].words)
    ):
        return
    title = (
        f"no request of the client has the Mcp-Session-Id that the server had assigned, and {errors[0].about} fails"
        f"{clause(errors[0].words)}"
    )
    side = CLIENT
    next_step = (
        "let the client send Mcp-Session-Id with each request after initialize: the server takes each of them for one of a "
        "new session, in which nothing is initialized"
    )
    origin = "" if begin is None else begin.request.get("origin")
    if origin and _ID not in exposed:
        title, next_step, side = f"{title}: {_unreadable_by(origin)}", expose, SERVER
    symptoms = [*errors, *lacking, *facts.of(ClientLeft)]
    yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side)


def _ping(*numbers: int) -> str:
    return ex.session(*(ex.session(ex.request("ping", number), ex.result(number)) for number in numbers))


_LOST = ex.session(ex.request("tools/list"), ex.answered(404, "Session not found"))


_ABOUT_SESSIONS = re.compile(r"(?i)\bsessions?\b|initiali[sz]ed|\btransport\b|^bad request$")


def _is_about_its_message(exchange: RefusedExchange, words: str) -> bool:
    """Return whether a refusal is about what its message names, and not about its session."""
    if NO_ROUTE.search(words) or (exchange.status == 400 and words and not _ABOUT_SESSIONS.search(words)):
        return True
    return _OTHER_THING.search(words) is not None and not re.search(r"(?i)\bsessions?\b", words)


def _is_unread_notification(facts: Facts, exchange: RefusedExchange, words: str) -> bool:
    """Return whether a notification was refused without a word in a session that requests still used after it."""
    is_used = facts.http.accepted_at(exchange) > exchange.last_at
    return exchange.asked.startswith("notifications/") and not words and is_used


@cause(
    "replicas",
    "several copies of the server do not share their sessions",
    Level.EXACT,
    positive=(
        ex.session("@ http", ex.request("tools/list"), ex.answered(404), _ping(3)),
        ex.session("@ sse 2024-11-05", ex.request("tools/list"), ex.answered(404, "Could not find session")),
        ex.session("@ sse bare 2024-11-05", ex.initialize(), ex.answered(404, "Could not find session")),
    ),
    negative=(
        ex.session("@ http", _ping(3, 4), _LOST),
        ex.session("@ http", ex.request("tools/list"), ex.answered(400, "no handler"), _ping(3)),
        ex.session("@ http", ex.call(), ex.answered(404, "Tool not found: a"), _ping(3)),
        ex.session(
            "@ http",
            ex.request("prompts/list"),
            ex.answered(404),
            ex.error("Method not found", -32601),
            _ping(3),
        ),
        ex.session("@ http", ex.notified(">", "notifications/x"), ex.answered(404), _ping(3)),
        ex.session("@ sse 2024-11-05", ex.listed("a"), ex.call(3), ex.answered(404, "Unknown tool: a")),
    ),
)
def replicas(facts: Facts) -> Iterator[Claim]:
    """A load balancer sends requests of one session to different copies; one that did not create
    the session refuses it.
    """
    for exchange, symptom in exchanges(facts, 400, 404):
        session_id, status, words = exchange.session_id, exchange.status, said(exchange, symptom)
        if session_id is None or exchange.asked in ("initialize", ""):
            continue
        if _NOT_YET.search(words) and facts.client.methods["notifications/initialized"]:
            continue  # `initialized-overtaken`
        if _is_about_its_message(exchange, words) or _is_unread_notification(facts, exchange, words):
            continue  # It refuses this message, and not its session.
        since = exchange.at - facts.http.session_ids.get(session_id, float("-inf"))
        if facts.http.accepted.get(session_id, 0.0) > exchange.at:
            level = Level.EXACT
            title = (
                f"the server refused the session with HTTP {status} in some requests and accepted it in "
                f"others: several copies of it serve this address and do not share sessions"
            )
        elif since < 1.0 and facts.http.accepted_count[session_id] <= 2 and status == 404:
            level = Level.SPECIFIC
            title = (
                f"the server assigned a session, and {duration(since)} later did not know it (HTTP "
                f"{status}): another copy of it answered, or it does not keep its sessions"
            )
        else:
            continue
        next_step = (
            "route all requests with one Mcp-Session-Id to the same copy, share the sessions, or make "
            "the server stateless"
        )
        symptoms = [each for other, each in exchanges(facts) if other.status == status]
        side = SERVER  # One copy that forgets its sessions.
        if level is Level.EXACT:
            next_step = (
                "run one process of the server (one worker: gunicorn, uvicorn, Puma, a cluster of Node.js), or "
                + next_step
            )
            side = side_of(exchange) if who_refused(exchange) != "the server" else ""
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=side, level=level)
        break
    yield from _unknown_to_its_stream(facts)


_NOT_YET = re.compile(r"(?i)\bnot (?:yet |been )*initiali[sz]ed|before initiali[sz]ation")
"""A server that waits for the end of the handshake."""


@cause(
    "initialized-overtaken",
    "a request came before the server had taken notifications/initialized",
    Level.EXACT,
    rules="ENV205",
    positive=ex.session(
        "@ http", ex.request("tools/list"), ex.answered(400, "Session not initialized"), _ping(3)
    ),
    negative=ex.session("@ http bare", ex.request("tools/list"), ex.answered(400, "Session not initialized")),
)
def initialized_overtaken(facts: Facts) -> Iterator[Claim]:
    """Over HTTP, two messages that are posted at once may change their order on the way."""
    if not facts.client.methods["notifications/initialized"]:
        return
    found = [
        (exchange, symptom)
        for exchange, symptom in exchanges(facts, 400, 404, 409, 422)
        if exchange.method == "POST"
        and _NOT_YET.search(said(exchange, symptom))
        and facts.http.accepted_at(exchange) > exchange.at
    ]
    failed = [
        each
        for each in facts.failed(State.ERROR)
        if not facts.is_stdio
        and each.side == CLIENT
        and not each.is_handshake
        and _NOT_YET.search(each.words)
    ]
    symptoms = [*(each for _, each in found), *(each for each in failed if each.refusal is None)]
    if not symptoms:
        return
    what, words = (about(found[0][0]), said(*found[0])) if found else (failed[0].about, failed[0].words)
    title = (
        f"{what} was refused, as the server had not taken notifications/initialized yet, which the client had "
        f"sent before it{clause(words)}"
    )
    next_step = (
        "let the client wait for the response (202) to notifications/initialized before it sends a request; the server may "
        "take requests as soon as it has answered initialize"
    )
    # Two answers, of which one is to the notification.
    symptoms += [*facts.violations("ENV205", side=SERVER), *facts.of(ClientLeft)]
    yield Claim(title=title, next_step=next_step, symptoms=symptoms, side="")


def _unknown_to_its_stream(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of messages of HTTP+SSE whose session is not known, although its stream is open."""
    for exchange, symptom in exchanges(facts, 400, 404) if endpoints(facts) else ():
        words = said(exchange, symptom)
        if exchange.method != "POST" or not re.search(r"(?i)\b(?:session|transport|connection)", words):
            continue
        if any(get.ended_at is not None and get.ended_at < exchange.at for get in facts.http.gets):
            continue  # `sse-stream-ended`
        if lost_query(facts, exchange):
            continue  # `posted-elsewhere`
        title = (
            f"{about(exchange)}: the server does not know the session of this address (HTTP {exchange.status}{clause(words)}), "
            f"although the SSE stream that named it is open: another copy or process of the server answered"
        )
        next_step = (
            "run one process of the server (one worker), or route all requests with one sessionId to the copy that has the "
            "stream; if there is only one, it was restarted behind a proxy that kept the stream open"
        )
        symptoms = [each for other, each in exchanges(facts) if other.status == exchange.status]
        # A balancer that distributes, or workers of one server: the recording does not tell.
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side="")
        break


define(
    __name__,
    FailureRow(
        "delete-refused",
        "the end of a session was refused",
        Level.EXACT,
        why="A client may end its session with DELETE. A server that does not allow it answers 405; "
        "nothing depends on it.",
        title="DELETE at the end of the session was answered HTTP {status}; nothing depends on it",
        next_step="let the server answer 204, or 405 if clients may not end sessions",
        side="",
        statuses=range(400, 1000),
        if_refused=lambda _, exchange: exchange.method == "DELETE",
        is_observation=True,
        positive=ex.session("@ http", ex.call(), ex.done(), ex.http("DELETE", 404, head={_ID: "s-1"})),
        negative=ex.session("@ http", ex.call(), ex.done(), ex.http("DELETE", 405, head={_ID: "s-1"})),
    ),
)


@cause(
    "initialize-with-session",
    "initialize was sent with the id of an old session",
    Level.EXACT,
    rules="LIFE105 LIFE114",
    positive=(
        ex.session("@ http", ex.initialize(), ex.answered(404, {_ID: "s-1"})),
        ex.session(ex.initialize(9), ex.error("Already initialized", -32600, 9)),
    ),
    negative=(
        ex.session("@ http", ex.initialize(), ex.answered(404)),
        ex.session("@ http", ex.initialize(), ex.answered(400, {_ID: "s-1"}, "Missing field: tenant")),
    ),
)
def initialize_with_session(facts: Facts) -> Iterator[Claim]:
    """Initialize begins a session, so it carries no session id; a server looks the id up and refuses it."""
    begun = [each for each in exchanges(facts, 400, 404) if each[0].asked == "initialize"]
    again: list[tuple[Symptom, str]] = [
        (symptom, words)
        for exchange, symptom in begun
        if _AGAIN.search(words := said(exchange, symptom))
        and (exchange.session_id is not None or not facts.http.session_ids)
    ]
    if facts.is_stdio and facts.answered[CLIENT, "initialize"]:
        failed = facts.failed(State.ERROR)
        again = [(each, each.words) for each in failed if each.method == "initialize"]
    if again:
        title = f"the client sent initialize again in a session that was initialized: {quote(again[0][1])}"
        next_step = "the client must send initialize once, and then notifications/initialized"
        symptoms = [*(each for each, _ in again), *facts.violations("LIFE105", "LIFE114")]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)
        return
    refused = [
        (exchange, words)
        for exchange, symptom in begun
        if exchange.session_id is not None
        and not _is_about_its_message(exchange, words := said(exchange, symptom))
    ]
    for exchange, _ in refused[:1]:
        same = [each for each in exchanges(facts) if each[0].status == exchange.status]
        title = (
            f"the client sent initialize with the id of the session that had ended, and the server "
            f"refused it with HTTP {exchange.status}"
        )
        next_step = (
            "the client must send initialize without Mcp-Session-Id; the server could ignore the header there"
        )
        symptoms = [each for other, each in same if other.session_id is not None]
        yield Claim(title=title, next_step=next_step, symptoms=symptoms, side=CLIENT)


def _is_one_too_many(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether the client began another session, and had not ended the earlier ones."""
    has_ended = any(method == "DELETE" for method, _ in facts.http.statuses)
    return exchange.asked == "initialize" and not has_ended and facts.answered[CLIENT, "initialize"] >= 4


_NO_ROOM = ex.session(ex.request("initialize", 14), ex.answered(503, "Too many sessions"))


define(
    __name__,
    FailureRow(
        "sessions-not-ended",
        "the client begins sessions and never ends them, until the server has no room",
        Level.EXACT,
        why="A client that begins a session for each call has to end it with DELETE; a server has to "
        "end those that are idle.",
        title="the server refused initialize with HTTP {status} after {sessions} sessions, none of "
        "which the client had ended: {words}",
        next_step="let the client use one session for its calls, or end each with DELETE; let the server "
        "end sessions that are idle",
        side=CLIENT,
        statuses=(429, 500, 503),
        # A limit of requests is another one.
        words=r"session|connection|^(?!.*(?:\brate\b|\brequests\b|\bper (?:second|minute|hour|day)\b)).*(?:too many|limit|max)",
        if_refused=_is_one_too_many,
        is_together=True,
        positive=ex.session(
            "@ http",
            *(ex.session(ex.request("initialize", n), ex.welcome(n)) for n in (11, 12, 13)),
            _NO_ROOM,
        ),
        negative=(
            ex.session("@ http", _NO_ROOM),
            ex.session(
                "@ http",
                *(ex.session(ex.request("initialize", n), ex.welcome(n)) for n in (11, 12, 13)),
                *(ex.request("initialize", 14), ex.answered(429, "Too many requests: limit 100 per minute")),
            ),
        ),
    ),
)


def _is_lost(facts: Facts, exchange: RefusedExchange, symptom: Symptom) -> bool:
    """Return whether a server refused a request for its session id."""
    if exchange.method == "DELETE" or exchange.session_id is None or exchange.error:
        return False
    words = said(exchange, symptom)
    if exchange.status == 404:
        is_other = _OTHER_THING.search(words) is not None and not _STALE.search(words)
        return not is_other and not _is_unread_notification(facts, exchange, words)
    is_refused = exchange.status in (400, 401, 403, 409, 410, 422, 500, 503)
    return is_refused and _STALE.search(words) is not None and not _is_of_other_session(exchange, words)


def _is_lost_as_token(facts: Facts, exchange: RefusedExchange, words: str) -> bool:
    """Return whether 401 answered to a session that had worked, and a new session needed no new sign-in."""
    session_id, http = (exchange.session_id or ""), facts.http
    steps = [step.at for step in http.oauth if step.step == "token"]
    is_refused = exchange.status == 401 and exchange.has_token
    if not is_refused or not http.accepted_count[session_id] or _EXPIRED_ALONE.search(words):
        return False
    renewed_at = min((at for at in http.session_ids.values() if at > exchange.at), default=None)
    if renewed_at is None or http.accepted.get(session_id, 0.0) > exchange.at:
        return False
    if "resource_metadata" in exchange.challenge and not steps:
        return (
            False  # The authorization server may be at another host: a new token from there is not recorded.
        )
    return not any(exchange.at < at < renewed_at for at in steps)


_REFUSED_ONCE = ex.session(
    *(ex.call(3), ex.answered(200, ex.WITH_TOKEN), ex.done(3)),
    *(ex.call(4), ex.answered(401, ex.WITH_TOKEN, "Invalid or expired token")),
)


@cause(
    "session-lost-as-token",
    "the server answers 401 for a session that it does not know",
    Level.EXACT,
    positive=ex.session(
        "@ http",
        _REFUSED_ONCE,
        ex.initialize(5),
        ex.answered(200, ex.WITH_TOKEN, {_ID: "s-2"}),
        ex.welcome(5),
    ),
    negative=(
        ex.session("@ http", _REFUSED_ONCE),
        ex.session(
            "@ http",
            *(ex.call(3), ex.answered(200, ex.WITH_TOKEN), ex.done(3), ex.call(4)),
            ex.answered(
                401, ex.WITH_TOKEN, {"www-authenticate": 'Bearer resource_metadata="https://a.example/b"'}
            ),
            *(ex.initialize(5), ex.answered(200, ex.WITH_TOKEN, {_ID: "s-2"}), ex.welcome(5)),
        ),
    ),
)
def session_lost_as_token(facts: Facts) -> Iterator[Claim]:
    """A server that keeps tokens with its sessions forgets both in a restart. To 401, clients sign in again, or
    ask people to; to 404 they begin a new session and say nothing.
    """
    found = [
        (exchange, symptom)
        for exchange, symptom in exchanges(facts, 401)
        if _is_lost_as_token(facts, exchange, said(exchange, symptom))
    ]
    if not found:
        return
    exchange, symptom = found[0]
    title = (
        f"the server answered HTTP 401 for a session that it had accepted before, and accepted a new session without "
        f"a new sign-in: it has lost its sessions, and reports the token as wrong{clause(said(exchange, symptom))}"
    )
    next_step = (
        "let the server answer 404 for a session that it does not know: clients then send initialize again, and do not "
        "sign in again; keep sessions over restarts"
    )
    yield Claim(title=title, next_step=next_step, symptoms=[each for _, each in found], side=SERVER)


@cause(
    "session-lost",
    "the server does not know the session any more",
    Level.SPECIFIC,
    rules="HTTP205",
    positive=(
        ex.session("@ http", _ping(3, 4), _LOST),
        ex.session("@ http", _ping(3), ex.http("DELETE", 200, head={_ID: "s-1"}), _LOST),
    ),
    negative=(
        ex.list_answer(404, {_ID: None}),
        ex.session("@ http", _ping(3), ex.call(), ex.answered(404, "Unknown tool: a")),
        ex.session("@ http", _ping(3), ex.call(), ex.answered(500, "Failed to create browser session")),
        ex.session(
            "@ http",
            *(_ping(3), ex.call()),
            ex.answered(401, ex.WITH_TOKEN, "Your session has expired, please log in again"),
        ),
        ex.session("@ http", _ping(3), ex.call(), ex.answered(403, "session user mismatch")),
    ),
)
def session_lost(facts: Facts) -> Iterator[Claim]:
    """The server restarted, or the session expired. It answers 404, and the client must send
    initialize again.
    """
    refused = [each for each in exchanges(facts) if _is_lost(facts, *each)]
    if not refused:
        return
    first, lost = refused[0][0], [symptom for _, symptom in refused]
    session_id, status = first.request[_ID], first.status
    alike_refused = [each for each in facts.of(RefusedExchange) if each.session_id == session_id]
    lost += [each for each in alike_refused if each not in lost and each.status == status]
    requests = [symptom for symptom in lost if isinstance(symptom, FailedRequest)]
    words = next((symptom.words for symptom in requests if symptom.words), first.words)
    known = "that had worked before" if facts.http.accepted_count[session_id] else "that never worked here"
    began_again = facts.client.methods["initialize"] > 1
    count = sum(symptom.count for symptom in lost)
    title = f"the server no longer knows the session {known} (HTTP {status}{clause(words)})"
    if status == 404:
        is_used = count > 1 and not began_again
        title += f", and the client still used it in {counted(count, 'request')}" if is_used else ""
        next_step = (
            "the client must send initialize again after a 404; keep the server's sessions over "
            "restarts, or make it stateless"
        )
    else:
        title += ": it restarted or lost its state, and does not answer 404"
        next_step = (
            "let the server answer 404 for a session that it does not know, so that the client sends "
            "initialize again; keep sessions over restarts"
        )
    ended_at, place = facts.http.ended.get(session_id, (None, first.place))
    if is_ended := ended_at is not None and ended_at <= first.at:
        title = (
            f"the client ended its session itself (DELETE), and sent {about(first)} with its id {first.at - ended_at:.1f} "
            f"s later (HTTP {status}{clause(words)})"
        )
        next_step = (
            "let the client end a session only after its last request, or send initialize again after DELETE"
        )
    is_renewed = began_again and len(requests) == len(lost) and is_overcome(lost)
    next_step = "the client began a new session, as it should" if is_renewed else next_step
    symptoms = lost if is_renewed else [*lost, *facts.violations("HTTP205")]
    side = "" if is_renewed else CLIENT if status == 404 or is_ended else SERVER
    claim = Claim(title=title, next_step=next_step, symptoms=symptoms, side=side, is_observation=is_renewed)
    if is_ended:
        claim.evidence, claim.level = [evidence(place, "DELETE of the session by the client")], Level.EXACT
    yield claim


@cause(
    "one-session-only",
    "the server can serve one session only",
    Level.EXACT,
    positive=ex.session("@ http", ex.request("initialize"), ex.answered(500)),
    negative=(
        ex.first_answer(500),
        ex.session("@ http", ex.request("initialize"), ex.answered(500, "database is locked")),
    ),
)
def one_session_only(facts: Facts) -> Iterator[Claim]:
    """One server object is shared by all sessions, and the SDK connects it to one transport only."""
    for failed in facts.failed():
        if (
            facts.is_stdio
            or failed.method != "initialize"
            or failed.is_first
            or not facts.answered[CLIENT, "initialize"]
        ):
            continue
        status = None if failed.refusal is None else failed.refusal.status
        others = [each for each, _ in exchanges(facts) if each.status == status]
        if any(each.asked not in ("initialize", "") for each in others):
            continue  # Whatever it is, it does not concern new sessions alone.
        says_so = _ALREADY.search(failed.words)
        is_mute = not failed.words or says_nothing(failed.words)
        if says_so or (status == 500 and is_mute and facts.answered[CLIENT, "initialize"] == 1):
            how = f"HTTP {status}" if status else "an error"
            title = (
                f"the server answered the first initialize, and each later one with {how}: "
                f"{quote(failed.words) or 'it can serve one session only'}"
            )
            next_step = (
                "make a server object for each session (one transport and one server for each "
                "Mcp-Session-Id), and end sessions that are over"
            )
            level = Level.EXACT if says_so else Level.SPECIFIC
            yield Claim(title=title, next_step=next_step, symptoms=[failed], side=SERVER, level=level)
    yield from _taken_over(facts)


def _taken_over(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of requests without a response in a session that was answered until another session began.

    Connecting one server object to the transport of each new session sends the responses of all of them there.
    """
    http, silent = facts.http, []
    for failed in without_response(facts, CLIENT):
        begun_at, _ = http.begun.get(failed.stream, (failed.asked_at, None))
        newer = [
            (at, place)
            for stream, (at, place) in http.begun.items()
            if begun_at < at < failed.asked_at and http.answered_in.get(stream, 0.0) > at
        ]
        is_hang = failed.took >= LONG_WAIT and failed.answer_at is None and not failed.is_handshake
        if newer and is_hang and http.answered_in.get(failed.stream, 0.0) < max(newer)[0]:
            silent.append((failed, max(newer)))
    if not silent:
        return
    (first, (at, place)) = silent[0]
    title = (
        f"{first.about} got no response for {first.waited}: another session had begun {duration(first.asked_at - at)} "
        f"before, and since then the server answers there, and no more in this older one"
    )
    next_step = (
        "make a server object for each session: one that is connected to the transport of each new session sends "
        "the responses of all sessions to the newest one"
    )
    symptoms: list[Symptom] = [failed for failed, _ in silent]
    lines = [evidence(place, "another session begins")]
    yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=SERVER)
