"""Which answer belongs to which request: ids, and what has none."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import ANSWERS, ERROR, LEGACY, WARNING, Report, RuleFamily
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.spec import CLIENT, MODERN, other

RULES = RuleFamily()
rule = RULES.rule

REQUESTS = "2025-11-25/basic#requests"
RESPONSES = "2025-11-25/basic#responses"

PING = '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'


@rule(
    "ENV201",
    ERROR,
    "an id that is neither a string nor an integer",
    page=REQUESTS,
    on=EventKind.REQUEST,
    odd=True,
    valid=(PING, '> {"id":"a","method":"ping"}\n< {"id":"a","result":{}}'),
    invalid=(
        '> {"id":null,"method":"ping"}',
        '> {"id":1.5,"method":"ping"}\n< {"id":1.5,"result":{}}',
        '> {"id":true,"method":"ping"}\n< {"id":true,"result":{}}',
    ),
)
def kind(seen: LintEvent) -> Iterator[Report]:
    """The SDKs take such a request for a notification, or drop it: it is never answered. `null` is forbidden by name."""
    if any(flaw.startswith("id is ") for flaw in seen.message.flaws):
        yield Report(f"the id {seen.request.id[:40]} is neither a string nor an integer")


@rule(
    "ENV202",
    ERROR,
    "an id that another request still waits under",
    page=REQUESTS,
    on=EventKind.REQUEST,
    odd=True,
    valid=(
        PING,
        '> {"id":2,"method":"ping"}\n< {"id":2,"method":"ping"}\n> {"id":2,"result":{}}\n< {"id":2,"result":{}}',
    ),
    invalid=(
        '> {"id":2,"method":"ping"}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n< {"id":2,"result":{}}',
    ),
)
def in_flight(seen: LintEvent) -> Iterator[Report]:
    """Two requests wait for an answer under one id: nobody can tell whose it is. Each side counts by itself, so the
    server's 2 is not the client's 2.
    """
    if seen.flaw is not None and seen.flaw.endswith("is in use by an unanswered request"):
        yield Report(seen.flaw)


@rule(
    "ENV203",
    ERROR,
    "an id that was used before",
    page=REQUESTS,
    on=EventKind.REQUEST,
    until=LEGACY,
    odd=True,
    valid=(
        PING,
        (
            '@ 2026-07-28\n> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}\n'
            '> {"id":2,"method":"tools/call","params":{"name":"a"}}\n< {"id":2,"result":{"content":[]}}'
        ),
    ),
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
    ),
)
def used(seen: LintEvent) -> Iterator[Report]:
    """Within a session an id is used once. From 2026-07-28 on it may be used again when it has its answer."""
    if seen.flaw is not None and seen.flaw.endswith("was used before"):
        yield Report(seen.flaw)


@rule(
    "ENV204",
    ERROR,
    "an answer that nobody asked for",
    page=RESPONSES,
    on=ANSWERS,
    odd=True,
    valid=(PING,),
    invalid=('< {"id":7,"result":{}}', '> {"id":2,"method":"ping"}\n< {"id":"2","result":{}}'),
)
def unasked(seen: LintEvent) -> Iterator[Report]:
    """No request of the other side waits under this id. An id comes back exactly as it was sent: `2` is not `"2"`,
    though the SDKs are lenient there.
    """
    if seen.side == CLIENT and (seen.revision or "") >= MODERN:
        return  # MOD105 says it.
    if seen.flaw is not None and seen.flaw.startswith("nobody asked"):
        assert isinstance(seen.what, Result | Failure)
        yield Report(
            seen.flaw if ":" in seen.flaw else f"nobody asked under the id {(seen.what.id or '')[:40]}"
        )


@rule(
    "ENV205",
    ERROR,
    "a second answer to one request",
    page=RESPONSES,
    on=ANSWERS,
    odd=True,
    valid=(PING,),
    invalid=('> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}\n< {"id":2,"result":{}}',),
)
def again(seen: LintEvent) -> Iterator[Report]:
    """The first one counts; whoever waits for the second waits for another. A handler that both returns and sends,
    or an error written after the result was.
    """
    if seen.flaw is not None and seen.flaw.endswith("was answered before"):
        yield Report(seen.flaw)


@rule(
    "ENV206",
    ERROR,
    "an answer to a notification",
    page="2025-11-25/basic#notifications",
    on=ANSWERS,
    odd=True,
    valid=(PING, '> {"method":"notifications/x"}'),
    invalid=(
        '> {"method":"notifications/x"}\n< {"id":null,"result":{}}',
        '> {"method":"notifications/x"}\n< {"id":null,"error":{"code":-32601,"message":"no"}}',
    ),
)
def to_notification(seen: LintEvent) -> Iterator[Report]:
    """A notification has no id, so an answer to it cannot have one; the receiver must not send any. Servers do it
    that look a method up before they look whether an answer is wanted.
    """
    if _is_anonymous(seen) and seen.conversation.has_notified[other(seen.side)]:
        yield Report("answers a notification: it has no id")


@rule(
    "ENV207",
    ERROR,
    "an answer without an id",
    page=RESPONSES,
    on=ANSWERS,
    odd=True,
    valid=(
        PING,
        '@ http\n> {"id":2,"method":"ping"}\n= 400 {} {}\n< {"error":{"code":-32600,"message":"no"}}',
    ),
    invalid=(
        '> {"id":2,"method":"ping"}\n< {"result":{}}',
        '> {"id":2,"method":"x"}\n< {"id":null,"error":{"code":-32601,"message":"no"}}',
    ),
)
def anonymous(seen: LintEvent) -> Iterator[Report]:
    """An answer says which request it is for. Only an error may leave that out, and only where the request's id
    could not be read.
    """
    if not _is_anonymous(seen) or seen.conversation.has_notified[other(seen.side)]:
        return
    if not (isinstance(seen.what, Failure) and seen.conversation.was_malformed[other(seen.side)]):
        yield Report("an answer without an id")


@rule(
    "ENV208",
    WARNING,
    "an error whose id is null",
    page="2025-11-25/schema#jsonrpcerrorresponse",
    on=EventKind.FAILURE,
    since="2025-11-25",
    valid=('> {"id":2,"method":"x"}\n< {"id":2,"error":{"code":-32601,"message":"no"}}',),
    invalid=('>> {oops}\n< {"id":null,"error":{"code":-32700,"message":"no JSON"}}',),
)
def null(seen: LintEvent) -> Iterator[Report]:
    """Where a request could not be read, an error leaves its `id` out (since 2025-11-25); `null`, as JSON-RPC has it,
    is not in the schema any more. TypeScript clients drop such a message.
    """
    document = seen.document
    if (
        isinstance(document, dict)
        and "id" in document
        and document["id"] is None
        and seen.conversation.was_malformed[other(seen.side)]
    ):
        yield Report("the error's id is null: leave it out")


def _is_anonymous(seen: LintEvent) -> bool:
    return seen.flaw is not None and seen.flaw.startswith("answers nothing")
