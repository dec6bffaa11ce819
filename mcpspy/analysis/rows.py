"""The sanitized text of a message in a row: the same text in `show`, the TUI and exported documents."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from mcpspy.core import counted
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
from mcpspy.core.session import mock_notes, restart_notes, translation_notes
from mcpspy.core.session import outcome as judge
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.http_exchanges import RecordedHttpExchange
from mcpspy.core.session.mock_notes import MOCK
from mcpspy.core.session.restart_notes import RESTART
from mcpspy.core.session.rule_notes import RULE, TRUST, about, words
from mcpspy.core.session.session import Change
from mcpspy.core.session.translation_notes import TRANSLATE, TRANSLATION

FROM_CLIENT, FROM_SERVER, NO_DIRECTION = "→", "←", "·"
"""Direction of a message; the host is on the left."""

OK, BAD, OPEN, QUIET, ISSUE = judge.OK, judge.BAD, judge.OPEN, judge.QUIET, judge.ISSUE
"""Tones of rows: those of outcomes."""


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
        return _note_row(what, change.effect, change.http)
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
        arrow=arrow(what.side),
        method=sanitize(method),
        subject=sanitize_bytes(what.data[:200]) if isinstance(what, Malformed) else sanitize(subject),
        id=sanitize(id_text),
        latency=latency,
        size=size(len(what.data)),
        status=sanitize(status),
        tone=tone,
    )


def arrow(side: str) -> str:
    return FROM_CLIENT if side == CLIENT else FROM_SERVER


def exchange_row(change: Change, sizes: tuple[int, int | None], now: float) -> Row:
    """Return the row of a request with its response; `sizes` are bytes, `now` is seconds since the start."""
    first, exchange = row(change), change.exchange
    if exchange is None:
        return first
    status, tone = outcome(exchange)
    status = with_reason(status, exchange.final or exchange.answer)
    notes = [*exchange.effects, *(flaws(change) if isinstance(change.what, Request) else ())]
    answer = exchange.answer
    if answer is not None:
        notes += answer.flaws
    if exchange.is_open:
        latency = _latency(exchange, now) + "…"
        if exchange.progress:
            status = f"{exchange.state}: {progress(exchange.progress[-1])}"
    else:
        latency = "" if exchange.latency is None else duration(max(exchange.latency, 0.0))
    status, tone = _with_notes(status, tone, notes)
    status = with_batch(status, exchange.request)
    request_size, answer_size = sizes
    both = f"{size(request_size):>6} {'' if answer_size is None else size(answer_size):>6}"
    return first._replace(latency=latency, size=both, status=sanitize(status), tone=tone)


_WITHHELD = frozenset(state for state, each in judge.OUTCOMES.items() if each.is_withheld)


def _with_notes(status: str, tone: str, notes: list[str]) -> tuple[str, str]:
    if not notes:
        return status, tone
    if status in _WITHHELD:  # The note on the action also names who did it.
        notes = "; ".join(notes).split("; ")
        status = next((note for note in notes if note.startswith(status)), status)
        notes = [note for note in notes if note != status]
    return "; ".join([status, *notes] if status else notes), tone if tone == BAD else ISSUE


def with_link(status: str, words: str) -> str:
    """Return a status followed by the link of its request to an app (`analysis.apps`), sanitized."""
    return "; ".join(filter(None, (status, sanitize(words))))


def flaws(change: Change) -> list[str]:
    """Return the protocol issues of a message, not sanitized. A malformed message may have none: it is one itself."""
    assert not isinstance(change.what, Note | Damaged)
    return [*change.what.flaws, *([change.flaw] if change.flaw else [])]


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
    return judge.describe(exchange)


def with_reason(status: str, message: object) -> str:
    """Return the status of a tool error with the first words of its text."""
    if not status.endswith(State.TOOL_ERROR) or not isinstance(message, Result):
        return status
    reason = " ".join(message.text[:REASON].split())
    return f"{status}: {reason}" if reason else status


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
    return progress_of(decoded(body.progress), decoded(body.total), decoded(body.message))


def progress_of(at: object, total: object, text: object) -> str:
    """Return the members of a progress notification in words."""
    counted = f"{at:g}" if isinstance(at, int | float) else str(at)
    if isinstance(total, int | float):
        counted += f"/{total:g}"
    return f"{counted} {text}" if text else counted


def _latency(exchange: Exchange, at: float) -> str:
    seconds = exchange.latency_at(at)
    return "" if seconds is None else duration(max(seconds, 0.0))


duration = counted.duration


def moment(at: float) -> str:
    return f"{at:.3f}"


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
    return judge.ended_badly(note.fields.get("code"), note.fields.get("signal"))


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
        if change.http is not None and isinstance(what, Failure):
            return what.description, QUIET
        if exchange is not None and isinstance(what, Result) and what is exchange.answer:
            return "a task", OPEN
        if exchange is not None and isinstance(what, Request) and what is not exchange.request:
            return f"sent again after {exchange.redirect}", QUIET
        return "", ISSUE if exchange is None else OK
    if exchange is not None and exchange.poll_of is not None and what is exchange.poll_of.final:
        return outcome(exchange.poll_of)
    if exchange is not None and (isinstance(what, Request) or what is exchange.answer):
        return outcome(exchange)
    answer = what if isinstance(what, Result | Failure) else None
    return judge.words(status, answer), judge.of(status).tone


def _rule(rule: object) -> str:
    if not isinstance(rule, dict):
        return str(rule)
    probability = f" {rule['probability']:.0%}" if isinstance(rule.get("probability"), float) else ""
    return f"{rule.get('rule')}: {rule.get('when') or '(all)'} =>{probability} {rule.get('action')}"


def _note_row(note: Note, effect: str | None, http: RecordedHttpExchange | None) -> Row:
    describe, latency = _NOTES.get(note.kind), ""
    if note.kind == "http-end" and effect is not None:  # A rule ended it.
        subject, status, tone = f"HTTP exchange {note.fields.get('http')} ended: {effect}", "", ISSUE
    elif http is not None:
        subject, status, tone = _get(http) if http.is_get else _exchange(note, http)
        took = http.took if note.kind == "http-end" or http.is_get else max(note.at - http.asked_at, 0.0)
        latency = "" if took is None else duration(took)
    elif describe is not None:
        subject, status, tone = describe(note)
    else:
        subject, status, tone = ", ".join(f"{key} {value}" for key, value in note.fields.items()), "", QUIET
    kind, subject, status = map(sanitize, (note.kind, subject, status))
    return Row(moment(note.at), NO_DIRECTION, kind, subject, "", latency, "", status, tone)


NoteText = tuple[str, str, str]
"""Subject, status, tone."""


def _exit(note: Note) -> NoteText:
    left = note.fields.get("left")
    status = f"others have its {' and '.join(map(str, left))}" if isinstance(left, list) and left else ""
    return (
        ending(note).removeprefix("exit "),
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


def _exchange(note: Note, http: RecordedHttpExchange) -> NoteText:
    """Return the text of the head or the end of an exchange, with the text of a refusal that no request shows."""
    subject, status, tone = _NOTES[note.kind](note)
    if http.words and not http.is_told and note.kind == "http" and "error" not in note.fields:
        status = f"{status}: {http.words}"
    return subject, status, QUIET if http.is_harmless and tone == BAD and note.kind == "http" else tone


def _get(http: RecordedHttpExchange) -> NoteText:
    """Return the text of a GET stream."""
    tone = BAD if not http.is_harmless else ISSUE if http.hung_up == SERVER else QUIET
    return http.describe(), "", tone


def _http2(note: Note) -> NoteText:
    """Return a frame of HTTP/2 on the pipes: its sender, its type, its stream, and what it carries."""
    fields = note.fields
    headers = fields.get("headers")
    named = headers if isinstance(headers, dict) else {}
    stream = f" stream {fields['id']}" if fields.get("id") else ""
    parts = [f"{fields.get('from')}: {fields.get('frame')}{stream}"]
    parts += [str(named[name]) for name in (":method", ":path", ":status") if name in named]
    return " ".join([*parts, note.text[:200]]).strip(), size(int(fields.get("size") or 0)), QUIET


def _http_end(note: Note) -> NoteText:
    side = note.fields.get("hung_up")
    subject = f"HTTP exchange {note.fields.get('http')} ended" + _HUNG_UP.get(str(side), "")
    return subject, "", BAD if side == SERVER else QUIET


def _oauth(note: Note) -> NoteText:
    fields, status = note.fields, note.fields.get("status")
    chain = fields.get("chain")
    steps = " → ".join(map(str, chain)) if isinstance(chain, list) else fields.get("step")
    is_refused = isinstance(status, int) and status >= 400
    error = ": ".join(str(fields[name]) for name in ("error", "error_description") if fields.get(name))
    outcome = f"HTTP {status}" + (f": {error}" if error else "")
    outcome += f"; {fields['hint']}" if "hint" in fields else ""
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


def _mock(note: Note) -> NoteText:
    fields = note.fields
    tone = ISSUE if fields.get("did") in (*mock_notes.UNRECORDED, "answered", "changed") else QUIET
    return mock_notes.about(fields), mock_notes.words(fields), tone


def _restart(note: Note) -> NoteText:
    tone = {"failed": BAD, "started": ISSUE}.get(str(note.fields.get("did")), QUIET)
    return restart_notes.words(note.fields), "", tone


def _lost(note: Note) -> NoteText:
    entries = note.fields.get("entries")
    number = "1 entry was" if entries == 1 else f"{entries} entries were"
    return f"{number} not recorded: {note.fields.get('why')}", "", BAD


def _oversized(note: Note) -> NoteText:
    fields = note.fields
    sender = fields.get("pipe", fields.get("from"))
    return f"{sender}: {fields.get('size')} bytes above --max-body were not recorded", "", ISSUE


def _unread(note: Note) -> NoteText:
    return f"the server has not read {_size(note)} of its stdin", _quiet(note), ISSUE


def _unfinished(note: Note) -> NoteText:
    return f"the {note.fields.get('from')} has not finished a line of {_size(note)}", _quiet(note), ISSUE


def _size(note: Note) -> str:
    size = note.fields.get("size")
    return counted.counted(size, "byte") if isinstance(size, int) else "some bytes"


def _quiet(note: Note) -> str:
    since = note.fields.get("since")
    if not isinstance(since, int | float):
        return ""
    return f"{duration(max(note.at - since, 0.0))} after the last of them"


def _placeholders(note: Note) -> NoteText:
    named = (("variables", "environment"), ("arguments", "command"))
    parts = (
        f"{', '.join(map(str, names))} ({where})"
        for key, where in named
        if isinstance(names := note.fields.get(key), list) and names
    )
    return f"placeholders instead of values: {'; '.join(parts)}", "", ISSUE


def _decision(note: Note) -> NoteText:
    tone = QUIET if note.fields.get("action") == TRANSLATE else ISSUE
    return about(note.fields), words(note.fields), tone


_NOTES: dict[str, Callable[[Note], NoteText]] = {
    "stderr": lambda note: (note.text, "", QUIET),
    "exit": _exit,
    "end": lambda _: ("the processes that the server left behind closed its pipes", "", QUIET),
    "eof": _eof,
    "closed": _closed,
    "lost": _lost,
    "oversized": _oversized,
    "unread": _unread,
    "unfinished": _unfinished,
    "placeholders": _placeholders,
    "error": lambda note: (note.text, "", BAD),
    "http2": _http2,
    "document": lambda note: (
        f"{note.fields.get('document')} {note.fields.get('path')}",
        f"HTTP {note.fields.get('status')}",
        QUIET,
    ),
    "signal": lambda note: (f"{note.fields.get('signal')} from the host", "", ISSUE),
    "http": _http,
    "http-end": _http_end,
    "sse": _sse,
    "oauth": _oauth,
    "redirect": _redirect,
    RULE: _decision,
    TRUST: _decision,
    "rules": _rules,
    MOCK: _mock,
    RESTART: _restart,
    TRANSLATION: lambda note: (translation_notes.words(note.fields), "", QUIET),
    "part": lambda note: (f"continues in {note.fields.get('next')}", "", QUIET),
}
