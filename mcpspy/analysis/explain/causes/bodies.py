"""Bodies over HTTP: not a message, in another coding or charset, shorter than announced."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about
from mcpspy.analysis.explain.causes.framing import text_of
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    RefusedExchange,
    Symptom,
)
from mcpspy.core.protocol.http_headers import JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State


@cause(
    "encoding-not-asked-for",
    "a response is compressed, although no one asked for that",
    Level.SPECIFIC,
    positive=ex.session(
        "@ http",
        ex.request("tools/list"),
        ex.answered(200, {}, {"content-type": JSON, "content-encoding": "br"}),
        ex.result(tools=[ex.with_schema()]),
    ),
)
def encoding_not_asked_for(facts: Facts) -> Iterator[Claim]:
    """Mcpspy asks for no coding (Accept-Encoding: identity). A server or cache that compresses
    anyway may also send what a client cannot decode (RFC 9110, 12.5.3).
    """
    if (encoded := facts.http.encoded) is None:
        return
    coding, left = quote(encoded.response["content-encoding"], 20), facts.of(ClientLeft)
    title = (
        f"the response to {about(encoded)} has Content-Encoding {coding}, although no coding was asked for"
    )
    title += ", and the client did not continue after it" if left else ""
    next_step = (
        f"let the server, or what caches in front of it, send {coding} only to clients whose "
        f"Accept-Encoding has it (Vary: Accept-Encoding)"
    )
    lines = [evidence(encoded.place, f"{encoded.line}, Content-Encoding: {coding}")]
    yield Claim(title, next_step, [*left], evidence=lines, is_observation=not left)


_CHARSET = re.compile(r"(?i)charset\s*=\s*\"?([\w.:-]+)")


@cause(
    "charset-not-utf-8",
    "a response is in another charset than UTF-8",
    Level.GENERAL,
    positive=ex.session(
        "@ http bare",
        ex.initialize(),
        ex.answered(200, {}, {"content-type": f"{JSON};charset=ISO-8859-1"}),
        ex.welcome(),
        ex.INITIALIZED,
    ),
    negative=ex.session(
        "@ http bare",
        ex.initialize(),
        ex.answered(200, {}, {"content-type": f"{JSON};charset=utf-8"}),
        ex.welcome(),
        ex.INITIALIZED,
    ),
)
def charset_not_utf_8(facts: Facts) -> Iterator[Claim]:
    """JSON between systems is UTF-8 (RFC 8259, 8.1). A server that writes another charset loses each character that it lacks,
    mostly as a question mark; nothing fails.
    """
    first = facts.http.heads.get("initialize")
    named = None if first is None else _CHARSET.search(first.response.get("content-type", ""))
    if first is None or named is None or named[1].lower() in ("utf-8", "utf8", "us-ascii"):
        return
    title = f"the server writes its responses in {quote(named[1], 20)}, and not in UTF-8: what that charset lacks is lost"
    next_step = "let the server set the encoding of its responses to UTF-8 (RFC 8259, 8.1), before it opens their writer"
    lines = [evidence(first.place, f"{first.line}, Content-Type: {first.response['content-type']}")]
    yield Claim(title, next_step, [], evidence=lines, side=SERVER, is_observation=True)


@cause(
    "body-not-sent",
    "the head of a response came, and its body did not",
    Level.EXACT,
    rules="ENV204 ENV205 ENV207",
    positive=ex.session(
        "@ http",
        ex.request("tools/list"),
        ex.answered(200, {}, {"content-type": JSON, "content-length": "427"}),
        "+ 8",
        ex.cancelled(),
    ),
    negative=ex.session(
        "@ http", ex.request("tools/list"), ex.answered(200, {}, ex.EVENT_STREAM), "+ 8", ex.cancelled()
    ),
)
def body_not_sent(facts: Facts) -> Iterator[Claim]:
    """A gateway that changes a body and keeps the old Content-Length sends less than it announced:
    its own HTTP library then sends nothing, and the client waits for the rest.
    """
    for failed in facts.failed(State.CANCELLED, State.UNANSWERED):
        exchange = failed.carrier
        if (
            exchange is None
            or not exchange.is_plain
            or (exchange.hung_up == CLIENT and not failed.gave_up_at)
        ):
            continue
        if exchange.ended_at is not None and exchange.ended_at < failed.until:
            continue
        stray = facts.violations("ENV204", "ENV205", "ENV207", side=SERVER)
        came = [each.at for each in facts.server.odd]
        came += [each.at for violation in stray for each in violation.findings]
        if any(at >= exchange.at for at in came):
            continue  # A body came, which is not a message, or the response to another request.
        size = exchange.response.get("content-length", "")
        announced = f", Content-Length {quote(size, 20)}" if size else ""
        title = (
            f"the response to {failed.about} began (HTTP {exchange.status}{announced}), and its body had "
            f"not come {failed.waited} after the request"
        )
        next_step = (
            "look into what sends this response: a gateway that changed the body must compute "
            "Content-Length again (or send chunks); a server must end what it began"
        )
        lines = [evidence(exchange.place, f"{exchange.line}{announced}")]
        yield Claim(title, next_step, [failed], evidence=lines, side="" if size not in ("", "0") else SERVER)


_WRAPPED = re.compile(
    r'(?s)\s*\{\s*"(\w+)"\s*:\s*"(?:[^"\\]|\\[rnt])*(?:data:\s*)?\{\s*\\"(?:jsonrpc|result|id)\\"'
)
"""An object whose first member has a message, or an SSE event with one, as text."""


@cause(
    "post-no-message",
    "the client posts what is not a message",
    Level.SPECIFIC,
    rules="ENV101 ENV102",
    positive=ex.session("@ http bare", '>> {"message":{"method":"initialize"}}', "= 400"),
)
def post_no_message(facts: Facts) -> Iterator[Claim]:
    """Each POST has a JSON-RPC message, and not an envelope with one in it, a form or a query."""
    lines = [] if facts.is_stdio else [each for each in facts.client.odd if each.is_whole]
    if lines:
        title = f"the client posts what is not a JSON-RPC message: {quote(text_of(lines[0]), 80)}"
        next_step = "let the client post each JSON-RPC message as it is, with jsonrpc and method or result (2025-11-25, Transports)"
        refused = [each for each in facts.of(RefusedExchange) if each.method == "POST" and not each.asked]
        symptoms: list[Symptom] = [*refused, *facts.violations("ENV101", "ENV102", side=CLIENT)]
        evidence_lines = [evidence(lines[0].place, f"the client: {text_of(lines[0])}")]
        yield Claim(title, next_step, symptoms, evidence=evidence_lines, side=CLIENT)


@cause(
    "event-no-message",
    "the server sends events or bodies that are not messages",
    Level.SPECIFIC,
    rules="ENV101 ENV102",
    positive=ex.session("@ http", ex.call(), '<< {"type":"heartbeat"}', ex.done()),
)
def event_no_message(facts: Facts) -> Iterator[Claim]:
    """Clients parse the data of each event as a message. A sign of life belongs into a comment of
    SSE (`: keep-alive`).
    """
    lines = [each for each in facts.server.odd if not each.is_refusal and each.is_whole]
    if not facts.is_stdio and lines:
        more = f" ({facts.server.odd_count} times)" if facts.server.odd_count > 1 else ""
        title = f"the server sends data that is not a JSON-RPC message{more}: {quote(text_of(lines[0]), 80)}"
        next_step = "let the server send only messages as data; a sign of life is a comment (': keep-alive')"
        side, level = SERVER, Level.SPECIFIC
        symptoms: list[Symptom] = [*facts.of(ClientLeft)]
        if wrapped := _WRAPPED.match(text_of(lines[0])):
            side, level = "proxy", Level.EXACT
            title = (
                f"a response is not a JSON-RPC message, but an object whose member {quote(wrapped[1], 40)!r} has "
                f"the message as text{more}: something between client and server wrapped it"
            )
            next_step = "let the gateway pass on body and Content-Type of the server unchanged, also text/event-stream"
            symptoms += [each for each in facts.failed(State.UNANSWERED, State.CANCELLED) if not each.effects]
        unread = [
            each
            for each in facts.failed(State.UNANSWERED)
            if each.carrier is not None
            and each.carrier.is_plain
            and each.asked_at <= lines[0].at <= each.until + PATIENCE
        ]
        if unread and not lines[0].data.lstrip().startswith((b"{", b"[")):
            level = Level.EXACT
            title = (
                f"the body of the response to {unread[0].about} is not JSON: {quote(text_of(lines[0]), 80)}"
            )
            next_step = "let the server answer with one JSON-RPC message as application/json; look in its log for what wrote this text"
            symptoms += [*unread]
        symptoms += facts.violations("ENV101", "ENV102", side=SERVER)
        shown = [evidence(each.place, f"data: {text_of(each)}") for each in lines[:3]]
        yield Claim(title, next_step, symptoms, evidence=shown, side=side, level=level)
