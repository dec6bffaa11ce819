"""Parser of frames into JSON-RPC 2.0 requests, notifications, results, failures, malformed messages.

The members of a message determine its kind (protocol revisions 2024-11-05 to 2026-07-28, basic/messages). The
parser never raises: unreadable data becomes `Malformed`, and a readable message that violates the protocol has
`flaws`. Payloads stay bytes until they are used.
"""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar, TypeAlias

import orjson
from msgspec import DecodeError, Raw, Struct, field, structs
from msgspec.json import Decoder

from mcpspy.core.jsontools import json_parts, members_of, without_deep
from mcpspy.core.protocol.spec import META, METHODS, error_name
from mcpspy.core.recording.decode import Frame

_ABSENT, _NULL, _TRUE, _VERSION = Raw(b""), Raw(b"null"), Raw(b"true"), Raw(b'"2.0"')


class _Envelope(Struct, gc=False):
    """Undecoded members of a message. An absent member is empty; `null` is not."""

    jsonrpc: Raw = _ABSENT
    id: Raw = _ABSENT
    method: Raw = _ABSENT
    params: Raw = _ABSENT
    result: Raw = _ABSENT
    error: Raw = _ABSENT


class Body(Struct, gc=False):
    """Undecoded members of `params` or `result` that correlation and display use."""

    meta: Raw = field(name="_meta", default=_ABSENT)
    name: Raw = _ABSENT
    uri: Raw = _ABSENT
    level: Raw = _ABSENT
    cursor: Raw = _ABSENT
    ref: Raw = _ABSENT
    message: Raw = _ABSENT
    task_id: Raw = field(name="taskId", default=_ABSENT)
    elicitation_id: Raw = field(name="elicitationId", default=_ABSENT)
    request_id: Raw = field(name="requestId", default=_ABSENT)
    progress_token: Raw = field(name="progressToken", default=_ABSENT)
    progress: Raw = _ABSENT
    total: Raw = _ABSENT
    is_error: Raw = field(name="isError", default=_ABSENT)
    result_type: Raw = field(name="resultType", default=_ABSENT)
    task: Raw = _ABSENT
    request_state: Raw = field(name="requestState", default=_ABSENT)
    input_requests: Raw = field(name="inputRequests", default=_ABSENT)
    input_responses: Raw = field(name="inputResponses", default=_ABSENT)


class Message(Struct, frozen=True, kw_only=True, gc=False):
    kind: ClassVar[str]
    """`request`, `notification`, `result`, `error` or `malformed`, as filters and exports name it."""
    frame: Frame
    index: int | None = None
    """Position in a batch; None for a message outside a batch."""
    flaws: tuple[str, ...] = ()
    """Protocol violations of a readable message."""
    data: bytes
    """Bytes of the message: all bytes of the frame, or a slice of a batch."""

    @property
    def at(self) -> float:
        return self.frame.at

    @property
    def side(self) -> str:
        return self.frame.side


class _Call(Message, frozen=True, kw_only=True, gc=False):
    method: str
    raw_params: Raw
    body: Body

    @property
    def params(self) -> Any:
        return loads(self.raw_params)

    @property
    def meta(self) -> Raw:
        """`_meta`, not decoded; empty if it is absent."""
        return self.body.meta

    @property
    def subject(self) -> str | None:
        """Name or URI of the tool, resource, prompt …"""
        return _subject(self.method, self.body)


class Request(_Call, frozen=True, kw_only=True, gc=False):
    """A message with `method` and `id`."""

    kind = "request"
    id: str
    """JSON text of the id: `1`, `"1"`, `1.0` and `true` are four different ids."""

    @property
    def progress_token(self) -> str | None:
        return text(meta_raw(self.meta, "progressToken"))

    @property
    def revision(self) -> str | None:
        """The revision in `_meta` (2026-07-28)."""
        version = decoded(meta_raw(self.meta, META + "protocolVersion"))
        return version if isinstance(version, str) else None


class Notification(_Call, frozen=True, kw_only=True, gc=False):
    """A message with `method` and without `id`."""

    kind = "notification"


