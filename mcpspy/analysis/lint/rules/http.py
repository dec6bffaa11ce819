"""Streamable HTTP: headers of requests and responses, and streams.

An exchange is checked when it ends. The messages in it are checked by the same rules as over stdio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.state import (
    ANSWERED,
    MESSAGE_TYPES,
    NO_MESSAGE,
    NOTIFIES,
    POSTED,
    REQUESTS,
    HttpPost,
)
from mcpspy.core.framing import BLANK_LINE
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.mcp_headers import ANNOTATION, NAMED, is_mismatch, is_sentinel, param_headers
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.spec import MODERN, SERVER, error_name

HTTP = "2025-11-25/basic/transports#"
SSE = "https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation"
NOW = "2026-07-28/basic/transports/streamable-http#"

VERSION, METHOD, NAME, SESSION = "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"

PING = '@ http\n> {"id":2,"method":"ping"}\n= 200 %s\n< {"id":2,"result":{}}'
CALL = '@ 2026-07-28 http\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'
_TOOL = '{"name":"a","description":"b","inputSchema":{"type":"object","properties":{"region":%s,"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}'
_LISTED = (
    '@ 2026-07-28 http\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[' + _TOOL + "]}}\n"
)
_REGION = '{"type":"string","x-mcp-header":"Region"}'
_CALL = (
    _LISTED % _REGION
    + '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":%s}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'
)
_FAIL = '@ 2026-07-28 http\n> {"id":2,"method":"%s","params":{%s}}\n= %d {} {}\n< {"id":2,"error":{"code":%d,"message":"no","data":{"requiredCapabilities":{"a":{}},"supported":[],"requested":"b"}}}'
HELLO = (
    '@ http bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '= 200 {} %s\n< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}}'
)

post = RuleGroup(RULES, on=EventKind.POST)
request = post.group(about=REQUESTS, page=HTTP + "protocol-version-header", since="2025-06-18")
response = post.group(page=HTTP + "sending-messages-to-the-server", since="2025-03-26")
modern = post.group(since=MODERN, about=(*POSTED, NO_MESSAGE), valid=CALL % "")
standard = modern.group(about=REQUESTS, page=NOW + "standard-request-headers")
parameters = modern.group(page=NOW + "custom-headers-from-tool-parameters")


@request.error(
    "HTTP101",
    "no MCP-Protocol-Version header",
    about=(REQUESTS, NOTIFIES),
    valid=(PING % "", '@ 2025-03-26 http\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid=(
        PING % '{"mcp-protocol-version":null}',
        CALL % '{"mcp-protocol-version":null}',
        CALL % "" + '\n> {"method":"notifications/x"}\n= 202 {"mcp-protocol-version":null}',
    ),
)
def version(event: LintEvent) -> Iterator[Report]:
    """After the handshake, the client sends the negotiated revision with every HTTP request. A server that receives no
    such header assumes 2025-03-26.
    """
    sent = event.post.request
    if VERSION not in sent:
        yield Report("no MCP-Protocol-Version header", sent)


@request.error(
    "HTTP102",
    "MCP-Protocol-Version differs from the negotiated revision",
    valid=(PING % "", CALL % ""),
    invalid=(PING % '{"mcp-protocol-version":"2025-06-18"}', CALL % '{"mcp-protocol-version":"2025-11-25"}'),
)
def other_version(event: LintEvent) -> Iterator[Report]:
    """The header must match the negotiated revision, and from 2026-07-28 on the revision in `_meta` of the same
    request. A server must reject any other value.
    """
    post = event.post
    given, stated = post.request.get(VERSION), post.revision or event.conversation.revision
    if given is not None and stated is not None and given != stated and _is_checked(post):
        yield Report(f"MCP-Protocol-Version is {str(given)[:40]}; the revision is {stated}", post.request)


@standard.error(
    "HTTP103",
    "Mcp-Method is missing or differs from the body",
    invalid=(CALL % '{"mcp-method":null}', CALL % '{"mcp-method":"tools/list"}'),
)
def method(event: LintEvent) -> Iterator[Report]:
    """Gateways route by this header, so it must equal `method` in the body. A server must reject a request in which
    they differ (-32020).
    """
    post = event.post
    given, stated = post.request.get(METHOD), post.posted[0].method
    if given != stated and _is_checked(post):
        why = (
            "no Mcp-Method header"
            if given is None
            else f"Mcp-Method is {str(given)[:60]}, the method is {stated}"
        )
        yield Report(why, post.request)


@standard.error(
    "HTTP104",
    "Mcp-Name is missing or differs from the body",
    valid=(CALL % "", (CALL % '{"mcp-name":"=?base64?w7w=?="}').replace('"name":"a"', '"name":"\u00fc"')),
    invalid=(
        CALL % '{"mcp-name":null}',
        CALL % '{"mcp-name":"b"}',
        (CALL % '{"mcp-name":"\u00fc"}').replace('"name":"a"', '"name":"\u00fc"'),
    ),
)
def name(event: LintEvent) -> Iterator[Report]:
    """The header repeats `name` for tools/call and prompts/get, `uri` for resources/read, and `taskId` for requests about a
    task, in Base64 (`=?base64?…?=`) if the value is not plain ASCII or looks like Base64.
    """
    post = event.post
    first = post.posted[0]
    if first.method not in NAMED or not _is_checked(post):
        return
    given = post.request.get(NAME)
    if given is None:
        yield Report("no Mcp-Name header", post.request)
    elif not _is_plain(str(given)):
        yield Report(f"Mcp-Name is neither plain ASCII nor encoded: {str(given)[:60]}", given)
    elif first.subject is not None and is_sentinel(first.subject) and given == first.subject:
        yield Report(f"Mcp-Name is not encoded, although it looks like that: {str(given)[:60]}", given)
    elif _decoded(str(given)) != first.subject:
        yield Report(f"Mcp-Name is {str(given)[:60]}, the request is for {first.subject}", post.request)


def _is_checked(post: HttpPost) -> bool:
    """Return whether the headers of a POST must match its body: not if it was refused for another reason."""
    return post.status < 400 or -32020 in post.answers


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()


def _decoded(value: str) -> str:
    if not (value.lower().startswith("=?base64?") and value.endswith("?=")):
        return value
    from binascii import a2b_base64

    try:
        return a2b_base64(value[9:-2]).decode("utf-8", "replace")
    except ValueError:
        return value


@post.error(
    "HTTP304",
    "Accept header without both types",
    page=HTTP + "sending-messages-to-the-server",
    about=(*POSTED, NO_MESSAGE),
    since="2025-03-26",
    valid=(PING % "", PING % '{"accept":"*/*"}'),
    invalid=(PING % '{"accept":"application/json"}', PING % '{"accept":null}'),
)
def accept(event: LintEvent) -> Iterator[Report]:
    """The client must accept both `application/json` and `text/event-stream`, because the server chooses the type of
    the response; in a GET `text/event-stream`.
    """
    post = event.post
    sent = post.request
    given = str(sent.get("accept", "")).lower()
    if event.method == NO_MESSAGE:
        if post.verb == "GET" and post.content_type == MESSAGE_TYPES[1] not in given and "*/*" not in given:
            yield Report(
                f"Accept of a GET is {given[:80] or 'missing'}: it must list text/event-stream", sent
            )
    elif "*/*" not in given and not all(kind in given for kind in MESSAGE_TYPES):
        yield Report(f"Accept is {given[:80] or 'missing'}: it must list both types", sent)


@post.error(
    "HTTP501",
    "request from a foreign Origin accepted",
    page=HTTP + "security-warning",
    valid=(
        PING % '{"origin":"http://localhost:6274"}',
        PING % '{"origin":"http://127.0.0.1:3001"}',
        (PING % '{"origin":"https://evil.example"}')
        .replace("= 200", "= 403")
        .replace('\n< {"id":2,"result":{}}', ""),
    ),
    invalid=PING % '{"origin":"https://evil.example"}',
)
def origin(event: LintEvent) -> Iterator[Report]:
    """A browser sent this request for a page of another site, and the server responded. Servers must check `Origin` and
    reject unknown origins with 403: with DNS rebinding, any page can reach a server on loopback.
    """
    post = event.post
    given = post.request.get("origin")
    if (
        isinstance(given, str)
        and 200 <= post.status < 400
        and _host(given) not in (*LOOPBACK, _host(event.state.upstream or ""))
    ):
        yield Report(f"request with Origin {given[:80]} was accepted", post.request)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@parameters.error(
    "HTTP105",
    "invalid x-mcp-header",
    on=EventKind.RESULT,
    about="tools/list",
    valid=(_LISTED % _REGION, (_LISTED % '{"type":"object","x-mcp-header":"R"}').replace(" http", "", 1)),
    invalid=(
        _LISTED % '{"type":"string","x-mcp-header":"two words"}',
        _LISTED % '{"type":"string","x-mcp-header":""}',
        _LISTED % '{"type":"number","x-mcp-header":"R"}',
        _LISTED % '{"type":"string","x-mcp-header":"n"}',
        _LISTED % '{"type":"array","items":{"type":"string","x-mcp-header":"R"}}',
    ),
)
def annotation(event: LintEvent) -> Iterator[Report]:
    """The value is a header name, unique regardless of case, on a string, integer or boolean that is reached through
    `properties` alone. Over HTTP, clients drop the whole tool otherwise; on stdio it has no effect.
    """
    if event.message.frame.http is None or ANNOTATION.encode() not in event.data:
        return
    for tool in event.listed("tools"):
        for why in param_headers(tool.get("inputSchema")).wrong:
            yield Report(f"x-mcp-header of {str(tool.get('name'))[:60]}: {why}", tool.get("inputSchema"))


@parameters.error(
    "HTTP106",
    "Mcp-Param header is missing or differs from the body",
    valid=(
        _CALL % ('{"region":"eu"}', '{"mcp-param-region":"eu"}'),
        _CALL
        % (
            '{"region":"Zürich","deep":{"n":42}}',
            '{"mcp-param-region":"=?base64?WsO8cmljaA==?=","mcp-param-n":"42.0"}',
        ),
        _CALL % ("{}", ""),
        (_CALL % ('{"region":"eu"}', ""))
        .replace("= 200", "= 400")
        .replace('"result":{"content":[]}', '"error":{"code":-32602,"message":"no"}'),
        _CALL % ('{"region":"=?base64?eA?="}', '{"mcp-param-region":"=?base64?PT9iYXNlNjQ/ZUE/PQ==?="}'),
    ),
    invalid=(
        (_CALL % ('{"region":"eu"}', ""))
        .replace("= 200", "= 400")
        .replace('"result":{"content":[]}', '"error":{"code":-32020,"message":"no"}'),
        _CALL % ('{"region":"=?base64?eA?="}', '{"mcp-param-region":"=?base64?eA?="}'),
        _CALL % ("{}", '{"mcp-param-region":"null"}'),
        _CALL % ('{"region":"eu"}', ""),
        _CALL % ('{"region":"eu"}', '{"mcp-param-region":"us"}'),
        _CALL % ('{"deep":{"n":1}}', ""),
    ),
)
def parameter(event: LintEvent) -> Iterator[Report]:
    """With `x-mcp-header`, a tool selects arguments that gateways can see. A client must send each one that is present
    and not null; a server must reject a call if its header is missing or differs (-32020).
    """
    post = event.post
    if not post.status or not _is_checked(post):
        return
    called = post.posted[0].subject if post.posted and post.posted[0].method == "tools/call" else None
    if (tool := event.state.tools.get(called or "")) is not None and tool.param_headers.wrong:
        yield Report(f"call of {called}, which clients must drop for its invalid x-mcp-header", "")
    for name, value in (post.param_headers or {}).items():
        given = post.request.get(name.lower())
        if value is None:
            if given is not None:
                yield Report(f"{name} is {str(given)[:60]}, but the call has no such argument", post.request)
        elif given is None:
            yield Report(f"no {name} header", post.request)
        elif is_sentinel(value) and given == value:
            yield Report(f"{name} is not encoded, although it looks like that: {str(given)[:60]}", given)
        elif not _is_plain(str(given)):
            yield Report(f"{name} is neither plain ASCII nor encoded: {str(given)[:60]}", given)
        elif is_mismatch(str(given), value):
            yield Report(f"{name} is {str(given)[:60]}, the argument is {value[:60]}", post.request)


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
    valid=(PING % "", _FAIL % ("x/y", "", 404, -32601)),
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
        _FAIL % ("x/y", "", 404, -32601),
        _FAIL % ("tools/call", '"name":"a"', 400, -32021),
        _FAIL % ("tools/call", '"name":"a"', 200, -32603),
    ),
    invalid=(_FAIL % ("x/y", "", 200, -32601), _FAIL % ("tools/call", '"name":"a"', 200, -32022)),
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
