"""The client of the Python SDK 1, in one session over streamable HTTP: lists the tools, and calls two of them.

.peers/mcp1/bin/python tests/peers/clients/sdk1.py URL
"""

import asyncio
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main(url: str) -> None:
    async with streamablehttp_client(url) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        await session.call_tool("add", {"a": 1, "b": 2})
        await asyncio.gather(*(session.call_tool("echo", {"text": f"{n}"}) for n in range(3)))


asyncio.run(main(sys.argv[1]))
