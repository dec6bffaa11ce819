"""Switches between bytes and messages at any time: no data is lost, split or changed."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.recording.encode import CLIENT, FrameEncoder
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from mcpspy.io.stdio.base import RecordingTap
from mcpspy.io.stdio.message_channel import MessageChannel, StderrLines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Entry

INJECTED = b'{"injected":true}\n'


class Wire:
    """A stream in memory, and a handler that forwards everything."""

    def __init__(self, tap: RecordingTap, write: Callable[[bytes], None]) -> None:
        self.tap = tap
        self.out = b""
        self.channel: MessageChannel | None = None
        self.backlog = 0
        self.is_writable = True
        self.is_deciding = False
        self.is_paused = False
        self._write = write

    def put(self, data: bytes) -> None:
        self.out += data

    def divert(self, channel: Any) -> None:
        self.channel = channel

    def wait_for(self, other: object) -> None:
        pass

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None: ...

    def finish(self) -> None:
        self.is_writable = False

    def read(self, chunk: bytes) -> None:
        """Feed data like a channel that has read it."""
        if self.channel is not None:
            self.channel.feed(chunk)
        else:
            self.tap.feed(chunk)
            self.put(chunk)

    def passes(self, channel: MessageChannel, lines: bytes) -> bool:
        return b"noise" in lines

    def take(self, channel: MessageChannel, lines: list[bytes]) -> None:
        for line in lines:
            for buffer in channel.frame(0.0, line, {}):
                self._write(bytes(buffer))
            channel.send(line + b"\n")

    def is_deciding_on(self, channel: MessageChannel) -> bool:
        return self.is_deciding

    def end_side(self, channel: MessageChannel) -> None:
        pass

    def keep_back(self, channel: MessageChannel, unfinished: bytes) -> bool:
        return False


LIMIT = 100


def wired(record: str | None = None) -> tuple[Wire, MessageChannel, Recorder]:
    where = RecordingTarget()
    where.recording = record is not None
    where.record = record
    where.redaction.off = True
    recorder = Recorder(where, {})
    tap = RecordingTap(recorder, FrameEncoder(CLIENT, LIMIT) if record is not None else None, CLIENT)
    wire = Wire(tap, recorder.write)
    return wire, MessageChannel(CLIENT, wire, tap, wire, LIMIT), recorder


messages = st.lists(
    st.one_of(
        st.sampled_from([b"{}", b'{"id":1}\r', b"", b"noise", b"\xff\x00", b"[1,2]", '{"é":1}'.encode()]),
        st.binary(max_size=6).map(lambda data: data.replace(b"\n", b"")),
    ),
    max_size=12,
)


@given(messages, st.binary(max_size=3), st.data())
def test_whatever_is_switched_on_and_off_when_the_bytes_out_are_the_bytes_in(
    lines: list[bytes], torn: bytes, data: st.DataObject
) -> None:
    said = b"".join(line + b"\n" for line in lines) + torn.replace(b"\n", b"")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(said)), max_size=10)))
    wire, channel, _ = wired()
    spoken = 0
    for start, end in zip([0, *cuts], [*cuts, len(said)], strict=True):
        what = data.draw(st.sampled_from(["on", "off", "say", "nothing"]))
        if what == "on" or (what == "say" and not channel.is_on):
            channel.on()
        if what == "say":
            channel.send(INJECTED)
            spoken += 1
        elif what == "off" and not channel.has_queued:
            channel.off()
        if start < end:
            wire.read(said[start:end])
    if channel.is_on:
        channel.eof()
    waits = channel.has_queued  # For the end of a line that never came.
    found = wire.out.split(b"\n")
    injected = found.count(INJECTED[:-1])
    assert waits or injected == spoken
    assert b"\n".join(line for line in found if line != INJECTED[:-1]) == said


def test_all_of_it_is_recorded_too(tmp_path: Path, read_entries: Callable[[bytes], list[Entry]]) -> None:
    said = b'{"id":1}\n{"id":2}\r\nnoise\n\xff\n[1]\n{"id":3}\n{"half":'
    for size in (1, 2, 3, 5, 7, 11, 64):
        for turn_on in range(0, len(said), 4):
            path = tmp_path / f"{size}-{turn_on}.jsonl"
            wire, channel, recorder = wired(str(path))
            for at in range(0, len(said), size):
                if at <= turn_on < at + size:
                    channel.on()
                if at <= turn_on + 9 < at + size:
                    channel.off()
                wire.read(said[at : at + size])
            if channel.is_on:
                channel.eof()
            wire.tap.eof()
            recorder.finish(0, None)
            assert wire.out == said
            entries = read_entries(path.read_bytes())
            assert b"".join(entry.payload for entry in entries if entry.side) == said, path.name


def test_injected_messages_wait_for_the_end_of_an_unfinished_line() -> None:
    wire, channel, _ = wired()
    wire.read(b'{"id"')
    channel.on()
    channel.send(INJECTED)
    assert channel.has_queued
    assert wire.out == b'{"id"'
    wire.read(b":1")
    assert wire.out == b'{"id":1'
    wire.read(b'}\n{"id":2}')
    assert wire.out == b'{"id":1}\n' + INJECTED
    channel.off()
    assert wire.out.endswith(INJECTED + b'{"id":2}')


def test_a_line_that_is_decided_on_does_not_continue_before_it_is_whole() -> None:
    wire, channel, _ = wired()
    channel.on()
    wire.read(b'{"id":1')
    assert wire.out == b""
    wire.read(b"}\n")
    assert wire.out == b'{"id":1}\n'


def test_the_end_lets_half_a_line_continue() -> None:
    wire, channel, _ = wired()
    channel.on()
    wire.read(b'{"half"')
    channel.eof()
    assert wire.out == b'{"half"'


def test_a_line_that_will_never_end_is_recorded(
    tmp_path: Path, read_entries: Callable[[bytes], list[Entry]]
) -> None:
    wire, channel, recorder = wired(str(tmp_path / "r.jsonl"))
    channel.on()
    wire.read(b'{"half"')
    channel.torn()
    wire.tap.torn()
    recorder.finish(0, None)
    entries = read_entries((tmp_path / "r.jsonl").read_bytes())
    assert [entry.payload for entry in entries if entry.side] == [b'{"half"']


def test_an_unfinished_line_is_known_without_a_recording_too() -> None:
    wire, channel, _ = wired()
    wire.read(b'{"id":1}\n{"id"')
    channel.on()
    wire.read(b':2}\n{"id":3}\n')
    assert wire.out == b'{"id":1}\n{"id":2}\n{"id":3}\n'


def test_a_frame_names_its_sender_and_its_receiver() -> None:
    _, channel, _ = wired()
    assert b"".join(channel.frame(1.5, b'{"id":1}', {"by": "mcpspy"})) == (
        b'{"t":1.500000,"from":"client","by":"mcpspy","msg":{"id":1}}\n'
    )
    assert b"".join(channel.frame(1.5, b'{"id":1}\r', {"to": "mcpspy"})) == (
        b'{"t":1.500000,"from":"client","to":"mcpspy","eol":"\\r\\n","msg":{"id":1}}\n'
    )


def test_a_line_above_the_limit_is_forwarded_as_it_arrives_and_counted(tmp_path: Path) -> None:
    wire, channel, recorder = wired(str(tmp_path / "r.jsonl"))
    channel.on()
    wire.read(b'{"id":1}\n{"id":2,"x":"' + b"x" * 87)
    assert wire.out == b'{"id":1}\n'
    wire.read(b"y")
    assert wire.out.endswith(b"y")
    channel.send(INJECTED)
    assert channel.has_queued, "nothing is inserted into the line"
    wire.read(b'z"}\n{"id":3}\n')
    recorder.finish(0, None)
    large = b'{"id":2,"x":"' + b"x" * 87 + b'yz"}'
    assert wire.out == b'{"id":1}\n' + large + b"\n" + INJECTED + b'{"id":3}\n'
    first, note, third, _ = [
        json.loads(entry) for entry in (tmp_path / "r.jsonl").read_bytes().splitlines()[1:]
    ]
    assert (first["msg"]["id"], third["msg"]["id"]) == (1, 3)
    assert note == {
        "t": note["t"],
        "note": "oversized",
        "from": "client",
        "size": len(large),
        "sha256": hashlib.sha256(large).hexdigest(),
    }


def test_a_line_above_the_limit_waits_for_the_messages_that_scripts_decide_on() -> None:
    wire, channel, _ = wired()
    channel.on()
    wire.is_deciding = True
    wire.read(b"x" * (LIMIT + 1))
    assert (wire.out, wire.is_paused, channel.is_waiting) == (b"", True, True)
    wire.is_deciding = False
    wire.read(b"y")
    assert (wire.out, channel.is_waiting) == (b"x" * (LIMIT + 1) + b"y", False)


def test_scripts_get_no_line_of_stderr_above_the_limit_that_arrives_in_parts() -> None:
    wire, _, recorder = wired()
    told: list[bytes] = []
    lines = StderrLines(wire, RecordingTap(recorder, None, None), told.append, LIMIT)
    for chunk in (b"one\r\ntw", b"o\n" + b"x" * LIMIT, b"x", b"x\nthree\n\n"):
        lines.feed(chunk)
    assert told == [b"one", b"two", b"three", b""]
    assert wire.out == b"one\r\ntwo\n" + b"x" * (LIMIT + 2) + b"\nthree\n\n"


def test_http2_is_forwarded_unchanged_and_never_decided_on() -> None:
    wire, channel, _ = wired()
    channel.on()
    data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
    wire.read(data)
    channel.on()
    wire.read(b"noise\n")
    assert (wire.out, channel.is_on) == (data + b"noise\n", False)
