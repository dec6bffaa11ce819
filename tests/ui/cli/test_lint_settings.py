"""Settings of a project for `mcpspy lint`: which file is read, servers with their own rules, and errors in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.ui.cli.main import main

Make = Callable[..., Path]


@pytest.fixture
def broken(make_recording: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording with the error ENV101 and the warning LIFE401, in a project below which the test runs."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "inside").mkdir()
    monkeypatch.chdir(tmp_path / "inside")
    return make_recording([("server", b"oops")], name="weather-2")


@pytest.mark.parametrize("file", ["pyproject.toml", "mcpspy.toml"])
@pytest.mark.parametrize(
    ("settings", "options", "code"),
    [
        ("", [], 1),
        ('ignore = ["ENV"]', [], 0),
        ('ignore = ["ENV"]', ["--ignore", "LIFE"], 1),
        ('ignore = ["ENV101"]', ["--select", "ENV"], 0),
        ('select = ["LIFE"]', [], 0),
        ('select = ["LIFE"]', ["--select", "ENV"], 1),
        ('ignore = ["ENV"]\nfail-on = "warning"', [], 1),
        ('ignore = ["ENV"]\nfail-on = "warning"', ["--fail-on", "error"], 0),
        ('[{}.servers."weather*"]\nignore = ["ENV"]', [], 0),
        ('[{}.servers."memory*"]\nignore = ["ENV"]', [], 1),
        ('ignore = ["LIFE"]\n[{}.servers.weather-2]\nfail-on = "info"\nignore = ["ENV"]', [], 0),
        ('[{}.servers.weather-2]\nfail-on = "warning"\nselect = ["LIFE"]', [], 1),
    ],
)  # fmt: skip
def test_the_settings_of_a_project_select_rules(
    broken: Path, *, file: str, settings: str, options: list[str], code: int
) -> None:
    name = "tool.mcpspy.lint" if file == "pyproject.toml" else "lint"
    Path("..", file).write_text(f"[{name}]\n{settings.replace('{}', name)}\n", encoding="utf-8")

    assert main(["lint", str(broken), *options]) == code


def test_the_nearest_file_is_read_and_mcpspy_toml_comes_before_pyproject(
    broken: Path, tmp_path: Path
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.mcpspy.lint]\nignore = ['ENV']\n", encoding="utf-8")
    assert main(["lint", str(broken)]) == 0
    Path("pyproject.toml").write_text("[tool.ruff]\n", encoding="utf-8")
    assert main(["lint", str(broken)]) == 0
    (tmp_path / "mcpspy.toml").write_text("[lint]\n", encoding="utf-8")
    assert main(["lint", str(broken)]) == 1
    assert main(["lint", str(broken), "--config", str(tmp_path / "pyproject.toml")]) == 0
    Path(".git").write_text("gitdir: elsewhere", encoding="utf-8")
    (tmp_path / "mcpspy.toml").write_text("[lint]\nignore = ['X']\n", encoding="utf-8")
    assert main(["lint", str(broken)]) == 1


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ("ignore = ['ENV9']", "lint.ignore: unknown rule code ENV9 (see docs/lint.md"),
        ("select = 'ENV'", 'lint.select: not a list of rule codes (write select = ["ENV"])'),
        ("fail-on = 'grave'", "lint.fail-on: not a severity (use error, warning, info)"),
        ("fail-on = 1", "lint.fail-on: not a severity"),
        ("colour = 1", "lint.colour: unknown setting (use select, ignore, fail-on, servers)"),
        ("servers = 1", "lint.servers: not a table"),
        ("servers = {a = 1}", "lint.servers.a: not a table"),
        ("servers.a.ignore = ['X']", "lint.servers.a.ignore: unknown rule code X"),
    ],
)
def test_an_error_in_the_settings_is_one_line(
    broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str, problem: str
) -> None:
    file = tmp_path / "mcpspy.toml"
    file.write_text(f"[lint]\n{settings}\n", encoding="utf-8")

    assert main(["lint", str(broken)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"mcpspy: {file}: {problem}")
    assert printed.count("\n") == 1


def test_pyproject_with_a_value_in_place_of_the_table_is_refused(
    broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool]\nmcpspy = 1\n", encoding="utf-8")

    assert main(["lint", str(broken)]) == 2
    assert "pyproject.toml: mcpspy must be a table" in capsys.readouterr().err
