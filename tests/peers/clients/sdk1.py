"""The client of the Python SDK 1, in one session over streamable HTTP: lists the tools, calls two of them, prints all.

.peers/mcp1/bin/python tests/peers/clients/sdk1.py URL

The server adds and echoes: `sdk_server.py`, or server-everything, whose tools have other names.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import asyncio

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str) -> None:
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        tools = {tool.name: tool.inputSchema for tool in (await session.list_tools()).tools}
        added = await session.call_tool("add" if "add" in tools else "get-sum", {"a": 1, "b": 2})
        (text,) = tools["echo"]["properties"]
        echoed = await asyncio.gather(*(session.call_tool("echo", {text: f"{n}"}) for n in range(3)))
        print(sorted(tools), *(result.model_dump_json() for result in (added, *echoed)), sep="\n")


asyncio.run(main(sys.argv[1]))
