"""Sessions over HTTP: session ids, ends of sessions, waiting times, and authorization."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from math import inf

from mcpspy.analysis.lint.event import LintEvent, seconds_of
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.http import CALL, HELLO, HTTP, NOW, PING, SESSION
from mcpspy.analysis.lint.state import (
    INITIALIZES,
    KEPT,
    NO_MESSAGE,
    NOTIFIES,
    POSTED,
    REQUESTS,
    UNREADABLE,
    forget,
)
from mcpspy.core.protocol.spec import MODERN

_VISIBLE = re.compile(r"[\x21-\x7e]+")
_REFUSED = '@ http\n> {"id":2,"method":"ping"}\n= %s\n> {"id":3,"method":"ping"}\n= %s'
_EXCHANGE = '* http {"http":9,"stream":"1","method":"%s","path":"%s","status":%d,"request":{"mcp-session-id":"s-1","accept":"text/event-stream"%s},"response":{"content-type":"text/event-stream"}}\n* http-end {"http":9,"stream":"1","hung_up":null}\n'
_DELETED = "@ http\n" + _EXCHANGE % ("DELETE", "/mcp", 200, "") + (PING % "").partition("\n")[2]
_RETRY = '@ http\n* sse {"http":3,"stream":"1","id":"e","retry":%d,"data":""}\n' + _EXCHANGE % (
    "GET",
    "/mcp",
    200,
    ',"last-event-id":"e"',
)
_STREAM = '@ http\n* sse {"http":3,"stream":"1","id":"%s","data":""}\n' + _EXCHANGE % (
    "GET",
    "/mcp",
    200,
    ',"last-event-id":"%s"',
)
_AUTHORIZED = '200 {"authorization":"[redacted]"}'

post = RuleGroup(RULES, on=EventKind.POST)
session = post.group(page=HTTP + "session-management", until=LEGACY)
modern = post.group(since=MODERN, about=(*POSTED, NO_MESSAGE), valid=CALL % "")


@session.error(
    "HTTP201",
    "session id assigned late",
    valid=(PING % "", HELLO % "{}", PING % '{} {"mcp-session-id":"s-1"}'),
    invalid=PING % '{} {"mcp-session-id":"s-2"}',
)
def late_session_id(event: LintEvent) -> Iterator[Report]:
    """A server assigns the session id in the response to `initialize`, and in no later response."""
    post = event.post
    given = post.response.get(SESSION)
    if given is not None and post.status < 400 and not post.introduces and given != post.request.get(SESSION):
        yield Report(f"session id that no response to initialize assigned: {str(given)[:60]}", post.response)


@session.error(
    "HTTP202",
    "request without the session id",
    about=(REQUESTS, NOTIFIES, UNREADABLE, NO_MESSAGE),
    valid=(PING % "", (PING % '{"mcp-session-id":null}').replace("@ http", "@ http bare")),
    invalid=PING % '{"mcp-session-id":null}',
)
def no_session_id(event: LintEvent) -> Iterator[Report]:
    """The server assigned a session id in the response to `initialize`. The client must send it with every later
    request; otherwise the server cannot assign the request to the session.
    """
    post = event.post
    is_stream = post.verb == "DELETE" or "text/event-stream" in str(post.request.get("accept"))
    if event.method == NO_MESSAGE and not is_stream:
        return
    if event.state.session_ids and SESSION not in post.request:
        yield Report("no Mcp-Session-Id header, although the server assigned one", post.request)


@session.error(
    "HTTP203",
    "session id with invalid characters",
    valid=HELLO % '{"mcp-session-id":"1868a90c-9f4e"}',
    invalid=(HELLO % '{"mcp-session-id":"a b"}', HELLO % '{"mcp-session-id":""}'),
)
def session_id_characters(event: LintEvent) -> Iterator[Report]:
    """A session id consists of visible ASCII characters, 0x21 to 0x7E. It should also be impossible to guess."""
    post = event.post
    given = post.response.get(SESSION)
    if isinstance(given, str) and post.introduces and not _VISIBLE.fullmatch(given):
        yield Report(f"session id {given[:60]!r} is not visible ASCII", given)


@modern.warning(
    "HTTP204",
    "session id in 2026-07-28, which has no sessions",
    page=NOW + "sending-messages",
    once=True,
    invalid=CALL % '{} {"mcp-session-id":"s-1"}',
)
def session_id_without_sessions(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 removed sessions: every request is independent, and servers assign no session ids."""
    post = event.post
    if SESSION in post.response and post.status < 400:
        yield Report("Mcp-Session-Id header in a response", post.response)


