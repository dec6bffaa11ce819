"""`explain` on recordings of servers with one fault each, of real clients, and on healthy sessions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from mcpspy.analysis.explain import Cause, Diagnosis, EvidenceLine
from mcpspy.analysis.explain.causes import AREAS
from mcpspy.analysis.rows import OK
from mcpspy.errors import UsageError
from mcpspy.ui.cli.main import COMMANDS, parsers
from mcpspy.ui.report.explanation import explain, explanation_lines
from recordings import make
from tests.ui.report.faults.record import FAULTS, HERE, OBSERVED


@pytest.mark.parametrize("name", FAULTS)
def test_the_seeded_fault_is_the_only_cause(name: str) -> None:
    diagnosis = explain(HERE / f"{name}.jsonl")
    named, other = diagnosis.causes, diagnosis.observations
    if name in OBSERVED:
        named, other = other, named
        assert other == ()
    assert {cause.code for cause in named} == {FAULTS[name].cause}
    assert all(cause.next_step for cause in named)
    assert named[0].evidence or name in OBSERVED


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
        assert cause.code == "unknown-tool"
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
    text = " ".join(" ".join(lines).split())
    assert text.startswith(
        "1. the server writes text to stdout between its messages, where only messages may be:"
    )
    assert "Server listening on stdio (stdout-noise)" in text
    assert any("stdout: Server listening on stdio" in line for line in lines)
    assert any(line.startswith("   next: write logs to stderr") for line in lines)
    assert max(len(line) for line in lines if line.startswith("   ")) <= 80


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


def in_two_parts(folder: Path, name: str, at: int) -> tuple[Path, Path]:
    """Write a recording in two files, of which the second begins with the line `at` of the whole."""
    header, *lines = (HERE / f"{name}.jsonl").read_bytes().splitlines()
    first, second = folder / "a.jsonl", folder / "a.part2.jsonl"
    following = b'{"t":0,"note":"part","next":"a.part2.jsonl"}'
    first.write_bytes(b"\n".join([header, *lines[: at - 2], following, b""]))
    second.write_bytes(b"\n".join([header[:-1] + b',"part":2}', *lines[at - 2 :], b""]))
    return first, second


@pytest.mark.parametrize("name", ["crash", "wrong-arguments"])
def test_evidence_in_a_later_file_of_a_session_names_its_part_and_line(tmp_path: Path, name: str) -> None:
    whole = explain(HERE / f"{name}.jsonl").causes[0]
    at = min(each.line for each in whole.evidence)
    first, _ = in_two_parts(tmp_path, name, at)

    cause = explain(first).causes[0]

    assert (cause.code, cause.title) == (whole.code, whole.title)
    assert [(each.part, each.line, each.text) for each in cause.evidence] == [
        (2, each.line - at + 2, each.text) for each in whole.evidence
    ]
    for each in cause.evidence:
        assert explain(first, line=each.line, part=each.part).causes[0].code == whole.code
    with pytest.raises(UsageError, match=r"line 999: part 2 of a\.jsonl has the lines 2 to "):
        explain(first, line=999, part=2)


REPORTS = Path(__file__).parents[2] / "analysis" / "explain" / "causes" / "reports"


@pytest.mark.parametrize("path", sorted(REPORTS.glob("*.jsonl"))[::20], ids=lambda path: path.stem)
def test_each_line_of_the_evidence_leads_to_the_same_cause(path: Path) -> None:
    for cause in explain(path).causes[:1]:
        for each in cause.evidence:
            found = explain(path, line=each.line, part=each.part).causes if each.line > 1 else [cause]
            assert cause.code in {other.code for other in found}, each


FOREIGN_OPTIONS = {
    "--api-key",
    "--detach",
    "--exclude-newer",
    "--forwarded-allow-ips",
    "--interactive",
    "--max-old-space-size",
    "--platform",
    "--proxy-headers",
    "--refresh",
    "--rm",
    "--silent",
    "--stdio",
    "--transport",
    "--tty",
    "--with",
}
"""Options of other programs that a next step names."""


def test_every_command_and_option_that_a_next_step_names_exists() -> None:
    texts = [
        node.value
        for area in AREAS
        for node in ast.walk(ast.parse(Path(str(area.__file__)).read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    ]
    commands = {
        word
        for text in texts
        for word in re.findall(r"\bmcpspy (replay|show|send|lint|http|run|exec|\w+(?= -))", text)
    }
    assert commands
    assert commands <= COMMANDS.keys()
    options: set[str] = set()
    for name in COMMANDS:
        _, command = parsers(name)
        assert command is not None
        options.update(command._option_string_actions)
    named = {option for text in texts for option in re.findall(r"(?<![\w(\\-])--[a-z][a-z-]+\b", text)}
    assert named & options
    assert named - FOREIGN_OPTIONS <= options
