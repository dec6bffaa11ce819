"""Life cycle of a session: handshake until 2025-11-25, requests, cancellations."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import CALLED, LEGACY, RESPONSES, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.jsonrpc import PING
from mcpspy.core.protocol.message import Notification, Request, Result, text
from mcpspy.core.protocol.spec import CLIENT, MODERN, REVISIONS, SERVER, other
from mcpspy.core.session import outcome

LIFECYCLE = "2025-11-25/basic/lifecycle"

_MEMBERS = '"protocolVersion":"2025-11-25","capabilities":{},'
_INITIALIZE = '> {"id":1,"method":"initialize","params":{%s"clientInfo":{"name":"a","version":"1"}}}\n'
_INITIALIZE_RESULT = '< {"id":1,"result":{%s"serverInfo":{"name":"b","version":"1"}}}'
INITIALIZING = "@ bare\n" + _INITIALIZE % _MEMBERS
_HANDSHAKE = INITIALIZING + _INITIALIZE_RESULT % _MEMBERS
INITIALIZED = _HANDSHAKE + '\n> {"method":"notifications/initialized"}\n'
_ACCEPTED = '\n> {"method":"notifications/initialized"}'
BYE = '* eof {"from":"client"}\n'
PENDING = '> {"id":2,"method":"ping"}\n'
_CANCEL = '> {"method":"notifications/cancelled","params":{"requestId":%s}}'
END = "\n" + BYE + '* exit {"code":0}'


def _requires_handshake(_: EventKind, method: str, __: str) -> bool:
    """Return whether a request must wait for the handshake; clients of all revisions may begin with a probe."""
    return method not in ("initialize", "ping", "server/discover")


_EARLY = '> {"id":2,"method":"x/list"}\n'
_CONFIRMED = '> {"method":"notifications/initialized"}\n'

handshake = RuleGroup(RULES, page=LIFECYCLE + "#initialization", on=EventKind.REQUEST, valid=PING)
request = handshake.group(only=_requires_handshake, unusual=True)
initialize = handshake.group(about="initialize")
shutdown = RuleGroup(RULES, page=LIFECYCLE + "#shutdown")
exit_note = shutdown.group(on=EventKind.NOTE, about="exit", valid=BYE + '* exit {"code":0}')
rule = RuleGroup(RULES, page="2025-11-25/basic/utilities/cancellation#behavior-requirements")
cancellation = rule.group(
    on=EventKind.NOTIFICATION, about="notifications/cancelled", valid=PENDING + _CANCEL % 2
)


@request.error(
    "LIFE101",
    "request before the handshake",
    by=CLIENT,
    valid=(
        '@ bare\n> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}',
        '@ bare\n> {"id":1,"method":"server/discover"}\n< {"id":1,"error":{"code":-32601,"message":"no"}}',
        '@ 2026-07-28\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[]}}',
    ),
    invalid='@ bare\n> {"id":1,"method":"x/list"}\n< {"id":1,"result":{}}',
)
def before_initialize(event: LintEvent) -> Iterator[Report]:
    """Until 2025-11-25, a client begins with `initialize` and sends only pings before it. Sessions over HTTP are not
    checked: they may be older than the recording.
    """
    if event.message.frame.stream is not None:
        return
    if (
        not event.conversation.initialize_sent
        and (event.request.revision or "") < MODERN
        and (event.revision or "") < MODERN
    ):
        yield Report(f"{event.method} before initialize")


@request.warning(
    "LIFE102",
    "message during the handshake",
    on=CALLED,
    until=LEGACY,
    valid=(
        PING,
        INITIALIZING + '< {"id":1,"method":"ping"}\n> {"id":1,"result":{}}\n' + _INITIALIZE_RESULT % _MEMBERS,
    ),
    invalid=(
        INITIALIZING + _EARLY + _INITIALIZE_RESULT % _MEMBERS + '\n< {"id":2,"result":{}}',
        INITIALIZING + _CONFIRMED + _EARLY + _INITIALIZE_RESULT % _MEMBERS + '\n< {"id":2,"result":{}}',
        INITIALIZING + _CONFIRMED + _INITIALIZE_RESULT % _MEMBERS,
    ),
)
def during_handshake(event: LintEvent) -> Iterator[Report]:
    """Until `initialize` has its response, a client should send only pings, and `notifications/initialized` after it.
    Until it receives that, a server should send only pings and log messages.
    """
    conversation = event.conversation
    if not conversation.initialize_sent:
        return
    if isinstance(event.what, Notification):
        is_early = event.method == "notifications/initialized" and not conversation.is_negotiated
        if is_early and event.side == CLIENT:
            yield Report("notifications/initialized before the response to initialize")
        return
    if event.side == CLIENT and not conversation.is_negotiated:
        yield Report(f"{event.method} before the response to initialize")
    elif event.side == SERVER and not conversation.is_initialized:
        yield Report(f"{event.method} before notifications/initialized")


@request.error(
    "LIFE103",
    "no notifications/initialized",
    by=CLIENT,
    until=LEGACY,
    once=True,
    invalid=_HANDSHAKE + '\n> {"id":2,"method":"x/list"}\n< {"id":2,"result":{}}',
)
def unconfirmed(event: LintEvent) -> Iterator[Report]:
    """The client sends `notifications/initialized` after the response to `initialize` and before its first other
    request. Some servers reject all requests until then.
    """
    conversation = event.conversation
    if conversation.is_negotiated and not conversation.is_initialized:
        yield Report(f"{event.method} without notifications/initialized before it")


@initialize.warning(
    "LIFE104",
    "revision that does not exist or has no handshake",
    page=LIFECYCLE + "#version-negotiation",
    on=(EventKind.REQUEST, EventKind.RESULT),
    valid=(PING, '@ 2024-11-05\n> {"id":2,"method":"ping"}\n< {"id":2,"result":{}}'),
    invalid=(
        "@ bare\n"
        + _INITIALIZE % '"protocolVersion":"1.0","capabilities":{},'
        + _INITIALIZE_RESULT % _MEMBERS,
        INITIALIZING + _INITIALIZE_RESULT % '"protocolVersion":"2026-07-28","capabilities":{},',
    ),
)
def unknown_revision(event: LintEvent) -> Iterator[Report]:
    """The revisions with a handshake are 2024-11-05, 2025-03-26, 2025-06-18 and 2025-11-25. From 2026-07-28 on there is
    no `initialize`; requests carry their revision in `_meta`.
    """
    version = (event.params if isinstance(event.what, Request) else event.result).get("protocolVersion")
    if (
        isinstance(version, str)
        and version != "2024-10-07"
        and (version not in REVISIONS or version >= MODERN)
    ):
        why = "has no handshake" if version in REVISIONS else "does not exist"
        yield Report(f"revision {version[:40]} {why}", version)


@initialize.error(
    "LIFE105",
    "second initialize",
    valid=(
        PING,
        INITIALIZING
        + '< {"id":1,"error":{"code":-32602,"message":"no"}}\n'
        + (_INITIALIZE % _MEMBERS + _INITIALIZE_RESULT % _MEMBERS).replace('"id":1', '"id":2'),
    ),
    invalid=(_INITIALIZE % _MEMBERS + _INITIALIZE_RESULT % _MEMBERS).replace('"id":1', '"id":9'),
)
def second_initialize(event: LintEvent) -> Iterator[Report]:
    """A session has one handshake. To use another revision, the client must open another session."""
    if event.conversation.is_negotiated:
        yield Report("initialize in a session that is already initialized")


@exit_note.warning(
    "LIFE114",
    "client that does not accept the server's revision",
    page=LIFECYCLE + "#version-negotiation",
    valid=(
        _HANDSHAKE + END,
        _HANDSHAKE.replace("2025-11-25", "2024-11-05", 1) + _ACCEPTED + END,
        _HANDSHAKE.replace("2025-11-25", "2024-11-05", 1) + '\n* exit {"code":null,"signal":"SIGKILL"}',
    ),
    invalid=_HANDSHAKE.replace("2025-11-25", "2024-11-05", 1) + END,
)
def refused_revision(event: LintEvent) -> Iterator[Report]:
    """The server offered another revision than the client requested, and the client left by itself. One of them must support more
    revisions: the server should answer with the requested one if it can.
    """
    for conversation in event.state.conversations.values():
        is_closed = conversation.closed_at is not None and not conversation.signal
        has_left = is_closed or event.state.upstream is not None
        if (
            has_left
            and conversation.is_negotiated
            and not (conversation.is_initialized or conversation.is_agreed)
        ):
            yield Report(
                f"the server answered with revision {conversation.revision}, and the client left", ""
            )


@rule.warning(
    "LIFE201",
    "request without a response",
    page="2025-11-25/basic#responses",
    on=EventKind.END,
    valid=(
        PING + END,
        PENDING + _CANCEL % 2 + END,
        '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{}}}' + END,
    ),
    invalid=PENDING + END.lstrip(),
)
def unanswered(event: LintEvent) -> Iterator[Report]:
    """The session ended while the request was pending. Typical causes: a handler that never returns, a deadlock, an
    exception that was not turned into an error, or a client that left too early.
    """
    pending = event.pending
    if pending is not None and pending.is_late:
        return
    about = f" {event.request.subject}" if event.request.subject else ""
    hung_up = pending.hung_up if pending is not None else None
    why = f": {'the ' if hung_up != 'mcpspy' else ''}{hung_up} disconnected" if hung_up else ""
    yield Report(f"no response to {event.method}{about} from the {other(event.side)}{why}")


@rule.info(
    "LIFE202",
    "response to a cancelled request",
    on=RESPONSES,
    unusual=True,
    valid=PENDING + _CANCEL % 2,
    invalid=PENDING + _CANCEL % 2 + '\n< {"id":2,"result":{}}',
)
def late_response(event: LintEvent) -> Iterator[Report]:
    """A cancelled request should get no response. The response and the cancellation may cross, which a recording cannot
    show: check that the server stopped the work.
    """
    if event.pending is not None and outcome.of(event.pending.exchange.state).is_late:
        yield Report(f"response to {event.method} after its cancellation")


@cancellation.error(
    "LIFE203",
    "cancellation of an unknown request",
    valid=(PENDING + _CANCEL % 2, PING + "\n" + _CANCEL % 2),
    invalid=(
        _CANCEL % 9,
        '> {"method":"notifications/cancelled"}',
        '< {"id":2,"method":"ping"}\n' + _CANCEL % 2 + '\n> {"id":2,"result":{}}',
    ),
)
def cancels_nothing(event: LintEvent) -> Iterator[Report]:
    """Each side cancels its own requests, by id. A cancellation may cross the response to its request. Over HTTP without
    session ids, mcpspy cannot assign it to a request.
    """
    is_sse = event.conversation.is_sse
    is_stateless = event.message.frame.stream is not None and not (event.state.session_ids or is_sse)
    request_id = text(event.notification.body.request_id)
    if event.flaw is not None and event.exchange is None and not (is_stateless and request_id is not None):
        yield Report(
            "cancellation without requestId"
            if request_id is None
            else f"cancellation of unknown request id {request_id[:40]}"
        )


@cancellation.error(
    "LIFE204",
    "cancellation of initialize",
    until=LEGACY,
    invalid=INITIALIZING + _CANCEL % 1,
)
def cancels_initialize(event: LintEvent) -> Iterator[Report]:
    """A client must not cancel `initialize`. It should end the session instead."""
    if event.flaw is None and event.exchange is not None and event.exchange.request.method == "initialize":
        yield Report("cancellation of initialize")


@rule.warning(
    "LIFE205",
    "ping without an empty result",
    page="2025-11-25/basic/utilities/ping#behavior-requirements",
    on=RESPONSES,
    about="ping",
    until=LEGACY,
    valid=(
        PING,
        "@ bare\n" + PING.replace('"result":{}', '"error":{"code":-32600,"message":"not initialized"}'),
    ),
    invalid=(
        PING.replace('"result":{}', '"result":{"pong":true}'),
        PING.replace('"result":{}', '"error":{"code":-32601,"message":"no"}'),
    ),
)
def ping_result(event: LintEvent) -> Iterator[Report]:
    """A ping gets an empty object as its result, also from a peer that has nothing else to say. Some hosts disconnect
    after an error.
    """
    if isinstance(event.what, Result):
        if event.result.keys() - {"_meta"}:
            yield Report("the result of the ping is not empty")
    elif event.conversation.is_negotiated and event.failure.code == -32601:
        yield Report(f"the ping was answered with error {event.failure.code}")
