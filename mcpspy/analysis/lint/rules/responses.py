"""Streamable HTTP: status, type and events of a response."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.posts import ASKS, NOTHING, POSTED, TELLS
from mcpspy.analysis.lint.rule import ERROR, WARNING, Rules, Told
from mcpspy.analysis.lint.rules.headers import BOTH, CALL, HTTP, NOW, PING, VERSION, posted
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.spec import MODERN

RULES = Rules()
rule = RULES.rule

_FAIL = '@ 2026-07-28 http\n> {"id":2,"method":"%s","params":{%s}}\n= %d {} {}\n< {"id":2,"error":{"code":%d,"message":"no"}}'


@rule(
    "HTTP301",
    ERROR,
    "a notification or a response that is not answered by 202",
    page=HTTP + "sending-messages-to-the-server",
    on=Kind.POST,
    about=TELLS,
    since="2025-03-26",
    valid=('@ http\n> {"method":"notifications/x"}\n= 202',),
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 200',
        '@ http\n> {"method":"notifications/x"}\n= 200 {} {"content-type":"text/event-stream"}',
    ),
)
def accepted(seen: Seen) -> Iterator[Told]:
    """What wants no answer gets `202 Accepted`, and no body: no 200, no stream."""
    post = posted(seen)
    if post.status not in (0, 202) and post.status < 400:
        kind = min(said.kind for said in post.posted)
        yield Told(f"a {kind} was answered by {post.status}, not by 202", post.response)


@rule(
    "HTTP302",
    ERROR,
    "a 202 with a body",
    page=HTTP + "sending-messages-to-the-server",
    on=Kind.POST,
    about=(*POSTED, NOTHING),
    since="2025-03-26",
    valid=('@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"0"}',),
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"8"}',
        '@ http\n> {"id":2,"method":"ping"}\n= 202\n< {"id":2,"result":{}}',
    ),
)
def body(seen: Seen) -> Iterator[Told]:
    """202 has no body. A request gets its answer with 200."""
    post = posted(seen)
    if post.status == 202 and (post.heard or post.response.get("content-length") not in (None, "0")):
        yield Told("202 with a body", post.response)


@rule(
    "HTTP303",
    ERROR,
    "an answer of another type than JSON or an event stream",
    page=HTTP + "sending-messages-to-the-server",
    on=Kind.POST,
    about=ASKS,
    since="2025-03-26",
    valid=(PING % "", PING % '{} {"content-type":"application/json; charset=utf-8"}'),
    invalid=(PING % '{} {"content-type":"text/html"}',),
)
def content_type(seen: Seen) -> Iterator[Told]:
    """A request is answered by `application/json` or `text/event-stream`. A proxy's login page, often."""
    post = posted(seen)
    given = str(post.response.get("content-type", "")).partition(";")[0].strip().lower()
    if post.status == 200 and given not in BOTH:
        yield Told(f"an answer of type {given[:60] or '(none)'}", post.response)


@rule(
    "HTTP305",
    ERROR,
    "an error with the wrong status",
    page=NOW + "protocol-version-header",
    on=Kind.POST,
    since=MODERN,
    valid=(
        _FAIL % ("x/y", "", 404, -32601),
        _FAIL % ("tools/call", '"name":"a"', 400, -32021),
        _FAIL % ("tools/call", '"name":"a"', 200, -32603),
    ),
    invalid=(_FAIL % ("x/y", "", 200, -32601), _FAIL % ("tools/call", '"name":"a"', 200, -32022)),
)
def status(seen: Seen) -> Iterator[Told]:
    """From 2026-07-28 on the status says what the error does: 404 for a method that there is not (-32601), 400 for
    headers, capabilities and revisions that do not fit (-32020, -32021, -32022).
    """
    post = posted(seen)
    for code in post.answers:
        right = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}.get(code or 0)
        if right is not None and post.status not in (right, 0):
            yield Told(f"error {code} with status {post.status}, not {right}", post.status)


@rule(
    "HTTP306",
    WARNING,
    "a GET that is answered, where there is none",
    page="2026-07-28/changelog",
    on=Kind.POST,
    since=MODERN,
    valid=(
        CALL % "",
        '@ 2026-07-28 http\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}\n* http {"http":9,"stream":"1","method":"GET","status":405,"request":{},"response":{}}\n* http-end {"http":9,"stream":"1"}',
    ),
    invalid=(
        '@ 2026-07-28 http\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}\n* http {"http":9,"stream":"1","method":"GET","status":200,"request":{"mcp-protocol-version":"2026-07-28"},"response":{}}\n* http-end {"http":9,"stream":"1"}',
    ),
)
def get(seen: Seen) -> Iterator[Told]:
    """2026-07-28 has neither the stream of a GET nor a session to DELETE: a server answers both with 405."""
    post = posted(seen)
    verb, revision = (post.head or {}).get("method"), post.request.get(VERSION)
    if (
        verb in ("GET", "DELETE")
        and 200 <= post.status < 300
        and isinstance(revision, str)
        and revision >= MODERN
    ):
        yield Told(f"{verb} was answered by {post.status}, not by 405")


@rule(
    "HTTP401",
    ERROR,
    "the id of an event, for another event",
    page=HTTP + "resumability-and-redelivery",
    on=Kind.NOTE,
    about="event",
    valid=(PING % "",),
    invalid=('* event {"id":"7"}',),
)
def event(seen: Seen) -> Iterator[Told]:
    """An event's id is given once in a session: a client that resumes after it gets the wrong messages. The same
    event again, on a stream that was resumed, is fine.
    """
    yield Told(f"the event id {str(seen.note.fields.get('id'))[:60]} was given to another message")
