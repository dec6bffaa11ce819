"""Every line of a recording is strict JSON, whatever path it came by, and redacted or not."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.importers.base import RecordingLines
from mcpspy.core.recording import encode
from mcpspy.core.recording.decode import Frame, read_entry
from mcpspy.core.recording.encode import FrameEncoder, TextEncoder
from mcpspy.core.recording.encode_body import BodyEncoder, SseEncoder
from mcpspy.core.redact import redactor
from mcpspy.core.redact.config import RedactionRules
from mcpspy.core.redact.redactor import Redactor
from mcpspy.io.importing import read
from mcpspy.io.recording.reader import Recording
from mcpspy.io.recording.redaction import clean
from mcpspy.io.recording.writer import Writer
from tests.strict import strict_json

FILES = Path(__file__).parents[2] / "core" / "importers" / "files"
RECORDINGS = Path(__file__).parents[3] / "recordings"

PARTS = st.sampled_from(
    [
        *(
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b'"',
            b"\\",
            b"\n",
            b"\r\n",
            b"\n\n",
            b"data: ",
            b"event: x\n",
            b"id: 1\n",
        ),
        *(
            b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
            b'{"a":1}\n',
            b"{ a: 1 }\n",
            b"[INFO] x [y]\n",
            b'{"a":NaN}\n',
        ),
        *(
            b'{"password":"hunter2hunter2"}\n',
            b'{ password: "hunter2hunter2" }\n',
            b'{"token":"\\ud800","a":"x"}\n',
        ),
        *(
            b"Authorization: Bearer abcdefghijklmnop\n",
            b'{"url":"https://me:hunter2@host/"}\n',
            b'"apiKey":"k',
        ),
        *(
            b'{"password":12345}\n',
            b'{"password":NaN}\n',
            b'{"a":"\\u0070assword=hunter2"}\n',
            b"-----BEGIN PRIVATE KEY",
        ),
        *(
            b"\xff",
            "é\u2028".encode(),
            b"\x00",
            b"[" * 130 + b"]" * 130 + b"\n",
            b'{"":' * 125 + b"1" + b"}" * 125 + b"\n",
        ),
    ]
)
STREAMS = st.lists(PARTS, max_size=12).map(b"".join) | st.binary(max_size=40)


def buffers(lines: Any) -> list[bytes]:
    return [lines] if isinstance(lines, bytes) else [bytes(line) for line in lines]


def recorded(stream: bytes, cut: int) -> list[bytes]:
    """Return lines of all paths by which bytes of a peer reach a recording."""
    chunks = [stream[:cut], stream[cut:]]
    fields: dict[str, encode.Value] = {"http": 1, "stream": "1", "event": "x" * (cut % 2)}
    frames, text, body = FrameEncoder("client"), TextEncoder("stderr"), BodyEncoder("server", fields)
    events = SseEncoder("server", fields)
    imported = RecordingLines()
    imported.message(1.0, "client", stream)
    lines = [
        b"".join(line for chunk in chunks for line in buffers(frames.feed(0.1, chunk))),
        b"".join(buffers(frames.close(0.2))),
        b"".join(line for chunk in chunks for line in buffers(text.feed(0.1, chunk))),
        *buffers(text.close(0.2)),
        *(bytes(line) for chunk in chunks for line in events.feed(0.1, chunk)[1]),
        *buffers(events.close(0.2)),
        *imported.done()[1],
        encode.note(0.3, "rule", {"sent": stream.decode("utf-8", "replace"), "seconds": 1.5}),
    ]
    for chunk in chunks:
        body.feed(chunk)
    return [*lines, *buffers(body.close(0.3))]


@pytest.mark.parametrize("mode", ["as sent", "redacted", "as text"])
@settings(deadline=None)
@given(stream=STREAMS, cut=st.integers(0, 60))
def test_every_line_is_strict_json(mode: str, stream: bytes, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if mode == "as text":
            patch.setattr(redactor, "LARGE", 0)
        redacting = None if mode == "as sent" else Redactor(bytes(32))
        path = os.path.join(folder, "x.jsonl")
        fields: dict[str, encode.Value] = {"command": ["x", stream.decode("utf-8", "surrogateescape")]}
        writer = Writer(None, path, fields, redacting, say=lambda _: None)
        for line in recorded(stream, cut):
            writer.write(line)
        writer.close()
        *lines, rest = Path(path).read_bytes().split(b"\n")
        assert rest == b""
        for written in lines:
            strict_json(written)
        if mode == "as sent":
            frames = [entry for entry in Recording(path) if isinstance(entry, Frame) and not entry.http]
            sent = b"".join(frame.data + frame.eol.encode() for frame in frames if frame.side == "client")
            assert sent.startswith(stream)


@pytest.mark.parametrize("message", [b'{"a":{"b":"s3cret"},"c":"\\ud800"}', b'{"a":{"b":"s3cret"},"c":NaN}'])
def test_a_secret_in_a_message_that_only_tolerant_readers_accept_is_redacted(message: bytes) -> None:
    line = b"".join(buffers(FrameEncoder("client").feed(0.1, message + b"\n")))
    assert b'"raw":' in line
    redacted = Redactor(bytes(32), RedactionRules(pointers=["/a/b"])).lines(line)
    assert b"s3cret" not in redacted
    entry = read_entry(redacted[:-1])
    assert isinstance(entry, Frame)
    assert entry.data.startswith(b'{"a":{"b":"[redacted:')
    assert list(strict_json(redacted)) == list(strict_json(line))


def test_an_older_recording_is_strict_json_once_it_is_redacted(tmp_path: Path) -> None:
    header = b'{"mcpspy":1,"id":"x","started":"2026-11-21T08:00:00.000Z"}\n'
    lines = [b'{"t":1.0,"from":"server","msg":{ a: 1 }}\n', b'{"t":1.0,"from":"server","msg":{"a":1}}\n']
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_bytes(header + b"".join(lines))
    assert [entry.data for entry in Recording(old) if isinstance(entry, Frame)] == [b"{ a: 1 }", b'{"a":1}']
    clean(str(old), str(new), Redactor(bytes(32)))
    for line in new.read_bytes().split(b"\n")[:-1]:
        strict_json(line)
    assert [entry.data for entry in Recording(new) if isinstance(entry, Frame)] == [b"{ a: 1 }", b'{"a":1}']


def test_numbers_that_json_cannot_express_are_not_written() -> None:
    note = strict_json(encode.note(0.1, "rule", {"seconds": float("inf"), "x": float("nan"), "y": -1.5}))
    assert (note["seconds"], note["x"], note["y"]) == (None, None, -1.5)
    encoder = SseEncoder("server", {})
    for digits in (15, 16, 5000):
        (line,) = encoder.feed(0.1, b"retry: %b\n\n" % (b"9" * digits))[1] or [b'{"retry":null}']
        assert (strict_json(bytes(line))["retry"] is None) == (digits > 15)


def test_every_line_of_an_imported_file_is_strict_json() -> None:
    count = 0
    for path in FILES.iterdir():
        if path.suffix in (".json", ".jsonl", ".har", ".db"):
            for session in read(str(path), None)[1]:
                for line in session.lines:
                    strict_json(line)
                    count += 1
    assert count > 50


def test_every_line_of_the_real_sessions_here_is_strict_json() -> None:
    lines = [line for path in RECORDINGS.glob("*.jsonl") for line in path.read_bytes().split(b"\n")[:-1]]
    assert len(lines) > 100
    for line in lines:
        strict_json(line)
