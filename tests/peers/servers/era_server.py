"""A server over HTTP with a tool for each thing that the eras of MCP do in different ways.

    .peers/venv/bin/python tests/peers/servers/era_server.py --port N [--revision all] [--sse]
    .peers/mcp1/bin/python tests/peers/servers/era_server.py --port N --revision R     [--sse] [--stateless]

On the Python SDK 2, requests without 2026-07-28 are refused as that revision requires; on the SDK 1, R is the only
revision that it knows. With `all`, it has each revision that the SDK has.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import inspect
import json
import logging
import warnings
from typing import Any

import anyio
import uvicorn

try:  # SDK 2.
    import mcp_types as types
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.shared.exceptions import MCPDeprecationWarning
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    warnings.simplefilter("ignore", MCPDeprecationWarning)
    IS_SECOND = True
    server: Any = MCPServer("era-peer", version="1.0.0", log_level="CRITICAL", instructions="Ask it.")
except ImportError:
    from mcp import types
    from mcp.server import session as server_session
    from mcp.server.fastmcp import Context, FastMCP

    IS_SECOND = False
    server = FastMCP("era-peer", log_level="CRITICAL", instructions="Ask it.")

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
MODERN = "2026-07-28"


has = inspect.signature(server.tool).parameters  # SDK 1 has no structured output before 1.10.
tool = server.tool(**({"structured_output": False} if "structured_output" in has else {}))


def is_modern(ctx: Any) -> bool:
    return IS_SECOND and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def related(ask: Any, ctx: Any) -> dict[str, Any]:
    """Return what puts a question into the stream of its request. SDK 1.2 has one stream only."""
    names = inspect.signature(ask).parameters
    return {"related_request_id": ctx.request_id} if "related_request_id" in names else {}


def form() -> Any:
    return types.ElicitRequestFormParams(message="Which colour?", requested_schema=SCHEMA)


@tool
def echo(text: str) -> str:
    """Give the text back."""
    return text


@tool
async def slow(steps: int, ctx: Context) -> str:
    """Report progress."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps)
        await anyio.sleep(0.02)
    return f"{steps} steps"


@tool
async def hang(ctx: Context) -> str:
    """Report progress once, and wait for the cancellation."""
    await ctx.report_progress(1, 2)
    try:
        await anyio.sleep(60)
    finally:
        print("era-peer: cancelled", file=sys.stderr, flush=True)
    return "not cancelled"


@tool
async def ask(ctx: Context) -> Any:
    """Elicit a colour."""
    if not is_modern(ctx):
        reply = await ctx.session.elicit("Which colour?", SCHEMA, **related(ctx.session.elicit, ctx))
    elif ctx.input_responses is None:
        asked = {"q": types.ElicitRequest(params=form())}
        return types.InputRequiredResult(input_requests=asked, request_state="colour")
    else:
        reply = ctx.input_responses["q"]
    return f"{reply.action} {(reply.content or {}).get('answer')}"


@tool
async def sample(ctx: Context) -> Any:
    """Sample a line."""
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Write a line."))
    if not is_modern(ctx):
        create = ctx.session.create_message
        reply = await create([message], max_tokens=20, **related(create, ctx))
    elif ctx.input_responses is None:
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=20)
        return types.InputRequiredResult(input_requests={"s": types.CreateMessageRequest(params=params)})
    else:
        reply = ctx.input_responses["s"]
    return f"sampled {reply.content.text}"


@tool
async def change(ctx: Context) -> str:
    """Notify of changed tools, and of a changed resource."""
    if is_modern(ctx):
        await ctx.notify_tools_changed()
        await ctx.notify_resource_updated("note://index")
    else:
        await ctx.session.send_tool_list_changed()
        if subscribed:
            await ctx.session.send_resource_updated(types.AnyUrl("note://index"))
    return "changed"


@tool
async def log(ctx: Context) -> str:
    """Send a log message."""
    await ctx.log("warning", "a message")
    return "logged"


@server.resource("note://index", mime_type="text/plain")
def index() -> str:
    """Give a note."""
    return "A note."


subscribed: set[str] = set()


def older(revision: str) -> None:
    """Make the SDK 1 know one revision or all that it has, announce its lists, and accept subscriptions."""
    if revision != "all":
        from mcp.server import streamable_http  # SDK 1.2 has neither this nor more than one revision.

        for module in (server_session, streamable_http):
            module.SUPPORTED_PROTOCOL_VERSIONS = [revision]
        types.LATEST_PROTOCOL_VERSION = revision
    low = server._mcp_server

    @low.subscribe_resource()
    async def subscribe(uri: Any) -> None:
        subscribed.add(str(uri))

    @low.unsubscribe_resource()
    async def unsubscribe(uri: Any) -> None:
        subscribed.discard(str(uri))

    @low.set_logging_level()
    async def set_level(_: str) -> None:
        pass

    plain = low.get_capabilities

    def capabilities(*given: Any) -> Any:
        found = plain(*given)
        found.resources.subscribe = found.tools.listChanged = True
        return found

    low.get_capabilities = capabilities


def newer_only(app: Any) -> Any:
    """Refuse what has no 2026-07-28 in its header (basic/transports/streamable-http, Server Validation)."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or dict(scope["headers"]).get(b"mcp-protocol-version") == MODERN.encode():
            await app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            event = await receive()
            body, more = body + event.get("body", b""), event.get("more_body", False)
        id_ = json.loads(body).get("id") if body else None
        data = {"supported": [MODERN], "requested": "none"}
        error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        answer = json.dumps({"jsonrpc": "2.0", "id": id_, "error": error}).encode()
        status = 400 if scope["method"] == "POST" else 405
        await send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"content-type", b"application/json")],
            }
        )
        await send({"type": "http.response.body", "body": answer})

    return answer


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A server of one revision.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--revision", default=MODERN)
    parser.add_argument("--sse", action="store_true")
    parser.add_argument("--stateless", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if IS_SECOND:
        app = server.sse_app() if options.sse else server.streamable_http_app()
        if options.revision == MODERN:
            app = newer_only(app)
    else:
        older(options.revision)
        if not hasattr(server, "sse_app"):  # SDK 1.2.
            server.settings.host, server.settings.port = "127.0.0.1", options.port
            server.run("sse")
            sys.exit()
        server.settings.stateless_http = options.stateless
        app = server.sse_app() if options.sse else server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=options.port, log_level="critical")
