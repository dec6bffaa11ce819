"""Streamable HTTP: status, type and events of a response.

Streamable HTTP: the session id, and who gives and sends it (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, LintRule, Report, RuleGroup
from mcpspy.analysis.lint.rules.http_requests import BOTH, CALL, HTTP, NOW, PING, VERSION, posted
from mcpspy.analysis.lint.state import ASKS, NO_MESSAGE, POSTED, TELLS, UNREADABLE
from mcpspy.core.protocol.spec import MODERN

RULES: list[LintRule] = []

_FAIL = '@ 2026-07-28 http\n> {"id":2,"method":"%s","params":{%s}}\n= %d {} {}\n< {"id":2,"error":{"code":%d,"message":"no"}}'


SESSION = "mcp-session-id"
_VISIBLE = re.compile(r"[\x21-\x7e]+")
_HELLO = (
    '@ http bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '= 200 {} %s\n< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}}'
)

response = RuleGroup(
    RULES, page=HTTP + "sending-messages-to-the-server", on=EventKind.POST, since="2025-03-26"
)
modern = RuleGroup(RULES, on=EventKind.POST, since=MODERN)
rule = RuleGroup(RULES, on=EventKind.NOTE)
session = RuleGroup(RULES, page=HTTP + "session-management", on=EventKind.POST, until=LEGACY)


@response.error(
    "HTTP301",
    "a notification or a response that is not answered by 202",
    about=TELLS,
    valid='@ http\n> {"method":"notifications/x"}\n= 202',
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 200',
        '@ http\n> {"method":"notifications/x"}\n= 200 {} {"content-type":"text/event-stream"}',
    ),
)
def accepted(event: LintEvent) -> Iterator[Report]:
    """What wants no answer gets `202 Accepted`, and no body: no 200, no stream."""
    post = posted(event)
    if post.status not in (0, 202) and post.status < 400:
        kind = min(said.kind for said in post.posted)
        yield Report(f"a {kind} was answered by {post.status}, not by 202", post.response)


@response.error(
    "HTTP302",
    "a 202 with a body",
    about=(*POSTED, NO_MESSAGE),
    valid='@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"0"}',
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"8"}',
        '@ http\n> {"id":2,"method":"ping"}\n= 202\n< {"id":2,"result":{}}',
    ),
)
def body(event: LintEvent) -> Iterator[Report]:
    """202 has no body. A request gets its answer with 200."""
    post = posted(event)
    if post.status == 202 and (post.heard or post.response.get("content-length") not in (None, "0")):
        yield Report("202 with a body", post.response)


@response.error(
    "HTTP303",
    "an answer of another type than JSON or an event stream",
    about=ASKS,
    valid=(PING % "", PING % '{} {"content-type":"application/json; charset=utf-8"}'),
    invalid=PING % '{} {"content-type":"text/html"}',
)
def content_type(event: LintEvent) -> Iterator[Report]:
    """A request is answered by `application/json` or `text/event-stream`. A proxy's login page, often."""
    post = posted(event)
    given = str(post.response.get("content-type", "")).partition(";")[0].strip().lower()
    if post.status == 200 and given not in BOTH:
        yield Report(f"an answer of type {given[:60] or '(none)'}", post.response)


@modern.error(
    "HTTP305",
    "an error with the wrong status",
    page=NOW + "protocol-version-header",
    valid=(
        _FAIL % ("x/y", "", 404, -32601),
        _FAIL % ("tools/call", '"name":"a"', 400, -32021),
        _FAIL % ("tools/call", '"name":"a"', 200, -32603),
    ),
    invalid=(_FAIL % ("x/y", "", 200, -32601), _FAIL % ("tools/call", '"name":"a"', 200, -32022)),
)
def status(event: LintEvent) -> Iterator[Report]:
    """From 2026-07-28 on the status says what the error does: 404 for a method that there is not (-32601), 400 for
    headers, capabilities and revisions that do not fit (-32020, -32021, -32022).
    """
    post = posted(event)
    for code in post.answers:
        right = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}.get(code or 0)
        if right is not None and post.status not in (right, 0):
            yield Report(f"error {code} with status {post.status}, not {right}", post.status)


