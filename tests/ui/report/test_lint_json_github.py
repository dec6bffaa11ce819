"""Workflow commands of GitHub Actions."""

from __future__ import annotations

import re

from mcpspy.analysis.lint import Severity
from mcpspy.ui.report.lint import github
from tests.ui.report.linting import HOSTILE, finding, linted


def test_a_finding_is_a_command_at_its_file_and_line() -> None:
    commands = list(github(linted(finding(), finding("DATA205", Severity.INFO, excerpt=""))))

    assert commands == [
        "::error file=a b.jsonl,line=7,title=ENV101 line that is not JSON::not JSON%0ADEBUG",
        "::notice file=a b.jsonl,line=7,title=DATA205 tool without a description::not JSON",
    ]


def test_no_text_of_a_peer_begins_a_command() -> None:
    for line in github(linted(*HOSTILE.findings, parts=("a:b,c%.jsonl", "d\n.jsonl"))):
        assert re.fullmatch(r"::(error|warning) file=[^:,]+,line=\d+,title=[^:,]+::[^\r\n]*", line)
        assert "%0A::error" not in line
        assert line.isprintable()
