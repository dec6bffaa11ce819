"""Corpora of secrets and of lookalikes, and a recording of each of their lines.

The data files are in this folder; add lines to them: `tokens.txt`, `places.jsonl`
and `lookalikes.jsonl`. A secret is between « and », which are removed.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.core.recording import encode
from mcpspy.core.recording.encode import FrameEncoder, TextEncoder
from mcpspy.core.recording.encode_body import BodyEncoder, SseEncoder
from mcpspy.core.redact.redactor import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent

KEY = bytes(range(32))

_SECRET = re.compile("«(.*?)»", re.DOTALL)


class Line(NamedTuple):
    """One line of a corpus."""

    what: str
    kind: str
    text: str
    secrets: list[str]

    @property
    def data(self) -> bytes:
        return self.text.encode("latin-1" if self.kind.endswith("latin-1") else "utf-8")


def lines(name: str) -> list[Line]:
    """Return the lines of a corpus."""
    found = [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]
    return [Line(what, kind, _SECRET.sub(r"\1", text), _SECRET.findall(text)) for what, kind, text in found]


def tokens() -> list[tuple[str, str]]:
    """Return each token with its rule."""
    found = (HERE / "tokens.txt").read_text(encoding="utf-8").splitlines()
    split = [line.replace("|", "").split() for line in found if not line.startswith("#")]
    return [(rule, token) for rule, token in split]


def recorded(kind: str, data: bytes, redactor: Redactor | None, cut: int = 1 << 30) -> bytes:
    """Return the recording of a message, with a header if the line has one."""
    if kind == "argv":
        command = [word.replace("&", " ") for word in data.decode().split()]
        fields: Any = {"command": command, "name": "x", "part": 1}
        return encode.header(redactor.header(fields) if redactor is not None else fields)
    if kind == "path":
        fields = {
            "http": 1,
            "method": "POST",
            "path": data.decode(),
            "status": 200,
            "request": {"accept": "*/*"},
        }
        made: list[Any] = [encode.note(0.5, "http", fields)]
    else:
        made = _written(kind, data, cut)
    if redactor is None:
        return b"".join(each if isinstance(each, bytes) else b"".join(each) for each in made)
    return b"".join(
        redactor.lines(each) if isinstance(each, bytes) else b"".join(redactor.buffers(each)) for each in made
    )


def _written(kind: str, data: bytes, cut: int) -> list[Any]:
    chunks = [data[at : at + cut] for at in range(0, len(data), cut)]
    if kind in ("event", "endpoint"):
        sse = SseEncoder("server", {"stream": "1", "http": 1})
        stream = b"event: %b\ndata: %b\n\n" % (b"message" if kind == "event" else b"endpoint", data)
        return [sse.feed(0.5, stream[at : at + cut])[1] for at in range(0, len(stream), cut)]
    if kind == "body":
        body = BodyEncoder("client", {"stream": "1", "http": 1})
        for chunk in chunks:
            body.feed(chunk)
        return [list(body.close(0.5))]
    encoder = TextEncoder("stderr") if kind.startswith("stderr") else FrameEncoder("server")
    return [*(encoder.feed(0.5, chunk) for chunk in [*chunks, b"\n"])]


def texts(file: bytes) -> str:
    """Return all readable forms of a recording: unchanged, unescaped any number of times, and decoded."""
    seen = [file.decode("utf-8", "backslashreplace")]
    for line in file.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry.get("b64"), str):
            seen.append(b64decode(entry["b64"]).decode("latin-1"))
        seen += _strings(entry)
    return "\n".join(seen)


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(key)
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value
        try:
            yield from _strings(json.loads(value))
        except ValueError:
            return
    else:
        yield str(value)
