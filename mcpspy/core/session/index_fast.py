"""Messages over stdio of which nothing is odd: from a line to a row, by one typed decoding.

Owns what is plain, which most messages are: a million of them are read while
somebody waits. Skips what they carry. Leaves whatever does not fit, and the
first messages of a session, to be read as `core.protocol.message` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from mcpspy.core.protocol.message import Result, read_frame, text
from mcpspy.core.protocol.peers import INTRODUCTIONS, Peers
from mcpspy.core.protocol.spec import CLIENT, META, METHODS, MODERN, SERVER
from mcpspy.core.recording.decode import Frame
from mcpspy.core.session.columns import (
    FROM_CLIENT,
    FROM_SERVER,
    LONGEST_ID,
    REQUEST,
    RESULT,
    STATE_NUMBERS,
    TOLD,
    Columns,
)
from mcpspy.core.session.correlation import Correlation
from mcpspy.core.session.exchange import SUBSCRIBE, Event, State

_ABSENT = Raw()


class Slot(Struct, gc=False, eq=False):
    """A request as pairing knows it: no more than a number."""

    row: int
    is_subscription: bool = False
    is_modern: bool = False
    is_task: bool = False
    state: State = State.PENDING


class _Head(Struct, gc=False, forbid_unknown_fields=True):
    """What stands before the payload of a message over stdio, and of no other."""

    t: float
    side: Literal["client", "server"] = field(name="from")


class _Meta(Struct, gc=False):
    token: Raw = field(name="progressToken", default=_ABSENT)
    revision: str = field(name=META + "protocolVersion", default="")


class _Params(Struct, gc=False):
    """What requests are about, where it is a text, and what makes them more than a question and an answer."""

    meta: _Meta | None = field(name="_meta", default=None)
    name: str = ""
    uri: str = ""
    level: str = ""
    cursor: str = ""
    message: str = ""
    task_id: str = field(name="taskId", default="")
    ref: Raw = _ABSENT
    request_state: Raw = field(name="requestState", default=_ABSENT)
    input_responses: Raw = field(name="inputResponses", default=_ABSENT)


class _Result(Struct, gc=False):
    is_error: bool = field(name="isError", default=False)
    result_type: Literal["", "complete"] = field(name="resultType", default="")
    task: Raw = _ABSENT


class _Plain(Struct, gc=False):
    """A message of which nothing is odd; what does not fit is read the long way."""

    jsonrpc: Literal["2.0"]
    id: Raw = _ABSENT
    method: str | UnsetType = UNSET
    params: _Params | UnsetType = UNSET
    result: _Result | UnsetType = UNSET
    error: Raw = _ABSENT


_decode_plain = Decoder(_Plain).decode
_decode_head = Decoder(_Head).decode

PAYLOAD = b',"msg":'
"""What stands before a message that is in its line as it was on the wire."""

_GREAT = (*INTRODUCTIONS, SUBSCRIBE)
"""Requests that say more than their id."""

_ASKS_CLIENT, _ASKS_SERVER = REQUEST | FROM_CLIENT | TOLD, REQUEST | FROM_SERVER | TOLD
_ANSWERS_CLIENT, _ANSWERS_SERVER = RESULT | FROM_CLIENT | TOLD, RESULT | FROM_SERVER | TOLD

_OK, _TOOL_ERROR = STATE_NUMBERS[State.OK], STATE_NUMBERS[State.TOOL_ERROR]

_ATTRIBUTES = dict(zip(_Params.__struct_encode_fields__, _Params.__struct_fields__, strict=True))
_SUBJECTS = {
    name: _ATTRIBUTES[method.subject]
    for name, method in METHODS.items()
    if method.subject not in (None, "ref") and not name.startswith("notifications/")
}


class PlainLines:
    """What takes them into the rows of an index."""

    def __init__(self, rows: Columns, parties: Peers, pairing: Correlation[Slot]) -> None:
        self._rows = rows
        self._parties = parties
        self._pairing = pairing

    def take(self, lines: Sequence[bytes], place: int, offset: int) -> tuple[int, int]:
        """Add a row for each line from a place on while it is plain; return place and offset of the first that is not."""
        rows, ask, answer = self._rows, self._ask, self._answer
        ats, sizes, ids, offsets, lengths = rows.at, rows.size, rows._id, rows._offset, rows._length
        row = len(rows)
        while place < len(lines):
            line = lines[place]
            start, _, payload = line.partition(PAYLOAD)
            if payload[-2:] != b"}}":
                break
            data = payload[:-1]
            try:
                head = _decode_head(start + b"}")
                plain = _decode_plain(data)
                if not data.isascii():
                    data.decode()
            except (DecodeError, UnicodeDecodeError, RecursionError):
                break
            raw_id = bytes(plain.id)
            if not (raw_id.isdigit() and len(raw_id) < LONGEST_ID) or plain.error is not _ABSENT:
                break
            if row == rows._room:
                rows._grow()
            if not (answer if plain.method is UNSET else ask)(row, head, plain, raw_id.decode(), data):
                break
            ats[row] = head.t
            sizes[row] = len(data)
            offsets[row] = offset
            lengths[row] = length = len(line)
            ids[row] = int(raw_id) << 1 | 1
            row, place, offset = row + 1, place + 1, offset + length + 1
        rows._count = row
        return place, offset

    def _ask(self, row: int, head: _Head, plain: _Plain, id_text: str, _: bytes) -> bool:
        """Take a request; return False, with nothing taken, if something about it is odd."""
        rows, method, params = self._rows, plain.method, plain.params
        if (
            method is UNSET
            or method in _GREAT
            or params is UNSET
            or plain.result is not UNSET
            or params.request_state is not _ABSENT
            or params.input_responses is not _ABSENT
            or params.ref is not _ABSENT
            or self._parties.revision is None
            or self._parties.client is None
        ):
            return False
        slot, token = Slot(row), None
        if (meta := params.meta) is not None:
            token = text(meta.token)
            slot.is_modern = meta.revision >= MODERN
        if not self._pairing.ask_plainly(slot, (None, head.side, id_text), token):
            return False
        rows.what[row] = _ASKS_CLIENT if head.side == CLIENT else _ASKS_SERVER
        rows.method[row] = rows._text(method)
        if (about := _SUBJECTS.get(method)) is not None:
            rows.subject[row] = rows._text(getattr(params, about))
        return True

    def _answer(self, row: int, head: _Head, plain: _Plain, id_text: str, data: bytes) -> bool:
        """Take an answer; return False, with nothing taken, if something about it is odd."""
        rows, result, is_client = self._rows, plain.result, head.side == CLIENT
        if result is UNSET or result.task is not _ABSENT or self._parties.server is None:
            return False
        event = Event.TOOL_ERROR if result.is_error else Event.RESULT
        slot = self._pairing.answer_plainly((None, SERVER if is_client else CLIENT, id_text), event)
        if slot is None:
            return False
        request = slot.row
        rows.what[row] = _ANSWERS_CLIENT if is_client else _ANSWERS_SERVER
        method = rows.method[row] = rows.method[request]
        rows.subject[row] = rows.subject[request]
        rows._pair[request] = row + 1
        rows._pair[row] = request + 1
        rows._state[request] = _TOOL_ERROR if result.is_error else _OK
        if result.is_error:
            rows._fails(row)
        if rows.texts[method] in INTRODUCTIONS:  # Not the first: a session may begin anew.
            (said,) = read_frame(Frame(head.t, head.side, data))
            if isinstance(said, Result):
                self._parties.hear_answer(said, rows.texts[method])
        return True
