"""Texts around the list: title, status line, and message headers. Pure, except StatusBar."""

from __future__ import annotations

import re
import time
from binascii import a2b_base64
from collections.abc import Sequence
from datetime import datetime

import orjson
from rich.cells import cell_len

from mcpspy.analysis import rows
from mcpspy.core.counted import counted
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Change
from mcpspy.io.recording.reader import RecordingState
from mcpspy.ui.model.body import BodyLines
from mcpspy.ui.model.row_filter import KINDS_OF_PROBLEMS, STDERR, FilteredView, SortOrder
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.model.session_model import RowFinding, SessionModel
from mcpspy.ui.text.width import cut, steady
from mcpspy.ui.tui.widgets.base import CLIPBOARD, SplitLine
from mcpspy.ui.tui.widgets.columns import Piece

BETWEEN = " · "

NAMES_ERROR = re.compile(r"error\b|exception\b|panic|fatal", re.IGNORECASE)
"""The beginning of the message of an uncaught exception, in most languages."""

GLYPHS = {RecordingState.LIVE: "●", RecordingState.ENDED: "○", RecordingState.DIED: "✗"}


def moment(started: str, now: datetime) -> str:
    """Return the local start time of a session in its shortest form."""
    try:
        at = datetime.fromisoformat(started).astimezone(now.tzinfo)
    except ValueError:
        return sanitize(started)
    if at.date() == now.date():
        return at.strftime("%H:%M:%S")
    return at.strftime("%b %d %H:%M" if at.year == now.year else "%Y-%m-%d")


def state_label(state: RecordingState, session: Index) -> Piece:
    if state is RecordingState.LIVE:
        return f"{GLYPHS[state]} LIVE", rows.OK
    if state is RecordingState.DIED:
        return f"{GLYPHS[state]} died", rows.BAD
    end = rows.ending(session.exit)
    return f"{GLYPHS[state]} ended {end}".rstrip(), _exit_tone(session.exit)


def title(loader: SessionLoader, view: FilteredView, width: int) -> tuple[list[Piece], list[Piece]]:
    """Return the title: names and state on the left, counts of the session or of its problems on the right."""
    model, session = loader.model, loader.model.index
    parts: list[tuple[int, Piece]] = [
        (0, (sanitize(model.header.name) or "session", "title")),
        (
            4,
            (
                counted(len(loader.paths), "session")
                if model.is_merged
                else sanitize(str(session.server or "")),
                None,
            ),
        ),
        (6, (sanitize(str(session.client or "")), None)),
        (5, (sanitize(session.revision_text), None)),
        (1, state_label(loader.state, session)),
    ]
    counts: list[tuple[int, Piece]] = [(2, (counted(session.messages, "message"), None))]
    if session.errors:
        counts.append((1, (counted(session.errors, "error"), rows.BAD)))
    if session.unanswered:
        counts.append((1, (f"{session.unanswered:,} unanswered", rows.BAD)))
    if session.issues:
        counts.append((3, (counted(session.issues, "protocol issue"), rows.ISSUE)))
    if model.findings.count:
        counts.append((4, (counted(model.findings.count, "finding"), rows.ISSUE)))
    if session.pending:
        counts.append((3, (f"{session.pending} pending", rows.OPEN)))
    if view.options.problems:
        counts = list(enumerate(problems(view)))
    while _long(parts) + _long(counts) + 2 > width:
        if (rank := max(rank for rank, _ in [*parts, *counts])) == 0:
            break
        parts = [part for part in parts if part[0] != rank]
        counts = [part for part in counts if part[0] != rank]
    return _joined(parts), _joined(counts)


def problems(view: FilteredView) -> list[Piece]:
    """Return the number of problems by kind; the lines of stderr next to them do not count."""
    found = {name: view.problems[name] for name, _ in KINDS_OF_PROBLEMS if view.problems[name]}
    lines, more = found.pop(STDERR, 0), " so far" if view.is_behind else ""
    if not found:
        return [(f"no problems{more}", rows.QUIET if more else rows.OK)]
    kinds = [
        f"{n:,} {name}" if name in ("unanswered", "slow") else counted(n, name) for name, n in found.items()
    ]
    if len(kinds) > 1 or sum(found.values()) > 1:
        kinds[0] = f"{counted(sum(found.values()), 'problem')}{more}: {kinds[0]}"
    tone = rows.BAD if {"error", "unanswered", "crash"} & found.keys() else rows.ISSUE
    return [(", ".join(kinds), tone), (counted(lines, STDERR) if lines else "", rows.QUIET)]


