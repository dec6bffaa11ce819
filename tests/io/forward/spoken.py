"""Messages used in these tests, and a search for them in a recording."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from aiohttp import web

from tests.io.forward.conftest import Spy

Spying = Callable[..., AbstractAsyncContextManager[Spy]]
Serving = Callable[..., AbstractAsyncContextManager[str]]

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}


async def pong(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=PONG, content_type="application/json")


def said(entries: list[dict[str, Any]]) -> list[Any]:
    return [entry["msg"] for entry in entries if "msg" in entry]


def heads(entries: list[dict[str, Any]]) -> list[tuple[str, str, int]]:
    return [(note["method"], note["path"], note["status"]) for note in entries if note.get("note") == "http"]
