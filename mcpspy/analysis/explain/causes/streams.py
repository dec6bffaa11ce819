"""Streams of Streamable HTTP: of GET, and the responses that come on another one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import exchanges, is_stream, says_nothing, who_refused
from mcpspy.analysis.explain.causes.http_sse import endpoints
from mcpspy.analysis.explain.causes.requests import has_fixed_form, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.http_exchanges import NOT_OFFERED


def _get(number: int, at: float) -> str:
    """Return a GET stream that begins."""
    head = {"http": number, "method": "GET", "path": "/mcp", "status": 200, "asked_at": at}
    return ex.note("http", **head, request={}, response=ex.EVENT_STREAM)


_NO_ANSWER = (
    ex.note("http", http=3, stream="1", method="POST", path="/mcp", status=None, request={}, response={}),
    ex.note("http-end", http=3, stream="1", hung_up="client"),
    ex.note("http-end", http=50, hung_up="client"),
)


@cause(
    "get-blocks-server",
    "the open GET stream keeps the server from answering other requests",
    Level.EXACT,
    positive=ex.session("@ http", _get(50, 7.0), ex.request("tools/list"), *_NO_ANSWER),
    negative=ex.session("@ http", _get(50, 7.0), ex.call(), *_NO_ANSWER),
)
def get_blocks_server(facts: Facts) -> Iterator[Claim]:
    """A server that works on one HTTP request at a time is busy as long as the GET stream is open."""
    if endpoints(facts):
        return  # In the old HTTP+SSE transport, the stream is always open.
    waiting = without_response(facts, CLIENT)
    failed = [each for each in waiting if each.carrier is None or each.carrier.status is None]
    for get in facts.http.gets:
        ended_at = get.ended_at if get.ended_at is not None else facts.last_at
        # A call may be slow by itself.
        during = [
            each
            for each in failed
            if get.asked_at <= each.asked_at <= ended_at + 1.0 and has_fixed_form(each.method)
        ]
        if during and not get.is_refused and (facts.server.last_at or 0.0) <= get.asked_at:
            title = (
                f"the server answered nothing any more since the client had opened its GET stream: "
                f"{during[0].about} got no response in {during[0].waited}"
            )
            next_step = (
                "let the server answer requests while a stream is open (more than one worker or thread), "
                "or answer GET with 405"
            )
            yield Claim(title, next_step, [*during], side=SERVER)
            break


def _is_of_shared_server(failed: FailedRequest) -> bool:
    """Return whether an error has no reason in it, or that a server object is connected already."""
    return not failed.words or says_nothing(failed.words) or "already" in failed.words.lower()


@cause(
    "fails-beside-stream",
    "requests fail while a GET stream is open",
    Level.EXACT,
    positive=ex.session(
        "@ http",
        _get(50, 7.0),
        ex.request("tools/list"),
        ex.answered(500),
        ex.error("Internal server error", -32603, None),
        ex.note("http-end", http=50, hung_up="client"),
    ),
    negative=(
        ex.session("@ http", ex.list_answer(500).partition("\n")[2]),
        ex.session(
            "@ http",
            *(_get(50, 7.0), ex.request("tools/list"), ex.answered(500)),
            *(ex.error("KeyError: 'inputSchema'"), ex.note("http-end", http=50, hung_up="client")),
        ),
        ex.session(
            "@ http",
            *(_get(50, 7.0), ex.request("tools/list"), ex.answered(502, {}, {"server": "nginx"})),
            ex.note("http-end", http=50, hung_up="client"),
        ),
    ),
)
def fails_beside_stream(facts: Facts) -> Iterator[Claim]:
    """A server object that serves one connection is shared by all requests: what comes while another
    request is open, such as the client's GET stream, fails (typescript-sdk: one server, one transport).
    """
    streams = [
        (get.asked_at, facts.last_at if get.ended_at is None else get.ended_at)
        for get in facts.http.gets
        if not get.is_refused
    ]
    streams += [(each.at - each.took, facts.last_at) for each in facts.http.open.values() if each.is_stream]
    failed = [each for each in facts.failed() if each.carrier and (each.carrier.status or 0) >= 500]
    if any(
        (each.carrier and each.carrier.status != 500) or not _is_of_shared_server(each) for each in failed
    ):
        return  # A gateway, or another error, which has nothing to do with the stream.
    if not failed or facts.http.answered_beside or not facts.answered[CLIENT, "initialize"]:
        return
    if not all(any(begin <= each.asked_at <= end for begin, end in streams) for each in failed):
        return
    first = failed[0]
    title = (
        f"the server failed at each request that came while a GET stream was open, and at none without one: "
        f"{first.about}, HTTP {first.carrier.status if first.carrier else ''}{clause(first.words)}"
    )
    next_step = (
        "let the server make a server object and its transport for each session, or for each request if it "
        "has no sessions, and never connect one to two; or answer GET with 405"
    )
    yield Claim(title, next_step, [*failed], side=SERVER)


@cause(
    "post-without-response",
    "the server accepted a request over HTTP, and sent no response to it",
    Level.SPECIFIC,
    positive=(
        ex.session("@ http", ex.request("tools/list"), ex.answered(202, {}, {"content-type": None})),
        ex.session(
            "@ http bare",
            ex.initialize(),
            ex.answered(200, {}, ex.EVENT_STREAM),
            ex.note("http-end", http=1, stream="1", hung_up="client"),
        ),
    ),
    negative=ex.session("@ http", ex.call(), ex.answered(200, {}, ex.EVENT_STREAM)),
)
def post_without_response(facts: Facts) -> Iterator[Claim]:
    """202 is the answer to notifications and responses. A request is answered in the response to its own
    POST; a gateway whose process behind it has ended opens a stream there and never writes to it.
    """
    if crossed := facts.http.crossed:
        title = "the server answers a request in the response to the POST of another one, and not in that to its own"
        next_step = (
            "let the server, or a gateway whose processes share a queue, send each response on the stream of its request "
            "(2025-11-25, Transports): a client that waits there gets none"
        )
        yield Claim(title, next_step, [], evidence=crossed, side=SERVER, level=Level.EXACT)
    named = [each.fields.get("http") for each, _ in facts.notes.get("sse", [])]
    for failed in without_response(facts, CLIENT):
        carrier, is_call = failed.carrier, failed.method == "tools/call"
        if (
            carrier is not None
            and carrier.method == "POST"
            and carrier.number in named
            and not failed.answer_at
        ):
            title = (
                f"the server answered the POST of {failed.about} with the stream of the old HTTP+SSE transport "
                f"(event endpoint) in place of a response or an error, and the client waited {failed.waited}"
            )
            next_step = (
                "let the server answer POST to the address of its SSE stream with 405, so that clients that try "
                "Streamable HTTP first continue with GET; until then set the client's transport to sse"
            )
            level = Level.EXACT
            yield Claim(title, next_step, [failed], side=SERVER, level=level)
            continue
        if carrier is None or failed.progress or endpoints(facts):
            continue
        if carrier.status in ACCEPTED:
            title = f"the server answered {failed.about} with HTTP {carrier.status} in place of a response"
            next_step = (
                "let the server answer a request in the response to its own POST, as JSON or as an event stream; "
                "202 is for notifications"
            )
            yield Claim(title, next_step, [failed], side=SERVER, level=Level.EXACT)
        elif carrier.media_type == EVENTS and not is_call and carrier.hung_up != SERVER:
            title = f"the server opened an event stream for {failed.about}, and sent no event in it for {failed.waited}"
            next_step = (
                "look into the server's own log at this time; a gateway in front of a stdio server may not have "
                "noticed that its process had ended: start that command in a terminal"
            )
            level = Level.GENERAL
            yield Claim(title, next_step, [failed], side=SERVER, level=level)


MANY_GETS = 5
"""GETs that got 405 from which a client asks in vain on purpose: SDKs ask once in a session, and again after a new start."""


def _gets(status: int, count: int) -> str:
    """Return GETs for a stream, all with this status."""
    return ex.session(*(ex.http("GET", status, 50 + number, content_type=EVENTS) for number in range(count)))


@cause(
    "get-in-vain",
    "the client asks for a stream again and again that the server does not offer, until it is refused",
    Level.EXACT,
    positive=ex.session("@ http", "+ 0.2", _gets(405, 6), ex.call(), ex.answered(429)),
    negative=(
        ex.session("@ http", "+ 0.2", _gets(405, 6), ex.call(), ex.done()),
        ex.session("@ http", "+ 0.2", _gets(405, 1), ex.call(), ex.answered(429)),
    ),
)
def get_in_vain(facts: Facts) -> Iterator[Claim]:
    """With 405, a server states that it offers no stream (2025-11-25, Transports). A client that takes it for a broken
    connection asks again, and its own calls are refused for their number.
    """
    count = facts.http.statuses["GET", NOT_OFFERED]
    limited = [symptom for _, symptom in exchanges(facts, 429)]
    sessions = max(facts.client.methods["initialize"], 1)
    gets = [get for get in facts.http.gets if get.status == NOT_OFFERED]  # Those whose ends are recorded.
    if count < MANY_GETS * sessions or not limited or not gets:
        return
    began_at, last_at = min(get.asked_at for get in gets), facts.http.not_offered[-1].at
    title = (
        f"the client asked for a GET stream {count} times in {duration(last_at - began_at)}, although the server "
        f"answered each with 405 (it offers none), and used up its rate limit (HTTP 429)"
    )
    next_step = (
        "the client must not repeat GET after 405; until it is corrected, raise the limit for this client"
    )
    lines = [evidence(each.place, each.line) for each in facts.http.not_offered[:2]]
    yield Claim(title, next_step, limited, evidence=lines, side=CLIENT)


AT_ONCE = 1.0
"""Seconds within which no limit of a proxy ends a stream."""
MANY_ENDS = 4
"""Streams that ended at once, from which it is the rule."""


def _ends_at_once(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a GET stream that the server ends at once, each time.

    Platforms that end each function with its response do so, and servers that hold a stream that is gone for the current one.
    """
    ended = [
        get
        for get in facts.http.gets
        if not get.is_refused and get.hung_up != CLIENT and (get.took or 0.0) < AT_ONCE and not get.events
    ]
    count = sum(not get.is_folded for get in ended) + sum(get.repeats for get in ended)
    if endpoints(facts) or count < MANY_ENDS or facts.failed():
        return
    title = f"the server ended the GET stream {count} times at once, without an event, and the client opened it again each time"
    next_step = (
        "let the server keep the stream open as long as the session (a new GET of a client takes the place of its earlier one), or "
        "answer GET with 405 if it sends nothing on its own"
    )
    yield Claim(title, next_step, [], is_observation=bool(facts.answered[CLIENT, "tools/call"]))


