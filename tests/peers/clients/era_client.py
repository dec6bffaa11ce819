"""A client of the Python SDK 2, or 1 from 1.2 on: uses each feature once, and prints which of them work.

    PYTHON tests/peers/clients/era_client.py MODE PLAN COMMAND ARGS…

MODE is `auto`, `legacy` or a revision of MCP (SDK 2), or `handshake` (SDK 1). PLAN is JSON: a tool, its arguments and
a text of its result, for each of the features `tools/call`, `progress`, `elicitation`, `sampling`, `update` and
`cancellation` that the server has; `uri`, a resource. Prints `{"revision": R, "features": {FEATURE: REASON}}`, in which
the reason is empty if the feature works. Features that the SDK has no API for are absent. `era_client.mjs` does the
same with the TypeScript SDKs.
"""

import inspect
import json
import logging
import sys
import warnings
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from typing import Any

import anyio
from mcp import types
from mcp.client.stdio import StdioServerParameters, stdio_client
from pydantic import AnyUrl

try:
    from mcp import Client
except ImportError:  # SDK 1
    from mcp import ClientSession

    Client = None

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

STEP_SECONDS = 8
SESSION_SECONDS = 120
LATE_SECONDS = 2


class Host:
    """The user of one session."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self.plan = plan
        self.features: dict[str, str] = {}
        self.heard: list[str] = []
        self.news = anyio.Event()
        self.client: Any = None
        self.revision = ""
        self.options: set[str] = set()
        self.can: set[str] = set()

    async def sample(self, _context: Any, _params: Any) -> types.CreateMessageResult:
        text = types.TextContent(type="text", text="a line")
        return types.CreateMessageResult(role="assistant", content=text, model="none")

    async def elicit(self, _context: Any, params: Any) -> Any:
        schema = getattr(params, "requestedSchema", None) or params.requested_schema
        return types.ElicitResult(action="accept", content=dict.fromkeys(schema.get("required", ()), "blue"))

    async def hear(self, message: Any) -> None:
        self.heard.append(getattr(getattr(message, "root", message), "method", ""))
        self.news.set()

    async def until(self, method: str) -> None:
        while method not in self.heard:
            self.news = anyio.Event()
            await self.news.wait()

    async def step(self, feature: str, work: Awaitable[str], seconds: float = STEP_SECONDS) -> None:
        reason = "no answer"
        with anyio.move_on_after(seconds):
            try:
                reason = await work
            except Exception as error:
                reason = innermost(error)
        self.features[feature] = reason

    async def call(self, feature: str) -> str:
        tool, arguments, text = self.plan[feature]
        result = await self.client.call_tool(tool, arguments)
        return "" if text in str(result.content) else f"unexpected result {result.content}"

    async def progress(self) -> str:
        tool, arguments, text = self.plan["progress"]
        reported: list[float] = []

        async def report(done: float, _total: float | None, _message: str | None) -> None:
            reported.append(done)

        if "progress_callback" in inspect.signature(self.client.call_tool).parameters:
            result = await self.client.call_tool(tool, arguments, progress_callback=report)
        else:
            result = await self.send(tool, arguments)
            reported = [1.0 for method in self.heard if method == "notifications/progress"]
        if text not in str(result.content):
            return f"unexpected result {result.content}"
        return "" if len(reported) == 2 else f"{len(reported)} of 2 notifications"

    def send(self, tool: str, arguments: dict[str, Any]) -> Awaitable[Any]:
        """Call a tool with a token for its progress, as SDK 1 does before 1.10."""
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "token"}}
        request = types.CallToolRequest.model_validate({"method": "tools/call", "params": params})
        answer: Awaitable[Any] = self.client.send_request(types.ClientRequest(request), types.CallToolResult)
        return answer

    async def read(self) -> str:
        result = await self.client.read_resource(self.uri())
        return "" if result.contents else "no contents"

    def uri(self) -> Any:
        return self.plan["uri"] if Client else AnyUrl(self.plan["uri"])

    async def update(self) -> str:
        if Client and self.client.protocol_version >= "2026":
            async with self.client.listen(resource_subscriptions=[self.plan["uri"]]) as subscription:
                if not subscription.honored.resource_subscriptions:
                    return "subscription not honored"
                await self.call("update")
                async for event in subscription:
                    return "" if event.uri == self.plan["uri"] else f"unexpected event {event}"
            return "the subscription ended"
        await self.client.subscribe_resource(self.uri())
        await self.call("update")
        await self.until("notifications/resources/updated")
        return ""

    async def cancel(self) -> str:
        tool, arguments, _text = self.plan["cancellation"]
        ends: list[str] = []
        began, ended = anyio.Event(), anyio.Event()

        async def report(_done: float, _total: float | None, _message: str | None) -> None:
            began.set()

        async def call() -> None:
            try:
                if Client or "progress_callback" in self.options:
                    await self.client.call_tool(tool, arguments, progress_callback=report)
                else:
                    await self.send(tool, arguments)
                ends.append("the call has a result")
            except Exception as error:
                ends.append(innermost(error))
            ended.set()

        self.heard.clear()
        async with anyio.create_task_group() as group:
            number = None if Client else self.client._request_id
            group.start_soon(call)
            if Client or "progress_callback" in self.options:
                await began.wait()
            else:
                await self.until("notifications/progress")
            if Client is None:  # SDK 1 has no API for it: its callers send the notification.
                params = types.CancelledNotificationParams(requestId=number, reason="enough")
                notification = types.CancelledNotification(method="notifications/cancelled", params=params)
                await self.client.send_notification(types.ClientNotification(notification))
                with anyio.move_on_after(LATE_SECONDS):
                    await ended.wait()
            group.cancel_scope.cancel()
        if "the call has a result" in ends:
            return ends[0]
        return await self.call("tools/call")

    async def play(self) -> None:
        listed: list[str] = []

        async def tools() -> str:
            listed.extend(tool.name for tool in (await self.client.list_tools()).tools)
            return "" if listed else "no tools"

        await self.step("tools/list", tools())
        self.options = set(inspect.signature(self.client.call_tool).parameters)
        await self.step("tools/call", self.call("tools/call"))
        for feature, work in (
            ("progress", self.progress),
            ("update", self.update),
            ("cancellation", self.cancel),
        ):
            if feature == "update" and "uri" in self.plan:
                await self.step("resources/read", self.read())
            if feature in self.plan and (
                feature != "cancellation" or hasattr(types, "CancelledNotification")
            ):
                await self.step(feature, work())
        for feature in ("elicitation", "sampling"):  # Last: what is not answered may keep a session.
            if feature in self.plan and feature in self.can:
                await self.step(feature, self.call(feature))

    async def run(self, mode: str, command: list[str]) -> None:
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        made = Client or ClientSession
        has = inspect.signature(made.__init__).parameters
        offered = {
            "sampling_callback": self.sample,
            "elicitation_callback": self.elicit,
            "message_handler": self.hear,
        }
        options: dict[str, Any] = {name: value for name, value in offered.items() if name in has}
        self.can = {name.removesuffix("_callback") for name in options}
        self.can |= {"elicitation"} if "elicitation_callback" in options else set()
        async with AsyncExitStack() as stack:
            if Client:
                self.client = await stack.enter_async_context(Client(parameters, mode=mode, **options))
                self.revision = str(self.client.protocol_version)
            else:
                read, write = await stack.enter_async_context(stdio_client(parameters))
                self.client = await stack.enter_async_context(ClientSession(read, write, **options))
                group = await stack.enter_async_context(anyio.create_task_group())
                if "message_handler" not in has:
                    group.start_soon(self.hear_all)
                self.revision = str((await self.client.initialize()).protocolVersion)
                stack.callback(group.cancel_scope.cancel)
            self.features["connect"] = ""
            await self.play()

    async def hear_all(self) -> None:
        async for message in self.client.incoming_messages:
            await self.hear(message)


def innermost(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def main() -> None:
    mode, plan, *command = sys.argv[1:]
    host = Host(json.loads(plan))
    try:
        with anyio.fail_after(SESSION_SECONDS):
            await host.run(mode, command)
    except Exception as error:  # SDK 1 also raises if a message arrives while it closes.
        host.features.setdefault("connect", innermost(error))
    print(json.dumps({"revision": host.revision, "features": host.features}))


if __name__ == "__main__":
    anyio.run(main)
