"""End of a session over stdio: the server's exit, messages after it, and missing entries."""

from __future__ import annotations

from collections.abc import Iterator

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind
from mcpspy.analysis.lint.rule import LEGACY, Report
from mcpspy.analysis.lint.rules.lifecycle import (
    BYE,
    INITIALIZING,
    PENDING,
    exit_note,
    shutdown,
)
from mcpspy.core.counted import counted
from mcpspy.core.protocol.spec import SERVER

GRACE = 1.0
"""Seconds that a server has to exit before a signal. A client that signals earlier, after a probe, gives it no time."""
ENDED = ("SIGTERM", "SIGKILL", "SIGINT", "SIGHUP")
"""Signals that end a process on purpose; other signals are crashes."""

late = shutdown.group(on=EventKind.REQUEST, by=SERVER, unusual=True)


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
    valid=(BYE + '* exit {"code":0}', PENDING + '< {"id":2,"result":{}}\n' + BYE + '* exit {"code":0}'),
    invalid=("@ bare\n" + '* exit {"code":127}', INITIALIZING + BYE + '* exit {"code":126}'),
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
