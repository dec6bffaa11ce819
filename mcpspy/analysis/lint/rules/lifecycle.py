"""Life cycle of a session: handshake until 2025-11-25, requests, cancellations, end over stdio.

Also reports entries that are missing in the recording, since they may cause other findings.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RESPONSES, RULES, Report, RuleGroup
from mcpspy.analysis.lint.rules.jsonrpc import PING
from mcpspy.core.counted import counted
from mcpspy.core.protocol.message import Request, text
from mcpspy.core.protocol.spec import CLIENT, MODERN, REVISIONS, SERVER, other
from mcpspy.core.session import outcome

LIFECYCLE = "2025-11-25/basic/lifecycle"

_MEMBERS = '"protocolVersion":"2025-11-25","capabilities":{},'
_INITIALIZE = '> {"id":1,"method":"initialize","params":{%s"clientInfo":{"name":"a","version":"1"}}}\n'
_INITIALIZE_RESULT = '< {"id":1,"result":{%s"serverInfo":{"name":"b","version":"1"}}}'
_INITIALIZING = "@ bare\n" + _INITIALIZE % _MEMBERS
_HANDSHAKE = _INITIALIZING + _INITIALIZE_RESULT % _MEMBERS
INITIALIZED = _HANDSHAKE + '\n> {"method":"notifications/initialized"}\n'
GRACE = 1.0
"""Seconds that a server has to exit before a signal. A client that signals earlier, after a probe, gives it no time."""
_ACCEPTED = '\n> {"method":"notifications/initialized"}'
BYE = '* eof {"from":"client"}\n'
_PENDING = '> {"id":2,"method":"ping"}\n'
_CANCEL = '> {"method":"notifications/cancelled","params":{"requestId":%s}}'
_END = "\n" + BYE + '* exit {"code":0}'
ENDED = ("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP")
"""Signals that end a process on purpose; other signals are crashes."""


def _requires_handshake(_: EventKind, method: str, __: str) -> bool:
    """Return whether a request must wait for the handshake; clients of all revisions may begin with a probe."""
    return method not in ("initialize", "ping", "server/discover")


handshake = RuleGroup(RULES, page=LIFECYCLE + "#initialization", on=EventKind.REQUEST, valid=PING)
request = handshake.group(only=_requires_handshake, unusual=True)
initialize = handshake.group(about="initialize")
shutdown = RuleGroup(RULES, page=LIFECYCLE + "#shutdown")
exit_note = shutdown.group(on=EventKind.NOTE, about="exit", valid=BYE + '* exit {"code":0}')
late = shutdown.group(on=EventKind.REQUEST, by=SERVER, unusual=True)
rule = RuleGroup(RULES, page="2025-11-25/basic/utilities/cancellation#behavior-requirements")
cancellation = rule.group(
    on=EventKind.NOTIFICATION, about="notifications/cancelled", valid=_PENDING + _CANCEL % 2
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
    "request during the handshake",
    until=LEGACY,
    valid=(
        PING,
        _INITIALIZING
        + '< {"id":1,"method":"ping"}\n> {"id":1,"result":{}}\n'
        + _INITIALIZE_RESULT % _MEMBERS,
    ),
    invalid=tuple(
        _INITIALIZING
        + initialized
        + '> {"id":2,"method":"x/list"}\n'
        + _INITIALIZE_RESULT % _MEMBERS
        + '\n< {"id":2,"result":{}}'
        for initialized in ("", '> {"method":"notifications/initialized"}\n')
    ),
)
def during_handshake(event: LintEvent) -> Iterator[Report]:
    """Until `initialize` has its response, a client should send only pings. Until it receives
    `notifications/initialized`, a server should send only pings and log messages.
    """
    conversation = event.conversation
    if not conversation.initialize_sent:
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
        _INITIALIZING + _INITIALIZE_RESULT % '"protocolVersion":"2026-07-28","capabilities":{},',
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
        _INITIALIZING
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
        _HANDSHAKE + _END,
        _HANDSHAKE.replace("2025-11-25", "2024-11-05", 1) + _ACCEPTED + _END,
        _HANDSHAKE.replace("2025-11-25", "2024-11-05", 1) + '\n* exit {"code":null,"signal":"SIGKILL"}',
    ),
    invalid=_HANDSHAKE.replace("2025-11-25", "2024-11-05", 1) + _END,
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
        PING + _END,
        _PENDING + _CANCEL % 2 + _END,
        '@ 2026-07-28\n> {"id":2,"method":"subscriptions/listen","params":{"notifications":{}}}' + _END,
    ),
    invalid=_PENDING + _END.lstrip(),
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
    valid=_PENDING + _CANCEL % 2,
    invalid=_PENDING + _CANCEL % 2 + '\n< {"id":2,"result":{}}',
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
    valid=(_PENDING + _CANCEL % 2, PING + "\n" + _CANCEL % 2),
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
    invalid=_INITIALIZING + _CANCEL % 1,
)
def cancels_initialize(event: LintEvent) -> Iterator[Report]:
    """A client must not cancel `initialize`. It should end the session instead."""
    if event.flaw is None and event.exchange is not None and event.exchange.request.method == "initialize":
        yield Report("cancellation of initialize")


@rule.warning(
    "LIFE205",
    "ping with a result",
    page="2025-11-25/basic/utilities/ping#behavior-requirements",
    on=EventKind.RESULT,
    about="ping",
    until=LEGACY,
    valid=PING,
    invalid=PING.replace('"result":{}', '"result":{"pong":true}'),
)
def ping_result(event: LintEvent) -> Iterator[Report]:
    """The result of a ping is an empty object."""
    if event.result.keys() - {"_meta"}:
        yield Report("the result of the ping is not empty")


@exit_note.info(
    "LIFE408",
    "server ended by a signal before its stdin was closed",
    valid=(
        BYE + '* signal {"signal":"SIGTERM"}\n* exit {"code":0}',
        '* signal {"signal":"SIGTERM"}\n' + BYE + '* exit {"code":0}',  # Both at once.
    ),
    invalid='* signal {"signal":"SIGTERM"}\n* exit {"code":null,"signal":"SIGTERM"}',
)
def no_shutdown(event: LintEvent) -> Iterator[Report]:
    """A client should first close the server's stdin, so that the server can end by itself, and send a signal later."""
    signal = event.conversation.signal
    if signal in ("SIGTERM", "SIGKILL") and event.conversation.closed_at is None and not event.state.upstream:
        yield Report(f"{signal} before the client closed the server's stdin", "")