_NO_HEAD = ex.session(
    ex.note("http", http=50, method="GET", path="/mcp", status=None, asked_at=6.5, request={}, response={}),
    ex.note("http-end", http=50, hung_up="client"),
)


@cause(
    "get-unanswered",
    "the client waited for the head of the response to its GET",
    Level.EXACT,
    positive=ex.session("@ http", "+ 12", _NO_HEAD),
    negative=ex.session(
        "@ http", ex.request("tools/list"), ex.answered(200), ex.result(tools=[]), "+ 12", _NO_HEAD
    ),
)
def get_unanswered(facts: Facts) -> Iterator[Claim]:
    """A server that has no event to send opens the stream anyway, and a proxy that buffers passes its head on only with
    the first event. Most clients continue without; some wait for it.
    """
    for get in facts.http.unanswered_gets[-1:]:
        went_on = (facts.client.last_at or 0.0) > get.at - get.took
        is_first = not facts.client.messages
        if not (facts.answered or is_first) or (went_on and get.status is None):
            continue
        after = (
            ", and asked for nothing else until then"
            if went_on
            else ", and asked for nothing after the handshake"
        )
        after = ", and sent nothing else" if is_first else after
        how = "not even the head of a response" if get.status is None else f"then HTTP {get.status}"
        title = f"the client's GET for a stream got no answer for {duration(get.took)}, {how}; the client waited for it{after}"
        next_step = (
            "let the server answer GET with 405 if it sends nothing on its own; else let it send the head at once, and the proxies "
            "in front of it pass it on without buffering (a comment, `: open`, as the first event brings it through)"
        )
        lines = [evidence(get.place, f"{get.line}, {duration(get.took)}")]
        is_observation = went_on or facts.has_worked
        refused = [each for each in facts.of(RefusedExchange) if each in facts.http.unanswered_gets]
        left = [] if is_observation else facts.of(ClientLeft)
        yield Claim(title, next_step, [*refused, *left], evidence=lines, is_observation=is_observation)


