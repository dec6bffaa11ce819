"""Events (SEP-3415): event types, subscriptions to webhooks, and events on streams and in polls.

The extension is a draft, so its rules are warnings, and check only servers that declare it: others have methods of the
same names. A webhook itself is a POST from the server to another address, which a recording does not contain.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from mcpspy.analysis.lint.event import LintEvent, objects, seconds_of
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.tasks import JITTER
from mcpspy.analysis.lint.schemas import CheckedSchema
from mcpspy.analysis.lint.shapes import draft_shape
from mcpspy.analysis.lint.state import forget
from mcpspy.core.jsontools import canonical
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.events import DELIVERY_ERRORS, EXTENSION, SOURCE
from mcpspy.core.protocol.message import Failure, Request, Result
from mcpspy.core.protocol.spec import CLIENT, MODERN, SERVER

SHORT = 300.0
"""Seconds. A server may grant more than a client suggests if that is too short for it; the draft gives no number."""

SKEW = 60.0
"""Seconds by which the clocks of server and client may differ."""

_DISCOVER = '@ 2026-07-28\n> {"id":1,"method":"server/discover"}\n< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"io.modelcontextprotocol/events":{}}}}}\n'
_LIST = '> {"id":2,"method":"events/list"}\n< {"id":2,"result":{"events":[{"name":"mail","delivery":%s,"inputSchema":{"type":"object","properties":{"from":{"type":"string"}}},"payloadSchema":%s}]}}\n'
_PAYLOAD = '{"type":"object","properties":{"n":{"type":"integer"}}}'
LISTED = _DISCOVER + _LIST % ('["poll","push","webhook"]', _PAYLOAD)
_SUBSCRIBE = '> {"id":%d,"method":"events/subscribe","params":{"name":"mail","arguments":%s,"delivery":{"mode":"webhook","url":"%s","secret":"whsec_a"},"cursor":null,"ttlMs":%s}}\n'
_GRANT = '< {"id":%d,"result":{"id":"%s","refreshBefore":%s,"cursor":null,"truncated":false,"deliveryStatus":%s}}\n'
_HEALTHY = '{"active":true,"lastDeliveryAt":null,"lastError":null}'
_HOOK = "https://a.example/hook"
_HOUR = '"2026-11-21T01:00:00Z"'
_GRANTED = LISTED + _SUBSCRIBE % (3, "{}", _HOOK, "3600000") + _GRANT % (3, "sub_1", _HOUR, _HEALTHY)
_REFRESHED = _GRANTED + _SUBSCRIBE % (4, "{}", _HOOK, "3600000")
_REFUSED = (
    LISTED
    + _SUBSCRIBE % (3, "{}", _HOOK, "null")
    + '< {"id":3,"error":{"code":-32015,"message":"CallbackEndpointError","data":{"reason":%s}}}'
)
EVENT = '"eventId":"e","name":"mail","timestamp":"2026-11-21T00:00:00Z","data":{"n":1}'
POLL = '> {"id":%d,"method":"events/poll","params":{"name":"mail","cursor":"c"}}\n< {"id":%d,"result":{"events":[{%s}],"cursor":"c","hasMore":%s,"nextPollMs":%d}}\n'
POLLED = LISTED + POLL % (3, 3, EVENT, "false", 1000)
STREAM = '> {"id":3,"method":"events/stream","params":{"name":"mail","cursor":null}}\n'
PUSHED = '< {"method":"notifications/events/event","params":{' + EVENT + ',"cursor":"d"%s}}\n'
OF = ',"_meta":{"io.modelcontextprotocol/subscriptionId":%d}'
ACTIVE = '< {"method":"notifications/events/active","params":{"cursor":null,"truncated":false,"_meta":{"io.modelcontextprotocol/subscriptionId":3}}}\n'
STREAMED = LISTED + STREAM + ACTIVE + PUSHED % (OF % 3)

_ENDPOINT_ERROR = -32015
"""The endpoint of a webhook failed."""

_ALL = ("events/*", "notifications/events/*")

rule = RuleGroup(RULES, since=MODERN, page=SOURCE)
result = rule.group(on=EventKind.RESULT, by=SERVER)


class Known:
    """The event types, subscriptions and polls of a session."""

    def __init__(self) -> None:
        self.types: OrderedDict[str, dict[str, Any]] = OrderedDict()
        """By name, as the server listed them."""
        self.granted: OrderedDict[str, str] = OrderedDict()
        """Key of a subscription to a webhook → its id."""
        self.is_listed = False
        """All pages of the event types were received, and no change of them was announced."""
        self.polls: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """Key of a poll → the time of its result, and the seconds until the next."""


def is_declared(event: LintEvent) -> bool:
    return EXTENSION.id in declared(event.capabilities)


def asked_of(event: LintEvent) -> dict[str, Any]:
    """Return the params of the request, also of the one that the message responds to."""
    params = event.params if isinstance(event.what, Request) else event.request.params
    return params if isinstance(params, dict) else {}


def _key(params: dict[str, Any]) -> str | None:
    """Return what identifies a subscription or a poll; None if that is nested too deep."""
    delivery = params.get("delivery")
    url = delivery.get("url") if isinstance(delivery, dict) else None
    try:
        return str(canonical([params.get("name"), params.get("arguments") or {}, url]))
    except RecursionError:
        return None


def _type(event: LintEvent, name: Any) -> dict[str, Any]:
    """Return an event type as it was listed; empty if it was not."""
    return event.state.memory[Known].types.get(str(name), {})


def _schema(event: LintEvent, name: Any, member: str) -> CheckedSchema:
    """Return a schema of an event type; without one, a schema that is not checked."""
    schema = _type(event, name).get(member)
    return CheckedSchema(None, None) if schema is None else event.state.schemas.check(schema)


@rule.warning(
    "EXT501",
    "invalid message of Events",
    on=(EventKind.REQUEST, EventKind.RESULT, EventKind.FAILURE, EventKind.NOTIFICATION),
    about=_ALL,
    valid=(
        _REFUSED % '"http_5xx"',
        POLLED,
        STREAMED,
        _GRANTED,
        LISTED.replace("io.modelcontextprotocol/events", "com.example/events").replace('"delivery"', '"to"'),
    ),
    invalid=(
        POLLED.replace('"eventId":"e",', ""),
        POLLED.replace('"timestamp":"2026-11-21T00:00:00Z"', '"timestamp":"today"'),
        STREAMED.replace('"data":{"n":1}', '"data":"n"'),
        _GRANTED.replace(',"secret":"whsec_a"', ""),
        _GRANTED.replace(f'"refreshBefore":{_HOUR},', ""),
        _GRANTED.replace('"lastError":null', '"lastError":"HTTP/1.1 500 Internal Server Error"'),
        LISTED.replace('"delivery":["poll"', '"delivery":["email"'),
        _REFUSED % '"HTTP/1.1 500 Internal Server Error"',
        STREAMED + '< {"id":3,"result":{"events":[]}}',
    ),
)
def shape(event: LintEvent) -> Iterable[Report]:
    """Each method of the draft defines the members of its params and its result. An event has `eventId`, `name`,
    `timestamp` and `data`; a subscription to a webhook has the `secret` that signs it, and its result `refreshBefore`;
    `lastError` is a category, as the response of the endpoint is not for the subscriber to read.
    """
    if not is_declared(event):
        return ()
    if isinstance(event.what, Failure):
        data = event.error.get("data") if isinstance(event.error, dict) else None
        reason = data.get("reason") if isinstance(data, dict) else None
        if event.what.code != _ENDPOINT_ERROR or reason in (None, *DELIVERY_ERRORS):
            return ()
        return [
            Report(
                f"the reason of error {_ENDPOINT_ERROR} is not a category of errors: {str(reason)[:80]}", data
            )
        ]
    is_result = isinstance(event.what, Result)
    if event.method == "events/stream" and (more := event.result.keys() - {"_meta", "resultType"}):
        return [Report(f"the result of events/stream has {', '.join(sorted(more))[:80]}: it is empty")]
    kind = EventKind.REQUEST if isinstance(event.what, Request) else EventKind.NOTIFICATION
    found = draft_shape(EventKind.RESULT if is_result else kind, event.method, event.revision)
    value = event.result if is_result else event.params
    if found is None or found.accepts(value):
        return ()
    return found.violations(value, event.method).get("EXT501", ())


@result.warning(
    "EXT502",
    "event type that no client can use",
    about="events/list",
    page=SOURCE + "#listing-available-events",
    valid=LISTED,
    invalid=(
        _DISCOVER + _LIST % ("[]", _PAYLOAD),
        _DISCOVER + _LIST % ('["poll"]', '{"type":"thing"}'),
    ),
)
def unusable(event: LintEvent) -> Iterator[Report]:
    """An event type has at least one mode of delivery, and valid JSON Schemas for its arguments and its payload."""
    if not is_declared(event):
        return
    memory = event.state.memory[Known]
    known, is_whole = memory.types, bool(memory.types) or "cursor" not in asked_of(event)
    memory.is_listed = is_whole and "nextCursor" not in event.result
    for listed in event.listed("events"):
        name = str(listed.get("name"))
        known[name] = listed
        forget(known)
        if listed.get("delivery") == []:
            yield Report(f"event type {name[:60]} without a mode of delivery", listed)
        for member in ("inputSchema", "payloadSchema"):
            if member in listed and (why := event.state.schemas.check(listed[member]).why) is not None:
                yield Report(f"{member} of event type {name[:60]} is invalid: {why}", listed[member])


MODES = {"events/poll": "poll", "events/stream": "push", "events/subscribe": "webhook"}


@rule.warning(
    "EXT503",
    "subscription that the event type does not allow",
    on=EventKind.REQUEST,
    about=tuple(MODES),
    by=CLIENT,
    page=SOURCE + "#error-codes",
    valid=(_GRANTED, POLLED),
    invalid=(
        _GRANTED.replace('"push","webhook"', '"push"'),
        _GRANTED.replace('"arguments":{}', '"arguments":{"from":1}'),
    ),
)
def not_allowed(event: LintEvent) -> Iterator[Report]:
    """A client subscribes with a mode of delivery that the event type lists, and with arguments that match its
    `inputSchema`. The server refuses other requests.
    """
    name = event.params.get("name")
    modes, mode = _type(event, name).get("delivery"), MODES[event.method]
    if isinstance(modes, list) and modes and mode not in modes:
        yield Report(
            f"{event.method} of {str(name)[:60]}, which is delivered by {', '.join(map(str, modes))[:60]}"
        )
    arguments = event.params.get("arguments", {})
    for breach in _schema(event, name, "inputSchema").breaches(arguments):
        yield Report(f"arguments of {str(name)[:60]}: {breach}", arguments)


@rule.warning(
    "EXT504",
    "event that violates its payloadSchema",
    on=(EventKind.RESULT, EventKind.NOTIFICATION),
    about=("events/poll", "notifications/events/event"),
    by=SERVER,
    page=SOURCE + "#eventoccurrence-schema",
    valid=(POLLED, STREAMED),
    invalid=(POLLED.replace('"n":1', '"n":"1"'), STREAMED.replace('"n":1', '"n":"1"')),
)
def payload(event: LintEvent) -> Iterator[Report]:
    """The `data` of an event matches the `payloadSchema` that its type has in `events/list`."""
    for each in event.listed("events") if isinstance(event.what, Result) else objects([event.params]):
        data = each.get("data")
        schema = _schema(event, each.get("name"), "payloadSchema")
        for breach in schema.breaches(data) if isinstance(data, dict) else ():  # EXT501 reports it otherwise.
            yield Report(f"data of {str(each.get('name'))[:60]}: {breach}", data)


@rule.warning(
    "EXT505",
    "webhook without https",
    on=EventKind.REQUEST,
    about="events/subscribe",
    by=CLIENT,
    page=SOURCE + "#webhook-security",
    valid=_GRANTED,
    invalid=_GRANTED.replace("https://a.example", "http://a.example"),
)
def not_https(event: LintEvent) -> Iterator[Report]:
    """The callback of a webhook is an `https` URL, as events are sent to it; servers must refuse any other."""
    delivery = event.params.get("delivery")
    url = delivery.get("url") if isinstance(delivery, dict) else None
    if is_declared(event) and isinstance(url, str) and not url.lower().startswith("https://"):
        yield Report(f"webhook without https: {url[:80]}", url)


@result.warning(
    "EXT506",
    "subscription to a webhook that was granted otherwise than requested",
    about="events/subscribe",
    page=SOURCE + "#subscription-ttl",
    valid=(
        _REFRESHED + _GRANT % (4, "sub_1", _HOUR, _HEALTHY),
        _GRANTED.replace("3600000", "null").replace(_HOUR, "null"),
        _GRANTED.replace("3600000", "1000"),
    ),
    invalid=(
        _GRANTED.replace(_HOUR, "null"),
        _GRANTED.replace("3600000", "600000"),
        _REFRESHED + _GRANT % (4, "sub_2", _HOUR, _HEALTHY),
    ),
)
def granted(event: LintEvent) -> Iterator[Report]:
    """A subscription ends no later than the client suggests, unless that is too short for the server, and is without an
    end only if the client asked for that with `ttlMs: null`. Its `id` stays the same when it is refreshed.
    """
    asked, known = asked_of(event), event.state.memory[Known].granted
    if not is_declared(event):
        return
    until, ttl = event.result.get("refreshBefore", ""), seconds_of(asked.get("ttlMs"))
    if until is None and asked.get("ttlMs", ...) is not None:
        yield Report("subscription without an end, which the client did not ask for")
    elif ttl is not None and ttl >= SHORT:
        seconds = _seconds_until(event, until)
        if seconds is not None and seconds > ttl * 1.1 + SKEW:
            yield Report(f"subscription for {seconds:.0f} s; the client suggested {ttl:g} s")
    key, number = _key(asked), event.result.get("id")
    if key is not None and isinstance(number, str):
        if (before := known.get(key, number)) != number:
            yield Report(f"subscription {before[:60]} is {number[:60]} after its refresh", number)
        known[key] = number
        forget(known)


def _seconds_until(event: LintEvent, moment: Any) -> float | None:
    """Return the seconds from the message to a moment; None if that is not a time."""
    start, end = seconds_since_epoch(event.state.started), seconds_since_epoch(moment)
    return None if start is None or end is None else end - start - event.at


def seconds_since_epoch(moment: Any) -> float | None:
    """Return the Unix time of a time in ISO 8601; None if it is not one, or has no time zone."""
    try:
        found = datetime.fromisoformat(str(moment))
        return None if found.tzinfo is None else found.timestamp()
    except (ValueError, OverflowError):
        return None


@rule.warning(
    "EXT508",
    "events polled faster than nextPollMs",
    on=(EventKind.REQUEST, EventKind.RESULT),
    about="events/poll",
    page=SOURCE + "#response-1",
    valid=(
        POLLED + POLL % (4, 4, EVENT, "false", 1000),
        LISTED + POLL % (3, 3, EVENT, "true", 60000) + POLL % (4, 4, EVENT, "false", 60000),
    ),
    invalid=LISTED + POLL % (3, 3, EVENT, "false", 60000) + POLL % (4, 4, EVENT, "false", 60000),
)
def impatient(event: LintEvent) -> Iterator[Report]:
    """A client waits `nextPollMs` before it asks for the same events again, unless the result has `hasMore`."""
    polls, key = event.state.memory[Known].polls, _key(asked_of(event))
    if key is None or not is_declared(event):
        return
    if isinstance(event.what, Result):
        wait = 0 if event.result.get("hasMore") is True else event.result.get("nextPollMs")
        polls[key] = event.at, seconds_of(wait) or 0.0
        forget(polls)
    elif key in polls:
        waited, wait = event.at - polls[key][0], polls[key][1]
        if waited < wait * 0.9 and wait - waited > JITTER:
            yield Report(
                f"{str(event.params.get('name'))[:60]} polled after {waited:.1f} s; its nextPollMs is {wait * 1000:g}"
            )
