"""The connection to an HTTP server: it cannot be made, or a stream was cut, held back or refused."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.definition import FailureRow
from mcpspy.analysis.explain.causes.exchanges import about, exchanges, is_stream
from mcpspy.analysis.explain.causes.framing import is_left_unread
from mcpspy.analysis.explain.causes.leaving import REJECTED
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, RefusedExchange
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import EVENTS, JSON
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State
from mcpspy.core.session.http_exchanges import NOT_OFFERED

_TLS = re.compile(
    r"(?i)certificate|\bssl\b|\btls\b|hostname mismatch|handshake failure|self[- ]signed|wrong version number"
)
_NAME = re.compile(r"(?i)name or service|resolve|getaddrinfo|no address|DNS")
_NETWORK = re.compile(r"(?i)network is (?:unreachable|down)|no route to host|host is (?:unreachable|down)")
"""The errors of mcpspy's own connection: OpenSSL's, those of the resolver, and those of the network."""


def _is_of_tls(error: str) -> bool:
    """Return whether an error of the connection, without the URL in it, is one of TLS."""
    return _TLS.search(re.sub(r"\bhttps?://\S+", "", error)) is not None


def _unreachable(error: str) -> str:
    return ex.first_answer(502, {":error": f"cannot reach {error}"})


_WRONG_TLS = _unreachable("https://127.0.0.1:3001/mcp: [SSL: WRONG_VERSION_NUMBER] wrong version number")
_NO_SERVER = _unreachable("http://127.0.0.1:3001/mcp: Connection refused")


FailureRow(
    "upstream-tls",
    "the connection to the server failed in TLS",
    Level.EXACT,
    why="Mcpspy does not trust the server's certificate, or the server does not speak TLS at this port.",
    title="the connection to the server failed in TLS: {error}",
    next_step=(
        (
            "certificate has expired|not yet valid",
            "renew the certificate of the server, and restart or reload what uses it; compare the clock of this machine",
        ),
        (
            "",
            "trust the server's CA with --cacert FILE, correct the host name in the URL, or use http:// if it has no TLS",
        ),
    ),
    side=lambda _, exchange: SERVER if exchange is not None and "has expired" in exchange.error else "",
    if_refused=lambda _, exchange: _is_of_tls(exchange.error),
    positive=(
        _WRONG_TLS,
        _unreachable("https://a.example: certificate verify failed: certificate has expired"),
    ),
    negative=(_NO_SERVER, _unreachable("https://tls.example/mcp: Connection refused")),
).define(__name__)


_CLOSED = re.compile(r"(?i)closed the connection|connection reset|disconnected")
_ENDED = re.compile(r"(?i)connection refused|connect call failed")
"""A server that ended during a request, and one that does not listen."""

REFUSED_BY_MCPSPY = re.compile(r"\b(Host|Origin) (\S+) is not this machine")


@cause(
    "no-client",
    "no client sent anything",
    Level.GENERAL,
    positive=ex.session("@ http bare", ex.note("exit", code=0, signal=None)),
    negative=ex.session("@ http", ex.request("ping"), ex.result()),
)
def no_client(facts: Facts) -> Iterator[Claim]:
    """The client uses another URL or transport, a proxy in front of mcpspy does not reach it, or the host did not
    start the server.
    """
    if facts.is_stdio or facts.client.messages or facts.http.statuses or facts.exit is None or facts.symptoms:
        return
    title = f"no request reached mcpspy in {duration(facts.last_at)}, until it ended: no client connected"
    next_step = (
        "let the client use the URL on which mcpspy listens (it prints it at its start), and look whether something "
        "in front of it, such as a gateway, runs and reaches this URL"
    )
    lines = [evidence(facts.exit_place, "mcpspy ended")]
    yield Claim(title, next_step, [], evidence=lines, side="configuration")


@cause(
    "upstream-unreachable",
    "the server cannot be reached",
    Level.EXACT,
    positive=_NO_SERVER,
    negative=ex.first_answer(502, {}, {"server": "nginx"}),
)
def upstream_unreachable(facts: Facts) -> Iterator[Claim]:
    """Nothing listens at the URL, its name does not resolve, a proxy is in between, or the server
    has ended.
    """
    found = [each for each in exchanges(facts) if each[0].error and not _is_of_tls(each[0].error)]
    found = [each for each in found if not REFUSED_BY_MCPSPY.search(each[0].error)]
    if not found:
        return
    first, side = found[0][0], ""
    upstream, error = facts.header.upstream or "its URL", first.error
    next_step = f"check that the server runs at {quote(upstream)}"
    title = f"the server cannot be reached: {quote(error)}"
    if _CLOSED.search(error) and not facts.server.messages:
        title = f"the connection was made, and ended without a response to {about(first)}: {quote(error)}"
        next_step = (
            f"something at {quote(upstream)} takes the connection and ends it: look into the log of the server at this request, "
            f"and whether this port speaks https, or another protocol"
        )
    if _NAME.search(error):
        # A wrong name, or a resolver that does not know it: the recording does not tell.
        next_step = "correct the host name in the URL, or check DNS, HTTPS_PROXY and NO_PROXY"
    elif _NETWORK.search(error):
        next_step = (
            "check the network and the VPN of this machine at this time, and the address of the server"
        )
    elif facts.server.messages:
        next_step = "it had answered before: look into its own log for why it ended or restarted"
    elif "localhost" in upstream or "127.0.0.1" in upstream:
        next_step += "; in a container, localhost is the container itself"
    is_gone = any(_ENDED.search(each.error) and each.at >= first.at for each, _ in found)
    if first.asked and is_gone and _CLOSED.search(error):
        title = (
            f"the server ended while it worked on {first.asked}: it closed the connection without a "
            f"response, and nothing listens at its address since"
        )
        next_step, side = "look into the server's own log for the error that ended it at this request", SERVER
        if first.asked == "initialize" and facts.answered[CLIENT, "initialize"]:
            title += "; it had answered an earlier initialize"
            next_step = (
                "make a server object for each session (one transport and one server for each "
                "Mcp-Session-Id); its log has the error"
            )
    yield Claim(title, next_step, [symptom for _, symptom in found], side=side)


@cause(
    "optional-refusal-fatal",
    "the client left after a refusal that the specification allows",
    Level.EXACT,
    positive=ex.session("@ http", ex.http("GET", 405), ex.http("GET", 405, 51)),
    negative=(ex.session("@ http", ex.http("GET", 405)), ex.session("@ http", ex.http("GET", 504))),
)
def optional_refusal_fatal(facts: Facts) -> Iterator[Claim]:
    """A server that sends nothing on its own answers GET with 405, and one that does not let
    clients end sessions DELETE.
    """
    others = [each for each in facts.of(RefusedExchange) if is_stream(each)]
    for left in facts.of(ClientLeft):
        if any(each.code in REJECTED for each in left.findings):
            continue  # What is wrong in the message before: `client-left`.
        # One GET with 405 may well be the last thing that a client does; one that asks again does not accept it.
        # One that has not ended the handshake stops at it.
        again = [each for each in facts.http.not_offered if each.at >= left.at]
        has_asked = facts.client.methods.keys() - {"initialize", "notifications/initialized"}
        is_begun_again = not has_asked and len(facts.http.begun) > 1 and len(facts.http.not_offered) > 1
        is_fatal = len(again) > (1 if left.is_initialized and not is_begun_again else 0)
        refused = others[-1] if others else again[0] if is_fatal else None
        if (
            refused is None
            or max(refused.last_at, refused.at) < left.at
            or refused in facts.http.unanswered_gets
        ):
            continue
        is_of_gateway = refused.status in (502, 503, 504) or (refused.status or 0) >= 520
        if facts.failed() or refused.status in (401, 403) or is_of_gateway:
            continue
        why, side = ": a server without a stream answers 405", ""  # A client may take any refusal for that.
        next_step = (
            "let the server answer GET with 405, or with a stream; this client takes another status for "
            "a failure, and should continue without a stream"
        )
        if refused.status == NOT_OFFERED:
            why, side = ", which is allowed: the server has no stream", CLIENT
            next_step = "the client must continue without the stream: update it"
            if not left.is_initialized:
                # So does one that does not accept the result of initialize, and tries HTTP+SSE then.
                side = ""
                why += (
                    "; or it had not accepted the result of initialize, and tried the old HTTP+SSE transport"
                )
                next_step = (
                    "look in the client's log what it refuses: a member of the result of initialize (revision, capabilities, serverInfo), or "
                    "the 405, without which it must continue"
                )
        known = {*facts.http.session_ids}
        if known and refused.session_id is None and refused.status in (400, 404):
            why, side = ", as it has no Mcp-Session-Id, although the server had assigned one", CLIENT
            next_step = (
                "the client must send the session id with each request, also with the GET for a stream"
            )
        opened = [each for each in facts.http.gets if not each.is_refused and each.asked_at < refused.at]
        if opened and refused.status != NOT_OFFERED:
            why = f"{clause(refused.words)}, although it had opened one before"
            next_step = (
                "let the server accept the client's GET again with the same Mcp-Session-Id after a stream ended, or "
                "answer 404 if it no longer knows the session"
            )
            if known and refused.session_id is None:
                why, side = f"{why}: the later GET has no Mcp-Session-Id", CLIENT
                next_step = "the client must send the session id with each request, also when it opens the stream again"
        title = f"the client did not continue after its GET for a stream got HTTP {refused.status}{why}"
        lines = [evidence(refused.place, refused.line)]
        yield Claim(title, next_step, [left, *others], evidence=lines, side=side)


IDLE_SECONDS = 4.0
"""Seconds within which no proxy ends a connection for its silence: the shortest limits in use are of 5 s."""

_AS_EVENTS = ex.session("@ http", ex.call(), ex.answered(200, {}, ex.EVENT_STREAM))


@cause(
    "stream-cut",
    "the stream with a response was cut",
    Level.SPECIFIC,
    positive=ex.session(_AS_EVENTS, ex.note("http-end", http=3, stream="1", hung_up="server")),
    negative=ex.session(_AS_EVENTS, ex.done(), ex.note("http-end", http=3, stream="1", hung_up="server")),
)
def stream_cut(facts: Facts) -> Iterator[Claim]:
    """A proxy closes a connection that is silent for 30, 60 or 300 seconds, or the server ended."""
    for failed in facts.failed(State.UNANSWERED, State.INCOMPLETE, State.CANCELLED):
        exchange = failed.carrier
        if exchange is None or exchange.status is None or exchange.status >= 300 or failed.side != CLIENT:
            continue
        ended_at, is_message = exchange.ended_at, exchange.media_type in (EVENTS, JSON)
        if ended_at is None or not is_message or exchange.hung_up in (CLIENT, "mcpspy"):
            continue
        last_at = facts.server.last_at or 0.0
        silent = ended_at - max(last_at if last_at < ended_at else 0.0, failed.asked_at)
        how = "the connection was broken off" if exchange.hung_up == SERVER else "the stream ended"
        title = (
            f"{how} {duration(max(ended_at - failed.asked_at, 0.0))} after {failed.about}, without its "
            f"response"
        )
        title += f": no byte had come for {duration(silent)}" if silent >= 1 else ""
        via = exchange.response.get("server") or exchange.response.get("via")
        named = f" (answered by {quote(via, 40)})" if via else ""
        is_short = ended_at - failed.asked_at < IDLE_SECONDS
        next_step = (
            f"if a proxy is in between, raise its idle timeout (nginx: proxy_read_timeout), or let the "
            f"server send SSE comments or progress while it works{named}; otherwise look into the "
            f"server's log at this time"
        )
        if is_short:
            next_step = (
                "let the server send the response on the stream of its request, before it ends this "
                "stream; look into its log at this time"
            )
        side = SERVER
        if failed.method == "server/discover" and not facts.client.methods["initialize"]:
            side = ""
            title += ", and the client never sent initialize, which a server of an earlier revision needs"
            next_step = (
                "let the client send initialize if server/discover brings no response (2026-07-28, versioning); let the server answer a "
                "method that it does not know with the error -32601"
            )
        elif silent >= 1 and not is_short:
            side = ""  # Limits of servers end streams as those of proxies do.
        yield Claim(title, next_step, [failed], side=side)


@cause(
    "response-incomplete",
    "a response was begun and never completed",
    Level.SPECIFIC,
    rules="ENV113 ENV119 HTTP310",
    positive=ex.session(_AS_EVENTS, '<< {"jsonrpc":"2.0","id":2,"result":{"content":[]}}\\x04'),
    negative=ex.session(_AS_EVENTS, ex.done()),
)
def response_incomplete(facts: Facts) -> Iterator[Claim]:
    """An event ends with a blank line, a line with a newline, a body with its last byte; receivers
    discard what lacks it.
    """
    for failed in facts.failed(State.INCOMPLETE):
        is_given_up = failed.carrier is not None and failed.carrier.hung_up == CLIENT
        is_event = "blank line" in failed.why or (is_given_up and "an event of" in failed.why)
        next_step = (
            "look what ended the connection: a limit of a proxy, a crash of the server, or a size that "
            "is not Content-Length"
        )
        if is_event:
            next_step = "the server must end each event with a blank line"
        elif is_given_up:
            next_step = (
                "the client waited for the end and gave up: the server must end the response "
                "(Content-Length, or the last chunk)"
            )
        title = f"no response to {failed.about}: {failed.why}"
        symptoms = [failed, *facts.of(ClientLeft), *facts.violations("HTTP310", "ENV113", "ENV119")]
        within = [each for each in facts.server.odd if failed.asked_at <= each.at <= failed.until]
        unread = [each for each in within if is_left_unread(facts, each)]
        if unread and not facts.is_stdio:
            title = f"the client hung up in the middle of the response to {failed.about}, of which the server had sent {unread[0].size:,} bytes"
            next_step = (
                "raise the limit of the client for a body or an event (Spring: spring.codec.max-in-memory-size, 256 KiB), or look in its "
                "log why it stopped there; until then let the server send less in one result"
            )
            yield Claim(title, next_step, symptoms, side=CLIENT, level=Level.EXACT)
            continue
        level = Level.EXACT if is_event else None
        is_open = not is_event and failed.carrier is not None and failed.carrier.hung_up == SERVER
        side = "" if is_open else SERVER
        yield Claim(title, next_step, symptoms, side=side, level=level)


_PROGRESS = ex.notified("<", "notifications/progress", progressToken=1, progress=1)


@cause(
    "stream-held-back",
    "something in front of the server holds event streams back until they are complete",
    Level.EXACT,
    positive=(
        ex.session("@ http", ex.call(_meta={"progressToken": 1}), "+ 0.01", _PROGRESS, _PROGRESS, ex.done()),
        ex.session(
            "@ http", ex.call(), "+ 0.01", ex.asked("roots/list"), ex.done(2, "no answer", isError=True)
        ),
    ),
    negative=ex.session("@ http", ex.call(), ex.asked("roots/list"), ex.done(2, "no roots", isError=True)),
)
def stream_held_back(facts: Facts) -> Iterator[Claim]:
    """A proxy that buffers responses delivers progress only with the response, so clients give up
    long calls.
    """
    if facts.held_back is None or facts.is_stdio:
        return
    waiting = facts.failed(State.CANCELLED, State.UNANSWERED)
    failed = [each for each in waiting if each.side == CLIENT and not each.progress]
    asked = [each for each in facts.failed() if each.numbers & facts.held_back_calls]
    if asked:
        title = (
            f"what the server asked during {asked[0].about} reached the client only together with the response, after "
            f"{asked[0].waited}: the server, or a gateway in front of it, holds the stream back until it is complete, so the "
            f"client could not answer in time"
        )
        next_step = (
            "switch buffering off in the gateway in front of the server (nginx: proxy_buffering off; the server: "
            "X-Accel-Buffering: no), and let it flush after each event"
        )
        yield Claim(title, next_step, [*asked, *failed], evidence=[facts.held_back], side="proxy")
        return
    got = f"; {failed[0].about} got no byte in {failed[0].waited}" if failed else ""
    title = (
        f"progress came all at once, with the response: something in front of the server holds the "
        f"stream back until it is complete{got}"
    )
    next_step = "switch buffering off there (nginx: proxy_buffering off; the server: X-Accel-Buffering: no)"
    lines = [facts.held_back]
    yield Claim(title, next_step, [*failed], evidence=lines, side="proxy", is_observation=not failed)
