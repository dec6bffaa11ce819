"""The clients of the Python SDKs 2 and 1: sessions that use whatever the server offers.

    .peers/venv/bin/python tests/peers/clients/tour.py < PLANS       # SDK 2
    .peers/mcp1/bin/python tests/peers/clients/tour.py < PLANS       # SDK 1

A plan is a line of JSON: `name`, `target` (a command as a list, or a URL), `transport` (`stdio`, `http`, `sse`), `mode`
(`auto`, or a revision) and `calls`: tools, each with its arguments and `call`, `progress`, `cancel`, `later` (after a
pause) or `unknown`. A session calls those that the server lists, and those that are `unknown`. Optional: `client`, the
name in `clientInfo`; `faultless`, true to read no resource that does not exist; `timeout`, the seconds of a request; `bare`, true for a client without capabilities. Prints a line
for each plan: `{"name", "revision", "steps", "error"}`. `tour.mjs` does the same with the TypeScript SDKs.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import json
import logging
import warnings
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import anyio
from mcp import types
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from pydantic import AnyUrl

try:
    from mcp import Client
except ImportError:  # SDK 1
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    Client = None

warnings.simplefilter("ignore")  # Half of the methods are deprecated in 2026-07-28, but still on the wire.
logging.disable(logging.CRITICAL)

AT_ONCE = 4
SESSION_SECONDS = 60
QUIET_SECONDS = 0.3  # For a call that is cancelled, and reports no progress before.
LATER_SECONDS = 1.1

ALL = types.ServerCapabilities(tools={}, prompts={}, resources={"subscribe": True})


class Tour:
    """The user of one session."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.steps: list[str] = []

    async def sample(self, _context: Any, _params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="A fixed answer.")
        return types.CreateMessageResult(role="assistant", content=text, model="no-model")

    async def elicit(self, _context: Any, params: Any) -> types.ElicitResult:
        if getattr(params, "mode", "form") == "url" or "decline" in params.message:
            return types.ElicitResult(action="decline")
        schema = getattr(params, "requestedSchema", None) or params.requested_schema
        return types.ElicitResult(action="accept", content=filled(schema))

    async def roots(self, _context: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=AnyUrl("file:///home/ada/demo"), name="demo")])

    async def log(self, _params: Any) -> None:
        return

    async def step(self, name: str, answer: Awaitable[Any]) -> Any:
        try:
            result = await answer
        except Exception as error:
            self.steps.append(f"{name}: {type(error).__name__}")
            return None
        self.steps.append(name)
        return result

    async def run(self, client: Any, modern: bool, capabilities: types.ServerCapabilities) -> None:
        if capabilities.logging and not modern:
            await self.step("logging/setLevel", client.set_logging_level("debug"))
        if capabilities.tools:
            listed = await self.step("tools/list", client.list_tools())
            names = {tool.name for tool in listed.tools} if listed else set()
            for tool, arguments, how in self.plan["calls"]:
                if tool in names or how == "unknown":
                    await self.call(client, tool, arguments, how)
        if capabilities.prompts:
            await self.prompts(client)
        if capabilities.resources:
            await self.resources(client, capabilities.resources, modern)
        if capabilities.completions:
            ref = types.PromptReference(type="ref/prompt", name=self.plan.get("completed", "greet"))
            await self.step("completion/complete", client.complete(ref, {"name": "style", "value": "p"}))
        if not modern:
            await self.step("ping", client.send_ping())

    async def call(self, client: Any, tool: str, arguments: dict[str, Any], how: str) -> None:
        async def report(_done: float, _total: float | None, _message: str | None) -> None:
            if how == "cancel":
                scope.cancel()

        await anyio.sleep(LATER_SECONDS if how == "later" else 0)
        callback = {"progress_callback": report} if how in ("progress", "cancel") else {}
        with anyio.move_on_after(QUIET_SECONDS if how == "cancel" else SESSION_SECONDS) as scope:
            await self.step(f"tools/call {tool}", client.call_tool(tool, arguments, **callback))

    async def prompts(self, client: Any) -> None:
        listed = await self.step("prompts/list", client.list_prompts())
        for prompt in listed.prompts[:2] if listed else ():
            arguments = {argument.name: "Ada" for argument in prompt.arguments or ()}
            await self.step(f"prompts/get {prompt.name}", client.get_prompt(prompt.name, arguments))

    async def resources(self, client: Any, offered: Any, modern: bool) -> None:
        listed = await self.step("resources/list", client.list_resources())
        await self.step("resources/templates/list", client.list_resource_templates())
        uris = [str(resource.uri) for resource in listed.resources[:2]] if listed else []
        typed = AnyUrl if Client is None else str
        for uri in [*uris, *([] if self.plan.get("faultless") else ["demo://nothing"])]:
            await self.step(f"resources/read {uri}", client.read_resource(typed(uri)))
        if uris and offered.subscribe and not modern:
            await self.step("resources/subscribe", client.subscribe_resource(typed(uris[0])))
            await self.step("resources/unsubscribe", client.unsubscribe_resource(typed(uris[0])))
        elif uris and offered.subscribe:
            with anyio.move_on_after(SESSION_SECONDS):
                async with client.listen(resource_subscriptions=uris[:1]):
                    await self.step("tools/list", client.list_tools(cache_mode="bypass"))


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the required fields of a form."""
    values = {"string": "blue", "boolean": True, "integer": 7, "number": 2.5}
    fields = schema.get("properties", {})
    return {name: values[fields[name]["type"]] for name in schema.get("required", ()) if name in fields}


@asynccontextmanager
async def streams(plan: dict[str, Any]) -> AsyncIterator[tuple[Any, Any]]:
    target = plan["target"]
    if plan["transport"] == "stdio":
        environment = {**plan["environment"]} if "environment" in plan else None
        context = stdio_client(StdioServerParameters(command=target[0], args=target[1:], env=environment))
    elif plan["transport"] == "sse":
        context = sse_client(target)
    else:
        context = streamablehttp_client(target)
    async with context as (read, write, *_):
        yield read, write


async def session(plan: dict[str, Any]) -> dict[str, Any]:
    tour, error, revision = Tour(plan), None, ""
    name = plan.get("client", f"python-{1 if Client is None else 2}")
    options: dict[str, Any] = {"client_info": types.Implementation(name=name, version="1.0.0")}
    if not plan.get("bare"):
        options |= {
            "sampling_callback": tour.sample,
            "elicitation_callback": tour.elicit,
            "list_roots_callback": tour.roots,
            "logging_callback": tour.log,
        }
    if seconds := plan.get("timeout"):
        options["read_timeout_seconds"] = timedelta(seconds=seconds) if Client is None else seconds
    try:
        with anyio.fail_after(SESSION_SECONDS):
            if Client is None:
                async with streams(plan) as (read, write), ClientSession(read, write, **options) as client:
                    opened = await client.initialize()
                    revision = opened.protocolVersion
                    await tour.run(client, False, opened.capabilities)
            else:
                target = plan["target"] if plan["transport"] == "http" else streams(plan)
                mode = plan["mode"] if plan["mode"] in ("auto", "2026-07-28") else "legacy"
                async with Client(target, mode=mode, log_level="debug", **options) as client:
                    revision = client.protocol_version
                    pinned = plan["mode"] == "2026-07-28"  # No handshake: the client knows no capabilities.
                    await tour.run(
                        client, revision == "2026-07-28", ALL if pinned else client.server_capabilities
                    )
    except BaseException as raised:
        inner: BaseException = raised
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        error = f"{type(inner).__name__}: {inner}"
    return {"name": plan["name"], "revision": revision, "steps": tour.steps, "error": error}


def offer(revision: str) -> None:
    """Make the SDK offer an older revision than its latest. No option does that."""
    if Client is None:
        types.LATEST_PROTOCOL_VERSION = revision
    else:
        import mcp.client.session as module

        module.LATEST_HANDSHAKE_VERSION = revision


async def main() -> None:
    plans = [json.loads(line) for line in sys.stdin if line.strip()]
    limit = anyio.CapacityLimiter(AT_ONCE)

    async def play(plan: dict[str, Any]) -> None:
        async with limit:
            print(json.dumps(await session(plan)), flush=True)

    for mode in dict.fromkeys(
        plan["mode"] for plan in plans
    ):  # One after the other: `offer` is for the process.
        offer("2025-11-25" if mode in ("auto", "2026-07-28") else mode)
        async with anyio.create_task_group() as group:
            for plan in plans:
                if plan["mode"] == mode:
                    group.start_soon(play, plan)


if __name__ == "__main__":
    anyio.run(main)
