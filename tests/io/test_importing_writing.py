"""An imported session on disk: new, private, and complete or absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcpspy.core.importers.base import ImportedSession, RecordingLines
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.importing import BATCH, check, header, write, write_next_to
from mcpspy.io.recording.reader import Recording


def session(count: int = 1, **fields: object) -> ImportedSession:
    lines = RecordingLines()
    for number in range(count):
        lines.message(number, "client", b'{"id":%d,"padding":"%b"}' % (number, b"x" * 1000))
    started, made = lines.done()
    given = {
        "format": "mcp-rec",
        "key": "",
        "name": "",
        "transport": "stdio",
        "started": started,
        "lines": made,
        "messages": lines.messages,
        "lacks": ["a"],
        "changed": [],
    }
    return ImportedSession(**{**given, **fields})  # type: ignore[arg-type] # It is of many types.


def test_a_header_lists_known_and_missing_data() -> None:
    assert header(session(started=1795248783.7456), "file") == {
        "started": "2026-11-21T08:13:03.745Z",
        "transport": "stdio",
        "name": "file",
        "imported": {"from": "mcp-rec", "lacks": ["a"], "changed": []},
    }
    assert header(session(command=["npx", "server-x"], started=None), "file")["name"] == "server-x"
    assert "started" not in header(session(started=None), "file")
    assert header(session(name="peer", upstream="http://h"), "file")["name"] == "peer"
    with pytest.raises(UsageError, match="invalid start time"):
        header(session(started=1e300), "file")


def test_a_session_of_several_batches_is_written_whole(tmp_path: Path) -> None:
    many = session(2 * BATCH // 1000)
    path = write(header(many, "x"), many.lines, str(tmp_path), None, None)
    assert path.parent == tmp_path
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_bytes().partition(b"\n")[2] == b"".join(many.lines)
    assert Recording(path).header.name == "x"


def test_a_file_that_is_there_is_refused_even_one_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UsageError, match="file exists"):
        check(str(tmp_path / "link"))
    check(str(tmp_path))
    check(None)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    one = session()
    with pytest.raises(CannotStart, match=r"cannot write .*: File exists"):
        write(header(one, "x"), one.lines, None, str(tmp_path / "file" / "x.jsonl"), None)


def test_an_interrupted_one_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many, real = session(2 * BATCH // 1000), os.write
    written: list[int] = []

    def interrupted(fd: int, data: bytes) -> int:
        written.append(len(data))
        if len(written) == 3:
            raise KeyboardInterrupt
        return real(fd, data)

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(header(many, "x"), many.lines, str(tmp_path), None, None)
    assert not list(tmp_path.iterdir())


def test_a_recording_that_cannot_get_its_name_is_one_line(tmp_path: Path) -> None:
    one = session()
    (tmp_path / ".x.jsonl.tmp").mkdir()
    with pytest.raises(CannotStart, match=r"x\.jsonl: Is a directory \(this session was not imported\)"):
        write_next_to(tmp_path / "x.jsonl", header(one, "x"), one.lines, None, 1)
