"""Capabilities: nobody uses what the other side never declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, LEGACY, Rules, Told
from mcpspy.analysis.lint.rules.handshake import ANSWER, ASK, HELLO, LIFECYCLE
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.spec import CLIENT, METHODS, MODERN, other

RULES = Rules()
rule = RULES.rule

_DECLARED = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/message": ("logging",),
    "notifications/roots/list_changed": ("roots", "listChanged"),
}


def _needs(_: Kind, method: str, side: str) -> bool:
    """Whether a method needs a capability of the other side."""
    known = METHODS.get(method)
    return known is not None and known.needs is not None and known.sender in (side, "either")


@rule(
    "LIFE106",
    ERROR,
    "a request that the other side never said it takes",
    page=LIFECYCLE + "#capability-negotiation",
    on=Kind.REQUEST,
    only=_needs,
    valid=(
        '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}',
        (
            '@ 2024-11-05\n> {"id":2,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b","value":""}}}\n'
            '< {"id":2,"result":{"completion":{"values":[]}}}'
        ),
    ),
    invalid=(
        "@ bare\n"
        + ASK % HELLO
        + ANSWER % HELLO
        + '\n> {"method":"notifications/initialized"}\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}',
        "@ bare\n"
        + ASK % HELLO
        + ANSWER % HELLO
        + '\n> {"method":"notifications/initialized"}\n< {"id":2,"method":"roots/list"}\n> {"id":2,"result":{"roots":[]}}',
    ),
)
def undeclared(seen: Seen) -> Iterable[Told]:
    """Both sides use only what was declared in the handshake. Declare the capability, or do not ask."""
    needs = METHODS[seen.method].needs or ""
    declared = seen.capabilities if seen.side == CLIENT else _client_capabilities(seen)
    if declared is None or _has(declared, needs):
        return ()
    if needs == "completions" and (seen.revision or "") < "2025-03-26":
        return ()
    if needs.startswith("tasks") and (seen.revision or "") >= MODERN:
        return ()
    return [Told(f"{seen.method}, but the {other(seen.side)} never declared {needs}")]


@rule(
    "LIFE107",
    ERROR,
    "a notification whose capability was never declared",
    page=LIFECYCLE + "#capability-negotiation",
    on=Kind.NOTIFICATION,
    only=lambda _, method, side: method in _DECLARED and METHODS[method].sender == side,
    until=LEGACY,
    valid=(
        '< {"method":"notifications/tools/list_changed"}',
        '> {"method":"notifications/roots/list_changed"}',
    ),
    invalid=(
        "@ bare\n"
        + ASK % HELLO
        + ANSWER % HELLO
        + '\n> {"method":"notifications/initialized"}\n< {"method":"notifications/tools/list_changed"}',
        "@ bare\n"
        + ASK % HELLO
        + ANSWER % HELLO
        + '\n> {"method":"notifications/initialized"}\n> {"method":"notifications/roots/list_changed"}',
    ),
)
def unannounced(seen: Seen) -> Iterator[Told]:
    """A server declares `listChanged`, `subscribe` and `logging`, a client `roots.listChanged`, before it sends what
    belongs to them: the other side may have nobody who listens.
    """
    declared = _client_capabilities(seen) if seen.side == CLIENT else seen.capabilities
    path = _DECLARED[seen.method]
    if declared is not None and not _has(declared, ".".join(path)):
        yield Told(f"{seen.method}, but the {seen.side} never declared {'.'.join(path)}")


def _client_capabilities(seen: Seen) -> dict[str, Any] | None:
    """Return what the client declared; None where there was no handshake to hear it in."""
    conversation = seen.conversation
    return conversation.client_capabilities if conversation.has_asked else None


def _has(declared: dict[str, Any], path: str) -> bool:
    value: Any = declared
    for step in path.split("."):
        if not isinstance(value, dict) or value.get(step) in (None, False):
            return False
        value = value[step]
    return True
