"""The life of a session: handshake until 2025-11-25, requests, cancellations, and the end over stdio.

Also reports entries that are missing in the recording, which other findings may be due to.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, RESPONSES, LintRule, Report, RuleGroup
from mcpspy.analysis.lint.rules.jsonrpc import PING
from mcpspy.core.protocol.message import Request, text
from mcpspy.core.protocol.spec import CLIENT, MODERN, REVISIONS, SERVER, other

RULES: list[LintRule] = []

LIFECYCLE = "2025-11-25/basic/lifecycle"

_MEMBERS = '"protocolVersion":"2025-11-25","capabilities":{},'
_INITIALIZE = '> {"id":1,"method":"initialize","params":{%s"clientInfo":{"name":"a","version":"1"}}}\n'
_INITIALIZE_RESULT = '< {"id":1,"result":{%s"serverInfo":{"name":"b","version":"1"}}}'
_INITIALIZING = "@ bare\n" + _INITIALIZE % _MEMBERS
_HANDSHAKE = _INITIALIZING + _INITIALIZE_RESULT % _MEMBERS
INITIALIZED = _HANDSHAKE + '\n> {"method":"notifications/initialized"}\n'
GRACE = 1.0
"""Seconds a server has to exit before a signal; a client that signals at once, after a probe, gives it none."""
BYE = '* eof {"from":"client"}\n'
_PENDING = '> {"id":2,"method":"ping"}\n'
_CANCEL = '> {"method":"notifications/cancelled","params":{"requestId":%s}}'
_END = "\n" + BYE + '* exit {"code":0}'
ENDED = ("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP")
"""Signals that end a process on purpose; others are crashes."""


def _requires_handshake(_: EventKind, method: str, __: str) -> bool:
    """Return whether a request must wait for the handshake; clients of all revisions begin with a probe."""
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
    "a request before the handshake",
    by=CLIENT,
    valid=(
        '@ bare\n> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}',
        '@ bare\n> {"id":1,"method":"server/discover"}\n< {"id":1,"error":{"code":-32601,"message":"no"}}',
        '@ 2026-07-28\n> {"id":1,"method":"tools/list"}\n< {"id":1,"result":{"tools":[]}}',
    ),
    invalid='@ bare\n> {"id":1,"method":"x/list"}\n< {"id":1,"result":{}}',
)
def before_initialize(event: LintEvent) -> Iterator[Report]:
    """Until 2025-11-25 a client begins with `initialize`, and sends nothing before it but pings. Over HTTP this is
    not looked at: the session may be older than the recording.
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
    "a request before the handshake is over",
    until=LEGACY,
    valid=(
        PING,
        _INITIALIZING
        + '< {"id":1,"method":"ping"}\n> {"id":1,"result":{}}\n'
        + _INITIALIZE_RESULT % _MEMBERS,
    ),
    invalid=_INITIALIZING
    + '> {"id":2,"method":"x/list"}\n'
    + _INITIALIZE_RESULT % _MEMBERS
    + '\n< {"id":2,"result":{}}',
)
def during_handshake(event: LintEvent) -> Iterator[Report]:
    """Until `initialize` is answered, a client should send nothing but pings; a server nothing but pings and log
    messages until it has heard `notifications/initialized`.
    """
    conversation = event.conversation
    if not conversation.initialize_sent:
        return
    if event.side == CLIENT and not conversation.is_negotiated:
        yield Report(f"{event.method} before initialize was answered")
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
    """The client says `notifications/initialized` once `initialize` is answered, and before it asks for anything.
    Some servers refuse everything until then.
    """
    conversation = event.conversation
    if conversation.is_negotiated and not conversation.is_initialized:
        yield Report(f"{event.method}, but no notifications/initialized before it")


