"""A recording on stdio in place of its server: descriptors, the clock, signals, the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from mcpspy.io.mock import stdio
from mcpspy.io.mock.loader import HEAD
from mcpspy.io.mock.stdio import ENDING, LARGE, TOGETHER, EndedBySignal, _undisturbed, end_by_signals
from tests.core.mock.talking import Talk

BOUND = 20
"""Seconds after which a wait counts as a failure."""

HEADER = b'{"mcpspy":1,"id":"00000000","started":"2026-11-21T08:00:00.000Z","command":["%b"],"name":"r"}\n'


def frame(at: float, side: str, **members: Any) -> bytes:
    message = json.dumps({"jsonrpc": "2.0", **members}).encode()
    return b'{"t":%.6f,"from":"%b","msg":%b}\n' % (at, side.encode(), message)


def handshake(server: str = "s") -> bytes:
    result = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "serverInfo": {"name": server, "version": "1"},
    }
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    asked = frame(0.0, "client", id=0, method="initialize", params=params)
    return asked + frame(0.01, "server", id=0, result=result)


def call(number: int, took: float = 0.0, said: str = "yes") -> bytes:
    asked = frame(number, "client", id=number, method="tools/call", params={"name": f"tool {number}"})
    return asked + frame(number + took, "server", id=number, result={"said": said})


def ask(number: int) -> bytes:
    return line(id=number, method="tools/call", params={"name": f"tool {number}"})


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


HELLO = line(id="hello", method="initialize", params={"protocolVersion": "2025-11-25", "capabilities": {}})


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "r.jsonl"
    path.write_bytes(HEADER % b"x" + handshake() + call(1) + call(2, took=0.3))
    return path


@contextmanager
def mock(*arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpspy", "mock", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(BOUND)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def played(said: bytes, *arguments: str | Path) -> tuple[list[Any], str, int]:
    """Send messages and close. Return the responses, the complaints and the exit code."""
    with mock(*arguments) as process:
        out, err = process.communicate(said, timeout=BOUND)
        return [json.loads(each) for each in out.splitlines()], err.decode(), process.returncode


def exchange(process: subprocess.Popen[bytes], said: bytes) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(said)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@pytest.mark.timeout(60)
def test_the_mock_answers_line_by_line_and_ends_with_its_stdin(recording: Path) -> None:
    with mock(recording) as process:
        assert exchange(process, HELLO)["result"]["serverInfo"]["name"] == "s"
        assert exchange(process, ask(1)) == {"jsonrpc": "2.0", "id": 1, "result": {"said": "yes"}}
        out, err = process.communicate(timeout=BOUND)
        assert (out, err, process.returncode) == (b"", b"", 0)


def test_pending_responses_are_sent_before_the_end(recording: Path) -> None:
    said, complaints, code = played(ask(2) + ask(1), recording, "--speed", "1")
    assert [each["id"] for each in said] == [1, 2]
    assert (complaints, code) == ("", 0)


def test_a_last_line_without_an_end_is_answered(recording: Path) -> None:
    said, _, code = played(ask(1).rstrip(b"\n"), recording)
    assert [each["id"] for each in said] == [1]
    assert code == 0


def test_a_flood_is_answered_in_its_order(recording: Path) -> None:
    asked = [1 + number % 2 for number in range(3 * TOGETHER)]
    flood = HELLO + b"".join(
        line(id=f"{place}", method="tools/call", params={"name": f"tool {number}"})
        for place, number in enumerate(asked)
    )
    said, complaints, code = played(flood, recording)
    assert [each["id"] for each in said] == ["hello", *map(str, range(len(asked)))]
    assert (complaints, code) == ("", 0)


def test_large_answers_are_not_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    monkeypatch.setattr(stdio, "_write", lambda data: written.append(len(data)))
    live = Talk().call(1, answer="x" * (LARGE // 2)).live()
    for number in range(4):
        params = {"name": "echo", "arguments": {}}
        live.session.receive(line(id=number, method="tools/call", params=params), 0.0)
    stdio._send(live.session)
    assert len(written) == 3, "two batches of two, and the end"
    assert max(written) < 2 * LARGE


def test_a_client_that_sends_garbage_never_stops_it(recording: Path) -> None:
    garbage = b"\xff\xfe\x00\n{]\n\n[[[\n" + b"[" * 100_000 + b"\n"
    said, _, code = played(garbage + ask(1), recording)
    assert [each.get("id") for each in said] == [None, None, None, None, 1]
    assert code == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_mock(number: signal.Signals, recording: Path) -> None:
    with mock(recording) as process:
        exchange(process, HELLO)
        process.send_signal(number)
        assert process.wait(BOUND) == 128 + number
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_signal_does_not_interrupt_a_read() -> None:
    before = {number: signal.getsignal(number) for number in ENDING}
    done: list[bool] = []

    def step() -> bool:
        signal.raise_signal(signal.SIGTERM)
        done.append(True)
        return True

    try:
        end_by_signals()
        with pytest.raises(EndedBySignal):
            _undisturbed(step)
        assert done == [True]
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL, "a second signal ends it at once"
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.mark.timeout(60)
def test_strict_reports_unsent_requests_after_a_signal_too(recording: Path) -> None:
    with mock(recording, "--strict") as process:
        exchange(process, HELLO)
        process.terminate()
        assert process.wait(BOUND) == 1
        assert process.stderr is not None
        assert process.stderr.read().count(b"never sent") == 2


@pytest.mark.timeout(60)
def test_a_client_that_stops_reading_is_not_an_error(recording: Path) -> None:
    with mock(recording) as process:
        exchange(process, HELLO)
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.close()
        process.stdin.write(ask(1))
        process.stdin.close()
        assert process.wait(BOUND) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""


@pytest.mark.timeout(60)
def test_no_descriptor_that_it_shares_is_changed(recording: Path) -> None:
    read, write = os.pipe()
    back, out = os.pipe()
    process = subprocess.Popen([sys.executable, "-m", "mcpspy", "mock", recording], stdin=read, stdout=out)
    try:
        os.write(write, HELLO)
        assert b"hello" in os.read(back, 65536)
        assert os.get_blocking(read)
        assert os.get_blocking(out)
        os.close(write)
        assert process.wait(BOUND) == 0
    finally:
        process.kill()
        process.wait(BOUND)
        for descriptor in (read, back, out):
            os.close(descriptor)


@pytest.mark.timeout(60)
def test_the_handshake_of_a_large_recording_is_answered_before_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    calls = b"".join(call(number, said="x" * 1000) for number in range(1, 1500))
    path.write_bytes(HEADER % b"x" + handshake() + calls)
    assert path.stat().st_size > 4 * HEAD
    with mock(path) as process:
        assert exchange(process, HELLO)["id"] == "hello"
        assert exchange(process, ask(1499))["result"]["said"] == "x" * 1000
    said, _, _ = played(ask(1400) + HELLO + ask(2), path)
    assert [each["id"] for each in said] == [1400, "hello", 2]


@pytest.mark.parametrize("echoed", [b"1.0", b"1"])
def test_an_id_with_a_fraction_is_spelled_as_the_recorded_server_spelled_it(
    tmp_path: Path, echoed: bytes
) -> None:
    asked = b'{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}'
    answer = b'{"jsonrpc":"2.0","id":%b,"result":{"tools":[]}}' % echoed
    lines = [
        b'{"t":1.0,"from":"client","msg":%b}\n' % asked,
        b'{"t":1.1,"from":"server","msg":%b}\n' % answer,
    ]
    path = tmp_path / "r.jsonl"
    path.write_bytes(HEADER % b"x" + handshake() + b"".join(lines))
    with mock(path) as process:
        out, err = process.communicate(HELLO + asked + b"\n", timeout=BOUND)
    assert out.splitlines()[1:] == [answer]
    assert (err, process.returncode) == (b"", 0)
