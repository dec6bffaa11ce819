"""`explain` on recordings of servers with one fault each, of real clients, and on healthy sessions."""

from __future__ import annotations

import re

import pytest

from mcpspy.analysis.explain import CAUSES, Diagnosis
from mcpspy.analysis.explain.diagnosis import Cause
from mcpspy.analysis.explain.signs import EvidenceLine
from mcpspy.analysis.rows import OK
from mcpspy.errors import UsageError
from mcpspy.ui.cli.main import COMMANDS, parsers
from mcpspy.ui.report.explanation import explain, explanation_lines
from recordings import make
from tests.ui.report.faults.record import FAULTS, HERE


@pytest.mark.parametrize("name", FAULTS)
def test_the_seeded_fault_is_the_first_cause(name: str) -> None:
    diagnosis = explain(HERE / f"{name}.jsonl")
    assert [cause.code for cause in diagnosis.causes] == [FAULTS[name].cause]
    (cause,) = diagnosis.causes
    assert cause.evidence
    assert cause.next_step == CAUSES[cause.code].next_step


@pytest.mark.parametrize(
    "name", ["everything-ts-auto", "everything-ts-auto-2", "peer-ts-auto", "memory-inspector-auto"]
)
def test_a_healthy_session_has_no_cause(name: str) -> None:
    diagnosis = explain(make.HERE / f"{name}.jsonl")
    assert diagnosis.causes == ()
    assert diagnosis.summary.startswith("nothing wrong found")


def test_a_line_is_explained_with_the_other_lines_of_its_exchange() -> None:
    path = make.HERE / "everything-sdk-legacy.jsonl"
    for line in (73, 74):  # A call of a tool that does not exist, and its response.
        (cause,) = explain(path, line=line).causes
        assert cause.code == "unlisted-tool"
        assert {evidence.line for evidence in cause.evidence} == {73, 74}
    assert explain(path, line=4).causes == ()


def test_a_request_without_a_response_is_explained_by_the_crash_after_it() -> None:
    path = HERE / "exit-in-call.jsonl"
    call = next(
        number for number, line in enumerate(path.read_bytes().splitlines(), 1) if b'"name":"work"' in line
    )
    assert [cause.code for cause in explain(path, line=call).causes] == ["crash"]


def test_a_line_that_does_not_exist_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="line 999"):
        explain(HERE / "crash.jsonl", line=999)


def test_the_text_names_the_cause_its_lines_and_the_next_step() -> None:
    lines = [text for text, _ in explanation_lines(explain(HERE / "noise.jsonl"), 80)]
    assert lines[0] == "1. the server writes text to stdout that is not a message (stdout-noise)"
    assert any("Server listening on stdio" in line for line in lines)
    assert any(line.startswith("   next: write logs to stderr") for line in lines)
    assert max(map(len, lines)) <= 80


def test_several_causes_are_numbered_and_what_is_left_out_is_counted() -> None:
    def cause(code: str, count: int) -> Cause:
        evidence = (
            EvidenceLine(7, "a text", 1),
            EvidenceLine(2, "another", 3),
            EvidenceLine(0, "no line", 1),
        )
        return Cause(code, f"title of {code}", "a text", evidence, count, "do this")

    lines = list(explanation_lines(Diagnosis("two causes", (cause("a", 3), cause("b", 1_003))), 80))

    assert [text for text, _ in lines] == [
        "1. title of a (a)", "   line 7: a text", "   part 3, line 2: another", "   no line", "   next: do this",
        "",
        "2. title of b (b)", "   line 7: a text", "   part 3, line 2: another", "   no line",
        "   and 1,000 more", "   next: do this",
    ]  # fmt: skip


def test_a_healthy_session_is_one_line() -> None:
    diagnosis = explain(make.HERE / "peer-ts-auto.jsonl")
    assert list(explanation_lines(diagnosis, 80)) == [(diagnosis.summary, OK)]


def test_every_option_that_a_next_step_names_exists() -> None:
    options: set[str] = set()
    for name in COMMANDS:
        _, command = parsers(name)
        assert command is not None
        options.update(command._option_string_actions)
    named = {option for kind in CAUSES.values() for option in re.findall(r"--[a-z][a-z-]+", kind.next_step)}
    assert named
    assert named <= options
