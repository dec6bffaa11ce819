"""The body of a response: its coding, its charset and its length."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.exchanges import about
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft
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
        if any(each.at >= exchange.at for each in facts.server.odd):
            continue  # A body came, which is not a message.
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
