"""Importer of mcp-vcr transcripts (0.2): YAML, or NDJSON with one message per line; schema 1.

PyYAML writes the YAML, by the rules of YAML 1.1 and with sorted members, so only its plain numbers are not text.
`meta` comes first while mcp-vcr is recording, and last in a complete file.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from mcpspy.core.counted import counted
from mcpspy.core.importers.base import (
    INCOMPLETE,
    ImportedSession,
    RecordingLines,
    compact,
    read_lines,
    timestamp,
)
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.errors import UsageError

NAME = "mcp-vcr"

LACKS = [
    "the folder of the server's command (absolute paths are reduced to names)",
    "the server's stderr and exit status",
    "lines that are not JSON",
    "the original bytes of messages (they were parsed and re-encoded)",
]

LACKS_YAML = ["the order of members (it is alphabetical)"]

_REDACTED = re.compile(rb'"<(?:REDACTED(?:_[^"<>]*)?|PATH)>"')

_PLAIN = re.compile(r"null|true|false|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:e[+-][0-9]+)?)?")
"""Plain scalars of PyYAML that are not text; text of this form is quoted."""

_NUMBERS = {".nan": math.nan, ".inf": math.inf, "-.inf": -math.inf}


class _Meta(Struct):
    version: int
    recorded_at: str
    server_command: list[str]
    incomplete_reason: str | None = None


class _Message(Struct):
    t: int
    dir: Literal["c2s", "s2c"]
    payload: Any
    """JSON as it is in the file, or a value."""


class _Line(_Message):
    payload: Raw


class _Transcript(Struct):
    meta: _Meta
    messages: Sequence[_Message]


def sessions(data: bytes) -> list[ImportedSession]:
    """Return the one session of the transcript; raise UsageError."""
    is_yaml = not data.lstrip(b"\xef\xbb\xbf \r\n").startswith(b"{")
    transcript = _yaml(data) if is_yaml else _ndjson(data)
    meta = transcript.meta
    if meta.version not in (0, 1):
        raise UsageError(f"unsupported {NAME} format {meta.version}", "mcpspy reads 0 and 1")
    url = meta.server_command[0] if meta.server_command else ""
    is_http = url.startswith(("http://", "https://"))
    lines = RecordingLines()
    redacted = 0
    for message in transcript.messages:
        payload = message.payload
        payload = compact(payload) if isinstance(payload, Raw) else json.dumps(payload).encode()
        redacted += _REDACTED.search(payload) is not None
        side = CLIENT if message.dir == "c2s" else SERVER
        lines.message(message.t / 1000, side, payload, **({"stream": "1"} if is_http else {}))
    changes = [
        f"already redacted in the file: {counted(redacted, 'message')}" if redacted else "",
        f"incomplete, as {NAME} reports: {meta.incomplete_reason}" if meta.incomplete_reason else "",
    ]
    return [
        lines.session(
            start=0.0,
            format=NAME,
            transport="http" if is_http else "stdio",
            command=None if is_http else meta.server_command or None,
            upstream=url if is_http else None,
            started=timestamp(meta.recorded_at, NAME),
            lacks=LACKS + LACKS_YAML * is_yaml,
            changed=[line for line in changes if line],
        )
    ]


def _ndjson(data: bytes) -> _Transcript:
    first, _, rest = data.partition(b"\n")
    (_, meta), *_ = read_lines(first, _Meta, NAME)
    return _Transcript(meta, [message for _, message in read_lines(rest, _Line, NAME)])


def _yaml(data: bytes) -> _Transcript:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = data.decode("utf-8-sig")
        try:
            root = YAML(typ="safe").compose(text)
        except YAMLError:  # The fast parser rejects lone surrogates.
            root = YAML(typ="safe", pure=True).compose(text)
        return msgspec.convert(_value(root, set()), _Transcript)
    except (YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(getattr(error, "problem", None) or error).split())[:200]
        raise UsageError(f"invalid {NAME} transcript: {problem}", INCOMPLETE) from None


def _value(node: Any, seen: set[int]) -> Any:
    """Return the value of a node; raise ValueError for an alias, which mcp-vcr does not write."""
    if node is None:
        return None
    if node.id == "scalar":
        if node.style:
            return node.value
        return (
            json.loads(node.value) if _PLAIN.fullmatch(node.value) else _NUMBERS.get(node.value, node.value)
        )
    if id(node) in seen:
        raise ValueError("it contains an alias")
    seen.add(id(node))
    if node.id == "sequence":
        return [_value(each, seen) for each in node.value]
    return {str(key.value): _value(value, seen) for key, value in node.value}
