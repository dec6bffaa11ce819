"""Recordings for benchmarks: a long one, one with a single huge message, one that grows.

Owns their content. The long one is written without the measured
program; the one that grows is written by `io.recording.writer`, like that of `mcpspy run`:

    python bench/sessions.py FILE RATE     appends RATE messages per second until it is ended
"""

from __future__ import annotations

import json
import random
import sys
import time
from pathlib import Path

if __name__ == "__main__":  # Not this folder: its `http.py` would shadow the standard library's.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)

TOOLS = 40
NEEDLE = "needle in a haystack"
"""Text in one of a thousand results."""

LINE = "lorem ipsum dolor sit amet, consectetur\n"

_HEADER = (
    b'{"mcpspy":1,"id":"0badcafe","started":"2026-11-21T08:00:00.000Z","transport":"stdio",'
    b'"command":["server"],"cwd":"/","name":"bench","pid":1}\n'
)
_LINE = json.dumps(LINE)[1:-1].encode()
_EXIT = b'{"t":%.6f,"note":"exit","code":0}\n'
_CLIENT = b'{"t":%.6f,"from":"client","msg":%b}\n'
_SERVER = b'{"t":%.6f,"from":"server","msg":%b}\n'

_CALL = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
    b'"params":{%b"name":"tool_%d","arguments":{"path":"/srv/data/%d","text":"%b"}}}'
)
_RESULT = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%b"}]%b}}'

_SIZES = ((0.55, 500), (0.85, 2_000), (0.97, 8_000), (0.998, 28_000), (1.0, 120_000))
"""Cumulative share of the results, and their maximum bytes."""


def handshake() -> list[bytes]:
    """Return the first lines of a session: the handshake and the list of tools."""
    version = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}
    tools = [
        {
            "name": f"tool_{number}",
            "description": "What it does, in a sentence or two. " * 4,
            "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
        }
        for number in range(TOOLS)
    ]
    messages: list[tuple[bytes, dict[str, object]]] = [
        (_CLIENT, {"id": 0, "method": "initialize", "params": {**version, "clientInfo": _party("host")}}),
        (_SERVER, {"id": 0, "result": {**version, "serverInfo": _party("server")}}),
        (_CLIENT, {"method": "notifications/initialized"}),
        (_CLIENT, {"id": 1, "method": "tools/list", "params": {}}),
        (_SERVER, {"id": 1, "result": {"tools": tools}}),
    ]
    return [form % (0.001, _json({"jsonrpc": "2.0", **message})) for form, message in messages]


def write_empty(path: Path) -> None:
    """Write a session with a handshake only."""
    path.write_bytes(_HEADER + b"".join(handshake()) + _EXIT % 1.0)


def write_long(path: Path, messages: int) -> None:
    """Write calls and their results, a kilobyte each on average, with four calls in flight at a time."""
    chance = random.Random(7)
    filler = _LINE * 3000
    begin = handshake()
    with path.open("wb") as file:
        file.write(_HEADER)
        file.writelines(begin)
        number = 2
        at = 0.01
        for _ in range((messages - len(begin)) // 8):
            lines = []
            for id_number in range(number, number + 4):
                at += 0.000_7
                meta = b'"_meta":{"progressToken":%d},' % id_number if id_number % 10 == 3 else b""
                request = (
                    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%b"name":"tool_%d","arguments":{"path":"/srv/data/%d","text":"%b"}}}'
                    % (
                        id_number,
                        meta,
                        chance.randrange(TOOLS),
                        id_number,
                        filler[: len(_LINE) * chance.randrange(8)],
                    )
                )
                lines.append(_CLIENT % (at, request))
            for id_number in chance.sample(range(number, number + 4), 4):
                at += 0.000_9
                lines.append(_SERVER % (at, _answer(chance, id_number, filler)))
            file.writelines(lines)
            number += 4
        file.write(_EXIT % at)


def messages_of(chance: random.Random, calls: int, *, loses_last: bool) -> list[bytes]:
    """Return the lines of calls and their results; `loses_last` leaves out the last result."""
    lines, filler = [], _LINE * 3000
    for number in range(2, calls + 2):
        at = number * 0.01
        lines.append(_CLIENT % (at, _CALL % (number, b"", number % TOOLS, number, b"")))
        if not loses_last or number < calls + 1:
            lines.append(_SERVER % (at + 0.005, _answer(chance, number, filler)))
    return lines


def _answer(chance: random.Random, id_number: int, filler: bytes) -> bytes:
    if id_number % 1000 == 500:
        form = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"no such path"}}'
        return form % id_number
    share = chance.random()
    size = next(most for until, most in _SIZES if share <= until)
    text = filler[: len(_LINE) * chance.randrange(size // len(_LINE) + 1)]
    if id_number % 1000 == 250:
        text = NEEDLE.encode() + text
    error = b',"isError":true' if id_number % 1000 == 750 else b""
    return _RESULT % (id_number, text, error)


def write_huge(path: Path, size: int, *, nested: bool) -> None:
    """Write a session with one result of that size: many small members, or one long text."""
    if nested:
        each = {"path": "/srv/data/file.txt", "size": 12_345, "tags": ["a", "b"], "text": "lorem ipsum " * 3}
        count = size // (len(_json(each)) + 1)
        result: dict[str, object] = {"content": [], "structuredContent": {"files": [each] * count}}
    else:
        result = {"content": [{"type": "text", "text": LINE * (size // len(_LINE))}]}
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "tool_1", "arguments": {}}}
    lines = [
        _CLIENT % (0.1, _json(call)),
        _SERVER % (0.2, _json({"jsonrpc": "2.0", "id": 2, "result": result})),
    ]
    path.write_bytes(_HEADER + b"".join([*handshake(), *lines]) + _EXIT % 1.0)


def grow(path: Path, rate: float) -> None:
    """Append calls and results one by one; first print the monotonic time that their times count from."""
    from mcpspy.io.recording.writer import Writer

    writer = Writer(
        None, str(path), {"transport": "stdio", "command": ["server"], "name": "bench"}, say=print
    )
    print(writer.epoch, flush=True)
    for line in handshake():
        writer.write(line)
    text = _LINE * 8
    started_at = time.monotonic()
    written = 0
    while True:
        while written < (time.monotonic() - started_at) * rate:
            number = 2 + written // 2
            writer.write(_CLIENT % (writer.now(), _CALL % (number, b"", number % TOOLS, number, b"")))
            writer.write(_SERVER % (writer.now(), _RESULT % (number, text, b"")))
            written += 2
        time.sleep(0.005)


def _party(name: str) -> dict[str, str]:
    return {"name": name, "version": "1.0"}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


if __name__ == "__main__":
    grow(Path(sys.argv[1]), float(sys.argv[2]))
