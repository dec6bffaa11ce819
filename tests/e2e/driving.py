"""The SDK's client, driven by a test, and a viewer of its session."""

from __future__ import annotations

import asyncio
import json
import select
from typing import TYPE_CHECKING, Any

from mcpspy.errors import McpspyError
from mcpspy.io.control.client import AsyncControlClient, find_session
from tests.e2e.conftest import SECONDS, Read

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

TIMED_OUT = {"error": {"code": -32001, "message": "Request 'tools/call' timed out"}}
"""The error that the client's code gets when the client itself times out."""


class Driven:
    """The SDK's client, which executes commands."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def next_message(self) -> dict[str, Any]:
        """Return its next message."""
        assert self._process.stdout is not None
        async with asyncio.timeout(SECONDS):
            message: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return message

    def send_call(self, tool: str, *, timeout: float = 30, times: int = 1, **arguments: Any) -> None:
        """Make it call a tool."""
        assert self._process.stdin is not None
        command = {"tool": tool, "arguments": arguments, "timeout": timeout, "times": times}
        self._process.stdin.write(json.dumps(command).encode() + b"\n")

    def send_list(self) -> None:
        """Make it list the tools."""
        assert self._process.stdin is not None
        self._process.stdin.write(b'{"list":true}\n')

    async def call(self, tool: str, *, timeout: float = 30, **arguments: Any) -> dict[str, Any]:  # noqa: ASYNC109
        """Return the result of a call, as its code gets it. Skip the notifications of its handler."""
        self.send_call(tool, timeout=timeout, **arguments)
        while "received" in (got := await self.next_message()):
            pass
        return got

    async def leave(self) -> str:
        """End the client. Return its stderr."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(SECONDS):
            _, err = await self._process.communicate()
        return err.decode()


def noted(read: Read) -> list[tuple[str, Any]]:
    """Return the actions of rules and viewers, each with its rule or viewer."""
    return [
        (note.fields["action"], note.fields.get("rule", note.fields.get("viewer")))
        for note in read.notes("rule")
    ]


async def reached(peers: Peers, viewer: str) -> AsyncControlClient:
    """Connect to the session once its socket exists."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await AsyncControlClient.open(find_session(peers.folder / "r" / "r.jsonl"), viewer)
            except McpspyError:
                await asyncio.to_thread(select.select, [], [], [], 0.01)


async def answered(control_client: AsyncControlClient, command: str, **fields: Any) -> dict[str, Any]:
    """Return a peer's response to a command that only this viewer waits for."""
    request = await control_client.order(command, **fields)
    async with asyncio.timeout(SECONDS):
        async for event in control_client.events():
            if event["event"] == "answer" and event["id"] == request["id"]:
                message: dict[str, Any] = event["message"]
                return message
    raise AssertionError("the session has ended")


async def all_answered(control_client: AsyncControlClient, texts: int, last: str) -> list[dict[str, Any]]:
    """Call `echo` `texts` times and send one more request, concurrently. Return the responses in this order."""
    calls = [{"name": "echo", "arguments": {"text": str(n)}} for n in range(texts)]
    requests = await asyncio.gather(
        *(control_client.order("request", method="tools/call", params=params) for params in calls),
        control_client.order("request", method=last),
    )
    found: dict[str, dict[str, Any]] = {}
    async with asyncio.timeout(SECONDS):
        async for event in control_client.events():
            if event["event"] == "answer":
                found[event["id"]] = event["message"]
                if len(found) == len(requests):
                    break
    return [found[answer["id"]] for answer in requests]


async def next_of(control_client: AsyncControlClient, kind: str) -> dict[str, Any]:
    """Return the next event of a kind."""
    async with asyncio.timeout(SECONDS):
        async for event in control_client.events():
            if event["event"] == kind:
                return event
    raise AssertionError("the session has ended")
