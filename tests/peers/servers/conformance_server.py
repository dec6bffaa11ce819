"""A server with the tools, resources and prompts that the conformance suite requests, on the Python SDK.

The suite fixes the names, and most contents. Each kind of traffic is there: all kinds of content, notifications and
requests during a call in both eras, a stream that ends early and is resumed, subscriptions, completion. Scenarios
about a server alone (extensions, schemas of enumerations, tampered state) fail here, direct and through a proxy.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import base64
import json
import warnings
from typing import Annotated, Any

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    AudioContent,
    Completion,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    JSONRPCMessage,
    ListRootsRequest,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel, Field

warnings.simplefilter("ignore", MCPDeprecationWarning)

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(24)).decode()
SILENCE = base64.b64encode(b"RIFF\x24\0\0\0WAVEfmt " + bytes(28)).decode()
PAUSE = 0.02
"""Seconds between two notifications of a call."""

RETRY = 100
"""Milliseconds after which a client resumes a stream."""

NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

server = MCPServer("conformance-peer", version="1.0.0", log_level="CRITICAL")


class Events(EventStore):
    """All events of the process, so that streams can be resumed."""

    def __init__(self) -> None:
        self._kept: list[tuple[str, JSONRPCMessage | None]] = []

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._kept.append((stream_id, message))
        return str(len(self._kept))

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if not last_event_id.isdecimal() or not 0 < int(last_event_id) <= len(self._kept):
            return None
        stream = self._kept[int(last_event_id) - 1][0]
        for number, (name, message) in enumerate(self._kept, 1):
            if name == stream and number > int(last_event_id) and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


def embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    )


image = ImageContent(type="image", data=PIXEL, mime_type="image/png")


@server.tool()
def test_simple_text() -> str:
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> list[ImageContent]:
    return [image]


@server.tool()
def test_audio_content() -> list[AudioContent]:
    return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


@server.tool()
def test_embedded_resource() -> list[EmbeddedResource]:
    return [embedded("test://embedded-resource", "An embedded resource.")]


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    json_resource = embedded("test://mixed-content-resource", '{"test": "data"}', "application/json")
    return [TextContent(type="text", text="Text, image, resource:"), image, json_resource]


@server.tool()
def test_error_handling() -> str:
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await anyio.sleep(PAUSE)
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(PAUSE)
    return "done"


@server.tool()
async def test_reconnection(ctx: Context) -> str:
    await ctx.info("before the stream ends")
    await ctx.close_sse_stream()
    await anyio.sleep(2 * RETRY / 1000)
    await ctx.info("after the stream was resumed")
    return "Reconnection test completed"


def question(text: str) -> SamplingMessage:
    return SamplingMessage(role="user", content=TextContent(type="text", text=text))


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    asked = [question(prompt)]
    # Related to the request: otherwise it is sent on the GET stream, which may not be open yet.
    result = await ctx.session.create_message(asked, max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {getattr(result.content, 'text', result.content)}"


class Reply(BaseModel):
    response: str


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: str = Field(default="active", json_schema_extra={"enum": ["active", "inactive", "pending"]})
    verified: bool = True


async def elicited(ctx: Context, text: str, form: type[BaseModel]) -> str:
    result = await ctx.elicit(text, form)
    content = result.data.model_dump_json() if result.action == "accept" else "{}"
    return f"action={result.action}, content={content}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    return "User response: " + await elicited(ctx, message, Reply)


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    return "Elicitation result: " + await elicited(ctx, "Some facts about you", Defaults)


@server.tool()
def test_x_mcp_header(
    region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "none",  # noqa: PT028 - a tool, not a test.
) -> str:
    return f"region={region}"


def name_form() -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message="Your name?", requested_schema=NAME))


def given(ctx: Context, key: str) -> Any:
    """Return the client's response to one of the requests of an earlier round."""
    return (ctx.input_responses or {}).get(key)


def name_of(answer: object) -> str:
    return (
        str(answer.content.get("name")) if isinstance(answer, ElicitResult) and answer.content else "stranger"
    )


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    if (answer := given(ctx, "user_name")) is None:
        return InputRequiredResult(input_requests={"user_name": name_form()})
    return f"Hello, {name_of(answer)}!"


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
    if (answer := given(ctx, "capital_question")) is None:
        params = CreateMessageRequestParams(
            messages=[question("What is the capital of France?")], max_tokens=100
        )
        return InputRequiredResult(input_requests={"capital_question": CreateMessageRequest(params=params)})
    return f"Model: {answer.content.text}"


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
    if (answer := given(ctx, "client_roots")) is None:
        return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})
    return json.dumps([str(root.uri) for root in answer.roots])


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
    if given(ctx, "confirm") is None:
        form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        asked = ElicitRequest(params=ElicitRequestFormParams(message="Go ahead?", requested_schema=form))
        return InputRequiredResult(input_requests={"confirm": asked}, request_state="a state")
    return "state-ok" if ctx.request_state == "a state" else "another state"


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
    rounds = json.loads(ctx.request_state) if ctx.request_state else 0
    if rounds == 2:
        return "complete"
    key = f"step{rounds + 1}"
    return InputRequiredResult(input_requests={key: name_form()}, request_state=json.dumps(rounds + 1))


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 - fixed by the suite.
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@server.resource("test://watched-resource", mime_type="text/plain")
def watched() -> str:
    return "watched"


def asked(content: TextContent | ImageContent | EmbeddedResource) -> UserMessage:
    return UserMessage(role="user", content=content)


@server.prompt()
def test_simple_prompt() -> str:
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803 - fixed by the suite.
    return [asked(embedded(resourceUri, "Embedded.")), asked(TextContent(type="text", text="Process it."))]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    return [asked(image), asked(TextContent(type="text", text="Describe it."))]


@server.completion()
async def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["paris", "park"], total=2, has_more=False)


async def accepted(ctx: object, params: object) -> EmptyResult:
    return EmptyResult()


for method, params_type in {
    "logging/setLevel": SetLevelRequestParams,
    "resources/subscribe": SubscribeRequestParams,
    "resources/unsubscribe": UnsubscribeRequestParams,
}.items():
    server._lowlevel_server.add_request_handler(method, params_type, accepted)


def main() -> None:
    parser = argparse.ArgumentParser(description="A server for the conformance suite, at /mcp.")
    parser.add_argument("--port", type=int, required=True)
    options = parser.parse_args()
    server.run("streamable-http", port=options.port, event_store=Events(), retry_interval=RETRY)


if __name__ == "__main__":
    main()
