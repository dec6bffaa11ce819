"""Requests without a response, and responses that came too late: who waited for whom."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import EvidenceLine, evidence, named_error, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ClientLeft, FailedRequest, IgnoredResponse, ServerEnd, Symptom
from mcpspy.core.counted import duration
from mcpspy.core.protocol.spec import CLIENT, SERVER, other
from mcpspy.core.session.exchange import State


def without_response(facts: Facts, side: str = "") -> Iterator[FailedRequest]:
    """Yield the requests that got no response in time, and whose HTTP exchange, if any, was accepted."""
    for failed in facts.failed(
        State.UNANSWERED, State.CANCELLED, State.LATE_OK, State.LATE_ERROR, State.LATE_TOOL_ERROR
    ):
        carrier = failed.refusal
        refused = carrier is not None and (bool(carrier.error) or (carrier.status or 0) >= 300)
        if (not side or failed.side == side) and not failed.effects and not refused:
            yield failed


@cause(
    "handshake-incomplete",
    "the client never sent notifications/initialized",
    level=Level.EXACT,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n< {"id":1,"result":{}}\n> {"id":2,"method":"tools/list"}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
)
def handshake_incomplete(facts: Facts) -> Iterator[Claim]:
    """A server may wait for it before it answers other requests; some refuse them until then."""
    if (
        facts.client.methods["notifications/initialized"]
        or not facts.answered[CLIENT, "initialize"]
        or facts.session.is_modern
    ):
        return
    failed = [
        each
        for each in facts.failed()
        if each.side == CLIENT and not each.is_handshake and not each.effects
        and (each.state in (State.UNANSWERED, State.CANCELLED) or re.search(r"(?i)initiali[sz]", each.words))
    ]  # fmt: skip
    if failed:
        yield Claim(
            title=f"the client never sent notifications/initialized after the result of initialize, and the server"
            f" {'does not answer' if failed[0].state in (State.UNANSWERED, State.CANCELLED) else 'refuses'} {failed[0].about}",
            next_step="the client must send notifications/initialized before other requests",
            symptoms=[*failed, *facts.violations("LIFE103", "LIFE102")],
            side=CLIENT,
        )


@cause(
    "client-did-not-respond",
    "the server waited for a response of the client",
    level=Level.EXACT,
    positive='> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}\n< {"id":7,"method":"roots/list"}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}\n< {"id":7,"method":"roots/list"}\n> {"id":7,"result":{"roots":[]}}\n< {"id":2,"result":{"content":[]}}',
)
def client_did_not_respond(facts: Facts) -> Iterator[Claim]:
    """A server may ask the client for its roots, a sample of its model or input of the user. A host that does not answer
    holds up the call in which the server asks.
    """
    for asked in without_response(facts, SERVER):
        held = [
            failed
            for failed in without_response(facts, CLIENT)
            if failed.asked_at <= asked.asked_at <= failed.asked_at + failed.took
            and failed.about in asked.waiting
        ]
        until = f" for {asked.waited}" if asked.took > 0 else ""
        calls = ", ".join(dict.fromkeys(asked.waiting))
        yield Claim(
            title=f"the server's {asked.about} got no response from the client{until}"
            + (f", and held up {calls}" if calls else ""),
            next_step=f"the client must answer {asked.method}, or not declare the capability;"
            " the server should ask only what the client declares, and continue without an answer",
            symptoms=[asked, *held],
            side="client",
        )


@cause(
    "get-blocks-server",
    "the open GET stream keeps the server from answering other requests",
    level=Level.EXACT,
    positive="""
        @ http
        * http {"http":50,"method":"GET","path":"/mcp","status":200,"request":{"accept":"text/event-stream"},"response":{"content-type":"text/event-stream"},"asked_at":7.0}
        > {"id":2,"method":"tools/list"}
        * http {"http":3,"stream":"1","method":"POST","path":"/mcp","status":null,"request":{},"response":{}}
        * http-end {"http":3,"stream":"1","hung_up":"client"}
        * http-end {"http":50,"hung_up":"client"}
    """,
    negative="""
        @ http
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def get_blocks_server(facts: Facts) -> Iterator[Claim]:
    """A server that works on one HTTP request at a time is busy as long as the GET stream is open."""
    failed = [
        each
        for each in without_response(facts, CLIENT)
        if each.refusal is None or each.refusal.status is None
    ]
    if any(note.fields.get("event") == "endpoint" for note, _ in facts.notes.get("sse", [])):
        return  # In the old HTTP+SSE transport, the stream is always open.
    for get in facts.http.gets:
        ended_at = get.ended_at if get.ended_at is not None else facts.last_at
        during = [each for each in failed if get.asked_at <= each.asked_at <= ended_at + 1.0]
        if get.is_refused or not during or (facts.server.last_at or 0.0) > get.asked_at:
            continue
        yield Claim(
            title=f"the server answered nothing any more since the client had opened its GET stream: {during[0].about} got no response in {during[0].waited}",
            next_step="let the server answer requests while a stream is open (more than one worker or thread), or answer GET with 405",
            symptoms=[*during],
            side=SERVER,
        )
        break


