"""SARIF, validated against its schema (OASIS SARIF 2.1.0)."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft7Validator

from mcpspy.analysis.lint import RULES, Severity
from mcpspy.ui.report.lint import sarif
from mcpspy.ui.report.lint_scan import LintedRecording
from tests.ui.report.linting import HOSTILE, finding, linted

PACKAGE = Path(__file__).parents[3] / ".peers" / "node_modules" / "@microsoft" / "jest-sarif"
# The schema declares draft 4, but draft 7, which the published one uses, reads all of it the same way; it also uses
# formats that only draft 7 defines. One pattern has a bracket that Rust wants escaped.
SCHEMA = PACKAGE / "lib" / "schemas" / "sarif-2.1.0-rtm.5.json"


@cache
def validator() -> Draft7Validator:
    """Return the validator. Tests are collected before the peers are installed (make check)."""
    text = SCHEMA.read_text(encoding="utf-8")
    return Draft7Validator(json.loads(text.replace("{2}]?$", "{2}\\\\]?$")), validate_formats=True)


URI = re.compile(r"[A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")


def checked(*recordings: LintedRecording) -> dict[str, Any]:
    """Return the log after validation by the schema, and by checks beyond it."""
    log: dict[str, Any] = json.loads(sarif(recordings))
    validator().validate(log)
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run.keys() == {"tool", "columnKind", "results"}
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    driver = run["tool"]["driver"]
    assert isinstance(driver["name"], str)
    assert isinstance(driver["version"], str)
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(set(ids)) == len(ids)
    for rule in driver["rules"]:
        assert rule.keys() == {
            "id",
            "shortDescription",
            "fullDescription",
            "help",
            "helpUri",
            "defaultConfiguration",
        }
        assert isinstance(rule["shortDescription"]["text"], str)
        assert isinstance(rule["fullDescription"]["text"], str)
        assert URI.fullmatch(rule["helpUri"])
        assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
    for result in run["results"]:
        assert result.keys() == {
            "ruleId",
            "ruleIndex",
            "level",
            "message",
            "locations",
            "partialFingerprints",
        }
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert isinstance(result["message"]["text"], str)
        assert all(re.fullmatch("[0-9a-f]{16}", value) for value in result["partialFingerprints"].values())
        for location in result["locations"]:
            physical = location["physicalLocation"]
            assert physical.keys() == {"artifactLocation", "region"}
            assert URI.fullmatch(physical["artifactLocation"]["uri"])
            assert physical["region"]["startLine"] >= 1
            assert isinstance(physical["region"].get("snippet", {"text": ""})["text"], str)
    return run  # type: ignore[no-any-return]  # A dict, as was looked at.


def test_a_finding_is_a_result_at_its_line() -> None:
    (result,) = checked(linted(finding()))["results"]

    assert (result["ruleId"], result["level"], result["message"]["text"]) == ("ENV101", "error", "not JSON")
    assert result["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20b.jsonl"},
        "region": {"startLine": 7, "snippet": {"text": "DEBUG"}},
    }


def test_a_result_has_the_fingerprint_of_the_finding() -> None:
    (first, moved, other) = checked(linted(finding(), finding(number=9), finding(side="client")))["results"]

    assert first["partialFingerprints"] == {"mcpspyFinding/v1": finding().fingerprint("a")}
    assert first["partialFingerprints"] == moved["partialFingerprints"] != other["partialFingerprints"]


def test_every_rule_makes_a_valid_log() -> None:
    run = checked(linted(*(finding(rule.code, rule.severity, excerpt="") for rule in RULES)))

    assert len(run["results"]) == len(RULES)
    assert {result["level"] for result in run["results"]} == {"error", "warning", "note"}


def test_nothing_found_is_an_empty_run() -> None:
    assert checked(linted())["results"] == []


def test_an_absolute_path_is_a_file_uri_and_texts_of_peers_are_escaped() -> None:
    (result,) = checked(linted(finding(severity=Severity.INFO), parts=("/tmp/a b.jsonl",)))["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "file:///tmp/a%20b.jsonl"

    assert checked(HOSTILE)["results"][0]["message"]["text"].isprintable()


def test_the_schema_refuses_an_invalid_log() -> None:
    log = json.loads(sarif([linted(finding())]))
    log["runs"][0]["results"][0]["level"] = "grave"

    assert not validator().is_valid(log)
