"""Streamable HTTP: headers of requests, responses, and session ids.

Each exchange is checked when it has ended. What travels in it has the same rules as over stdio.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, LintRule, Report, RuleGroup
from mcpspy.analysis.lint.state import NO_MESSAGE, NOTIFIES, POSTED, REQUESTS, UNREADABLE
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.mcp_headers import ANNOTATION, is_mismatch, param_headers
from mcpspy.core.protocol.spec import MODERN

RULES: list[LintRule] = []

HTTP = "2025-11-25/basic/transports#"
NOW = "2026-07-28/basic/transports/streamable-http#"

VERSION, METHOD, NAME, SESSION = "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id"

BOTH = ("application/json", "text/event-stream")
_NAMED = ("tools/call", "prompts/get", "resources/read")
_VISIBLE = re.compile(r"[\x21-\x7e]+")

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
_FAIL = '@ 2026-07-28 http\n> {"id":2,"method":"%s","params":{%s}}\n= %d {} {}\n< {"id":2,"error":{"code":%d,"message":"no"}}'
_HELLO = (
    '@ http bare\n> {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
    '= 200 {} %s\n< {"id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"b","version":"1"}}}'
)

post = RuleGroup(RULES, on=EventKind.POST)
request = post.group(about=REQUESTS, page=HTTP + "protocol-version-header", since="2025-06-18")
response = post.group(page=HTTP + "sending-messages-to-the-server", since="2025-03-26")
session = post.group(page=HTTP + "session-management", until=LEGACY)
modern = post.group(since=MODERN, valid=CALL % "")
standard = modern.group(about=REQUESTS, page=NOW + "standard-request-headers")
parameters = modern.group(page=NOW + "custom-headers-from-tool-parameters")


@request.error(
    "HTTP101",
    "no MCP-Protocol-Version",
    valid=(PING % "", '@ 2025-03-26 http\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid=(PING % '{"mcp-protocol-version":null}', CALL % '{"mcp-protocol-version":null}'),
)
def version(event: LintEvent) -> Iterator[Report]:
    """After the handshake a client says with every request which revision was agreed on. A server that does not see
    it takes 2025-03-26 for granted.
    """
    sent = event.post.request
    if VERSION not in sent:
        yield Report("no MCP-Protocol-Version header", sent)


@request.error(
    "HTTP102",
    "an MCP-Protocol-Version that is not what was agreed",
    valid=(PING % "", CALL % ""),
    invalid=(PING % '{"mcp-protocol-version":"2025-06-18"}', CALL % '{"mcp-protocol-version":"2025-11-25"}'),
)
def other_version(event: LintEvent) -> Iterator[Report]:
    """The header says what the handshake agreed on, and from 2026-07-28 on what `_meta` of the same request says:
    a server must refuse another one.
    """
    post = event.post
    given, stated = post.request.get(VERSION), post.revision or event.conversation.revision
    if given is not None and stated is not None and given != stated and post.status < 400:
        yield Report(f"MCP-Protocol-Version is {str(given)[:40]}; the revision is {stated}", post.request)


@standard.error(
    "HTTP103",
    "no Mcp-Method, or another than the body's",
    invalid=(CALL % '{"mcp-method":null}', CALL % '{"mcp-method":"tools/list"}'),
)
def method(event: LintEvent) -> Iterator[Report]:
    """What the header says is what a gateway goes by: it must be the `method` of the body, and a server must refuse
    a request where it is not (-32020).
    """
    post = event.post
    given, stated = post.request.get(METHOD), post.posted[0].method
    if given != stated and post.status < 400:
        why = (
            "no Mcp-Method header"
            if given is None
            else f"Mcp-Method is {str(given)[:60]}, the method {stated}"
        )
        yield Report(why, post.request)


@standard.error(
    "HTTP104",
    "no Mcp-Name, or another than the body's",
    valid=(CALL % "", (CALL % '{"mcp-name":"=?base64?w7w=?="}').replace('"name":"a"', '"name":"\u00fc"')),
    invalid=(CALL % '{"mcp-name":null}', CALL % '{"mcp-name":"b"}'),
)
def name(event: LintEvent) -> Iterator[Report]:
    """Of tools/call and prompts/get the `name`, of resources/read the `uri`; in Base64 (`=?base64?…?=`) where it is
    not plain ASCII.
    """
    post = event.post
    first = post.posted[0]
    if first.method not in _NAMED or post.status >= 400:
        return
    given = post.request.get(NAME)
    if given is None:
        yield Report("no Mcp-Name header", post.request)
    elif _decoded(str(given)) != first.subject:
        yield Report(f"Mcp-Name is {str(given)[:60]}, the request is about {first.subject}", post.request)


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
    "an Accept without both types",
    page=HTTP + "sending-messages-to-the-server",
    about=POSTED,
    since="2025-03-26",
    valid=(PING % "", PING % '{"accept":"*/*"}'),
    invalid=(PING % '{"accept":"application/json"}', PING % '{"accept":null}'),
)
def accept(event: LintEvent) -> Iterator[Report]:
    """The client takes both, `application/json` and `text/event-stream`, and says so: which one comes is the
    server's choice.
    """
    sent = event.post.request
    given = str(sent.get("accept", "")).lower()
    if "*/*" not in given and not all(kind in given for kind in BOTH):
        yield Report(f"Accept is {given[:80] or 'missing'}: it lists both types", sent)


@post.error(
    "HTTP501",
    "a foreign Origin that was let in",
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
    """A page of somebody else's made a browser send this, and the server answered. It must look at `Origin` and
    refuse what it does not know with 403: DNS rebinding gives any page a way to a server on loopback.
    """
    post = event.post
    given = post.request.get("origin")
    if (
        isinstance(given, str)
        and 200 <= post.status < 400
        and _host(given) not in (*LOOPBACK, _host(event.state.upstream or ""))
    ):
        yield Report(f"the Origin {given[:80]} was let in", post.request)


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


@parameters.error(
    "HTTP105",
    "an x-mcp-header that cannot be one",
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
    """It names a header, once whatever the case, on a string, an integer or a boolean that is reached through
    `properties` alone. Clients drop the whole tool otherwise, over HTTP; on stdio it means nothing.
    """
    if event.message.frame.http is None or ANNOTATION.encode() not in event.data:
        return
    for tool in event.listed("tools"):
        for why in param_headers(tool.get("inputSchema")).wrong:
            yield Report(f"x-mcp-header of {str(tool.get('name'))[:60]}: {why}", tool.get("inputSchema"))


@parameters.error(
    "HTTP106",
    "no Mcp-Param header, or another than the body's",
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
        .replace('"result":{"content":[]}', '"error":{"code":-32020,"message":"no"}'),
    ),
    invalid=(
        _CALL % ('{"region":"eu"}', ""),
        _CALL % ('{"region":"eu"}', '{"mcp-param-region":"us"}'),
        _CALL % ('{"deep":{"n":1}}', ""),
    ),
)
def parameter(event: LintEvent) -> Iterator[Report]:
    """The tool says which arguments a gateway wants to see (`x-mcp-header`); a client sends each that is there and not
    null, and a server must refuse a call where the header is missing or says something else (-32020).
    """
    post = event.post
    if not post.param_headers or not isinstance((post.head or {}).get("status"), int) or post.status >= 400:
        return
    for name, value in post.param_headers.items():
        given = post.request.get(name.lower())
        if given is None:
            yield Report(f"no {name} header", post.request)
        elif is_mismatch(str(given), value):
            yield Report(f"{name} is {str(given)[:60]}, the argument {value[:60]}", post.request)


@response.error(
    "HTTP301",
    "a notification or a response that is not answered by 202",
    about=NOTIFIES,
    valid='@ http\n> {"method":"notifications/x"}\n= 202',
    invalid=(
        '@ http\n> {"method":"notifications/x"}\n= 200',
        '@ http\n> {"method":"notifications/x"}\n= 200 {} {"content-type":"text/event-stream"}',
    ),
)
def not_202(event: LintEvent) -> Iterator[Report]:
    """What wants no answer gets `202 Accepted`, and no body: no 200, no stream."""
    post = event.post
    if post.status not in (0, 202) and post.status < 400:
        kind = min(stated.kind for stated in post.posted)
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
def body_of_202(event: LintEvent) -> Iterator[Report]:
    """202 has no body. A request gets its answer with 200."""
    post = event.post
    if post.status == 202 and (post.received or post.response.get("content-length") not in (None, "0")):
        yield Report("202 with a body", post.response)


@response.error(
    "HTTP303",
    "an answer of another type than JSON or an event stream",
    about=REQUESTS,
    valid=(PING % "", PING % '{} {"content-type":"application/json; charset=utf-8"}'),
    invalid=PING % '{} {"content-type":"text/html"}',
)
def content_type(event: LintEvent) -> Iterator[Report]:
    """A request is answered by `application/json` or `text/event-stream`. A proxy's login page, often."""
    post = event.post
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
    post = event.post
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
def get_response(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 has neither the stream of a GET nor a session to DELETE: a server answers both with 405."""
    post = event.post
    verb, revision = (post.head or {}).get("method"), post.request.get(VERSION)
    if (
        verb in ("GET", "DELETE")
        and 200 <= post.status < 300
        and isinstance(revision, str)
        and revision >= MODERN
    ):
        yield Report(f"{verb} was answered by {post.status}, not by 405")


@post.error(
    "HTTP401",
    "the id of an event, for another event",
    page=HTTP + "resumability-and-redelivery",
    on=EventKind.NOTE,
    about="event",
    valid=PING % "",
    invalid='* event {"id":"7"}',
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
def late_session_id(event: LintEvent) -> Iterator[Report]:
    """A server gives a session its id with the answer to `initialize`, and never again."""
    post = event.post
    given = post.response.get(SESSION)
    if given is not None and post.status < 400 and not post.introduces and given != post.request.get(SESSION):
        yield Report(f"a session id that no answer to initialize gave: {str(given)[:60]}", post.response)


@session.error(
    "HTTP202",
    "no session id",
    about=(REQUESTS, NOTIFIES, UNREADABLE),
    valid=(PING % "", (PING % '{"mcp-session-id":null}').replace("@ http", "@ http bare")),
    invalid=PING % '{"mcp-session-id":null}',
)
def no_session_id(event: LintEvent) -> Iterator[Report]:
    """The server gave the session an id with the answer to `initialize`: the client sends it with every request
    from then on, or is a stranger.
    """
    post = event.post
    if event.state.session_ids and SESSION not in post.request and not post.introduces:
        yield Report("no Mcp-Session-Id header, though the server gave one", post.request)


@session.error(
    "HTTP203",
    "a session id with characters that it may not have",
    valid=_HELLO % '{"mcp-session-id":"1868a90c-9f4e"}',
    invalid=(_HELLO % '{"mcp-session-id":"a b"}', _HELLO % '{"mcp-session-id":""}'),
)
def session_id_characters(event: LintEvent) -> Iterator[Report]:
    """Visible ASCII alone, 0x21 to 0x7E; and it should be a thing that nobody guesses."""
    post = event.post
    given = post.response.get(SESSION)
    if isinstance(given, str) and post.introduces and not _VISIBLE.fullmatch(given):
        yield Report(f"the session id {given[:60]!r} is not visible ASCII", given)


@modern.warning(
    "HTTP204",
    "a session id, where there are no sessions",
    page=NOW + "sending-messages",
    once=True,
    invalid=CALL % '{} {"mcp-session-id":"s-1"}',
)
def session_id_without_sessions(event: LintEvent) -> Iterator[Report]:
    """2026-07-28 took sessions out: every request stands for itself, and a server gives no ids."""
    post = event.post
    if SESSION in post.response and post.status < 400:
        yield Report("an Mcp-Session-Id from the server", post.response)
