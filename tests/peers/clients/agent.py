"""An agent with several servers at once: every argument is a URL, or a command line.

.peers/mcp1/bin/python tests/peers/clients/agent.py COMMAND|URL …     (SDK 1.30; .peers/mcp2 has 2.3)
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import asyncio
import contextlib
import shlex

from mcp import ClientSession, StdioServerParameters
from mcp.client import streamable_http
from mcp.client.stdio import stdio_client

open_http = getattr(streamable_http, "streamablehttp_client", None) or streamable_http.streamable_http_client


async def use(server: str, ready: asyncio.Barrier) -> None:
    async with contextlib.AsyncExitStack() as stack:
        if "://" in server:
            read, write, *_ = await stack.enter_async_context(open_http(server))
        else:
            command, *arguments = shlex.split(server)
            parameters = StdioServerParameters(command=command, args=arguments)
            read, write = await stack.enter_async_context(stdio_client(parameters))
        session = await stack.enter_async_context(ClientSession(read, write))
        await session.initialize()
        await session.list_tools()
        await ready.wait()
        await session.list_tools()


async def main() -> None:
    ready = asyncio.Barrier(len(sys.argv) - 1)
    await asyncio.gather(*(use(server, ready) for server in sys.argv[1:]))


asyncio.run(main())