@cause(
    "sse-stream-ended",
    "the stream on which a response was to come had ended",
    level=Level.EXACT,
    positive="""
        @ sse 2024-11-05
        * http-end {"http":1000,"stream":"1","hung_up":"server"}
        > {"id":2,"method":"tools/list"}
        = 404
    """,
    negative="""
        @ sse 2024-11-05
        > {"id":2,"method":"tools/list"}
        < {"id":2,"result":{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}}
    """,
)
def sse_stream_ended(facts: Facts) -> Iterator[Claim]:
    """In the old HTTP+SSE transport, all responses come on the one GET stream; a platform or proxy that limits its time ends
    the session.
    """
    endpoints = [note for note, _ in facts.notes.get("sse", []) if note.fields.get("event") == "endpoint"]
    if not endpoints:
        return
    ended = [
        get
        for get in facts.http.gets
        if get.ended_at is not None and not get.is_refused and get.hung_up != CLIENT
    ]
    for failed in facts.failed(State.UNANSWERED, State.CANCELLED, State.REFUSED, State.ERROR):
        status = None if failed.refusal is None else failed.refusal.status
        stream = next(
            (
                get
                for get in ended
                if get.asked_at <= failed.asked_at
                and (get.ended_at or 0.0) <= failed.asked_at + failed.took + 0.1
            ),
            None,
        )
        if stream is None or failed.side != CLIENT or (status is not None and 300 <= status < 400):
            continue
        lasted = stream.took or 0.0
        is_limit = sum(abs((get.took or 0.0) - lasted) < 0.2 for get in ended) > 1
        posts_on = status is not None and status >= 400
        if posts_on and (stream.ended_at or 0.0) > failed.asked_at:
            continue
        yield Claim(
            title=f"the SSE stream ended {duration(lasted)} after it was opened"
            + (", as the others did: a limit of the platform or a proxy" if is_limit else "")
            + (
                f"; the client posts on to the old session: {failed.about} got HTTP {status}"
                if posts_on
                else f", before the response to {failed.about} came"
            ),
            next_step="the client must open a new stream and send initialize again when its stream has ended"
            if posts_on
            else "raise the limit for long responses, let the server send comments while it works, or use Streamable HTTP",
            symptoms=[each for each in facts.failed() if each.at >= failed.at and each.side == CLIENT],
            side=CLIENT if posts_on else "proxy" if is_limit else SERVER,
        )
        break


