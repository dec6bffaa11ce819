"""Entries in configurations of hosts that end with the process that made them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.hosts.temporary import TemporaryEntry, remove_left
from mcpspy.io.settings import state_folder

ARGV = ["/opt/mcpspy", "bridge", "--upstream", "http://127.0.0.1:8809/mcp"]

TEXT = '{\n  "mcpServers": {\n    "a": {"command": "x"} // kept\n  }\n}\n'


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "MCPSPY_DIR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def config(home: Path) -> Path:
    path = home / "mcp.json"
    path.write_text(TEXT)
    return path


def notes() -> list[str]:
    folder = state_folder("entries")
    return os.listdir(folder) if os.path.isdir(folder) else []


def killed(config: Path) -> None:
    """Enter a server in a process that is then killed."""
    code = (
        "import os, signal, sys; from mcpspy.io.hosts.temporary import TemporaryEntry;"
        "TemporaryEntry(sys.argv[1], 'mock', sys.argv[2:]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(config), *ARGV], timeout=30)
    assert done.returncode == -signal.SIGKILL
    assert "mock" in config.read_text()


def test_an_entry_is_removed_and_the_file_is_what_it_was(config: Path) -> None:
    entry = TemporaryEntry(str(config), "mock", ARGV)
    assert '"mock"' in config.read_text()
    entry.remove()
    assert (config.read_text(), notes()) == (TEXT, [])


def test_a_configuration_without_servers_is_what_it_was(home: Path) -> None:
    path = home / "mcp.json"
    path.write_text("{}\n")
    TemporaryEntry(str(path), "mock", ARGV).remove()
    assert path.read_text() == "{}\n"


def test_a_server_of_that_name_keeps_it(config: Path) -> None:
    entry = TemporaryEntry(str(config), "a", ARGV)
    assert entry.server == "a-2"
    entry.remove()
    assert config.read_text() == TEXT


def test_other_changes_of_the_file_stay(config: Path) -> None:
    entry = TemporaryEntry(str(config), "mock", ARGV)
    config.write_text(config.read_text().replace('"x"', '"y"'))
    entry.remove()
    assert config.read_text() == TEXT.replace('"x"', '"y"')


def test_an_entry_that_someone_else_changed_stays(config: Path) -> None:
    entry = TemporaryEntry(str(config), "mock", ARGV)
    changed = config.read_text().replace("8809", "8810")
    config.write_text(changed)
    entry.remove()
    assert (config.read_text(), notes()) == (changed, [])


def test_an_entry_of_a_killed_process_is_removed_later(config: Path) -> None:
    killed(config)
    (line,) = remove_left()
    assert line == f"{config}: removed mock, which an mcpspy that was killed had entered"
    assert (config.read_text(), notes()) == (TEXT, [])
    assert list(remove_left()) == []


def test_an_entry_of_a_running_process_stays(config: Path) -> None:
    entry = TemporaryEntry(str(config), "mock", ARGV)
    assert list(remove_left()) == []
    assert "mock" in config.read_text()
    entry.remove()


def test_an_entry_that_cannot_be_removed_is_reported_and_tried_again(config: Path) -> None:
    killed(config)
    text = config.read_text()
    config.write_text(text + "}")
    (line,) = remove_left()
    assert line.startswith("cannot remove mock, which an mcpspy that was killed had entered: ")
    config.write_text(text)
    assert len(list(remove_left())) == 1
    assert config.read_text() == TEXT


def test_an_incomplete_note_is_discarded(config: Path) -> None:
    folder = Path(state_folder("entries"))
    folder.mkdir(parents=True)
    (folder / "x.json").write_bytes(b'{"host"')
    assert (list(remove_left()), notes()) == ([], [])


def test_a_deleted_configuration_needs_nothing(config: Path) -> None:
    entry = TemporaryEntry(str(config), "mock", ARGV)
    config.unlink()
    entry.remove()
    assert notes() == []


def test_a_configuration_that_cannot_be_read_gets_no_entry(config: Path) -> None:
    config.write_text("{")
    with pytest.raises(UsageError):
        TemporaryEntry(str(config), "mock", ARGV)
    assert notes() == []


def test_a_read_only_configuration_gets_no_entry(config: Path) -> None:
    config.chmod(0o400)
    with pytest.raises(CannotStart, match="read-only"):
        TemporaryEntry(str(config), "mock", ARGV)
    assert (config.read_text(), notes()) == (TEXT, [])


def test_the_note_has_no_text_of_the_configuration(config: Path) -> None:
    entry = TemporaryEntry(str(config), "mock", ARGV)
    (name,) = notes()
    note = Path(state_folder("entries"), name)
    assert "kept" not in note.read_text()
    assert json.loads(note.read_text())["argv"] == ARGV
    assert note.stat().st_mode & 0o77 == 0
    entry.remove()
