"""Calls of tools, held against what the server listed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ERROR, INFO, LEGACY, WARNING, Report, RuleFamily
from mcpspy.analysis.lint.rules.tools import LIST
from mcpspy.core.protocol.message import Result

RULES = RuleFamily()
rule = RULES.rule

TOOLS = "2025-11-25/server/tools"

_LISTED = LIST % (
    '{"name":"a","description":"b","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},'
    '"outputSchema":{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"]}}'
)
_CALL = '\n> {"id":3,"method":"tools/call","params":{"name":"a","arguments":{"n":1}}}\n< {"id":3,"result":%s}'
_TEXT = '"content":[{"type":"text","text":"{\\"sum\\":1}"}]'
_GOOD = _LISTED + _CALL % (f'{{{_TEXT},"structuredContent":{{"sum":1}}}}')


@rule(
    "DATA301",
    WARNING,
    "arguments that break the tool's inputSchema",
    page=TOOLS + "#calling-tools",
    on=EventKind.REQUEST,
    about="tools/call",
    valid=(_GOOD,),
    invalid=(
        _GOOD.replace('"n":1', '"n":"1"'),
        _GOOD.replace('"n":1', ""),
        _GOOD.replace(',"arguments":{"n":1}', ""),
    ),
)
def arguments(seen: LintEvent) -> Iterable[Report]:
    """The client sent what the server said it does not take. A model makes such mistakes, and the server should tell
    it (`isError`); a host that fills arguments in should not.
    """
    tool, given = seen.tool, seen.params.get("arguments", {})
    breaches = tool.arguments.breaches(given) if tool is not None else ()
    return [Report(f"arguments of {seen.subject}: {breach}", given) for breach in breaches]


@rule(
    "DATA302",
    ERROR,
    "structuredContent that breaks the tool's outputSchema",
    page=TOOLS + "#output-schema",
    on=EventKind.RESULT,
    about="tools/call",
    since="2025-06-18",
    beyond_text=True,
    valid=(_GOOD,),
    invalid=(
        _GOOD.replace('"structuredContent":{"sum":1}', '"structuredContent":{"sum":"one"}'),
        _GOOD.replace('"structuredContent":{"sum":1}', '"structuredContent":{}'),
    ),
)
def output(seen: LintEvent) -> Iterator[Report]:
    """A server that declares an `outputSchema` must return what conforms to it. The SDK clients raise an error and
    the model sees nothing.
    """
    tool = seen.tool
    if tool is not None and tool.output is not None and "structuredContent" in seen.result:
        given = seen.result["structuredContent"]
        for breach in tool.output.breaches(given):
            yield Report(f"structuredContent of {seen.subject}: {breach}", given)


@rule(
    "DATA303",
    ERROR,
    "an outputSchema, and no structuredContent",
    page=TOOLS + "#output-schema",
    on=EventKind.RESULT,
    about="tools/call",
    since="2025-06-18",
    valid=(_GOOD, _LISTED + _CALL % (f'{{{_TEXT},"isError":true}}')),
    invalid=(_LISTED + _CALL % (f"{{{_TEXT}}}"),),
)
def unstructured(seen: LintEvent) -> Iterable[Report]:
    """A tool with an `outputSchema` must answer with `structuredContent`, unless it failed (`isError`)."""
    tool = seen.tool
    if tool is None or tool.output is None or "structuredContent" in seen.result or not _is_plain(seen):
        return ()
    if seen.result.get("isError") is True:
        return ()
    return [Report(f"{seen.subject} has an outputSchema, but its result no structuredContent")]


@rule(
    "DATA304",
    ERROR,
    "structuredContent that is no object",
    page=TOOLS + "#structured-content",
    on=EventKind.RESULT,
    about="tools/call",
    since="2025-06-18",
    until=LEGACY,
    beyond_text=True,
    valid=(_GOOD,),
    invalid=(
        '> {"id":3,"method":"tools/call","params":{"name":"c"}}\n< {"id":3,"result":{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}}',
    ),
)
def structured(seen: LintEvent) -> Iterator[Report]:
    """Until 2025-11-25 it is an object; from 2026-07-28 on any JSON value will do."""
    if "structuredContent" in seen.result and not isinstance(seen.result["structuredContent"], dict):
        yield Report("structuredContent is no object", seen.result["structuredContent"])


@rule(
    "DATA305",
    INFO,
    "structuredContent without a text that says the same",
    page=TOOLS + "#structured-content",
    on=EventKind.RESULT,
    about="tools/call",
    since="2025-06-18",
    beyond_text=True,
    valid=(_GOOD,),
    invalid=(
        '> {"id":3,"method":"tools/call","params":{"name":"c"}}\n< {"id":3,"result":{"content":[],"structuredContent":{"sum":1}}}',
    ),
)
def twin(seen: LintEvent) -> Iterator[Report]:
    """Hosts of older revisions, and some of today's, show a model the text alone."""
    if "structuredContent" in seen.result and not seen.result.get("content"):
        yield Report("structuredContent without content: some hosts show the model nothing")


@rule(
    "DATA306",
    ERROR,
    "isError that is not true or false",
    page="2025-11-25/schema#calltoolresult",
    on=EventKind.RESULT,
    about="tools/call",
    beyond_text=True,
    valid=(_GOOD,),
    invalid=(
        '> {"id":3,"method":"tools/call","params":{"name":"c"}}\n< {"id":3,"result":{"content":[],"isError":"yes"}}',
    ),
)
def is_error(seen: LintEvent) -> Iterator[Report]:
    """`"false"` is true to some languages, and false to none."""
    if "isError" in seen.result and not isinstance(seen.result["isError"], bool):
        yield Report("isError is neither true nor false", seen.result["isError"])


@rule(
    "DATA307",
    WARNING,
    "a call of a tool that is not listed",
    page=TOOLS + "#calling-tools",
    on=EventKind.REQUEST,
    about="tools/call",
    valid=(_GOOD,),
    invalid=(
        _LISTED
        + '\n> {"id":3,"method":"tools/call","params":{"name":"A"}}\n< {"id":3,"result":{"content":[]}}',
    ),
)
def unlisted(seen: LintEvent) -> Iterable[Report]:
    """The server listed its tools, all pages, and this is none of them. A model's invention, a typing error (names
    are case-sensitive), or a list that has changed meanwhile.
    """
    name = seen.subject
    if name is None or name in seen.known.tools or not seen.known.is_listed:
        return ()
    return [Report(f"the tool {name[:60]} is not among those that were listed")]


def _is_plain(seen: LintEvent) -> bool:
    """Whether it is a whole result: no task, no question."""
    return isinstance(seen.what, Result) and not seen.what.is_task and seen.what.result_type == "complete"
