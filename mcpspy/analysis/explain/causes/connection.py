"""The connection to an HTTP server: it cannot be made, mcpspy refused the client, or a stream was cut."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, RefusedExchange, Symptom
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State
from mcpspy.core.session.http_exchanges import NOT_OFFERED

IDLE_SECONDS = 1.0
"""Seconds within which no proxy ends a connection for its silence."""

_TLS = re.compile(
    r"(?i)certificate|\bssl\b|\btls\b|hostname mismatch|handshake failure|self[- ]signed|wrong version number"
)
_NAME = re.compile(r"(?i)name or service|resolve|getaddrinfo|no address|DNS")
_CLOSED = re.compile(r"(?i)closed the connection|connection reset|disconnected")
_ENDED = re.compile(r"(?i)connection refused|connect call failed")
_REFUSED_BY_SPY = re.compile(r"\b(Host|Origin) (\S+) is not this machine")


def exchanges(facts: Facts) -> Iterator[tuple[RefusedExchange, Symptom]]:
    """Yield each HTTP exchange that was not ordinary, with its symptom: itself, or the request that it carried."""
    for symptom in facts.symptoms:
        if isinstance(symptom, RefusedExchange):
            yield symptom, symptom
        elif isinstance(symptom, FailedRequest) and symptom.refusal is not None and not symptom.effects:
            yield symptom.refusal, symptom


def is_overcome(symptoms: list[Symptom]) -> bool:
    """Return whether the same requests succeeded later, so that nothing is wrong any more."""
    later = [symptom for symptom in symptoms if isinstance(symptom, FailedRequest | RefusedExchange)]
    return bool(later) and all(symptom.succeeded_at is not None for symptom in later)


@cause(
    "mcpspy-refused",
    "mcpspy refused the client's Host or Origin",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 403 {} {} "mcpspy: Host mcp.example.com is not this machine"
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 403 {} {} "Forbidden"
    """,
)
def mcpspy_refused(facts: Facts) -> Iterator[Claim]:
    """A web page could reach a proxy on loopback by DNS rebinding, so mcpspy accepts only names of this machine, and those
    that --allow-host names.
    """
    for exchange, symptom in exchanges(facts):
        for text in (exchange.error, exchange.words):
            if found := _REFUSED_BY_SPY.search(text):
                name = re.sub(r"^\w+://", "", found[2]).partition(":")[0]
                yield Claim(
                    title=f"mcpspy refused the client: {quote(text)}",
                    next_step=f"start mcpspy http with --allow-host {quote(name)}, if clients shall reach it under this name",
                    symptoms=[symptom],
                    side="configuration",
                )
                break


