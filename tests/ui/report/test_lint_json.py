"""Findings as one JSON document."""

from __future__ import annotations

import json

from mcpspy.ui.report.lint import document
from mcpspy.ui.report.lint_scan import RULES_BY_CODE
from tests.ui.report.linting import EVIL, HOSTILE, finding, linted


def test_a_finding_has_all_members() -> None:
    report = json.loads(document([linted(finding())]))

    assert report == {
        "recordings": ["a b.jsonl"],
        "counts": {"error": 1, "warning": 0, "info": 0},
        "incomplete": [],
        "findings": [
            {
                "code": "ENV101",
                "severity": "error",
                "message": "not JSON",
                "recording": "a b.jsonl",
                "path": "a b.jsonl",
                "line": 7,
                "n": 5,
                "t": 1.5,
                "from": "server",
                "excerpt": "DEBUG",
                "url": "https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio",
                "hint": " ".join(RULES_BY_CODE["ENV101"].explanation.split()),
                "fingerprint": finding().fingerprint("a"),
            }
        ],
    }


def test_a_value_is_whole_and_the_document_ascii() -> None:
    text = document([HOSTILE])

    assert text.isascii()
    assert json.loads(text)["findings"][0]["message"] == EVIL
