"""A mock that listens over HTTP, and a client for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.steering import MockOptions
from mcpspy.io.http.server import accepting
from mcpspy.io.mock.http import Mock
from mcpspy.io.network.listener import listening, origin
from tests.core.mock.talking import VERSION, Talk, modern

BOTH = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


class Spoken:
    """A running mock, and a client of it."""

    def __init__(self, mock: Mock, client: aiohttp.ClientSession, url: str) -> None:
        self.mock = mock
        self.client = client
        self.url = url
        self.session: dict[str, str] = {}

    async def send(self, data: bytes, path: str = "/mcp", /, **headers: str | None) -> aiohttp.ClientResponse:
        """POST a body. A header with the value None is left out."""
        given = {**BOTH, **self.session, **{name.replace("_", "-"): value for name, value in headers.items()}}
        sent = {name: value for name, value in given.items() if value is not None}
        return await self.client.post(self.url + path, data=data, headers=sent, skip_auto_headers=given)

    async def say(self, **members: Any) -> tuple[int, Any]:
        """POST a message. Return the status, and the body as JSON or as the data of its events."""
        async with await self.send(json.dumps({"jsonrpc": "2.0", **members}).encode()) as response:
            return response.status, await received(response)

    async def ask(self, id: Any, method: str, **params: Any) -> Any:  # noqa: A002
        """Send a request as a client of 2026-07-28. Return the same as `say`."""
        headers = {"Mcp_Method": method, "MCP_Protocol_Version": params["_meta"][VERSION]}
        if "name" in params:
            headers["Mcp_Name"] = params["name"]
        body = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        async with await self.send(json.dumps(body).encode(), **headers) as response:
            return response.status, await received(response)

    async def call(self, id: Any, tool: str = "echo", **arguments: Any) -> Any:  # noqa: A002
        """Return the text of a tool's result, or the code of its error."""
        status, said = await self.say(
            id=id, method="tools/call", params={"name": tool, "arguments": arguments}
        )
        if isinstance(said, list):  # The response was not available at once.
            (said,) = said
        assert (status, said["id"]) == (200, id)
        return said["result"]["said"] if "result" in said else said["error"]["code"]

    async def begin(self, version: str = "2025-11-25", **capabilities: Any) -> str:
        """Perform the handshake. Return the session's id, which is sent from now on."""
        params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": {"name": "c"}}
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        async with await self.send(json.dumps(body).encode(), Mcp_Session_Id=None) as response:
            assert response.status == 200
            self.session = {"Mcp-Session-Id": response.headers["Mcp-Session-Id"]}
        assert (await self.say(method="notifications/initialized")) == (202, None)
        return self.session["Mcp-Session-Id"]

    async def get(self, **headers: str) -> aiohttp.ClientResponse:
        """Open a GET stream."""
        given = {"Accept": "text/event-stream", **self.session, **headers}
        return await self.client.get(self.url + "/mcp", headers=given)


async def received(response: aiohttp.ClientResponse) -> Any:
    """Return a body as JSON; of a stream, its messages; None if there is none."""
    body = await response.read()
    if response.content_type != "text/event-stream":
        return json.loads(body) if body else None
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
    return [json.loads(line) for line in lines if line]


async def event(response: aiohttp.ClientResponse) -> list[str]:
    """Return the lines of the next event of a stream."""
    lines = []
    async with asyncio.timeout(30):
        while line := (await response.content.readline()).decode().rstrip("\n"):
            lines.append(line)
    return lines


@asynccontextmanager
async def spoken(
    made: Talk | Recordings, allowed: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[Spoken]:
    said: list[str] = []
    recordings = made.recordings() if isinstance(made, Talk) else made
    mock = Mock(recordings, MockOptions(**options), said.append, allowed)
    with listening("127.0.0.1", 0, "-") as listener:
        async with accepting(mock.handle, listener), aiohttp.ClientSession() as client:
            yield Spoken(mock, client, origin("127.0.0.1", listener))
            await mock.close()


def echo() -> Talk:
    return Talk().handshake().call(1, "echo", "first").call(2, "echo", "second")


def recent() -> Talk:
    """A session of 2026-07-28 whose tool gives two different responses."""
    talk = Talk()
    for number, said in enumerate(("first", "second")):
        params = {"name": "echo", "_meta": modern()}
        talk.client(id=number, method="tools/call", params=params)
        talk.server(id=number, result={"said": said, "resultType": "complete"})
    return talk
