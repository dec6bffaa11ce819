"""Error codes, and whether they mean what was meant.

Whether requests get their answers, cancellations their requests; and what will be taken out.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RESPONSES, LintRule, Report, RuleGroup
from mcpspy.core.protocol.message import text
from mcpspy.core.protocol.spec import ERRORS, METHODS, MODERN, SERVER, other

RULES: list[LintRule] = []

CODES = "2026-07-28/basic#error-codes"

_FAIL = '> {"id":2,"method":"%s","params":{%s}}\n< {"id":2,"error":{"code":%d,"message":"no"}}'
_CALL = '"name":"a"'


CANCELLATION = "2025-11-25/basic/utilities/cancellation#behavior-requirements"
PING = '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'
BYE = '\n* eof {"from":"client"}\n* exit {"code":0}'
_CANCEL = '> {"method":"notifications/cancelled","params":{"requestId":%s}}'
_DEPRECATED = {"sampling/createMessage": "sampling", "roots/list": "roots"}
_ASKS = '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"%s","params":{%s}}}}}'

failure = RuleGroup(RULES, page="2025-11-25/server/tools#error-handling", on=EventKind.FAILURE)
cancellation = RuleGroup(RULES, page=CANCELLATION, on=EventKind.NOTIFICATION, about="notifications/cancelled")
rule = RuleGroup(RULES)


@failure.error(
    "DATA601",
    "an error code that this revision does not have",
    page=CODES,
    since=MODERN,
    valid=(
        "@ 2026-07-28\n" + _FAIL % ("resources/read", '"uri":"a:b"', -32602),
        "@ 2026-07-28\n" + _FAIL % ("tools/call", _CALL, 7),
    ),
    invalid=(
        "@ 2026-07-28\n" + _FAIL % ("resources/read", '"uri":"a:b"', -32002),
        "@ 2026-07-28\n" + _FAIL % ("tools/call", _CALL, -32042),
        "@ 2026-07-28\n" + _FAIL % ("tools/call", _CALL, -32050),
    ),
)
def removed(event: LintEvent) -> Iterator[Report]:
    """-32020 to -32099 are the specification's own, and it defines three of them; -32002 and -32042 were taken out
    with 2026-07-28: a resource that is not found is -32602.
    """
    code = event.failure.code
    if code in (-32002, -32042):
        yield Report(f"{code} is not an error code any more ({ERRORS[code]}, until {LEGACY})")
    elif code is not None and -32099 <= code <= -32020 and code not in ERRORS:
        yield Report(f"{code} is reserved, and not defined")


@failure.warning(
    "DATA602",
    "an error code that means something else",
    until=LEGACY,
    valid=(
        _FAIL % ("resources/read", '"uri":"a:b"', -32002),
        _FAIL % ("tools/call", _CALL, -32602),
        _FAIL % ("tools/call", _CALL, -32042),
    ),
    invalid=(_FAIL % ("tools/call", _CALL, -32002), "@ 2025-06-18\n" + _FAIL % ("tools/call", _CALL, -32042)),
)
def misused(event: LintEvent) -> Iterator[Report]:
    """-32002 is a resource that is not found: for an unknown tool or prompt it is -32602. -32042, an elicitation by
    URL, is of 2025-11-25 alone.
    """
    code = event.failure.code
    if code == -32002 and event.method and not event.method.startswith("resources/"):
        yield Report(f"-32002 (resource not found) for {event.method}")
    elif code == -32042 and event.revision is not None and event.revision < LEGACY:
        yield Report(f"-32042 came with {LEGACY}; this is {event.revision}")


@failure.warning(
    "DATA603",
    "method not found, for a method that was declared",
    by=SERVER,
    valid=(_FAIL % ("tools/call", _CALL, -32602), _FAIL % ("x/y", "", -32601)),
    invalid=(_FAIL % ("tools/call", _CALL, -32601), _FAIL % ("prompts/get", _CALL, -32601)),
)
def found(event: LintEvent) -> Iterator[Report]:
    """The server declared the capability, so it has the method: an unknown tool, prompt or resource is -32602
    (invalid params). A task that a tool needs (`taskSupport`) is the exception, and says so.
    """
    method = METHODS.get(event.method)
    if event.failure.code != -32601 or method is None or method.needs is None:
        return
    declared = event.capabilities or {}
    about = event.request.subject
    if (
        method.needs.partition(".")[0] in declared
        and "task" not in event.failure.text.lower()
        and method.subject in ("name", "uri")
    ):
        yield Report(f"-32601 for {event.method} {about or ''}, which the server declared".replace("  ", " "))


@failure.info(
    "DATA604",
    "an error code from the range that JSON-RPC keeps",
    page="https://www.jsonrpc.org/specification#error_object",
    valid=(_FAIL % ("tools/call", _CALL, -32603), _FAIL % ("tools/call", _CALL, 404)),
    invalid=(_FAIL % ("tools/call", _CALL, -32500), _FAIL % ("tools/call", _CALL, -32768)),
)
def reserved(event: LintEvent) -> Iterator[Report]:
    """-32768 to -32100 are JSON-RPC's own, and it defines five of them. Codes of an application are outside of
    -32768 to -32000.
    """
    code = event.failure.code
    if code is not None and -32768 <= code <= -32100 and code not in ERRORS:
        yield Report(f"{code} is reserved by JSON-RPC, and not defined")


@rule.warning(
    "LIFE201",
    "a request that was never answered",
    page="2025-11-25/basic#responses",
    on=EventKind.END,
    valid=(
        PING + BYE,
        '> {"id":2,"method":"ping"}\n' + _CANCEL % 2 + BYE,
        '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{}}}' + BYE,
    ),
    invalid='> {"id":2,"method":"ping"}\n* eof {"from":"client"}\n* exit {"code":0}',
)
def unanswered(event: LintEvent) -> Iterator[Report]:
    """The session ended, and it still waited. A handler that never returns, a deadlock, an exception that nobody
    turned into an error; or a client that left too early.
    """
    about = f" {event.request.subject}" if event.request.subject else ""
    yield Report(f"{event.method}{about} was never answered by the {other(event.side)}")


@rule.info(
    "LIFE202",
    "an answer to what was cancelled",
    page=CANCELLATION,
    on=RESPONSES,
    unusual=True,
    valid='> {"id":2,"method":"ping"}\n' + _CANCEL % 2,
    invalid='> {"id":2,"method":"ping"}\n' + _CANCEL % 2 + '\n< {"id":2,"result":{}}',
)
def late(event: LintEvent) -> Iterator[Report]:
    """A cancelled request should not be answered any more. That the two cross on their way is allowed, and cannot be
    told from outside: look whether the work was stopped.
    """
    if event.flaw == "answered after it was cancelled":
        yield Report(f"{event.method} was answered after it was cancelled")


@cancellation.error(
    "LIFE203",
    "a cancellation of nothing",
    valid=('> {"id":2,"method":"ping"}\n' + _CANCEL % 2, PING + "\n" + _CANCEL % 2),
    invalid=(
        _CANCEL % 9,
        '> {"method":"notifications/cancelled"}',
        '< {"id":2,"method":"ping"}\n' + _CANCEL % 2 + '\n> {"id":2,"result":{}}',
    ),
)
def of_nothing(event: LintEvent) -> Iterator[Report]:
    """Each side cancels its own requests, by the id it gave them. That the answer is on its way already is fine."""
    if event.flaw is not None and event.flaw.startswith("cancels "):
        asked = text(event.notification.body.request_id)
        yield Report(event.flaw if asked is None else f"{event.flaw}: requestId {asked[:40]}")


@cancellation.error(
    "LIFE204",
    "a cancellation of initialize",
    until=LEGACY,
    valid='> {"id":2,"method":"ping"}\n' + _CANCEL % 2,
    invalid=(
        '@ bare\n> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
        + _CANCEL % 1
    ),
)
def of_initialize(event: LintEvent) -> Iterator[Report]:
    """A client must not cancel `initialize`: end the session instead."""
    if event.flaw is None and event.exchange is not None and event.exchange.request.method == "initialize":
        yield Report("cancels initialize")


@rule.info(
    "LIFE112",
    "something that will be taken out",
    page="2026-07-28/changelog",
    on=EventKind.RESULT,
    about=("tools/call", "prompts/get", "resources/read"),
    since=MODERN,
    once=True,
    beyond_text=True,
    valid=_ASKS % ("elicitation/create", '"message":"a","requestedSchema":{"type":"object","properties":{}}'),
    invalid=(_ASKS % ("roots/list", ""), _ASKS % ("sampling/createMessage", '"messages":[],"maxTokens":1')),
)
def deprecated(event: LintEvent) -> Iterator[Report]:
    """Roots and sampling are deprecated with 2026-07-28: they work, and new servers should do without. A tool takes a
    folder as an argument, or asks the person for it. Told once.
    """
    requests = event.result.get("inputRequests") if event.is_result else None
    asked = [
        request.get("method")
        for request in (requests.values() if isinstance(requests, dict) else ())
        if isinstance(request, dict)
    ]
    for method in asked:
        if isinstance(method, str) and method in _DEPRECATED:
            yield Report(f"{_DEPRECATED[method]} is deprecated: {method}")
