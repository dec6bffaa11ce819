"""A client whose user gives the answers of its command line. Runs on the Python SDK 2 and 1.

    python answering.py MODE CALL... -- COMMAND ARGS... | URL

MODE is `legacy` or `2026-07-28`. A CALL is a tool and its answers, such as `order=accept:small,decline`,
`write=a line` or `folders=/a`. Prints the result of each call, or its error, as a line.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import warnings
from contextlib import AsyncExitStack
from typing import Any

import anyio

try:  # SDK 2.
    import mcp_types as types
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

    warnings.simplefilter("ignore", MCPDeprecationWarning)
    IS_SDK_2 = True
except ImportError:
    from mcp import ClientSession, StdioServerParameters, types
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared.exceptions import McpError as MCPError

    IS_SDK_2 = False

SECONDS = 30


class User:
    """The user behind the client."""

    def __init__(self) -> None:
        self.answers: list[str] = []

    async def elicit(self, _context: Any, _params: Any) -> Any:
        action, _, content = self.answers.pop(0).partition(":")
        return types.ElicitResult(action=action, content={"answer": content} if content else None)

    async def sample(self, _context: Any, _params: Any) -> Any:
        content = types.TextContent(type="text", text=self.answers.pop(0))
        return types.CreateMessageResult(role="assistant", content=content, model="none")

    async def roots(self, _context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri=f"file://{self.answers.pop(0)}")])


async def connect(stack: AsyncExitStack, user: User, mode: str, target: list[str]) -> Any:
    is_url = target[0].startswith("http://")
    command = StdioServerParameters(command=target[0], args=target[1:])
    callbacks = {
        "elicitation_callback": user.elicit,
        "sampling_callback": user.sample,
        "list_roots_callback": user.roots,
    }
    if IS_SDK_2:
        return await stack.enter_async_context(
            Client(target[0] if is_url else command, mode=mode, **callbacks)
        )
    transport = streamable_http_client(target[0]) if is_url else stdio_client(command)
    reader, writer, *_ = await stack.enter_async_context(transport)
    session = await stack.enter_async_context(ClientSession(reader, writer, **callbacks))
    await session.initialize()
    return session


async def run(mode: str, calls: list[str], target: list[str]) -> None:
    user = User()
    with anyio.fail_after(SECONDS):
        async with AsyncExitStack() as stack:
            client = await connect(stack, user, mode, target)
            for call in calls:
                tool, _, answers = call.partition("=")
                user.answers = answers.split(",")
                try:
                    result = await client.call_tool(tool, {})
                except MCPError as error:
                    print(f"{call}: error: {error}", flush=True)
                else:
                    print(f"{call}: {result.content[0].text}", flush=True)


if __name__ == "__main__":
    mode, *words = sys.argv[1:]
    at = words.index("--")
    anyio.run(run, mode, words[:at], words[at + 1 :])