@cause(
    "server-stuck",
    "the server answers nothing any more since one request",
    level=Level.SPECIFIC,
    positive='> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}\n> {"id":3,"method":"ping"}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n> {"id":3,"method":"ping"}\n< {"id":3,"result":{}}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
)
def server_stuck(facts: Facts) -> Iterator[Claim]:
    """A call blocks the server: it waits in the handler, holds a lock, or runs a child process that shares stdin."""
    for side in (CLIENT, SERVER):
        failed = [
            each for each in without_response(facts, side) if each.answer_at is None and not each.is_handshake
        ]
        if not failed:
            continue
        first, receiver = failed[0], other(side)
        last_at = facts.sides[receiver].last_at or 0.0
        others = [each for each in failed[1:] if each.asked_at >= first.asked_at]
        if (
            last_at > first.asked_at
            or sum(each.count for each in failed) < 2
            or any(each.batch is not None for each in failed)
        ):
            continue
        unread = facts.notes.get("unread", []) if receiver == SERVER else []
        reads = f", and read nothing ({unread[-1][0].fields.get('size')} bytes are unread)," if unread else ""
        yield Claim(
            title=f"the {receiver} answered nothing any more{reads} after {first.about}: it is stuck in this call, also for {_several(others) or 'the calls after it'}",
            next_step="look what this call waits for (py-spy dump, a debugger): a lock, a child process that shares stdin, a"
            " blocking call in an event loop, or a stderr that the client does not read",
            symptoms=[*failed],
            side=receiver,
        )


def _several(failed: list[FailedRequest]) -> str:
    return ", ".join(dict.fromkeys(each.about for each in failed[:3]))


@cause(
    "output-only-at-end",
    "the server's output comes only when its input ends",
    level=Level.EXACT,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n* eof {"from":"client"}\n+ 0.01\n< {"id":1,"result":{}}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n* eof {"from":"client"}',
)
def output_only_at_end(facts: Facts) -> Iterator[Claim]:
    """A program that writes to a pipe keeps its output in a buffer until the buffer is full or the program ends. Or it
    reads all of stdin before it begins.
    """
    left_at, first_at = facts.client.closed_at, facts.server.first_at
    if facts.server.odd:
        first_at = min(facts.server.odd[0].at, first_at or facts.server.odd[0].at)
    if not facts.is_stdio or left_at is None or first_at is None or first_at < left_at:
        return
    waited = [each for each in facts.failed() if each.side == CLIENT and each.asked_at < left_at]
    if facts.client.messages and left_at - (facts.client.first_at or left_at) >= 0.5:
        yield Claim(
            title="the server's first message came only after the client had closed stdin: its output was not flushed, or it"
            " reads stdin to the end before it answers",
            next_step="flush stdout after each message (print(…, flush=True), python -u, stdbuf -oL), and read stdin line by line",
            symptoms=[*waited, *facts.of(ClientLeft), *facts.violations("LIFE114", "LIFE202", "LIFE405", "LIFE406")],
            evidence=[evidence(facts.client.closed_place, "the client closed stdin"),
                      evidence(facts.server.last_place, "messages of the server after it")],
            side="server",
        )  # fmt: skip


