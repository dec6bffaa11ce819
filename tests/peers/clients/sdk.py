"""The Python SDK's client: plays one script against one server, and prints a transcript.

    .peers/venv/bin/python tests/peers/clients/sdk.py [--mode auto|legacy|2026-07-28]
        --script everything|filesystem|memory|sdk [--dir DIR] [-- COMMAND ARGS... | [--transport sse] -- URL]

COMMAND is started over stdio; without it, the script's own server is. A URL is reached by streamable HTTP, or by
HTTP+SSE (2024-11-05) with `--transport sse`. `{dir}` in COMMAND is replaced by a working folder:
a new one, or the (empty) one that --dir names. The transcript on stdout is JSON and the same in every run: it has
no times, the script omits values that a server generates in each run, and `{dir}` replaces the folder.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import json
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client import Transport
from mcp.client.session import ClientRequestContext
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import Subscription
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, FileUrl

# Half of the methods here are deprecated in 2026-07-28, but still on the wire.
warnings.simplefilter("ignore", MCPDeprecationWarning)

PEERS = Path(__file__).resolve().parents[3] / ".peers"
NODE_SERVERS = PEERS / "node_modules" / "@modelcontextprotocol"
SDK_SERVER = Path(__file__).resolve().parents[1] / "servers" / "sdk_server.py"

SERVERS: dict[str, list[str]] = {
    "everything": ["node", str(NODE_SERVERS / "server-everything" / "dist" / "index.js"), "stdio"],
    "filesystem": ["node", str(NODE_SERVERS / "server-filesystem" / "dist" / "index.js"), "{dir}"],
    "memory": ["node", str(NODE_SERVERS / "server-memory" / "dist" / "index.js")],
    "sdk": [sys.executable, str(SDK_SERVER)],
}

OVERALL_SECONDS = 30
SYNC_SECONDS = 3  # For a log message that a server may omit.
QUIET_SECONDS = 1  # For progress, which a server cannot report if it responds in JSON.

FORM = {
    "answer": "blue",
    "name": "Ada Lovelace",
    "check": True,
    "email": "ada@example.org",
    "birthdate": "1815-12-10",
    "integer": 7,
    "number": 2.5,
}
"""Answers of the user, for each field that a form may have."""

LEFT_OUT = "(left out: differs in every run)"


class Play:
    """One connection, its transcript, and the user behind it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.steps: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.changed: set[str] = set()
        self.logged = anyio.Event()
        self.client: Client

    @property
    def modern(self) -> bool:
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    # Requests and notifications of the server.

    async def sample(
        self, _context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        self.asked.append({"sampling/createMessage": plain(params)})
        text = types.TextContent(type="text", text="A fixed answer.")
        return types.CreateMessageResult(
            role="assistant", content=text, model="no-model", stop_reason="endTurn"
        )

    async def elicit(
        self, _context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append({"elicitation/create": plain(params)})
        if isinstance(params, types.ElicitRequestURLParams):
            return types.ElicitResult(action="accept")
        if "decline" in params.message:
            return types.ElicitResult(action="decline")
        fields = params.requested_schema["properties"]
        return types.ElicitResult(action="accept", content={key: FORM[key] for key in FORM if key in fields})

    async def roots(self, _context: ClientRequestContext) -> types.ListRootsResult:
        self.asked.append({"roots/list": None})
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl("file:///home/ada/demo"), name="demo")])

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logs.append(plain(params))
        self.logged.set()

    async def hear(self, message: object) -> None:
        # The number of these notifications depends on timing, their existence does not.
        if isinstance(message, types.Notification) and "changed" in message.method:
            self.changed.add(message.method)
        elif isinstance(message, Exception):
            self.steps.append({"step": "(stream)", "exception": type(message).__name__})

    # Requests of the client.

    async def step(self, name: str, answer: Awaitable[Any], **more: Any) -> Any:
        """Wait for the response, and add it or its error to the transcript."""
        entry: dict[str, Any] = {"step": name, **more}
        self.steps.append(entry)
        try:
            result = await answer
        except MCPError as error:
            entry["error"] = plain(error.error)
        except Exception as error:
            # The client itself rejects some requests, each in its own way.
            entry["exception"] = type(error).__name__
        else:
            entry["result"] = plain(result)
            return result
        return None

    async def call(self, tool: str, arguments: dict[str, Any] | None = None) -> None:
        await self.step(f"tools/call {tool}", self.client.call_tool(tool, arguments))

    async def call_with_progress(self, tool: str, arguments: dict[str, Any]) -> None:
        progress: list[list[Any]] = []

        async def report(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total, message])

        answer = self.client.call_tool(tool, arguments, progress_callback=report)
        await self.step(f"tools/call {tool}", answer, progress=progress)

    async def call_and_cancel(self, tool: str) -> None:
        """Cancel the call as soon as it reports progress, or after the time for it."""
        with anyio.move_on_after(QUIET_SECONDS) as scope:

            async def report(_done: float, _total: float | None, _message: str | None) -> None:
                scope.cancel()

            await self.client.call_tool(tool, progress_callback=report)
        self.steps.append({"step": f"tools/call {tool}, then cancel", "cancelled": scope.cancelled_caught})

    async def lists(self, *what: str) -> None:
        known: dict[str, Callable[[], Awaitable[Any]]] = {
            "tools/list": self.client.list_tools,
            "prompts/list": self.client.list_prompts,
            "resources/list": self.client.list_resources,
            "resources/templates/list": self.client.list_resource_templates,
        }
        for method in what or known:
            await self.step(method, known[method]())

    def leave_out(self, *path: str | int) -> None:
        """Remove the value at a path from the last step."""
        place: Any = self.steps[-1]
        *way, last = path
        try:
            for key in way:
                place = place[key]
            del place[last]
        except (KeyError, IndexError, TypeError):
            return  # The value is missing, and the transcript shows that.
        place[last] = LEFT_OUT


