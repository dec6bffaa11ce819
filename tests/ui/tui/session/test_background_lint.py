"""Findings on the rows of a session: the lint pass, and the findings kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mcpspy.analysis.lint import RULES, EntryPosition, Finding, Linter, Severity
from mcpspy.core.recording.decode import read_entry
from mcpspy.core.session.session import Session
from mcpspy.ui.model.session_model import MOST, Findings, SessionModel
from mcpspy.ui.tui.session import background
from mcpspy.ui.tui.session import background as module
from mcpspy.ui.tui.session.background import LintPass
from tests.ui.conftest import CONVERSATION, Make
from tests.ui.tui.panels.panels import RECORDINGS, recorded

READY = ("client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
HELLO = ("server", CONVERSATION[1][1].replace(b'"capabilities":{}', b'"capabilities":{"tools":{}}'))
TALK = [CONVERSATION[0], HELLO, READY, *CONVERSATION[2:]]
"""A session with a stdout line that is not a message, whose server exits before its stdin is closed."""


def looked(log: SessionModel, seconds: float = 60.0) -> list[int]:
    """Lint a whole session, `seconds` at a time; return the rows with new findings."""
    lint_pass, news = LintPass(log, lambda _: (0, log.header)), list[int]()
    while lint_pass.is_behind:
        news += lint_pass.advance(seconds)
    return news


@pytest.mark.parametrize("name", ["peer-sdk-legacy", "peer-ts-auto", "everything-sdk-modern"])
def test_the_pass_has_the_findings_and_rows_of_lint(name: str) -> None:
    data = (RECORDINGS / f"{name}.jsonl").read_bytes()
    log = recorded(data).log
    session, linter = Session(log.header), Linter(log.header)
    expected = [
        finding
        for line in data.split(b"\n")[1:-1]
        for change in session.add(read_entry(line))
        for finding in linter.add(change)
    ]
    session.end()
    expected += linter.end()

    looked(log, 0.0)

    assert log.findings.count == len(expected)
    assert log.findings.rows == sorted({finding.number for finding in expected})
    for finding in expected:
        assert finding.code in {found.code for found in log.findings.of(finding.number)}


def test_a_replaced_recording_is_linted_again(make_recording: Make) -> None:
    log = recorded(make_recording(TALK).read_bytes()).log
    lint_pass = LintPass(log, lambda _: (0, log.header))
    lint_pass.advance(60.0)
    assert (lint_pass.is_behind, log.findings.rows) == (False, [4, 6])

    log.begin_again(log.header)
    assert (lint_pass.is_behind, log.findings.rows) == (True, [])
    lint_pass.advance(60.0)
    assert lint_pass.done == 0


def test_a_large_line_ends_a_slice_and_shows_so(
    make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", 120)
    log = recorded(make_recording(TALK).read_bytes()).log
    lint_pass, slices = LintPass(log, lambda _: (0, log.header)), 0
    lengths = [log.index.where(row).length > 120 for row in range(len(log))]
    while lint_pass.is_behind:
        assert lint_pass.is_large is lengths[lint_pass.done]
        lint_pass.advance(60.0)
        slices += 1
    assert slices == sum(lengths[1:]) + 1


def test_the_messages_of_a_rule_with_very_many_findings_are_not_kept() -> None:
    findings = Findings()
    for row in range(2 * MOST):
        findings.add(
            row, Finding("ENV101", Severity.ERROR, f"no {row}", "", EntryPosition(), row, 0.0, "server")
        )

    (rule,) = (rule for rule in RULES if rule.code == "ENV101")
    assert findings.of(7)[0].message == "no 7"
    assert findings.of(MOST) is findings.of(2 * MOST - 1)
    assert findings.of(MOST)[0].message == rule.summary
    assert (findings.count, findings.of(None), findings.of(2 * MOST)) == (2 * MOST, (), ())


async def test_a_finding_marks_its_row_and_appears_in_the_detail_pane(
    opened: Any, make_recording: Make
) -> None:
    async with opened(make_recording(TALK), linted=True) as screen:
        await screen.shows("2 findings")
        await screen.press("w")
        await screen.until(lambda: " E ← " in screen.selected)
        await screen.shows("ENV101 error: not JSON on stdout")
        await screen.press("w")
        await screen.until(lambda: " W · " in screen.selected)
        await screen.press("w")
        await screen.shows("no finding below")


async def test_findings_of_a_live_session_appear_and_can_be_filtered(opened: Any, live: Any) -> None:
    for side, line in TALK[:3]:
        live.say(side, line)
    live.calls(5, 6)
    async with opened(live.path, linted=True, size=(160, 24)) as screen:
        await screen.shows("2 findings", "following")  # No content in either result.
        await screen.press("slash", *"lint:ENV", "enter")
        await screen.shows("0 matches in 4 rows")
        live.say("server", b"oops \x1b[2J")
        await screen.until(lambda: screen.count == 1)
        await screen.shows("ENV101 error: not JSON")
        live.say("client", b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x"}}')
        live.say("server", b'{"id":9,"result":{"content":[]}}')
        await screen.until(lambda: screen.count == 2, "a request whose response has a finding")
        assert " E → tools/call " in screen.places[1]


async def test_a_long_session_is_linted_once_requested(
    opened: Any, make_recording: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "LINTED", 3)
    async with opened(make_recording(TALK), linted=True) as screen:
        await screen.processed()
        assert not screen.session.lint_pass.done
        await screen.press("w")
        await screen.shows("no finding below (0 % of the rows linted)", "2 findings")
        await screen.press("w")
        await screen.shows("ENV101 error")


async def test_merged_sessions_are_linted_separately(
    opened: Any, make_recording: Make, tmp_path: Path
) -> None:
    listed = b'{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"%b","description":"d","inputSchema":{"type":"object"}}]}}'
    paths = [
        make_recording(
            [
                *TALK[:3],
                ("client", b'{"jsonrpc":"2.0","id":4,"method":"tools/list"}'),
                ("server", listed % (4, name)),
                ("client", b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"%b"}}' % name),
                ("server", b'{"jsonrpc":"2.0","id":5,"result":{"content":[]}}'),
                *([("server", b"oops")] if name == b"two" else []),
            ],
            name=name.decode(),
        )
        for name in (b"one", b"two")
    ]
    async with opened(paths, linted=True) as screen:
        await screen.until(
            lambda: not screen.session.lint_pass.is_behind and screen.session.loader.model.is_over
        )
        log = screen.session.loader.model
        found = [
            (log.index.texts[log.index.stream[row]], log.findings.of(row)[0].code)
            for row in log.findings.rows
        ]
        assert found == [("two", "ENV101"), ("one", "LIFE401"), ("two", "LIFE401")]
