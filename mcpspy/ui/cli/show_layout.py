"""Column widths of `mcpspy show`.

Method, status and id have priority on a narrow terminal; latency and size are the first columns to go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mcpspy.analysis.rows import NO_DIRECTION, Row
from mcpspy.ui.text.width import LONGEST_ID, cells, cut, elide, pad, shorten_status, shorten_subject, tail

ROOMY = 80
"""Columns of a terminal from which on the gap between two columns is two wide."""

_WIDE = 100
"""Columns of a terminal from which on the names of clients are shown in full."""

_LONGEST_NAME = 20
_LONGEST_METHOD = 40
"""Columns of `notifications/subscriptions/acknowledged`, the longest method of the specification."""

_SUBJECT = 34
_STEPS = (
    *(("method", 14), ("status", 10), ("id", LONGEST_ID), ("subject", 8), ("status", 14)),
    *(("subject", 16), ("status", 28), ("method", 18), ("method", 24), ("subject", 20)),
    *(
        ("latency", 9),
        ("subject", 28),
        ("size", 6),
        ("method", _LONGEST_METHOD),
        ("subject", _SUBJECT),
    ),
)
"""Columns with the width that each gets in turn, if there is room and its cells need it."""

_UNLIMITED = 1 << 30

_WHOLE = ("latency", "size")
"""Columns that are left out rather than cut."""


class Widths(NamedTuple):
    """Columns of each cell; 0 for a column that is left out."""

    time: int
    stream: int
    method: int
    subject: int
    id: int
    latency: int
    size: int
    status: int
    gap: int = 2


def needs(rows: Iterable[Row], streams: Iterable[str], last: str) -> Widths:
    """Return the widths at which no cell of these rows is cut; `last` is the time of the last row.

    The method of a row without a subject uses the width of both columns.
    """
    widths = dict.fromkeys(Widths._fields, 0)
    alone = 0
    for row in rows:
        if row.arrow == NO_DIRECTION:
            continue
        for name in ("id", "latency", "size", "subject"):
            widths[name] = max(widths[name], cells(getattr(row, name)))
        widths["status"] = max(widths["status"], cells(_with_latency(row)))
        if row.subject:
            widths["method"] = max(widths["method"], cells(row.method))
        else:
            alone = max(alone, cells(row.method))
    alone = min(alone, _LONGEST_METHOD)
    widths["subject"] = max(widths["subject"], alone - max(widths["method"], 14), 6)
    widths["id"] = max(widths["id"], 2)
    widths["size"] = max(widths["size"], 4)
    widths["time"] = max(cells(last), 5)
    widths["stream"] = max(map(cells, streams), default=0)
    return Widths(**{**widths, "gap": 2})


def widths(terminal: int, needed: Widths) -> Widths:
    """Return the widths for a terminal of N columns; 0 is a pipe, where lines may have any length."""
    if not terminal:
        return Widths(
            time=max(8, needed.time),
            stream=min(needed.stream, _LONGEST_NAME),
            method=max(30, min(needed.method, _LONGEST_METHOD)),
            subject=_SUBJECT,
            id=max(6, min(needed.id, LONGEST_ID)),
            latency=9,
            size=6,
            status=_UNLIMITED,
        )
    gap = 2 if terminal >= ROOMY else 1
    stream = min(needed.stream, _LONGEST_NAME if terminal >= _WIDE else _LONGEST_NAME // 2)
    room = terminal - needed.time - gap - (stream + 1 if stream else 0) - 1 - gap
    given = dict.fromkeys(("method", "subject", "id", "latency", "size", "status"), 0)
    for name, target in _STEPS:
        # Every column but the first needs a gap; method and status exist even if no row of the sample has one.
        need = max(getattr(needed, name), {"method": 14, "status": 10}.get(name, 0))
        cost = 0 if given[name] or name == "method" else gap
        more = min(min(target, need) - given[name], room - cost)
        if more <= 0 or (name in _WHOLE and more < min(target, need)):
            continue
        given[name] += more
        room -= more + cost
    given["status"] += max(room, 0)
    return Widths(time=needed.time, stream=stream, gap=gap, **given)


def message_line(row: Row, stream: str, widths: Widths, own: Iterable[tuple[str, int]] = ()) -> str:
    """Return the line of a message; `own` are cells of the user's columns, with their widths."""
    parts = [_start(row.time, stream, row.arrow, widths)]
    # A notification has no id: its text may use that column too.
    beside = widths.gap + widths.id if widths.id and not row.id else 0
    if row.subject and widths.subject:
        subject = widths.subject + beside
        parts += [
            pad(elide(row.method, widths.method), widths.method),
            pad(shorten_subject(row.subject, subject), subject),
        ]
    else:
        method = widths.method + (widths.gap + widths.subject if widths.subject else 0) + beside
        parts.append(pad(elide(row.method, method), method))
    if widths.id and not beside:
        parts.append(pad(tail(row.id, widths.id), widths.id))
    if widths.latency:
        parts.append(pad(row.latency, widths.latency, right=True))
    if widths.size:
        parts.append(pad(row.size, widths.size, right=True))
    parts += [pad(text, width) for text, width in own]
    parts.append(_status(row, widths))
    return (" " * widths.gap).join(parts).rstrip()


def note_line(row: Row, stream: str, widths: Widths) -> str:
    """Return the line of a note or of anything else that is not JSON-RPC: its text may use the whole line."""
    kind = pad(row.method, max(8 if widths.stream else 6, cells(row.method)))
    latency = "" if row.latency in row.subject else row.latency
    status = " · ".join(filter(None, (row.status, latency)))
    parts = [_start(row.time, stream, row.arrow, widths), kind, row.subject, status]
    return (" " * widths.gap).join(parts).rstrip()


def heads(widths: Widths, own: Iterable[tuple[str, int]] = ()) -> str:
    """Return the line of the column names; `own` are those of the user, with their widths."""
    row = Row("time", "", "method", "target", "id", "latency", "size", "status", "")
    stream = "client" if widths.stream >= len("client") else ""
    return message_line(row._replace(latency="latency" if widths.latency else ""), stream, widths, own)


def _start(time: str, stream: str, arrow: str, widths: Widths) -> str:
    name, mark, number = stream.partition(" #")
    name = pad(
        cut(name, max(widths.stream - cells(mark + number), 1)) + mark + number, widths.stream, right=True
    )
    shown = f"{name} {arrow or ' '}" if widths.stream else arrow or " "
    return f"{time:>{widths.time}}{' ' * widths.gap}{shown}"


def _status(row: Row, widths: Widths) -> str:
    """Return the status; on a terminal too narrow for a column of latencies, `ok in 85 ms` if that fits."""
    if not widths.latency and cells(longer := _with_latency(row)) <= widths.status:
        return longer
    return row.status if cells(row.status) <= widths.status else shorten_status(row.status, widths.status)


def _with_latency(row: Row) -> str:
    return f"{row.status} in {row.latency}" if row.status and row.latency else row.status
