"""The client that ends a session: what it did not accept, or never asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.requests import answers_to_notifications
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import evidence, named_error, of_finding, quote, url_parts
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    FailedRequest,
    IgnoredResponse,
    RefusedExchange,
)
from mcpspy.analysis.lint.finding import Finding
from mcpspy.core.counted import duration
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.message import Notification
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.origin import CLIENTS
from mcpspy.core.session.exchange import State

REJECTED = frozenset(
    """ENV101 ENV102 ENV104 ENV105 ENV106 ENV108 ENV110 ENV111 ENV117 ENV118 ENV201 ENV204 ENV205 ENV206
    ENV207 DATA101 DATA102 DATA103 DATA201 DATA202 DATA206 DATA302 DATA303 DATA304 DATA401 DATA402
    DATA403 DATA406 DATA503 LIFE114 LIFE302 LIFE303 MOD201 HTTP302 HTTP303""".split()
)
"""Rules whose findings make clients reject a message: their parsers check its form."""

SECONDS_TO_LEAVE = 1.0
"""Seconds after a message within which a client leaves that does not accept it."""


def _event_form(facts: Facts) -> str:
    """Return what is unusual in the form of the event that had the server's last message; empty if nothing is."""
    frame = None if facts.server.last is None else facts.server.last[0].frame
    if frame is None or facts.is_stdio:
        return ""
    bare = [
        each for each, _ in facts.notes.get("sse", []) if each.fields.keys().isdisjoint({"event", "data"})
    ]
    if any(each.fields.get("retry") is not None for each in bare):
        return "an event after one that has only a retry time, and no data"
    if not frame.has_data_space:
        return 'an event with "data:" and no space after the colon'
    # Servers on the Python SDK end their lines with CR LF, and nearly every reader accepts that.
    ends = (frame.event_end or "").replace("\r\n", "")
    return "an event whose lines end with CR alone" if "\r" in ends else ""


_NOTIFICATION = re.compile(r"notifications/[\w/]+")


def _last_notification(facts: Facts, at: float) -> str:
    """Return the method of the client's last message, if it is a notification that was sent before this time; else nothing."""
    last = facts.client.last
    what = None if last is None or last[0].at > at else last[0]
    return what.method if isinstance(what, Notification) else ""


def _came_before(facts: Facts, left: ClientLeft) -> bool:
    """Return whether the server sent requests or notifications before the response to initialize, as far as is known."""
    is_told = left.is_before_answer or left.message == "the result of initialize"
    return is_told or not facts.answered[CLIENT, "initialize"]


