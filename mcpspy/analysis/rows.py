"""The sanitized text of a message in a row: the same text in `show`, the TUI and exported documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from mcpspy.core.protocol.message import (
    Failure,
    Malformed,
    Message,
    Notification,
    Request,
    Result,
    decoded,
    read_frame,
)
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.recording.decode import Damaged, Frame, Header, Note
from mcpspy.core.redact.display import redacted_command, redacted_url
from mcpspy.core.sanitize import sanitize, sanitize_bytes
from mcpspy.core.session.exchange import FAILED, NOT_FORWARDED, Exchange, State, outcome_of
from mcpspy.core.session.rule_notes import RULE, TRUST, about, words
from mcpspy.core.session.session import Change

FROM_CLIENT, FROM_SERVER, NO_DIRECTION = "→", "←", "·"
"""Direction of a message; the host is on the left."""

OK, BAD, OPEN, QUIET, ISSUE = "ok", "bad", "open", "quiet", "issue"
"""Tones: a colour may emphasise them, but the text alone must be clear without it."""


REASON = 1000
"""Maximum characters of a tool error's text in a row."""


class Row(NamedTuple):
    time: str
    arrow: str
    method: str
    subject: str
    id: str
    latency: str
    size: str
    status: str
    tone: str


def row(change: Change) -> Row:
    """Return the row of one change, with the exchange's current state."""
    what, exchange = change.what, change.exchange
    if isinstance(what, Note):
        return _note_row(what)
    if isinstance(what, Damaged):
        text = sanitize_bytes(what.data[:200])
        return Row("", NO_DIRECTION, "(damaged line)", text, "", "", "", sanitize(what.why), ISSUE)
    method, subject, id_text, latency = "", "", "", ""
    if isinstance(what, Request | Notification):
        method, subject = what.method, what.subject or ""
        if isinstance(what, Notification) and method == "notifications/progress":
            subject = progress(what)
    elif isinstance(what, Malformed):
        method, subject = f"({what.why})", ""
    elif exchange is not None:
        method, subject = exchange.request.method, exchange.request.subject or ""
        latency = _latency(exchange, what.at)
    if isinstance(what, Request | Result | Failure):
        id_text = what.id or "null"
    status, tone = _status(change)
    status = with_reason(status, what)
    status, tone = _with_notes(status, tone, [*_effects(change), *flaws(change)])
    status = with_batch(status, what)
    return Row(
        time=moment(what.at),
        arrow=FROM_CLIENT if what.side == CLIENT else FROM_SERVER,
        method=sanitize(method),
        subject=sanitize_bytes(what.data[:200]) if isinstance(what, Malformed) else sanitize(subject),
        id=sanitize(id_text),
        latency=latency,
        size=size(len(what.data)),
        status=sanitize(status),
        tone=tone,
    )


def exchange_row(change: Change, sizes: tuple[int, int | None], now: float) -> Row:
    """Return the row of a request with its response; `sizes` are bytes, `now` is seconds since the start."""
    first, exchange = row(change), change.exchange
    if exchange is None:
        return first
    status, tone = outcome(exchange)
    status = with_reason(status, exchange.answer)
    notes = [*exchange.effects, *(flaws(change) if isinstance(change.what, Request) else ())]
    answer = exchange.answer
    if answer is not None:
        notes += answer.flaws
        latency = _latency(exchange, answer.at)
    else:
        latency = _latency(exchange, now) + "…" if exchange.is_open else ""
        if exchange.progress and exchange.is_open:
            status = f"{status}: {progress(exchange.progress[-1])}"
    status, tone = _with_notes(status, tone, notes)
    status = with_batch(status, exchange.request)
    request_size, answer_size = sizes
    both = f"{size(request_size):>6} {'' if answer_size is None else size(answer_size):>6}"
    return first._replace(latency=latency, size=both, status=sanitize(status), tone=tone)


def _with_notes(status: str, tone: str, notes: list[str]) -> tuple[str, str]:
    if not notes:
        return status, tone
    if status in NOT_FORWARDED:  # The note on the action also names who did it.
        notes = "; ".join(notes).split("; ")
        status = next((note for note in notes if note.startswith(status)), status)
        notes = [note for note in notes if note != status]
    return "; ".join([status, *notes] if status else notes), tone if tone == BAD else ISSUE


def flaws(change: Change) -> list[str]:
    """Return the protocol issues of a message, not sanitized. A malformed message may have none: it is one itself."""
    assert not isinstance(change.what, Note | Damaged)
    return [*change.what.flaws, *([change.flaw] if change.flaw else [])]


def has_issue(change: Change) -> bool:
    """Return True for a message with protocol issues, a malformed message, and a damaged line of the recording."""
    what = change.what
    return isinstance(what, Damaged | Malformed) or (not isinstance(what, Note) and bool(flaws(change)))


