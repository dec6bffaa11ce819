"""The drift of a server's tools as text, Markdown and JSON."""

from __future__ import annotations

import json

from mcpspy.analysis.drift import CallOutcomes, ToolDefinition, ToolDrift, drift
from mcpspy.ui.report import drift as drift_report
from mcpspy.ui.report.drift import document, markdown, text

OLD, NEW = ({"name": "e`cho", "description": words, "inputSchema": {"type": kind}} for words, kind in
            (("old", "object"), ("new \x1b[2J @team", "array")))  # fmt: skip


def found() -> list[ToolDrift]:
    rows = [
        ToolDefinition(
            str(day),
            f"2026-11-0{day} 10:00:00.000",
            "host 1",
            f"{day}.0",
            "e`cho",
            str(day),
            json.dumps(tool),
        )
        for day, tool in ((1, OLD), (2, NEW))
    ]
    return drift(rows, {("1", "e`cho"): CallOutcomes(200, 1)})


def test_text_has_the_change_its_clients_and_its_errors() -> None:
    lines = [line for line, _ in text("weather", found(), 2, 100)]

    assert lines[0] == "breaking   2026-11-02 10:00:00  e`cho  (1.0 → 2.0)"
    assert any("/inputSchema" in line for line in lines)
    assert lines[-3:] == [
        "  met by host 1 (2026-11-02)",
        "  errors 0.5% of 200 calls before, no calls after",
        "weather: 1 change of tools, 1 breaking, in 2 sessions",
    ]
    assert not any("\x1b" in line for line in lines)


def test_without_a_change_the_summary_says_so() -> None:
    assert [line for line, _ in text("x", [], 1, 0)] == ["x: no change of a tool, in 1 session"]


def test_text_of_peers_is_not_markup() -> None:
    report = "\n".join(markdown("weather @team", found(), 2))

    assert "``e`cho  (1.0 → 2.0)``" in report
    outside = report.split("```text")[0].replace(
        "`weather @team: 1 change of tools, 1 breaking, in 2 sessions`", ""
    )
    assert "@team" not in outside
    assert "\x1b" not in report


def test_the_page_has_the_old_and_the_new_text_of_a_change_and_no_markup_of_peers() -> None:
    lines = drift_report.page("weather <b>", found(), 2).decode().splitlines()

    assert any("weather &lt;b&gt;" in line for line in lines)
    assert not any("<b>" in line or "\x1b" in line for line in lines)
    at = lines.index("<pre>- &quot;old&quot;")
    assert lines[at + 1].startswith("+ &quot;new ")


def test_json_has_the_values() -> None:
    whole = json.loads(json.dumps(document("weather", found(), 2)))
    (change,) = whole["changes"]

    assert (whole["server"], whole["sessions"]) == ("weather", 2)
    assert change["before"] == {"calls": 200, "errors": 1}
    assert change["clients"] == {"host 1": "2026-11-02 10:00:00.000"}
    assert {"old": "old", "new": NEW["description"], "pointer": "/description"}.items() <= next(
        each for each in change["changes"] if each["pointer"] == "/description"
    ).items()
