"""Streamable HTTP: responses and streams.

An exchange is checked when it ends. The messages in it are checked by the same rules as over stdio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.state import (
    ANSWERED,
    MESSAGE_TYPES,
    NO_MESSAGE,
    NOTIFIES,
    POSTED,
)
from mcpspy.core.framing import BLANK_LINE
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.spec import MODERN, SERVER, error_name

HTTP = "2025-11-25/basic/transports#"
SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"
SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"
NOW = "2026-07-28/basic/transports/streamable-http#"


PING = '@ http\n> {"id":2,"method":"ping"}\n= 200 %s\n< {"id":2,"result":{}}'
CALL = '@ 2026-07-28 http\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'
FAIL = '@ 2026-07-28 http\n> {"id":2,"method":"%s","params":{%s}}\n= %d {} {}\n< {"id":2,"error":{"code":%d,"message":"no","data":{"requiredCapabilities":{"a":{}},"supported":[],"requested":"b"}}}'
HELLO = (
    '@ http bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '= 200 {} %s\n< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}}'
)

post = RuleGroup(RULES, on=EventKind.POST)
response = post.group(page=HTTP + "sending-messages-to-the-server", since="2025-03-26")
modern = post.group(since=MODERN, about=(*POSTED, NO_MESSAGE), valid=CALL % "")


@response.error(
    "HTTP301",
    "notification or response not acknowledged with 202",
    about=NOTIFIES,
    valid='@ http\n> {"method":"notifications/x"}\n= 202',
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 200',
        '@ http\n> {"method":"notifications/x"}\n= 200 {} {"content-type":"text/event-stream"}',
    ),
)
def not_202(event: LintEvent) -> Iterator[Report]:
    """A POST without requests is acknowledged with `202 Accepted` and no body, not with a 200 or an event stream."""
    post = event.post
    if post.status not in (0, 202) and post.status < 400:
        kind = min(stated.kind for stated in post.posted)
        yield Report(f"status {post.status} for a {kind}, not 202", post.response)


@response.error(
    "HTTP302",
    "202 with a body",
    about=(*POSTED, NO_MESSAGE),
    valid='@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"0"}',
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"8"}',
        '@ http\n> {"id":2,"method":"ping"}\n= 202\n< {"id":2,"result":{}}',
        '@ http\n> {"method":"notifications/x"}\n= 202 {} {"content-length":"4"}\n<< null',
        '@ http\n> {"method":"notifications/x"}\n= 202\n<< Accepted',
    ),
)
def body_of_202(event: LintEvent) -> Iterator[Report]:
    """A 202 has no body. The response to a request is sent with status 200."""
    post = event.post
    if post.status == 202 and (post.received or post.response.get("content-length") not in (None, "0")):
        yield Report("202 with a body", post.response)


@response.error(
    "HTTP303",
    "response that is neither JSON nor an event stream",
    about=(*ANSWERED, NO_MESSAGE),
    valid=(PING % "", PING % '{} {"content-type":"application/json; charset=utf-8"}'),
    invalid=PING % '{} {"content-type":"text/html"}',
)
def content_type(event: LintEvent) -> Iterator[Report]:
    """The response must be `application/json` or `text/event-stream`; to a GET only the latter, or status 405. Often it
    is a login page of a proxy instead.
    """
    post = event.post
    is_get = event.method == NO_MESSAGE
    asks = post.verb == "GET" and "text/event-stream" in str(post.request.get("accept"))
    if post.status == 200 and (
        asks and post.content_type != MESSAGE_TYPES[1] if is_get else not post.is_json
    ):
        yield Report(f"response of type {post.content_type[:60] or '(none)'}", post.response)


@response.error(
    "HTTP311",
    "message that is not posted as JSON",
    about=POSTED,
    valid=(PING % "", PING % '{"content-type":"application/json; charset=utf-8"}'),
    invalid=(PING % '{"content-type":"text/plain"}', PING % '{":method":"PUT"}'),
)
def not_posted(event: LintEvent) -> Iterator[Report]:
    """A client sends every message in the body of a POST, of type `application/json`. Servers may refuse others: a page
    of another site can send them without the permission that CORS requires.
    """
    post = event.post
    if post.verb != "POST":
        yield Report(f"message in the body of a {post.verb[:20]}", post.head)
        return
    given = str(post.request.get("content-type", "")).partition(";")[0].strip().lower()
    if post.request and given != "application/json":
        yield Report(f"Content-Type of a message is {given[:60] or 'missing'}", post.request)


@response.error(
    "HTTP312",
    "result with the HTTP status of an error",
    about=ANSWERED,
    valid=(PING % "", FAIL % ("x/y", "", 404, -32601)),
    invalid=(PING % "").replace("= 200", "= 500"),
)
def failed_result(event: LintEvent) -> Iterator[Report]:
    """The response with a result has status 200. Clients take another status for a failure, and do not read the body."""
    post = event.post
    if post.status >= 400 and None in post.answers:
        yield Report(f"result with status {post.status}", post.status)


@post.warning(
    "HTTP307",
    "request that does not reach an MCP endpoint",
    page=HTTP + "sending-messages-to-the-server",
    about=POSTED,
    once=True,
    valid=(PING % "", '@ http\n> {"id":2,"method":"ping"}\n= 404'),
    invalid=(
        '@ http\n> {"id":2,"method":"ping"}\n= 405',
        HELLO.replace("= 200", "= 404").partition("\n<")[0] % "{}",
    ),
)
def no_endpoint(event: LintEvent) -> Iterator[Report]:
    """The server cannot be reached, or a POST to this path is rejected with 404 or 405: check the URL in the client's
    configuration. The endpoint is often `/mcp`; at `/sse` there may be a server of HTTP+SSE, to which some clients fall
    back. Reported once.
    """
    head, status = event.post.head or {}, event.post.status
    if status == 502 and isinstance(head.get("error"), str):
        yield Report(head["error"].removeprefix("mcpspy: "), head["error"])
    elif status == 405 or (status == 404 and event.post.introduces):
        yield Report(f"status {status} for a POST to {str(head.get('path'))[:80]}", "")


@modern.error(
    "HTTP305",
    "error with the wrong HTTP status",
    page=NOW + "protocol-version-header",
    valid=(
        FAIL % ("x/y", "", 404, -32601),
        FAIL % ("tools/call", '"name":"a"', 400, -32021),
        FAIL % ("tools/call", '"name":"a"', 200, -32603),
    ),
    invalid=(FAIL % ("x/y", "", 200, -32601), FAIL % ("tools/call", '"name":"a"', 200, -32022)),
)
def status(event: LintEvent) -> Iterator[Report]:
    """From 2026-07-28 on, the status must match the error: 404 for an unknown method (-32601), and 400 for mismatching
    headers, missing capabilities and unsupported revisions (-32020, -32021, -32022).
    """
    post = event.post
    is_complete = all(posted.has_capabilities for posted in post.posted)
    if -32602 in post.answers and not is_complete and post.status not in (400, 0):
        yield Report(f"status {post.status} for a request without required _meta, not 400", post.status)
    for code in post.answers:
        right = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}.get(code or 0)
        if right is not None and post.status not in (right, 0):
            yield Report(
                f"error {code} {error_name(code)} with status {post.status}, not {right}", post.status
            )


@modern.warning(
    "HTTP306",
    "GET or DELETE accepted in 2026-07-28",
    page="2026-07-28/changelog",
    valid=(
        CALL % "",
        '@ 2026-07-28 http\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}\n* http {"http":9,"stream":"1","method":"GET","status":405,"request":{},"response":{}}\n* http-end {"http":9,"stream":"1"}',
    ),
    invalid='@ 2026-07-28 http\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}\n* http {"http":9,"stream":"1","method":"GET","status":200,"request":{"mcp-protocol-version":"2026-07-28"},"response":{}}\n* http-end {"http":9,"stream":"1"}',
)
def get_response(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 has no GET stream and no session to DELETE: a server rejects both with 405."""
    post = event.post
    verb, revision = (post.head or {}).get("method"), post.request.get(VERSION)
    if (
        verb in ("GET", "DELETE")
        and 200 <= post.status < 300
        and isinstance(revision, str)
        and revision >= MODERN
    ):
        yield Report(f"status {post.status} for {verb}, not 405")