def _effects(change: Change) -> list[str]:
    """Return notes on what mcpspy did: it injected the message, or changed it."""
    what = change.what
    by = ["by mcpspy"] if not isinstance(what, Note | Damaged) and what.frame.by is not None else []
    return [*by, *([change.effect] if change.effect else [])]


def server(header: Header) -> str:
    """Return the command or URL of a recorded server, redacted even if the recording is not; not sanitized."""
    return (
        " ".join(redacted_command(header.command)) if header.command else redacted_url(header.upstream or "")
    )


def outcome(exchange: Exchange) -> tuple[str, str]:
    """Return the state of a request in words, and its tone."""
    state = exchange.state
    if state is State.PENDING:
        return ("open" if exchange.is_subscription else "pending"), OPEN
    if state is State.REFUSED:
        return ", ".join([str(state), *exchange.flaws]), BAD
    return _words(state, exchange.answer)


def _words(state: State, answer: Result | Failure | None) -> tuple[str, str]:
    """Return a state in words, with the error or the task of the response that reports it, and its tone."""
    if isinstance(answer, Failure):
        return f"{'late ' if state is State.LATE else ''}{answer.description}", BAD
    if state is State.OK and answer is not None and answer.is_task:
        return "ok, as a task", OK
    tone = {
        State.OK: OK,
        State.CLOSED: OK,
        State.INPUT_REQUIRED: OPEN,
        State.CANCELLED: QUIET,
        State.UNKNOWN: QUIET,
        State.ABANDONED: QUIET,
        State.DROPPED: ISSUE,
        State.LATE: ISSUE,
    }.get(state, BAD)
    return str(state), tone


def with_reason(status: str, message: object) -> str:
    """Return the status of a tool error with the first words of its text."""
    if status != State.TOOL_ERROR or not isinstance(message, Result):
        return status
    reason = " ".join(message.text[:REASON].split())
    return f"{status}: {reason}" if reason else status


def has_failed(exchange: Exchange) -> bool:
    """Return whether the response is a failure, also a late one; a missing response is not one."""
    state, answer = exchange.state, exchange.answer
    return (outcome_of(answer) if state is State.LATE and answer is not None else state) in FAILED


def with_batch(status: str, message: Message) -> str:
    """Return the status after the place of the message in its batch, if it has one: `[1/3] ok`, `batch [1/3]`."""
    if message.index is None:
        return status
    place = f"[{message.index + 1}/{batch_size(message.frame)}]"
    return f"{place} {status}" if status else f"batch {place}"


@lru_cache(1)
def batch_size(frame: Frame) -> int:
    """Return the number of messages in a batch."""
    return len(read_frame(frame))


def progress(message: Notification) -> str:
    """Return a progress notification in words: `2/3 fetching`."""
    body = message.body
    at, total, text = decoded(body.progress), decoded(body.total), decoded(body.message)
    counted = f"{at:g}" if isinstance(at, int | float) else str(at)
    if isinstance(total, int | float):
        counted += f"/{total:g}"
    return f"{counted} {text}" if text else counted


def _latency(exchange: Exchange, at: float) -> str:
    seconds = exchange.latency_at(at)
    return "" if seconds is None else duration(max(seconds, 0.0))


def moment(at: float) -> str:
    return f"{at:.3f}"


