"""Sessions over HTTP: their ids, copies of a server, and the old HTTP+SSE transport."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.explain.causes.connection import exchanges
from mcpspy.analysis.explain.causes.refusals import SESSION, refused_with, said_by, same_status, who_refused
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.http_headers import EVENTS, LOOPBACK
from mcpspy.core.protocol.spec import CLIENT, SERVER


@cause(
    "sse-transport",
    "the client uses the old HTTP+SSE transport, and the server Streamable HTTP",
    level=Level.EXACT,
    positive="""
        @ http bare
        * http {"http":50,"method":"GET","path":"/mcp","status":404,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":50}
    """,
    negative="""
        @ http
        * http {"http":50,"method":"GET","path":"/mcp","status":405,"request":{"accept":"text/event-stream"},"response":{}}
        * http-end {"http":50}
    """,
)
def sse_transport(facts: Facts) -> Iterator[Claim]:
    """A client of the transport of 2024-11-05 begins with GET; a server of Streamable HTTP wants a POST first."""
    if facts.client.methods["initialize"] or facts.client.methods["server/discover"]:
        return
    for refusal in (*facts.of(RefusedExchange), *facts.http.not_offered):
        is_stream = refusal.method == "GET" and EVENTS in refusal.request.get("accept", "")
        if not is_stream or ".well-known" in refusal.path or facts.client.messages:
            continue
        if refusal.status in (400, 404, 405, 406):
            said = f": {quote(refusal.words)}" if refusal.words else ""
            yield Claim(
                title=f"the client opened a stream with GET before any POST (the old HTTP+SSE transport), and the server"
                f" answered HTTP {refusal.status}{said}",
                next_step="set the client's transport to Streamable HTTP (type: http), or give it the server's URL for SSE",
                symptoms=[refusal, *facts.violations("ENV204", "ENV208", side=SERVER)],
                side="configuration",
            )
            break


@cause(
    "sse-endpoint-lost",
    "the endpoint that the SSE stream names does not exist",
    level=Level.EXACT,
    positive="""
        @ sse bare 2024-11-05
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 404
    """,
    negative="""
        @ sse bare 2024-11-05
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 202
    """,
)
def sse_endpoint_lost(facts: Facts) -> Iterator[Claim]:
    """The `endpoint` event has a path that lacks the prefix under which a proxy or a mount serves the server."""
    events = [
        (note, place) for note, place in facts.notes.get("sse", []) if note.fields.get("event") == "endpoint"
    ]
    for note, place in events[:1]:
        named = str(note.fields.get("data", ""))
        host = urlsplit(named).hostname
        if (
            host is not None
            and host not in (urlsplit(facts.header.upstream or "").hostname, *LOOPBACK)
            and not facts.client.messages
        ):
            yield Claim(
                title=f"the SSE stream names an endpoint at another host, {quote(named, 100)}, and no message was ever posted here:"
                " the client cannot reach that host, or posts past this URL",
                next_step="let the server name its endpoint by path, or with the host that clients use (base URL, X-Forwarded-Host)",
                symptoms=[],
                evidence=[evidence(place, f"endpoint: {named}")],
                side="configuration",
            )
        for exchange, symptom in refused_with(404, 405, 400, 307, 308, facts=facts):
            is_new = not any(
                status is not None and status < 300
                for method, status in facts.http.statuses
                if method == "POST"
            )
            if (
                exchange.method == "POST"
                and is_new
                and (exchange.status != 400 or not said_by(exchange, symptom))
                and urlsplit(named).path.rstrip("/") == exchange.path.rstrip("/")
            ):
                stream = urlsplit(facts.header.upstream or "").path
                yield Claim(
                    title=f"the SSE stream {quote(stream)} names the endpoint {quote(named, 100)}, and {who_refused(exchange)} answers HTTP {exchange.status} there",
                    next_step="tell the server its public path (root_path, mount path, base URL), so that the endpoint has the prefix;"
                    " or let the proxy serve this path too",
                    symptoms=same_status(facts, exchange),
                    evidence=[evidence(place, f"endpoint: {named}")],
                    side="configuration",
                )
                break


@cause(
    "session-not-assigned",
    "the server wants a session id, and none came with the result of initialize",
    level=Level.EXACT,
    positive="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 200 {} {"mcp-session-id":null}
        < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"b","version":"1"}}}
        > {"id":2,"method":"tools/list"}
        = 400 {"mcp-session-id":null}
        << {"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
    """,
)
def session_not_assigned(facts: Facts) -> Iterator[Claim]:
    """A gateway or proxy between mcpspy and the server drops Mcp-Session-Id from the response, or the server forgets it."""
    if facts.http.session_ids or not facts.answered[CLIENT, "initialize"]:
        return
    for exchange, symptom in refused_with(400, 404, facts=facts):
        if (
            exchange.method == "POST"
            and "mcp-session-id" not in exchange.request
            and SESSION.search(said_by(exchange, symptom))
        ):
            yield Claim(
                title=f"the response to initialize had no Mcp-Session-Id, and {exchange.asked} without one is refused with HTTP {exchange.status}: {quote(said_by(exchange, symptom))}",
                next_step="let the gateway or proxy behind mcpspy pass on the header Mcp-Session-Id of responses; ask the server directly to compare",
                symptoms=same_status(facts, exchange),
                side="proxy",
            )
            break


