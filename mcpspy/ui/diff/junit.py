"""A difference for a CI server: JUnit XML, a test case for everything compared.

Owns the shape that Jenkins, GitLab, GitHub's reporters and pytest agree on: one
suite; a case with a change grave enough has one `failure`; lesser changes are
its `system-out`.
"""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree as ET

from mcpspy.analysis.diff import ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.diff import lines, words
from mcpspy.ui.xml import plain

WIDE = 500
"""Characters of a value."""


def junit(
    difference: SessionDiff, titles: tuple[str, str], *, fail_on: ChangeSeverity = ChangeSeverity.DIFFERENT
) -> str:
    """Return the document. `titles` name the old session and the new one."""
    cases = difference.cases
    failed = [case for case in cases if _grave(case, fail_on)]
    counts = {
        "tests": str(len(cases)),
        "failures": str(len(failed)),
        "errors": "0",
        "time": _seconds(sum(case.latency or 0.0 for case in cases)),
    }
    root = ET.Element("testsuites", {"name": "mcpspy", **counts})
    title = plain(f"{titles[0]} {words.ARROW} {titles[1]}")
    suite = ET.SubElement(root, "testsuite", {"name": title, **counts, "skipped": "0"})
    seen: Counter[str] = Counter()
    for case in cases:
        name = plain(words.about(case))
        seen[name] += 1
        numbered = name if seen[name] == 1 else f"{name} #{seen[name]}"
        attributes = {
            "classname": f"mcpspy.{plain(sanitize(case.method))}",
            "name": numbered,
            "time": _seconds(case.latency or 0.0),
        }
        _fill(ET.SubElement(suite, "testcase", attributes), case, fail_on)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _fill(element: ET.Element, case: ComparedCase, fail_on: ChangeSeverity) -> None:
    grave = _grave(case, fail_on)
    if grave:
        first = min(grave, key=lambda change: change.severity.rank)
        attributes = {"type": str(first.severity), "message": plain(lines.head(first))}
        failure = ET.SubElement(element, "failure", attributes)
        failure.text = plain("\n".join([words.places(case), *map(_text, grave)]))
    if lesser := [change for change in case.changes if change.severity.rank > fail_on.rank]:
        ET.SubElement(element, "system-out").text = plain("\n".join(map(_text, lesser)))


def _grave(case: ComparedCase, fail_on: ChangeSeverity) -> list[DiffChange]:
    return [change for change in case.changes if change.severity.rank <= fail_on.rank]


def _text(change: DiffChange) -> str:
    body = [f"  {mark} {line}" for mark, line in lines.body(change, WIDE)]
    return "\n".join([f"{change.severity}: {lines.head(change)}", *body])


def _seconds(seconds: float) -> str:
    return f"{seconds:.6f}"
