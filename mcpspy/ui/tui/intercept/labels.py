"""Texts about held messages: ages, countdowns, and the status line. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from mcpspy.analysis import rows
from mcpspy.core.hostconfig.servers import response_timeout
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.index import Index
from mcpspy.ui.model.intercept_connection import HeldMessage
from mcpspy.ui.model.session_loader import SessionLoader
from mcpspy.ui.tui.session.labels import BETWEEN
from mcpspy.ui.tui.widgets.columns import Piece

URGENT = 15.0
NAMED = 40
RELEASED = {
    "timeout": "auto-released (timeout)",
    "viewer left": "released (viewer disconnected)",
    "hold off": "released (interception off)",
    "session ended": "released (session ended)",
    "connection closed": "not forwarded (sender disconnected)",
    "accepted": "released by another viewer",
    "edited": "edited by another viewer",
    "dropped": "dropped by another viewer",
    "answered": "answered by another viewer",
}


def clock(seconds: float) -> str:
    """Return a time as `4:59`, at least `0:00`."""
    whole = max(int(seconds), 0)
    if whole < 3600:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def short_name(held: HeldMessage) -> str:
    name = sanitize(held.name)
    return name if len(name) <= NAMED else f"{name[: NAMED - 1]}…"


def cell(held: HeldMessage, now: float) -> Piece:
    """Return the status cell of a held message."""
    return f"HELD {clock(now - held.since)}", rows.OPEN


def host_timeout(index: Index, row: int | None, elapsed: float) -> Piece | None:
    """Return the host's remaining time for the request of a row at session time `elapsed`; None if unknown."""
    request = None if row is None else index.request(row)
    if request is None or index.client is None or index.side(request) != CLIENT:
        return None
    known = response_timeout(index.client.name, index.texts[index.method[request]])
    if known is None:
        return None
    left = known.seconds - (elapsed - index.at[request])
    if left <= 0:
        return f"{known.host} has timed out", rows.BAD
    return f"{known.host} times out in {clock(left)}", rows.BAD if left < URGENT else rows.OPEN


def countdown(held: HeldMessage, now: float) -> Piece:
    left = held.until - now
    return f"auto-releases in {clock(left)}", rows.BAD if left < URGENT else rows.QUIET


def bar(
    query: str | None, count: int, first: HeldMessage | None, host: Piece | None, *, now: float, width: int
) -> list[Piece]:
    """Return the line about interception; empty without a filter and held messages.

    `first` is the held message that the line names, `host` the host's timeout for it.
    """
    parts: list[tuple[int, Piece]] = []
    if query is not None:
        what = sanitize(query.strip())
        what = what if len(what) <= NAMED else f"{what[: NAMED - 1]}…"
        parts.append((0, (f"intercepting {what or 'all messages'}", "title")))
    if query is not None or count:
        parts.append((0, (f"{count} held", rows.OPEN if count else rows.QUIET)))
    if first is not None:
        parts.append((3, (short_name(first), None)))
        if first.rule:
            parts.append((4, (f"by rule {sanitize(first.rule)}", rows.QUIET)))
        parts.append((2, countdown(first, now)))
        if host is not None:
            parts.append((1, host))
    while len(parts) > 1 and _width(parts) > width and (rank := max(rank for rank, _ in parts)):
        parts = [part for part in parts if part[0] != rank]
    line: list[Piece] = []
    for _, piece in parts:
        line += [(BETWEEN, rows.QUIET), piece] if line else [piece]
    return line


def unreachable(loader: SessionLoader) -> str:
    if loader.model.is_merged:
        return "several sessions are open: open one alone (O) to intercept or send messages"
    return "the session has ended: cannot intercept or send messages"


def _width(parts: Sequence[tuple[int, Piece]]) -> int:
    return sum(cell_len(text) + len(BETWEEN) for _, (text, _) in parts) - len(BETWEEN)