@modern.warning(
    "HTTP306",
    "a GET that is answered, where there is none",
    page="2026-07-28/changelog",
    valid=(
        CALL % "",
        '@ 2026-07-28 http\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}\n* http {"http":9,"stream":"1","method":"GET","status":405,"request":{},"response":{}}\n* http-end {"http":9,"stream":"1"}',
    ),
    invalid='@ 2026-07-28 http\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}\n* http {"http":9,"stream":"1","method":"GET","status":200,"request":{"mcp-protocol-version":"2026-07-28"},"response":{}}\n* http-end {"http":9,"stream":"1"}',
)
def get(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 has neither the stream of a GET nor a session to DELETE: a server answers both with 405."""
    post = posted(event)
    verb, revision = (post.head or {}).get("method"), post.request.get(VERSION)
    if (
        verb in ("GET", "DELETE")
        and 200 <= post.status < 300
        and isinstance(revision, str)
        and revision >= MODERN
    ):
        yield Report(f"{verb} was answered by {post.status}, not by 405")


@rule.error(
    "HTTP401",
    "the id of an event, for another event",
    page=HTTP + "resumability-and-redelivery",
    on=EventKind.NOTE,
    about="event",
    valid=(PING % "",),
    invalid=('* event {"id":"7"}',),
)
def repeated_id(event: LintEvent) -> Iterator[Report]:
    """An event's id is given once in a session: a client that resumes after it gets the wrong messages. The same
    event again, on a stream that was resumed, is fine.
    """
    yield Report(f"the event id {str(event.note.fields.get('id'))[:60]} was given to another message")


@session.error(
    "HTTP201",
    "a session id that comes late",
    valid=(PING % "", _HELLO % "{}", PING % '{} {"mcp-session-id":"s-1"}'),
    invalid=PING % '{} {"mcp-session-id":"s-2"}',
)
def minted(event: LintEvent) -> Iterator[Report]:
    """A server gives a session its id with the answer to `initialize`, and never again."""
    post = posted(event)
    given = post.response.get(SESSION)
    if given is not None and post.status < 400 and not post.introduces and given != post.request.get(SESSION):
        yield Report(f"a session id that no answer to initialize gave: {str(given)[:60]}", post.response)


@session.error(
    "HTTP202",
    "no session id",
    about=(ASKS, TELLS, UNREADABLE),
    valid=(PING % "", (PING % '{"mcp-session-id":null}').replace("@ http", "@ http bare")),
    invalid=PING % '{"mcp-session-id":null}',
)
def unsent(event: LintEvent) -> Iterator[Report]:
    """The server gave the session an id with the answer to `initialize`: the client sends it with every request
    from then on, or is a stranger.
    """
    post = posted(event)
    if event.known.session_ids and SESSION not in post.request and not post.introduces:
        yield Report("no Mcp-Session-Id header, though the server gave one", post.request)


@session.error(
    "HTTP203",
    "a session id with characters that it may not have",
    valid=_HELLO % '{"mcp-session-id":"1868a90c-9f4e"}',
    invalid=(_HELLO % '{"mcp-session-id":"a b"}', _HELLO % '{"mcp-session-id":""}'),
)
def invisible(event: LintEvent) -> Iterator[Report]:
    """Visible ASCII alone, 0x21 to 0x7E; and it should be a thing that nobody guesses."""
    post = posted(event)
    given = post.response.get(SESSION)
    if isinstance(given, str) and post.introduces and not _VISIBLE.fullmatch(given):
        yield Report(f"the session id {given[:60]!r} is not visible ASCII", given)


@modern.warning(
    "HTTP204",
    "a session id, where there are no sessions",
    page=NOW + "sending-messages",
    once=True,
    valid=CALL % "",
    invalid=CALL % '{} {"mcp-session-id":"s-1"}',
)
def stateless(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 took sessions out: every request stands for itself, and a server gives no ids."""
    post = posted(event)
    if SESSION in post.response and post.status < 400:
        yield Report("an Mcp-Session-Id from the server", post.response)
