"""Headers of requests over Streamable HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import Report
from mcpspy.analysis.lint.rules.http import CALL, HTTP, NOW, PING, VERSION, modern, post
from mcpspy.analysis.lint.state import MESSAGE_TYPES, NO_MESSAGE, NOTIFIES, POSTED, REQUESTS, HttpPost
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.mcp_headers import ANNOTATION, NAMED, is_mismatch, is_sentinel, param_headers

METHOD, NAME = "mcp-method", "mcp-name"

_TOOL = '{"name":"a","description":"b","inputSchema":{"type":"object","properties":{"region":%s,"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}'
_LISTED = (
    '@ 2026-07-28 http\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[' + _TOOL + "]}}\n"
)
_REGION = '{"type":"string","x-mcp-header":"Region"}'
_CALL = (
    _LISTED % _REGION
    + '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":%s}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'
)

request = post.group(about=REQUESTS, page=HTTP + "protocol-version-header", since="2025-06-18")
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