@response.error(
    "HTTP309",
    "message on the wrong stream",
    on=(EventKind.REQUEST, EventKind.NOTIFICATION, EventKind.RESULT, EventKind.FAILURE),
    by=SERVER,
    about=None,
    valid=(
        PING % '{} {"content-type":"text/event-stream"}',
        '@ http\n~ {"method":"notifications/tools/list_changed"}',
    ),
    invalid=PING % '{} {"content-type":"text/event-stream"}'
    + '\n< {"method":"notifications/tools/list_changed"}',
)
def wrong_stream(event: LintEvent) -> Iterable[Report]:
    """The stream of a POST ends with the response to its request. The stream of a GET contains requests and
    notifications; a response only if the client resumes the stream of a POST there, with `Last-Event-ID`.
    """
    number = event.what.frame.http  # type: ignore[union-attr]  # Of every message.
    post = event.state.posts.get(number) if number is not None else None
    if post is None or event.conversation.is_sse:
        return ()
    if isinstance(event.what, Result | Failure):
        is_misplaced = post.verb == "GET" and "last-event-id" not in post.request
        return [Report("response on the stream of a GET")] if is_misplaced else ()
    return [Report(f"{event.method} after the response on the stream of a POST")] if post.is_answered else ()


@response.error(
    "HTTP310",
    "event without its blank line",
    on=EventKind.MALFORMED,
    by=SERVER,
    about=None,
    page=SSE,
    valid=PING % '{} {"content-type":"text/event-stream"}',
    invalid='@ http\n> {"id":2,"method":"ping"}\n= 200 {} {"content-type":"text/event-stream"}\n'
    '<< {"jsonrpc":"2.0","id":2,"result":{}}\\x04',
)
def no_blank_line(event: LintEvent) -> Iterator[Report]:
    """A blank line ends an event. A client discards the event that the end of its stream leaves without one, so the
    message in it never arrives.
    """
    if event.message.frame.lacks == BLANK_LINE:
        yield Report("the stream ended before the blank line of its last event: clients discard that event")
