"""Stubs of four model APIs, of our own: they read what a host offers its model, and have the model call tools.

`ModelServer` listens on 127.0.0.1, keeps every request, and answers in the API of its path: Anthropic Messages, OpenAI
Responses, OpenAI Chat Completions, Gemini generateContent; each streams if the host wants that.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from hostlab.probes import Json


class OfferedTool(NamedTuple):
    """A tool in a model's request."""

    name: str
    description: str
    schema: Any
    namespace: str = ""


class ModelRequest(NamedTuple):
    """The parts of a request to a model that come from MCP servers."""

    tools: list[OfferedTool]
    text: str
    """The instructions and messages, without the results of tools."""
    results: list[Any]
    """Contents of the results of tools, in their order."""


class Api(NamedTuple):
    """An API: how its requests are read, and its responses written."""

    read: Callable[[Json], ModelRequest]
    call: Callable[[str, OfferedTool], Json]
    """Number and tool → a response that calls the tool."""
    text: Callable[[str], Json]
    events: Callable[[Json], Iterator[tuple[str, Json]]]
    """A response → the server-sent events that stream it."""


def _objects(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: Any) -> str:
    """Return all texts in a content: a string, a block, or a list of them."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return _texts(value.get("text") or value.get("parts") or value.get("content"))
    return "\n".join(map(_texts, value)) if isinstance(value, list) else ""


# Anthropic Messages


def _read_anthropic(body: Json) -> ModelRequest:
    tools = [
        OfferedTool(tool.get("name", ""), tool.get("description", ""), tool.get("input_schema"))
        for tool in _objects(body.get("tools"))
    ]
    texts, results = [_texts(body.get("system"))], []
    for message in _objects(body.get("messages")):
        content = message.get("content")
        texts.append(content if isinstance(content, str) else "")
        for block in _objects(content):
            if block.get("type") == "tool_result":
                results.append(block.get("content"))
            else:
                texts.append(_texts(block))
    return ModelRequest(tools, "\n".join(texts), results)


def _anthropic(block: Json, stop: str) -> Json:
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "stub"}
    return {**head, "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _anthropic_events(response: Json) -> Iterator[tuple[str, Json]]:
    def event(kind: str, **parts: Any) -> tuple[str, Json]:
        return kind, {"type": kind, **parts}

    yield event("message_start", message={**response, "content": [], "stop_reason": None})
    (block,) = response["content"]
    if block["type"] == "text":
        start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        start = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield event("content_block_start", index=0, content_block=start)
    yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    ended = {"stop_reason": response["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": 1})
    yield event("message_stop")


ANTHROPIC = Api(
    _read_anthropic,
    lambda number, tool: _anthropic(
        {"type": "tool_use", "id": f"toolu_{number}", "name": tool.name, "input": {}}, "tool_use"
    ),
    lambda text: _anthropic({"type": "text", "text": text}, "end_turn"),
    _anthropic_events,
)


# OpenAI Responses


def _read_responses(body: Json) -> ModelRequest:
    tools = []
    for tool in _objects(body.get("tools")):
        members = _objects(tool.get("tools")) if tool.get("type") == "namespace" else [tool]
        namespace = tool.get("name", "") if tool.get("type") == "namespace" else ""
        tools += [
            OfferedTool(each.get("name", ""), each.get("description", ""), each.get("parameters"), namespace)
            for each in members
        ]
    texts, results = [_texts(body.get("instructions"))], []
    texts += [
        tool.get("description", "") for tool in _objects(body.get("tools")) if tool.get("type") == "namespace"
    ]
    for item in _objects(body.get("input")):
        if item.get("type") == "function_call_output":
            results.append(item.get("output"))
        else:
            texts.append(_texts(item))
    return ModelRequest(tools, "\n".join(texts), results)


def _responses(item: Json) -> Json:
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return {
        "id": "resp_1",
        "object": "response",
        "status": "completed",
        "model": "stub",
        "output": [item],
        "usage": usage,
    }


def _responses_call(number: str, tool: OfferedTool) -> Json:
    space = {"namespace": tool.namespace} if tool.namespace else {}
    named = {"name": tool.name, **space, "arguments": "{}", "status": "completed"}
    return _responses({"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", **named})


def _responses_text(text: str) -> Json:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return _responses(
        {"type": "message", "id": "item_1", "role": "assistant", "status": "completed", "content": content}
    )


def _responses_events(response: Json) -> Iterator[tuple[str, Json]]:
    (item,) = response["output"]
    steps: tuple[Json, ...] = (
        {"type": "response.created", "response": {**response, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response},
    )
    for number, step in enumerate(steps):
        yield step["type"], {**step, "sequence_number": number}


RESPONSES = Api(_read_responses, _responses_call, _responses_text, _responses_events)


# OpenAI Chat Completions


def _read_chat(body: Json) -> ModelRequest:
    tools = []
    for tool in _objects(body.get("tools")):
        function = tool.get("function") or {}
        tools.append(
            OfferedTool(function.get("name", ""), function.get("description", ""), function.get("parameters"))
        )
    messages = _objects(body.get("messages"))
    texts = [_texts(message.get("content")) for message in messages if message.get("role") != "tool"]
    results = [message.get("content") for message in messages if message.get("role") == "tool"]
    return ModelRequest(tools, "\n".join(texts), results)


def _chat(message: Json, reason: str) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "chat_1",
        "object": "chat.completion",
        "created": 0,
        "model": "stub",
        "choices": [choice],
        "usage": usage,
    }


def _chat_call(number: str, tool: OfferedTool) -> Json:
    call = {
        "index": 0,
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": tool.name, "arguments": "{}"},
    }
    return _chat({"content": None, "tool_calls": [call]}, "tool_calls")


def _chat_events(response: Json) -> Iterator[tuple[str, Json]]:
    (choice,) = response["choices"]
    head = {**response, "object": "chat.completion.chunk"}
    parts = {"index": 0, "delta": choice["message"], "finish_reason": None}
    yield "", {**head, "choices": [parts]}
    yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}


CHAT = Api(_read_chat, _chat_call, lambda text: _chat({"content": text}, "stop"), _chat_events)


# Gemini generateContent


def _read_gemini(body: Json) -> ModelRequest:
    tools = [
        OfferedTool(
            tool.get("name", ""),
            tool.get("description", ""),
            tool.get("parametersJsonSchema", tool.get("parameters")),
        )
        for group in _objects(body.get("tools"))
        for tool in _objects(group.get("functionDeclarations"))
    ]
    texts, results = [_texts(body.get("systemInstruction"))], []
    for content in _objects(body.get("contents")):
        parts = _objects(content.get("parts"))
        answers = [part for part in parts if "functionResponse" in part]
        images = [part for part in parts if "inlineData" in part]
        results += [[part["functionResponse"], *images] for part in answers]
        texts += [_texts(part) for part in parts if "functionResponse" not in part]
    return ModelRequest(tools, "\n".join(texts), results)


def _gemini(part: Json) -> Json:
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "modelVersion": "stub", "usageMetadata": {"totalTokenCount": 2}}


GEMINI = Api(
    _read_gemini,
    lambda _, tool: _gemini({"functionCall": {"name": tool.name, "args": {}}}),
    lambda text: _gemini({"text": text}),
    lambda response: iter([("", response)]),
)


def api_of(path: str) -> Api | None:
    """Return the API of a path that asks a model; None for others."""
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return ANTHROPIC
    if path.endswith("/responses"):
        return RESPONSES
    if path.endswith("/chat/completions"):
        return CHAT
    return GEMINI if path.endswith(("generateContent", "GenerateContent")) else None


class ModelServer(ThreadingHTTPServer):
    """A model that calls the planned tools, one a response, and then ends."""

    daemon_threads = True

    def __init__(self, planned: tuple[str | OfferedTool, ...] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.planned = planned
        """The tools to call: by a mark in the description, or as they are where the host shows no definitions."""
        self.requests: list[tuple[str, Json]] = []
        """Path and body of every request, in their order."""
        self._called = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join(10)

    def answer(self, path: str, body: Json) -> tuple[Api, Json] | None:
        """Keep a request; return the response to it, None if the path does not ask a model."""
        with self._lock:
            self.requests.append((path, body))
            if (api := api_of(path)) is None:
                return None
            request = api.read(body)
            while self._called < len(self.planned):
                wanted = self.planned[self._called]
                if isinstance(wanted, OfferedTool):
                    tool: OfferedTool | None = wanted
                else:
                    tool = next((tool for tool in request.tools if wanted in tool.description), None)
                if tool is None and not any("probe" in tool.description for tool in request.tools):
                    break  # A request beside the conversation, for a title or a summary.
                self._called += 1
                if tool is not None:
                    return api, api.call(str(self._called), tool)
            return api, api.text("done")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_GET(self) -> None:
        self.server.requests.append((self.path, {}))
        self._send(b'{"object":"list","data":[],"models":[]}')

    def do_HEAD(self) -> None:
        self._send(b"")

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data)
        except ValueError:
            body = {"unreadable": data[:200].decode("utf-8", "replace")}
        answer = self.server.answer(self.path, body)
        if answer is None:
            self._send(b'{"input_tokens":10,"totalTokens":10}')
            return
        api, response = answer
        if not body.get("stream") and "stream" not in self.path:
            self._send(json.dumps(response).encode())
            return
        lines = []
        for event, part in api.events(response):
            lines.append((f"event: {event}\n" if event else "") + f"data: {json.dumps(part)}\n\n")
        if api is CHAT:
            lines.append("data: [DONE]\n\n")
        self._send("".join(lines).encode(), "text/event-stream")

    def _send(self, data: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass
