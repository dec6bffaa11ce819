"""Lint findings as JUnit XML, parsed."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from mcpspy.analysis.lint import Severity
from mcpspy.ui.report.junit import lint_junit
from tests.ui.report.linting import HOSTILE, finding, linted


def test_a_rule_is_a_case_and_severe_findings_fail() -> None:
    mixed = linted(finding(), finding(), finding("LIFE201", Severity.WARNING))
    root = ET.fromstring(lint_junit([mixed, linted(title="clean")]))

    assert root.attrib == {"name": "mcpspy lint", "tests": "3", "failures": "1", "errors": "0"}
    first, clean = root
    assert first.attrib == {"name": "a b.jsonl", "tests": "2", "failures": "1", "errors": "0", "skipped": "0"}
    grave, lesser = first
    assert grave.attrib == {"classname": "mcpspy.lint.ENV", "name": "ENV101 line that is not JSON"}
    failure = grave.find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "error", "message": "not JSON"}
    assert failure.text == "\n".join(["a b.jsonl:7: not JSON\n    | DEBUG"] * 2)
    assert lesser.find("failure") is None
    assert lesser.findtext("system-out") == "a b.jsonl:7: not JSON\n    | DEBUG"
    assert [case.attrib["name"] for case in clean] == ["no findings"]


def test_fail_on_sets_the_severity_at_which_a_case_fails() -> None:
    root = ET.fromstring(lint_junit([HOSTILE._replace(fail_on=Severity.WARNING)]))

    assert root.attrib["failures"] == "2"


def test_texts_of_peers_are_valid_xml() -> None:
    text = lint_junit([HOSTILE])

    ET.fromstring(text)
    assert not set(text) & set("\x1b\u202e\ud800")


COUNTS = {"tests", "failures", "errors"}

# Element → required attributes, optional attributes, and elements allowed in it: the plain form that the parsers of CI
# servers share. It is derived from the parsers, not an official schema.
FORM: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": (COUNTS, {"name", "time", "disabled"}, {"testsuite"}),
    "testsuite": (
        {"name", "skipped", *COUNTS},
        {"time", "timestamp", "hostname", "id", "package", "disabled"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": (
        {"name", "classname"},
        {"time", "assertions", "status", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"message", "type"}, set(), set()),
    "system-out": (set(), set(), set()),
}


@pytest.mark.parametrize("fail_on", list(Severity))
def test_a_document_is_of_the_form_that_ci_servers_read(fail_on: Severity) -> None:
    several = [
        HOSTILE,
        linted(title="clean"),
        linted(finding(), finding("ENV102"), finding("SEC201", Severity.INFO)),
    ]
    for recordings in ([], several[:1], several):
        root = ET.fromstring(lint_junit([recording._replace(fail_on=fail_on) for recording in recordings]))
        assert root.tag == "testsuites"
        for element in root.iter():
            required, optional, inside = FORM[element.tag]
            assert required <= set(element.attrib) <= required | optional
            assert {child.tag for child in element} <= inside
            assert not inside or not (element.text or "").strip()
        for group in (root, *root):
            cases = list(group.iter("testcase"))
            assert int(group.attrib["tests"]) == len(cases)
            assert int(group.attrib["failures"]) == sum(case.find("failure") is not None for case in cases)
            assert (group.attrib["errors"], group.attrib.get("skipped", "0")) == ("0", "0")
            named = [(case.attrib["classname"], case.attrib["name"]) for case in group.findall("testcase")]
            assert len(named) == len(set(named))
