"""Authorization of connections to the control socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("Unix-domain sockets, and other users", allow_module_level=True)

from mcpspy.errors import CannotStart
from mcpspy.io.control import socket as control_socket
from mcpspy.io.control.socket import ControlSocket, connect

if TYPE_CHECKING:
    from pathlib import Path

OTHER_USER = 65534

CONNECT = """
import os, socket, sys
os.setgid({user}); os.setuid({user})
viewer = socket.socket(socket.AF_UNIX)
viewer.settimeout(30)
try:
    viewer.connect({path!r})
    print(viewer.recv(100))
except PermissionError:
    print("refused")
"""


@pytest.fixture(params=[True, False], ids=["unix", "loopback"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both kinds of sockets: the second is that of Windows."""
    monkeypatch.setattr(control_socket, "HAS_UNIX", request.param)
    return bool(request.param)


def connected_as(user: int, path: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", CONNECT.format(user=user, path=path)],
        capture_output=True,
        check=True,
        timeout=20,
    )
    return ended.stdout.decode().strip()


def test_a_connection_of_the_same_user_is_accepted(runtime: Path, way: bool) -> None:
    opened = ControlSocket.open("0badcafe")
    with connect(opened.path, 5) as connection:
        inside = opened.accept()
        assert inside is not None
        with inside:
            inside.setblocking(True)
            connection.sendall(b"x")
            assert inside.recv(200) == (b"x" if way else opened.token + b"\nx")
            assert not connection.get_inheritable()
    opened.close()
    assert list(runtime.iterdir()) == []


def test_only_its_owner_can_open_it(runtime: Path, way: bool) -> None:
    temporary = os.umask(0)
    try:
        opened = ControlSocket.open("0badcafe")
    finally:
        os.umask(temporary)
    (file,) = runtime.iterdir()
    assert file.name == ("0badcafe.sock" if way else "0badcafe.port")
    assert file.stat().st_mode & 0o777 == 0o600
    assert runtime.stat().st_mode & 0o777 == 0o700
    if not way:
        assert opened.listening.getsockname()[0] == "127.0.0.1"
    opened.close()


def test_another_user_is_not_let_in(runtime: Path) -> None:
    if os.getuid() != 0:
        # Only root can act as another user; otherwise, only the system's response can be replaced.
        assert control_socket.is_same_user(socket.socketpair()[0])
        return
    opened = ControlSocket.open("0badcafe")
    assert connected_as(OTHER_USER, opened.path) == "refused"
    # Even if the modes would admit everyone, the peer's user as reported by the system decides.
    runtime.chmod(0o755)
    (runtime / "0badcafe.sock").chmod(0o666)
    asking = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", CONNECT.format(user=OTHER_USER, path=opened.path)],
        stdout=subprocess.PIPE,
    )
    opened.listening.setblocking(True)
    opened.listening.settimeout(20)
    assert opened.accept() is None
    out, _ = asking.communicate(timeout=20)
    assert out.decode().strip() == "b''"
    opened.close()


def test_the_client_that_finds_the_socket_of_a_dead_session_removes_it(runtime: Path, way: bool) -> None:
    opened = ControlSocket.open("0badcafe")
    opened.listening.close()
    with pytest.raises(FileNotFoundError):
        connect(opened.path, 5)
    assert list(runtime.iterdir()) == []


def test_a_socket_in_a_folder_of_others_is_not_trusted(runtime: Path) -> None:
    opened = ControlSocket.open("0badcafe")
    runtime.chmod(0o777)
    with pytest.raises(CannotStart, match="accessible to other users"):
        connect(opened.path, 5)
    runtime.chmod(0o700)
    opened.close()


def test_the_error_for_a_socket_that_cannot_be_created_has_the_reason(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCPSPY_RUNTIME", str(runtime / ("x" * 120)))
    with pytest.raises(CannotStart, match="too long"):
        ControlSocket.open("0badcafe")
    assert list((runtime / ("x" * 120)).iterdir()) == []


def test_a_file_that_leads_nowhere_is_an_error_in_a_line(runtime: Path) -> None:
    (runtime / "0badcafe.port").write_text("what\n", encoding="ascii")
    with pytest.raises(CannotStart, match="cannot connect"):
        connect(str(runtime / "0badcafe.port"), 5)