def sentence(loader: SessionLoader) -> Piece:
    """Return the state of the session, or its problem."""
    model, session = loader.model, loader.model.index
    if loader.trouble:
        return sanitize(loader.trouble), rows.BAD
    if loader.is_deleted:
        more = "new messages are still shown" if loader.is_live else "the messages read before are shown"
        end = f" ({rows.ending(session.exit)})" if session.exit is not None else ""
        return f"the file was deleted while open; {more}{end}", rows.ISSUE
    if not model.is_over:
        if model.restarted:
            return sanitize(model.restarted), rows.ISSUE
        if loader.state is not RecordingState.LIVE or loader.is_behind:
            share = f" {min(loader.done * 100 // loader.size, 99)} %" if loader.size else ""
            return f"reading …{share}", rows.QUIET
        return ("waiting for the first message", rows.OPEN) if not session.messages else ("", None)
    rest = f"; {counted(session.unanswered, 'unanswered request')}" if session.unanswered else ""
    rest += "; the file was truncated or replaced while open" if model.restarted else ""
    rest += f"; incomplete last line skipped ({loader.torn} bytes)" if loader.torn else ""
    reason = last_words(model)
    said = f": {reason}" if reason else ""
    if session.exit is None:
        return f"died: mcpspy was killed before the server exited{said}{rest}", rows.BAD
    empty = "" if session.messages else "; no messages"
    return (
        f"ended: {rows.ending(session.exit)} after {rows.duration(session.last_at)}{said}{empty}{rest}",
        rows.BAD if reason else rows.QUIET,
    )


def last_stderr(model: SessionModel) -> list[str]:
    """Return the last lines on stderr before a crash, sanitized."""
    notes = map(model.message, model.index.last_stderr)
    return [sanitize(note.text) for note in notes if isinstance(note, Note)]


def last_words(model: SessionModel) -> str:
    """Return the line on stderr that explains a crash best: the last one that names an error, else the last one."""
    lines = [line.strip() for line in last_stderr(model) if line.strip()]
    named = [line for line in lines if NAMES_ERROR.search(line)]
    return (named or lines or [""])[-1]


def position(
    loader: SessionLoader, view: FilteredView, cursor: int, *, follows: bool, new: int
) -> list[Piece]:
    """Return the cursor position, the progress of the filter, and the follow state of a live session."""
    count, options = len(view), view.options
    text = f"{cursor + 1:,}/{count:,}" if count else ""
    if options.query.text:
        text = (text or "0") + ("" if options.problems else " matches")
        if view.is_behind and len(loader.model):
            share = view.processed * 100 // len(loader.model)
            text = f"{text if count else 'no match'} so far · filtering {share} %"
        elif loader.is_behind:
            text += " so far"
        else:
            text += f" {'of' if options.problems else 'in'} {counted(view.unfiltered, 'row')}"
    if options.is_sorted and count:
        text += f" · sorted by {options.order}"
        text += (
            ", latest first"
            if options.order is SortOrder.TIME
            else ", smallest first"
            if options.reverse
            else ""
        )
    place: list[Piece] = [(text, rows.QUIET)] if text else []
    if not loader.is_live:
        return place
    if follows:
        return [*place, ("  following", rows.OK)]
    badge = f"  paused, +{new:,} new (End)" if new else "  paused (End to follow)"
    return [*place, (badge, rows.OPEN)]


def _long(parts: Sequence[tuple[int, Piece]]) -> int:
    return max(sum(cell_len(steady(text)) + len(BETWEEN) for _, (text, _) in parts if text) - len(BETWEEN), 0)


def _joined(parts: Sequence[tuple[int, Piece]]) -> list[Piece]:
    joined: list[Piece] = []
    for _, piece in parts:
        if piece[0]:
            joined += [(BETWEEN, rows.QUIET), piece] if joined else [piece]
    return joined


def _exit_tone(note: Note | None) -> str | None:
    return rows.BAD if note is not None and rows.ended_badly(note) else None


FLASH = 2.5


class StatusBar(SplitLine):
    """A status line that can show a temporary message."""

    def __init__(self) -> None:
        super().__init__(id="status", classes="-soft")
        self._flash = ""
        self._until = 0.0

    @property
    def is_flashing(self) -> bool:
        return bool(self._flash)

    def flash(self, text: str) -> None:
        self._flash, self._until = text, time.monotonic() + FLASH

    def show_status(self, sentence: Piece, where: list[Piece]) -> None:
        """Show the temporary message or else the status, and the position if the message leaves space for it."""
        if time.monotonic() > self._until:
            self._flash = ""
        needs = cell_len(self._flash) + sum(cell_len(text) for text, _ in where) + 4
        self.set_text(
            [(self._flash, None)] if self._flash else [sentence],
            [] if self._flash and 0 < self.size.width < needs else where,
        )


TITLE = "title"
REASON = 240
"""Maximum columns of a tool error's text above a message."""

SEVERITY_ROLES = {"error": rows.BAD, "warning": rows.OPEN, "info": rows.QUIET}
_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "response",
    Failure: "error response",
    Malformed: "not a JSON-RPC message",
}


def message_header(change: Change, found: Sequence[RowFinding] = ()) -> list[Piece]:
    """Return the header lines of a message, with findings last."""
    lines = _header_lines(change)
    lines[-1:-1] = [
        (sanitize(f"{each.code} {each.severity}: {each.message}"), SEVERITY_ROLES[each.severity])
        for each in found
    ]
    return lines


