"""Comma-separated values (RFC 4180), one exchange per line.

A cell that a spreadsheet would interpret as a formula gets a leading apostrophe. All text is sanitized, so no
cell contains a line break.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import ExchangeTable, exchange_flaws
from mcpspy.analysis.export.columns import of_session
from mcpspy.core.protocol.message import Failure
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import reported_by

COLUMNS = (
    *("session", "name", "exchange", "time", "t", "stream", "client", "server", "revision", "from", "method"),
    *("about", "tool", "prompt", "uri", "id", "batch_index", "batch_size", "status", "latency_ms", "code"),
    *("error_name", "error_message", "outcome", "request_bytes", "response_bytes", "progress_count", "flaws"),
)
"""The columns of JSONL; each member of an object has a column: `error_name`."""

FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
"""First characters of a formula, including wide forms. (Tabs and line breaks are already sanitized.)"""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def export(sessions: Iterable[ExchangeTable]) -> Iterator[str]:
    table = csv.writer(_Line())
    yield table.writerow(COLUMNS)
    for session in sessions:
        for row in flat_rows(session):
            yield table.writerow(map(cell, row.values()))


class _Line:
    """`writerow` returns what `write` returns."""

    def write(self, line: str) -> str:
        return line


def flat_rows(session: ExchangeTable) -> Iterator[dict[str, Any]]:
    """Yield the columns of each selected exchange as values, not as cells."""
    columns = of_session(session)
    for exchange in session.exchanges():
        yield dict(zip(COLUMNS, _values(columns.of_exchange(exchange), exchange), strict=True))


def _values(line: dict[str, Any], exchange: Exchange) -> Iterator[object]:
    flat = line | {
        f"{name}_{member}": value
        for name in ("batch", "error")
        for member, value in line.get(name, {}).items()
    }
    answer = reported_by(exchange)
    flat |= {
        "id": exchange.request.id,
        "code": answer.code_text if isinstance(answer, Failure) else None,
        "outcome": rows.outcome(exchange)[0],
        "progress_count": len(exchange.progress),
        "flaws": "; ".join(exchange_flaws(exchange)),
    }
    return map(flat.get, COLUMNS)


def cell(value: object) -> str:
    text = "" if value is None else sanitize(str(value))
    return f"'{text}" if text.startswith(tuple(FORMULA)) and not _NUMBER.fullmatch(text) else text