@exit_note.warning(
    "LIFE401",
    "server that exits before the client closes stdin",
    valid=(
        BYE + '* exit {"code":0}',
        '* exit {"code":null,"signal":"SIGTERM"}',
        '@ http\n* exit {"code":0}',
        '* exit {"code":0,"signal":null,"left":["stdout","stderr"]}',
    ),
    invalid=('* exit {"code":0}', '* exit {"code":1}', '* exit {"code":1,"signal":null,"left":["stderr"]}'),
)
def early_exit(event: LintEvent) -> Iterator[Report]:
    """The client had not closed the server's stdin yet. Typical causes: an exception in the main loop, `sys.exit` in a
    handler, or a script that ends because nothing is awaited. Check its stderr in the recording.
    """
    fields = event.note.fields
    is_stdio_open = not event.state.upstream and event.conversation.closed_at is None
    if (
        is_stdio_open
        and not fields.get("signal")
        and fields.get("code") is not None
        and not (fields.get("code") == 0 and fields.get("left"))  # A launcher, which left its server behind.
        and not _never_ran(event)
    ):
        code = fields.get("code")
        yield Report(
            f"the server exited before the client closed stdin, with exit code {code}{_unanswered(event)}", ""
        )


@exit_note.error(
    "LIFE407",
    "server that could not be started",
    page="2025-11-25/basic/transports#stdio",
    valid=(BYE + '* exit {"code":0}', _PENDING + '< {"id":2,"result":{}}\n' + BYE + '* exit {"code":0}'),
    invalid=("@ bare\n" + '* exit {"code":127}', _INITIALIZING + BYE + '* exit {"code":126}'),
)
def not_started(event: LintEvent) -> Iterator[Report]:
    """Shells and `env` exit with 127 if they do not find the command, and with 126 if they cannot execute it. Check the
    command and the PATH: a host that starts from a desktop has another PATH than a terminal.
    """
    if _never_ran(event):
        code = event.note.fields.get("code")
        why = "command not found" if code == 127 else "command cannot be executed"
        yield Report(f"the server did not start: {why} (exit code {code}){_unanswered(event)}", "")


