"""The user's function that changes or drops messages before they are written to a recording.

It gets a copy of each message when the test has passed, so what the client and the server received is unchanged. The
session was redacted when it was recorded, and the result is redacted again: what the function inserts may be a secret.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from mcpspy.core.protocol.message import loads
from mcpspy.core.recording.decode import Frame, Note, read_entry
from mcpspy.core.recording.encode import splice
from mcpspy.core.rules.edit import to_json
from mcpspy.core.session.session import Session
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import read_header_of
from mcpspy.io.recording.scan import RecordingScan

BeforeRecord: TypeAlias = Callable[[dict[str, Any], str], dict[str, Any] | None]
"""Takes a message and its sender (`client` or `server`); returns the message to record, or None to drop it."""

_PAYLOAD = re.compile(rb',"(?:msg|why)":')
"""The end of the first part of a frame's line. No string contains it: its quotes would be escaped."""


def write_changed(source: Path, target: Path, change: BeforeRecord) -> bool:
    """Write a copy of a session with the messages that `change` returns; return whether it has any message.

    A dropped request takes its response with it. Raise UsageError if `change` fails or returns something else.
    """
    lines = [line for block in RecordingScan(source) for line in block.lines]
    entries = [read_entry(line) for line in lines]
    session = Session(read_header_of(source)).add_all(entries)
    requests = {
        (id(answer.frame), answer.index): (id(exchange.request.frame), exchange.request.index)
        for exchange in session.exchanges
        if (answer := exchange.answer) is not None
    }
    dropped: set[tuple[int, int | None]] = set()
    has_messages = False

    def changed(frame: Frame, index: int | None, message: Any) -> Any:
        """Return a message, or None if it is not recorded."""
        nonlocal has_messages
        if not isinstance(message, dict):
            return message
        if requests.get((id(frame), index)) in dropped:
            return None
        result = _call(change, message, frame.side)
        if result is None:
            dropped.add((id(frame), index))
        else:
            has_messages = True
        return result

    with source.open("rb") as old, target.open("wb") as new:
        new.write(old.readline())
        for line, entry in zip(lines, entries, strict=True):
            if isinstance(entry, Note) and entry.kind == "part":  # The copy is one file.
                continue
            if isinstance(entry, Frame):
                new.writelines(_pieces(line, entry, changed))
            else:
                new.write(line + b"\n")
    return has_messages


def _pieces(
    line: bytes, frame: Frame, changed: Callable[[Frame, int | None, Any], Any]
) -> Iterator[bytes | bytearray]:
    """Yield the line of a frame as it is recorded: the same bytes if its message is unchanged."""
    value = loads(frame.data)
    if isinstance(value, list):
        result: Any = [changed(frame, index, item) for index, item in enumerate(value)]
        result = [item for item in result if item is not None] or (None if value else value)
    elif isinstance(value, dict):
        result = changed(frame, None, value)
    else:
        yield line + b"\n"
        return
    if result is None:
        return
    data = to_json(result)
    if data == to_json(loads(frame.data)):
        yield line + b"\n"
        return
    found = _PAYLOAD.search(line)
    assert found is not None, "a frame has a payload"
    yield from splice(line[: found.start() + 1], [data])


def _call(change: BeforeRecord, message: dict[str, Any], side: str) -> dict[str, Any] | None:
    about = f"before_record, for {message.get('method') or 'a response'} of the {side}"
    try:
        result = change(message, side)
        if isinstance(result, dict):
            to_json(result)
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise UsageError(
            f"{about}: {type(error).__name__}: {error}", f"raised in {Path(last.filename).name}:{last.lineno}"
        ) from error
    if result is not None and not isinstance(result, dict):
        raise UsageError(
            f"{about}: returned {type(result).__name__}", "return the message, or None to drop it"
        )
    return result
