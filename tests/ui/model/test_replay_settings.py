"""Values that the settings ignore: they are read, and added without a change of other values."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.model.replay_settings import keep_ignored, kept_ignored, kept_patterns, with_patterns

TIME = "/result/**/time"
CLOCK = "tools/call clock /result/content/0/text"


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_patterns_are_kept_in_the_settings_of_the_user(tmp_path: Path) -> None:
    assert kept_patterns() == []
    assert keep_ignored([]) == "nothing to keep: press i on a difference first"
    assert keep_ignored([TIME, TIME]).startswith("kept 1 in ")
    assert keep_ignored([TIME]).endswith("has them already")
    keep_ignored([CLOCK])
    assert kept_patterns() == [TIME, CLOCK]
    assert kept_ignored()[1].subject == "clock"
    path = tmp_path / "config" / "mcpspy" / "mcpspy.toml"
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_settings_of_the_project_come_first(tmp_path: Path) -> None:
    file = tmp_path / "pyproject.toml"
    file.write_text("[tool.mcpspy]\nascii = true\n")
    keep_ignored([TIME])
    assert tomllib.loads(file.read_text())["tool"]["mcpspy"] == {
        "ascii": True,
        "diff": {"ignore_path": [TIME]},
    }


@pytest.mark.parametrize(
    "before",
    [
        "",
        "ascii = true",
        "[diff]\n[lint]\na = 1\n",
        '# x\n[diff]\nignore_path = ["a"] # why\n[keys]\n"a.b" = "c"\n',
    ],
)
def test_all_other_text_stays(before: str) -> None:
    after = with_patterns(before, [TIME, CLOCK], is_project=False)
    assert tomllib.loads(after) == {**tomllib.loads(before), "diff": {"ignore_path": [TIME, CLOCK]}}
    assert all(line in after for line in before.splitlines() if "ignore_path" not in line)


def test_a_list_of_other_values_is_an_error(tmp_path: Path) -> None:
    for text in ("[diff]\nignore_path = 5\n", '[diff]\nignore_path = ["result"]\n'):
        (tmp_path / "mcpspy.toml").write_text(text)
        with pytest.raises(UsageError, match="ignore_path"):
            kept_ignored()


def test_settings_that_cannot_be_changed_alone_are_an_error() -> None:
    with pytest.raises(UsageError, match="by hand"):
        with_patterns("diff = {dates = true}\n", [TIME], is_project=False)
