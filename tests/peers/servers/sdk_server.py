"""A server on the Python SDK, with one tool for each thing a server can do on the wire.

Supports both eras: `ask` elicits by a request on a legacy connection, and by an `InputRequiredResult`
on a modern one, where servers have no requests. Its responses depend neither on the clock nor on chance,
except the sealed `requestState`, whose key the SDK generates in each process.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import warnings
from collections.abc import Sequence

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult, LoggingLevel
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

# Logging is deprecated in 2026-07-28, but still on the wire, so it is served here.
warnings.simplefilter("ignore", MCPDeprecationWarning)

NOTES = {"first": "Alpha", "second": "Βήτα", "third": "גימל 🎈"}
STEP_SECONDS = 0.02
HANG_SECONDS = 60  # `hang` waits to be cancelled; without a cancellation it ends by itself.

server = MCPServer(
    "sdk-peer",
    version="1.0.0",
    instructions="A test server. Every tool does what its name says.",
    log_level="CRITICAL",  # The SDK's tracebacks would name this machine's folders in recordings.
)


class Sum(BaseModel):
    """What `add` answers, as structured content."""

    a: int
    b: int
    total: int


class Answer(BaseModel):
    """The form that `ask` shows."""

    answer: str


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def add(a: int, b: int) -> Sum:
    """Add two integers."""
    return Sum(a=a, b=b, total=a + b)


@server.tool()
async def slow(steps: int, ctx: Context) -> str:
    """Take some steps and report each one."""
    for step in range(1, steps + 1):
        await anyio.sleep(STEP_SECONDS)
        await ctx.report_progress(step, steps, f"step {step}")
    return f"{steps} steps"


@server.tool()
async def hang(ctx: Context) -> str:
    """Report one step and then wait to be cancelled."""
    await ctx.report_progress(1, 2, "waiting")
    await anyio.sleep(HANG_SECONDS)
    return "nobody cancelled"


@server.tool()
def fail(crash: bool = False) -> str:
    """Fail as a tool should, or crash as a tool should not."""
    if crash:
        raise RuntimeError("this text stays on the server")
    raise ToolError("it was asked to fail")


@server.tool()
async def log(text: str, ctx: Context, level: LoggingLevel = "info") -> str:
    """Send the text as a log message."""
    await ctx.log(level, text, logger_name="sdk-peer")
    return "logged"


@server.tool()
async def touch(name: str, ctx: Context) -> str:
    """Tell those who listen (2026-07-28) that a note changed."""
    await ctx.notify_resource_updated(f"note://{name}")
    return f"touched {name}"


@server.tool(structured_output=False)
async def ask(question: str, ctx: Context) -> str | InputRequiredResult:
    """Ask the user."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        reply = await ctx.elicit(question, Answer)
        return reply.data.answer if reply.action == "accept" else f"no answer: {reply.action}"
    if ctx.input_responses is None:
        form = ElicitRequestFormParams(message=question, requested_schema=Answer.model_json_schema())
        return InputRequiredResult(
            input_requests={"answer": ElicitRequest(params=form)}, request_state=f"asked: {question}"
        )
    if ctx.request_state != f"asked: {question}":
        raise ToolError("the state is not that of this question")
    response = ctx.input_responses["answer"]
    if not isinstance(response, ElicitResult):
        raise ToolError("the answer is not one to a form")
    if response.action != "accept" or response.content is None:
        return f"no answer: {response.action}"
    return Answer.model_validate(response.content).answer


@server.resource("note://index", mime_type="text/plain")
def index() -> str:
    """List the names of the notes."""
    return "\n".join(NOTES)


@server.resource("note://{name}", mime_type="text/plain")
def note(name: str) -> str:
    """Give one note."""
    if name not in NOTES:
        raise ResourceNotFoundError(f"there is no note named {name}")
    return NOTES[name]


@server.resource("data://bytes", mime_type="application/octet-stream")
def some_bytes() -> bytes:
    """Give all the bytes there are."""
    return bytes(range(256))


@server.prompt()
def greet(name: str, style: str = "plain") -> str:
    """Ask for a greeting."""
    return f"Greet {name} in a {style} way."


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A server on the Python SDK.")
    parser.add_argument("--transport", choices=["stdio", "streamable-http", "sse"], default="stdio")
    parser.add_argument("--port", type=int, default=8000, help="where HTTP listens, on 127.0.0.1")
    parser.add_argument("--stateless", action="store_true", help="streamable HTTP without sessions")
    parser.add_argument("--json", action="store_true", help="streamable HTTP that answers in JSON, never SSE")
    options = parser.parse_args(argv)
    print("sdk-peer: ready", file=sys.stderr, flush=True)
    if options.transport == "stdio":
        server.run("stdio")
    elif options.transport == "sse":
        server.run("sse", host="127.0.0.1", port=options.port)
    else:
        server.run(
            "streamable-http",
            host="127.0.0.1",
            port=options.port,
            stateless_http=options.stateless,
            json_response=options.json,
        )


if __name__ == "__main__":
    main()
