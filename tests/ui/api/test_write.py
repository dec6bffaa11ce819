"""Recordings written from Python: what is read back is what was written, and mistakes are named."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcpspy

RECORDINGS = sorted((Path(__file__).parents[3] / "recordings").glob("*.jsonl"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_messages_of_a_real_session_are_copied_with_their_bytes_times_and_pairs(
    path: Path, tmp_path: Path
) -> None:
    read = mcpspy.read(path)
    copy = mcpspy.Recording.write(tmp_path / "copy.jsonl", read.messages, name="copy")

    def facts(session: mcpspy.Session) -> list[Any]:
        return [(each.side, each.data, each.frame) for each in session.messages]

    assert facts(copy) == facts(read)
    assert (copy.name, copy.revision, copy.client) == ("copy", read.revision, read.client)
    answered = [
        (each.method, each.latency, each.result) for each in read.exchanges if each.latency is not None
    ]
    assert [
        (each.method, each.latency, each.result) for each in copy.exchanges if each.latency is not None
    ] == answered


SIDES = st.sampled_from(["client", "server"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=10,
)


@given(
    st.lists(
        st.tuples(
            SIDES, st.dictionaries(st.text(), JSON) | st.binary().filter(lambda data: b"\r" not in data)
        )
    )
)
def test_messages_are_read_back_as_they_were_written(messages: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        written = mcpspy.Recording.write(Path(folder) / "s.jsonl", messages, redact=False)
        read = [
            (each.side, each.data if isinstance(m, bytes) else each.json)
            for each, (_, m) in zip(written.messages, messages, strict=True)
        ]
        assert read == [(side, m.removesuffix(b"\n") if isinstance(m, bytes) else m) for side, m in messages]


def test_a_secret_is_redacted_unless_the_caller_refuses(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "a1B2c3D4e5" * 9
    message = (
        "client",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "a", "arguments": {"t": secret}},
        },
    )

    for redact in (True, False):
        path = tmp_path / f"{redact}.jsonl"
        mcpspy.Recording.write(path, [message], redact=redact)
        assert (secret in path.read_text(encoding="utf-8")) == (not redact)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (("host", {}), "message 2: sender 'host' (use 'client' or 'server')"),
        (("client",), "message 2: not a message (use (sender, message) or (sender, message, seconds))"),
        (("client", {}, -1.0), "message 2: -1.0 is not a time (use seconds since the start)"),
        (
            ("client", {"a": object}),
            "message 2: not JSON: Type is not JSON serializable: type (use objects, or the text of the message)",
        ),
    ],
)
def test_an_invalid_message_is_named_and_leaves_no_file(message: Any, error: str, tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    with pytest.raises(mcpspy.UsageError) as raised:
        mcpspy.Recording.write(path, [("client", "{}"), message])
    assert str(raised.value) == error
    assert not path.exists()


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text("mine", encoding="utf-8")
    for target, error in ((path, "file exists"), (tmp_path, "a folder")):
        with pytest.raises(mcpspy.UsageError, match=error):
            mcpspy.Recording.write(target, [])
    assert path.read_text(encoding="utf-8") == "mine"
    with pytest.raises(mcpspy.CannotStart, match="cannot write"):
        mcpspy.Recording.write(path / "s.jsonl", [])
