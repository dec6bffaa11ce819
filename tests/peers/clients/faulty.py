"""The Python SDK's client: initialize, list the tools, call the first: `faulty.py NAME MODE CALL TARGET…`; errors are expected.

CALL is `work`, the tool, with a valid argument; `wrong`, with another one; `missing`, a tool that does not exist; `later`,
the tool again after a second.
"""

from __future__ import annotations

import sys
from contextlib import suppress

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters


async def main() -> None:
    name, mode, call, *target = sys.argv[1:]
    is_url = target[0].startswith("http")
    to = target[0] if is_url else StdioServerParameters(command=target[0], args=target[1:])
    with anyio.move_on_after(6), suppress(BaseExceptionGroup, Exception):
        async with Client(
            to,
            mode=mode,
            client_info=types.Implementation(name=name, version="1.0.0"),
            read_timeout_seconds=2,
        ) as client:
            listed = types.ListToolsResult(tools=[])
            for step in range(2):
                await anyio.sleep(1.1 if step and call == "later" else 0)
                with suppress(Exception):
                    listed = listed if step else await client.list_tools()
                    tool = "missing" if call == "missing" else listed.tools[0].name
                    await client.call_tool(tool, {"n": "one" if call == "wrong" else 1})
            await anyio.sleep(0.2)


anyio.run(main)
