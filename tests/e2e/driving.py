"""The SDK's client doing what a test tells it, and a viewer that reaches into its session."""

from __future__ import annotations

import asyncio
import json
import select
from typing import TYPE_CHECKING, Any

from mcpspy.errors import McpspyError
from mcpspy.io.control.client import AsyncControlClient
from mcpspy.io.control.discovery import find
from tests.e2e.conftest import SECONDS, Read

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

TIMED_OUT = {"error": {"code": -32001, "message": "Request 'tools/call' timed out"}}
"""What the client's code gets when the client itself gave up."""


class Driven:
    """The SDK's client, doing what it is told."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def heard(self) -> dict[str, Any]:
        """Return what it says next."""
        assert self._process.stdout is not None
        async with asyncio.timeout(SECONDS):
            said: dict[str, Any] = json.loads(await self._process.stdout.readline())
        return said

    def tell(self, tool: str, *, timeout: float = 30, times: int = 1, **arguments: Any) -> None:
        """Have it call a tool."""
        assert self._process.stdin is not None
        order = {"tool": tool, "arguments": arguments, "timeout": timeout, "times": times}
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def call(self, tool: str, *, timeout: float = 30, **arguments: Any) -> dict[str, Any]:  # noqa: ASYNC109
        """Return what its code got of a call; what its handler was told before is left out."""
        self.tell(tool, timeout=timeout, **arguments)
        while "heard" in (got := await self.heard()):
            pass
        return got

    async def leave(self) -> str:
        """Have it leave; return what was said on stderr meanwhile."""
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
    """Reach into the session, once it has been quiet for a moment."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await AsyncControlClient.open(find(peers.folder / "r" / "r.jsonl"), viewer)
            except McpspyError:
                await asyncio.to_thread(select.select, [], [], [], 0.01)


async def answered(visit: AsyncControlClient, order: str, **fields: Any) -> dict[str, Any]:
    """Return the answer of a peer to an order that nobody else waits for."""
    asked = await visit.order(order, **fields)
    async with asyncio.timeout(SECONDS):
        async for event in visit.events():
            if event["event"] == "answer" and event["id"] == asked["id"]:
                message: dict[str, Any] = event["message"]
                return message
    raise AssertionError("the session has ended")


async def all_answered(visit: AsyncControlClient, texts: int, last: str) -> list[dict[str, Any]]:
    """Call `echo` so often, and ask one thing more, all at once; return the answers in the order of asking."""
    calls = [{"name": "echo", "arguments": {"text": str(n)}} for n in range(texts)]
    asked = await asyncio.gather(
        *(visit.order("request", method="tools/call", params=params) for params in calls),
        visit.order("request", method=last),
    )
    found: dict[str, dict[str, Any]] = {}
    async with asyncio.timeout(SECONDS):
        async for event in visit.events():
            if event["event"] == "answer":
                found[event["id"]] = event["message"]
                if len(found) == len(asked):
                    break
    return [found[answer["id"]] for answer in asked]


async def next_of(visit: AsyncControlClient, kind: str) -> dict[str, Any]:
    """Return the next event of a kind."""
    async with asyncio.timeout(SECONDS):
        async for event in visit.events():
            if event["event"] == kind:
                return event
    raise AssertionError("the session has ended")
