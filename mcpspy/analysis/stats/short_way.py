"""The short way of a message of which nothing is odd: from its line into the tables.

Owns which messages may go it. What it takes it counts as `Stats.add` would,
and what it refuses it has not touched; a property test holds the two together.
A million are read while somebody waits, so each costs few calls, and the sums
are made of many at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET, DecodeError

from mcpspy.analysis.stats.call import Answer, Call
from mcpspy.analysis.stats.plain import ABSENT, HEAD, LONG_WAY, PAYLOAD, SUBJECTS, Line, decode
from mcpspy.core.protocol.peers import INTRODUCTIONS
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import Event

if TYPE_CHECKING:
    from mcpspy.analysis.stats.fold import Stats

_LATEST = HEAD - len(PAYLOAD)
_AROUND = len(PAYLOAD) + 1

# A look at an Enum's member is Python, and these are looked at for every message.
_RESULT, _TOOL_ERROR = Event.RESULT, Event.TOOL_ERROR


def take(stats: Stats, lines: Sequence[bytes], place: int) -> int:
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


def _request(stats: Stats, read: Line, line: bytes, size: int, number: int) -> bool:
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
    call = Call(
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


def _answer(stats: Stats, read: Line, line: bytes, size: int, number: int) -> bool:
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
        answer = Answer(at, size, number)
        if tables.reads_text:
            answer.data = _payload(line, size)
        stats.settle(call, answer)
        return True
    stats.flight.change(is_asked_by_client, -1, at)  # It was pending, so somebody waited for it.
    tables.answered(call, at, size, number)
    return True


def _notification(stats: Stats, read: Line, size: int) -> bool:
    tables = stats.tables
    if tables.wanted is not None or size > tables.groups.least:
        return False
    tables.told_plainly(read.side, read.msg.method, size)
    return True


def _payload(line: bytes, size: int) -> bytes:
    return line[-1 - size : -1]
