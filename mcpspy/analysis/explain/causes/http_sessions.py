"""Sessions over HTTP: their ids, how they begin, and copies of a server that do not share them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import (
    about,
    alike,
    exchanges,
    said,
    with_words,
)
from mcpspy.analysis.explain.causes.http_sse import endpoints, lost_query
from mcpspy.analysis.explain.causes.lost_sessions import (
    SESSION_ID,
    is_about_its_message,
    is_of_other_session,
    is_unread_notification,
)
from mcpspy.analysis.explain.causes.requests import NO_PARAMS
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import BUG, clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import MAX_EXCHANGES
from mcpspy.analysis.explain.symptoms import ClientLeft, RefusedExchange, Symptom
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State


def _has_none(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether a message was posted without the session id that the server had not assigned."""
    is_unassigned = not facts.http.session_ids and facts.answered[CLIENT, "initialize"] > 0
    is_unassigned = is_unassigned and not endpoints(facts)  # HTTP+SSE has the session in the address.
    return is_unassigned and exchange.method == "POST" and exchange.session_id is None


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
    side="",
    statuses=(400, 404, 422),
    words=r"session|expect\w* initialize",
    if_refused=_has_none,
    is_together=True,
    positive=ex.session(
        "@ http bare",
        ex.initialize(),
        ex.answered(200, {}, {SESSION_ID: None}),
        ex.welcome(),
        ex.request("tools/list"),
        ex.answered(400, {SESSION_ID: None}),
        ex.error("Bad Request: Missing session ID", -32600, None),
    ),
).define(__name__)

_SESSION = re.compile(r"(?i)session|initiali[sz]")
_AGAIN = re.compile(r"(?i)already initiali[sz]ed")


_EXPOSE = "let the server answer with Access-Control-Expose-Headers: Mcp-Session-Id (CORS)"


def _is_hidden(facts: Facts) -> bool:
    """Return whether the server does not let a page read the session id in its response to initialize."""
    begin = facts.http.heads.get("initialize")
    return (
        begin is not None
        and SESSION_ID not in begin.response.get("access-control-expose-headers", "").lower()
    )


def _unreadable_by(origin: str | None) -> str:
    return (
        f"the page at {quote(origin or '', 60)} cannot read it, since Access-Control-Expose-Headers does not name "
        f"Mcp-Session-Id"
    )


_WITHOUT_ID = (ex.call(), ex.answered(200, {SESSION_ID: None}))