@post.warning(
    "HTTP308",
    "request that ignores an HTTP error",
    page=HTTP + "session-management",
    on=(EventKind.POST, EventKind.NOTE),
    about=(REQUESTS, NOTIFIES, NO_MESSAGE, "sse"),
    valid=(
        PING % "",
        _RETRY % 10,
        (_REFUSED % ("404", "404")).replace("\n= 404", "\n= 200", 1),
        _REFUSED % ("429", "429"),
    ),
    invalid=(
        _REFUSED % ("404", "404"),
        _REFUSED % ('429 {} {"retry-after":"30"}', "429"),
        _DELETED,
        _RETRY % 9000,
    ),
)
def ignored(event: LintEvent) -> Iterator[Report]:
    """After 404 for its session id, or after it deleted the session, a client must begin a new session with `initialize`.
    After 429 with `Retry-After`, it must wait that time before it repeats the request (RFC 9110, 10.2.3), and after
    `retry` in an event before it resumes the stream.
    """
    refusals = event.state.refusals
    if event.method == "sse":
        fields = event.note.fields
        retry, number = seconds_of(fields.get("retry")), fields.get("id")
        if retry is not None and isinstance(number, str):
            refusals[f"event {number}"] = event.at - 1e-9, event.at + retry * 0.9, f"retry: {fields['retry']}"
        return
    post = event.post
    session_id = post.request.get(SESSION)
    first = f"{post.posted[0].method} {post.posted[0].subject or ''}".rstrip() if post.posted else post.verb
    keys = (f"session {session_id}", first if post.posted else f"event {post.request.get('last-event-id')}")
    for key in keys:
        start, end, why = refusals.get(key, (0.0, 0.0, ""))
        if start < post.at < end:
            yield Report(f"{first.partition(' ')[0]} {post.at - start:.1f} s after {why}", "")
    wait = str(post.response.get("retry-after", ""))
    if session_id is not None and (
        post.status == 404 or (post.verb == "DELETE" and 200 <= post.status < 300)
    ):
        why = "status 404 for its session id" if post.status == 404 else "the end of its session by DELETE"
        refusals.setdefault(keys[0], (post.answered_at, inf, why))
    elif post.status == 429 and wait.isdecimal() and wait.isascii():
        why = f"status 429 with Retry-After: {wait[:9]}"
        refusals[keys[1]] = post.answered_at, post.answered_at + int(wait[:9]), why
    forget(refusals)


@post.error(
    "HTTP401",
    "event id reused for another event",
    page=HTTP + "resumability-and-redelivery",
    on=EventKind.NOTE,
    about="event",
    valid=PING % "",
    invalid='* event {"id":"7"}',
)
def repeated_id(event: LintEvent) -> Iterator[Report]:
    """An event id must be unique in a session: a client that resumes after a reused one receives the wrong messages. A
    resumed stream may repeat the same event.
    """
    yield Report(f"event id {str(event.note.fields.get('id'))[:60]} was used for another message")


class _EventIds:
    """The ids of the events of a session."""

    def __init__(self) -> None:
        self.sent: OrderedDict[str, None] = OrderedDict()


@post.error(
    "HTTP402",
    "resumption with an event id that was never sent",
    page=HTTP + "resumability-and-redelivery",
    on=(EventKind.POST, EventKind.NOTE),
    about=(NO_MESSAGE, "sse"),
    until=LEGACY,
    valid=(_STREAM % ("7", "7"), _STREAM % ("7", "7") + _STREAM.partition("\n")[2] % ("8", "8")),
    invalid=_STREAM % ("7", "8"),
)
def unknown_event_id(event: LintEvent) -> Iterator[Report]:
    """A client resumes a stream with the id of the last event that it received, in `Last-Event-ID`. With another id, the
    server cannot know what to send again. Sessions that began before the recording are not checked.
    """
    sent = event.state.memory[_EventIds].sent
    if event.method == "sse":
        if isinstance(number := event.note.fields.get("id"), str):
            sent[number] = None
            forget(sent)
        return
    request = event.post.request
    given, session_id = request.get("last-event-id"), request.get(SESSION)
    events = event.state.events
    is_known = given in sent or any(number == given for _, number in events)
    is_whole = len(events) < KEPT > len(sent) and (
        session_id is None or session_id in event.state.session_ids
    )
    if isinstance(given, str) and given and not is_known and is_whole and (events or sent):
        yield Report(f"Last-Event-ID {given[:60]}, which no event had", given)


@session.error(
    "HTTP205",
    "session id of no session",
    about=(INITIALIZES, REQUESTS, NOTIFIES),
    valid=(PING % "", (PING % '{"mcp-session-id":"other"}').replace("@ http", "@ http bare")),
    invalid=(
        PING % '{"mcp-session-id":"other"}',
        HELLO.replace("= 200 {}", '= 200 {"mcp-session-id":"s-1"}') % "{}",
    ),
)
def unknown_session_id(event: LintEvent) -> Iterator[Report]:
    """A client sends the session id from the response to its `initialize`, and `initialize` itself without one, also
    after 404.
    """
    given, known = event.post.request.get(SESSION), event.state.session_ids
    if event.post.introduces:
        if given is not None:
            yield Report(f"initialize with the session id {str(given)[:60]}", given)
    elif given is not None and known and given not in known:
        yield Report(f"session id that no response to initialize assigned: {str(given)[:60]}", given)


@post.error(
    "HTTP502",
    "authorization that is missing, or in the URL",
    page="2025-11-25/basic/authorization#token-requirements",
    about=(*POSTED, NO_MESSAGE),
    since="2025-03-26",
    valid=(PING % "", _REFUSED % (_AUTHORIZED, _AUTHORIZED)),
    invalid=(
        _REFUSED % (_AUTHORIZED, "401"),
        "@ http\n" + _EXCHANGE % ("GET", "/mcp?access_token=x", 401, ""),
    ),
)
def authorization(event: LintEvent) -> Iterator[Report]:
    """A client sends its token in the `Authorization` header of every request of a session, and never in a URL, which
    logs contain. In 2025-06-18, a server answers 401 with `WWW-Authenticate`.
    """
    post, authorized = event.post, event.state.authorized
    if "access_token=" in str((post.head or {}).get("path")).partition("?")[2]:
        yield Report("access token in the URL", "")
    if isinstance(session_id := post.request.get(SESSION), str):
        if "authorization" in post.request:
            authorized[session_id] = None
            forget(authorized)
        elif session_id in authorized:
            yield Report("no Authorization header, although the session had one", post.request)
    if post.status == 401 and event.revision == "2025-06-18" and "www-authenticate" not in post.response:
        yield Report("401 without WWW-Authenticate", post.response)
