"""Arguments that a tool wants in headers, too: `x-mcp-header` and `Mcp-Param-*` (2026-07-28)."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, Rules, Told
from mcpspy.analysis.lint.rules.headers import posted
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.mcp_headers import ANNOTATION, differs, mirrored
from mcpspy.core.protocol.spec import MODERN

RULES = Rules()
rule = RULES.rule

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


@rule(
    "HTTP105",
    ERROR,
    "an x-mcp-header that cannot be one",
    page=PAGE,
    on=Kind.RESULT,
    about="tools/list",
    since=MODERN,
    valid=(
        _LISTED % _REGION,
        (_LISTED % '{"type":"object","x-mcp-header":"R"}').replace(" http", "", 1),
    ),
    invalid=(
        _LISTED % '{"type":"string","x-mcp-header":"two words"}',
        _LISTED % '{"type":"string","x-mcp-header":""}',
        _LISTED % '{"type":"number","x-mcp-header":"R"}',
        _LISTED % '{"type":"string","x-mcp-header":"n"}',
        _LISTED % '{"type":"array","items":{"type":"string","x-mcp-header":"R"}}',
    ),
)
def annotation(seen: Seen) -> Iterator[Told]:
    """It names a header, once whatever the case, on a string, an integer or a boolean that is reached through
    `properties` alone. Clients drop the whole tool otherwise, over HTTP; on stdio it means nothing.
    """
    if seen.message.frame.http is None or ANNOTATION.encode() not in seen.data:
        return
    tools = seen.result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            for why in mirrored(tool.get("inputSchema")).wrong:
                yield Told(f"x-mcp-header of {str(tool.get('name'))[:60]}: {why}", tool.get("inputSchema"))


@rule(
    "HTTP106",
    ERROR,
    "no Mcp-Param header, or another than the body's",
    page=PAGE,
    on=Kind.POST,
    since=MODERN,
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
def parameter(seen: Seen) -> Iterator[Told]:
    """The tool says which arguments a gateway wants to see (`x-mcp-header`); a client sends each that is there and not
    null, and a server must refuse a call where the header is missing or says something else (-32020).
    """
    post = posted(seen)
    if not post.mirrored or not isinstance((post.head or {}).get("status"), int) or post.status >= 400:
        return
    for name, value in post.mirrored.items():
        given = post.request.get(name.lower())
        if given is None:
            yield Told(f"no {name} header", post.request)
        elif differs(str(given), value):
            yield Told(f"{name} is {str(given)[:60]}, the argument {value[:60]}", post.request)
