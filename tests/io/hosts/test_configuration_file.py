"""A configuration file on disk."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.hosts import configuration
from mcpspy.io.hosts.configuration import ConfigFile

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")


@pytest.fixture(autouse=True)
def sessions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    monkeypatch.setenv("MCPSPY_DIR", str(folder))
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "host" / "mcp.json"
    made.parent.mkdir()
    made.write_bytes("\ufeff{\r\n}".encode())
    return made


def test_a_file_is_replaced_and_what_it_held_is_kept(path: Path, sessions: Path) -> None:
    file = ConfigFile(path)

    kept = file.replace(file.text + "ü\r\n")

    assert path.read_bytes() == "\ufeff{\r\n}ü\r\n".encode()
    assert kept.read_bytes() == file.data
    assert kept.parent == sessions / "backups"
    assert kept.name.endswith("-host-mcp.json")
    assert [*path.parent.iterdir()] == [path], "no temporary file is left"


def test_a_backup_is_named_after_the_folder_of_its_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)

    assert ConfigFile(Path("mcp.json")).replace("{}").name.endswith("-host-mcp.json")


def test_two_backups_of_a_second_are_two(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda _: "now")
    kept = [ConfigFile(path).replace(text) for text in ("a", "b", "c")]

    assert [found.name for found in kept] == [
        "now-host-mcp.json",
        "now-host-mcp.json-2",
        "now-host-mcp.json-3",
    ]
    assert [found.read_text(encoding="utf-8") for found in kept[1:]] == ["a", "b"]


@POSIX
def test_permissions_stay_and_a_backup_is_its_owners(path: Path, sessions: Path) -> None:
    path.chmod(0o640)

    kept = ConfigFile(path).replace("{}")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [stat.S_IMODE(p.stat().st_mode) for p in (kept, kept.parent, sessions)] == [0o600, 0o700, 0o700]


@POSIX
@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root changes owners")
def test_a_file_of_another_user_keeps_its_owner(path: Path) -> None:
    os.chown(path, 1234, 1235)
    path.chmod(0o4600)

    ConfigFile(path).replace("{}")

    found = path.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 1235, 0o4600)


@POSIX
def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(os.path.join("host", "mcp.json"))

    ConfigFile(link).replace("{}")

    assert link.is_symlink()
    assert path.read_text(encoding="utf-8") == "{}"


def test_a_file_that_changed_meanwhile_is_not_replaced(path: Path) -> None:
    file = ConfigFile(path)
    path.write_text("theirs", encoding="utf-8")

    with pytest.raises(CannotStart, match="another program has changed it"):
        file.replace("ours")

    assert path.read_text(encoding="utf-8") == "theirs"
    assert [*path.parent.iterdir()] == [path]


def test_a_file_that_goes_meanwhile_does_not_come_back(path: Path) -> None:
    file = ConfigFile(path)
    path.unlink()

    with pytest.raises(CannotStart):
        file.replace("ours")

    assert [*path.parent.iterdir()] == []


class Refusing:
    """An `os` module in which one call fails, as it does for users without root permissions."""

    def __init__(self, **refused: object) -> None:
        self.__dict__.update(refused)

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_read_only_file_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ConfigFile(path)
    monkeypatch.setattr(configuration, "os", Refusing(access=lambda *_: False))

    with pytest.raises(
        CannotStart, match=r"read-only; nothing was changed \(use --force to replace it anyway\)"
    ):
        file.replace("ours")

    assert path.read_bytes() == file.data


@POSIX
def test_a_file_without_permission_to_write_is_replaced_by_force_only(path: Path) -> None:
    path.chmod(0o444)

    with pytest.raises(CannotStart, match="read-only"):
        ConfigFile(path).replace("ours")
    ConfigFile(path).replace("ours", is_forced=True)

    assert path.read_text(encoding="utf-8") == "ours"
    assert stat.S_IMODE(path.stat().st_mode) == 0o444


def test_in_a_read_only_folder_nothing_is_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ConfigFile(path)
    monkeypatch.setattr(tempfile, "mkstemp", refuse)

    with pytest.raises(CannotStart, match=r"host: Permission denied, so mcp\.json could not be replaced"):
        file.replace("ours")

    assert path.read_bytes() == file.data


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failed_write_leaves_nothing_behind(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ConfigFile(path)
    monkeypatch.setattr(file, "_back_up", lambda: path)
    monkeypatch.setattr(configuration, "os", Refusing(**{call: refuse}))

    with pytest.raises(CannotStart, match="Permission denied"):
        file.replace("ours")

    assert path.read_bytes() == file.data
    assert [*path.parent.iterdir()] == [path]


def test_without_a_backup_nothing_is_replaced(path: Path, sessions: Path) -> None:
    sessions.write_text("a file where a folder should be", encoding="utf-8")

    with pytest.raises(CannotStart, match="no backup could be written"):
        ConfigFile(path).replace("ours")

    assert path.read_bytes() == "\ufeff{\r\n}".encode()


def test_an_unreadable_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(UsageError, match="no such file"):
        ConfigFile(tmp_path / "none.json")
    with pytest.raises(UsageError, match="a folder, not a configuration"):
        ConfigFile(tmp_path)
    with pytest.raises(UsageError, match="not UTF-8, at byte 7"):
        ConfigFile(tmp_path / "latin.json")
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(CannotStart, match="Permission denied"):
        ConfigFile(tmp_path / "latin.json")