@cause(
    "nothing-on-stdout",
    "the server runs, and has not written one byte to stdout",
    level=Level.SPECIFIC,
    positive='@ bare\n> {"id":1,"method":"initialize","params":{}}\n> {"method":"notifications/cancelled","params":{"requestId":1,"reason":"Request timed out"}}',
    negative='> {"id":2,"method":"ping"}\n> {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}',
)
def nothing_on_stdout(facts: Facts) -> Iterator[Claim]:
    """It hangs before it reads, waits for something else than lines, or is not a server on stdio at all: one that listens
    on a port says so on stderr.
    """
    if not facts.is_stdio or facts.server.messages or facts.server.odd_count:
        return
    failed = [each for each in without_response(facts, CLIENT) if each.is_handshake]
    if not failed or any(not end.has_answered and end.code for end in facts.of(ServerEnd)):
        return
    unread = facts.notes.get("unread", [])
    error = named_error(facts.stderr, certain=True)
    listens = [line for line in facts.stderr if _LISTENS.search(line.text)]
    title = f"no answer to {failed[0].method} in {failed[0].waited}, and not one byte on stdout"
    next_step = (
        "look where the server waits, with a debugger or py-spy dump: it hangs before it reads, or expects Content-Length"
        " headers and not one message per line"
    )
    lines: list[EvidenceLine] = []
    side = SERVER
    starting = [line for line in facts.stderr if _STARTS.search(line.text)]
    is_probe = failed[0].method == "server/discover"
    if listens:
        title += f": it listens on a port instead: {quote(listens[0].text, 100)}"
        next_step = "start it with its option for stdio, or connect to its URL (mcpspy http --upstream URL)"
        lines = [evidence(listens[0].place, f"stderr: {listens[0].text}")]
    elif unread:
        note, place = unread[-1]
        title += f": no process reads the server's stdin ({note.fields.get('size')} bytes are unread)"
        next_step = "the process that mcpspy started does not read stdin: start the server itself and not a wrapper that keeps its stdin (docker run -i, ssh without -n)"
        lines = [evidence(place, "bytes are unread in the server's stdin")]
        if runner := _INSTALLS.search((facts.header.command or [""])[0]):
            title = (
                f"no answer to {failed[0].method} in {failed[0].waited}, and not one byte on stdout: {runner[1]} had not started the"
                f" server yet ({note.fields.get('size')} bytes of its stdin are unread)"
            )
            next_step = (
                f"run the command once in a terminal: {runner[1]} installs the package at its first start (and asks for the newest"
                " version at each start with @latest); pin a version, install it, or raise the host's timeout of the start"
            )
            side = "environment"
    elif is_probe and facts.stderr:
        title += (
            f": it does not know this method, and says so only on stderr: {quote(facts.stderr[-1].text, 100)}"
        )
        next_step = "let the server answer unknown methods with the error -32601; then the client continues with initialize"
    elif error is not None:
        title += f"; on stderr: {quote(error.text)}"
        next_step = "correct what this error names" + (f" at {error.frame}" if error.frame else "")
        lines = [evidence(error.line.place, f"stderr: {error.text}")]
    elif starting and failed[0].asked_at + failed[0].took - facts.stderr[-1].at < QUIET_SECONDS:
        title = (
            f"the {failed[0].side} gave up {failed[0].method} after {failed[0].waited}, while the server was still starting:"
            f" {quote(starting[-1].text, 100)}"
        )
        next_step = (
            "let the server answer initialize before slow work, or raise the host's timeout of the start"
        )
        lines = [evidence(starting[-1].place, f"stderr: {starting[-1].text}")]
    else:
        title += ": the server waits for something else than lines (framing), or hangs at its start"
        if facts.stderr:
            title += f"; its last words on stderr: {quote(facts.stderr[-1].text, 100)}"
    if not lines and facts.stderr:
        lines = [evidence(facts.stderr[-1].place, f"stderr: {facts.stderr[-1].text}")]
    symptoms: list[Symptom] = [*failed, *facts.of(ServerEnd)]
    yield Claim(title=title, next_step=next_step, symptoms=symptoms, evidence=lines, side=side)


_INSTALLS = re.compile(r"(?:^|[/\\])(npx|bunx|pnpx|uvx|uv|pipx|docker|podman)(?:\.exe|\.cmd)?$")
"""Commands that fetch a package or an image before they start it."""

QUIET_SECONDS = 3.0
"""Seconds without a line on stderr after which a server is not just starting any more."""

_STARTS = re.compile(
    r"(?i)\b(?:launch|load|start|initiali[sz]|connect|warm|boot|pull|fetch|download|install|build|compil|index|migrat)ing\b"
)
_LISTENS = re.compile(
    r"(?i)(?:listening|running|started|serving|available|uvicorn).{0,40}(?:https?://|port \d|:\d{4,5}\b)"
)


