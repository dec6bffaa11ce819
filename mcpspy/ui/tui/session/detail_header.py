"""What the detail pane says about a message before it shows the message.

Owns the words: who said it to whom, when, what it answers or waits for, what
is wrong with it. Returns text already made inert, and the body. Pure.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Sequence

import orjson

from mcpspy.analysis import rows
from mcpspy.core.protocol.message import Failure, Malformed, Notification, Request, Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Damaged, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Change
from mcpspy.ui.body import BodyLines
from mcpspy.ui.session_model import RowFinding
from mcpspy.ui.tui.detail.layout import Piece

TITLE = "title"
"""Role of the first line."""

CLIPBOARD = 256_000
"""Bytes that terminals are known to take: tmux took 500 kB, and not 900."""

GRAVITY = {"error": rows.BAD, "warning": rows.OPEN, "info": rows.QUIET}
"""Severity of a finding → its tone."""

_KINDS = {
    Request: "request",
    Notification: "notification",
    Result: "response",
    Failure: "error response",
    Malformed: "no message",
}


def facts(change: Change, found: Sequence[RowFinding] = ()) -> list[Piece]:
    """Return the lines above the body, each with its role; what was found wrong is the last of them."""
    lines = _facts(change)
    lines[-1:-1] = [
        (sanitize(f"{each.code} {each.severity}: {each.message}"), GRAVITY[each.severity]) for each in found
    ]
    return lines


def _facts(change: Change) -> list[Piece]:
    what, exchange = change.what, change.exchange
    if isinstance(what, Damaged):
        return [("damaged line of the file", TITLE), (sanitize(what.why), rows.ODD), ("", None)]
    said = rows.row(change)
    if isinstance(what, Note):
        return [(f"note: {said.method}", TITLE), (f"at {said.time} s", rows.QUIET), ("", None)]
    way = "client → server" if what.side == CLIENT else "server → client"
    title = f"{_KINDS[type(what)]} {said.method}"
    if not isinstance(what, Malformed) and said.subject:
        title += f" · {said.subject}"
    where = [way, f"at {said.time} s", f"id {said.id}" if said.id else "", f"{len(what.data):,} bytes"]
    if what.index is not None:
        where.append(f"number {what.index + 1} of a batch")
    lines: list[Piece] = [(title, TITLE), (" · ".join(part for part in where if part), rows.QUIET)]
    if exchange is not None:
        state, tone = rows.outcome(exchange)
        after = f" after {rows.duration(exchange.latency)}" if exchange.latency is not None else ""
        if isinstance(what, Request):
            lines.append((sanitize(f"answer: {state}{after}"), tone))
        elif isinstance(what, Result | Failure):
            lines.append((sanitize(f"answers its request{after}: {state}"), tone))
        else:
            lines.append(("belongs to a request: p goes there", rows.QUIET))
    by = ["said by mcpspy in its name"] if what.frame.by is not None else []
    effects = [*by, *([change.effect] if change.effect else [])]
    lines += [(sanitize(effect), rows.OPEN) for effect in effects]
    flaws = [*what.flaws, *([change.flaw] if change.flaw else [])]
    lines += [(sanitize(f"odd: {flaw}"), rows.ODD) for flaw in flaws]
    return [*lines, ("", None)]


def sent_instead(note: Note) -> tuple[list[Piece], bytes]:
    """Return what is said of the text that went on in place of a message, and that text."""
    try:
        encoded = str(note.fields.get("sent_b64", ""))
        sent = a2b_base64(encoded) if encoded else str(note.fields.get("sent", "")).encode()
    except ValueError:  # Not from us, or cut.
        sent = b""
    return [("what went on in its place", TITLE), (f"{len(sent):,} bytes", rows.QUIET), ("", None)], sent


def headers(note: Note) -> list[Piece]:
    """Return the heads of an HTTP exchange, as far as the recording keeps them."""
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


def content(change: Change) -> bytes:
    """Return the bytes that are shown and copied: the peer's own; of a note, what it holds."""
    what = change.what
    if not isinstance(what, Note):
        return what.data
    if what.kind in ("stderr", "error"):
        return what.text.encode("utf-8", "surrogatepass")
    return orjson.dumps(what.fields, default=str) if what.fields else b""


def clipping(change: Change) -> tuple[str | None, str]:
    """Return what goes to the clipboard, None if it is too much; and what to say of it."""
    text = copied(change)
    length = len(text.encode())
    if length > CLIPBOARD:
        return None, f"{rows.size(length)} is more than a clipboard takes from here; mcpspy show -v prints it"
    return text, f"copied {length:,} bytes"


def copied(change: Change) -> str:
    """Return what goes to the clipboard: JSON as it was on the wire, anything else made inert.

    Text that is no JSON may hold control characters, which a shell it is
    pasted into would obey.
    """
    data = content(change)
    if BodyLines(data).is_json:
        return data.decode("utf-8", "backslashreplace")
    return "\n".join(sanitize(line) for line in data.decode("utf-8", "backslashreplace").split("\n"))
