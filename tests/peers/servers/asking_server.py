"""A server whose tools need the user: elicitation, sampling and roots. Runs on the Python SDK 2 and 1.

Before 2026-07-28 it sends requests in the middle of a call; in 2026-07-28 it returns `InputRequiredResult`, whose
`requestState` the SDK seals with a key that it generates in each process.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import warnings
from typing import Any

from pydantic import BaseModel

try:  # SDK 2.
    import mcp_types as types
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.shared.exceptions import MCPDeprecationWarning
    from mcp_types import InputRequiredResult
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS

    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server = MCPServer("asking", version="1.0.0", log_level="CRITICAL")
except ImportError:
    from mcp import types
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as MCPServer

    MODERN_PROTOCOL_VERSIONS: tuple[str, ...] = ()
    server = MCPServer("asking", log_level="CRITICAL")


class Answer(BaseModel):
    """The form of every question."""

    answer: str


def form(message: str) -> Any:
    params = types.ElicitRequestFormParams(message=message, requested_schema=Answer.model_json_schema())
    return types.ElicitRequest(params=params)


def is_modern(ctx: Any) -> bool:
    return bool(MODERN_PROTOCOL_VERSIONS) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def text_of(reply: Any) -> str:
    """Return the answer to a form as text."""
    return f"accept {reply.content['answer']}" if reply.action == "accept" else str(reply.action)


async def elicited(ctx: Any, message: str) -> str:
    reply = await ctx.elicit(message, Answer)
    return f"accept {reply.data.answer}" if reply.action == "accept" else str(reply.action)


def prompt() -> dict[str, Any]:
    content = types.TextContent(type="text", text="Write a line.")
    return {"messages": [types.SamplingMessage(role="user", content=content)], "max_tokens": 20}


@server.tool(structured_output=False)
async def colour(ctx: Context) -> Any:
    """Elicit a colour."""
    if not is_modern(ctx):
        return await elicited(ctx, "Which colour?")
    if ctx.input_responses is None:
        return InputRequiredResult(input_requests={"q": form("Which colour?")}, request_state="colour")
    return text_of(ctx.input_responses["q"])


@server.tool(structured_output=False)
async def order(ctx: Context) -> Any:
    """Elicit a size, and a confirmation unless the user declines; both questions have one name."""
    if not is_modern(ctx):
        first = await elicited(ctx, "Which size?")
        return first if first == "decline" else f"{first}, {await elicited(ctx, 'Are you sure?')}"
    if ctx.input_responses is None:
        return InputRequiredResult(input_requests={"q": form("Which size?")}, request_state="size")
    said = text_of(ctx.input_responses["q"])
    if ctx.request_state != "size":
        return f"{ctx.request_state}, {said}"
    if said == "decline":
        return said
    return InputRequiredResult(input_requests={"q": form("Are you sure?")}, request_state=said)


@server.tool(structured_output=False)
async def write(ctx: Context) -> Any:
    """Sample a line."""
    if not is_modern(ctx):
        sampled = await ctx.session.create_message(**prompt())
    elif ctx.input_responses is None:
        request = types.CreateMessageRequest(params=types.CreateMessageRequestParams(**prompt()))
        return InputRequiredResult(input_requests={"line": request}, request_state="line")
    else:
        sampled = ctx.input_responses["line"]
    return f"sampled {sampled.content.text}"


@server.tool(structured_output=False)
async def folders(ctx: Context) -> Any:
    """List the roots."""
    if not is_modern(ctx):
        listed = await ctx.session.list_roots()
    elif ctx.input_responses is None:
        return InputRequiredResult(input_requests={"roots": types.ListRootsRequest()}, request_state="roots")
    else:
        listed = ctx.input_responses["roots"]
    return f"roots {' '.join(str(root.uri) for root in listed.roots)}"


@server.tool(structured_output=False)
async def plan(ctx: Context) -> Any:
    """Elicit a colour, sample a line and list the roots: before 2026-07-28 in turn, then in one result."""
    if not is_modern(ctx):
        return f"{await elicited(ctx, 'Which colour?')}, {await write(ctx)}, {await folders(ctx)}"
    if ctx.input_responses is None:
        sampling = types.CreateMessageRequest(params=types.CreateMessageRequestParams(**prompt()))
        requests = {"q": form("Which colour?"), "line": sampling, "roots": types.ListRootsRequest()}
        return InputRequiredResult(input_requests=requests, request_state="plan")
    return f"{text_of(ctx.input_responses['q'])}, {await write(ctx)}, {await folders(ctx)}"


if __name__ == "__main__":
    print("asking: ready", file=sys.stderr, flush=True)
    if len(sys.argv) == 1:
        server.run("stdio")
    else:  # `--port PORT`
        server.run("streamable-http", port=int(sys.argv[2]))
