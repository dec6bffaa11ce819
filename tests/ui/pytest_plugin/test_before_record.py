"""Messages are changed or dropped before they are written to a recording."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.recording.decode import Frame, Note
from mcpspy.errors import UsageError
from mcpspy.io.recording.reader import Recording
from mcpspy.ui.pytest_plugin.before_record import BeforeRecord, write_changed
from mcpspy.ui.pytest_plugin.fixture import McpRecording
from mcpspy.ui.pytest_plugin.options import PluginOptions

if TYPE_CHECKING:
    from tests.ui.conftest import Make, Said

Json = dict[str, Any]

CALLS: list[Said] = [
    ("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","n":1.0}}'),
    ("server", b"DEBUG"),
    ("client", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"b"}}'),
    ("server", b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'),
    ("server", b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"at":"2026"}}'),
]


def lines(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()


def kept(source: Path, target: Path, change: BeforeRecord) -> list[bytes]:
    write_changed(source, target, change)
    return [entry.data for entry in Recording(target) if isinstance(entry, Frame)]


def test_only_the_lines_of_changed_messages_are_other_lines(make_recording: Make, tmp_path: Path) -> None:
    source, seen = make_recording(CALLS), []

    def change(message: Json, side: str) -> Json:
        seen.append((side, message.get("method")))
        if "at" in message.get("result", {}):
            message["result"]["at"] = "now"
        return message

    assert write_changed(source, tmp_path / "x.jsonl", change)
    old, new = lines(source), lines(tmp_path / "x.jsonl")
    assert seen == [("client", "tools/call")] * 2 + [("server", None)] * 2
    assert [number for number, line in enumerate(old) if line != new[number]] == [5]
    assert len(old) == len(new)
    assert new[5] == old[5].replace(b'"2026"', b'"now"')


def test_a_dropped_request_takes_its_response_with_it(make_recording: Make, tmp_path: Path) -> None:
    source, seen = make_recording(CALLS), []

    def change(message: Json, side: str) -> Json | None:
        seen.append(message["id"])
        return None if message.get("params", {}).get("name") == "b" else message

    assert kept(source, tmp_path / "x.jsonl", change) == [
        data for _, data in CALLS if not data.startswith(b'{"jsonrpc":"2.0","id":2')
    ]
    assert seen == [1, 2, 1], "the response of a dropped request is not passed"
    assert any(isinstance(entry, Note) for entry in Recording(tmp_path / "x.jsonl"))


def test_messages_of_a_batch_are_changed_one_by_one(make_recording: Make, tmp_path: Path) -> None:
    batches: list[Said] = [
        ("client", b'[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]'),
        ("server", b'[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]'),
        ("client", b'[{"jsonrpc":"2.0","method":"b"}]'),
    ]

    def change(message: Json, side: str) -> Json | None:
        return None if message.get("method") == "b" else message

    assert kept(make_recording(batches), tmp_path / "x.jsonl", change) == [
        b'[{"jsonrpc":"2.0","id":1,"method":"a"}]',
        b'[{"jsonrpc":"2.0","id":1,"result":{}}]',
    ]


def test_json_that_is_not_strict_and_other_line_ends_are_kept(make_recording: Make, tmp_path: Path) -> None:
    said: list[Said] = [
        ("client", b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"n":NaN,"why":",\\"why\\":"}}'),
        ("client", b'{"jsonrpc":"2.0","id":2,"method":"a"}\r'),
    ]
    source = make_recording(said)
    kept(source, tmp_path / "x.jsonl", lambda message, side: message)
    assert lines(tmp_path / "x.jsonl") == lines(source)

    kept(source, tmp_path / "y.jsonl", lambda message, side: {**message, "method": "b"})
    first, second = (entry for entry in Recording(tmp_path / "y.jsonl") if isinstance(entry, Frame))
    assert first.data.startswith(b'{"jsonrpc":"2.0","id":1,"method":"b","params":{"n":null,'), "strict JSON"
    assert (second.data, second.eol) == (b'{"jsonrpc":"2.0","id":2,"method":"b"}', "\r\n")


def _fails(message: Json, side: str) -> Json:
    raise KeyError("pin")


def _gives_text(message: Json, side: str) -> Any:
    return "text"


def _gives_a_set(message: Json, side: str) -> Json:
    return {"result": {1, 2}}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (
            _fails,
            "before_record, for tools/call of the client: KeyError: 'pin' (raised in test_before_record.py:",
        ),
        (_gives_text, "returned str (return the message, or None to drop it)"),
        (_gives_a_set, "TypeError: "),
    ],
)
def test_an_error_of_the_function_is_one_line(
    change: BeforeRecord, error: str, make_recording: Make, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as raised:
        write_changed(make_recording(CALLS), tmp_path / "x.jsonl", change)
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)


def saved(change: BeforeRecord | None, make_recording: Make, tmp_path: Path) -> tuple[str, Path]:
    """Save a session as a test that has passed does; return its error and its recording."""
    options = PluginOptions(
        test="test_a", path=tmp_path / "x.jsonl", mode="once", server=("s",), before_record=change
    )
    recording = McpRecording(options, tmp_path / "run")
    make_recording(CALLS, folder=tmp_path / "run" / "played")
    recording.has_passed = True
    return recording.finish(), recording.path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run" / "played").mkdir(parents=True)
    return tmp_path


def test_values_that_the_function_inserts_are_redacted(make_recording: Make, folder: Path) -> None:
    secret = "ghp_" + "aB3" * 12

    def change(message: Json, side: str) -> Json:
        message.setdefault("params", {})["token"] = secret
        return message

    error, path = saved(change, make_recording, folder)
    assert error == ""
    assert path.read_bytes().count(b'"token":"[redacted:') == 4
    assert secret.encode() not in path.read_bytes()
    (played,) = (folder / "run" / "played").iterdir()
    assert b"token" not in played.read_bytes(), "the session of the test is unchanged"


def test_a_function_that_drops_everything_fails_the_test(make_recording: Make, folder: Path) -> None:
    error, path = saved(lambda message, side: None, make_recording, folder)
    assert "before_record dropped every message" in error
    assert not path.exists()
