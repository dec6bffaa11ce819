"""The command line with which a host starts mcpspy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.core.hostconfig import command_line as hostconfig_command_line
from mcpspy.io.hosts.configuration import command_line, is_temporary, uvx


def test_a_command_is_started_by_its_absolute_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mcpspy").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [os.path.join("bin", "mcpspy"), "wrap"])

    assert command_line() == [str(tmp_path / "bin" / "mcpspy")]


def test_a_link_to_it_is_not_followed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mcpspy").symlink_to(tmp_path / "venv-3.11" / "mcpspy")
    (tmp_path / "venv-3.11").mkdir()
    (tmp_path / "venv-3.11" / "mcpspy").touch()
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "mcpspy")])

    assert command_line() == [str(tmp_path / "mcpspy")]


def test_windows_leaves_the_ending_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mcpspy.exe").touch()
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "mcpspy")])

    assert command_line() == [str(tmp_path / "mcpspy.exe")]


@pytest.mark.parametrize("started", ["/x/mcpspy/__main__.py", "-c", "/x/pytest", "/nowhere/mcpspy"])
def test_a_module_is_started_by_this_python(monkeypatch: pytest.MonkeyPatch, started: str) -> None:
    monkeypatch.setattr(sys, "argv", [started])

    assert command_line() == [sys.executable, "-m", "mcpspy"]


@pytest.mark.parametrize(
    ("executable", "more"),
    [("mcpspy", []), ("mcpspy-0.1.0-linux-x86_64", []), ("renamed", ["-m", "mcpspy"])],
)
def test_the_executable_of_a_release_starts_itself(
    monkeypatch: pytest.MonkeyPatch, executable: str, more: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["/tmp/_MEI1/mcpspy/__main__.py"])
    monkeypatch.setattr(sys, "executable", f"/opt/{executable}")
    monkeypatch.setattr(sys, "frozen", True, raising=False)

    assert command_line() == [f"/opt/{executable}", *more]
    assert hostconfig_command_line.read([*command_line(), "run", "--", "x"]) is not None


def test_the_resolved_program_starts_mcpspy_and_is_recognised_again(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "mcpspy"]
    done = subprocess.run(
        [*program, *hostconfig_command_line.run("n", has_args=False), sys.executable, "-c", "print(7)"],
        capture_output=True,
        timeout=30,
        cwd=tmp_path,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )

    assert (done.stdout, done.returncode) == (b"7\n", 0)
    for started in (program, uvx()):
        assert hostconfig_command_line.read([*started, "run", "--", "x"]) is not None


def test_a_program_in_a_cache_is_not_used() -> None:
    assert is_temporary(["/home/ada/.cache/uv/archive-v0/abc/bin/mcpspy"])
    assert is_temporary([r"C:\Users\Ada\AppData\Local\uv\cache\archive-v0\abc\mcpspy.exe"])
    assert not is_temporary(["/home/ada/.local/bin/mcpspy"])
