"""Findings for a CI server: JUnit XML, a suite a recording.

A rule that found something is a test case: a `failure` if it is grave enough,
`system-out` if not. A recording without findings is one case that passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from mcpspy.analysis.lint import Finding, Severity
from mcpspy.ui.lint.linted import RULES_BY_CODE, Linted, visible
from mcpspy.ui.xml import plain


def junit(linted: Sequence[Linted], *, fail_on: Severity = Severity.ERROR) -> str:
    root = ET.Element("testsuites", {"name": "mcpspy lint"})
    tests = failures = 0
    for recording in linted:
        by_code: dict[str, list[Finding]] = {}
        for finding in recording.findings:
            by_code.setdefault(finding.code, []).append(finding)
        failed = sum(_is_grave(found[0], fail_on) for found in by_code.values())
        counts = {"tests": str(max(len(by_code), 1)), "failures": str(failed), "errors": "0", "skipped": "0"}
        suite = ET.SubElement(root, "testsuite", {"name": plain(visible(recording.title)), **counts})
        tests, failures = tests + max(len(by_code), 1), failures + failed
        if not by_code:
            ET.SubElement(suite, "testcase", {"classname": "mcpspy.lint", "name": "no findings"})
        for code, found in sorted(by_code.items()):
            rule = RULES_BY_CODE[code]
            case = {"classname": f"mcpspy.lint.{rule.family}", "name": f"{code} {rule.summary}"}
            _fill(ET.SubElement(suite, "testcase", case), recording, found, fail_on)
    root.attrib |= {"tests": str(tests), "failures": str(failures), "errors": "0"}
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _fill(case: ET.Element, recording: Linted, found: list[Finding], fail_on: Severity) -> None:
    text = plain("\n".join(_line(recording, finding) for finding in found))
    if _is_grave(found[0], fail_on):
        attributes = {"type": str(found[0].severity), "message": plain(visible(found[0].message))}
        ET.SubElement(case, "failure", attributes).text = text
    else:
        ET.SubElement(case, "system-out").text = text


def _line(recording: Linted, finding: Finding) -> str:
    excerpt = f"\n    | {visible(finding.excerpt)}" if finding.excerpt else ""
    return f"{visible(recording.path(finding))}:{finding.place.line}: {visible(finding.message)}{excerpt}"


def _is_grave(finding: Finding, fail_on: Severity) -> bool:
    return finding.severity.rank <= fail_on.rank
