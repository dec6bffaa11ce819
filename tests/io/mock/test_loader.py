"""Loading of the recordings of a mock."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcpspy.core.mock.session import MockSession
from mcpspy.core.mock.steering import MockOptions
from mcpspy.errors import UsageError
from mcpspy.io.mock.loader import HEAD, RecordingsLoader
from tests.io.mock.test_stdio import HEADER, ask, call, frame, handshake


def loading(folder: Path, *contents: bytes, merge: bool = False) -> RecordingsLoader:
    paths = []
    for number, content in enumerate(contents):
        paths.append(folder / f"{number}.jsonl")
        paths[-1].write_bytes(content)
    return RecordingsLoader(paths, [], merge=merge)


ONE, OTHER = HEADER % b"x" + handshake("one") + call(1), HEADER % b"x" + handshake("other") + call(2)
NAMELESS = HEADER % b"y" + call(3)


@pytest.mark.parametrize("contents", [(ONE, OTHER), (ONE, NAMELESS), (ONE, ONE, OTHER)])
def test_recordings_of_two_servers_are_merged_only_on_request(
    contents: Sequence[bytes], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="--merge"):
        loading(tmp_path, *contents).recordings()
    assert loading(tmp_path, *contents, merge=True).recordings().interactions


def test_recordings_of_one_command_are_one(tmp_path: Path) -> None:
    together = loading(tmp_path, ONE, HEADER % b"x" + call(3))
    assert len(together.recordings().interactions) == 2
    assert together.warnings == []


def test_conflicting_responses_of_two_recordings_are_reported(tmp_path: Path) -> None:
    together = loading(tmp_path, ONE, HEADER % b"x" + handshake("one") + call(1, said="no"))
    together.recordings()
    assert together.warnings == ["tools/call tool 1: 1.jsonl and 0.jsonl differ; using 1.jsonl"]


def test_damaged_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    header, *rest = ONE.splitlines(keepends=True)
    damaged = loading(tmp_path, b"".join([header, b"garbage\n", *rest, b"{}\n"]))

    assert len(damaged.recordings().interactions) == 1
    (warning,) = damaged.warnings
    assert warning.endswith(": 2 damaged lines skipped")


SAID = "[redacted:3f9c01ab]"
REDACTED = HEADER % b"x" + handshake("one") + call(1, said=SAID) + call(2, said=SAID)
REDACTED_ERRORS = REDACTED.replace(b'"result": {"said"', b'"error": {"code": -32000, "message"')
"""The same as errors, which the decoder of plain lines does not read."""


@pytest.mark.parametrize("content", [REDACTED, REDACTED_ERRORS], ids=["plain", "general"])
def test_responses_with_placeholders_are_counted_and_reported(tmp_path: Path, content: bytes) -> None:
    redacted = loading(tmp_path, content + call(3))
    redacted.recordings()
    (warning,) = redacted.warnings
    assert "0.jsonl: 2 responses with redacted values: clients receive [redacted:…]" in warning


def test_placeholders_in_several_recordings_are_one_warning(tmp_path: Path) -> None:
    redacted = loading(tmp_path, REDACTED, ONE, REDACTED + call(3, said=SAID))
    redacted.recordings()
    (warning,) = [each for each in redacted.warnings if "redacted" in each]
    assert warning.startswith("2 recordings: 5 responses with redacted values: clients receive")


def test_a_placeholder_in_a_request_alone_is_not_reported(tmp_path: Path) -> None:
    request = call(1).replace(b'"tool 1"', b'"tool [redacted:3f9c01ab]"')
    assert b"[redacted:" in request
    loader = loading(tmp_path, HEADER % b"x" + handshake("one") + request)
    loader.recordings()
    assert loader.warnings == []


def test_an_incomplete_last_line_is_skipped_and_reported(tmp_path: Path) -> None:
    torn = loading(tmp_path, ONE + b'{"t":9.0,"from":"cli')
    assert len(torn.recordings().interactions) == 1
    assert "incomplete (20 bytes, skipped)" in torn.warnings[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "empty"),
        (b'{"mcpspy":1,"id":', "header is incomplete"),
        (b"hello\n", "not an mcpspy recording"),
        (HEADER % b"x", "contains no requests"),
        (HEADER % b"x" + frame(0.1, "client", id=1, method="ping"), "contains no messages from a server"),
    ],
)
def test_a_recording_that_cannot_be_served_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        loading(tmp_path, content).recordings()


def test_the_start_of_a_large_recording_is_served_while_the_rest_is_read(tmp_path: Path) -> None:
    calls = b"".join(call(number, said="x" * 1000) for number in range(1, 1500))
    large = loading(tmp_path, HEADER % b"x" + handshake() + calls)
    recordings = large.begin()
    assert not recordings.is_whole
    client = MockSession(recordings, MockOptions(), 0.0)
    for number in (1, 1499):
        client.receive(ask(number), 0.0)
    assert [json.loads(said.data)["id"] for said in client.take(0.0)] == [1]
    slices = 1
    while large.read_on():
        slices += 1
        client.resume(0.0)
    client.resume(0.0)
    assert slices > (len(calls) - HEAD) // 100_000, "so that no client waits for long"
    assert [json.loads(said.data)["result"]["said"] for said in client.take(0.0)] == ["x" * 1000]
    assert not large.read_on()
    assert len(recordings.interactions) == 1499


def test_the_last_recording_is_read_first(tmp_path: Path) -> None:
    calls = b"".join(call(number, said="x" * 1000) for number in range(2, 1500))
    both = loading(tmp_path, ONE + calls, ONE + calls.replace(b"xx", b"yy"))
    client = MockSession(both.begin(), MockOptions(), 0.0)
    client.receive(ask(1498), 0.0)
    while client.waits:
        assert both.read_on()
        client.resume(0.0)
    (said,) = client.take(0.0)
    assert json.loads(said.data)["result"]["said"] == "y" * 1000
    assert not client.recordings.is_whole


def test_a_recording_in_parts_is_one(tmp_path: Path) -> None:
    part = frame(1.5, "client", id=7, method="tools/call", params={"name": "tool 7"})
    (tmp_path / "0.part2.jsonl").write_bytes(
        HEADER % b"x" + frame(1.75, "server", id=7, result={"said": "later"}) + call(8)
    )
    together = loading(tmp_path, ONE + part + b'{"t":1.6,"note":"part","next":"0.part2.jsonl"}\n')
    client = MockSession(together.recordings(), MockOptions(), 0.0)
    for number in (1, 7, 8):
        client.receive(ask(number), 0.0)
    assert [json.loads(said.data)["result"]["said"] for said in client.take(0.0)] == ["yes", "later", "yes"]


def test_large_recordings_of_two_servers_are_refused_at_once(tmp_path: Path) -> None:
    calls = b"".join(call(number, said="x" * 1000) for number in range(1, 500))
    with pytest.raises(UsageError, match="--merge"):
        loading(tmp_path, ONE + calls, OTHER + calls).begin()


def test_a_recording_that_was_cut_while_it_was_served_is_an_error_for_the_client(tmp_path: Path) -> None:
    cut = loading(tmp_path, ONE + call(2))
    client = MockSession(cut.recordings(), MockOptions(), 0.0)
    (tmp_path / "0.jsonl").write_bytes(ONE)
    for number in (1, 2):
        client.receive(ask(number), 0.0)
    fine, lost = (json.loads(said.data) for said in client.take(0.0))
    assert (fine["id"], fine["result"]) == (1, {"said": "yes"})
    assert (lost["id"], lost["error"]["code"]) == (2, -32603)


def test_after_an_error_there_is_no_more_to_read(tmp_path: Path) -> None:
    silent = loading(tmp_path, HEADER % b"x" + frame(0.1, "client", id=1, method="ping"))
    with pytest.raises(UsageError, match="contains no messages from a server"):
        silent.recordings()
    assert not silent.read_on()
    assert not silent.recordings().is_whole


def test_warnings_are_reported_once(tmp_path: Path) -> None:
    torn = loading(tmp_path, ONE + b'{"t":9.0,"from":"cli')
    torn.recordings()
    assert [len(torn.take_warnings()), torn.take_warnings()] == [1, []]
