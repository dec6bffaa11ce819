"""Lint findings as JSON, SARIF 2.1.0 (OASIS, from section 3.13), and GitHub commands; trust as SARIF."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mcpspy import __version__
from mcpspy.analysis.diff import ChangeSeverity, SessionDiff
from mcpspy.analysis.lint import Finding, LintRule, Severity
from mcpspy.ui.report.diff_text import change_heading
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, LintedRecording, visible


def document(
    linted: Sequence[LintedRecording],
    baseline: dict[str, Any] | None = None,
    statistics: Counter[str] | None = None,
) -> str:
    """Return the report; `statistics`, the number of findings by code, replaces the findings."""
    counts = Counter(finding.severity for recording in linted for finding in recording.findings)
    report: dict[str, Any] = {
        "recordings": [recording.title for recording in linted],
        "counts": {str(severity): counts[severity] for severity in Severity},
        "findings": [_finding(recording, finding) for recording in linted for finding in recording.findings],
    }
    if statistics is not None:
        del report["findings"]
        report["statistics"] = dict(statistics.most_common())
    if baseline is not None:
        report["baseline"] = baseline
    return json.dumps(report, indent=2) + "\n"


def _finding(recording: LintedRecording, finding: Finding) -> dict[str, Any]:
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
        "hint": " ".join(RULES_BY_CODE[finding.code].explanation.split()),
        "fingerprint": finding.fingerprint(recording.server),
    }


COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}

_VALUE = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


def github(recording: LintedRecording) -> Iterator[str]:
    for finding in recording.findings:
        path = recording.path(finding).translate(_PROPERTY)
        title = f"{finding.code} {RULES_BY_CODE[finding.code].summary}".translate(_PROPERTY)
        text = visible(finding.message) + (f"\n{visible(finding.excerpt)}" if finding.excerpt else "")
        where = f"file={path},line={max(finding.place.line, 1)}"
        yield f"::{COMMANDS[finding.severity]} {where},title={title}::{text.translate(_VALUE)}"


SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif(linted: Sequence[LintedRecording]) -> str:
    """Return the log, with a line ending: one run, with the rules that have findings."""
    codes = sorted({finding.code for recording in linted for finding in recording.findings})
    rules = [_rule(RULES_BY_CODE[code]) for code in codes]
    results = [
        _result(recording, finding, codes.index(finding.code))
        for recording in linted
        for finding in recording.findings
    ]
    return _log(rules, results)


def _rule(rule: LintRule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.explanation},
        "help": {"text": rule.explanation},
        "helpUri": rule.url,
        "defaultConfiguration": {"level": LEVELS[rule.severity]},
    }


def _result(recording: LintedRecording, finding: Finding, index: int) -> dict[str, Any]:
    region: dict[str, Any] = {"startLine": max(finding.place.line, 1)}
    if finding.excerpt:
        region["snippet"] = {"text": visible(finding.excerpt)}
    file = {"uri": _uri(recording.path(finding))}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": LEVELS[finding.severity],
        "message": {"text": visible(finding.message)},
        "locations": [{"physicalLocation": {"artifactLocation": file, "region": region}}],
        "partialFingerprints": {"mcpspyFinding/v1": finding.fingerprint(recording.server)},
    }


def _uri(path: str) -> str:
    return Path(path).as_uri() if Path(path).is_absolute() else quote(path)


CHANGE_LEVELS = {
    ChangeSeverity.BREAKING: "error",
    ChangeSeverity.DIFFERENT: "warning",
    ChangeSeverity.NOTE: "note",
}


def trust_sarif(difference: SessionDiff, programs: Sequence[str], file: str) -> str:
    """Return the log, with a line ending: one result per change and per line of `programs`, at the lockfile."""
    found = [
        ("trust", CHANGE_LEVELS[change.severity], f"{case.method}: {change_heading(change)}")
        for case, change in difference.changes
    ]
    found += [("program", "note", visible(line)) for line in programs]
    place = {"physicalLocation": {"artifactLocation": {"uri": _uri(file)}, "region": {"startLine": 1}}}
    results = [
        {"ruleId": rule, "level": level, "message": {"text": text}, "locations": [place]}
        for rule, level, text in found
    ]
    rules = [
        {"id": "trust", "shortDescription": {"text": "the server differs from the lockfile"}},
        {"id": "program", "shortDescription": {"text": "the server's package or files have changed"}},
    ]
    return _log(rules, results)


def _log(rules: list[dict[str, Any]], results: list[dict[str, Any]]) -> str:
    tool = {"driver": {"name": "mcpspy", "version": __version__, "rules": rules}}
    run = {"tool": tool, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"
