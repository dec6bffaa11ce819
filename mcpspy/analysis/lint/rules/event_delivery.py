"""Events on streams, in polls and in webhooks: their delivery in the draft of Events (`rules.events`).

Webhooks are in the recording of a proxy between a server and the endpoint that receives them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.events import (
    ACTIVE,
    EVENT,
    LISTED,
    MODES,
    OF,
    POLL,
    POLLED,
    PUSHED,
    STREAM,
    STREAMED,
    Known,
    asked_of,
    is_declared,
    rule,
    seconds_since_epoch,
)
from mcpspy.analysis.lint.shapes import draft_shape
from mcpspy.analysis.lint.state import UNREADABLE, forget
from mcpspy.core.protocol.extensions.events import (
    EXTENSION,
    SIGNATURE,
    SOURCE,
    SUBSCRIPTION,
    TIMESTAMP,
    WEBHOOK_ID,
    is_webhook,
)
from mcpspy.core.protocol.message import Failure, Request, Result, meta_raw, text
from mcpspy.core.protocol.spec import CLIENT, META, MODERN, SERVER
from mcpspy.core.recording.decode import Note

IN_FLIGHT = 2.0
"""Seconds after the end of a stream in which its last events may still arrive."""

_END = '> {"method":"notifications/cancelled","params":{"requestId":3}}\n'
_LAST = '< {"id":3,"result":{}}\n'


class _Stream:
    """A request `events/stream`."""

    def __init__(self, name: Any) -> None:
        self.name = name
        """The type of its events."""
        self.is_confirmed = False
        self.ended_at: float | None = None
        """Time of its end; None while it is open."""


class _Streams(OrderedDict[tuple[str | None, str | None], _Stream]):
    """By conversation, and id of `events/stream`."""


@rule.warning(
    "EXT507",
    "event outside its stream",
    on=(EventKind.REQUEST, EventKind.RESULT, EventKind.FAILURE, EventKind.NOTIFICATION),
    about=("events/stream", "notifications/events/*", "notifications/cancelled"),
    page=SOURCE + "#event-delivery",
    valid=(STREAMED + _LAST, STREAMED + _END, STREAMED + "+ 0.1\n" + _END + PUSHED % (OF % 3)),
    invalid=(
        LISTED + STREAM + ACTIVE + PUSHED % "",
        LISTED + STREAM + ACTIVE + PUSHED % (OF % 7),
        LISTED + PUSHED % (OF % 3),
        LISTED + STREAM + PUSHED % (OF % 3),
        STREAMED + _END + "+ 3\n" + PUSHED % (OF % 3),
        STREAMED + _LAST + PUSHED % (OF % 3),
        STREAMED + ACTIVE.replace("/active", "/terminated") + PUSHED % (OF % 3),
    ),
)
def outside(event: LintEvent) -> Iterator[Report]:
    """Each `notifications/events/*` has the id of its `events/stream` as `subscriptionId`, and is sent while that is open:
    after `notifications/events/active` has confirmed it, and until the client cancels it, it has its own result, or
    `notifications/events/terminated` ends it.
    """
    streams, stream = event.state.memory[_Streams], event.conversation.stream
    if event.method == "events/stream":
        if isinstance(event.what, Request):
            streams[stream, event.what.id] = _Stream(event.params.get("name"))
            forget(streams)
        elif isinstance(event.what, Result | Failure) and (stream, event.what.id) in streams:
            streams[stream, event.what.id].ended_at = float("-inf")
    elif event.method == "notifications/cancelled":
        cancelled = streams.get((stream, text(event.notification.body.request_id)))
        if event.side == CLIENT and cancelled is not None and cancelled.ended_at is None:
            cancelled.ended_at = event.at
    elif event.side == SERVER and event.method in _STREAMING and is_declared(event):
        number = text(meta_raw(event.notification.meta, META + "subscriptionId"))
        found = streams.get((stream, number))
        if number is None:
            yield Report(f"{event.method}: _meta has no {META}subscriptionId")
        elif found is None:
            yield Report(f"{event.method} for the unknown stream {number[:40]}")
        elif found.ended_at is not None and event.at - found.ended_at > IN_FLIGHT:
            yield Report(f"{event.method} after the end of its stream {number[:40]}")
        elif event.method == "notifications/events/active":
            found.is_confirmed = True
        elif event.method == "notifications/events/terminated":
            found.ended_at = float("-inf")
        elif not found.is_confirmed and event.method in (
            "notifications/events/event",
            "notifications/events/heartbeat",
        ):
            yield Report(f"{event.method} before notifications/events/active of its stream")


_STREAMING = tuple(method.name for method in EXTENSION.methods if method.sender == SERVER)


@rule.warning(
    "EXT509",
    "other events than the client asked for",
    on=(EventKind.RESULT, EventKind.NOTIFICATION),
    about=(*MODES, "notifications/events/event", "notifications/events/list_changed"),
    by=SERVER,
    page=SOURCE + "#request-eventspoll",
    valid=(POLLED, STREAMED, POLLED.replace("events/list", "events/other")),
    invalid=(
        POLLED.replace('"eventId":"e","name":"mail"', '"eventId":"e","name":"chat"'),
        STREAMED.replace('"eventId":"e","name":"mail"', '"eventId":"e","name":"chat"'),
        POLLED.replace('"cursor":"c"}}', '"cursor":"c","maxEvents":1}}').replace(
            '"result":{"events":[{"event', '"result":{"events":[{' + EVENT + '},{"event'
        ),
        POLLED.replace('"name":"mail","cursor":"c"', '"name":"mail","cursor":null'),
        POLLED.replace('"params":{"name":"mail"', '"params":{"name":"chat"').replace("{" + EVENT + "}", ""),
    ),
)
def others(event: LintEvent) -> Iterator[Report]:
    """The events of a poll or a stream are of its type, no more than `maxEvents`, and none if the cursor is `null`: then
    the client asks for those from now on. A server refuses a type that it
    does not list with -32011: no event of it can arrive.
    """
    known = event.state.memory[Known]
    if event.method == "notifications/events/list_changed":
        known.is_listed = False
    elif not is_declared(event):
        return
    elif event.method == "notifications/events/event":
        number = text(meta_raw(event.notification.meta, META + "subscriptionId"))
        found = event.state.memory[_Streams].get((event.conversation.stream, number))
        if (
            found is not None
            and found.name is not None
            and event.params.get("name") not in (found.name, None)
        ):
            yield Report(f"event {str(event.params.get('name'))[:60]} on a stream of {str(found.name)[:60]}")
    else:
        asked, events = asked_of(event), event.listed("events")
        name, most = asked.get("name"), asked.get("maxEvents")
        if known.is_listed and isinstance(name, str) and name not in known.types:
            yield Report(f"event type {name[:60]} is not listed, and has a result")
        for each in events:
            if isinstance(each.get("name"), str) and each["name"] != name:
                yield Report(f"event {each['name'][:60]} in a poll of {str(name)[:60]}", each)
        if events and asked.get("cursor", ...) is None:
            yield Report(
                f"{len(events)} events; the client asked for those from now on, with the cursor null", events
            )
        if isinstance(most, int) and len(events) > most:
            yield Report(f"{len(events)} events; the client asked for {most}")


class _Cursors(OrderedDict[str, bool]):
    """Event type → True if its first event or result had a cursor."""


@rule.info(
    "EXT510",
    "event type with a cursor at times",
    on=(EventKind.RESULT, EventKind.NOTIFICATION),
    about=(*MODES, "notifications/events/event"),
    by=SERVER,
    page=SOURCE + "#cursor-lifecycle",
    valid=(POLLED + POLL % (4, 4, EVENT, "false", 1000), STREAMED),
    invalid=POLLED + (POLL % (4, 4, EVENT, "false", 1000)).replace('],"cursor":"c"', '],"cursor":null'),
)
def at_times(event: LintEvent) -> Iterator[Report]:
    """An event type whose events can be replayed always has a cursor, any other one always `null`: clients decide once
    whether they keep it.
    """
    is_result = isinstance(event.what, Result)
    given, name = (
        (event.result, asked_of(event).get("name")) if is_result else (event.params, event.params.get("name"))
    )
    if not isinstance(name, str) or "cursor" not in given or not is_declared(event):
        return
    known, has_cursor = event.state.memory[_Cursors], given["cursor"] is not None
    if known.setdefault(name, has_cursor) is (not has_cursor):
        yield Report(
            f"{name[:60]} has {'a cursor, and had none' if has_cursor else 'no cursor, and had one'} before"
        )
        known[name] = has_cursor
    forget(known)


FRESH = 300.0
"""Seconds after which a receiver rejects a webhook."""

LARGE = 256 << 10
"""Maximum bytes of a webhook."""

_HOOK = '@ http bare\n>> {%s}\n= 200 {"webhook-id":"%s","webhook-timestamp":"%s","webhook-signature":"[redacted]","x-mcp-subscription-id":"sub_1"} {"content-length":"0"}\n'
_NOW = "1795219202"
_SENT = _HOOK % (EVENT, "e", _NOW)


class _Webhooks:
    """The webhooks of a session."""

    def __init__(self) -> None:
        self.bodies: dict[int, dict[str, Any]] = {}
        """Body of each one whose headers are not known yet, by the number of its HTTP exchange."""
        self.sent: OrderedDict[str, tuple[str, float]] = OrderedDict()
        """Id of a webhook → its timestamp, and the time of the POST."""


def _is_of_webhook(kind: EventKind, method: str, _: str) -> bool:
    return kind is EventKind.MALFORMED or method == UNREADABLE


@RuleGroup(RULES, page=SOURCE + "#webhook-event-delivery").warning(
    "EXT511",
    "invalid webhook",
    on=(EventKind.MALFORMED, EventKind.POST),
    by=CLIENT,
    only=_is_of_webhook,
    valid=(
        _SENT,
        _HOOK % ('"type":"gap","cursor":"c"', "msg_gap_1", _NOW),
        _HOOK % ('"type":"terminated","error":{"code":-32012,"message":"a"}', "msg_terminated_1", _NOW),
        (_HOOK % ('"type":"verification","challenge":"c"', "msg_verification_1", _NOW))
        + '<< {"challenge":"c"}',
    ),
    invalid=(
        _SENT.replace('"webhook-signature":"[redacted]",', ""),
        _SENT.replace(',"x-mcp-subscription-id":"sub_1"', ""),
        _HOOK % (EVENT, "f", _NOW),
        _HOOK % ('"type":"gap","cursor":"c"', "e", _NOW),
        _HOOK % (EVENT, "e", "2026-11-21T00:00:00Z"),
        _HOOK % (EVENT, "e", "1795218000"),
        _HOOK % (EVENT.replace('"data":{"n":1}', '"data":1'), "e", _NOW),
        _SENT + _SENT.partition("\n")[2],
    ),
)
def webhook(event: LintEvent) -> Iterator[Report]:
    """A webhook is a POST of JSON with `webhook-id`, which is the `eventId` of an event, and `msg_TYPE_…` of another
    message; with `webhook-timestamp` in seconds, which is new for each attempt; with its signature and
    `X-MCP-Subscription-Id`. It has at most 256 KiB.
    """
    known = event.state.memory[_Webhooks]
    if not isinstance(event.what, Note):
        number, body = event.message.frame.http, event.document
        if number is not None and is_webhook(body):
            known.bodies[number] = body
            if len(event.data) > LARGE:
                yield Report(f"webhook of {len(event.data)} bytes")
            yield from _flaws(body)
        return
    request, body = event.post.request, known.bodies.pop((event.post.head or {}).get("http", -1), None)
    if body is None:
        return
    missing = [name for name in (WEBHOOK_ID, TIMESTAMP, SIGNATURE, SUBSCRIPTION) if name not in request]
    if missing:
        yield Report(f"webhook without {', '.join(missing)}", request)
    given, sent = str(request.get(WEBHOOK_ID, "")), str(request.get(TIMESTAMP, ""))
    expected = body.get("eventId", f"msg_{body.get('type')}_")
    if given and (given != expected if "eventId" in body else not given.startswith(expected)):
        yield Report(f"webhook-id is {given[:60]}, not {str(expected)[:60]}", request)
    if sent:
        yield from _stale(event, sent)
        before, at = known.sent.get(given, ("", 0.0))
        if before == sent and event.at - at > 1.5:
            yield Report(f"webhook {given[:60]} sent again with the timestamp of the first attempt", request)
        known.sent[given] = sent, event.at
        forget(known.sent)


def _flaws(body: dict[str, Any]) -> Iterator[Report]:
    shape = draft_shape(EventKind.NOTIFICATION, "notifications/events/event", MODERN)
    if "type" not in body and shape is not None and not shape.accepts(body):
        for report in shape.violations(body, "webhook").get("EXT501", ()):
            yield report._replace(message=report.message.replace("params", "body", 1))


def _stale(event: LintEvent, sent: str) -> Iterator[Report]:
    if not sent.isdecimal() or len(sent) > 12:
        yield Report(f"webhook-timestamp is {sent[:40]}, not a time in seconds", sent)
        return
    started = seconds_since_epoch(event.state.started)
    if started is not None and abs(age := started + event.at - int(sent)) > FRESH:
        yield Report(f"webhook-timestamp is {abs(age):.0f} s {'old' if age > 0 else 'in the future'}", sent)
