"""A recorded transport for clients of the Python SDK, versions 1 and 2 (`mcpspy.record`)."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from mcpspy.errors import McpspyError, UsageError


def record(
    server: Sequence[str] | str,
    to: str | os.PathLike[str] | None = None,
    *,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
) -> AbstractAsyncContextManager[tuple[Any, Any]]:
    """Return the streams `(read, write)` to a server, as `stdio_client` of the SDK does, and record the session.

    A transport for clients of the Python SDK (the package `mcp`, version 1 or 2). `server` is a command with its
    arguments, or a URL. `to` is a new file, or a folder with a slash at its end; by default the user's sessions folder.
    `name` is the name of the session. `env` is added to this process's environment for a command. The context raises
    McpspyError without the package `mcp`, UsageError for an invalid value, and CannotStart.

    ```python
    import asyncio
    from mcp import ClientSession
    import mcpspy


    async def main():
        async with mcpspy.record(["mcp-server-everything"], to="session.jsonl") as (read, write):
            async with ClientSession(read, write) as session:
                await session.initialize()
                await session.list_tools()
        print(mcpspy.read("session.jsonl").server)


    asyncio.run(main())
    ```
    """
    target = None if to is None else os.fspath(to)
    if isinstance(server, str):
        if env is not None:
            raise UsageError("record: env needs a command", "a URL has no environment")
        return _over_http(server, target, name)
    return _on_stdio(list(server), target, name, env or {})


@asynccontextmanager
async def _on_stdio(
    command: list[str], to: str | None, name: str | None, env: Mapping[str, str]
) -> AsyncIterator[tuple[Any, Any]]:
    if not command:
        raise UsageError("record: the command is empty", "use ['python', 'server.py']")
    sdk = _module("mcp.client.stdio")
    options = [] if to is None else ["--record", to]
    options += [] if name is None else ["--name", name]
    arguments = ["-P", "-m", "mcpspy", "run", *options, "--", *command]
    parameters = sdk.StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ, **env})
    async with sdk.stdio_client(parameters) as (read, write):
        yield read, write


@asynccontextmanager
async def _over_http(url: str, to: str | None, name: str | None) -> AsyncIterator[tuple[Any, Any]]:
    from mcpspy.core.protocol.http_headers import read_upstream
    from mcpspy.io.http.proxy import HttpOptions, proxying

    upstream = read_upstream(url)
    if upstream is None:
        raise UsageError("record: not a URL of a server", "use http://… or https://…")
    sdk = _module("mcp.client.streamable_http")
    # Named streamablehttp_client before 1.24.
    connect = getattr(sdk, "streamable_http_client", None) or sdk.streamablehttp_client
    options = HttpOptions(upstream, "127.0.0.1", 0)
    options.record, options.name = to, name
    async with proxying(options) as proxy, connect(proxy) as (read, write, *_):
        yield read, write


def _module(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise McpspyError("record: the package mcp is not installed", "pip install mcp") from None