class Result(Message, frozen=True, kw_only=True, gc=False):
    """A message with `result` and without `method`."""

    kind = "result"
    id: str | None
    raw_result: Raw
    body: Body

    @property
    def result(self) -> Any:
        return loads(self.raw_result)

    @property
    def meta(self) -> Raw:
        """`_meta`, not decoded; empty if it is absent."""
        return self.body.meta

    @property
    def is_tool_error(self) -> bool:
        return self.body.is_error == _TRUE

    @property
    def text(self) -> str:
        """The texts of the content, one per line: of a tool error, the reason."""
        result = self.result
        if isinstance(result, dict) and isinstance(within := result.get("result"), dict):
            result = within  # That of a task (2026-07-28, `tasks/get`).
        content = result.get("content") if isinstance(result, dict) else None
        items = content if isinstance(content, list) else []
        texts = (item.get("text") for item in items if isinstance(item, dict))
        return "\n".join(each for each in texts if isinstance(each, str))

    @property
    def is_task(self) -> bool:
        """True if a task continues the work: member `task` (2025-11-25) or result type `task` (2026-07-28)."""
        return bool(self.body.task) or self.result_type == "task"

    @property
    def result_type(self) -> str:
        """`complete`, `input_required`, `task` … (2026-07-28); an absent type means `complete`."""
        kind = decoded(self.body.result_type)
        return kind if isinstance(kind, str) and kind else "complete"


class Failure(Message, frozen=True, kw_only=True, gc=False):
    """A message with `error` and without `method`."""

    kind = "error"
    id: str | None
    """None if the id is absent or `null`: the failure then belongs to no request."""
    raw_error: Raw

    @property
    def error(self) -> Any:
        return loads(self.raw_error)

    @property
    def code(self) -> int | None:
        """The code if it is an integer, as JSON-RPC requires."""
        code = loads(meta_raw(self.raw_error, "code"))
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    @property
    def code_text(self) -> str | None:
        """The code as JSON text, whatever its type: `-32601`, `"ENOENT"`, `1.5`; None if it is absent or `null`."""
        code = text(meta_raw(self.raw_error, "code"))
        return None if code == "null" else code

    @property
    def text(self) -> str:
        """The message; or the error, if it is not an object. Either is JSON text if it is not a string.

        A string is an error of OAuth (RFC 6749, 5.2) or of a gateway, whose description is beside it.
        """
        raw = meta_raw(self.raw_error, "message") if bytes(self.raw_error)[:1] == b"{" else self.raw_error
        value = loads(raw)
        if isinstance(value, str) and raw is self.raw_error:
            for name in ("error_description", "message"):
                if isinstance(description := loads(meta_raw(Raw(self.data), name)), str):
                    return f"{value}: {description}"
            return value
        return value if isinstance(value, str) else "" if value is None else text(raw) or ""

    @property
    def description(self) -> str:
        """Code, name and message: `error -32601 method not found: no such tool`. A message equal to the name is left out."""
        name, message = error_name(self.code), self.text.strip()
        head = " ".join(filter(None, ("error", self.code_text, name)))
        return f"{head}: {message}" if message and message.lower() != name else head


class Malformed(Message, frozen=True, kw_only=True, gc=False):
    """Data that is not a JSON-RPC message."""

    kind = "malformed"
    why: str


AnyMessage: TypeAlias = Request | Notification | Result | Failure | Malformed

_decode_envelope = Decoder(_Envelope).decode
_decode_body = Decoder(Body).decode
_decode_items = Decoder(list[Raw]).decode
_decode_any = Decoder(Raw).decode

_EMPTY = Body()
_ATTRIBUTES = dict(zip(Body.__struct_encode_fields__, Body.__struct_fields__, strict=True))

_METHOD_NAMES = {f'"{name}"'.encode(): name for name in METHODS}
"""JSON text of a method's name → the name."""

_BEYOND_64_BITS = re.compile(rb"[0-9]{19}")


NEVER_COMPLETED = "a response that was never completed"