@initialize.warning(
    "LIFE104",
    "a revision that there is not, or that has no handshake",
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
    """Revisions are dates: 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25. From 2026-07-28 on there is no
    `initialize`; requests carry their revision in `_meta`.
    """
    version = (event.params if isinstance(event.what, Request) else event.result).get("protocolVersion")
    if (
        isinstance(version, str)
        and version != "2024-10-07"
        and (version not in REVISIONS or version >= MODERN)
    ):
        why = "has no handshake" if version in REVISIONS else "is none"
        yield Report(f"the revision {version[:40]} {why}", version)


@initialize.error(
    "LIFE105",
    "initialize, again",
    valid=(
        PING,
        _INITIALIZING
        + '< {"id":1,"error":{"code":-32602,"message":"no"}}\n'
        + (_INITIALIZE % _MEMBERS + _INITIALIZE_RESULT % _MEMBERS).replace('"id":1', '"id":2'),
    ),
    invalid=(_INITIALIZE % _MEMBERS + _INITIALIZE_RESULT % _MEMBERS).replace('"id":1', '"id":9'),
)
def second_initialize(event: LintEvent) -> Iterator[Report]:
    """There is one handshake in a session. Who wants another revision opens another session."""
    if event.conversation.is_negotiated:
        yield Report("initialize in a session that is initialized")


@rule.warning(
    "LIFE201",
    "a request that was never answered",
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
    """The session ended, and it still waited. A handler that never returns, a deadlock, an exception that nobody
    turned into an error; or a client that left too early.
    """
    about = f" {event.request.subject}" if event.request.subject else ""
    yield Report(f"{event.method}{about} was never answered by the {other(event.side)}")


@rule.info(
    "LIFE202",
    "an answer to what was cancelled",
    on=RESPONSES,
    unusual=True,
    valid=_PENDING + _CANCEL % 2,
    invalid=_PENDING + _CANCEL % 2 + '\n< {"id":2,"result":{}}',
)
def late_response(event: LintEvent) -> Iterator[Report]:
    """A cancelled request should not be answered any more. That the two cross on their way is allowed, and cannot be
    told from outside: look whether the work was stopped.
    """
    if event.flaw == "answered after it was cancelled":
        yield Report(f"{event.method} was answered after it was cancelled")


@cancellation.error(
    "LIFE203",
    "a cancellation of nothing",
    valid=(_PENDING + _CANCEL % 2, PING + "\n" + _CANCEL % 2),
    invalid=(
        _CANCEL % 9,
        '> {"method":"notifications/cancelled"}',
        '< {"id":2,"method":"ping"}\n' + _CANCEL % 2 + '\n> {"id":2,"result":{}}',
    ),
)
def cancels_nothing(event: LintEvent) -> Iterator[Report]:
    """Each side cancels its own requests, by the id it gave them. That the answer is on its way already is fine."""
    if event.flaw is not None and event.flaw.startswith("cancels "):
        request_id = text(event.notification.body.request_id)
        yield Report(event.flaw if request_id is None else f"{event.flaw}: requestId {request_id[:40]}")


@cancellation.error(
    "LIFE204",
    "a cancellation of initialize",
    until=LEGACY,
    invalid=_INITIALIZING + _CANCEL % 1,
)
def cancels_initialize(event: LintEvent) -> Iterator[Report]:
    """A client must not cancel `initialize`: end the session instead."""
    if event.flaw is None and event.exchange is not None and event.exchange.request.method == "initialize":
        yield Report("cancels initialize")


@exit_note.warning(
    "LIFE401",
    "a server that left while the client was there",
    valid=(BYE + '* exit {"code":0}', '* exit {"code":null,"signal":"SIGTERM"}', '@ http\n* exit {"code":0}'),
    invalid=('* exit {"code":0}', '* exit {"code":1}'),
)
def early_exit(event: LintEvent) -> Iterator[Report]:
    """The client had not closed the server's stdin yet. An exception in the main loop, a `sys.exit` in a handler, a
    script that ends because nothing awaits it; its stderr, in the recording, may say.
    """
    fields = event.note.fields
    alone = not event.state.upstream and event.conversation.closed_at is None
    if alone and not fields.get("signal") and fields.get("code") is not None:
        yield Report(f"the server left by itself, with exit code {fields.get('code')}", "")


@exit_note.warning(
    "LIFE402",
    "a server that does not leave at the end of its stdin",
    invalid=(
        BYE + '* exit {"code":null,"signal":"SIGTERM"}',
        BYE + '* exit {"code":null,"signal":"SIGKILL"}',
    ),
)
def no_exit(event: LintEvent) -> Iterator[Report]:
    """The client closed the server's stdin, which is how it says goodbye, and had to send a signal after it: two
    seconds later, in the SDKs. A timer, a thread or a connection that is still open keeps it alive.
    """
    signal = event.note.fields.get("signal")
    closed_at = event.conversation.closed_at
    if closed_at is not None and event.at - closed_at >= GRACE and signal in ENDED:
        yield Report(f"the server did not leave at the end of its stdin: {signal} ended it", "")


@exit_note.error(
    "LIFE403",
    "a server that crashed",
    valid=(BYE + '* exit {"code":0}', '* exit {"code":null,"signal":"SIGKILL"}'),
    invalid=BYE + '* exit {"code":null,"signal":"SIGSEGV"}',
)
def crashed(event: LintEvent) -> Iterator[Report]:
    """It was ended by a signal that nobody sends on purpose: a crash in native code, an abort, a bus error."""
    signal = event.note.fields.get("signal")
    if signal and signal not in ENDED:
        yield Report(f"the server died by {signal}", "")


@exit_note.warning("LIFE404", "a server that ends with an error", invalid=BYE + '* exit {"code":1}')
def failed(event: LintEvent) -> Iterator[Report]:
    """The end of stdin is a normal end: exit with 0. A traceback on stderr says what was in the way."""
    code = event.note.fields.get("code")
    if event.conversation.closed_at is not None and isinstance(code, int) and code != 0:
        yield Report(f"the server ended with exit code {code}", "")


@late.warning(
    "LIFE405",
    "a server that asks after the client has left",
    until=LEGACY,
    valid='> {"id":2,"method":"ping"}\n' + BYE + '< {"id":2,"result":{}}\n* exit {"code":0}',
    invalid=BYE + '< {"id":2,"method":"ping"}',
)
def late_request(event: LintEvent) -> Iterator[Report]:
    """The client has closed the server's stdin: nobody can answer any more."""
    if event.conversation.closed_at is not None:
        yield Report(f"{event.method} after the client closed stdin: it cannot be answered")


@late.info(
    "LIFE406",
    "a notification after the client has left",
    on=EventKind.NOTIFICATION,
    valid='< {"method":"notifications/x"}\n' + BYE,
    invalid=BYE + '< {"method":"notifications/x"}',
)
def late_notification(event: LintEvent) -> Iterator[Report]:
    """The client has closed the server's stdin, and is likely gone: what is said now is said to nobody."""
    if event.conversation.closed_at is not None:
        yield Report(f"{event.method} after the client closed stdin")


@exit_note.info(
    "REC101",
    "entries that are missing",
    page="https://www.rfc-editor.org/rfc/rfc8259",
    about=("lost", "damaged"),
    valid='* stderr {"text":"a"}',
    invalid=(
        '* lost {"entries":3,"why":"No space left on device"}',
        '* damaged {"why":"not JSON","text":"{"}',
    ),
)
def missing(event: LintEvent) -> Iterator[Report]:
    """The disk was full, or a line of the file was changed: what was there was not looked at, and an answer to what
    is missing looks like one that nobody asked for.
    """
    fields = event.note.fields
    if event.note.kind == "lost":
        yield Report(f"{fields.get('entries')} entries are missing here: {fields.get('why')}")
    else:
        yield Report(f"a line that no entry can be read from: {fields.get('why')}", fields.get("text"))