def _never_ran(event: LintEvent) -> bool:
    known = event.conversation.has_capabilities or event.conversation.server is not None
    return event.note.fields.get("code") in (126, 127) and not known and not event.state.upstream


def _unanswered(event: LintEvent) -> str:
    """Return the number of pending requests in words; empty without any."""
    count = len(event.state.open)
    return f"; {counted(count, 'request')} without a response" if count else ""


@exit_note.warning(
    "LIFE402",
    "server that does not exit when its stdin is closed",
    invalid=(
        BYE + '* exit {"code":null,"signal":"SIGTERM"}',
        BYE + '* exit {"code":null,"signal":"SIGKILL"}',
    ),
)
def no_exit(event: LintEvent) -> Iterator[Report]:
    """The client closed the server's stdin to end the session and then had to send a signal, which the SDKs do after
    two seconds. A timer, a thread or an open connection keeps the server alive.
    """
    signal = event.note.fields.get("signal")
    closed_at = event.conversation.closed_at
    if closed_at is not None and event.at - closed_at >= GRACE and signal in ENDED:
        yield Report(f"the server did not exit when its stdin was closed: {signal} ended it", "")


@exit_note.error(
    "LIFE403",
    "server that crashed",
    valid=(BYE + '* exit {"code":0}', '* exit {"code":null,"signal":"SIGKILL"}'),
    invalid=BYE + '* exit {"code":null,"signal":"SIGSEGV"}',
)
def crashed(event: LintEvent) -> Iterator[Report]:
    """A signal that is not sent on purpose ended the server: a crash in native code, an abort, a bus error."""
    signal = event.note.fields.get("signal")
    if signal and signal not in ENDED:
        yield Report(f"the server was killed by {signal}{_unanswered(event)}", "")


@exit_note.warning("LIFE404", "server that exits with an error", invalid=BYE + '* exit {"code":1}')
def failed(event: LintEvent) -> Iterator[Report]:
    """A closed stdin is a normal end: the server should exit with 0. Look for a traceback on its stderr."""
    code = event.note.fields.get("code")
    if event.conversation.closed_at is not None and isinstance(code, int) and code and not _never_ran(event):
        yield Report(f"the server exited with code {code}", "")


@late.warning(
    "LIFE405",
    "request from the server after the client closed stdin",
    until=LEGACY,
    valid='> {"id":2,"method":"ping"}\n' + BYE + '< {"id":2,"result":{}}\n* exit {"code":0}',
    invalid=BYE + '< {"id":2,"method":"ping"}',
)
def late_request(event: LintEvent) -> Iterator[Report]:
    """The client closed the server's stdin, so it can no longer respond."""
    if event.conversation.closed_at is not None:
        yield Report(f"{event.method} after the client closed stdin: no response is possible")


@late.info(
    "LIFE406",
    "notification from the server after the client closed stdin",
    on=EventKind.NOTIFICATION,
    valid='< {"method":"notifications/x"}\n' + BYE,
    invalid=BYE + '< {"method":"notifications/x"}',
)
def late_notification(event: LintEvent) -> Iterator[Report]:
    """The client closed the server's stdin and has probably exited, so it does not receive the notification."""
    if event.conversation.closed_at is not None:
        yield Report(f"{event.method} after the client closed stdin")


@exit_note.info(
    "REC101",
    "missing entries",
    page="https://www.rfc-editor.org/rfc/rfc8259",
    about=("lost", "damaged", "oversized"),
    valid='* stderr {"text":"a"}',
    invalid=(
        '* lost {"entries":3,"why":"No space left on device"}',
        '* oversized {"from":"server","size":100000000,"sha256":"00"}',
        '* damaged {"why":"not JSON","text":"{"}',
    ),
)
def missing(event: LintEvent) -> Iterator[Report]:
    """The disk was full, a line of the file was modified, or a message was larger than `--max-body`. The missing entries were not checked, and a response to a
    missing request looks unsolicited.
    """
    fields = event.note.fields
    if event.note.kind == "lost":
        yield Report(f"{fields.get('entries')} entries are missing here: {fields.get('why')}")
    elif event.note.kind == "oversized":
        what = "message" if "pipe" not in fields else f"line of {fields['pipe']}"
        yield Report(f"a {what} of {fields.get('size')} bytes from the {fields.get('from')} is missing here")
    else:
        yield Report(f"unreadable line: {fields.get('why')}", fields.get("text"))
