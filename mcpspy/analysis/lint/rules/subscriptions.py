"""Subscriptions and log messages of 2026-07-28: only what a pending request asked for."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.stateless import CALL, DONE
from mcpspy.analysis.lint.state import Subscription, forget
from mcpspy.core.protocol.message import Request, meta_raw, text
from mcpspy.core.protocol.spec import LEVELS, META, MODERN, SERVER

SUBSCRIPTIONS = "2026-07-28/basic/patterns/subscriptions"
LOGGING = "2026-07-28/server/utilities/logging#per-request-log-level"

_SUBSCRIBED = tuple(f"notifications/{what}" for what in ("tools/list_changed", "prompts/list_changed", "resources/list_changed", "resources/updated"))  # fmt: skip
_FILTERS = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
}
_ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

_NAMED = '"_meta":{"io.modelcontextprotocol/subscriptionId":%s}'
_LISTEN = '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true}}}\n'
_ACCEPT = (
    '< {"method":"notifications/subscriptions/acknowledged","params":{"notifications":{},'
    + _NAMED % 2
    + "}}\n"
)
_CHANGED = '< {"method":"notifications/%s/list_changed","params":{%s}}\n'
_GOOD = _LISTEN + _ACCEPT + _CHANGED % ("tools", _NAMED % 2)
_LOG = '< {"method":"notifications/message","params":{"level":"%s","data":"a"%s}}\n'
_LEVEL = CALL.replace('"name":"a"', '"name":"a","_meta":{"io.modelcontextprotocol/logLevel":"warning"}')

modern = RuleGroup(RULES, page=SUBSCRIPTIONS, on=EventKind.NOTIFICATION, since=MODERN)


@modern.error(
    "MOD402",
    "notification without its subscription",
    about=_SUBSCRIBED,
    by=SERVER,
    valid=_GOOD,
    invalid=_LISTEN + _ACCEPT + _CHANGED % ("tools", ""),
)
def anonymous_notification(event: LintEvent) -> Iterator[Report]:
    """List changes and updates require a subscription, and its `subscriptionId` in `_meta`."""
    if not meta_raw(event.notification.body.meta, META + "subscriptionId"):
        yield Report(f"{event.method}: _meta has no {META}subscriptionId")


@modern.error(
    "MOD403",
    "notification that the subscription did not ask for",
    on=(EventKind.NOTIFICATION, EventKind.REQUEST),
    about=(*_SUBSCRIBED, _ACKNOWLEDGED, "subscriptions/listen", "notifications/cancelled"),
    valid=(_GOOD, _LISTEN + _ACCEPT + '< {"method":"notifications/cancelled","params":{"requestId":2}}'),
    invalid=(
        _LISTEN + _CHANGED % ("tools", _NAMED % 2),
        _LISTEN + _ACCEPT + _CHANGED % ("prompts", _NAMED % 2),
        _LISTEN + _ACCEPT + _CHANGED % ("tools", _NAMED % 9),
    ),
)
def not_asked_for(event: LintEvent) -> Iterator[Report]:
    """A server acknowledges a subscription first, and then sends the notifications that its filter names, with its id. It
    cancels nothing but a subscription.
    """
    known, stream = event.state.subscriptions, event.conversation.stream
    if isinstance(event.what, Request):
        wanted = event.params.get("notifications")
        known[stream, event.what.id] = Subscription(wanted if isinstance(wanted, dict) else {})
        forget(known)
        return
    if event.method == "notifications/cancelled":
        if event.side == SERVER and (stream, text(event.notification.body.request_id)) not in known:
            yield Report("cancellation of a request that is not a subscription of this client")
        return
    number = text(meta_raw(event.notification.body.meta, META + "subscriptionId"))
    subscription = known.get((stream, number))
    if subscription is None:
        if number is not None:  # MOD402 reports it otherwise.
            yield Report(f"{event.method} for unknown subscription {number[:40]}")
    elif event.method == _ACKNOWLEDGED:
        subscription.is_acknowledged = True
    elif not subscription.is_acknowledged:
        yield Report(f"{event.method} before notifications/subscriptions/acknowledged")
    elif (name := _FILTERS.get(event.method)) is not None:
        if subscription.wanted.get(name) is not True:
            yield Report(f"{event.method}, but the subscription does not ask for {name}")
    elif isinstance(uri := event.params.get("uri"), str):
        uris = subscription.wanted.get("resourceSubscriptions")
        if not any(uri.startswith(str(one)) for one in (uris if isinstance(uris, list) else ())):
            yield Report(f"update of {uri[:80]}, which the subscription does not name", uri)


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
    elif meta_raw(event.notification.body.meta, META + "subscriptionId"):
        yield Report("log message for a subscription")
