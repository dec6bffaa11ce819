"""JUnit XML for CI servers, in the form that Jenkins, GitLab, GitHub's reporters and pytest accept.

A diff is one suite with a test case per compared item; lint findings are a suite per recording with a test
case per rule. Changes and findings at or above `fail_on` are a `failure`, others are `system-out`. A contract is a suite
per recording with a test case per term.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from xml.etree import ElementTree as ET

from mcpspy.analysis.completeness import Gap
from mcpspy.analysis.contract import TermResult
from mcpspy.analysis.diff import ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.analysis.lint import Finding, Severity
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, LintedRecording, by_rule, visible

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, even escaped (2.2, Characters)."""


def plain(text: str) -> str:
    """Return the text with a replacement character for each one that XML does not allow."""
    return _FORBIDDEN.sub("\ufffd", text)


def _document(root: ET.Element) -> str:
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


WIDE = 500


def diff_junit(
    difference: SessionDiff,
    titles: tuple[str, str],
    *,
    fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT,
    notes: Sequence[str] = (),
) -> str:
    """Return the document; `notes` are lines for people that fail nothing."""
    cases = difference.cases
    failed = [case for case in cases if _grave(case, fail_on)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(len(failed)),
        "errors": "0",
        "time": _seconds(sum(case.latency or 0.0 for case in cases)),
    }
    root = ET.Element("testsuites", {"name": "mcpspy", **counts})
    title = plain(f"{titles[0]} {diff_report.ARROW} {titles[1]}")
    suite = ET.SubElement(root, "testsuite", {"name": title, **counts, "skipped": "0"})
    seen: Counter[str] = Counter()
    for case in cases:
        name = plain(diff_report.about(case))
        seen[name] += 1
        numbered = name if seen[name] == 1 else f"{name} #{seen[name]}"
        attributes = {
            "classname": f"mcpspy.{plain(sanitize(case.method))}",
            "name": numbered,
            "time": _seconds(case.latency or 0.0),
        }
        _fill_case(ET.SubElement(suite, "testcase", attributes), case, fail_on)
    if notes:
        ET.SubElement(suite, "system-out").text = plain("\n".join(map(sanitize, notes)))
    return _document(root)


def _fill_case(element: ET.Element, case: ComparedCase, fail_on: ChangeSeverity) -> None:
    grave = _grave(case, fail_on)
    if grave:
        first = min(grave, key=lambda change: change.severity.rank)
        attributes = {"type": str(first.severity), "message": plain(diff_report.change_heading(first))}
        failure = ET.SubElement(element, "failure", attributes)
        failure.text = plain("\n".join([diff_report.places(case), *map(_text, grave)]))
    if lesser := [change for change in case.changes if change.severity.rank > fail_on.rank]:
        ET.SubElement(element, "system-out").text = plain("\n".join(map(_text, lesser)))


def _grave(case: ComparedCase, fail_on: ChangeSeverity) -> list[DiffChange]:
    return [change for change in case.changes if change.severity.rank <= fail_on.rank]


def _text(change: DiffChange) -> str:
    body = [f"  {mark} {line}" for mark, line in diff_report.body(change, WIDE)]
    return "\n".join([f"{change.severity}: {diff_report.change_heading(change)}", *body])


def _seconds(seconds: float) -> str:
    return f"{seconds:.6f}"


def lint_junit(linted: Sequence[LintedRecording]) -> str:
    root = ET.Element("testsuites", {"name": "mcpspy lint"})
    tests = failures = 0
    for recording in linted:
        by_code = by_rule(recording.findings)
        failed = sum(_is_grave(found[0], recording.fail_on) for found in by_code.values())
        skipped = len(recording.gaps)
        cases = max(len(by_code) + skipped, 1)
        counts = {"tests": str(cases), "failures": str(failed), "errors": "0", "skipped": str(skipped)}
        suite = ET.SubElement(root, "testsuite", {"name": plain(visible(recording.title)), **counts})
        tests, failures = tests + cases, failures + failed
        if not by_code and not skipped:
            ET.SubElement(suite, "testcase", {"classname": "mcpspy.lint", "name": "no findings"})
        for code, found in sorted(by_code.items()):
            rule = RULES_BY_CODE[code]
            case = {"classname": f"mcpspy.lint.{rule.family}", "name": f"{code} {rule.summary}"}
            _fill_finding(ET.SubElement(suite, "testcase", case), recording, found)
        _add_gaps(suite, "mcpspy.lint", recording.gaps)
    root.attrib |= {"tests": str(tests), "failures": str(failures), "errors": "0"}
    return _document(root)


def _add_gaps(suite: ET.Element, family: str, gaps: Iterable[Gap]) -> None:
    """Add a skipped test case for each thing that a recording lacks."""
    for gap in gaps:
        case = ET.SubElement(suite, "testcase", {"classname": family, "name": "complete recording"})
        ET.SubElement(case, "skipped", {"message": plain(f"incomplete: {visible(gap.text)}")})


def _fill_finding(case: ET.Element, recording: LintedRecording, found: list[Finding]) -> None:
    text = plain("\n".join(_line(recording, finding) for finding in found))
    if _is_grave(found[0], recording.fail_on):
        attributes = {"type": str(found[0].severity), "message": plain(visible(found[0].message))}
        ET.SubElement(case, "failure", attributes).text = text
    else:
        ET.SubElement(case, "system-out").text = text


def _line(recording: LintedRecording, finding: Finding) -> str:
    excerpt = f"\n    | {visible(finding.excerpt)}" if finding.excerpt else ""
    return f"{visible(recording.path(finding))}:{finding.place.line}: {visible(finding.message)}{excerpt}"


def _is_grave(finding: Finding, fail_on: Severity) -> bool:
    return finding.severity.rank <= fail_on.rank


def contract_junit(checked: Sequence[tuple[str, Sequence[TermResult], Sequence[Gap]]]) -> str:
    """Return the report of recordings, each with its title, the results of the terms, and what it lacks."""
    everything = [result for _, results, _ in checked for result in results]
    root = ET.Element("testsuites", {"name": "mcpspy check", **_counts(everything)})
    for title, results, gaps in checked:
        counts = _counts(results) | {"tests": str(len(results) + len(gaps)), "skipped": str(len(gaps))}
        suite = ET.SubElement(root, "testsuite", {"name": plain(visible(title)), **counts})
        for result in results:
            name = plain(visible(result.term))
            case = ET.SubElement(suite, "testcase", {"classname": "mcpspy.check", "name": name})
            if not result.is_met:
                failure = ET.SubElement(case, "failure", {"message": plain(visible(result.found))})
                failure.text = plain("\n".join(f"{at:.3f}  {visible(text)}" for at, text in result.evidence))
        _add_gaps(suite, "mcpspy.check", gaps)
    return _document(root)


def _counts(results: Sequence[TermResult]) -> dict[str, str]:
    failed = sum(not result.is_met for result in results)
    return {"tests": str(len(results)), "failures": str(failed), "errors": "0"}
