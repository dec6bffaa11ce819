"""Findings have the line of their entry, and a live session has no end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.ui.report.lint_scan import LintScan

HEADER = (
    b'{"mcpspy":1,"id":"ab12cd34","started":"2026-01-01T00:00:00.000Z","transport":"stdio","command":["x"]}\n'
)
ASKED = b'{"t":1.0,"from":"client","msg":{"jsonrpc":"2.0","id":1,"method":"ping"}}\n'
GARBAGE = b'{"t":2.0,"from":"server","why":"not JSON","raw":"DEBUG"}\n'


@pytest.fixture
def record(tmp_path: Path) -> Callable[[bytes], Path]:
    def write(data: bytes) -> Path:
        path = tmp_path / "x.jsonl"
        path.write_bytes(HEADER + data)
        return path

    return write


def test_a_finding_names_its_line_and_progress_is_reported(
    record: Callable[[bytes], Path],
) -> None:
    path = record(ASKED + GARBAGE)
    scan, shown_progress = LintScan(path), list[tuple[int, int]]()

    found = list(scan.findings(lambda done, of: shown_progress.append((done, of))))

    assert ("ENV101", 1, 3) in [(each.code, each.place.part, each.place.line) for each in found]
    assert scan.parts == [path]
    assert shown_progress[-1] == (path.stat().st_size, path.stat().st_size)


def test_unanswered_requests_are_reported_only_after_the_end(
    record: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(ASKED)
    over = {each.code for each in LintScan(path).findings()}
    monkeypatch.setattr(Recording, "state", property(lambda _: RecordingState.LIVE))
    live = {each.code for each in LintScan(path).findings()}

    assert over - live == {"LIFE201"}


def test_an_incomplete_last_line_is_counted_and_not_read(
    record: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = record(ASKED + GARBAGE[:20])
    scan = LintScan(path)
    assert "ENV101" not in {each.code for each in scan.findings()}
    assert scan.torn == 20

    monkeypatch.setattr(Recording, "state", property(lambda _: RecordingState.LIVE))
    live = LintScan(path)
    assert list(live.findings()) == []
    assert live.torn == 0
