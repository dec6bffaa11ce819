"""Files of other tools, opened read-only."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io import importing
from mcpspy.io.importing import files_to_import, read

FILES = Path(__file__).parents[1] / "core" / "importers" / "files"


def test_importing_changes_no_file_and_creates_none_beside_it(tmp_path: Path) -> None:
    for name in ("mcphawk.db", "mcp-rec.jsonl"):
        copy = tmp_path / name
        shutil.copy(FILES / name, copy)
        copy.chmod(0o400)
        found, sessions = read(str(copy), None)
        assert (found.name, bool(sessions)) == (name.partition(".")[0], True)
        assert copy.read_bytes() == (FILES / name).read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["mcp-rec.jsonl", "mcphawk.db"]


def test_a_database_that_is_written_to_is_read_as_far_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "mcphawk.db"
    shutil.copy(FILES / "mcphawk.db", path)
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute('UPDATE messages SET body = \'{"id":"from the log"}\' WHERE id = 1')
        writer.commit()
        assert (tmp_path / "mcphawk.db-wal").stat().st_size
        _, (first, _) = read(str(path), None)
    assert b"from the log" in first.lines[0]


def test_a_file_name_with_url_characters_is_read_literally(tmp_path: Path) -> None:
    path = tmp_path / "a?mode=rw#100%.db"
    shutil.copy(FILES / "mcphawk.db", path)
    assert len(read(str(path), None)[1]) == 2


def test_the_database_of_another_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (a)")
        other.execute("PRAGMA user_version = 1")
    with pytest.raises(UsageError, match="mcphawk database: no such table: sessions"):
        read(str(path), None)


def test_content_of_a_file_is_sanitized_in_errors(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(b'{"\x1b[31mred":1}')
    with pytest.raises(UsageError) as refused:
        read(str(path), None)
    assert "\x1b" not in str(refused.value)
    assert "[31mred" in str(refused.value)


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "round"
    path.symlink_to(path)
    with pytest.raises(CannotStart, match="Too many levels of symbolic links"):
        read(str(path), None)


def test_a_file_that_does_not_fit_into_memory_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    path.touch()
    os.truncate(path, 1 << 40)
    program = ("import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)); "
               "import sys; from mcpspy.ui.cli.main import main; sys.exit(main(sys.argv[1:]))")  # fmt: skip
    command = [sys.executable, "-c", program, "import", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (3, f"mcpspy: {path}: does not fit into memory\n")


def test_a_folder_that_cannot_be_listed_is_reported(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="gone: No such file or directory"):
        files_to_import(tmp_path / "gone")


def test_devices_and_pipes_are_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match=r"pipe: a named pipe") as error:
        read(str(pipe), None)
    assert error.value.hint == f"mcpspy import - < {pipe} reads it"
    with pytest.raises(UsageError, match=r"^/dev/zero: not a regular file"):
        read("/dev/zero", None)


def test_the_size_of_a_file_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    size = (FILES / "mcp-rec.jsonl").stat().st_size
    monkeypatch.setattr(importing, "MAX_SIZE", size)
    assert read(str(FILES / "mcp-rec.jsonl"), None)
    monkeypatch.setattr(importing, "MAX_SIZE", size - 1)
    with pytest.raises(UsageError, match=r"mcp-rec\.jsonl: larger than"):
        read(str(FILES / "mcp-rec.jsonl"), None)
    with pytest.raises(UsageError, match=r"mcphawk\.db: larger than"):
        read(str(FILES / "mcphawk.db"), None)
