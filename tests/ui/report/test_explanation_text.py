"""The text of a diagnosis: numbered causes, wrapped lines, observations under their own heading; the exit code."""

from __future__ import annotations

import json

import pytest

from mcpspy.analysis.explain import Cause, Diagnosis, EvidenceLine
from mcpspy.analysis.rows import BAD, OK
from mcpspy.ui.cli.main import main
from mcpspy.ui.report.explanation import explain, explanation_lines
from tests.ui.report.faults.record import HERE

LONG = "the server ended during tools/call work, with exit code 1: KeyError: 'missing' in a long path"


def cause(code: str, title: str = "it failed") -> Cause:
    return Cause(code, title, "a text", (EvidenceLine(7, "a text"),), 1, "do this", "server")


def test_a_long_title_is_wrapped_below_its_number() -> None:
    lines = list(explanation_lines(Diagnosis("", (cause("crash", LONG),)), 60))

    assert lines[:2] == [
        ("1. the server ended during tools/call work, with exit code", BAD),
        ("   1: KeyError: 'missing' in a long path (crash)", BAD),
    ]
    assert max(len(text) for text, _ in lines) <= 60


def test_observations_have_their_own_heading() -> None:
    found = Diagnosis("", (cause("crash"),), None, (cause("downgrade", "an older revision"),))
    healthy = Diagnosis("nothing wrong found", (), None, (cause("downgrade", "an older revision"),))
    expected = ["", "worth knowing:", "   line 7: an older revision (downgrade)"]

    assert [text for text, _ in explanation_lines(found, 80)][-3:] == expected
    assert [text for text, _ in explanation_lines(healthy, 80)] == ["nothing wrong found", *expected]
    assert next(explanation_lines(healthy, 80))[1] == OK


def test_an_observation_alone_exits_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    path = HERE / "older-revision.jsonl"
    diagnosis = explain(path)
    assert (diagnosis.causes, [each.code for each in diagnosis.observations]) == ((), ["downgrade"])

    assert main(["explain", str(path)]) == 0
    assert "worth knowing:" in capsys.readouterr().out
    assert main(["explain", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["observations"][0]["code"] == "downgrade"


def test_the_line_of_a_request_shows_its_cause_and_another_line_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = HERE / "crash.jsonl"
    number = next(
        number for number, line in enumerate(path.read_bytes().splitlines(), 1) if b'"name":"work"' in line
    )

    assert main(["explain", str(path), str(number), "--last-good", "none"]) == 1
    assert "(crash)" in capsys.readouterr().out
    assert main(["explain", str(path), "2"]) == 0
    assert "nothing wrong found with line 2" in capsys.readouterr().out