def duration(seconds: float) -> str:
    """Return a time span with its unit: `850 µs`, `12.1 ms`, `1.25 s`, `2m05s`."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def size(count: int) -> str:
    """Return a short number of bytes: `312`, `12.3k`, `5.7M`."""
    if count < 1000:
        return str(count)
    number, units = count / 1000, "kMG"
    while number >= 999.95 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.1f}{units[0]}"


def ending(note: Note | None) -> str:
    """Return an exit note in words: `exit 0`, `killed by SIGTERM`; imported sessions have neither."""
    if note is None:
        return ""
    signal = note.fields.get("signal")
    if signal is None and note.fields.get("code") is None:
        return "exit unknown"
    return sanitize(f"killed by {signal}" if signal else f"exit {note.fields.get('code')}")


def ended_badly(note: Note) -> bool:
    return note.fields.get("signal") is not None or note.fields.get("code") not in (0, None)


_HUNG_UP = {
    CLIENT: ": the client disconnected",
    SERVER: ": the server disconnected",
    "mcpspy": ": mcpspy was stopped",
}
"""The peer that ended an HTTP exchange early."""


def _status(change: Change) -> tuple[str, str]:
    what, exchange, status = change.what, change.exchange, change.status
    if isinstance(what, Notification):
        return "", QUIET
    if status is None:
        return "", ISSUE if exchange is None else OK
    if exchange is not None and (isinstance(what, Request) or what is exchange.answer):
        return outcome(exchange)
    return _words(status, what if isinstance(what, Result | Failure) else None)


def _rule(rule: object) -> str:
    if not isinstance(rule, dict):
        return str(rule)
    probability = f" {rule['probability']:.0%}" if isinstance(rule.get("probability"), float) else ""
    return f"{rule.get('rule')}: {rule.get('when') or '(all)'} =>{probability} {rule.get('action')}"


def _note_row(note: Note) -> Row:
    describe = _NOTES.get(note.kind)
    if describe is not None:
        subject, status, tone = describe(note)
    else:
        subject, status, tone = ", ".join(f"{key} {value}" for key, value in note.fields.items()), "", QUIET
    kind, subject, status = map(sanitize, (note.kind, subject, status))
    return Row(moment(note.at), NO_DIRECTION, kind, subject, "", "", "", status, tone)


NoteText = tuple[str, str, str]
"""Subject, status, tone."""


def _exit(note: Note) -> NoteText:
    left = note.fields.get("left")
    status = f"others have its {' and '.join(map(str, left))}" if isinstance(left, list) and left else ""
    return (
        ending(note),
        sanitize(status),
        OK if note.fields.get("code") == 0 else BAD if ended_badly(note) else QUIET,
    )


def _eof(note: Note) -> NoteText:
    return (
        f"the {'client closed stdin' if note.fields.get('from') == CLIENT else 'server closed stdout'}",
        "",
        QUIET,
    )


def _closed(note: Note) -> NoteText:
    fields = note.fields
    status = f"{fields.get('undelivered')} bytes undelivered" if fields.get("undelivered") else ""
    return f"the {fields.get('by')} stopped reading {fields.get('pipe')}", status, ISSUE


def _http(note: Note) -> NoteText:
    fields, answered = note.fields, note.fields.get("status")
    status = str(fields.get("error") or ("no response" if answered is None else f"HTTP {answered}"))
    tone = BAD if isinstance(answered, int) and answered >= 400 else QUIET
    return f"{fields.get('method')} {fields.get('path')}", status, tone


def _http_end(note: Note) -> NoteText:
    side = note.fields.get("hung_up")
    subject = f"HTTP exchange {note.fields.get('http')} ended" + _HUNG_UP.get(str(side), "")
    return subject, "", BAD if side == SERVER else QUIET


def _oauth(note: Note) -> NoteText:
    fields, status = note.fields, note.fields.get("status")
    chain = fields.get("chain")
    steps = " → ".join(map(str, chain)) if isinstance(chain, list) else fields.get("step")
    is_refused = isinstance(status, int) and status >= 400
    outcome = f"HTTP {status}" + (f"; {fields['hint']}" if "hint" in fields else "")
    joined = f" with {', '.join(map(str, joins))}" if isinstance(joins := fields.get("joins"), list) else ""
    return f"OAuth {fields.get('flow')}{joined}: {steps}", outcome, BAD if is_refused else QUIET


def _sse(note: Note) -> NoteText:
    named = {"event": "event", "id": "id", "retry": "retry in ms", "data": "data"}
    parts = (f"{word} {note.fields[key]}" for key, word in named.items() if note.fields.get(key))
    return ", ".join(parts), "", QUIET


def _redirect(note: Note) -> NoteText:
    return f"past mcpspy, to {note.fields.get('location')}", "", ISSUE


def _rules(note: Note) -> NoteText:
    rules = note.fields.get("rules")
    return "; ".join(map(_rule, rules)) if isinstance(rules, list) else "", "", QUIET


def _lost(note: Note) -> NoteText:
    return f"{note.fields.get('entries')} entries were not recorded: {note.fields.get('why')}", "", BAD


def _oversized(note: Note) -> NoteText:
    fields = note.fields
    sender = fields.get("pipe", fields.get("from"))
    return f"{sender}: {fields.get('size')} bytes above --max-body were not recorded", "", ISSUE


_NOTES: dict[str, Callable[[Note], NoteText]] = {
    "stderr": lambda note: (note.text, "", QUIET),
    "exit": _exit,
    "end": lambda _: ("the processes that the server left behind closed its pipes", "", QUIET),
    "eof": _eof,
    "closed": _closed,
    "lost": _lost,
    "oversized": _oversized,
    "error": lambda note: (note.text, "", BAD),
    "signal": lambda note: (f"{note.fields.get('signal')} from the host", "", ISSUE),
    "http": _http,
    "http-end": _http_end,
    "sse": _sse,
    "oauth": _oauth,
    "redirect": _redirect,
    RULE: lambda note: (about(note.fields), words(note.fields), ISSUE),
    TRUST: lambda note: (about(note.fields), words(note.fields), ISSUE),
    "rules": _rules,
    "part": lambda note: (f"continues in {note.fields.get('next')}", "", QUIET),
}
