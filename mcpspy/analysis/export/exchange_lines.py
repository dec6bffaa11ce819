"""Formats with one line per exchange: comma-separated values (RFC 4180), and strict JSON lines.

A cell that a spreadsheet would interpret as a formula gets a leading apostrophe. All text of CSV is sanitized, so no
cell contains a line break.

In JSON (docs/export.md) a message is spliced in unchanged, so duplicate keys and thirty-digit integers are kept. A
message that is not strict JSON (NaN, a lone surrogate, invalid UTF-8) becomes text or Base64 instead, so that any
parser can read the line.
"""

from __future__ import annotations

import csv
import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import ExchangeTable, dumps, exchange_flaws, fragment
from mcpspy.analysis.export.columns import SessionColumns, of_session
from mcpspy.core.protocol.message import Failure, Message
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


def export_csv(sessions: Iterable[ExchangeTable]) -> Iterator[str]:
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


def export_jsonl(sessions: Iterable[ExchangeTable]) -> Iterator[str]:
    for session in sessions:
        columns = of_session(session)
        for exchange in session.exchanges():
            yield dumps(_members(exchange, columns)) + "\n"


def _members(exchange: Exchange, columns: SessionColumns) -> dict[str, Any]:
    request, answer = exchange.request, exchange.answer
    line = columns.of_exchange(exchange) | _message("request", request)
    if answer is not None:
        line |= _message("response", answer)
    if exchange.continues is not None:
        line["continues"] = exchange.continues.number
    if exchange.cancel is not None:
        line["cancelled"] = exchange.cancel.at
    if exchange.progress:
        line["progress"] = [{"t": each.at, **_message("message", each)} for each in exchange.progress]
    if flaws := exchange_flaws(exchange):
        line["flaws"] = flaws
    return line


def _message(name: str, message: Message) -> dict[str, Any]:
    """Return a message under its name; if it is not strict JSON, under `NAME_raw` or `NAME_b64`."""
    if (spliced := fragment(message.data)) is not None:
        return {name: spliced}
    try:
        return {f"{name}_raw": message.data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_b64": b2a_base64(message.data, newline=False).decode()}
