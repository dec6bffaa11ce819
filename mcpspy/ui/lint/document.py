"""Findings for programs: one JSON document."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from mcpspy.analysis.lint import Finding, Severity
from mcpspy.ui.lint.linted import RULES_BY_CODE, Linted


def document(linted: Sequence[Linted]) -> str:
    counts = Counter(finding.severity for recording in linted for finding in recording.findings)
    said = {
        "recordings": [recording.title for recording in linted],
        "counts": {str(severity): counts[severity] for severity in Severity},
        "findings": [_finding(recording, finding) for recording in linted for finding in recording.findings],
    }
    return json.dumps(said, indent=2) + "\n"


def _finding(recording: Linted, finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": str(finding.severity),
        "message": finding.message,
        "recording": recording.title,
        "path": recording.path(finding),
        "line": finding.place.line,
        "n": finding.number,
        "t": finding.at,
        "from": finding.side or None,
        "excerpt": finding.excerpt,
        "url": RULES_BY_CODE[finding.code].url,
    }