def _cut_when_idle(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of GET streams that end after the same time each, without an event."""
    idle = [
        get
        for get in facts.http.gets
        if not get.is_refused and not get.events and (get.took or 0.0) >= AT_ONCE
    ]
    # The client ends its last stream with the session.
    idle = [get for get in idle if get.hung_up != CLIENT] or idle
    times = [get.took or 0.0 for get in idle]
    if len(times) < 2 or max(times) - min(times) > 0.05 * max(times) or min(times) < LEAST_LIMIT:
        return
    who = {CLIENT: "the client", None: "the server or a proxy", SERVER: "the server or a proxy"}.get(
        idle[-1].hung_up, "mcpspy"
    )
    how = "broken off" if idle[-1].hung_up == SERVER else "ended"
    title = f"the GET stream was {how} by {who} after {duration(times[-1])} each time, {len(times)} times, without an event in it"
    next_step = (
        "that is a limit for idle streams: let the server send a comment as a sign of life at shorter intervals, or raise the limit "
        "(of the client's reader, or of a proxy); a client must take it for no failure"
    )
    yield Claim(title, next_step, [], is_observation=True)


LEAST_LIMIT = 5.0
"""Seconds below which no limit for idle streams is set."""

_PROBE = re.compile(
    r"(?i)kube-probe|healthcheck|googlehc|\bELB-|uptime|pingdom|mozilla/.*(?:chrome|firefox|safari)/"
)
"""User agents of probes and browsers, which do not speak MCP."""


_WANTS_EVENTS = re.compile(r"(?i)\baccept\b.*text/event-stream|text/event-stream.*\baccept\b")


@cause(
    "get-accept",
    "the client asks for a stream without text/event-stream in Accept",
    Level.EXACT,
    positive=ex.session("@ http bare", ex.http("GET", 406, head={"accept": "*/*"})),
    negative=ex.session("@ http bare", ex.http("GET", 406)),
)
def get_accept(facts: Facts) -> Iterator[Claim]:
    """A GET has to list it (2025-11-25, Transports). Some clients take the refusal for the beginning of a sign-in."""
    gets = [each for each in facts.of(RefusedExchange) if each.method == "GET"]
    refused = [
        each
        for each in gets
        if not is_stream(each) and not each.is_for_metadata
        if each.status == 406 or (each.status == 400 and _WANTS_EVENTS.search(each.words))
    ]
    if not refused or facts.answered[CLIENT, "tools/list"]:
        return
    accept = quote(refused[0].request.get("accept", "nothing"), 60)
    title = f"the client sent GET with Accept: {accept}, and {who_refused(refused[0])} refused it with HTTP {refused[0].status}"
    title += clause(refused[0].words)
    asked = [each for each in gets if each.is_for_metadata]
    title += "; then it looked for a sign-in, which no one had asked it for" if asked else ""
    next_step = "let the client send Accept: text/event-stream with GET, and Accept: application/json, text/event-stream with POST"
    # One that begins with GET alone speaks the older transport, for which the user has given it this URL.
    is_older = not asked and "accept" not in refused[0].request and not facts.client.messages
    if is_older:
        title += ": it has posted nothing, as a client of HTTP+SSE does that waits for the endpoint event"
        next_step = (
            "if the client speaks only HTTP+SSE, give it the server's address for that, or use a client of Streamable HTTP; else "
            f"{next_step}"
        )
    symptoms = [*refused, *asked, *facts.of(ClientLeft)]
    claim = Claim(title, next_step, symptoms, side="" if is_older else CLIENT)
    claim.is_observation = _PROBE.search(refused[0].agent) is not None
    yield claim


@cause(
    "get-storm",
    "the client opens the GET stream again and again",
    Level.SPECIFIC,
    positive=(
        ex.session("@ http", ex.call(), ex.done(), _gets(404, 3)),
        ex.session("@ http", "+ 0.2", _gets(200, 6)),
        # An observation: the calls do not need the stream.
        ex.session("@ http", "+ 0.2", _gets(200, 6), ex.call(), ex.done()),
    ),
    negative=(
        ex.session("@ http", ex.call(), ex.done(), _gets(405, 3)),
        ex.session("@ http", _gets(200, 1), ex.call(), ex.done()),
    ),
)
def get_storm(facts: Facts) -> Iterator[Claim]:
    """A server without a GET stream answers 405; a page, an error or a stream that ends at once
    makes clients ask again.
    """
    yield from _ends_at_once(facts)
    yield from _cut_when_idle(facts)
    works = facts.has_worked
    for refusal in facts.of(RefusedExchange):
        if refusal.method not in ("GET", "HEAD") or refusal.is_for_metadata:
            continue
        if not is_stream(refusal):
            title = f"a {refusal.method} that does not ask for events (a browser, a probe) got HTTP {refusal.status}"
            next_step = "nothing: it is not of MCP"
            yield Claim(title, next_step, [refusal], is_observation=True)
            continue
        gets = [get.repeats + 1 for get in facts.http.gets if get.status == refusal.status]
        repeats = max(1, refusal.count, *gets)
        is_page = refusal.status is not None and refusal.status < 300
        is_settled = works and refusal.status in (400, 404, 406, 501)
        if not is_page and repeats < 3 and not is_settled:
            continue
        kind = (
            f"a page ({refusal.media_type})" if is_page and refusal.media_type else f"HTTP {refusal.status}"
        )
        span = duration((facts.http.last_at or refusal.at) - refusal.at)
        often = f", and the client asked {repeats} times in {span}" if repeats > 1 else ""
        title = f"GET {refusal.path} is answered with {kind} in place of a stream or 405{often}"
        next_step = (
            "let the server answer GET with 405 Method Not Allowed if it sends nothing on its own, else "
            "with text/event-stream"
        )
        claim = Claim(title, next_step, [refusal], side="" if (refusal.status or 0) > 501 else SERVER)
        # The specification has 405 for "no stream" and nothing else; SDKs report any other refusal as an error.
        claim.is_observation = not is_page and repeats < 3 and refusal.status not in (400, 404, 501)
        yield claim
