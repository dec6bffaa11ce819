"""A server on the Python SDK 1, with the tools of `sdk_server.py`.

.peers/mcp1/bin/python tests/peers/servers/sdk1_server.py
    [--transport stdio|streamable-http|sse] [--port N] [--stateless] [--json]
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import logging

import anyio
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel

server = FastMCP(
    "sdk1-peer", instructions="A test server with one tool for each feature.", log_level="CRITICAL"
)


class Sum(BaseModel):
    total: int


class Answer(BaseModel):
    answer: str


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(total=a + b)


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Take some steps and report each one."""
    for step in range(1, steps + 1):
        await ctx.report_progress(step, steps, f"step {step}")
    return f"{steps} steps"


@server.tool()
async def hang(ctx: Context) -> str:
    """Report one step and then wait to be cancelled."""
    await ctx.report_progress(1, 2)
    await anyio.sleep(60)
    return "not cancelled"


@server.tool()
def fail() -> str:
    """Fail as a tool should."""
    raise ToolError("it was asked to fail")


@server.tool()
async def log(text: str, ctx: Context) -> str:
    """Send the text as a log message."""
    await ctx.info(text)
    return "logged"


@server.tool()
async def ask(question: str, ctx: Context) -> str:
    """Ask the user."""
    reply = await ctx.elicit(question, Answer)
    return reply.data.answer if reply.action == "accept" else f"no answer: {reply.action}"


@server.tool()
async def sample(ctx: Context) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(type="text", text="Say something."))
    reply = await ctx.session.create_message([message], max_tokens=20, related_request_id=ctx.request_id)
    return reply.content.text


@server.tool()
async def roots(ctx: Context) -> str:
    """List the client's roots."""
    return ", ".join(str(root.uri) for root in (await ctx.session.list_roots()).roots)


@server.resource("note://index", mime_type="text/plain")
def index() -> str:
    """List the names of the notes."""
    return "first"


@server.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str:
    """Give one note."""
    return f"The note {name}."


@server.prompt()
def greet(name: str, style: str = "plain") -> str:
    """Ask for a greeting."""
    return f"Greet {name} in a {style} way."


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A server on the Python SDK 1.")
    parser.add_argument("--transport", choices=["stdio", "streamable-http", "sse"], default="stdio")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    server.settings.port = options.port
    server.settings.stateless_http = options.stateless
    server.settings.json_response = options.json
    server.run(options.transport)
