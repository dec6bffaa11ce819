"""Subscriptions and log messages of 2026-07-28: only what a pending request asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.stateless import CALL, DONE
from mcpspy.analysis.lint.state import Subscription, forget
from mcpspy.core.protocol.message import Request, Result, meta_raw, text
from mcpspy.core.protocol.spec import LEVELS, META, MODERN, SERVER

SUBSCRIPTIONS = "2026-07-28/basic/patterns/subscriptions"
LOGGING = "2026-07-28/server/utilities/logging#per-request-log-level"

_SUBSCRIBED = tuple(f"notifications/{what}" for what in ("tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated", "tasks"))  # fmt: skip
_FILTERS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

_NAMED = '"_meta":{"io.modelcontextprotocol/subscriptionId":%s}'
_LISTEN = '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n'
_ACCEPT = (
    '< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},'
    + _NAMED % 2
    + "}}\n"
)
_CHANGED = '< {"method":"notifications/%s/list_changed","params":{%s}}\n'
_GOOD = _LISTEN + _ACCEPT + _CHANGED % ("tools", _NAMED % 2)
_CLOSED = '< {"id":2,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"},"io.modelcontextprotocol/subscriptionId":%d}}}\n'
_LOG = '< {"method":"notifications/message","params":{"level":"%s","data":"a"%s}}\n'
_LEVEL = CALL.replace('"name":"a"', '"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"warning"}')

modern = RuleGroup(RULES, page=SUBSCRIPTIONS, on=EventKind.NOTIFICATION, since=MODERN)


@modern.error(
    "MOD402",
    "notification or closure without its subscription",
    on=(EventKind.NOTIFICATION, EventKind.RESULT),
    about=(*_SUBSCRIBED, _ACKNOWLEDGED, "subscriptions/listen"),
    by=SERVER,
    valid=(_GOOD, _GOOD + _CLOSED % 2),
    invalid=(
        _LISTEN + _ACCEPT + _CHANGED % ("tools", ""),
        _LISTEN + _ACCEPT.replace("," + _NAMED % 2, ""),
        _GOOD + _CLOSED % 9,
    ),
)
def anonymous_notification(event: LintEvent) -> Iterator[Report]:
    """List changes and updates require a subscription, and its `subscriptionId` in `_meta`. The response that closes a
    subscription has it, too: it is the id of the request.
    """
    if isinstance(event.what, Result):
        meta = event.result.get("_meta")
        given = meta.get(META + "subscriptionId") if isinstance(meta, dict) else None
        if given is not None and given != (event.document or {}).get("id"):
            yield Report(
                f"the response closes the subscription {str(given)[:40]}, which is not its own", meta
            )
    elif not meta_raw(event.notification.meta, META + "subscriptionId"):
        yield Report(f"{event.method}: _meta has no {META}subscriptionId")


@modern.error(
    "MOD403",
    "notification that the subscription did not ask for",
    on=(EventKind.NOTIFICATION, EventKind.REQUEST, EventKind.RESULT),
    about=(*_SUBSCRIBED, _ACKNOWLEDGED, "subscriptions/listen", "notifications/cancelled"),
    valid=(_GOOD, _LISTEN + _ACCEPT + '< {"method":"notifications/cancelled","params":{"requestId":2}}'),
    invalid=(
        _LISTEN + _CHANGED % ("tools", _NAMED % 2),
        _LISTEN + _ACCEPT + _CHANGED % ("prompts", _NAMED % 2),
        _LISTEN + _ACCEPT + _CHANGED % ("tools", _NAMED % 9),
        _LISTEN + _ACCEPT.replace("true", 'true,"promptsListChanged":true'),
        _LISTEN + _ACCEPT.replace("true", "false") + _CHANGED % ("tools", _NAMED % 2),
        _GOOD + _CLOSED % 2 + _CHANGED % ("tools", _NAMED % 2),
    ),
)
def not_asked_for(event: LintEvent) -> Iterator[Report]:
    """A server acknowledges a subscription, or the part of it that it accepts, and then sends the notifications that both
    name, with its id, until its response closes the subscription. It cancels nothing but a subscription.
    """
    known, stream = event.state.subscriptions, event.conversation.stream
    if isinstance(event.what, Request):
        wanted = event.params.get("notifications")
        known[stream, event.what.id] = Subscription(wanted if isinstance(wanted, dict) else {})
        forget(known)
    elif isinstance(event.what, Result):
        if (closed := known.get((stream, event.what.id))) is not None:
            closed.is_closed = True
    elif event.method == "notifications/cancelled":
        if event.side == SERVER and (stream, text(event.notification.body.request_id)) not in known:
            yield Report("cancellation of a request that is not a subscription of this client")
    else:
        number = text(meta_raw(event.notification.meta, META + "subscriptionId"))
        subscription = known.get((stream, number))
        if subscription is not None:
            yield from _not_wanted(event, subscription)
        elif number is not None:  # MOD402 reports it otherwise.
            yield Report(f"{event.method} for unknown subscription {number[:40]}")


def _not_wanted(event: LintEvent, subscription: Subscription) -> Iterator[Report]:
    """Check a notification of a subscription."""
    if subscription.is_closed:
        yield Report(f"{event.method}{_about(event)} after the response that closed its subscription")
    elif event.method == _ACKNOWLEDGED:
        accepted = event.params.get("notifications")
        subscription.accepted = accepted if isinstance(accepted, dict) else {}
        for name in subscription.accepted:
            if subscription.accepted[name] and not subscription.wanted.get(name):
                yield Report(f"{event.method} names {name[:60]}, which the subscription does not ask for")
    elif subscription.accepted is None:
        yield Report(f"{event.method} before notifications/subscriptions/acknowledged")
    elif not _names(subscription.wanted, event):
        yield Report(f"{event.method}{_about(event)}, which the subscription does not ask for")
    elif not _names(subscription.accepted, event):
        yield Report(f"{event.method}{_about(event)}, which the server did not acknowledge")


def _names(given: dict[str, Any], event: LintEvent) -> bool:
    """Return whether a filter names what a notification is about."""
    if (name := _FILTERS.get(event.method)) is not None:
        return given.get(name) is True
    member, key = (
        ("taskIds", "taskId") if event.method == "notifications/tasks" else ("resourceSubscriptions", "uri")
    )
    found, named = event.params.get(key), given.get(member)
    if not isinstance(found, str):
        return True  # DATA101 reports it.
    names = [str(one) for one in named] if isinstance(named, list) else []
    return found in names or (key == "uri" and any(found.startswith(one) for one in names))


def _about(event: LintEvent) -> str:
    found = event.params.get("uri", event.params.get("taskId"))
    return f" of {found[:80]}" if isinstance(found, str) else ""


@modern.error(
    "MOD405",
    "log message for no pending request",
    page=LOGGING,
    by=SERVER,
    about="notifications/message",
    valid=_LEVEL + _LOG % ("error", "") + DONE,
    invalid=(
        _LEVEL + _LOG % ("info", "") + DONE,
        _LEVEL
        + DONE
        + "\n"
        + CALL.partition("\n")[2].replace("2", "3", 1)
        + _LOG % ("error", "")
        + DONE.replace("2", "3", 1),
    ),
)
def misplaced_log(event: LintEvent) -> Iterator[Report]:
    """A server sends log messages only for a pending request that set a `logLevel`, at that level and above, on its
    stream, and not for a subscription.
    """
    levels = [
        pending.log_level
        for pending in event.state.open.values()
        if pending.conversation is event.conversation and pending.log_level is not None
    ]
    level = event.params.get("level")
    if event.conversation.logs_requested and not levels:
        yield Report("log message, but no pending request set a logLevel")
    elif level in LEVELS and levels and set(levels) <= set(LEVELS[LEVELS.index(level) + 1 :]):
        yield Report(f"log message of level {level}; the pending request set {levels[0]}")
    elif meta_raw(event.notification.meta, META + "subscriptionId"):
        yield Report("log message for a subscription")
