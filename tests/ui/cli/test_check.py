"""`mcpspy check` on recordings of real servers."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from mcpspy.ui.cli.main import main

RECORDINGS = Path(__file__).parents[3] / "recordings"
EVERYTHING = str(RECORDINGS / "everything-sdk-auto.jsonl")
QUIET = str(RECORDINGS / "peer-ts-auto.jsonl")


def test_a_session_that_meets_every_term_exits_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["check", EVERYTHING, "--expect-tool", "echo", "--max-calls", "20", "--max-duration", "1min"])
        == 0
    )

    assert capsys.readouterr().out.splitlines() == [
        EVERYTHING,
        "  ok      expect-tool echo: 1 call",
        "  ok      max-calls 20: 15 calls",
        "  ok      max-duration 1m00s: 1.03 s",
        "3 terms met",
    ]


def test_a_term_that_is_not_met_exits_1_and_lists_its_messages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", EVERYTHING, QUIET, "--forbid-tool", "ec*", "--no-issues"]) == 1

    assert capsys.readouterr().out.splitlines() == [
        EVERYTHING,
        "  FAILED  forbid-tool ec*: 1 call",
        "              0.597  tools/call  echo  ok",
        "  ok      no-issues: no issues",
        QUIET,
        "  ok      forbid-tool ec*: no calls",
        "  ok      no-issues: no issues",
        "1 of 4 terms not met",
    ]


def test_a_long_list_of_messages_ends_with_their_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", EVERYTHING, "--max-calls", "2"]) == 1

    assert "and 3 more" in capsys.readouterr().out


def test_json_contains_every_term_of_every_session(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(RECORDINGS), "--no-errors", "--format", "json"]) == 1

    report = json.loads(capsys.readouterr().out)
    assert not report["ok"]
    assert len(report["sessions"]) == len(list(RECORDINGS.glob("*.jsonl")))
    by_name = {Path(one["session"]).name: one for one in report["sessions"]}
    assert by_name["peer-ts-auto.jsonl"]["ok"]
    (term,) = by_name["everything-sdk-auto.jsonl"]["terms"]
    assert (term["term"], term["ok"], term["found"], len(term["evidence"])) == (
        "no-errors",
        False,
        "5 errors",
        5,
    )


def test_junit_has_a_suite_per_session_and_a_case_per_term(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["check", EVERYTHING, QUIET, "--no-errors", "--forbid-tool", "none", "--format", "junit"]) == 1
    )

    root = ET.fromstring(capsys.readouterr().out)
    assert (root.get("tests"), root.get("failures")) == ("4", "1")
    assert [suite.get("failures") for suite in root] == ["1", "0"]
    (failure,) = root.findall(".//failure")
    assert failure.get("message") == "5 errors"
    assert "no-such-tool" in (failure.text or "")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ([], "check: nothing to check (add --expect-tool TOOL"),
        (["--max-calls", "many"], "check: --max-calls many: invalid value (use 20 or search=3)"),
        (["--max-duration", "soon"], "check: --max-duration soon: invalid value (use 30s, 500ms or 5min)"),
    ],
)
def test_wrong_terms_are_usage_errors(
    options: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", EVERYTHING, *options]) == 2

    assert error in capsys.readouterr().err


def test_text_of_a_peer_is_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    lines = (
        '{"mcpspy":1,"id":"a","started":"2026-01-01T00:00:00Z","transport":"stdio","command":["a"],"name":"a"}',
        '{"t":1,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u001b[2J"}}}',
        '{"t":2,"note":"exit","code":0}',
    )
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    assert main(["check", str(path), "--max-calls", "0", "--expect-tool", "x"]) == 1
    assert main(["check", str(path), "--max-calls", "0", "--format", "junit"]) == 1

    assert "\x1b" not in capsys.readouterr().out
