"""Methods by revision, sender and kind, and the capabilities that they require."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import CALLED, LEGACY, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.jsonrpc import PING
from mcpspy.analysis.lint.rules.lifecycle import INITIALIZED, LIFECYCLE
from mcpspy.core.protocol.message import Notification, Request
from mcpspy.core.protocol.spec import (
    CLIENT,
    METHODS,
    MODERN,
    NOTIFICATION,
    REQUEST,
    REVISIONS,
    SERVER,
    is_known,
    other,
)

_DATED = tuple(
    name
    for name, method in METHODS.items()
    if (method.since > REVISIONS[0] or method.until is not None) and name != "server/discover"
)
"""Methods that only some revisions have. `server/discover` may be sent to a server of any revision."""

_DECLARED = {
    "notifications/tools/list_changed": ("tools", "listChanged"),
    "notifications/prompts/list_changed": ("prompts", "listChanged"),
    "notifications/resources/list_changed": ("resources", "listChanged"),
    "notifications/resources/updated": ("resources", "subscribe"),
    "notifications/message": ("logging",),
    "notifications/roots/list_changed": ("roots", "listChanged"),
}

called = RuleGroup(RULES, on=CALLED, valid=PING)
declared = RuleGroup(RULES, page=LIFECYCLE + "#capability-negotiation")


@called.error(
    "LIFE108",
    "method that the revision does not have",
    page="2026-07-28/changelog",
    about=_DATED,
    valid=(
        PING,
        '> {"id":2,"method":"x/of-an-extension"}\n< {"id":2,"result":{}}',
        '@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}',
    ),
    invalid=(
        '@ 2026-07-28\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}',
        '@ 2025-03-26\n< {"id":2,"method":"elicitation/create","params":{"message":"a","requestedSchema":{"type":"object","properties":{}}}}\n> {"id":2,"result":{"action":"decline"}}',
    ),
)
def unknown_method(event: LintEvent) -> Iterator[Report]:
    """The method belongs to another revision: it was removed, or added later. Names that no revision defines belong to
    extensions and are not checked.
    """
    method, revision = METHODS[event.method], event.revision
    if revision is None:
        return
    if event.side == SERVER and isinstance(event.what, Request) and revision >= MODERN:
        return  # MOD104 reports it.
    if method.since > revision:
        yield Report(f"{event.method} requires {method.since}; the revision is {revision}")
    elif method.until is not None and method.until < revision and event.method != "initialize":
        yield Report(f"{event.method} was removed after {method.until}; the revision is {revision}")


def _is_sent_by_the_other_side(_: EventKind, method: str, side: str) -> bool:
    known = METHODS.get(method)
    return known is not None and known.sender not in (side, "either")


@called.error(
    "LIFE109",
    "method sent by the wrong side",
    page="2025-11-25/schema",
    only=_is_sent_by_the_other_side,
    invalid=(
        '< {"id":2,"method":"tools/list"}\n> {"id":2,"error":{"code":-32601,"message":"no"}}',
        '> {"method":"notifications/message","params":{"level":"info","data":"a"}}',
    ),
)
def wrong_side(event: LintEvent) -> Iterator[Report]:
    """The client requests tools, resources and prompts; the server requests roots, sampling and elicitation."""
    yield Report(f"{event.method} from the {event.side}: only the {METHODS[event.method].sender} may send it")


def _is_of_the_other_kind(kind: EventKind, method: str, _: str) -> bool:
    known = METHODS.get(method)
    return known is not None and known.kind == (NOTIFICATION if kind is EventKind.REQUEST else REQUEST)


@called.error(
    "LIFE110",
    "notification with an id, or request without one",
    page="2025-11-25/basic#messages",
    only=_is_of_the_other_kind,
    invalid=(
        '> {"id":5,"method":"notifications/roots/list_changed"}\n< {"id":5,"result":{}}',
        '> {"method":"tools/list"}',
    ),
)
def wrong_kind(event: LintEvent) -> Iterator[Report]:
    """The receiver takes a request without an `id` for a notification, so it gets no response. The sender of a
    notification with an `id` waits for a response that never arrives.
    """
    if isinstance(event.what, Notification):
        yield Report(f"{event.method} without an id: it gets no response")
    else:
        yield Report(f"{event.method} with an id: notifications have none")


def _needs(_: EventKind, method: str, side: str) -> bool:
    """Return whether a method requires a capability of the other side."""
    known = METHODS.get(method)
    return known is not None and known.needs is not None and known.sender in (side, "either")


@declared.error(
    "LIFE106",
    "request for an undeclared capability",
    on=EventKind.REQUEST,
    only=_needs,
    valid=(
        '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}',
        (
            '@ 2024-11-05\n> {"id":2,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"b","value":""}}}\n'
            '< {"id":2,"result":{"completion":{"values":[]}}}'
        ),
    ),
    invalid=(
        INITIALIZED + '> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{"tools":[]}}',
        INITIALIZED + '< {"id":2,"method":"roots/list"}\n> {"id":2,"result":{"roots":[]}}',
    ),
)
def undeclared(event: LintEvent) -> Iterable[Report]:
    """Both sides may use only capabilities declared in the handshake. Declare the capability, or do not use it."""
    needs = METHODS[event.method].needs or ""
    declared = event.capabilities if event.side == CLIENT else _client_capabilities(event)
    if declared is None or has_capability(declared, needs):
        return ()
    if not is_known(event.method, event.revision or LEGACY):
        return ()  # LIFE108 reports it.
    if needs == "completions" and (event.revision or "") < "2025-03-26":
        return ()
    if needs.startswith("tasks") and (event.revision or "") >= MODERN:
        return ()
    return [Report(f"{event.method}, but the {other(event.side)} did not declare {needs}")]


class _Undeclared(set[str]):
    """Methods of notifications that are already reported."""


@declared.error(
    "LIFE107",
    "notification for an undeclared capability",
    on=EventKind.NOTIFICATION,
    only=lambda _, method, side: method in _DECLARED and METHODS[method].sender == side,
    valid=(
        '< {"method":"notifications/tools/list_changed"}',
        '> {"method":"notifications/roots/list_changed"}',
    ),
    invalid=(
        INITIALIZED + '< {"method":"notifications/tools/list_changed"}\n' * 2,
        INITIALIZED + '> {"method":"notifications/roots/list_changed"}',
    ),
)
def unannounced(event: LintEvent) -> Iterator[Report]:
    """A server must declare `listChanged`, `subscribe` or `logging`, and a client `roots.listChanged`, before it sends
    the matching notifications. Otherwise the other side may ignore them. Reported once for each method.
    """
    declared = _client_capabilities(event) if event.side == CLIENT else event.capabilities
    path = _DECLARED[event.method]
    reported = event.state.memory[_Undeclared]
    if declared is not None and not has_capability(declared, ".".join(path)) and event.method not in reported:
        reported.add(event.method)
        yield Report(f"{event.method}, but the {event.side} did not declare {'.'.join(path)}")


def _client_capabilities(event: LintEvent) -> dict[str, Any] | None:
    """Return the client's capabilities; None without a handshake."""
    conversation = event.conversation
    return conversation.client_capabilities if conversation.initialize_sent else None


def has_capability(declared: dict[str, Any], path: str) -> bool:
    """Return whether a capability, or a part of one such as `resources.subscribe`, is declared."""
    if "." not in path:
        return declared.get(path) not in (None, False)
    value: Any = declared
    for step in path.split("."):
        if not isinstance(value, dict) or value.get(step) in (None, False):
            return False
        value = value[step]
    return True
