"""Sessions over HTTP that a server lost, or has no room for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import (
    NO_ROUTE,
    about,
    exchanges,
    is_overcome,
    said,
    says_nothing,
)
from mcpspy.analysis.explain.causes.requests import LONG_WAIT, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.spec import CLIENT, SERVER

SESSION_ID = "mcp-session-id"
_OTHER_SESSION = re.compile(
    r"(?i)\b(?:browser|database|db|sql\w*|chat|login|sign-in|playwright|query|shell|ssh|debug\w*)[ _-]?sessions?\b"
    r"|\b(?:creat|start|open|acquir|launch|establish)\w* .{0,20}sessions?\b"
    r"|mismatch|\bbelongs?\b|(?:another|different|other) (?:user|client)|\bowner|not (?:allowed|permitted|authori[sz]ed)"
)
"""Words of a session of another kind, or of the session of another user."""
_SIGNED_OUT = re.compile(r"(?i)\blog(?:ged)? ?(?:in|out)\b|\bsign(?:ed)? ?(?:in|out)\b|authenticat")
"""Words of 401 or 403 of a sign-in that is over."""
OTHER_THING = re.compile(
    r"(?i)\b(?:method|tool|(?<!requested )(?<!static )resource|prompt|task|template|project|workspace|tenant|user|file|document|record|model)s?\b"
    r"(?! session).{0,60}\b(?:not (?:be )?found|unknown|does(?: not|n't) exist|not (?:supported|implemented|available))"
    r"|\b(?:unknown|no such|invalid|unsupported)\b.{0,4} ?(?:method|tool|resource|prompt|task|project|workspace|tenant|user|file)\b"
)
"""Words of a 404 that is about what a request names, and not about its session."""


def is_of_other_session(exchange: RefusedExchange, words: str) -> bool:
    """Return whether the words of a refusal are about a session that is not that of MCP, or of a sign-in."""
    is_signed_out = exchange.status in (401, 403) and _SIGNED_OUT.search(words) is not None
    return is_signed_out or _OTHER_SESSION.search(words) is not None


_ABOUT_SESSIONS = re.compile(r"(?i)\bsessions?\b|initiali[sz]ed|\btransport\b|^bad request$")


def is_about_its_message(exchange: RefusedExchange, words: str) -> bool:
    """Return whether a refusal is about what its message names, and not about its session."""
    if NO_ROUTE.search(words) or (exchange.status == 400 and words and not _ABOUT_SESSIONS.search(words)):
        return True
    return OTHER_THING.search(words) is not None and not re.search(r"(?i)\bsessions?\b", words)


def is_unread_notification(facts: Facts, exchange: RefusedExchange, words: str) -> bool:
    """Return whether a notification was refused by a router, or without a word in a session that requests still used after it."""
    is_used = facts.http.accepted_at(exchange) > exchange.last_at
    is_unread = (not words and is_used) or NO_ROUTE.search(words) is not None
    return exchange.asked.startswith("notifications/") and is_unread


_EXPIRED_ALONE = re.compile(r"(?i)^(?!.*\b(?:or|invalid)\b).*\bexpired\b")
"""Words that say of a token that its time is over, and nothing else."""
_STALE = re.compile(r"(?i)session|(?<!notifications/)initiali[sz]ed")
_ALREADY = re.compile(r"(?i)already (?:connected|initiali[sz]ed|started)")
"""The SDKs: no session with this id, a second initialize, and a server object that has a transport."""

_LOST = ex.session(ex.request("tools/list"), ex.answered(404, "Session not found"))


_SESSIONS = re.compile(
    r"(?i)(?:too many|max\w*|limit).{0,40}\bsessions\b|\bsessions\b.{0,40}(?:limit|max|reached)"
)


def _is_one_too_many(facts: Facts, exchange: RefusedExchange) -> bool:
    """Return whether the client began another session, and had not ended the earlier ones."""
    has_ended = any(method == "DELETE" for method, _ in facts.http.statuses)
    begun = facts.answered[CLIENT, "initialize"]
    is_limit = _SESSIONS.search(exchange.words) is not None and begun > 1
    return exchange.asked == "initialize" and not has_ended and (begun >= 4 or is_limit)


_NO_ROOM = ex.session(ex.request("initialize", 14), ex.answered(503, "Too many sessions"))


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
        "@ http", *(ex.session(ex.request("initialize", n), ex.welcome(n)) for n in (11, 12, 13)), _NO_ROOM
    ),
    negative=(
        ex.session("@ http", _NO_ROOM),
        ex.session(
            "@ http",
            *(ex.session(ex.request("initialize", n), ex.welcome(n)) for n in (11, 12, 13)),
            *(ex.request("initialize", 14), ex.answered(429, "Too many requests: limit 100 per minute")),
        ),
    ),
).define(__name__)


NO_HANDLER = re.compile(r"(?i)\b(?:missing|no) handler\b")
"""The words of a server that does not know a method (SDK for Java)."""


def _is_lost(facts: Facts, exchange: RefusedExchange, symptom: Symptom) -> bool:
    """Return whether a server refused a request for its session id."""
    if exchange.method == "DELETE" or exchange.session_id is None or exchange.error:
        return False
    words = said(exchange, symptom)
    if exchange.status == 404:
        is_other = any(each.search(words) for each in (OTHER_THING, NO_ROUTE)) and not _STALE.search(words)
        return not is_other and not is_unread_notification(facts, exchange, words)
    is_refused = exchange.status in (400, 401, 403, 409, 410, 422, 500, 503) and not NO_HANDLER.search(words)
    return is_refused and _STALE.search(words) is not None and not is_of_other_session(exchange, words)


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
        ex.answered(200, ex.WITH_TOKEN, {SESSION_ID: "s-2"}),
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
            *(ex.initialize(5), ex.answered(200, ex.WITH_TOKEN, {SESSION_ID: "s-2"}), ex.welcome(5)),
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
    yield Claim(title, next_step, [each for _, each in found], side=SERVER)


@cause(
    "session-lost",
    "the server does not know the session any more",
    Level.SPECIFIC,
    rules="HTTP205",
    positive=(
        ex.session("@ http", ex.pings(3, 4), _LOST),
        ex.session("@ http", ex.pings(3), ex.http("DELETE", 200, head={SESSION_ID: "s-1"}), _LOST),
    ),
    negative=(
        ex.list_answer(404, {SESSION_ID: None}),
        ex.session("@ http", ex.pings(3), ex.call(), ex.answered(404, "Unknown tool: a")),
        ex.session("@ http", ex.pings(3), ex.call(), ex.answered(500, "Failed to create browser session")),
        ex.session(
            "@ http",
            *(ex.pings(3), ex.call()),
            ex.answered(401, ex.WITH_TOKEN, "Your session has expired, please log in again"),
        ),
        ex.session("@ http", ex.pings(3), ex.call(), ex.answered(403, "session user mismatch")),
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
    session_id, status = first.request[SESSION_ID], first.status
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
    is_new = session_id in facts.http.session_ids and not facts.http.accepted_count[session_id]
    if is_new:
        title = f"the server refuses the session that it has just assigned (HTTP {status}{clause(words)})"
        next_step = (
            "if several copies or processes of the server share this address, route each session to one of them, or share their "
            "sessions; else look why the server does not keep the session that initialize begins"
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
    refused_at = max(max(each.at, each.last_at) for each, _ in refused)
    has_begun_anew = any(at > refused_at for at, _ in facts.http.begun.values())
    # A client that sends nothing more may still have begun a new one; the server may have lost it without need.
    is_used_on = count > 1 or facts.client.last_request_at - first.at > PATIENCE
    side = "" if is_renewed or is_new else CLIENT if (status == 404 and is_used_on) or is_ended else SERVER
    side = "" if status == 404 and not is_used_on and not is_ended else side
    if has_begun_anew and not is_ended and status == 404 and not is_new:
        side, begun_at = "", min(at for at, _ in facts.http.begun.values() if at > refused_at)
        waited = begun_at - first.at
        title += f", and the client began a new one {f'only {duration(waited)} later' if waited > PATIENCE else 'then'}"
        next_step = (
            "look into the server's log at this time for why it lost the session: a restart, a limit of idle time, or an error that "
            "ended it, such as one after a request that was cancelled"
        )
    claim = Claim(title, next_step, symptoms, side=side, is_observation=is_renewed)
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
        status = None if failed.carrier is None else failed.carrier.status
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
            yield Claim(title, next_step, [failed], side=SERVER, level=level)
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
    yield Claim(title, next_step, symptoms, evidence=[evidence(place, "another session begins")], side=SERVER)
