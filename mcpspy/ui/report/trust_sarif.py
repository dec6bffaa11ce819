"""The differences of a server from its lockfile as SARIF 2.1.0."""

from __future__ import annotations

import json

from mcpspy import __version__
from mcpspy.analysis.diff import SessionDiff
from mcpspy.ui.report.diff_text import change_heading
from mcpspy.ui.report.lint_json import SCHEMA


def sarif(difference: SessionDiff, file: str) -> str:
    """Return the log, with a line ending: one result per change, at the lockfile."""
    levels = {"breaking": "error", "different": "warning", "note": "note"}
    results = [
        {
            "ruleId": "trust",
            "level": levels[str(change.severity)],
            "message": {"text": f"{case.method}: {change_heading(change)}"},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": file}, "region": {"startLine": 1}}}
            ],
        }
        for case, change in difference.changes
    ]
    rule = {"id": "trust", "shortDescription": {"text": "the server differs from the lockfile"}}
    driver = {"name": "mcpspy", "version": __version__, "rules": [rule]}
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"
