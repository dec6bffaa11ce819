"""Findings about the behaviour of models and hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpspy.ui.report.lint_scan import LintScan
from tests.analysis.lint.proving import findings

ROOT = Path(__file__).parents[4]


def test_a_failure_without_a_flag_is_quoted_as_it_was_written() -> None:
    text = json.dumps("Error: no such city: Ålesund", ensure_ascii=False)
    (found,) = findings(
        '> {"id":2,"method":"tools/call","params":{"name":"forecast"}}\n'
        f'< {{"id":2,"result":{{"content":[{{"type":"text","text":{text}}}]}}}}'
    )

    assert (found.code, found.excerpt) == ("AGENT103", "Error: no such city: Ålesund")
    assert found.message == "forecast reports a failure without isError: Error: no such city: Ålesund"


def test_unused_tools_are_reported_where_they_are_listed() -> None:
    names = "abcde"
    tools = ",".join(
        f'{{"name":"{name}","description":"b","inputSchema":{{"type":"object"}}}}' for name in names
    )
    calls = "".join(
        f'> {{"id":{number},"method":"tools/call","params":{{"name":"a","arguments":{{"n":{number}}}}}}}\n'
        f'< {{"id":{number},"result":{{"content":[]}}}}\n'
        for number in range(3, 23)
    )
    (found,) = findings(
        f'> {{"id":2,"method":"tools/list"}}\n< {{"id":2,"result":{{"tools":[{tools}]}}}}\n{calls}'
        '* eof {"from":"client"}\n* exit {"code":0}'
    )

    assert found.message == "4 of 5 tools were never called in 20 calls: b, c, d, e"
    assert found.place.line == 6


@pytest.mark.parametrize("path", sorted((ROOT / "recordings").glob("*.jsonl")), ids=lambda path: path.stem)
def test_real_sessions_have_no_findings_about_behaviour(path: Path) -> None:
    assert [found for found in LintScan(path).findings() if found.code.startswith("AGENT")] == []
