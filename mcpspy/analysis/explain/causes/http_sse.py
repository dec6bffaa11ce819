"""The transport HTTP+SSE of 2024-11-05: one stream has the address for messages and all responses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import (
    alike,
    is_round,
    is_stream,
    who_refused,
    with_words,
)
from mcpspy.analysis.explain.causes.framing import text_of
from mcpspy.analysis.explain.causes.requests import SILENT
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote, url_parts
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange
from mcpspy.analysis.lint.finding import EntryPosition
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, LOOPBACK
from mcpspy.core.protocol.message import Result
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Note
from mcpspy.core.session.exchange import State


def endpoints(facts: Facts) -> list[tuple[Note, EntryPosition]]:
    """Return the events `endpoint` of streams; a session without one has another transport."""
    return [each for each in facts.notes.get("sse", []) if each[0].fields.get("event") == "endpoint"]


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
    if not endpoints(facts):
        return
    # Time of the request, of the end, and seconds between them.
    ended = [
        (get.asked_at, get.ended_at, get.took or 0.0)
        for get in facts.http.gets
        if get.ended_at is not None and not get.is_refused and get.hung_up != CLIENT
    ]
    for failed in facts.failed(*SILENT, State.REFUSED, State.ERROR):
        status = 0 if failed.carrier is None else failed.carrier.status or 0
        until = failed.until + 0.1
        streams = [each for each in ended if each[0] <= failed.asked_at and each[1] <= until]
        is_answered = failed.answer_at is not None and status < 400
        if not streams or failed.side != CLIENT or is_answered or 300 <= status < 400:
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
            side = CLIENT if status == 404 else ""  # Another status does not state that the session is lost.
            if lasted >= LONG_ENOUGH_FOR_A_LIMIT and is_round(lasted):
                next_step += (
                    "; a stream that ends after a round time has met a limit of the server or of a proxy: raise it, and let the server "
                    "send comments while it is idle"
                )
                side = ""
        elif early := [each for each in _early(facts) if 0 <= ended_at - each.asked_at < AT_ONCE]:
            title += (
                f", {duration(ended_at - early[0].asked_at)} after {early[0].about}, which the client had sent before the response "
                f"to initialize"
            )
            next_step = (
                "let the client wait for the response to initialize, send notifications/initialized, and only then requests "
                "(2024-11-05, Lifecycle): servers end the session at an earlier one"
            )
            side = CLIENT
        else:
            title += f", before the response to {failed.about} came"
            if side == SERVER and lasted >= 20.0 and is_round(lasted):
                side = ""  # Limits of servers are round numbers, too.
        symptoms = [each for each in facts.failed() if each.at >= failed.at and each.side == CLIENT]
        yield Claim(title, next_step, [*symptoms], side=side)
        break


LONG_ENOUGH_FOR_A_LIMIT = 8.0
"""Seconds of a stream that a limit of idle time may have ended."""

AT_ONCE = 0.5
"""Seconds after a message in which a server that fails at it ends the stream."""


def _early(facts: Facts) -> list[FailedRequest]:
    """Return the requests that the client sent before the response to initialize, which never came."""
    asked = facts.failed(*SILENT)
    is_begun = any(each.is_handshake for each in asked)
    return [each for each in asked if is_begun and each.side == CLIENT and not each.is_handshake]


def lost_query(facts: Facts, exchange: RefusedExchange) -> str:
    """Return the query of the address that the stream names, if a message was posted without one; else nothing."""
    named = [url_parts(str(note.fields.get("data", ""))).query for note, _ in endpoints(facts)]
    return named[-1] if named and not exchange.has_query else ""


@cause(
    "sse-endpoint-missing",
    "the SSE stream does not begin with the event endpoint",
    Level.SPECIFIC,
    rules="ENV101 ENV102",
    positive=(
        ex.session("@ http bare", ex.http("GET", 200, content_type=EVENTS)),
        ex.session("@ http bare", ex.http("GET", 200, content_type=EVENTS), "<< connected", "+ 10", ex.END),
    ),
    negative=(
        ex.session("@ sse bare 2024-11-05"),
        ex.session("@ http", ex.http("GET", 200, content_type=EVENTS)),
    ),
)
def sse_endpoint_missing(facts: Facts) -> Iterator[Claim]:
    """In HTTP+SSE, a client can post nothing before the stream has named the address for it, in its first event."""
    # A sign of life that is sent as data is the lesser mistake.
    unread = facts.violations("ENV101", "ENV102", side=SERVER)
    if facts.is_stdio or facts.client.messages or len(facts.symptoms) > len(unread) or endpoints(facts):
        return
    for get in [each for each in facts.http.gets if not each.is_refused][:1]:
        lasted = duration(get.took if get.took is not None else facts.last_at - get.asked_at)
        title = f"the client opened an SSE stream with GET, and no event endpoint came in {lasted}: it could post nothing"
        came = ", ".join([*facts.server.methods, *(text_of(each) for each in facts.server.odd[:1])])
        title += f"; what came was {quote(came, 80)}" if came else ""
        next_step = (
            "let the server send the event endpoint, with the address for messages, as the first event of the stream "
            "(2024-11-05, HTTP with SSE); for Streamable HTTP, set the client's transport to it: it begins with POST"
        )
        side = SERVER
        if (
            not came
        ):  # A server of Streamable HTTP, a proxy that holds events back, or a server that sends none.
            side = ""
            next_step += (
                "; ask the server without the proxy in front of it, which may hold the stream back (nginx: "
                "proxy_buffering off)"
            )
        yield Claim(title, next_step, [*unread], side=side, level=Level.EXACT if unread else Level.SPECIFIC)


@cause("stream-not-begun", "the client sends requests in a new SSE stream without initialize", Level.EXACT)
def stream_not_begun(facts: Facts) -> Iterator[Claim]:
    """In HTTP+SSE, each stream is a session. A client that opens another one after a server was restarted has to begin
    with initialize again.
    """
    named = {note.fields.get("stream") for note, _ in endpoints(facts)}
    failed = [
        each
        for each in facts.failed(*SILENT, State.REFUSED, State.ERROR)
        if each.side == CLIENT
        and each.stream in named
        and each.stream not in facts.http.begun
        and not each.effects
    ]
    if not failed or not facts.http.begun:
        return
    first = failed[0]
    title = (
        f"the client opened a new SSE stream, and sent {first.about} in it without initialize, with which each new "
        f"session begins{clause(first.words)}"
    )
    next_step = (
        "the client must send initialize and notifications/initialized again when it opens a new stream; until then "
        "connect it again by hand after each restart of the server"
    )
    ends = [
        evidence(
            first.place, f"the stream before ended after {duration(get.took)} ({get.hung_up or 'server'})"
        )
        for get in facts.http.gets
        if get.took is not None and not get.is_refused and get.asked_at + get.took <= first.at
    ]
    yield Claim(title, next_step, [*failed], evidence=ends[:1], side=CLIENT)


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
        is_first = is_stream(refusal) and not refusal.is_for_metadata and refusal.session_id is None
        is_first &= first_at is None or refusal.at < first_at
        if refusal.status == 404 and refusal.path in ("", "/"):
            continue  # No transport has its endpoint there: `wrong-endpoint`.
        # A client may try both, the old one first: then nothing is wrong.
        has_gone_on = first_at is not None and refusal.agent in facts.http.agents
        wants_session = (
            refusal.status in (401, 422) and "session" in refusal.words.lower() and not refusal.challenge
        )
        if is_first and (refusal.status in (400, 404, 405, 406) or wants_session):
            title = (
                f"the client opened a stream with GET before any POST (the old HTTP+SSE transport), and "
                f"the server answered HTTP {refusal.status}{clause(refusal.words)}"
            )
            next_step = (
                "set the client's transport to Streamable HTTP (type: http), or give it the server's URL "
                "for SSE; a client that is set so already should post initialize first, and continue without a stream"
            )
            if refusal.status == 404:
                next_step = (
                    "compare the path of the URL with that of the server's SSE stream (often /sse); if this is the URL of Streamable "
                    "HTTP, which need not answer GET, set the client's transport to that (type: http)"
                )
            title += "; later it began with POST" if has_gone_on else ""
            symptoms = [refusal, *facts.violations("ENV204", "ENV208", side=SERVER)]
            yield Claim(title, next_step, symptoms, is_observation=has_gone_on)
            break


@cause(
    "sse-answer-in-post",
    "a server of HTTP+SSE answers in the body of the POST, and not on the stream",
    Level.EXACT,
    rules="LIFE114 HOST303",
    positive=ex.session(
        "@ http bare 2024-11-05",
        ex.http("GET", 200, content_type=EVENTS),
        ex.note("sse", http=50, stream="1", event="endpoint", data="/messages?s=1"),
        ex.initialize(),
        ex.welcome(),
    ),
    negative=ex.session("@ sse bare 2024-11-05", ex.initialize(), ex.answered(200), ex.welcome()),
)
def sse_answer_in_post(facts: Facts) -> Iterator[Claim]:
    """A client of HTTP+SSE reads responses only from its stream: it waits there in vain, and then leaves."""
    asked, answered = facts.client.last, facts.server.last
    left = [each for each in facts.of(ClientLeft) if not each.is_initialized]
    if not left or not endpoints(facts) or asked is None or answered is None:
        return
    if answered[0].frame.http != asked[0].frame.http:
        return
    before = facts.server.before
    if isinstance(before, Result) and isinstance(answered[0], Result) and before.id == answered[0].id:
        return  # It came on the stream too.
    title = (
        f"the server sent {facts.server.last_message} in the body of the POST, and not on the SSE stream, on which the client waits "
        f"for it: the client asked for nothing else, and left"
    )
    next_step = (
        "let the server answer the POST with 202, and send each response as an event message on the stream of the session "
        "(2024-11-05, HTTP with SSE); or offer Streamable HTTP, which may answer in the body"
    )
    yield Claim(title, next_step, [*left, *facts.violations("LIFE114", "HOST303")], side=SERVER)


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
    upstream = facts.endpoint
    is_new = not any(method == "POST" and (status or 300) < 300 for method, status in facts.http.statuses)
    for note, place in endpoints(facts)[:1]:
        named = str(note.fields.get("data", ""))
        endpoint, lines = url_parts(named), [evidence(place, f"endpoint: {named}")]
        if endpoint.hostname not in (None, upstream.hostname, *LOOPBACK) and not facts.client.messages:
            title = (
                f"the SSE stream names an endpoint at another host, {quote(named, 100)}, and no message "
                f"was ever posted here: the client cannot reach that host, or posts past this URL"
            )
            next_step = (
                "let the server name its endpoint by path, or with the host that clients use (base URL, "
                "X-Forwarded-Host)"
            )
            yield Claim(title, next_step, [], evidence=lines, side=SERVER)
        for exchange, words in with_words(facts, 404, 405, 400, 307, 308):
            if (exchange.status == 400 and words) or re.search(r"(?i)\bsession", words):
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
                # The server may lack a setting for its public path, or the proxy drop the prefix.
                yield Claim(title, next_step, alike(facts, exchange), evidence=lines)
                break
