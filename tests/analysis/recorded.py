"""Entries as the lines of a recording."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable

import orjson

from mcpspy.core.recording.decode import Damaged, Entry, Note


def recorded(entries: Iterable[Entry]) -> list[bytes]:
    """Return the line of each entry, without its LF."""
    return [_line(entry) for entry in entries]


def _line(entry: Entry) -> bytes:
    if isinstance(entry, Damaged):
        return entry.data
    if isinstance(entry, Note):
        return json.dumps({"t": entry.at, "note": entry.kind, **entry.fields}).encode()
    given = {
        "stream": entry.stream,
        "http": entry.http,
        "id": entry.event_id,
        "by": entry.by,
        "to": entry.to,
        "lacks": entry.lacks,
        "size": entry.size,
        "eol": None if entry.eol == "\n" else entry.eol,
    }
    head = {"t": entry.at, "from": entry.side} | {
        name: value for name, value in given.items() if value is not None
    }
    try:
        orjson.loads(entry.data)
        payload = b',"msg":' + entry.data
    except ValueError:
        payload = b',"b64":"' + b64encode(entry.data) + b'"'
    return json.dumps(head).encode()[:-1] + payload + b"}"
