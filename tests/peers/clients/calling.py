"""The clients of the Python SDKs 2 and 1: one session over HTTP that calls a tool until its stdin is closed.

    .peers/venv/bin/python tests/peers/clients/calling.py URL       # SDK 2
    .peers/mcp1/bin/python tests/peers/clients/calling.py URL       # SDK 1

Two tasks call `echo`, each time with another text, and list the tools after each notification of a change. Prints one
line of JSON at the end: `right`, the number of calls that returned their own text; `errors`, the texts of the errors;
`wrong`, all others; `changes`, the number of notifications; and `tools`, the last list. `calling.mjs` does the same
with the TypeScript SDK 2.
"""

import json
import logging
import sys
from typing import Any

import anyio

try:
    from mcp import Client
except ImportError:  # SDK 1
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    Client = None

logging.disable(logging.CRITICAL)

AT_ONCE = 2
LANGUAGE = "python2" if Client is not None else "python1"
"""Part of the texts, which no other client sends."""


class Caller:
    """The user of one session."""

    def __init__(self) -> None:
        self.right = self.changes = 0
        self.errors: list[str] = []
        self.wrong: list[str] = []
        self.tools: list[str] = []
        self.is_over = False
        self.is_stale = False

    async def message(self, message: Any) -> None:
        """Take a message of the server, in the form of either SDK."""
        if "tools/list_changed" in str(getattr(getattr(message, "root", message), "method", "")):
            self.changes += 1
            self.is_stale = True

    async def call(self, session: Any, name: str) -> None:
        number = 0
        while not self.is_over:
            number += 1
            text = f"{LANGUAGE}-{name}-{number}"
            try:
                if self.is_stale:
                    self.is_stale = False
                    self.tools = sorted(tool.name for tool in (await session.list_tools()).tools)
                (block,) = (await session.call_tool("echo", {"text": text})).content
            except Exception as error:
                self.errors.append(str(error))
                await anyio.sleep(0.05)  # No server runs: do not call it thousands of times.
                continue
            if block.text == text:
                self.right += 1
            else:
                self.wrong.append(block.text)

    async def run(self, session: Any) -> None:
        self.is_stale = True
        async with anyio.create_task_group() as tasks:
            for number in range(AT_ONCE):
                tasks.start_soon(self.call, session, f"task{number}")
            print("begun", flush=True)
            await anyio.to_thread.run_sync(sys.stdin.read)
            self.is_over = True
        self.tools = sorted(tool.name for tool in (await session.list_tools()).tools)


async def main(url: str) -> None:
    caller = Caller()
    if Client is not None:
        async with Client(url, message_handler=caller.message, mode="legacy") as session:
            await caller.run(session)
    else:
        async with (
            streamablehttp_client(url) as (read, write, _),
            ClientSession(read, write, message_handler=caller.message) as session,
        ):
            await session.initialize()
            await caller.run(session)
    found = {key: value for key, value in vars(caller).items() if not key.startswith("is_")}
    print(json.dumps(found), flush=True)


anyio.run(main, sys.argv[1])