@cause(
    "session-header-missing",
    "the client does not send the session id that it was given",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 400 {"mcp-session-id":null} {} "Missing session id"
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 400 {} {} "Missing session id"
    """,
)
def session_header_missing(facts: Facts) -> Iterator[Claim]:
    """In a browser, a header is only readable if Access-Control-Expose-Headers names it. Proxies drop headers that they do not
    know. Some clients do not support sessions.
    """
    if not facts.http.session_ids:
        return
    first_at = min(facts.http.session_ids.values())
    for exchange, symptom in refused_with(400, 401, 403, 404, facts=facts):
        if exchange.at < first_at or "mcp-session-id" in exchange.request or exchange.asked == "initialize":
            continue
        if exchange.method not in ("POST", "GET", "DELETE") or ".well-known" in exchange.path:
            continue
        if exchange.asked == "server/discover":
            continue
        begin = facts.http.heads.get("initialize")
        origin = exchange.request.get("origin")
        is_hidden = (
            origin
            and begin is not None
            and "mcp-session-id" not in begin.response.get("access-control-expose-headers", "").lower()
        )
        if not is_hidden and not SESSION.search(said_by(exchange, symptom)):
            continue
        title = f"{exchange.asked or exchange.method} came without the session id that the server had assigned, and got HTTP {exchange.status}"
        next_step = "let the client send Mcp-Session-Id with each request after initialize; look whether a proxy between client and mcpspy drops it"
        if is_hidden:
            title += f": the page at {quote(origin or '', 60)} cannot read it, since Access-Control-Expose-Headers does not name Mcp-Session-Id"
            next_step = "let the server answer with Access-Control-Expose-Headers: Mcp-Session-Id (CORS)"
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[
                *(
                    each
                    for other, each in exchanges(facts)
                    if other.status == exchange.status and "mcp-session-id" not in other.request
                ),
                *facts.violations("HTTP202"),
            ],
            side="server" if is_hidden else "client",
        )
        break


@cause(
    "replicas",
    "several copies of the server do not share their sessions",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 404
        > {"id":3,"method":"ping"}
        < {"id":3,"result":{}}
    """,
    negative="""
        @ http
        > {"id":3,"method":"ping"}
        < {"id":3,"result":{}}
        > {"id":4,"method":"ping"}
        < {"id":4,"result":{}}
        > {"id":2,"method":"tools/list"}
        = 404
    """,
)
def replicas(facts: Facts) -> Iterator[Claim]:
    """A load balancer sends requests of one session to different copies; one that did not create the session refuses it."""
    for exchange, _ in refused_with(400, 404, facts=facts):
        session_id = exchange.request.get("mcp-session-id")
        if session_id is None or exchange.asked in ("initialize", ""):
            continue
        accepted_after = facts.http.accepted.get(session_id, 0.0) > exchange.at
        assigned = facts.http.session_ids.get(session_id)
        is_new = (
            assigned is not None
            and exchange.at - assigned < 1.0
            and facts.http.accepted_count[session_id] <= 2
        )
        if accepted_after or (is_new and exchange.status == 404):
            yield Claim(
                title=f"the server refused the session with HTTP {exchange.status} in some requests and accepted it in others:"
                " several copies of it serve this address and do not share sessions"
                if accepted_after
                else f"the server assigned a session, and {duration(exchange.at - (assigned or 0.0))} later did not know it"
                f" (HTTP {exchange.status}): another copy of it answered, or it does not keep its sessions",
                next_step="route all requests with one Mcp-Session-Id to the same copy, share the sessions, or make the server stateless",
                symptoms=[each for other, each in exchanges(facts) if other.status == exchange.status],
                side="proxy",
                level=Level.EXACT if accepted_after else Level.SPECIFIC,
            )
            break