def plain(value: Any) -> Any:
    """Return a model as JSON with the names of the wire, without defaults that the model adds."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    return value


async def everything(play: Play) -> None:
    client = play.client
    # 350 ms after the handshake the server requests the roots and logs that. Waiting for it puts this
    # at the same place in every recording.
    with anyio.move_on_after(SYNC_SECONDS):
        await play.logged.wait()
    await play.lists()
    await play.call("echo", {"message": "Grüße, 世界 🎈"})
    await play.call("get-sum", {"a": 2, "b": 40})
    await play.call("get-structured-content", {"location": "Chicago"})
    await play.call("get-tiny-image")
    await play.call("get-annotated-message", {"messageType": "error", "includeImage": False})
    await play.call("get-resource-links", {"count": 2})
    # Not called: get-env (depends on the machine), toggle-simulated-logging (random levels), toggle-subscriber-updates
    # and gzip-file-as-resource (depends on the clock and the network).
    await play.step("prompts/get simple-prompt", client.get_prompt("simple-prompt"))
    await play.step(
        "prompts/get args-prompt", client.get_prompt("args-prompt", {"city": "Paris", "state": "Texas"})
    )
    await play.step(
        "resources/read static",
        client.read_resource("demo://resource/static/document/startup.md"),
    )
    await play.step("resources/read dynamic", client.read_resource("demo://resource/dynamic/text/1"))
    play.leave_out("result", "contents", 0, "text")  # The time of creation.
    await play.step("resources/read unknown", client.read_resource("demo://resource/none"))
    await play.step(
        "completion/complete prompt",
        client.complete(
            types.PromptReference(type="ref/prompt", name="completable-prompt"),
            {"name": "name", "value": "A"},
            {"department": "Engineering"},
        ),
    )
    await play.step(
        "completion/complete template",
        client.complete(
            types.ResourceTemplateReference(
                type="ref/resource", uri="demo://resource/dynamic/text/{resourceId}"
            ),
            {"name": "resourceId", "value": "1"},
        ),
    )
    await play.call_with_progress("trigger-long-running-operation", {"duration": 0.3, "steps": 3})
    await play.call("trigger-sampling-request", {"prompt": "Say something.", "maxTokens": 20})
    await play.call("trigger-elicitation-request")
    link = {"url": "https://example.org/login", "elicitationId": "elicitation-1"}
    await play.call("trigger-url-elicitation", link)
    await play.call("trigger-url-elicitation", {**link, "elicitationId": "elicitation-2", "errorPath": True})
    play.leave_out("error", "data", "elicitations", 0, "elicitationId")  # Random, whatever the argument is.
    await play.call("get-roots-list")
    await play.call("simulate-research-query", {"topic": "wants a task, which this client has not"})
    await play.call("get-sum", {"a": "two"})
    await play.call("no-such-tool")
    await play.step("logging/setLevel", client.set_logging_level("debug"))
    uri = "demo://resource/static/document/startup.md"
    await play.step("resources/subscribe", client.subscribe_resource(uri))
    await play.step("resources/unsubscribe", client.unsubscribe_resource(uri))
    await play.step("ping", client.send_ping())


async def filesystem(play: Play) -> None:
    folder = play.folder
    await play.lists("tools/list")
    await play.call("list_allowed_directories")
    await play.call("create_directory", {"path": str(folder / "notes")})
    await play.call("write_file", {"path": str(folder / "notes" / "a.txt"), "content": "one\ntwo\nthree\n"})
    await play.call("write_file", {"path": str(folder / "b.txt"), "content": "Grüße, 世界 🎈\n"})
    await play.call("list_directory", {"path": str(folder)})
    await play.call("read_text_file", {"path": str(folder / "notes" / "a.txt"), "head": 2})
    await play.call(
        "read_multiple_files", {"paths": [str(folder / "b.txt"), str(folder / "no-such-file.txt")]}
    )
    edits = [{"oldText": "two", "newText": "zwei"}]
    await play.call("edit_file", {"path": str(folder / "notes" / "a.txt"), "edits": edits})
    await play.call("directory_tree", {"path": str(folder)})
    await play.call("search_files", {"path": str(folder), "pattern": "**/*.txt"})
    # Not called: get_file_info (times).
    await play.call("read_text_file", {"path": "/outside/of/the/folder.txt"})
    await play.call("read_text_file", {})


async def memory(play: Play) -> None:
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote the first program"]}
    engine = {"name": "Analytical Engine", "entityType": "machine", "observations": []}
    await play.lists("tools/list", "resources/list")
    await play.call("create_entities", {"entities": [ada, engine]})
    relation = {"from": "Ada", "to": "Analytical Engine", "relationType": "programmed"}
    await play.call("create_relations", {"relations": [relation]})
    more = {"entityName": "Analytical Engine", "contents": ["was never finished"]}
    await play.call("add_observations", {"observations": [more]})
    await play.call("search_nodes", {"query": "program"})
    await play.call("open_nodes", {"names": ["Ada"]})
    await play.call("read_graph")
    await play.call("add_observations", {"observations": [{"entityName": "Nobody", "contents": ["x"]}]})
    await play.call("delete_entities", {"entityNames": ["Ada"]})
    await play.call("read_graph")


async def sdk(play: Play) -> None:
    client = play.client
    await play.lists()
    await play.call("echo", {"text": "Grüße, 世界 🎈"})
    await play.call("echo", {"text": ""})
    await play.call("add", {"a": 2, "b": 2**53 + 1})
    await play.call_with_progress("slow", {"steps": 3})
    await play.call_and_cancel("hang")
    await play.call("fail")
    await play.call("fail", {"crash": True})
    await play.call("ask", {"question": "Which colour?"})
    await play.call("ask", {"question": "Will you decline?"})
    await play.call("log", {"text": "for the log"})
    await play.call("log", {"text": "for the log, too", "level": "error"})
    await play.step("resources/read note://index", client.read_resource("note://index"))
    await play.step("resources/read note://second", client.read_resource("note://second"))
    await play.step("resources/read note://none", client.read_resource("note://none"))
    await play.step("resources/read data://bytes", client.read_resource("data://bytes"))
    await play.step("prompts/get greet", client.get_prompt("greet", {"name": "Ada", "style": "warm"}))
    await play.step("prompts/get greet, no name", client.get_prompt("greet"))
    await play.call("add", {"a": "two"})
    await play.call("no-such-tool")
    if play.modern:
        async with client.listen(resource_subscriptions=["note://first"]) as events:
            await play.call("touch", {"name": "second"})  # A notification without a subscriber.
            await play.call("touch", {"name": "first"})
            await play.step("subscriptions/listen", first_of(events))
    else:
        await play.call("touch", {"name": "first"})
        await play.step("ping", client.send_ping())
    await play.call("echo", {"text": "the last word"})  # Shows the end of the subscription, too.


async def first_of(events: Subscription) -> dict[str, str]:
    event = await anext(events)
    return {type(event).__name__: str(getattr(event, "uri", ""))}


SCRIPTS: dict[str, Callable[[Play], Awaitable[None]]] = {
    "everything": everything,
    "filesystem": filesystem,
    "memory": memory,
    "sdk": sdk,
}


@asynccontextmanager
async def connected(
    play: Play, script: str, mode: str, command: list[str], transport: str
) -> AsyncIterator[Client]:
    command = [word.replace("{dir}", str(play.folder)) for word in command]
    target: str | StdioServerParameters | Transport = command[0]
    if transport == "sse":
        target = sse_client(command[0])
    elif not command[0].startswith(("http://", "https://")):
        # Absolute, or the server stores the graph among its own files. Other servers ignore it.
        graph = {"MEMORY_FILE_PATH": str(play.folder / "memory.jsonl")}
        target = StdioServerParameters(command=command[0], args=command[1:], env=graph)
    # The filesystem server takes roots in place of its arguments, so only one server is offered any.
    all_of_it = script == "everything"
    async with Client(
        target,
        mode=mode,
        client_info=types.Implementation(name="sdk-client", version="1.0.0"),
        elicitation_callback=play.elicit,
        sampling_callback=play.sample if all_of_it else None,
        list_roots_callback=play.roots if all_of_it else None,
        logging_callback=play.log,
        log_level="debug",
        message_handler=play.hear,
    ) as client:
        yield client


async def run(script: str, mode: str, command: list[str], transport: str, folder: Path) -> dict[str, Any]:
    play = Play(folder)
    with anyio.fail_after(OVERALL_SECONDS):
        async with connected(play, script, mode, command, transport) as client:
            play.client = client
            opening = {
                "script": script,
                "mode": mode,
                "protocolVersion": client.protocol_version,
                "serverInfo": plain(client.server_info),
                "capabilities": plain(client.server_capabilities),
                "instructions": client.instructions,
            }
            await SCRIPTS[script](play)
    said = {"asked": play.asked, "logs": play.logs, "changed": sorted(play.changed)}
    return {**opening, "steps": play.steps, **said}


def reason(error: BaseException) -> str:
    """Return the innermost error, on one line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"not done within {OVERALL_SECONDS} s"
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main() -> int:
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description="Play a script against a server.", usage="%(prog)s --script NAME [options] [-- COMMAND]"
    )
    parser.add_argument("--script", choices=SCRIPTS, required=True)
    parser.add_argument("--mode", choices=["auto", "legacy", *MODERN_PROTOCOL_VERSIONS], default="auto")
    parser.add_argument("--transport", choices=["http", "sse"], default="http", help="how to speak to a URL")
    parser.add_argument("--dir", type=Path, help="the working folder; default: a new one, removed afterwards")
    options = parser.parse_args(words[:at])
    command = words[at + 1 :] or SERVERS[options.script]
    # Resolved, because servers answer with the true path (/tmp is a link on macOS).
    folder = (options.dir or Path(tempfile.mkdtemp(prefix="peer-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        transcript = anyio.run(run, options.script, options.mode, command, options.transport, folder)
    except Exception as error:
        print(f"sdk.py: {reason(error)}", file=sys.stderr)
        return 1
    finally:
        if options.dir is None:
            shutil.rmtree(folder, ignore_errors=True)
    text = json.dumps(transcript, indent=2, ensure_ascii=False).replace(str(folder), "{dir}")
    sys.stdout.buffer.write(text.encode("utf-8") + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
