"""Settings of a project for lint, in all that lints; and files of user rules, with their errors and their self-test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.core.recording.decode import Header
from mcpspy.errors import UsageError
from mcpspy.ui.cli.main import main
from mcpspy.ui.model.session_model import SessionModel
from mcpspy.ui.pytest_plugin import assert_lint_clean
from mcpspy.ui.tui.session.background import LintPass
from tests.ui.tui.panels.panels import recorded

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
        ("colour = 1", "lint.colour: unknown setting (use select, ignore, fail-on, hosts, servers)"),
        ("hosts = ['emacs']", "lint.hosts: not a list of known hosts"),
        ("hosts = 1", "lint.hosts: not a list of known hosts"),
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


SETTINGS = "[lint]\nignore = ['LIFE']\nselect = ['ACME', 'ENV', 'LIFE']\n[lint.servers.'memory*']\nignore = ['ENV']\n"


def test_show_obeys_the_settings(
    broken: Path, make_recording: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["show", str(broken), "--lint"])
    assert "ENV101" in capsys.readouterr().out
    (tmp_path / "mcpspy.toml").write_text(SETTINGS, encoding="utf-8")
    main(["show", str(broken), "--lint"])
    assert "ENV101" in capsys.readouterr().out
    main(["show", str(make_recording([("server", b"oops")], name="memory")), "--lint"])
    assert "ENV101" not in capsys.readouterr().out
    (tmp_path / "mcpspy.toml").write_text("[lint]\nignore = ['ENV9']\n", encoding="utf-8")
    assert main(["show", str(broken), "--lint"]) == 2
    assert "lint.ignore: unknown rule code ENV9" in capsys.readouterr().err


def test_the_assertion_of_pytest_obeys_the_settings_unless_an_argument_replaces_them(
    broken: Path, tmp_path: Path
) -> None:
    (tmp_path / "mcpspy.toml").write_text("[lint]\nignore = ['ENV']\n", encoding="utf-8")
    assert_lint_clean(broken)
    with pytest.raises(AssertionError, match="ENV101"):
        assert_lint_clean(broken, ignore=["LIFE"])
    (tmp_path / "mcpspy.toml").write_text("[lint]\nselect = ['LIFE']\nfail-on = 'info'\n", encoding="utf-8")
    assert_lint_clean(broken, fail_on="error")


@pytest.mark.parametrize(("name", "count"), [("weather", 1), ("memory", 0)])
def test_the_terminal_ui_obeys_the_settings(
    make_recording: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mcpspy.toml").write_text(SETTINGS, encoding="utf-8")
    log = recorded(make_recording([("server", b"oops")], name=name).read_bytes()).log
    lint_pass = LintPass(log, lambda _: (0, log.header))

    lint_pass.prepare()
    lint_pass.advance(60.0)
    assert log.findings.count == count


def test_the_terminal_ui_uses_all_rules_if_the_settings_are_wrong(broken: Path, tmp_path: Path) -> None:
    (tmp_path / "mcpspy.toml").write_text("[lint]\nignore = 1\n", encoding="utf-8")
    log = SessionModel(
        Header(mcpspy=1, id="a", started="2026-11-21T00:00:00.000Z", transport="stdio"), lambda *_: b""
    )

    with pytest.raises(UsageError, match="not a list of rule codes"):
        LintPass(log, lambda _: (0, log.header)).prepare()


RULES_FILE = '''
from mcpspy.analysis.lint import EventKind, LintEvent, LintRule, Report, RuleGroup

RULES: list[LintRule] = []
rule = RuleGroup(RULES, page="https://example.com/rules")

@rule.warning(
    "ACME101",
    "message in capital letters",
    on=EventKind.MALFORMED,
    valid="@ bare\\n<< hello",
    invalid="@ bare\\n<< HELLO",
)
def loud(event: LintEvent):
    """Users complain."""
    if event.data.isupper():
        yield Report("too loud")

@rule.info("ACME102", "session", on=EventKind.SESSION_END, valid="> {\\"id\\":2,\\"method\\":\\"ping\\"}", invalid="@ bare\\n* exit {}")
def ended(event):
    """It ended."""
    yield Report("the end", "")
'''


@pytest.fixture
def rules_file(tmp_path: Path) -> Path:
    path = tmp_path / "acme.py"
    path.write_text(RULES_FILE, encoding="utf-8")
    return path


def test_the_rules_of_a_file_are_run_with_all_others(
    make_recording: Make, rules_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, own = str(make_recording([("server", b"OOPS")])), ["--rules-file", str(rules_file)]

    assert main(["lint", path, *own, "--fail-on", "warning", "--select", "ACME,ENV101", "--hints"]) == 1
    printed = capsys.readouterr().out
    assert [code in printed for code in ("ENV101", "ACME101 warning: too loud", "ACME102 info: the end")] == [
        True
    ] * 3
    assert "Users complain." in printed
    assert main(["lint", path, *own, "--format", "sarif"]) == 1
    assert '"id": "ACME101"' in capsys.readouterr().out
    assert main(["lint", "--explain", "ACME101", *own]) == 0
    assert "https://example.com/rules" in capsys.readouterr().out
    assert main(["lint", path, "--select", "ACME"]) == 2


def test_the_self_test_runs_the_examples(rules_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--self-test", str(rules_file)]) == 0
    assert capsys.readouterr().out == "2 rules, 4 examples: all passed\n"
    text = (
        RULES_FILE.replace("<< HELLO", "<< HEllO")
        .replace("<< hello", "<< HELLO")
        .replace("exit {}", "exit {")
    )
    rules_file.write_text(text, encoding="utf-8")

    assert main(["lint", "--self-test", str(rules_file)]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == f"{rules_file}: ACME101, valid example 1: reported: too loud"
    assert printed[1] == f"{rules_file}: ACME101, invalid example 1: not reported"
    assert printed[2].startswith(f"{rules_file}: ACME102, invalid example 1: Expecting property name")
    assert printed[3] == "2 rules, 4 examples: 3 failed"


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("RULES:", "RULES ==:", ":4: SyntaxError: invalid syntax (correct the file of rules)"),
        ("LintRule,", "LintRules,", ":2: ImportError: cannot import name"),
        ("rule = Rule", "rule = Fool", ":5: NameError: name 'FoolGroup' is not defined"),
        ("rule = RuleGroup(RULES", "rule = RuleGroup([]", ": RULES is not a list of lint rules"),
        ("ACME101", "ENV101", ": code ENV101: ENV is a family of mcpspy"),
        ("ACME101", "loud", ":7: ValueError: loud: not a valid code"),
        (
            "event.data",
            "event.dat",
            ":16: ACME101: AttributeError: 'LintEvent' object has no attribute 'dat'",
        ),
        ('yield Report("too loud")', "yield 3", ": ACME101 returns something else than Report"),
        ('yield Report("too loud")', "raise SystemError", ":17: ACME101: SystemError: "),
        ("from mcpspy", "open('/nowhere')\nfrom mcpspy", ":2: FileNotFoundError: "),
        ("from mcpspy", "raise SystemExit(3)\nfrom mcpspy", ":2: SystemExit: 3"),
    ],
)
def test_an_error_in_a_file_of_rules_is_one_line(
    make_recording: Make,
    rules_file: Path,
    capsys: pytest.CaptureFixture[str],
    *,
    old: str,
    new: str,
    problem: str,
) -> None:
    assert old in RULES_FILE
    rules_file.write_text(RULES_FILE.replace(old, new, 1), encoding="utf-8")

    assert main(["lint", str(make_recording([("server", b"OOPS")])), "--rules-file", str(rules_file)]) == 2
    printed = capsys.readouterr().err
    assert printed.startswith(f"mcpspy: {rules_file}{problem}")
    assert printed.count("\n") == 1


def test_a_file_of_rules_that_cannot_be_read_is_one_line(
    rules_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", "--self-test", str(tmp_path / "b.py")]) == 2
    assert "b.py: no such file" in capsys.readouterr().err
    assert main(["lint", "--self-test", str(tmp_path)]) == 3
    assert f"{tmp_path}: Is a directory (check the path)" in capsys.readouterr().err
    opening = tmp_path / "opening.py"
    opening.write_text(f"open({str(tmp_path)!r})\n", encoding="utf-8")
    assert main(["lint", "--self-test", str(opening)]) == 2
    assert capsys.readouterr().err.startswith(f"mcpspy: {opening}:1: IsADirectoryError: ")
    twice = ["--rules-file", str(rules_file)] * 2
    assert main(["lint", "--explain", "ENV101", *twice]) == 2
    assert "code ACME101: used twice" in capsys.readouterr().err
