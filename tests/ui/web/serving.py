"""A web server on loopback, and a client that is signed in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

from mcpspy.ui.views.extension import Extension
from mcpspy.ui.web.access import Access
from mcpspy.ui.web.preview import OFF
from mcpspy.ui.web.server import WebServer
from tests.analysis.export.html.chromium import Page


class Served:
    """A running server."""

    def __init__(self, port: int, token: str, client: aiohttp.ClientSession) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.token = token
        self._client = client

    async def status(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, data: str = ""
    ) -> int:
        """Return the status of a response."""
        async with self._client.request(
            method, self.origin + path, headers=headers, data=data or None
        ) as response:
            return response.status

    async def sign_in(self) -> aiohttp.ClientResponse:
        """Exchange the token for the cookie, which the client then sends."""
        async with self._client.post(f"{self.origin}/api/login", data=self.token) as response:
            assert response.status == 204
            return response

    async def get(self, path: str, **parameters: str | float) -> Any:
        """Return the JSON of an address below /api/."""
        async with self._client.get(f"{self.origin}/api/{path}", params=parameters) as response:
            return await response.json()

    async def post(self, path: str, order: object) -> tuple[int, Any]:
        """Send an order to an address below /api/; return the status and the JSON of the response."""
        async with self._client.post(f"{self.origin}/api/{path}", json=order) as response:
            return response.status, await response.json()

    async def events(self, session: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the facts of a session from its event stream."""
        parameters = {"session": session}
        async with self._client.get(f"{self.origin}/api/events", params=parameters) as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    yield json.loads(line[6:])


@asynccontextmanager
async def served(
    folder: Path,
    *,
    is_signed_in: bool = True,
    access: Access | None = None,
    port: int = 0,
    allows_control: bool = False,
    preview: str = OFF,
    extension: Extension | None = None,
) -> AsyncIterator[Served]:
    """Serve a folder; yield the server, with the cookie if `is_signed_in`."""
    access = access or Access()
    server = WebServer(
        str(folder), access, allows_control=allows_control, preview=preview, extension=extension
    )
    runner = server.runner()
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        port = runner.addresses[0][1]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            running = Served(port, access.token, client)
            if is_signed_in:
                await running.sign_in()
            yield running
    finally:
        await runner.cleanup()


def wrong(browser: Page) -> list[str]:
    """Return problems of the page; requests that it ended itself are none."""
    return [
        each for each in browser.wrong() if "net::ERR_ABORTED" not in each and "MarkedSkippable" not in each
    ]
