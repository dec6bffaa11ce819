"""Streams over HTTP: of GET, of the old HTTP+SSE transport, and responses that come on another one."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import alike, exchanges, is_stream, said, who_refused
from mcpspy.analysis.explain.causes.requests import SILENT, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, LOOPBACK
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State
from mcpspy.core.session.http_exchanges import NOT_OFFERED


def has_endpoint(facts: Facts) -> bool:
    """Return whether a stream named an endpoint: the old HTTP+SSE transport."""
    return any(each.fields.get("event") == "endpoint" for each, _ in facts.notes.get("sse", []))


@cause(
    "get-blocks-server",
    "the open GET stream keeps the server from answering other requests",
    Level.EXACT,
    positive=ex.session(
        "@ http",
        ex.note(
            "http",
            http=50,
            method="GET",
            path="/mcp",
            status=200,
            request={},
            response=ex.EVENT_STREAM,
            asked_at=7.0,
        ),
        ex.request("tools/list"),
        ex.note("http", http=3, stream="1", method="POST", path="/mcp", status=None, request={}, response={}),
        ex.note("http-end", http=3, stream="1", hung_up="client"),
        ex.note("http-end", http=50, hung_up="client"),
    ),
)
def get_blocks_server(facts: Facts) -> Iterator[Claim]:
    """A server that works on one HTTP request at a time is busy as long as the GET stream is open."""
    if has_endpoint(facts):
        return  # In the old HTTP+SSE transport, the stream is always open.
    waiting = without_response(facts, CLIENT)
    failed = [each for each in waiting if each.refusal is None or each.refusal.status is None]
    for get in facts.http.gets:
        ended_at = get.ended_at if get.ended_at is not None else facts.last_at
        during = [each for each in failed if get.asked_at <= each.asked_at <= ended_at + 1.0]
        if during and not get.is_refused and (facts.server.last_at or 0.0) <= get.asked_at:
            title = (
                f"the server answered nothing any more since the client had opened its GET stream: "
                f"{during[0].about} got no response in {during[0].waited}"
            )
            next_step = (
                "let the server answer requests while a stream is open (more than one worker or thread), "
                "or answer GET with 405"
            )
            yield Claim(title=title, next_step=next_step, symptoms=[*during], side=SERVER)
            break


@cause(
    "sse-stream-ended",
    "the stream on which a response was to come had ended",
    Level.EXACT,
    positive=ex.session(
        "@ sse 2024-11-05",
        ex.note("http-end", http=1000, stream="1", hung_up="server"),
        ex.request("tools/list"),
        ex.answered(404),
    ),
    negative=ex.session("@ sse 2024-11-05", ex.listed("a")),
)
def sse_stream_ended(facts: Facts) -> Iterator[Claim]:
    """In HTTP+SSE, all responses come on the one GET stream; a platform or proxy that limits its
    time ends the session.
    """
    if not has_endpoint(facts):
        return
    # Time of the request, of the end, and seconds between them.
    ended = [
        (get.asked_at, get.ended_at, get.took or 0.0)
        for get in facts.http.gets
        if get.ended_at is not None and not get.is_refused and get.hung_up != CLIENT
    ]
    for failed in facts.failed(*SILENT, State.REFUSED, State.ERROR):
        status = 0 if failed.refusal is None else failed.refusal.status or 0
        until = failed.asked_at + failed.took + 0.1
        streams = [each for each in ended if each[0] <= failed.asked_at and each[1] <= until]
        if not streams or failed.side != CLIENT or 300 <= status < 400:
            continue
        _, ended_at, lasted = streams[0]
        title, side = f"the SSE stream ended {duration(lasted)} after it was opened", SERVER
        next_step = (
            "raise the limit for long responses, let the server send comments while it works, or use "
            "Streamable HTTP"
        )
        if sum(abs(took - lasted) < 0.2 for _, _, took in ended) > 1:
            title, side = f"{title}, as the others did: a limit of the platform or a proxy", "proxy"
        if status >= 400:
            if ended_at > failed.asked_at:
                continue
            title += f"; the client posts on to the old session: {failed.about} got HTTP {status}"
            next_step = "the client must open a new stream and send initialize again when its stream ends"
            side = CLIENT
        else:
            title += f", before the response to {failed.about} came"
        symptoms = [each for each in facts.failed() if each.at >= failed.at and each.side == CLIENT]
        yield Claim(title=title, next_step=next_step, symptoms=[*symptoms], side=side)
        break


_STREAM = {"content-type": "text/event-stream"}


def _get(number: int, at: float) -> str:
    """Return a GET stream that begins."""
    head = {"http": number, "method": "GET", "path": "/mcp", "status": 200, "asked_at": at}
    return ex.note("http", **head, request={}, response=_STREAM)


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
    negative=ex.session("@ http", ex.list_answer(500).partition("\n")[2]),
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
    failed = [each for each in facts.failed() if each.refusal and (each.refusal.status or 0) >= 500]
    if not failed or facts.http.answered_beside or not facts.answered[CLIENT, "initialize"]:
        return
    if not all(any(begin <= each.asked_at <= end for begin, end in streams) for each in failed):
        return
    first = failed[0]
    title = (
        f"the server failed at each request that came while a GET stream was open, and at none without one: "
        f"{first.about}, HTTP {first.refusal.status if first.refusal else ''}{clause(first.words)}"
    )
    next_step = (
        "let the server make a server object and its transport for each session, or for each request if it "
        "has no sessions, and never connect one to two; or answer GET with 405"
    )
    yield Claim(title=title, next_step=next_step, symptoms=[*failed], side=SERVER)


@cause(
    "post-without-response",
    "the server accepted a request over HTTP, and sent no response to it",
    Level.SPECIFIC,
    positive=(
        ex.session("@ http", ex.request("tools/list"), ex.answered(202, {}, {"content-type": None})),
        ex.session(
            "@ http bare",
            ex.initialize(),
            ex.answered(200, {}, _STREAM),
            ex.note("http-end", http=1, stream="1", hung_up="client"),
        ),
    ),
    negative=ex.session("@ http", ex.call(), ex.answered(200, {}, _STREAM)),
)
def post_without_response(facts: Facts) -> Iterator[Claim]:
    """202 is the answer to notifications and responses. A request is answered in the response to its own
    POST; a gateway whose process behind it has ended opens a stream there and never writes to it.
    """
    named = [each.fields.get("http") for each, _ in facts.notes.get("sse", [])]
    for failed in without_response(facts, CLIENT):
        carrier, is_call = failed.refusal, failed.method == "tools/call"
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
            yield Claim(title=title, next_step=next_step, symptoms=[failed], side=SERVER, level=level)
            continue
        if carrier is None or failed.progress or has_endpoint(facts):
            continue
        if carrier.status in ACCEPTED:
            title = f"the server answered {failed.about} with HTTP {carrier.status} in place of a response"
            next_step = (
                "let the server answer a request in the response to its own POST, as JSON or as an event stream; "
                "202 is for notifications"
            )
            yield Claim(title=title, next_step=next_step, symptoms=[failed], side=SERVER)
        elif carrier.media_type == EVENTS and not is_call and carrier.hung_up != SERVER:
            title = f"the server opened an event stream for {failed.about}, and sent no event in it for {failed.waited}"
            next_step = (
                "look into the server's own log at this time; a gateway in front of a stdio server may not have "
                "noticed that its process had ended: start that command in a terminal"
            )
            level = Level.GENERAL
            yield Claim(title=title, next_step=next_step, symptoms=[failed], side=SERVER, level=level)


@cause(
    "sse-transport",
    "the client uses the old HTTP+SSE transport, and the server Streamable HTTP",
    Level.EXACT,
    rules="ENV204 ENV208",
    positive=ex.session("@ http bare", ex.http("GET", 404)),
    negative=ex.session("@ http", ex.http("GET", 405)),
)
def sse_transport(facts: Facts) -> Iterator[Claim]:
    """A client of the transport of 2024-11-05 begins with GET; a server of Streamable HTTP wants a
    POST first.
    """
    first_at = facts.client.first_at
    for refusal in (*facts.of(RefusedExchange), *facts.http.not_offered):
        is_first = (
            is_stream(refusal)
            and ".well-known" not in refusal.path
            and "mcp-session-id" not in refusal.request
        )
        is_first &= first_at is None or refusal.at < first_at
        # A client may try both, the old one first: then nothing is wrong.
        has_gone_on = first_at is not None and refusal.agent in facts.http.agents
        if is_first and refusal.status in (400, 404, 405, 406):
            title = (
                f"the client opened a stream with GET before any POST (the old HTTP+SSE transport), and "
                f"the server answered HTTP {refusal.status}{clause(refusal.words)}"
            )
            next_step = (
                "set the client's transport to Streamable HTTP (type: http), or give it the server's URL "
                "for SSE"
            )
            title += "; later it began with POST" if has_gone_on else ""
            symptoms = [refusal, *facts.violations("ENV204", "ENV208", side=SERVER)]
            claim = Claim(title=title, next_step=next_step, symptoms=symptoms, side="configuration")
            claim.is_observation = has_gone_on
            yield claim
            break


@cause(
    "sse-endpoint-lost",
    "the endpoint that the SSE stream names does not exist",
    Level.EXACT,
    positive=ex.session("@ sse bare 2024-11-05", ex.initialize(), ex.answered(404)),
    negative=ex.session("@ sse bare 2024-11-05", ex.initialize(), ex.answered(202)),
)
def sse_endpoint_lost(facts: Facts) -> Iterator[Claim]:
    """The `endpoint` event has a path that lacks the prefix under which a proxy or a mount serves
    the server.
    """
    events = [each for each in facts.notes.get("sse", []) if each[0].fields.get("event") == "endpoint"]
    upstream = urlsplit(facts.header.upstream or "")
    is_new = not any(method == "POST" and (status or 300) < 300 for method, status in facts.http.statuses)
    for note, place in events[:1]:
        named = str(note.fields.get("data", ""))
        endpoint, lines = urlsplit(named), [evidence(place, f"endpoint: {named}")]
        if endpoint.hostname not in (None, upstream.hostname, *LOOPBACK) and not facts.client.messages:
            title = (
                f"the SSE stream names an endpoint at another host, {quote(named, 100)}, and no message "
                f"was ever posted here: the client cannot reach that host, or posts past this URL"
            )
            next_step = (
                "let the server name its endpoint by path, or with the host that clients use (base URL, "
                "X-Forwarded-Host)"
            )
            yield Claim(title=title, next_step=next_step, symptoms=[], evidence=lines, side="configuration")
        for exchange, symptom in exchanges(facts, 404, 405, 400, 307, 308):
            if exchange.status == 400 and said(exchange, symptom):
                continue  # It found the endpoint, and names another reason.
            is_endpoint = endpoint.path.rstrip("/") == exchange.path.rstrip("/")
            if exchange.method == "POST" and is_new and is_endpoint:
                title = (
                    f"the SSE stream {quote(upstream.path)} names the endpoint {quote(named, 100)}, and "
                    f"{who_refused(exchange)} answers HTTP {exchange.status} there"
                )
                next_step = (
                    "tell the server its public path (root_path, mount path, base URL), so that the "
                    "endpoint has the prefix; or let the proxy serve this path too"
                )
                symptoms, side = alike(facts, exchange), "configuration"
                yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)
                break


MANY_GETS = 5
"""GETs that got 405 from which a client asks in vain on purpose: SDKs ask once in a session, and again after a new start."""


def _in_vain(*statuses: int) -> str:
    return ex.session(*(ex.http("GET", status, number) for number, status in enumerate(statuses, 50)))


@cause(
    "get-in-vain",
    "the client asks for a stream again and again that the server does not offer, until it is refused",
    Level.EXACT,
    positive=ex.session("@ http", "+ 0.2", _in_vain(*(405,) * 6), ex.call(), ex.answered(429)),
    negative=(
        ex.session("@ http", "+ 0.2", _in_vain(*(405,) * 6), ex.call(), ex.done()),
        ex.session("@ http", "+ 0.2", _in_vain(405), ex.call(), ex.answered(429)),
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
    yield Claim(title=title, next_step=next_step, symptoms=limited, evidence=lines, side=CLIENT)


@cause(
    "get-storm",
    "the client opens the GET stream again and again",
    Level.SPECIFIC,
    positive=ex.session(
        "@ http", ex.call(), ex.done(), *(ex.http("GET", 404, number) for number in (50, 51, 52))
    ),
    negative=ex.session(
        "@ http", ex.call(), ex.done(), *(ex.http("GET", 405, number) for number in (50, 51, 52))
    ),
)
def get_storm(facts: Facts) -> Iterator[Claim]:
    """A server without a GET stream answers 405; a page, an error or a stream that ends at once
    makes clients ask again.
    """
    works = bool(facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"])
    for refusal in facts.of(RefusedExchange):
        if refusal.method != "GET" or ".well-known" in refusal.path:
            continue
        if not is_stream(refusal):
            title = f"a GET that does not ask for events (a browser, a probe) got HTTP {refusal.status}"
            next_step = "nothing: it is not of MCP"
            yield Claim(title=title, next_step=next_step, symptoms=[refusal], is_observation=True)
            continue
        gets = [get.repeats + 1 for get in facts.http.gets if get.status == refusal.status]
        repeats = max(1, refusal.count, *gets)
        is_page = refusal.status is not None and refusal.status < 300
        is_settled = works and refusal.status in (400, 404, 406, 501)
        if not is_page and repeats < 3 and not is_settled:
            continue
        kind = f"a page ({refusal.media_type})" if is_page else f"HTTP {refusal.status}"
        span = duration((facts.http.last_at or refusal.at) - refusal.at)
        often = f", and the client asked {repeats} times in {span}" if repeats > 1 else ""
        title = f"GET {refusal.path} is answered with {kind} in place of a stream or 405{often}"
        next_step = (
            "let the server answer GET with 405 Method Not Allowed if it sends nothing on its own, else "
            "with text/event-stream"
        )
        claim = Claim(title=title, next_step=next_step, symptoms=[refusal], side=SERVER)
        # The specification has 405 for "no stream" and nothing else; SDKs report any other refusal as an error.
        claim.is_observation = not is_page and repeats < 3 and refusal.status not in (400, 404, 501)
        yield claim
