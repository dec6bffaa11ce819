"""Comma-separated values (RFC 4180), one exchange per line.

A cell that a spreadsheet would interpret as a formula gets a leading apostrophe. All text is sanitized, so no
cell contains a line break.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import RecordedSession, WallClock, exchange_flaws
from mcpspy.core.protocol.message import Failure
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange

COLUMNS = (
    *("session", "name", "exchange", "time", "t", "stream", "from", "method", "about", "id", "status"),
    *("latency_ms", "code", "outcome", "request_bytes", "response_bytes", "progress", "flaws"),
)

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
"""First characters of a formula, including wide forms. (Tabs and line breaks are already sanitized.)"""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    table = csv.writer(_Line())
    yield table.writerow(COLUMNS)
    for session in sessions:
        clock = WallClock(session.header.started)
        for exchange in session.exchanges():
            yield table.writerow(map(cell, _cells(session, exchange, clock)))


class _Line:
    """`writerow` returns what `write` returns."""

    def write(self, line: str) -> str:
        return line


def _cells(session: RecordedSession, exchange: Exchange, clock: WallClock) -> tuple[object, ...]:
    request, answer, latency = exchange.request, exchange.answer, exchange.latency
    return (
        session.header.id,
        session.header.name,
        exchange.number,
        clock.iso(request.at),
        request.at,
        request.frame.stream,
        request.side,
        request.method,
        request.subject,
        request.id,
        exchange.state,
        None if latency is None else round(latency * 1000, 3),
        answer.code_text if isinstance(answer, Failure) else None,
        rows.outcome(exchange)[0],
        len(request.data),
        None if answer is None else len(answer.data),
        len(exchange.progress),
        "; ".join(exchange_flaws(exchange)),
    )


def cell(value: object) -> str:
    text = "" if value is None else sanitize(str(value))
    return f"'{text}" if text.startswith(tuple(FORMULA)) and not _NUMBER.fullmatch(text) else text
