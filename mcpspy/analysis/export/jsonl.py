"""Strict JSON lines, one exchange per line (docs/export.md).

A message is spliced in unchanged, so duplicate keys and thirty-digit integers are kept. A message that is not
strict JSON (NaN, a lone surrogate, invalid UTF-8) becomes text or Base64 instead, so that any parser can read
the line.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from typing import Any

from mcpspy.analysis.export.base import ExchangeTable, dumps, exchange_flaws, fragment
from mcpspy.analysis.export.columns import SessionColumns, of_session
from mcpspy.core.protocol.message import Message
from mcpspy.core.session.exchange import Exchange


def export(sessions: Iterable[ExchangeTable]) -> Iterator[str]:
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
