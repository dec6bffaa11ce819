"""The input of the report writers."""

from __future__ import annotations

from mcpspy.analysis.lint import EntryPosition
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, visible
from tests.ui.report.linting import finding, linted


def test_a_finding_is_in_the_file_of_its_part() -> None:
    recording = linted()

    assert recording.path(finding()) == "a b.jsonl"
    assert recording.path(finding(place=EntryPosition(3, 2))) == "a b.part2.jsonl"


def test_rules_are_found_by_their_code() -> None:
    assert RULES_BY_CODE["ENV101"].code == "ENV101"


def test_invisible_characters_are_escaped() -> None:
    assert (
        visible("a\u200bb\U000e0041\x1b\u202e\ud800 \u00fc")
        == "a\\u200bb\\U000e0041\\x1b\\u202e\\ud800 \u00fc"
    )
