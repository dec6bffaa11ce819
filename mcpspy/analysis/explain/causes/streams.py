"""Requests whose response does not come on its stream over HTTP: GET streams, HTTP+SSE, POSTs."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.requests import SILENT, without_response
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause
from mcpspy.analysis.explain.facts import Facts
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.protocol.refusal import ACCEPTED
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State


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