@cause(
    "delete-refused",
    "the end of a session was refused",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * http {"http":50,"method":"DELETE","path":"/mcp","status":404,"request":{"mcp-session-id":"s-1"},"response":{}}
        * http-end {"http":50}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}
        < {"id":2,"result":{"content":[]}}
        * http {"http":50,"method":"DELETE","path":"/mcp","status":405,"request":{"mcp-session-id":"s-1"},"response":{}}
        * http-end {"http":50}
    """,
)
def delete_refused(facts: Facts) -> Iterator[Claim]:
    """A client may end its session with DELETE. A server that does not allow it answers 405; nothing depends on it."""
    for refusal in facts.of(RefusedExchange):
        if refusal.method == "DELETE" and refusal.status is not None and refusal.status >= 400:
            yield Claim(
                title=f"DELETE at the end of the session was answered HTTP {refusal.status}; nothing depends on it",
                next_step="let the server answer 204, or 405 if clients may not end sessions",
                symptoms=[refusal],
                is_observation=True,
            )


@cause(
    "initialize-with-session",
    "initialize was sent with the id of an old session",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 404 {"mcp-session-id":"s-1"}
    """,
    negative="""
        @ http
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 404
    """,
)
def initialize_with_session(facts: Facts) -> Iterator[Claim]:
    """Initialize begins a session, so it carries no session id; a server looks the id up and refuses it."""
    for exchange, symptom in refused_with(400, 404, facts=facts):
        if exchange.asked == "initialize" and re.search(
            r"(?i)already initiali[sz]ed", said_by(exchange, symptom)
        ):
            yield Claim(
                title=f"the client sent initialize again in a session that was initialized: {quote(said_by(exchange, symptom))}",
                next_step="the client must send initialize once, and then notifications/initialized",
                symptoms=[symptom, *facts.violations("LIFE105", "LIFE114")],
                side=CLIENT,
            )
            break
        if exchange.asked == "initialize" and "mcp-session-id" in exchange.request:
            lost = [
                each
                for other, each in exchanges(facts)
                if other.status == exchange.status and "mcp-session-id" in other.request
            ]
            yield Claim(
                title=f"the client sent initialize with the id of the session that had ended, and the server refused it with HTTP {exchange.status}",
                next_step="the client must send initialize without Mcp-Session-Id; the server could ignore the header there",
                symptoms=lost,
                side=CLIENT,
            )
            break


