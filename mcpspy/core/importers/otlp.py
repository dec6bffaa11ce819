"""Importer of OpenTelemetry spans of MCP requests: OTLP/JSON, one request or one per line.

Spans with a body are imported: `gen_ai.tool.call.arguments` and `.result` (semantic-conventions-genai,
docs/gen-ai/mcp.md, status Development, opt-in; it has no bodies of other methods), `mcp.request.argument.NAME`,
`mcp.tool.result.content` and `mcp.prompt.result.*` (Sentry), `mcp.request.argument` and `mcp.response.value`
(OpenLLMetry). The rest of a request is built from its attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import ImportedSession, RecordingLines, compact, read, read_lines
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, other
from mcpspy.errors import UsageError

NAME = "otlp"

LACKS = [
    "notifications, and requests without a body, such as most handshakes",
    "`_meta` of requests, `data` of errors, and the type of ids (digits are read as a number)",
    "the server's command and URL, stderr and exit status, HTTP headers and exchanges",
    "the transport, if the spans do not name it (stdio is assumed)",
    "the original bytes of messages",
]

_TOOLS_CALL, _PROMPTS_GET = "tools/call", "prompts/get"

_TARGETS = {
    _TOOLS_CALL: ("name", "gen_ai.tool.name", "mcp.tool.name"),
    _PROMPTS_GET: ("name", "gen_ai.prompt.name", "mcp.prompt.name"),
    **dict.fromkeys(
        ("resources/read", "resources/subscribe", "resources/unsubscribe"), ("uri", "mcp.resource.uri")
    ),
}
"""Method → member of `params` that names its target, and the attributes that contain it."""

_REQUEST, _ARGUMENT, _PROMPT = "mcp.request.argument", "mcp.request.argument.", "mcp.prompt.result."

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")

_SERVER_KIND = (2, "SPAN_KIND_SERVER")


class _Attribute(Struct):
    key: str
    value: dict[str, Any] = {}


class _Status(Struct):
    message: str = ""


class _Span(Struct, rename="camel"):
    start_time_unix_nano: int | str
    end_time_unix_nano: int | str
    span_id: str = ""
    parent_span_id: str | None = ""
    kind: int | str = 0
    attributes: list[_Attribute] = []
    status: _Status = msgspec.field(default_factory=_Status)


class _Scope(Struct):
    spans: list[_Span] = []


class _Resource(Struct):
    attributes: list[_Attribute] = []


class _ResourceSpans(Struct, rename="camel"):
    resource: _Resource = msgspec.field(default_factory=_Resource)
    scope_spans: list[_Scope] = []


class _Request(Struct, rename="camel"):
    resource_spans: list[_ResourceSpans] = []


class _Call(Struct):
    """A span of a request, with the attributes of its resource."""

    span: _Span
    method: str
    values: dict[str, Any]

    @property
    def sender(self) -> str:
        known = METHODS.get(self.method)
        return SERVER if known is not None and known.sender == SERVER else CLIENT

    @property
    def has_body(self) -> bool:
        return self.arguments is not None or _REQUEST in self.values or self.result is not None

    @property
    def target(self) -> tuple[str, Any] | None:
        """The member of `params` that names the tool, prompt or resource, and its value."""
        member, *keys = _TARGETS.get(self.method, ("",))
        return next(((member, self.values[key]) for key in keys if key in self.values), None)

    @property
    def params(self) -> tuple[bytes, bool]:
        """`params` as JSON, and whether nothing is missing."""
        request = msgspec.json.decode(_json(self.values.get(_REQUEST)))
        if isinstance(request, dict) and request.get("method") == self.method:
            return _json(request.get("params", {}), parse=False), True
        member, arguments = self.target, self.arguments
        members = [] if member is None else [(member[0], _json(member[1], parse=False))]
        members += [] if arguments is None else [("arguments", arguments)]
        is_whole = arguments is not None or (member is not None and member[0] == "uri")
        return b"{%b}" % b",".join(b'"%b":%b' % (key.encode(), value) for key, value in members), is_whole

    @property
    def id(self) -> str | None:
        found = self.values.get("jsonrpc.request.id", self.values.get("mcp.request.id"))
        return None if found is None else str(found)

    @property
    def arguments(self) -> bytes | None:
        if (body := self.values.get("gen_ai.tool.call.arguments")) is not None:
            return _json(body)
        named = {
            key.removeprefix(_ARGUMENT): body
            for key, body in self.values.items()
            if key.startswith(_ARGUMENT)
        }
        if self.method not in (_TOOLS_CALL, _PROMPTS_GET):
            return None
        if self.method == _PROMPTS_GET:
            named.pop("name", None)  # Sentry repeats the name of the prompt.
        members = (_json(key, parse=False) + b":" + _json(body) for key, body in named.items())
        return b"{" + b",".join(members) + b"}" if named else None

    @property
    def result(self) -> Any:
        keys = ("gen_ai.tool.call.result", "mcp.response.value", "mcp.tool.result.content")
        return next((self.values[key] for key in keys if key in self.values), self._prompt)

    @property
    def _prompt(self) -> dict[str, Any] | None:
        """The result of `prompts/get`, of which Sentry records texts; None if a message is missing."""
        count, messages = self.values.get(_PROMPT + "message_count"), []
        for number in range(count if isinstance(count, int) else 0):
            start = f"{_PROMPT}message_" if count == 1 else f"{_PROMPT}{number}."
            role, text = (self.values.get(start + key) for key in ("role", "content"))
            if role is None or text is None:
                return None
            messages.append({"role": role, "content": {"type": "text", "text": text}})
        description = self.values.get(_PROMPT + "description")
        about = {} if description is None else {"description": description}
        return {**about, "messages": messages} if messages else None


class _Session:
    def __init__(self, key: str, values: dict[str, Any]) -> None:
        self.key = key
        self.lines = RecordingLines(by_time=True)
        self.is_http = values.get("network.transport", "pipe") != "pipe"
        self.name = str(values.get("mcpspy.recording.name") or values.get("service.name") or "")
        self.numbered = self.wrapped = self.unknown = self.unanswered = 0

    def add(self, call: _Call) -> None:
        """Add the request and the response of a call."""
        fields: dict[str, str] = {"stream": "1"} if self.is_http else {}
        start, end = (_seconds(at) for at in (call.span.start_time_unix_nano, call.span.end_time_unix_nano))
        begin = b'{"jsonrpc":"2.0","id":%b,' % self._number(call.id)
        params, is_whole = call.params
        self.unknown += not is_whole
        request = b'%b"method":%b,"params":%b}' % (begin, _json(call.method, parse=False), params)
        self.lines.message(start, call.sender, request, **fields)
        if (answer := self._answer(call)) is None:
            self.unanswered += 1
        else:
            self.lines.message(max(start, end), other(call.sender), begin + answer + b"}", **fields)

    def imported(self) -> ImportedSession:
        changes = (
            ("request ids numbered, because the file has none", self.numbered, "request"),
            ("results that are not MCP results, as text content", self.wrapped, "response"),
            ("requests whose arguments are not in the file", self.unknown, "request"),
            ("requests whose response is not in the file", self.unanswered, "request"),
        )
        return self.lines.session(
            format=NAME,
            key=self.key,
            name=self.name,
            transport="http" if self.is_http else "stdio",
            lacks=LACKS,
            changed=[f"{change}: {counted(number, noun)}" for change, number, noun in changes if number],
        )

    def _number(self, text: str | None) -> bytes:
        if text is None:
            self.numbered += 1
            return b'"import-%d"' % self.numbered
        return text.encode() if _INTEGER.fullmatch(text) else _json(text, parse=False)

    def _answer(self, call: _Call) -> bytes | None:
        """Return the `result` or `error` member; None if the span has neither."""
        code = str(call.values.get("rpc.response.status_code", ""))
        if (result := call.result) is not None:
            data = _json(result)
            if _is_result(data, call.method):
                return b'"result":' + data
            if call.method != _TOOLS_CALL:
                return None
            self.wrapped += 1
            text = result if isinstance(result, str) else data.decode()
            error = b',"isError":true' if "error.type" in call.values else b""
            return b'"result":{"content":[{"type":"text","text":%b}]%b}' % (_json(text, parse=False), error)
        if _INTEGER.fullmatch(code) and code != "0":
            message = _json(call.span.status.message, parse=False)
            return b'"error":{"code":%b,"message":%b}' % (code.encode(), message)
        return None


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the sessions with requests, by MCP session id, recording or service; raise UsageError."""
    calls, total = [], 0
    for resource in _resources(data):
        service = _values(resource.resource.attributes)
        for span in (span for scope in resource.scope_spans for span in scope.spans):
            values = _values(span.attributes)
            method = values.get("mcp.method.name")
            if method is None and values.get("rpc.system") == "mcp":
                method = values.get("rpc.method")
            total += method is not None
            if isinstance(method, str) and not method.startswith("notifications/"):
                calls.append(_Call(span, method, service | values))
    found: dict[str, _Session] = {}
    merged = _merged(calls)
    for call in merged:
        if not call.has_body:
            continue
        values = call.values
        keys = ("mcp.session.id", "mcpspy.recording.id", "service.instance.id", "service.name")
        key = str(next((values[key] for key in keys if values.get(key)), ""))
        found.setdefault(key, _Session(key, values)).add(call)
    if not found:
        if not total:
            raise UsageError("contains no MCP spans", "see docs/import.md")
        raise UsageError(
            f"contains no message bodies, only the names and times of {counted(total, 'MCP span')}",
            "mcpspy exports none; elsewhere, record gen_ai.tool.call.arguments and gen_ai.tool.call.result",
        )
    return [session.imported() for session in found.values()]


