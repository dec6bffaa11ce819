"""How a stdio session ends: who left first, and in what way."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.finding import Kind
from mcpspy.analysis.lint.rule import ERROR, INFO, LEGACY, WARNING, Rules, Told
from mcpspy.analysis.lint.seen import Seen
from mcpspy.core.protocol.spec import SERVER

RULES = Rules()
rule = RULES.rule

SHUTDOWN = "2025-11-25/basic/lifecycle#shutdown"

GRACE = 1.0
"""Seconds that a server has to leave; a client that sends the signal at once, after a probe, gives it none."""

BYE = '* eof {"from":"client"}\n'

ENDED = ("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP")
"""Signals by which somebody ends a process; by others it falls."""


@rule(
    "LIFE401",
    WARNING,
    "a server that left while the client was there",
    page=SHUTDOWN,
    on=Kind.NOTE,
    about="exit",
    valid=(BYE + '* exit {"code":0}', '* exit {"code":null,"signal":"SIGTERM"}', '@ http\n* exit {"code":0}'),
    invalid=('* exit {"code":0}', '* exit {"code":1}'),
)
def left(seen: Seen) -> Iterator[Told]:
    """The client had not closed the server's stdin yet. An exception in the main loop, a `sys.exit` in a handler, a
    script that ends because nothing awaits it; its stderr, in the recording, may say.
    """
    fields = seen.note.fields
    alone = not seen.known.upstream and seen.conversation.closed_at is None
    if alone and not fields.get("signal") and fields.get("code") is not None:
        yield Told(f"the server left by itself, with exit code {fields.get('code')}", "")


@rule(
    "LIFE402",
    WARNING,
    "a server that does not leave at the end of its stdin",
    page=SHUTDOWN,
    on=Kind.NOTE,
    about="exit",
    valid=(BYE + '* exit {"code":0}',),
    invalid=(
        BYE + '* exit {"code":null,"signal":"SIGTERM"}',
        BYE + '* exit {"code":null,"signal":"SIGKILL"}',
    ),
)
def stayed(seen: Seen) -> Iterator[Told]:
    """The client closed the server's stdin, which is how it says goodbye, and had to send a signal after it: two
    seconds later, in the SDKs. A timer, a thread or a connection that is still open keeps it alive.
    """
    signal = seen.note.fields.get("signal")
    closed_at = seen.conversation.closed_at
    if closed_at is not None and seen.at - closed_at >= GRACE and signal in ENDED:
        yield Told(f"the server did not leave at the end of its stdin: {signal} ended it", "")


@rule(
    "LIFE403",
    ERROR,
    "a server that crashed",
    page=SHUTDOWN,
    on=Kind.NOTE,
    about="exit",
    valid=(BYE + '* exit {"code":0}', '* exit {"code":null,"signal":"SIGKILL"}'),
    invalid=(BYE + '* exit {"code":null,"signal":"SIGSEGV"}',),
)
def crashed(seen: Seen) -> Iterator[Told]:
    """It was ended by a signal that nobody sends on purpose: a crash in native code, an abort, a bus error."""
    signal = seen.note.fields.get("signal")
    if signal and signal not in ENDED:
        yield Told(f"the server died by {signal}", "")


@rule(
    "LIFE404",
    WARNING,
    "a server that ends with an error",
    page=SHUTDOWN,
    on=Kind.NOTE,
    about="exit",
    valid=(BYE + '* exit {"code":0}',),
    invalid=(BYE + '* exit {"code":1}',),
)
def failed(seen: Seen) -> Iterator[Told]:
    """The end of stdin is a normal end: exit with 0. A traceback on stderr says what was in the way."""
    code = seen.note.fields.get("code")
    if seen.conversation.closed_at is not None and isinstance(code, int) and code != 0:
        yield Told(f"the server ended with exit code {code}", "")


@rule(
    "LIFE405",
    WARNING,
    "a server that asks after the client has left",
    page=SHUTDOWN,
    on=Kind.REQUEST,
    by=SERVER,
    until=LEGACY,
    odd=True,
    valid=('> {"id":2,"method":"ping"}\n' + BYE + '< {"id":2,"result":{}}\n* exit {"code":0}',),
    invalid=(BYE + '< {"id":2,"method":"ping"}',),
)
def asks(seen: Seen) -> Iterator[Told]:
    """The client has closed the server's stdin: nobody can answer any more."""
    if seen.conversation.closed_at is not None:
        yield Told(f"{seen.method} after the client closed stdin: it cannot be answered")


@rule(
    "LIFE406",
    INFO,
    "a notification after the client has left",
    page=SHUTDOWN,
    on=Kind.NOTIFICATION,
    by=SERVER,
    odd=True,
    valid=('< {"method":"notifications/x"}\n' + BYE,),
    invalid=(BYE + '< {"method":"notifications/x"}',),
)
def talks(seen: Seen) -> Iterator[Told]:
    """The client has closed the server's stdin, and is likely gone: what is said now is said to nobody."""
    if seen.conversation.closed_at is not None:
        yield Told(f"{seen.method} after the client closed stdin")