@cause(
    "sessions-not-ended",
    "the client begins sessions and never ends them, until the server has no room",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":11,"method":"initialize","params":{}}
        < {"id":11,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
        > {"id":12,"method":"initialize","params":{}}
        < {"id":12,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
        > {"id":13,"method":"initialize","params":{}}
        < {"id":13,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}
        > {"id":14,"method":"initialize","params":{}}
        = 503 {} {} "Too many sessions"
    """,
    negative="""
        @ http
        > {"id":14,"method":"initialize","params":{}}
        = 503 {} {} "Too many sessions"
    """,
)
def sessions_not_ended(facts: Facts) -> Iterator[Claim]:
    """A client that begins a session for each call has to end it with DELETE; a server has to end those that are idle."""
    begun = facts.answered[CLIENT, "initialize"]
    for exchange, symptom in refused_with(429, 500, 503, facts=facts):
        is_full = re.search(r"(?i)too many|limit|max\w*|session", said_by(exchange, symptom))
        if (
            exchange.asked == "initialize"
            and begun >= 4
            and is_full
            and not any(method == "DELETE" for method, _ in facts.http.statuses)
        ):
            yield Claim(
                title=f"the server refused initialize with HTTP {exchange.status} after {begun} sessions, none of which the client had ended: {quote(said_by(exchange, symptom))}",
                next_step="let the client use one session for its calls, or end each with DELETE; let the server end sessions that are idle",
                symptoms=same_status(facts, exchange),
                side=CLIENT,
            )
            break


@cause(
    "session-lost",
    "the server does not know the session any more",
    level=Level.SPECIFIC,
    positive="""
        @ http
        > {"id":3,"method":"ping"}
        < {"id":3,"result":{}}
        > {"id":4,"method":"ping"}
        < {"id":4,"result":{}}
        > {"id":2,"method":"tools/list"}
        = 404 {} {} "Session not found"
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        = 404 {"mcp-session-id":null}
    """,
)
def session_lost(facts: Facts) -> Iterator[Claim]:
    """The server restarted, or the session expired. It answers 404, and the client must send initialize again."""
    lost: list[Symptom] = []
    first: RefusedExchange | None = None
    for exchange, symptom in exchanges(facts):
        if exchange.method == "DELETE":
            continue
        is_lost = exchange.status == 404 and "mcp-session-id" in exchange.request and not exchange.error
        is_stale = (
            exchange.status in (400, 401, 403, 409, 410, 422, 500, 503)
            and "mcp-session-id" in exchange.request
            and not exchange.error
            and re.search(r"(?i)session|initiali[sz]ed", said_by(exchange, symptom)) is not None
        )
        if is_lost or is_stale:
            first = first or exchange
            lost.append(symptom)
    if first is None:
        return
    lost += [
        each
        for each in facts.of(RefusedExchange)
        if each not in lost
        and each.status == first.status
        and each.request.get("mcp-session-id") == first.request["mcp-session-id"]
    ]
    has_worked = facts.http.accepted_count[first.request["mcp-session-id"]] > 0
    began_again = facts.client.methods["initialize"] > 1
    count = sum(symptom.count for symptom in lost)
    known = "that had worked before" if has_worked else "that it had never accepted here"
    said = next(
        (quote(symptom.words) for symptom in lost if isinstance(symptom, FailedRequest) and symptom.words),
        quote(first.words),
    )
    title = (
        f"the server no longer knows the session {known} (HTTP {first.status}{f': {said}' if said else ''})"
    )
    if first.status == 404:
        title += (
            f", and the client still used it in {counted(count, 'request')}"
            if count > 1 and not began_again
            else ""
        )
        next_step = "the client must send initialize again after a 404; keep the server's sessions over restarts, or make it stateless"
        side = CLIENT
    else:
        title += ": it restarted or lost its state, and does not answer 404"
        next_step = "let the server answer 404 for a session that it does not know, so that the client sends initialize again; keep sessions over restarts"
        side = SERVER
    if began_again and all(
        isinstance(each, FailedRequest) and each.succeeded_at is not None for each in lost
    ):
        yield Claim(
            title=title,
            next_step="the client began a new session, as it should",
            symptoms=lost,
            is_observation=True,
        )
        return
    yield Claim(title=title, next_step=next_step, symptoms=[*lost, *facts.violations("HTTP205")], side=side)


@cause(
    "one-session-only",
    "the server can serve one session only",
    level=Level.EXACT,
    positive="""
        @ http
        > {"id":2,"method":"initialize","params":{}}
        = 500
    """,
    negative="""
        @ http bare
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
        = 500
    """,
)
def one_session_only(facts: Facts) -> Iterator[Claim]:
    """One server object is shared by all sessions, and the SDK connects it to one transport only."""
    for failed in facts.failed():
        if failed.method != "initialize" or failed.is_first or not facts.answered[CLIENT, "initialize"]:
            continue
        status = None if failed.refusal is None else failed.refusal.status
        others = [
            each
            for each, _ in exchanges(facts)
            if each.status == status and each.asked not in ("initialize", "")
        ]
        if others:  # Whatever it is, it does not concern new sessions alone.
            continue
        says_so = re.search(r"(?i)already (?:connected|initiali[sz]ed|started)", failed.words)
        if says_so or status == 500:
            yield Claim(
                title=f"the server answered the first initialize, and each later one with {f'HTTP {status}' if status else 'an error'}: {quote(failed.words) or 'it can serve one session only'}",
                next_step="make a server object for each session (one transport and one server for each Mcp-Session-Id), and end sessions that are over",
                symptoms=[failed],
                side=SERVER,
                level=Level.EXACT if says_so else Level.SPECIFIC,
            )
