"""Reports of the page as JSON."""

from __future__ import annotations

from pathlib import Path

from mcpspy.io.recording.reader import read_header_of, summarize
from mcpspy.ui.web.reports import explained
from tests.ui.report.test_last_good import good, lines, save


def test_an_explanation_names_the_rows_of_what_changed_since_the_last_good_session(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    alone = save(tmp_path / "alone", 9, lines())
    good(tmp_path, 1)
    failed = save(tmp_path, 2, lines())

    def report(path: Path) -> dict[str, object]:
        found: dict[str, object] = explained([summarize(path, read_header_of(path))], {})
        return found

    assert report(alone)["last_good"] is None
    worked = report(failed)["last_good"]
    assert isinstance(worked, dict)
    assert worked["session"] == "00000001"
    assert worked["count"] >= len(worked["changes"]) > 0
    first = worked["changes"][0]
    assert isinstance(first["number"], int)
    assert '"string" → "integer"' in first["text"]
