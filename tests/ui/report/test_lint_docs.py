"""docs/lint.md is current and complete."""

from __future__ import annotations

from pathlib import Path

from mcpspy.analysis.lint import RULES
from mcpspy.ui.report.lint_docs import page

ROOT = Path(__file__).parents[3]


def test_the_page_is_current() -> None:
    written = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")

    assert written.startswith(page().rstrip()), "make docs"


def test_every_rule_is_on_it_with_its_examples() -> None:
    text = page()

    for rule in RULES:
        assert f"\n### {rule.code}\n" in text
        assert f"](#{rule.code.lower()})" in text
        assert rule.url in text


def test_nothing_on_it_is_invisible() -> None:
    assert all(line.isprintable() for line in page().split("\n"))
