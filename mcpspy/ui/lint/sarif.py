"""Findings as SARIF 2.1.0, which code hosts show beside the file.

Source: OASIS Static Analysis Results Interchange Format 2.1.0, 3.13 and on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcpspy import __version__
from mcpspy.analysis.lint import Finding, LintRule, Severity
from mcpspy.ui.lint.linted import RULES_BY_CODE, Linted, visible

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(linted: Sequence[Linted]) -> str:
    """Return the log, with a line end: one run, with the rules that found something."""
    codes = sorted({finding.code for recording in linted for finding in recording.findings})
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "mcpspy",
                        "version": __version__,
                        "rules": [_rule(RULES_BY_CODE[code]) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(recording, finding, codes.index(finding.code))
                    for recording in linted
                    for finding in recording.findings
                ],
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _rule(rule: LintRule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "helpUri": rule.url,
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(recording: Linted, finding: Finding, index: int) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(finding.place.line, 1)}
    if finding.excerpt:
        region["snippet"] = {"text": visible(finding.excerpt)}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": visible(finding.message)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(recording.path(finding))},
                    "region": region,
                }
            }
        ],
    }


def _uri(path: str) -> str:
    """Return a relative reference as it is, and a whole path as a file's URI."""
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)