def read_frame(frame: Frame) -> list[AnyMessage]:
    """Return the messages of a frame: one, or several for a batch (2025-03-26).

    A response whose line, event or body was never completed is malformed: no parser of a peer has dispatched it.
    """
    if not frame.eol:
        return [_incomplete(frame, each) for each in read_frame(structs.replace(frame, eol="\n"))]
    data = frame.data
    flaws: tuple[str, ...] = ()
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            # All servers tested accept such a line, with U+FFFD in it, so it may get a response.
            data = data.decode("utf-8", "replace").encode()
            flaws = ("not UTF-8",)
    try:
        if data.lstrip()[:1] == b"[":
            items = _items(data)
            if not items:
                return [Malformed(frame=frame, data=frame.data, why="empty batch")]
            return [
                _read(frame, item, _envelope(item), flaws, index)
                if item[:1] == b"{"
                else Malformed(frame=frame, data=item, index=index, why="not an object")
                for index, item in enumerate(items)
            ]
        return [_read(frame, frame.data, _envelope(data), flaws, None)]
    except (DecodeError, ValueError):
        return _read_loosely(frame, data, flaws)


def _incomplete(frame: Frame, message: AnyMessage) -> AnyMessage:
    """Return a message of a frame whose end never arrived."""
    if isinstance(message, Result | Failure):
        return Malformed(frame=frame, data=message.data, index=message.index, why=NEVER_COMPLETED)
    return structs.replace(message, frame=frame)


def _items(data: bytes) -> list[bytes]:
    try:
        return [bytes(item) for item in _decode_items(data)]
    except RecursionError:
        return [item for _, item in json_parts(data).parts]


def _envelope(data: bytes) -> _Envelope:
    try:
        return _decode_envelope(data)
    except RecursionError:
        members = members_of(data)
        return _Envelope(**{key: members[key] for key in _Envelope.__struct_fields__ if key in members})


def _read_loosely(frame: Frame, data: bytes, flaws: tuple[str, ...]) -> list[AnyMessage]:
    """Parse JSON that strict parsers reject and some peers accept: NaN, lone surrogates."""
    if not data.strip():
        return [Malformed(frame=frame, data=frame.data, why="blank line")]
    try:
        value = json.loads(data.decode())
        if isinstance(value, dict | list) or not _is_strict(data):
            flaws = (*flaws, "not strict JSON")
        if isinstance(value, list):
            return [
                _read_value(frame, json.dumps(item).encode(), item, flaws, index)
                for index, item in enumerate(value)
            ]
        return [_read_value(frame, frame.data, value, flaws, None)]
    except RecursionError:
        return [Malformed(frame=frame, data=frame.data, why="nested too deep")]
    except ValueError as error:
        return [Malformed(frame=frame, data=frame.data, flaws=flaws, why=_reason(data, error))]


def _is_strict(data: bytes) -> bool:
    try:
        _decode_any(data)
    except DecodeError:
        return False
    return True


def _read_value(
    frame: Frame, data: bytes, value: Any, flaws: tuple[str, ...], index: int | None
) -> AnyMessage:
    if not isinstance(value, dict):
        return Malformed(frame=frame, data=data, index=index, flaws=flaws, why="not an object")
    members = {
        key: Raw(json.dumps(value[key]).encode()) for key in _Envelope.__struct_fields__ if key in value
    }
    return _read(frame, data, _Envelope(**members), flaws, index)


def _read(
    frame: Frame, data: bytes, envelope: _Envelope, flaws: tuple[str, ...], index: int | None
) -> AnyMessage:
    raw_id, params = bytes(envelope.id), envelope.params
    if envelope.jsonrpc != _VERSION:
        flaws = (*flaws, 'jsonrpc is not "2.0"')
    if envelope.method:
        method = _METHOD_NAMES.get(bytes(envelope.method)) or decoded(envelope.method)
        if not isinstance(method, str):
            return Malformed(frame=frame, data=data, index=index, flaws=flaws, why="method is not a string")
        body = _body(params)
        if not raw_id:
            return Notification(
                frame=frame, data=data, index=index, flaws=flaws, method=method, raw_params=params, body=body
            )
        if (flaw := _id_flaw(raw_id)) is not None:
            flaws = (*flaws, flaw)
        return Request(
            frame=frame,
            data=data,
            index=index,
            flaws=flaws,
            id=_id_text(raw_id),
            method=method,
            raw_params=params,
            body=body,
        )
    request_id = None if raw_id in (b"", b"null") else _id_text(raw_id)
    result, error = envelope.result, envelope.error
    if result and error:
        flaws = (*flaws, "both result and error")
    if error and not (result and error == _NULL):  # Some peers write an error of null.
        return Failure(frame=frame, data=data, index=index, flaws=flaws, id=request_id, raw_error=error)
    if result:
        return Result(
            frame=frame,
            data=data,
            index=index,
            flaws=flaws,
            id=request_id,
            raw_result=result,
            body=_body(result),
        )
    return Malformed(frame=frame, data=data, index=index, flaws=flaws, why="neither method, result nor error")


