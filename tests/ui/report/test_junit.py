"""A diff as JUnit XML for a CI server."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from mcpspy.analysis.diff import ChangeSeverity, SessionDiff
from mcpspy.ui.report.junit import diff_junit

ALLOWED = {
    "testsuites": ({"name", "tests", "failures", "errors", "time", "disabled"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "assertions", "time", "classname", "status"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set()),
    "system-out": (set(), set()),
}  # fmt: skip
"""Element → attributes and children that the Jenkins JUnit schema (junit-10.xsd) allows."""


def valid(text: str) -> ET.Element:
    """Return the root of a document that is valid by the schema and has the right counts."""
    root = ET.fromstring(text)
    for element in root.iter():
        attributes, children = ALLOWED[element.tag]
        assert element.attrib.keys() <= attributes
        assert {child.tag for child in element} <= children
    assert root.tag == "testsuites"
    for suite in root:
        cases = suite.findall("testcase")
        failed = [case for case in cases if case.find("failure") is not None]
        assert suite.attrib["tests"] == root.attrib["tests"] == str(len(cases))
        assert suite.attrib["failures"] == root.attrib["failures"] == str(len(failed))
        assert all(case.attrib["name"] and case.attrib["classname"] for case in cases)
        assert len({case.attrib["name"] for case in cases}) == len(cases)
        assert abs(float(suite.attrib["time"]) - sum(float(case.attrib["time"]) for case in cases)) < 1e-5
    return root


def test_a_document_is_valid_with_any_text_of_a_peer(difference: SessionDiff, hostile: str) -> None:
    root = valid(diff_junit(difference, (hostile, "b"), fail_on=ChangeSeverity.DIFFERENT))

    names = [case.attrib["name"] for case in root.iter("testcase")]
    assert names[:3] == ["handshake", "ping", "ping #2"]
    assert names[3].startswith("tools/call \\x1b[2J")
    failures = list(root.iter("failure"))
    assert [failure.attrib["type"] for failure in failures] == ["breaking", "different", "different"]
    assert failures[0].attrib["message"].startswith("error  /error  ok → ")
    assert failures[0].text is not None
    assert failures[0].text.startswith("exchange 2 → 3, line 5 → 6\nbreaking: error  /error")
    assert "different: result" in failures[0].text
    assert "note:" not in failures[0].text
    assert len(list(root.iter("system-out"))) == 2
    assert root.attrib["time"] == "1.750000"


def test_fail_on_decides_which_cases_fail(difference: SessionDiff) -> None:
    strict = valid(diff_junit(difference, ("a", "b"), fail_on=ChangeSeverity.NOTE))
    lax = valid(diff_junit(difference, ("a", "b"), fail_on=ChangeSeverity.BREAKING))

    assert (strict.attrib["failures"], lax.attrib["failures"]) == ("4", "1")


def test_nothing_compared_is_valid_too() -> None:
    assert valid(diff_junit(SessionDiff(()), ("a", "b"))).attrib["tests"] == "0"