@cause(
    "response-ignored",
    "the client did not accept a response that had arrived",
    level=Level.SPECIFIC,
    positive='> {"id":2,"method":"ping"}\n< {"id":2,"result":[]}\n> {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def response_ignored(facts: Facts) -> Iterator[Claim]:
    """The client waited on after the response, so it did not take it for one: its form is wrong for the client's parser."""
    for ignored in facts.of(IgnoredResponse):
        rejecting = [each for each in ignored.findings if each.side != ignored.side]
        why = f": {rejecting[0].message}" if rejecting else ""
        codes = {each.code for each in rejecting}
        yield Claim(
            title=f"the {ignored.side} did not accept the response to {ignored.about}, and waited {duration(ignored.waited)} more{why}",
            next_step="correct this form of the response"
            if rejecting
            else f"look into the {ignored.side}'s log at this time: it got the response",
            symptoms=[ignored, *facts.violations(*codes, side=other(ignored.side))],
            evidence=[
                evidence(each.place, f"{each.code} {each.message} | {each.excerpt}") for each in rejecting[:2]
            ],
            side=other(ignored.side) if rejecting else ignored.side,
        )


@cause(
    "timeout",
    "a request was given up before its response",
    level=Level.GENERAL,
    positive='> {"id":2,"method":"tools/call","params":{"name":"a","arguments":{}}}\n> {"method":"notifications/cancelled","params":{"requestId":2,"reason":"Request timed out"}}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
)
def timeout(facts: Facts) -> Iterator[Claim]:
    """The work took longer than the requester waits, or hangs. Progress keeps some requesters waiting, if they asked for it."""
    for failed in without_response(facts):
        if failed.state is State.UNANSWERED:
            continue
        receiver = other(failed.side)
        late = ""
        if failed.answer_at is not None:
            late = f"; the response came {duration(failed.answer_at - failed.asked_at)} after the request"
            late += f": {quote(failed.words)}" if failed.words else ""
        title = f"the {failed.cancelled_by or failed.side} gave up {failed.about} after {failed.waited}, before a response{late}"
        closed_at = facts.client.closed_at
        if (
            closed_at is not None
            and failed.gave_up_at is not None
            and 0 <= closed_at - failed.gave_up_at < 0.5
        ):
            title += f", and closed the session {duration(closed_at - failed.gave_up_at)} later"
        error = named_error(failed.stderr, certain=True)
        lines = [evidence(error.line.place, f"stderr: {error.text}")] if error is not None else []
        if error is not None:
            title += f"; meanwhile the server printed {quote(error.text, 100)!r}"
            next_step = "correct what this error names" + (f" at {error.frame}" if error.frame else "")
        elif failed.has_token and not failed.progress:
            next_step = f"the request asked for progress: let the {receiver} report it, make the work faster, or raise the {failed.side}'s timeout"
        elif not failed.has_token:
            next_step = (
                f"make the work faster, answer with a task, or raise the {failed.side}'s timeout of {failed.waited}: the request"
                " had no progressToken, so progress cannot be reported"
            )
        else:
            next_step = f"it reported progress {failed.progress} times: raise the {failed.side}'s timeout of {failed.waited}"
        yield Claim(
            title=title,
            next_step=next_step,
            symptoms=[failed],
            evidence=lines,
            level=Level.SPECIFIC if error is not None else None,
        )


@cause(
    "no-response",
    "a request got no response before the session ended",
    level=Level.GENERAL,
    positive='> {"id":2,"method":"ping"}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
    negative='> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n* eof {"from":"client"}\n* exit {"code":0,"signal":null}',
)
def no_response(facts: Facts) -> Iterator[Claim]:
    """The receiver still works on it, hangs, or has forgotten it."""
    ended = [failed for end in facts.of(ServerEnd) for failed in end.during]
    for failed in without_response(facts):
        if failed.state is not State.UNANSWERED or failed in ended:
            continue
        receiver = other(failed.side)
        error = named_error(failed.stderr, certain=True)
        said = f"; on stderr: {quote(error.text)}" if error is not None else ""
        next_step = (
            f"look where the {receiver} waits at this request, for example with a debugger or py-spy dump"
        )
        if error is not None:
            next_step = "correct what this error names" + (f" at {error.frame}" if error.frame else "")
        elif failed.side == CLIENT:
            next_step += "; mcpspy send repeats it alone"
            if (
                not facts.is_stdio
                and not facts.http.session_ids
                and facts.session.client_capabilities
                and not facts.session.is_modern
            ):
                next_step += "; the server assigned no session id: so it cannot ask the client for roots, sampling or input meanwhile"
        yield Claim(
            title=f"the {receiver} did not respond to {failed.about} for {failed.waited}, until the session ended{said}",
            next_step=next_step,
            symptoms=[failed],
            evidence=[evidence(error.line.place, f"stderr: {error.text}")] if error is not None else [],
            level=Level.SPECIFIC if error is not None else None,
        )
