"""The folders of recordings and settings, and parts of file names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import get_win_folder_from_env_vars

from mcpspy.io.settings import config_file, sessions_folder, slug


@pytest.fixture(autouse=True)
def _nowhere_in_particular(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MCPSPY_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_the_default_folder_is_platformdirs_answer_on_this_system() -> None:
    assert Path(sessions_folder()) == Path(platformdirs.user_data_dir("mcpspy", appauthor=False), "sessions")


def test_the_default_folder_is_platformdirs_answer_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert Path(sessions_folder()) == Path(Unix("mcpspy", False).user_data_dir, "sessions")
    monkeypatch.setenv("XDG_DATA_HOME", os.path.abspath("elsewhere"))
    assert Path(sessions_folder()) == Path(Unix("mcpspy", False).user_data_dir, "sessions")
    assert "elsewhere" in sessions_folder()


def test_the_default_folder_is_platformdirs_answer_on_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert Path(sessions_folder()) == Path(MacOS("mcpspy", False).user_data_dir, "sessions")
    assert "Application Support" in sessions_folder()


def test_the_default_folder_is_platformdirs_answer_on_windows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    local = get_win_folder_from_env_vars("CSIDL_LOCAL_APPDATA")
    assert Path(sessions_folder()) == Path(local, "mcpspy", "sessions")
    monkeypatch.delenv("LOCALAPPDATA")
    assert sessions_folder().startswith(os.path.expanduser(r"~\AppData\Local"))


@pytest.mark.parametrize("system", ["linux", "darwin", "win32"])
def test_settings_are_where_platformdirs_puts_them(
    system: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    folders = {
        "linux": lambda: Unix("mcpspy", False).user_config_dir,
        "darwin": lambda: MacOS("mcpspy", False).user_config_dir,
        "win32": lambda: str(Path(get_win_folder_from_env_vars("CSIDL_LOCAL_APPDATA"), "mcpspy")),
    }
    assert Path(config_file()) == Path(folders[system](), "mcpspy.toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert Path(config_file()) == Path(folders[system](), "mcpspy.toml")


@pytest.mark.parametrize("relative", ["", "  ", "share", "./share"])
def test_a_relative_xdg_folder_counts_as_unset(monkeypatch: pytest.MonkeyPatch, relative: str) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    unset = sessions_folder()
    monkeypatch.setenv("XDG_DATA_HOME", relative)
    assert sessions_folder() == unset


def test_an_option_overrides_the_environment_and_that_overrides_the_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path / "environment"))
    assert sessions_folder() == str(tmp_path / "environment")
    assert sessions_folder(str(tmp_path / "chosen")) == str(tmp_path / "chosen")
    assert sessions_folder("~/x") == os.path.expanduser("~/x")
    assert sessions_folder("x") == os.path.abspath("x")
    monkeypatch.setenv("MCPSPY_DIR", "")
    assert sessions_folder().endswith(os.path.join("mcpspy", "sessions"))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("server-memory", "server-memory"),
        ("my server", "my-server"),
        ("../../etc/passwd", "etc-passwd"),
        ("\u00fcber server", "ber-server"),
        ("", "session"),
        ("...", "session"),
        ("a" * 100, "a" * 40),
        ("a\x00b\nc", "a-b-c"),
    ],
)
def test_a_name_becomes_a_harmless_part_of_a_file_name(name: str, part: str) -> None:
    assert slug(name) == part