@cause(
    "upstream-tls",
    "the connection to the server failed in TLS",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 502 {":error":"cannot reach https://127.0.0.1:3001/mcp: [SSL: WRONG_VERSION_NUMBER] wrong version number"}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 502 {":error":"cannot reach http://127.0.0.1:3001/mcp: Connection refused"}
    """,
)
def upstream_tls(facts: Facts) -> Iterator[Claim]:
    """Mcpspy does not trust the server's certificate, or the server does not speak TLS at this port."""
    for exchange, symptom in exchanges(facts):
        if exchange.error and _TLS.search(exchange.error):
            yield Claim(
                title=f"the connection to the server failed in TLS: {quote(exchange.error)}",
                next_step="trust the server's CA with --cacert FILE, correct the host name in the URL, or use http:// if it has no TLS",
                symptoms=[symptom],
                side="configuration",
            )


@cause(
    "upstream-unreachable",
    "the server cannot be reached",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 502 {":error":"cannot reach http://127.0.0.1:3001/mcp: Connection refused"}
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 502 {} {"server":"nginx"}
    """,
)
def upstream_unreachable(facts: Facts) -> Iterator[Claim]:
    """Nothing listens at the URL, its name does not resolve, a proxy is in between, or the server has ended."""
    unreachable = [
        (exchange, symptom)
        for exchange, symptom in exchanges(facts)
        if exchange.error and not _TLS.search(exchange.error) and not _REFUSED_BY_SPY.search(exchange.error)
    ]
    for exchange, _ in unreachable[:1]:
        error = exchange.error
        next_step = f"check that the server runs at {quote(facts.header.upstream or 'its URL')}"
        if _NAME.search(error):
            next_step = "correct the host name in the URL, or check DNS and the proxy variables (HTTPS_PROXY, NO_PROXY)"
        elif facts.server.messages:
            next_step = "it had answered before: look into its own log for why it ended or restarted"
        elif "localhost" in (facts.header.upstream or "") or "127.0.0.1" in (facts.header.upstream or ""):
            next_step += "; in a container, localhost is the container itself"
        title, side = f"the server cannot be reached: {quote(error)}", "environment"
        refused_later = [
            each
            for each, _ in unreachable
            if _ENDED.search(each.error) is not None and each.at >= exchange.at
        ]
        if _CLOSED.search(error) and refused_later and exchange.asked:
            title = (
                f"the server ended while it worked on {exchange.asked}: it closed the connection without a response, and"
                " nothing listens at its address since"
            )
            next_step, side = (
                "look into the server's own log for the error that ended it at this request",
                SERVER,
            )
            if exchange.asked == "initialize" and facts.answered[CLIENT, "initialize"]:
                title += "; it had answered an earlier initialize"
                next_step = "make a server object for each session (one transport and one server for each Mcp-Session-Id); its log has the error"
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[symptom for _, symptom in unreachable],
            side=side,
        )


@cause(
    "optional-refusal-fatal",
    "the client left after a refusal that the specification allows",
    level=Level.EXACT,
    positive="""
        @ http
        * http {"http":50,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":50}
        * http {"http":51,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":51}
    """,
    negative="""
        @ http
        * http {"http":50,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":50}
    """,
)
def optional_refusal_fatal(facts: Facts) -> Iterator[Claim]:
    """A server that sends nothing on its own answers GET with 405, and one that does not let clients end sessions DELETE."""
    for left in facts.of(ClientLeft):
        others = [
            each
            for each in facts.of(RefusedExchange)
            if each.method == "GET" and EVENTS in each.request.get("accept", "")
        ]
        refused = others[-1] if others else None
        # One GET with 405 may well be the last thing that a client does; one that asks again does not accept it.
        again = [each for each in facts.http.not_offered if each.at >= left.at]
        if refused is None and len(again) > 1:
            refused = again[0]
        if (
            refused is None
            or max(refused.last_at, refused.at) < left.at
            or facts.failed()
            or refused.status in (401, 403)
        ):
            continue
        is_allowed = refused.status == NOT_OFFERED
        yield Claim(
            title=f"the client did not continue after its GET for a stream got HTTP {refused.status}"
            + (
                ", which is allowed: the server has no stream"
                if is_allowed
                else ": a server without a stream answers 405"
            ),
            next_step="the client must continue without the stream: update it"
            if is_allowed
            else "let the server answer GET with 405, or with a stream; this client takes another status for a failure",
            symptoms=[left, *others],
            evidence=[evidence(refused.place, refused.line)],
            side=CLIENT if is_allowed else SERVER,
        )


@cause(
    "encoding-not-asked-for",
    "a response is compressed, although no one asked for that",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 200 {} {"content-type":"application/json","content-encoding":"br"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 200 {} {"content-type":"application/json"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def encoding_not_asked_for(facts: Facts) -> Iterator[Claim]:
    """Mcpspy asks for no coding (Accept-Encoding: identity). A server or cache that compresses anyway may also send what
    a client cannot decode (RFC 9110, 12.5.3).
    """
    encoded = facts.http.encoded
    if encoded is None:
        return
    coding = quote(encoded.response["content-encoding"], 20)
    left = facts.of(ClientLeft)
    yield Claim(
        title=f"the response to {encoded.asked or encoded.method} has Content-Encoding {coding}, although no coding was asked for"
        + (", and the client did not continue after it" if left else ""),
        next_step=f"let the server, or what caches in front of it, send {coding} only to clients whose Accept-Encoding has it"
        " (Vary: Accept-Encoding)",
        symptoms=[*left],
        evidence=[evidence(encoded.place, f"{encoded.line}, Content-Encoding: {coding}")],
        side=SERVER,
        is_observation=not left,
    )


@cause(
    "stream-cut",
    "the stream with a response was cut",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 200 {} {"content-type":"text/event-stream"}
        * http-end {"http":3,"stream":"1","hung_up":"server"}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 200 {} {"content-type":"text/event-stream"}
        < {"id":2,"result":{"content":[]}}
        * http-end {"http":3,"stream":"1","hung_up":"server"}
    """,
)
def stream_cut(facts: Facts) -> Iterator[Claim]:
    """A proxy closes a connection that is silent for 30, 60 or 300 seconds, or the server ended. Keep-alive comments of
    SSE keep it open.
    """
    for failed in facts.failed(State.UNANSWERED, State.INCOMPLETE, State.CANCELLED):
        exchange = failed.refusal
        if exchange is None or exchange.status is None or exchange.status >= 300 or failed.side != CLIENT:
            continue
        if exchange.media_type not in (EVENTS, JSON):
            continue
        ended_at = exchange.ended_at
        if ended_at is None or exchange.hung_up == CLIENT:
            continue
        silent = ended_at - max(
            facts.server.last_at or 0.0 if (facts.server.last_at or 0.0) < ended_at else 0.0, failed.asked_at
        )
        waited = duration(max(ended_at - failed.asked_at, 0.0))
        if exchange.hung_up == "mcpspy":
            continue
        how = "the connection was broken off" if exchange.hung_up == SERVER else "the stream ended"
        is_short = ended_at - failed.asked_at < IDLE_SECONDS
        via = exchange.response.get("server") or exchange.response.get("via") or ""
        yield Claim(
            title=f"{how} {waited} after {failed.about}, without its response"
            + (f": no byte had come for {duration(silent)}" if silent >= 1 else ""),
            next_step="let the server send the response on the stream of its request, before it ends this stream; look into its"
            " log at this time"
            if is_short
            else "if a proxy is in between, raise its idle timeout (nginx: proxy_read_timeout), or let the server send SSE"
            f" comments or progress while it works{f' (answered by {quote(via, 40)})' if via else ''}; otherwise look into the"
            " server's log at this time",
            symptoms=[failed],
            side=SERVER if is_short or silent < 1 else "proxy",
        )


@cause(
    "response-incomplete",
    "a response was begun and never completed",
    level=Level.SPECIFIC,
    positive=r"""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 200 {} {"content-type":"text/event-stream"}
        << {"jsonrpc":"2.0","id":2,"result":{"content":[]}}\x04
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        = 200 {} {"content-type":"text/event-stream"}
        < {"id":2,"result":{"content":[]}}
    """,
)
def response_incomplete(facts: Facts) -> Iterator[Claim]:
    """An event ends with a blank line, a line with a newline, a body with its last byte; receivers discard what lacks it."""
    for failed in facts.failed(State.INCOMPLETE):
        next_step = "look what ended the connection: a limit of a proxy, a crash of the server, or a size that is not Content-Length"
        if "blank line" in failed.why:
            next_step = "the server must end each event with a blank line"
        elif failed.refusal is not None and failed.refusal.hung_up == CLIENT:
            next_step = "the client waited for the end and gave up: the server must end the response (Content-Length, or the last chunk)"
        yield Claim(
            title=f"no response to {failed.about}: {failed.why}",
            next_step=next_step,
            symptoms=[failed, *facts.of(ClientLeft), *facts.violations("HTTP310", "ENV113", "ENV119")],
            side="server",
            level=Level.EXACT if "blank line" in failed.why else None,
        )


@cause(
    "body-not-sent",
    "the head of a response came, and its body did not",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 200 {} {"content-type":"application/json","content-length":"427"}
        + 8
        > {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 200 {} {"content-type":"text/event-stream"}
        + 8
        > {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}
    """,
)
def body_not_sent(facts: Facts) -> Iterator[Claim]:
    """A gateway that changes a body and keeps the old Content-Length sends less than it announced: its own HTTP library then
    sends nothing, and the client waits for the rest.
    """
    for failed in facts.failed(State.CANCELLED, State.UNANSWERED):
        exchange = failed.refusal
        if exchange is None or exchange.ended_at is not None or exchange.media_type != JSON:
            continue
        size = exchange.response.get("content-length", "")
        announced = f", Content-Length {quote(size, 20)}" if size else ""
        yield Claim(
            title=f"the response to {failed.about} began (HTTP {exchange.status}{announced}), and its body had not come"
            f" {failed.waited} after the request",
            next_step="look into what sends this response: a gateway that changed the body must compute Content-Length again (or"
            " send chunks); a server must end what it began",
            symptoms=[failed],
            evidence=[evidence(exchange.place, f"{exchange.line}{announced}")],
            side="proxy",
        )


@cause(
    "stream-held-back",
    "something in front of the server holds event streams back until they are complete",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":1}}}
        + 0.01
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":2}}
        < {"id":2,"result":{"content":[]}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def stream_held_back(facts: Facts) -> Iterator[Claim]:
    """A proxy that buffers responses delivers progress only with the response, so clients give up long calls."""
    if facts.held_back is None or facts.is_stdio:
        return
    failed = [
        each
        for each in facts.failed(State.CANCELLED, State.UNANSWERED)
        if each.side == CLIENT and not each.progress
    ]
    yield Claim(
        title="progress came all at once, with the response: something in front of the server holds the stream back until it is complete"
        + (f"; {failed[0].about} got no byte in {failed[0].waited}" if failed else ""),
        next_step="switch buffering off there (nginx: proxy_buffering off; the server: X-Accel-Buffering: no)",
        symptoms=[*failed],
        evidence=[facts.held_back],
        side="proxy",
        is_observation=not failed,
    )


@cause(
    "get-storm",
    "the client opens the GET stream again and again",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * http {"http":50,"method":"GET","path":"/mcp","status":404,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":50}
        * http {"http":51,"method":"GET","path":"/mcp","status":404,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":51}
        * http {"http":52,"method":"GET","path":"/mcp","status":404,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":52}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * http {"http":50,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":50}
        * http {"http":51,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":51}
        * http {"http":52,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":52}
    """,
)
def get_storm(facts: Facts) -> Iterator[Claim]:
    """A client opens a GET stream for messages of the server. A server that has none answers 405; a page, an error or a
    stream that ends at once makes clients ask again.
    """
    for refusal in facts.of(RefusedExchange):
        if refusal.method != "GET" or ".well-known" in refusal.path:
            continue
        if EVENTS not in refusal.request.get("accept", ""):
            yield Claim(
                title=f"a GET that does not ask for events (a browser, a health check) got HTTP {refusal.status}",
                next_step="nothing: it is not of MCP",
                symptoms=[refusal],
                is_observation=True,
            )
            continue
        repeats = max((get.repeats for get in facts.http.gets if get.status == refusal.status), default=0)
        repeats = max(repeats + 1, refusal.count)
        span = (facts.http.last_at or refusal.at) - refusal.at
        is_page = refusal.status is not None and refusal.status < 300
        works = bool(facts.answered[CLIENT, "tools/list"] or facts.answered[CLIENT, "tools/call"])
        if not is_page and repeats < 3 and (not works or refusal.status not in (400, 404, 406, 501)):
            continue
        kind = f"a page ({refusal.media_type})" if is_page else f"HTTP {refusal.status}"
        yield Claim(
            title=f"GET {refusal.path} is answered with {kind} in place of a stream or 405"
            + (f", and the client asked {repeats} times in {duration(span)}" if repeats > 1 else ""),
            next_step="let the server answer GET with 405 Method Not Allowed if it sends nothing on its own, else with text/event-stream",
            symptoms=[refusal],
            side="server",
            is_observation=not is_page and repeats < 3,
        )
