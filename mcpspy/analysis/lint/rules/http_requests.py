"""Streamable HTTP: what the headers of a request say.

Owns what clients send, and what these examples share; each exchange is looked
at when it is over. What travels in them has the same rules as over stdio.

Arguments that a tool wants in headers, too: `x-mcp-header` and `Mcp-Param-*` (2026-07-28).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from urllib.parse import urlsplit

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LintRule, Report, RuleGroup
from mcpspy.analysis.lint.state import ASKS, POSTED, HttpPost
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.protocol.mcp_headers import ANNOTATION, differs, mirrored
from mcpspy.core.protocol.spec import MODERN

RULES: list[LintRule] = []

HTTP = "2025-11-25/basic/transports#"
NOW = "2026-07-28/basic/transports/streamable-http#"

VERSION, METHOD, NAME = "mcp-protocol-version", "mcp-method", "mcp-name"

BOTH = ("application/json", "text/event-stream")
_NAMED = ("tools/call", "prompts/get", "resources/read")

PING = '@ http\n> {"id":2,"method":"ping"}\n= 200 %s\n< {"id":2,"result":{}}'
CALL = '@ 2026-07-28 http\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'


def posted(event: LintEvent) -> HttpPost:
    """Return the exchange."""
    return cast(HttpPost, event.post)


PAGE = "2026-07-28/basic/transports/streamable-http#custom-headers-from-tool-parameters"
_TOOL = '{"name":"a","description":"b","inputSchema":{"type":"object","properties":{"region":%s,"deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}}'
_LISTED = (
    '@ 2026-07-28 http\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[' + _TOOL + "]}}\n"
)
_REGION = '{"type":"string","x-mcp-header":"Region"}'
_CALL = (
    _LISTED % _REGION
    + '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":%s}}\n= 200 %s\n< {"id":2,"result":{"content":[]}}'
)

request = RuleGroup(
    RULES, on=EventKind.POST, about=ASKS, page=HTTP + "protocol-version-header", since="2025-06-18"
)
modern = RuleGroup(
    RULES, on=EventKind.POST, about=ASKS, page=NOW + "standard-request-headers", since=MODERN, valid=CALL % ""
)
parameters = RuleGroup(RULES, page=PAGE, on=EventKind.POST, since=MODERN)
rule = RuleGroup(RULES, on=EventKind.POST)


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
    sent = posted(event).request
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
    post = posted(event)
    given, said = post.request.get(VERSION), post.revision or event.conversation.revision
    if given is not None and said is not None and given != said and post.status < 400:
        yield Report(f"MCP-Protocol-Version is {str(given)[:40]}; the revision is {said}", post.request)


@modern.error(
    "HTTP103",
    "no Mcp-Method, or another than the body's",
    invalid=(CALL % '{"mcp-method":null}', CALL % '{"mcp-method":"tools/list"}'),
)
def method(event: LintEvent) -> Iterator[Report]:
    """What the header says is what a gateway goes by: it must be the `method` of the body, and a server must refuse
    a request where it is not (-32020).
    """
    post = posted(event)
    given, said = post.request.get(METHOD), post.posted[0].method
    if given != said and post.status < 400:
        why = (
            "no Mcp-Method header" if given is None else f"Mcp-Method is {str(given)[:60]}, the method {said}"
        )
        yield Report(why, post.request)


@modern.error(
    "HTTP104",
    "no Mcp-Name, or another than the body's",
    valid=(CALL % "", (CALL % '{"mcp-name":"=?base64?w7w=?="}').replace('"name":"a"', '"name":"\u00fc"')),
    invalid=(CALL % '{"mcp-name":null}', CALL % '{"mcp-name":"b"}'),
)
def name(event: LintEvent) -> Iterator[Report]:
    """Of tools/call and prompts/get the `name`, of resources/read the `uri`; in Base64 (`=?base64?…?=`) where it is
    not plain ASCII.
    """
    post = posted(event)
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


@rule.error(
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
    sent = posted(event).request
    given = str(sent.get("accept", "")).lower()
    if "*/*" not in given and not all(kind in given for kind in BOTH):
        yield Report(f"Accept is {given[:80] or 'missing'}: it lists both types", sent)


@rule.error(
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
    post = posted(event)
    given = post.request.get("origin")
    if (
        isinstance(given, str)
        and 200 <= post.status < 400
        and _host(given) not in (*LOOPBACK, _host(event.known.upstream or ""))
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
    tools = event.result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            for why in mirrored(tool.get("inputSchema")).wrong:
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
    post = posted(event)
    if not post.mirrored or not isinstance((post.head or {}).get("status"), int) or post.status >= 400:
        return
    for name, value in post.mirrored.items():
        given = post.request.get(name.lower())
        if given is None:
            yield Report(f"no {name} header", post.request)
        elif differs(str(given), value):
            yield Report(f"{name} is {str(given)[:60]}, the argument {value[:60]}", post.request)
