"""Options, recording taps, and closing a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.stdio.base import SERVER, STDERR, RunOptions, close, taps

if TYPE_CHECKING:
    from pathlib import Path


def test_a_session_is_intercepted_from_the_start_only_if_an_option_asks_for_it() -> None:
    plain, noisy, watched = (RunOptions(["npx", "-y", "server-memory"]) for _ in range(3))
    noisy.noise = STDERR
    watched.interception.call_timeout = 1.0
    assert plain.session_name == "server-memory"
    assert [options.intercepts for options in (plain, noisy, watched)] == [False, True, True]


def test_taps_record_their_direction_and_survive_a_broken_recording(tmp_path: Path) -> None:
    where = RecordingTarget()
    where.record = str(tmp_path / "recording.jsonl")
    recorder = Recorder(where, {})
    _, server, _ = taps(recorder)
    inside = []
    for data in (b'{"id":1}\n{"id"', b":2", b"}\n"):
        server.feed(data)
        inside.append(server.is_inside_line)
        recorder.broke(ZeroDivisionError())
    assert inside == [True, True, False]
    server.eof()
    lines = (tmp_path / "recording.jsonl").read_bytes().splitlines()
    assert len(lines) == 2
    assert b'"from":"%b","msg":{"id":1}}' % SERVER.encode() in lines[1]


def test_a_closed_standard_descriptor_becomes_the_null_device_and_a_pipe_is_closed() -> None:
    script = (
        "import os; from mcpspy.io.stdio.base import close; close(0); close(1); "
        "assert os.fstat(0) == os.fstat(1) == os.stat(os.devnull)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    read, write = os.pipe()
    close(write)
    assert os.read(read, 1) == b""
    os.close(read)


def test_http2_on_the_pipes_is_recorded_as_frames_and_reported_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    where = RecordingTarget()
    where.record = str(tmp_path / "recording.jsonl")
    client, server, _ = taps(Recorder(where, {}))
    capfd.readouterr()
    preface, settings = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0\0\0\4\0\0\0\0\0"
    for tap, chunks in (client, (preface + settings, settings[:5])), (server, (settings, settings)):
        for chunk in chunks:
            tap.feed(chunk)
        tap.eof()
    assert [client.is_http2, server.is_http2] == [True, True]
    printed = capfd.readouterr().err
    assert printed.count("HTTP/2") == 1
    lines = (tmp_path / "recording.jsonl").read_text(encoding="utf-8").splitlines()[1:]
    assert [(entry["note"], entry["from"], entry.get("frame")) for entry in map(json.loads, lines)] == [
        ("http2", "client", "preface"), ("http2", "client", "SETTINGS"), ("http2", "client", "incomplete"),
        ("eof", "client", None), ("http2", "server", "SETTINGS"), ("http2", "server", "SETTINGS"),
        ("eof", "server", None),
    ]  # fmt: skip
