"""Required members of params, results and listed items, in all revisions; and error codes."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import CALLED, LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.methods import has_capability
from mcpspy.analysis.lint.rules.tasks import task_support
from mcpspy.core.protocol.spec import ERRORS, METHODS, MODERN, SERVER, is_known

_CALL_FAILS = (
    '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"error":{"code":%d,"message":"no"}}'
)
_READ_FAILS = '> {"id":2,"method":"resources/read","params":{"uri":"a:b"}}\n< {"id":2,"error":{"code":%d,"message":"no"}}'
_MODERN = "@ 2026-07-28\n"
_ANSWERED = '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":%s}'


schema = RuleGroup(RULES, page="2025-11-25/schema", on=EventKind.RESULT)

failure = RuleGroup(RULES, page="2025-11-25/server/tools#error-handling", on=EventKind.FAILURE)


schema.shape_error(
    "DATA101",
    "params without a required member, or with a wrong type or value",
    """Each method defines the required and optional members of its params, their types and values. Omit an optional
    member that has no value; `null` is a value.
    """,
    on=CALLED,
    beyond_plain=True,
    valid=(
        '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}',
        '> {"id":2,"method":"tools/list","params":{}}\n< {"id":2,"result":{"tools":[]}}',
    ),
    invalid=(
        '> {"id":2,"method":"tools/call","params":{}}\n< {"id":2,"error":{"code":-32602,"message":"no"}}',
        '> {"id":2,"method":"tools/call","params":{"name":"a","arguments":[1]}}\n< {"id":2,"result":{"content":[]}}',
        '> {"id":2,"method":"tools/list","params":{"cursor":null}}\n< {"id":2,"result":{"tools":[]}}',
    ),
)

schema.shape_error(
    "DATA102",
    "result without a required member, or with a wrong type or value",
    """Each method defines the required members of its result. A tool result always requires `content`, if only an empty
    list, even with `structuredContent`.
    """,
    beyond_plain=True,
    valid=(
        _ANSWERED % '{"tools":[]}',
        '> {"id":2,"method":"tools/call","params":{"name":"a","task":{}}}\n< {"id":2,"result":{"task":{"taskId":"1","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":null}}}',
        '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"resultType":"input_required","requestState":"s"}}',
    ),
    invalid=(
        _ANSWERED % "{}",
        _ANSWERED % '{"tools":{}}',
        _ANSWERED.replace("tools/list", "prompts/list") % '{"prompts":null}',
    ),
)

schema.shape_error(
    "DATA103",
    "listed item without a required member, or with a wrong type",
    """Clients need the name of an item, or its `uri` (`uriTemplate` of a template), to refer to it. A wrong type of another
    member, such as `title`, makes the SDK clients reject the whole list.
    """,
    on=(EventKind.REQUEST, EventKind.RESULT),
    beyond_plain=True,
    valid=_ANSWERED % '{"tools":[{"name":"a","description":"b","inputSchema":{"type":"object"}}]}',
    invalid=(
        _ANSWERED % '{"tools":[{"description":"b","inputSchema":{"type":"object"}}]}',
        _ANSWERED.replace("tools/list", "resources/list") % '{"resources":[{"name":"a"}]}',
        _ANSWERED.replace("tools/list", "prompts/list") % '{"prompts":["a"]}',
    ),
)


@failure.error(
    "DATA601",
    "error code that the revision does not have",
    page="2026-07-28/basic#error-codes",
    since=MODERN,
    valid=(_MODERN + _READ_FAILS % -32602, _MODERN + _CALL_FAILS % 7),
    invalid=(_MODERN + _READ_FAILS % -32002, _MODERN + _CALL_FAILS % -32042, _MODERN + _CALL_FAILS % -32050),
)
def removed(event: LintEvent) -> Iterator[Report]:
    """The specification reserves -32020 to -32099 and defines three of these codes. 2026-07-28 removed -32002 and
    -32042: a resource that is not found is -32602.
    """
    code = event.failure.code
    if code in (-32002, -32042):
        yield Report(f"error code {code} was removed ({ERRORS[code]}, until {LEGACY})")
    elif code is not None and -32099 <= code <= -32020 and code not in ERRORS:
        yield Report(f"error code {code} is reserved but not defined")


@failure.warning(
    "DATA602",
    "error code with another meaning",
    until=LEGACY,
    valid=(_READ_FAILS % -32002, _CALL_FAILS % -32602),
    invalid=(_CALL_FAILS % -32002, "@ 2025-06-18\n" + _CALL_FAILS % -32042),
)
def misused(event: LintEvent) -> Iterator[Report]:
    """-32002 means that a resource was not found; for an unknown tool or prompt, use -32602. -32042 (URL elicitation
    required) exists only in 2025-11-25.
    """
    code = event.failure.code
    if code == -32002 and event.method and not event.method.startswith("resources/"):
        yield Report(f"error code -32002 (resource not found) for {event.method}")
    elif code == -32042 and event.revision is not None and event.revision < LEGACY:
        yield Report(f"error code -32042 requires {LEGACY}; the revision is {event.revision}")


@failure.warning(
    "DATA603",
    '"method not found" for a declared capability',
    by=SERVER,
    valid=(
        _CALL_FAILS % -32602,
        (_CALL_FAILS % -32601).replace("tools/call", "x/y").replace('"name":"a"', ""),
        (_CALL_FAILS % -32601).replace('"name":"a"', '"name":"a","task":{}'),
    ),
    invalid=(_CALL_FAILS % -32601, (_CALL_FAILS % -32601).replace("tools/call", "prompts/get")),
)
def found(event: LintEvent) -> Iterator[Report]:
    """The server declared the capability, so it has the method. For an unknown tool, prompt or resource use -32602
    (invalid params). Not reported: with -32601 a server also refuses a tool call that must be a task, or must not be one.
    """
    method = METHODS.get(event.method)
    if event.failure.code != -32601 or method is None or method.needs is None:
        return
    if (
        (
            method.subject in ("name", "uri")
            or event.method in ("tools/list", "prompts/list", "resources/list")
        )
        and has_capability(event.capabilities or {}, method.needs)
        and is_known(method.name, event.revision or LEGACY)
        and not event.request.body.task
        and task_support(event) != "required"
        and not (event.tool is None and "task" in event.failure.text.lower())
    ):
        about = f" {event.request.subject}" if event.request.subject else ""
        yield Report(
            f"error code -32601 (method not found) for {event.method}{about}, which the server declared"
        )


@failure.info(
    "DATA604",
    "error code from the range that JSON-RPC reserves",
    page="https://www.jsonrpc.org/specification#error_object",
    valid=(_CALL_FAILS % -32603, _CALL_FAILS % 404),
    invalid=(_CALL_FAILS % -32500, _CALL_FAILS % -32768),
)
def reserved(event: LintEvent) -> Iterator[Report]:
    """JSON-RPC reserves -32768 to -32100 and defines five of these codes. Applications must use codes outside -32768 to
    -32000.
    """
    code = event.failure.code
    if code is not None and -32768 <= code <= -32100 and code not in ERRORS:
        yield Report(f"error code {code} is reserved by JSON-RPC but not defined")