def _header_lines(change: Change) -> list[Piece]:
    what, exchange = change.what, change.exchange
    if isinstance(what, Damaged):
        return [("damaged line in the recording", TITLE), (sanitize(what.why), rows.ISSUE), ("", None)]
    row_text = rows.row(change)
    if isinstance(what, Note):
        status = [(row_text.status or row_text.subject, row_text.tone)] if what.kind == "http" else []
        title = f"event: {row_text.method}"
        return [(title, TITLE), (f"at {row_text.time} s", rows.QUIET), *status, ("", None)]
    way = "client → server" if what.side == CLIENT else "server → client"
    title = f"{_KINDS[type(what)]} {row_text.method}"
    if not isinstance(what, Malformed) and row_text.subject:
        title += f" · {row_text.subject}"
    where = [
        way,
        f"at {row_text.time} s",
        f"id {row_text.id}" if row_text.id else "",
        f"{len(what.data):,} bytes",
    ]
    if what.index is not None:
        where.append(f"batch item {what.index + 1}")
    lines: list[Piece] = [(title, TITLE), (" · ".join(part for part in where if part), rows.QUIET)]
    if exchange is not None:
        state, tone = rows.outcome(exchange)
        latency = f" in {rows.duration(exchange.latency)}" if exchange.latency is not None else ""
        reason = rows.with_reason(state, exchange.answer)[len(state) :]
        outcome = sanitize(state + latency + cut(reason, REASON))
        if isinstance(what, Request):
            lines.append((f"response: {outcome}", tone))
        elif isinstance(what, Result | Failure):
            lines.append((outcome, tone))
        else:
            lines.append(("p: go to its request", rows.QUIET))
    by = ["injected by mcpspy"] if what.frame.by is not None else []
    effects = [*by, *([change.effect] if change.effect else [])]
    lines += [(sanitize(effect), rows.OPEN) for effect in effects]
    flaws = [*what.flaws, *([change.flaw] if change.flaw else [])]
    lines += [(sanitize(f"protocol issue: {flaw}"), rows.ISSUE) for flaw in flaws]
    return [*lines, ("", None)]


def replacement(note: Note) -> tuple[list[Piece], bytes]:
    """Return the header and the bytes of the message that was forwarded instead of the original."""
    try:
        encoded = str(note.fields.get("sent_b64", ""))
        sent = a2b_base64(encoded) if encoded else str(note.fields.get("sent", "")).encode()
    except ValueError:  # Written by another program, or cut.
        sent = b""
    return [("forwarded instead", TITLE), (f"{len(sent):,} bytes", rows.QUIET), ("", None)], sent


def headers(note: Note) -> list[Piece]:
    fields = note.fields
    lines: list[Piece] = [(sanitize(f"{fields.get('method')} {fields.get('path')}"), TITLE)]
    for name, heading in (("request", None), ("response", f"HTTP {fields.get('status')}")):
        if heading is not None:
            lines += [("", None), (sanitize(heading), TITLE)]
        held = fields.get(name)
        for key, value in (held if isinstance(held, dict) else {}).items():
            lines.append((sanitize(f"{key}: {value}"), None))
    if error := fields.get("error"):
        lines += [("", None), (sanitize(str(error)), rows.BAD)]
    return lines


def refusal(note: Note) -> list[Piece]:
    """Return the text of a refusal, from the end of its HTTP exchange."""
    body, size = str(note.fields.get("body", "")), note.fields.get("size")
    cut_off = f", the beginning of {size:,} bytes" if note.fields.get("cut") and isinstance(size, int) else ""
    lines = BodyLines(body.encode("utf-8", "replace"))
    return [("", None), (f"body{cut_off}", TITLE), *((line, None) for line in lines)]


def content(change: Change) -> bytes:
    """Return the bytes to show and copy: those that the peer sent, or the content of a note."""
    what = change.what
    if not isinstance(what, Note):
        return what.data
    if what.kind in ("stderr", "error"):
        return what.text.encode("utf-8", "surrogatepass")
    return orjson.dumps(what.fields, default=str) if what.fields else b""


def clipboard_text(change: Change) -> tuple[str | None, str]:
    """Return the text for the clipboard, or None if it is too long, and the message for the user."""
    text = copy_text(change)
    length = len(text.encode())
    if length > CLIPBOARD:
        return None, f"{rows.size(length)} is too large for the clipboard; use mcpspy show -v"
    return text, f"copied {length:,} bytes"


def copy_text(change: Change) -> str:
    """Return the text for the clipboard: JSON as on the wire; other text sanitized, as a shell might execute it."""
    data = content(change)
    if BodyLines(data).is_json:
        return data.decode("utf-8", "backslashreplace")
    return "\n".join(sanitize(line) for line in data.decode("utf-8", "backslashreplace").split("\n"))
