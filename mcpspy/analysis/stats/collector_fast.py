"""The short way of a message of which nothing is odd: from its line into the tables.

Owns which messages may go it. What it takes it counts as `Stats.add` would,
and what it refuses it has not touched; a property test holds the two together.
A million are read while somebody waits, so each costs few calls, and the sums
are made of many at once.

A message of which nothing is odd, read from its line in one go.

Owns what is decoded of such a line, and which methods say more than that they
were asked. What does not fit its types is read the long way, by `core.recording.decode`
and `core.protocol.message`; nothing is read that those would read otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, DecodeError, Raw, Struct, UnsetType, field
from msgspec.json import Decoder

from mcpspy.analysis.stats.calls import StatsAnswer, StatsCall
from mcpspy.core.protocol.peers import INTRODUCTIONS
from mcpspy.core.protocol.spec import CLIENT, META, METHODS, SERVER
from mcpspy.core.session.exchange import SUBSCRIBE, Event

if TYPE_CHECKING:
    from mcpspy.analysis.stats.collector import StatsCollector

ABSENT = Raw()

PAYLOAD = b',"msg":'
"""What stands before a message that is in its line as it was on the wire; a `}` stands behind it."""

HEAD = 128
"""Bytes in which the head of a frame ends."""


class Meta(Struct, gc=False):
    """What a request says of itself."""

    revision: Raw = field(name=META + "protocolVersion", default=ABSENT)
    """It is of a revision without a handshake (2026-07-28)."""


class Params(Struct, gc=False):
    """What a request is about; not one that goes on with another one (2026-07-28)."""

    name: str = ""
    uri: str = ""
    meta: Meta | None = field(name="_meta", default=None)
    request_state: UnsetType = field(name="requestState", default=UNSET)
    input_responses: UnsetType = field(name="inputResponses", default=UNSET)


class Result(Struct, gc=False):
    """How an answer went; not a question or a task (2026-07-28)."""

    is_error: bool = field(name="isError", default=False)
    result_type: Literal["", "complete"] = field(name="resultType", default="")


class Message(Struct, gc=False):
    """The members of a message, payloads skipped; not of an error."""

    jsonrpc: Literal["2.0"]
    id: int | UnsetType = UNSET
    """0 may have been `-0`, which is another id: pairing goes by the text."""
    method: str = ""
    params: Params | None = None
    result: Result | None = None
    error: UnsetType = UNSET


class Line(Struct, gc=False, forbid_unknown_fields=True):
    """A frame that ended as it should: over stdio, or in an HTTP body that is JSON."""

    t: float
    msg: Message
    side: Literal["client", "server"] = field(name="from")
    stream: str | None = None
    http: int | None = None


decode = Decoder(Line).decode
"""Return the line; raise DecodeError or RecursionError if it does not fit."""

SUBJECTS = {
    name: method.subject for name, method in METHODS.items() if method.subject in Params.__struct_fields__
}
"""Method → the member of `Params` that says what it is about."""

LONG_WAY = frozenset(
    {*INTRODUCTIONS, SUBSCRIBE, "notifications/cancelled", "notifications/initialized"}
    | {name for name, method in METHODS.items() if method.subject and name not in SUBJECTS}
) - {"notifications/progress", "notifications/message"}
"""Methods that say more than that they were asked, or are about something that is not in `Params`."""


_LATEST = HEAD - len(PAYLOAD)
_AROUND = len(PAYLOAD) + 1

# A look at an Enum's member is Python, and these are looked at for every message.
_RESULT, _TOOL_ERROR = Event.RESULT, Event.TOOL_ERROR


def take(stats: StatsCollector, lines: Sequence[bytes], place: int) -> int:
    """Take lines from a place on while each may go the short way.

    Return the place of the first that may not.
    """
    begin, first = place, stats.lines - place
    at = stats.last_at
    has_filter = stats.tables.wanted is not None
    kinds: list[str] = []
    sizes: dict[str, list[int]] = {CLIENT: [], SERVER: []}
    while place < len(lines):
        line = lines[place]
        split = line.find(PAYLOAD)
        if not 0 <= split <= _LATEST or line[-2:] != b"}}":
            break
        try:
            read = decode(line)
            if has_filter and not line.isascii():
                line.decode()
        except (DecodeError, UnicodeDecodeError, RecursionError):
            break
        message, size = read.msg, len(line) - split - _AROUND
        if not message.method:
            kind, is_taken = "result", _answer(stats, read, line, size, first + place)
        elif message.result is not None or message.method in LONG_WAY:
            break
        elif message.id is UNSET:
            kind, is_taken = "notification", _notification(stats, read, size)
        else:
            kind, is_taken = "request", _request(stats, read, line, size, first + place)
        if not is_taken:
            break
        at = read.t
        kinds.append(kind)
        sizes[read.side].append(size)
        place += 1
    stats.lines += place - begin
    stats.last_at = at
    stats.kinds.update(kinds)
    for side, each in sizes.items():
        stats.messages[side] += len(each)
        stats.bytes[side] += sum(each)
    return place


def _request(stats: StatsCollector, read: Line, line: bytes, size: int, number: int) -> bool:
    message, side, stream, tables = read.msg, read.side, read.stream, stats.tables
    method, params, subject = message.method, message.params, ""
    if params is not None:
        if (member := SUBJECTS.get(method)) is not None:
            subject = params.name if member == "name" else params.uri
        if params.meta is not None and params.meta.revision is not ABSENT and read.http is not None:
            return False
    if not message.id or message.id < 0 or stats.revision is None or stats.client is None:
        return False
    id_text = str(message.id)
    call = StatsCall(
        read.t, size, number, id_text, method, tables.groups.requests(side, method, subject), subject, stream
    )
    key = stream, side, id_text
    if not stats.pairing.ask_plainly(call, key, None):
        return False
    if read.http is not None and side == CLIENT:
        stats.pairing.post_plainly(read.http, key)
    if tables.reads_text:
        call.data = _payload(line, size)
    stats.flight.change(side == CLIENT, 1, read.t)
    return True


def _answer(stats: StatsCollector, read: Line, line: bytes, size: int, number: int) -> bool:
    message, at, tables = read.msg, read.t, stats.tables
    result, is_asked_by_client = message.result, read.side == SERVER
    if result is None or not message.id or message.id < 0 or stats.server is None:
        return False
    key = read.stream, CLIENT if is_asked_by_client else SERVER, str(message.id)
    call = stats.pairing.answer_plainly(key, _TOOL_ERROR if result.is_error else _RESULT)
    if call is None:
        return False
    if call.method in INTRODUCTIONS:
        stats.introduced(call, line)
    if tables.wanted is not None:
        answer = StatsAnswer(at, size, number)
        if tables.reads_text:
            answer.data = _payload(line, size)
        stats.settle(call, answer)
        return True
    stats.flight.change(is_asked_by_client, -1, at)  # It was pending, so somebody waited for it.
    tables.answered(call, at, size, number)
    return True


def _notification(stats: StatsCollector, read: Line, size: int) -> bool:
    tables = stats.tables
    if tables.wanted is not None or size > tables.groups.least:
        return False
    tables.told_plainly(read.side, read.msg.method, size)
    return True


def _payload(line: bytes, size: int) -> bytes:
    return line[-1 - size : -1]