def _body(raw: Raw) -> Body:
    """Return the members of an object; an empty `Body` for any other value."""
    if not raw:
        return _EMPTY
    try:
        return _decode_body(raw)
    except (DecodeError, RecursionError):
        members = raw_members(raw)
        return Body(**{name: members[key] for key, name in _ATTRIBUTES.items() if key in members})


def meta_raw(meta: Raw, key: str) -> Raw:
    """Return a member of `_meta`, or of any object, not decoded; empty if it is absent."""
    return raw_members(meta).get(key, _ABSENT) if bytes(meta)[:1] == b"{" else _ABSENT


def raw_members(raw: Raw) -> dict[str, Raw]:
    """Return the members of an object that a strict parser may reject; no members if it is unreadable."""
    try:
        return members_of(raw)
    except (DecodeError, ValueError):
        value = loads(raw)
        members = value if isinstance(value, dict) else {}
        return {key: Raw(json.dumps(item).encode()) for key, item in members.items()}


def text(raw: Raw) -> str | None:
    """Return the JSON text of a value, for comparison of ids and tokens; None if the value is absent."""
    data = bytes(raw)
    return _id_text(data) if data else None


def decoded(raw: Raw) -> Any:
    """Return the value of a small member; None if it is absent or invalid."""
    data = bytes(raw)
    if not data:
        return None
    try:
        return orjson.loads(data)
    except ValueError:
        return None


def loads(data: Raw | bytes) -> Any:
    """Decode JSON text, with `json` where orjson rejects or rounds values; None if it is empty or invalid.

    A container at the level `DEEP` is its JSON text: functions that call themselves once per level fail on more. So a
    text that deep is invalid if it is not strict (NaN, Infinity).
    """
    if not (data := bytes(data)):
        return None
    try:
        data = without_deep(data)
    except ValueError:
        return None
    if not _BEYOND_64_BITS.search(data):  # orjson reads such integers as floats.
        try:
            return orjson.loads(data)
        except ValueError:
            pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _id_text(data: bytes) -> str:
    if b"\\" in data:  # `"\u0031"` is the string `"1"`.
        try:
            return orjson.dumps(orjson.loads(data)).decode()
        except (ValueError, TypeError):  # A lone surrogate, or too deep nesting.
            pass
    return data.decode("utf-8", "replace")


def _id_flaw(data: bytes) -> str | None:
    """Describe an id that is neither a string nor an integer (JSON-RPC 2.0, 4)."""
    if data[:1] == b'"' or data.lstrip(b"-").isdigit():
        return None
    return f"id is {data.decode('utf-8', 'replace')[:20]}"


def _subject(method: str, body: Body) -> str | None:
    known = METHODS.get(method)
    if known is None or known.subject is None:
        return None
    raw: Raw = getattr(body, _ATTRIBUTES[known.subject])
    value = decoded(raw)
    if isinstance(value, dict):  # A completion's `ref` names a prompt or a resource template.
        value = value.get("name", value.get("uri"))
    return value if value is None or isinstance(value, str) else text(raw)


def _reason(data: bytes, error: ValueError) -> str:
    start = data.lstrip()[:1]
    if data.startswith(b"\xef\xbb\xbf"):
        return "starts with a byte order mark"
    if start not in (b"{", b"["):
        return "not JSON"
    return f"not JSON: {error}"