def _resources(data: bytes) -> Iterator[_ResourceSpans]:
    try:
        requests = [msgspec.json.decode(data.split(b"\n", 1)[0], type=_Request)]
        requests = [request for _, request in read_lines(data, _Request, NAME)]
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        requests = [read(data, _Request, NAME)]
    return (resource for request in requests for resource in request.resource_spans)


def _merged(calls: list[_Call]) -> list[_Call]:
    """Return the calls; the server's span of a call is merged into its parent, the client's span of the same call."""
    spans = {call.span.span_id: call for call in calls if call.span.span_id}
    merged = []
    for call in calls:
        parent = spans.get(call.span.parent_span_id or "")
        if (
            parent is not None
            and call.method == parent.method
            and call.span.kind in _SERVER_KIND
            and parent.span.kind != call.span.kind
        ):
            parent.values = call.values | parent.values
        else:
            merged.append(call)
    return merged


def _values(attributes: list[_Attribute]) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    """Return an AnyValue of OTLP/JSON (common.proto) as a value of JSON; None for an unknown type."""
    match value:
        case {"intValue": str() as number} if _INTEGER.fullmatch(number):
            return int(number)
        case {"arrayValue": {"values": list(values)}}:
            return [_value(each) for each in values]
        case {"kvlistValue": {"values": list(members)}}:
            return {
                str(each.get("key")): _value(each.get("value")) for each in members if isinstance(each, dict)
            }
        case {"stringValue": item} | {"boolValue": item} | {"doubleValue": item} | {"intValue": item}:
            return item
    return None


def _json(value: Any, *, parse: bool = True) -> bytes:
    """Return a value as JSON; with `parse`, copy a text that is JSON."""
    if parse and isinstance(value, str):
        try:
            data = compact(value.encode())
            msgspec.json.decode(data)
            return data
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            pass  # Plain text.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _is_result(data: bytes, method: str) -> bool:
    found = msgspec.json.decode(data)
    return isinstance(found, dict) and (
        method != _TOOLS_CALL
        or bool(found.keys() & {"content", "structuredContent", "isError", "resultType"})
    )


def _seconds(nanoseconds: int | str) -> float:
    try:
        return int(nanoseconds) / 1e9
    except ValueError:
        raise UsageError(f"invalid {NAME}: {str(nanoseconds)[:40]!r} is not a time in nanoseconds") from None