@cause(
    "client-left",
    "the client left right after a message that it does not accept",
    Level.EXACT,
    rules=REJECTED,
    positive=(
        ex.session(
            "+ 0.01",
            ex.listed(
                {"name": "a", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": None}}
            ),
            ex.END,
        ),
        ex.session(
            *(
                "@ bare",
                "+ 0.01",
                ex.initialize(),
                ex.notified("<", "notifications/message", level="info", data="b"),
            ),
            *(ex.CLIENT_CLOSED, ex.welcome(), ex.exited(0)),
        ),
    ),
    negative=ex.session("+ 0.01", ex.request("tools/list"), ex.result(tools=[]), ex.END),
)
def client_left(facts: Facts) -> Iterator[Claim]:
    """A parser that rejects a message often ends the session without a word: what lint finds in it
    is the suspect.
    """
    refused = [each.at for each in facts.symptoms if isinstance(each, RefusedExchange | FailedRequest)]
    findings = [each for violation in facts.findings.values() for each in violation.findings]
    for left in facts.of(ClientLeft):
        if any(at > left.at for at in refused):
            continue  # What was refused after the message is why it left.
        recent = [each for each in findings if each.side == SERVER and left.at - 2.0 <= each.at <= left.at]
        if (
            facts.client.odd_count
        ):  # The server answers a line that it cannot read with an error without an id.
            recent = [each for each in recent if each.code != "ENV207"]
        suspects = sorted((each for each in recent if each.code in REJECTED), key=lambda each: -each.at)
        if facts.is_stdio and suspects and all(each.code in ("ENV101", "ENV102") for each in suspects):
            continue  # Text in place of messages: `stdout-noise`.
        is_silent = not left.is_initialized and not facts.session.is_modern
        if suspects:
            yield _of_suspects(facts, left, suspects)
        elif is_silent and facts.server.methods and _came_before(facts, left):
            yield _of_early_messages(facts, left)
        elif is_silent and facts.answered[CLIENT, "initialize"]:
            yield _of_response(facts, left)


def _of_suspects(facts: Facts, left: ClientLeft, suspects: list[Finding]) -> Claim:
    """Return the claim of a client that left after messages with findings."""
    first = suspects[0]
    after = f"{duration(left.after)} after {left.message}"
    if first.place != left.place:
        after = f"soon after {first.about or left.message}"
    title = f"the client left {after}: {quote(first.message)}"
    next_step = f"correct the form of this message: {first.code} (mcpspy lint explains it)"
    named = _NOTIFICATION.search(first.error or "")
    if named is not None and facts.client.methods[named[0]]:
        title = (
            f"the client left after the server had answered {named[0]} with an error, under an "
            f"id that is not its own: {quote(first.message)}"
        )
        next_step = _NOT_TO_NOTIFICATIONS
    elif first.code == "ENV204" and (notified := _last_notification(facts, first.at)):
        title = (
            f"the client left after the server had answered {notified}, a notification, under an id that no request "
            f"has: {quote(first.message)}"
        )
        next_step = _NOT_TO_NOTIFICATIONS
    elif first.code == "ENV206":
        next_step = _NOT_TO_NOTIFICATIONS
    elif first.code == "ENV207" and answers_to_notifications(facts):
        title, next_step = (
            f"the client left {after}: the server had answered a notification, without an id",
            _NOT_TO_NOTIFICATIONS,
        )
    symptoms = [left, *facts.violations(*{each.code for each in suspects}, side=SERVER)]
    lines = [of_finding(each) for each in suspects[:3]]
    return Claim(title, next_step, symptoms, evidence=lines, side=SERVER)


def _of_early_messages(facts: Facts, left: ClientLeft) -> Claim:
    """Return the claim of a client that left after messages before the response to initialize."""
    # The client may leave before the response has come: that is not a second failure.
    open_then = [
        each
        for each in facts.failed(State.UNANSWERED)
        if (each.method == "initialize" or each.side == SERVER) and left.after <= SECONDS_TO_LEAVE
    ]
    title = (
        f"the client left {duration(left.after)} after {left.message}, without notifications/initialized: the server had sent "
        f"{', '.join(sorted(facts.server.methods))} before the response to initialize"
    )
    next_step = (
        "let the first message of the server be the response to initialize, and log to stderr until then: "
        "some clients take the first message for the response; let the client match it by its id"
    )
    # In the stream with the response, other messages may come first (2025-11-25, Transports).
    is_allowed = not facts.is_stdio and facts.server.methods.keys() <= {"ping", "notifications/message"}
    return Claim(title, next_step, [left, *open_then], side="" if is_allowed else SERVER)


def _of_response(facts: Facts, left: ClientLeft) -> Claim:
    """Return the claim of a client that left after the response to initialize."""
    last = facts.server.last
    is_crlf = facts.server.carriage_returns or (
        last is not None and "\r\n" in (last[0].frame.event_end or "")
    )
    how = " (its lines end with CR LF)" if is_crlf else ""
    if form := _event_form(facts):
        title = (
            f"the client did not continue after {left.message}, which came as {form}: a valid event (HTML, 9.2.6), "
            f"which not every reader of events accepts"
        )
        next_step = (
            "look into the client's log at this time, and let its reader of events accept this form; until then let "
            'the server write "data: " with a space, lines that end with LF, and a retry time only beside data'
        )
        return Claim(title, next_step, [left], side=CLIENT, level=Level.SPECIFIC)
    metadata = [step for step in facts.http.oauth if step.step == "resource metadata" and step.status == 200]
    if metadata and not facts.http.has_token:
        named = quote(str(metadata[-1].fields.get("resource") or "no resource"), 80)
        title = (
            f"the client did not continue after {left.message}: it read the metadata of a sign-in ({named}), although the server "
            f"answers without a token"
        )
        next_step = (
            "let the server answer /.well-known/oauth-protected-resource with 404 for an endpoint that needs no sign-in: clients begin "
            "one if there is such a document, and stop if they cannot complete it"
        )
        lines = [evidence(step.place, f"{step.step}: HTTP {step.status}, {named}") for step in metadata[:2]]
        return Claim(title, next_step, [left], evidence=lines, level=Level.SPECIFIC)
    asked, agreed = facts.listed.asked_revision, facts.session.revision
    if asked and agreed and asked != agreed:
        how += f"; it had asked for revision {quote(asked, 20)}, and the server chose {quote(agreed, 20)}"
    title = f"the client did not continue after {left.message}: no notifications/initialized, no request{how}"
    slow = next(
        (each for each in facts.slow if each.about == "initialize" and each.answer_at == left.at), None
    )
    if slow is not None and not facts.of(IgnoredResponse):
        title = (
            f"the client did not continue after {left.message}, which came {duration(slow.answer_at - slow.asked_at)} after the request: it "
            f"may have given it up before{how}"
        )
        next_step = (
            "look in the client's log for a timeout of the start, and raise it, or let the server answer initialize before its slow work; if "
            "the client did not wait in vain, look what it refuses in this response"
        )
        return Claim(title, next_step, [left], level=Level.GENERAL)
    next_step = (
        "the client did not understand or accept this response: look into its log at this time; "
        "compare the revision, capabilities and line ends of the response with what the client "
        "expects"
    )
    return Claim(title, next_step, [left], level=Level.GENERAL)


_NOT_TO_NOTIFICATIONS = (
    "let the server answer only messages with an id: a notification gets no response, not even an error"
)

IDLE_AFTER_HANDSHAKE = 10.0
"""Seconds without a request after the handshake after which it is worth knowing."""


@cause(
    "client-idle",
    "the client asked for nothing after the handshake",
    Level.GENERAL,
    positive=(
        ex.session(
            "@ bare", ex.initialize(), ex.welcome(), ex.INITIALIZED, "+ 30", ex.CLIENT_CLOSED, ex.exited(0)
        ),
        ex.session(
            *("@ bare", ex.initialize(), ex.welcome(capabilities={}), ex.INITIALIZED),
            *(ex.CLIENT_CLOSED, ex.exited(0)),
        ),
    ),
    negative=ex.session(
        ex.request("tools/list"), ex.result(tools=[]), "+ 30", ex.CLIENT_CLOSED, ex.exited(0)
    ),
)
def client_idle(facts: Facts) -> Iterator[Claim]:
    """Hosts list the tools at once. A client that does not may wait for something that never comes, such as a response to
    notifications/initialized; or its user asked for nothing.
    """
    has_asked = facts.client.methods.keys() - {"initialize", "notifications/initialized"}
    ends = [note.at for note, _ in facts.notes.get("signal", [])]
    ends += [] if facts.client.closed_at is None else [facts.client.closed_at]
    is_open = not facts.is_stdio or not ends or facts.client.last_at is None
    if (
        has_asked
        or is_open
        or not facts.client.methods["notifications/initialized"]
        or facts.header.origin in CLIENTS
    ):
        return
    idle = min(ends) - (facts.client.last_at or 0.0)
    declared = facts.session.server_capabilities
    has_something = bool(declared.keys() & {"tools", "resources", "prompts", "completions"})
    if idle < IDLE_AFTER_HANDSHAKE and has_something:
        return
    title = f"the client asked for nothing after the handshake, and ended the session {duration(idle)} later"
    next_step = (
        "if its tools did not appear, look in the client what it waits for there: a notification, such as "
        "notifications/initialized, gets no response"
    )
    if not has_something:
        title += f"; the server had declared {_what(declared)}, so there was nothing to ask for"
        next_step = (
            'let the server declare in the result of initialize what it has ("tools": {}), also before the first tool is registered: '
            "clients do not list what is not declared"
        )
    elif declared.get("tools") == {}:
        next_step += '; and some clients take "tools": {} for a server without tools: {"listChanged": false} means the same, and they understand it'
    yield Claim(title, next_step, [], side="" if has_something else SERVER, is_observation=has_something)


def _what(declared: dict[str, object]) -> str:
    """Return the names of what a server has declared."""
    return f"only {quote(', '.join(sorted(declared)), 60)}" if declared else "nothing"


@cause(
    "client-sent-nothing",
    "the client began a session and sent no message",
    Level.EXACT,
    positive=(
        ex.session("@ bare", ex.END),
        ex.session("@ bare", ex.CLIENT_CLOSED, ex.stderr("Error: no token"), ex.exited(1)),
        ex.session(
            *("@ http bare", ex.initialize(), ex.answered(405)),
            *(ex.note("sse", event="endpoint", data="/messages?s=1"), "+ 5", ex.note("http-end", http=9)),
        ),
    ),
    negative=(
        ex.session("@ bare", ex.exited(0)),
        ex.session("@ bare", '* eof {"from":"server"}', ex.CLIENT_CLOSED, ex.exited(0)),
        ex.session("@ bare", ">> hello", ex.END),
    ),
)
def client_sent_nothing(facts: Facts) -> Iterator[Claim]:
    """A host that starts a server sends initialize first. One that closes the pipe has a bug, or has started the server
    only to look whether it starts. Over HTTP, one that asks for metadata first must not stop at a 404, and one that opens
    the stream of HTTP+SSE posts to the endpoint that it names.
    """
    if not facts.is_stdio and not facts.client.messages:
        yield from _asked_for_metadata_alone(facts)
    opened = [each for each, _ in facts.notes.get("sse", []) if each.fields.get("event") == "endpoint"]
    # Anyone may open a stream, such as a browser; a client that waits in vain opens another one.
    if not facts.is_stdio and (facts.client.messages or len(opened) > 1):
        yield from _posted_nothing(facts)
    client, server = facts.client, facts.server
    is_silent = not client.messages and not client.odd_count and not server.messages and not facts.symptoms
    is_first = client.closed_at is not None and client.closed_at <= min(
        server.closed_at or client.closed_at, facts.last_at
    )
    if not facts.is_stdio or facts.header.origin in CLIENTS or not is_silent or not is_first:
        return
    after = duration(client.closed_at or 0.0)
    title = f"the client closed the server's stdin {after} after the start, and had sent nothing, not even initialize"
    code = None if facts.exit is None else facts.exit.fields.get("code")
    if code == 0:
        title += ": the server then ended, as it should"
    elif error := named_error(facts.stderr, certain=True):
        title += f"; the server then ended with exit code {code}: {quote(error.text, 100)}"
    next_step = (
        "look into the host's log and for an update of the host: it must keep stdin open and send initialize; with "
        "mcpspy call, or in another host, the server can be tried without it"
    )
    lines = [evidence(client.closed_place, "the client closed stdin")]
    yield Claim(title, next_step, [], evidence=lines, side=CLIENT)


def _posted_nothing(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a client that opened the stream of HTTP+SSE, and never used the endpoint that it names."""
    for note, place in facts.notes.get("sse", []):
        named = str(note.fields.get("data", ""))
        is_endpoint = note.fields.get("event") == "endpoint"
        has_posted = (facts.client.last_at or 0.0) >= note.at
        if not is_endpoint or has_posted or facts.last_at - note.at < PATIENCE or not _is_here(facts, named):
            continue
        title = f"the client opened the SSE stream, which names the endpoint {quote(named, 80)}, and posted nothing there"
        next_step = (
            "look into the host's log at this time, and for an update of the host: in HTTP+SSE it has to post initialize to the "
            "endpoint of this event, whose data are a URL, and not a message"
        )
        yield Claim(title, next_step, [], evidence=[evidence(place, f"endpoint: {named}")], side=CLIENT)
        return


def _asked_for_metadata_alone(facts: Facts) -> Iterator[Claim]:
    """Yield a claim of a client that took missing metadata of a sign-in for a failure of the server."""
    refused = facts.of(RefusedExchange)
    if (
        refused
        and all(each.is_for_metadata and each.status == 404 for each in refused)
        and not facts.http.gets
    ):
        title = f"the client asked only for the metadata of a sign-in ({quote(refused[0].path, 100)}, HTTP 404), and sent no message"
        next_step = (
            "a server without a sign-in has no such metadata: let the client send initialize to the endpoint first, and begin a "
            "sign-in after a 401"
        )
        yield Claim(title, next_step, [*refused], side=CLIENT)


def _is_here(facts: Facts, endpoint: str) -> bool:
    """Return whether what is posted to an endpoint passes mcpspy."""
    return url_parts(endpoint).hostname in (None, facts.endpoint.hostname, *LOOPBACK)
