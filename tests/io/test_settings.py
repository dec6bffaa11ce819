"""Settings are read, and errors in them are reported in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpspy.errors import McpspyError
from mcpspy.io.settings import UnsafeRegex, flag, project_file, table


def test_a_table_is_read_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mcpspy.toml"
    path.write_text('[keys]\n"session.back" = "x"\n', encoding="utf-8")
    assert table("keys", str(path)) == {"session.back": "x"}
    assert table("others", str(path)) == {}


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    assert table("keys", str(tmp_path / "none.toml")) == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"[keys", "at end of document"), (b"keys = 5", r"write \[keys\]"), (b"\xff", "not UTF-8")],
)
def test_the_error_for_an_invalid_file_names_the_file_and_the_reason(
    tmp_path: Path, data: bytes, why: str
) -> None:
    path = tmp_path / "mcpspy.toml"
    path.write_bytes(data)
    with pytest.raises(McpspyError, match=why) as caught:
        table("keys", str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(McpspyError, match=str(tmp_path)):
        table("keys", str(tmp_path))


def test_a_switch_is_true_or_false(tmp_path: Path) -> None:
    path = tmp_path / "mcpspy.toml"
    path.write_text("unsafe_regex = true\n", encoding="utf-8")
    assert flag("unsafe_regex", str(path))
    assert not flag("other", str(path))
    path.write_text("unsafe_regex = 1\n", encoding="utf-8")
    with pytest.raises(
        McpspyError, match=r"unsafe_regex must be true or false \(write unsafe_regex = true\)"
    ):
        flag("unsafe_regex", str(path))


def test_the_settings_allow_what_the_option_does_and_each_pattern_is_warned_about_once(
    tmp_path: Path,
) -> None:
    path, said = tmp_path / "mcpspy.toml", list[str]()
    decision = UnsafeRegex(say=said.append, config=str(path))

    assert not decision("a(?=b)", "look-ahead (?=")
    path.write_text("unsafe_regex = true\n", encoding="utf-8")
    assert decision("a(?=b)", "look-ahead (?=")
    assert decision("a(?=b)", "look-ahead (?=")
    assert UnsafeRegex(is_allowed=True, config=str(tmp_path))("a(?=b)", "look-ahead (?=")
    assert said == ["warning: /a(?=b)/: look-ahead (?= runs on Python's re, which may never end"]


def test_a_project_has_settings_only_with_a_file_of_mcpspy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    assert project_file() is None
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n", encoding="utf-8")
    assert project_file() is None
    (tmp_path / "pyproject.toml").write_text("[tool.mcpspy.lint]\nselect = ['ENV']\n", encoding="utf-8")
    assert project_file() == str(tmp_path / "pyproject.toml")
    assert table("lint", project_file()) == {"select": ["ENV"]}


def test_a_deleted_folder_has_no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    def cwd() -> Path:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "cwd", cwd)
    assert project_file() is None
