"""The folder of control sockets, to which no other user can write."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("owners and modes of POSIX", allow_module_level=True)

from mcpspy.errors import CannotStart
from mcpspy.io.control import socket

if TYPE_CHECKING:
    from pathlib import Path


def test_a_socket_is_created_and_found_only_in_the_folder_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MCPSPY_RUNTIME", str(tmp_path))
    assert socket.socket_folders()[0] == str(tmp_path)
    assert socket.socket_folders() == [str(tmp_path)]


def test_a_variable_that_a_host_removed_does_not_hide_its_sessions(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("MCPSPY_RUNTIME", raising=False)
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    without = socket.socket_folders()[0]
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert socket.socket_folders()[0] == str(tmp_path / "mcpspy")
    assert without in socket.socket_folders()
    assert socket.socket_folders()[-2:] == [f"/var/tmp/mcpspy-{os.getuid()}", f"/tmp/mcpspy-{os.getuid()}"]


@pytest.mark.parametrize("value", ["relative", "/no/such/folder", "/"])
def test_a_runtime_folder_that_is_not_this_users_is_none(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.delenv("MCPSPY_RUNTIME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    assert socket.socket_folders()[-1] == "/tmp/mcpspy-4711"
    assert not any(
        folder.startswith((value, "/mcpspy")) for folder in socket.socket_folders()[:-1] if value != "/"
    )


def test_a_folder_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    assert socket.ensure_private(str(folder)) == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert socket.ensure_private(str(folder)) == str(folder)


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises(CannotStart, match=r"accessible to other users \(run chmod 700"):
        socket.ensure_private(str(tmp_path))


def test_a_link_is_refused_even_to_a_folder_of_the_same_user(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(CannotStart, match="a link or a file"):
        socket.ensure_private(str(tmp_path / "link"))


def test_a_folder_of_someone_else_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    with pytest.raises(CannotStart, match="owned by another user"):
        socket.ensure_private(str(tmp_path))


def test_the_error_for_a_folder_that_cannot_be_created_has_the_reason(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotStart, match="set MCPSPY_RUNTIME to another folder"):
        socket.ensure_private(str(tmp_path / "file" / "below"))