@cause(
    "session-header-missing",
    "the client does not send the session id that it was given",
    Level.EXACT,
    rules="HTTP202",
    positive=(
        ex.list_answer(400, {SESSION_ID: None}, "Missing session id"),
        ex.list_answer(400, {SESSION_ID: None}, "Bad Request: Server not initialized"),
        ex.session("@ http", ex.ping_answered(400, {SESSION_ID: None}, {}, "Bad Request")),
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
            ex.answered(200, {SESSION_ID: None}),
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
    for exchange, symptom in exchanges(facts, 400, 401, 403, 404, 422):
        if assigned_at is None or exchange.at < assigned_at or exchange.session_id is not None:
            continue
        is_other = exchange.asked in ("initialize", "server/discover") or exchange.is_for_metadata
        if is_other or exchange.method not in ("POST", "GET", "DELETE"):
            continue
        # A client that works without the id is refused for something else, such as an expired sign-in.
        if is_of_other_session(exchange, said(exchange, symptom)):
            continue
        origin = exchange.request.get("origin")
        is_hidden = bool(origin) and _is_hidden(facts) and not facts.http.accepted_count
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
            title, next_step = f"{title}: {_unreadable_by(origin)}", _EXPOSE
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
        yield Claim(title, next_step, symptoms, side=side)
        return
    if assigned_at is not None:
        yield from _fail_in_new_sessions(facts)


def _fail_in_new_sessions(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of requests that fail as they have no id: to some servers, each of them begins a session."""
    lacking = facts.violations("HTTP202")
    has_worked = any(side == CLIENT and method != "initialize" for side, method in facts.answered)
    errors = [each for each in facts.failed(State.ERROR) if each.side == CLIENT and not each.effects]
    if (
        not lacking
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
    begin = facts.http.heads.get("initialize")
    if begin is not None and (origin := begin.request.get("origin")) and _is_hidden(facts):
        title, next_step, side = f"{title}: {_unreadable_by(origin)}", _EXPOSE, SERVER
    yield Claim(title, next_step, [*errors, *lacking, *facts.of(ClientLeft)], side=side)


OVERTAKING = 1.0
"""Seconds after initialize in which a request may overtake notifications/initialized; later, its session is lost."""


@cause(
    "replicas",
    "several copies of the server do not share their sessions",
    Level.EXACT,
    positive=(
        ex.session("@ http", ex.request("tools/list"), ex.answered(404), ex.pings(3)),
        ex.session("@ sse 2024-11-05", ex.request("tools/list"), ex.answered(404, "Could not find session")),
        ex.session("@ sse bare 2024-11-05", ex.initialize(), ex.answered(404, "Could not find session")),
    ),
    negative=(
        ex.session("@ http", ex.pings(3, 4), ex.request("tools/list"), ex.answered(404, "Session not found")),
        ex.session("@ http", ex.request("tools/list"), ex.answered(400, "no handler"), ex.pings(3)),
        ex.session("@ http", ex.call(), ex.answered(404, "Tool not found: a"), ex.pings(3)),
        ex.session(
            "@ http",
            ex.request("prompts/list"),
            ex.answered(404),
            ex.error("Method not found", -32601),
            ex.pings(3),
        ),
        ex.session("@ http", ex.notified(">", "notifications/x"), ex.answered(404), ex.pings(3)),
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
        since = exchange.at - facts.http.session_ids.get(session_id, float("-inf"))
        if (
            since < OVERTAKING
            and _NOT_YET.search(words)
            and facts.client.methods["notifications/initialized"]
        ):
            continue  # `initialized-overtaken`
        if is_about_its_message(exchange, words) or is_unread_notification(facts, exchange, words):
            continue  # It refuses this message, and not its session.
        if facts.http.accepted_at(exchange) > exchange.at:
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
        side = SERVER  # One copy that forgets its sessions.
        if level is Level.EXACT:
            next_step = (
                "run one process of the server (one worker: gunicorn, uvicorn, Puma, a cluster of Node.js), or "
                + next_step
            )
            side = ""  # How the copies are run, and how requests come to them, is not in the recording.
        yield Claim(title, next_step, alike(facts, exchange), side=side, level=level)
        break
    yield from _unknown_to_its_stream(facts)


_NOT_YET = re.compile(
    r"(?i)\bnot (?:yet |been )*initiali[sz]ed|before initiali[sz]ation|during (?:session )?initiali[sz]ation"
)
"""A server that waits for the end of the handshake."""


@cause(
    "initialized-overtaken",
    "a request came before the server had taken notifications/initialized",
    Level.EXACT,
    rules="ENV205",
    positive=ex.session(
        *("@ http bare", "+ 0.01", ex.initialize(), ex.welcome(), ex.INITIALIZED),
        *(ex.request("tools/list"), ex.answered(400, "Session not initialized"), ex.pings(3)),
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
        and (
            _NOT_YET.search(each.words)
            or (NO_PARAMS.fullmatch(each.words.strip()) and each.before == "notifications/initialized")
        )
        and any(0 <= each.asked_at - at < OVERTAKING for at, _ in facts.http.begun.values())
    ]
    symptoms = [*(each for _, each in found), *(each for each in failed if not each.is_refused)]
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
    yield Claim(title, next_step, symptoms, side="")


def _unknown_to_its_stream(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of messages of HTTP+SSE whose session is not known, although its stream is open."""
    for exchange, words in with_words(facts, 400, 404) if endpoints(facts) else ():
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
        # A balancer that distributes, or workers of one server: the recording does not tell.
        yield Claim(title, next_step, alike(facts, exchange))
        break


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
    positive=ex.session("@ http", ex.call(), ex.done(), ex.http("DELETE", 404, head={SESSION_ID: "s-1"})),
    negative=ex.session("@ http", ex.call(), ex.done(), ex.http("DELETE", 405, head={SESSION_ID: "s-1"})),
).define(__name__)


@cause(
    "initialize-with-session",
    "initialize was sent with the id of an old session",
    Level.EXACT,
    rules="LIFE105 LIFE114",
    positive=(
        ex.session("@ http", ex.initialize(), ex.answered(404, {SESSION_ID: "s-1"})),
        ex.session(ex.initialize(9), ex.error("Already initialized", -32600, 9)),
    ),
    negative=(
        ex.session("@ http", ex.initialize(), ex.answered(404)),
        ex.session("@ http", ex.initialize(), ex.answered(400, {SESSION_ID: "s-1"}, "Missing field: tenant")),
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
        again = [
            (each, each.words) for each in failed if each.method == "initialize" and _AGAIN.search(each.words)
        ]
    if (
        again
        and not facts.answered[CLIENT, "initialize"]
        and not any(exchange.session_id for exchange, _ in begun)
    ):
        title = f"the server refuses the first initialize of this client, as if it had come before: {quote(again[0][1])}"
        next_step = (
            "make a server object for each session (one transport and one server for each Mcp-Session-Id): it serves one "
            "session only, and another client has that; restart it until then"
        )
        yield Claim(title, next_step, [each for each, _ in again], side=SERVER)
        return
    if again:
        title = f"the client sent initialize again in a session that was initialized: {quote(again[0][1])}"
        next_step = "the client must send initialize once, and then notifications/initialized"
        symptoms = [*(each for each, _ in again), *facts.violations("LIFE105", "LIFE114")]
        yield Claim(title, next_step, symptoms, side=CLIENT)
        return
    refused = [
        (exchange, words)
        for exchange, symptom in begun
        if exchange.session_id is not None
        and not is_about_its_message(exchange, words := said(exchange, symptom))
    ]
    for exchange, _ in refused[:1]:
        if exchange.status != 404 and any(
            other.asked != "initialize"
            and (other.session_id, other.status) == (exchange.session_id, exchange.status)
            and other.at < exchange.at
            for other, _ in exchanges(facts)
        ):
            continue  # The server had lost the session, and did not answer 404: `session-lost`.
        same = [each for each in exchanges(facts) if each[0].status == exchange.status]
        is_known = (
            exchange.session_id in facts.http.session_ids or len(facts.http.session_ids) >= MAX_EXCHANGES
        )
        whose = (
            "a session that had begun before" if is_known else "a session that the server had not begun here"
        )
        title = f"the client sent initialize with the id of {whose}, and the server refused it with HTTP {exchange.status}"
        next_step = (
            "the client must send initialize without Mcp-Session-Id; the server could ignore the header there"
        )
        if not is_known:
            next_step += "; a gateway must not pass on the id that its own client has"
        symptoms = [each for other, each in same if other.session_id is not None]
        yield Claim(title, next_step, symptoms, side=CLIENT)
