"""Whether requests get their answers, cancellations their requests; and what will be taken out."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ANSWERS, ERROR, INFO, LEGACY, WARNING, Rules, Told
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.message import text
from mcpspy.core.protocol.spec import MODERN, other

RULES = Rules()
rule = RULES.rule

CANCELLATION = "2025-11-25/basic/utilities/cancellation#behavior-requirements"

PING = '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'
BYE = '\n* eof {"from":"client"}\n* exit {"code":0}'
_CANCEL = '> {"method":"notifications/cancelled","params":{"requestId":%s}}'


@rule(
    "LIFE201",
    WARNING,
    "a request that was never answered",
    page="2025-11-25/basic#responses",
    on=Kind.END,
    valid=(
        PING + BYE,
        '> {"id":2,"method":"ping"}\n' + _CANCEL % 2 + BYE,
        '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{}}}' + BYE,
    ),
    invalid=('> {"id":2,"method":"ping"}\n* eof {"from":"client"}\n* exit {"code":0}',),
)
def unanswered(seen: Seen) -> Iterator[Told]:
    """The session ended, and it still waited. A handler that never returns, a deadlock, an exception that nobody
    turned into an error; or a client that left too early.
    """
    about = f" {seen.request.subject}" if seen.request.subject else ""
    yield Told(f"{seen.method}{about} was never answered by the {other(seen.side)}")


@rule(
    "LIFE202",
    INFO,
    "an answer to what was cancelled",
    page=CANCELLATION,
    on=ANSWERS,
    odd=True,
    valid=('> {"id":2,"method":"ping"}\n' + _CANCEL % 2,),
    invalid=('> {"id":2,"method":"ping"}\n' + _CANCEL % 2 + '\n< {"id":2,"result":{}}',),
)
def late(seen: Seen) -> Iterator[Told]:
    """A cancelled request should not be answered any more. That the two cross on their way is allowed, and cannot be
    told from outside: look whether the work was stopped.
    """
    if seen.flaw == "answered after it was cancelled":
        yield Told(f"{seen.method} was answered after it was cancelled")


@rule(
    "LIFE203",
    ERROR,
    "a cancellation of nothing",
    page=CANCELLATION,
    on=Kind.NOTIFICATION,
    about="notifications/cancelled",
    valid=('> {"id":2,"method":"ping"}\n' + _CANCEL % 2, PING + "\n" + _CANCEL % 2),
    invalid=(
        _CANCEL % 9,
        '> {"method":"notifications/cancelled"}',
        '< {"id":2,"method":"ping"}\n' + _CANCEL % 2 + '\n> {"id":2,"result":{}}',
    ),
)
def of_nothing(seen: Seen) -> Iterator[Told]:
    """Each side cancels its own requests, by the id it gave them. That the answer is on its way already is fine."""
    if seen.flaw is not None and seen.flaw.startswith("cancels "):
        asked = text(seen.notification.body.request_id)
        yield Told(seen.flaw if asked is None else f"{seen.flaw}: requestId {asked[:40]}")


@rule(
    "LIFE204",
    ERROR,
    "a cancellation of initialize",
    page=CANCELLATION,
    on=Kind.NOTIFICATION,
    about="notifications/cancelled",
    until=LEGACY,
    valid=('> {"id":2,"method":"ping"}\n' + _CANCEL % 2,),
    invalid=(
        '@ bare\n> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n'
        + _CANCEL % 1,
    ),
)
def of_initialize(seen: Seen) -> Iterator[Told]:
    """A client must not cancel `initialize`: end the session instead."""
    if seen.flaw is None and seen.exchange is not None and seen.exchange.request.method == "initialize":
        yield Told("cancels initialize")


_DEPRECATED = {"sampling/createMessage": "sampling", "roots/list": "roots"}
_ASKS = '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"%s","params":{%s}}}}}'


@rule(
    "LIFE112",
    INFO,
    "something that will be taken out",
    page="2026-07-28/changelog",
    on=Kind.RESULT,
    about=("tools/call", "prompts/get", "resources/read"),
    since=MODERN,
    once=True,
    beyond_text=True,
    valid=(
        _ASKS % ("elicitation/create", '"message":"a","requestedSchema":{"type":"object","properties":{}}'),
    ),
    invalid=(
        _ASKS % ("roots/list", ""),
        _ASKS % ("sampling/createMessage", '"messages":[],"maxTokens":1'),
    ),
)
def deprecated(seen: Seen) -> Iterator[Told]:
    """Roots and sampling are deprecated with 2026-07-28: they work, and new servers should do without. A tool takes a
    folder as an argument, or asks the person for it. Told once.
    """
    requests = seen.result.get("inputRequests") if seen.is_result else None
    asked = [
        request.get("method")
        for request in (requests.values() if isinstance(requests, dict) else ())
        if isinstance(request, dict)
    ]
    for method in asked:
        if isinstance(method, str) and method in _DEPRECATED:
            yield Told(f"{_DEPRECATED[method]} is deprecated: {method}")
