"""Typed decoding of plain lines: messages of a recording that need no lenient reading.

Owns the fast decoder. It accepts a subset of what `core.recording.decode` and `core.protocol.message`
accept and reads it the same way; None means "read it with those instead", never an
error. Most lines of a long recording are plain, and payload values are skipped
without being decoded. `UnreadRequest`, `UnreadNotification` and `UnreadResult` are such messages as values,
which read their params or result when these are needed.

A plain message has `jsonrpc` 2.0, members of the declared types, and neither `error`,
a task, nor a part of an input_required exchange. A plain head has no event id and no
trace of interception. Callers check the id themselves: by `plain_id`, or that it is above 0.
"""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeVar, cast

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field, structs
from msgspec.json import Decoder

from mcpspy.core.protocol.message import Body, Notification, Request, Result, read_frame
from mcpspy.core.protocol.spec import META, METHODS
from mcpspy.core.recording.decode import Frame

ABSENT = Raw()

PAYLOAD = b',"msg":'
"""Separates a frame's head from a payload recorded as it was on the wire. See `core.recording.decode.read_entry`."""

P = TypeVar("P")
ID = TypeVar("ID")


class PlainHead(Struct, gc=False, forbid_unknown_fields=True):
    """The head of a frame."""

    t: float
    side: Literal["client", "server"] = field(name="from")
    stream: str | None = None
    http: int | None = None
    event: str | None = None
    eol: Literal["\n", "\r\n"] = "\n"
    data_space: bool = True


class PlainMeta(Struct, gc=False):
    """The members of a request's `_meta` that correlation needs."""

    token: Raw = field(name="progressToken", default=ABSENT)
    revision: str = field(name=META + "protocolVersion", default="")
    client: Raw = field(name=META + "clientInfo", default=ABSENT)


class PlainParams(Struct, gc=False):
    """The members of `params` that name a subject, where it is a string."""

    meta: PlainMeta | None = field(name="_meta", default=None)
    name: str = ""
    uri: str = ""
    level: str = ""
    cursor: str = ""
    message: str = ""
    task_id: str = field(name="taskId", default="")
    ref: UnsetType = UNSET
    request_state: UnsetType = field(name="requestState", default=UNSET)
    input_responses: UnsetType = field(name="inputResponses", default=UNSET)


class PlainResult(Struct, gc=False):
    """The members of `result` that decide the outcome of a request."""

    is_error: bool = field(name="isError", default=False)
    result_type: Literal["", "complete"] = field(name="resultType", default="")
    task: UnsetType = UNSET
    meta: Raw = field(name="_meta", default=ABSENT)


class PlainMessage(Struct, Generic[P, ID], gc=False):
    """A request, notification or result; `P` and `ID` are the types of `params` and the id."""

    jsonrpc: Literal["2.0"]
    id: ID | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: P | UnsetType = UNSET
    result: PlainResult | UnsetType = UNSET
    error: UnsetType = UNSET


SUBJECTS = {
    name: attribute
    for name, method in METHODS.items()
    if (attribute := {"taskId": "task_id"}.get(method.subject or "", method.subject))
    in ("name", "uri", "level", "cursor", "message", "task_id")
}
"""Method → the attribute of `PlainParams` that is its subject."""


class _ProgressParams(Struct, gc=False):
    token: Raw = field(name="progressToken", default=ABSENT)


class _Progress(Struct, gc=False):
    params: _ProgressParams


_decode_progress = Decoder(_Progress).decode


def progress_token(data: bytes) -> Raw:
    """Return the token of `notifications/progress`, not decoded; empty if it has none."""
    try:
        return _decode_progress(data).params.token
    except DecodeError:
        return ABSENT


decode_head = Decoder(PlainHead).decode
decode_message = Decoder(PlainMessage[PlainParams, int]).decode
"""Decode a message with typed params and an integer id."""

_decode_raw = Decoder(PlainMessage[Raw, Raw]).decode


def plain_line_raw(line: bytes) -> tuple[PlainHead, PlainMessage[Raw, Raw], bytes] | None:
    """Decode a line: head, message with params and id as bytes, and its own bytes; None if it is not plain.

    `core.session.correlation` does the same with `decode_message`, in its loop.
    """
    split = line.find(PAYLOAD)
    if split < 0 or line[-2:] != b"}}":
        return None
    data = line[split + len(PAYLOAD) : -1]
    try:
        if not data.isascii():
            data.decode()
        return decode_head(line[:split] + b"}"), _decode_raw(data), data
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def plain_message(data: bytes) -> PlainMessage[Raw, Raw] | None:
    """Decode a bare message and keep its params and id as bytes; None if it is not plain."""
    try:
        return _decode_raw(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def plain_id(raw: Raw | UnsetType) -> str | None:
    """Return the JSON text of an id if its value has no other spelling, else None.

    Digits, or an ASCII string without escapes. `-0` equals `0`, so it is not plain.
    An integer above 0 needs no such check.
    """
    data = b"" if raw is UNSET else bytes(raw)
    if data.isdigit() or (data[:1] == b'"' and b"\\" not in data and data.isascii()):
        return data.decode()
    return None


def has_any(data: bytes, first: bytes, second: bytes) -> bool:
    """Return whether one of two parts is in a message. The operator `in` takes longer: it first tries to read a number."""
    return data.find(first) >= 0 or data.find(second) >= 0


class _Unread:
    """A message of a plain line: it reads its params or result when they are needed, and keeps them.

    The params, result and body that they are made with are not used.
    """

    __slots__ = ()
    data: bytes
    frame: Frame
    whole: Any

    @property
    def body(self) -> Body:
        return self.read().body  # type: ignore[no-any-return]

    @property
    def raw_params(self) -> Raw:
        return self.read().raw_params  # type: ignore[no-any-return]

    @property
    def raw_result(self) -> Raw:
        return self.read().raw_result  # type: ignore[no-any-return]

    @property
    def meta(self) -> Raw:
        return self.body.meta if has_any(self.data, b"_meta", b"\\u") else ABSENT

    def read(self) -> Any:
        """Return the same message with what is in it."""
        if self.whole is None:
            structs.force_setattr(cast(Struct, self), "whole", read_frame(self.frame)[0])
        return self.whole


class UnreadRequest(_Unread, Request, frozen=True, kw_only=True, gc=False):
    about: str = ""
    """Its subject, if it is not empty."""
    whole: Request | None = None

    @property
    def subject(self) -> str | None:
        return self.about or super().subject

    @property
    def progress_token(self) -> str | None:
        data = self.data  # As `has_any`, but there is one for each request.
        if data.find(b"rogressToken") < 0 and data.find(b"\\u") < 0:
            return None
        return super().progress_token


class UnreadNotification(_Unread, Notification, frozen=True, kw_only=True, gc=False):
    whole: Notification | None = None


class UnreadResult(_Unread, Result, frozen=True, kw_only=True, gc=False):
    is_tool_error: bool = False
    whole: Result | None = None
    is_task = False
    result_type = "complete"
