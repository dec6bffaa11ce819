"""Write a recording from Python (`mcpspy.Recording.write`): fixtures for tests and mocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from mcpspy.core.recording.encode import CLIENT, SERVER, frame_prefix, splice
from mcpspy.errors import UsageError
from mcpspy.io import importing
from mcpspy.io.recording.recorder import say
from mcpspy.io.recording.redaction import RedactionOptions, redactor
from mcpspy.ui.api.session import ReadMessage, ReadSession

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

STEP = 0.001
"""Seconds between two messages without a time."""

Written: TypeAlias = ReadMessage | tuple[str, Any] | tuple[str, Any, float]
"""A message of another session; or its sender, the message, and the seconds since the start."""


class RecordingFile:
    """A file of a session, for example as a fixture of a test. Public as `mcpspy.Recording`."""

    @staticmethod
    def write(
        path: str | os.PathLike[str], messages: Iterable[Written], *, name: str = "", redact: bool = True
    ) -> ReadSession:
        """Write a new recording and return its session.

        Each message is a `mcpspy.Message`, or a tuple of its sender (`client` or `server`), the message (an object to
        be written as JSON, or its own text or bytes) and optionally the seconds since the start. Without them, it
        comes a millisecond after the message before. `name` is the name of the session. Secrets are redacted, as in
        every recording, unless `redact` is false. Notes, such as lines of stderr and heads of HTTP, are not copied.
        Raise UsageError if the file exists or a message is invalid, and CannotStart if the file cannot be written; no
        file remains then.

        >>> import os, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> written = mcpspy.Recording.write(os.path.join(folder, "ping.jsonl"), [
        ...     ("client", {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        ...     ("server", {"jsonrpc": "2.0", "id": 1, "result": {}}, 0.5),
        ... ], name="ping")
        >>> written.exchanges[0].status, written.exchanges[0].latency
        ('ok', 0.5)
        >>> echoes = mcpspy.read("recordings/everything-sdk-auto.jsonl").filter("tool:echo").messages
        >>> copy = mcpspy.Recording.write(os.path.join(folder, "echo.jsonl"), echoes)
        >>> [each.data for each in copy.messages] == [each.data for each in echoes]
        True
        """
        out = os.fspath(path)
        importing.check(out)
        if os.path.isdir(out):
            raise UsageError(f"{out}: a folder", "name a file in it")
        streams: set[str] = set()
        lines = list(_lines(messages, streams))
        head: dict[str, Value] = {"transport": "http" if streams else "stdio", "name": name}
        importing.write(head, lines, None, out, redactor(RedactionOptions(), say) if redact else None)
        return ReadSession(Path(out))


def _lines(messages: Iterable[Written], streams: set[str]) -> Iterator[bytes]:
    """Yield the lines; add the HTTP streams of the messages to `streams`."""
    at = -STEP
    for number, each in enumerate(messages, 1):
        fields: dict[str, Value] = {}
        if isinstance(each, ReadMessage):
            frame = each.frame
            side, at, data = frame.side, frame.at, bytes(frame.data)
            kept = {"http": frame.http, "stream": frame.stream, "id": frame.event_id, "by": frame.by}
            kept |= {"to": frame.to, "lacks": frame.lacks, "size": frame.size}
            fields = {key: value for key, value in kept.items() if value is not None}
            if frame.stream is not None:
                streams.add(frame.stream)
            is_body, is_torn = frame.http is not None, frame.eol == ""
            if frame.eol == "\r\n":
                data += b"\r\n" if is_body else b"\r"
        else:
            side, data, at = _read_tuple(each, number, at + STEP)
            is_body, is_torn = b"\n" in data, False
        yield b"".join(splice(frame_prefix(side, fields) % at, [data], torn=is_torn, body=is_body))


def _read_tuple(each: Any, number: int, following: float) -> tuple[str, bytes, float]:
    """Return the sender, the bytes and the time of a message. Raise UsageError, which names its number."""
    if not isinstance(each, tuple) or len(each) not in (2, 3):
        raise UsageError(
            f"message {number}: not a message", "use (sender, message) or (sender, message, seconds)"
        )
    side, message, at = each if len(each) == 3 else (*each, following)
    if side not in (CLIENT, SERVER):
        raise UsageError(f"message {number}: sender {side!r}", "use 'client' or 'server'")
    if not isinstance(at, int | float) or not 0 <= at < float("inf"):
        raise UsageError(f"message {number}: {at!r} is not a time", "use seconds since the start")
    if isinstance(message, str):
        message = message.encode("utf-8", "surrogatepass")
    if isinstance(message, bytes):
        return side, message, float(at)
    try:
        return side, orjson.dumps(message), float(at)
    except TypeError as error:
        raise UsageError(
            f"message {number}: not JSON: {error}", "use objects, or the text of the message"
        ) from None
