"""A script that reads everything of each message, and changes the message as its words request."""

from __future__ import annotations

import asyncio
from typing import Any

from mcpspy import LiveExchange, LiveMessage

FILTER = "tool:a or method:b* or status:error or size>10 or text:c or kind:notification"


def request(exchange: LiveExchange) -> None:
    obey(exchange, exchange.message)


async def response(exchange: LiveExchange) -> None:
    await asyncio.sleep(0.01 if b"slow" in exchange.message.data else 0)
    obey(exchange, exchange.message)


def notification(message: LiveMessage) -> None:
    obey(message, message)


def obey(target: LiveExchange | LiveMessage, message: LiveMessage) -> None:
    """Read a message or an exchange, and change what it asks for."""
    found = [*read(target), *read(message), repr(target), target.matches(FILTER)]
    if b"note" in message.data:
        target.note(str(found))
        target.tag(str(message.json))
    if b"params" in message.data and isinstance(message.params, dict) and "change" in message.params:
        target.replace(params={**message.params, "changed": found[:0]})
    elif b"change" in message.data and isinstance(message.json, dict):
        target.replace(message.json)
    if b"lose" in message.data:
        target.drop()
    if b"late" in message.data:
        target.delay(1.0)


def read(target: object) -> list[Any]:
    names = [name for name in dir(target) if not name.startswith("_")]
    return [value for name in names if not callable(value := getattr(target, name))]
