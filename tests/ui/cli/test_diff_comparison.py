"""The options and reports of commands that compare sessions."""

from __future__ import annotations

import argparse
from pathlib import Path

import orjson
import pytest

from mcpspy.analysis.diff import (
    ChangeKind,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    LatencyLimit,
    SessionDiff,
)
from mcpspy.errors import CannotStart, UsageError
from mcpspy.ui.cli.diff import read_comparison, report
from mcpspy.ui.cli.main import parse

TITLES = ("a", "b")
NOTED = SessionDiff(
    (ComparedCase(method="a", changes=(DiffChange(kind=ChangeKind.RESULT, severity=ChangeSeverity.NOTE),)),)
)
CHANGED = SessionDiff(
    (
        ComparedCase(
            method="a", changes=(DiffChange(kind=ChangeKind.RESULT, severity=ChangeSeverity.DIFFERENT),)
        ),
    )
)


def parsed(*arguments: str) -> argparse.Namespace:
    return parse("diff", ["old", "new", *arguments])[1]


def test_options_mean_what_they_say() -> None:
    options = read_comparison(
        parsed("--ignore-path", "/result/a", "--ignore-path", "ping", "--dates", "--slower-than", "2x+1s"),
        frozenset({"tools"}),
    )

    assert [found.method for found in options.ignored] == ["*", "ping"]
    assert (options.dates, options.slower_than) == (True, LatencyLimit(2.0, 1.0))
    assert options.only == {"tools"}
    assert read_comparison(parsed()).ignored == ()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--ignore-path", "/oops"), "--ignore-path /oops: "),
        (("--ignore-path", "\x1b[2J /\n"), "--ignore-path \\x1b[2J /\\n: "),
        (("--slower-than", "fast"), "--slower-than fast: "),
        (("-o", "x"), "--output requires --format (use --format json, junit, markdown)"),
    ],
    ids=["pointer", "hostile", "limit", "format"],
)
def test_an_option_that_means_nothing_is_one_line(arguments: tuple[str, ...], line: str) -> None:
    with pytest.raises(UsageError) as error:
        read_comparison(parsed(*arguments))

    assert str(error.value).startswith(f"diff: {line}")
    assert "\x1b" not in str(error.value)


def test_notes_alone_are_fine_unless_they_are_to_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(NOTED, TITLES, parsed()) == 0
    assert report(NOTED, TITLES, parsed("--fail-on", "note")) == 1
    assert report(CHANGED, TITLES, parsed()) == 1
    assert report(CHANGED, TITLES, parsed("--fail-on", "breaking")) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.endswith("unchanged")] == [
        "same: 1 note; 0 of 1 unchanged",
        "changed: 1 note; 0 of 1 unchanged",
        "changed: 1 different; 0 of 1 unchanged",
        "same: 1 different; 0 of 1 unchanged",
    ]


def test_a_report_may_be_printed_in_place_of_the_other(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert report(CHANGED, TITLES, parsed("--format", "markdown")) == 1
    assert capfdbinary.readouterr().out.startswith(b"### mcpspy diff")

    assert report(CHANGED, TITLES, parsed("--format", "json")) == 1
    assert orjson.loads(capfdbinary.readouterr().out)["same"] is False


@pytest.mark.parametrize(
    ("form", "start"), [("json", "{"), ("junit", "<?xml"), ("markdown", "### mcpspy diff: changed")]
)
def test_a_format_is_written_to_the_output_file_and_text_to_stdout(
    form: str, start: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report"

    assert report(CHANGED, TITLES, parsed("--format", form, "-o", str(path))) == 1

    assert path.read_text(encoding="utf-8").startswith(start)
    assert capsys.readouterr().out.startswith("different  a\n")


def test_a_report_that_cannot_be_written_is_reported_after_the_one_that_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CannotStart) as error:
        report(CHANGED, TITLES, parsed("--format", "junit", "-o", str(tmp_path / "none" / "r.xml")))

    assert "No such file" in str(error.value)
    assert "changed: 1 different" in capsys.readouterr().out
