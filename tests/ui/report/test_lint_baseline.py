"""The baseline: known findings do not count, new ones do, and entries that no longer occur are reported."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.ui.cli.main import main

Make = Callable[..., Path]


@pytest.fixture
def baseline(make_recording: Make, tmp_path: Path) -> str:
    """The baseline of a session with two findings ENV101 and one LIFE401."""
    path, file = (
        make_recording([("server", b"oops 1"), ("server", b"DEBUG")], name="a"),
        tmp_path / "known.json",
    )
    assert main(["lint", str(path), "--baseline", str(file), "--update-baseline"]) == 0
    path.unlink()
    return str(file)


def test_known_findings_do_not_count_in_any_order(
    baseline: str, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [("server", b"DEBUG"), ("server", b"DEBUG"), ("server", b"oops 17")]
    path = str(make_recording(lines, name="a"))
    capsys.readouterr()

    assert main(["lint", path, "--baseline", baseline, "--fail-on", "info"]) == 0
    assert (
        capsys.readouterr().out == f"no new findings in 1 recording\n{baseline}: 4 known findings not shown\n"
    )


def test_a_new_finding_counts_and_a_missing_one_is_listed(
    baseline: str, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording([("server", b"TRACE"), ("server", b"oops 1")], name="a"))
    capsys.readouterr()

    assert main(["lint", path, "--baseline", baseline]) == 1
    assert capsys.readouterr().out == (
        "a:2 ENV101 error: not JSON on stdout\n    | TRACE\n1 error in 1 recording\n"
        f"{baseline}: 2 known findings not shown\n"
        f"{baseline}: 1 entry no longer found (--update-baseline removes them)\n"
        "    a ENV101  not JSON on stdout\n"
    )


def test_entries_that_were_not_checked_are_neither_missing_nor_removed(
    baseline: str, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(baseline).read_text(encoding="utf-8")
    other = str(make_recording([("server", b"oops 1")], name="b"))
    clean = str(make_recording([], name="a"))
    capsys.readouterr()
    for arguments in (
        [other, "--ignore", "ALL"],
        [clean, "--select", "HTTP"],
        [clean, "-q", "text:oops"],
    ):
        main(["lint", *arguments, "--baseline", baseline, "--format", "json"])
        assert json.loads(capsys.readouterr().out)["baseline"]["gone"] == []
    main(["lint", other, "--ignore", "ALL", "--baseline", baseline, "--update-baseline"])
    assert Path(baseline).read_text(encoding="utf-8") == before

    assert main(["lint", other, "--baseline", baseline]) == 1


def test_an_update_does_not_change_the_entries_of_known_findings(
    make_recording: Make, tmp_path: Path
) -> None:
    file = tmp_path / "known.json"
    written = []
    for number in (5, 17):
        answer = b'{"jsonrpc":"2.0","id":%d,"result":{}}' % number
        path = make_recording([("server", answer)], name="a")
        main(["lint", str(path), "--baseline", str(file), "--update-baseline"])
        written.append(file.read_text(encoding="utf-8"))

    assert "request id 5" in written[0]
    assert written[0] == written[1]


def test_an_update_adds_and_removes_entries(
    baseline: str, make_recording: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(make_recording([("server", b"TRACE"), ("server", b"oops 1")], name="a"))
    capsys.readouterr()

    assert main(["lint", path, "--baseline", baseline, "--update-baseline"]) == 0
    assert f"{baseline}: 3 findings written (1 new), 1 entry removed\n" in capsys.readouterr().out
    assert main(["lint", path, "--baseline", baseline, "--fail-on", "info"]) == 0


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github"])
def test_no_format_reports_known_findings(
    baseline: str, make_recording: Make, capfd: pytest.CaptureFixture[str], form: str
) -> None:
    path = str(make_recording([("server", b"oops 1"), ("server", b"TRACE")], name="a"))
    capfd.readouterr()

    assert main(["lint", path, "--baseline", baseline, "--format", form]) == 1
    out, err = capfd.readouterr()
    assert "TRACE" in out
    assert "oops" not in out
    assert ("known findings not shown" in err) == (form != "json")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "no such file (add --update-baseline)"),
        ("{", "not a baseline of mcpspy lint (move it away"),
        ("[]", "not a baseline"),
        ('{"mcpspy-lint-baseline": 2}', "not a baseline"),
        ('{"mcpspy-lint-baseline": 1, "findings": [{}]}', "not a baseline"),
        ("[" * 100_000, "not a baseline"),
        ("folder", "Is a directory (check the path)"),
    ],
    ids=["missing", "cut", "list", "version", "entry", "deep", "folder"],
)
def test_an_invalid_baseline_is_one_line(
    make_recording: Make,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    content: str | None,
    problem: str,
) -> None:
    file = tmp_path / "b.json"
    if content == "folder":
        file.mkdir()
    elif content is not None:
        file.write_text(content, encoding="utf-8")

    assert main(["lint", str(make_recording()), "--baseline", str(file)]) == (3 if content == "folder" else 2)
    printed = capsys.readouterr().err
    assert printed.startswith(f"mcpspy: lint: --baseline {file}: {problem}")
    assert printed.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--update-baseline"], "--update-baseline requires --baseline FILE"),
        (
            ["--update-baseline", "--baseline", "b", "-q", "x"],
            "--update-baseline and --filter exclude each other",
        ),
    ],
)
def test_an_update_needs_a_file_and_all_findings(
    options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", *options]) == 2
    assert problem in capsys.readouterr().err
