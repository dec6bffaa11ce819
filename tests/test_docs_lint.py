"""docs/lint.md is current and complete."""

from __future__ import annotations

from pathlib import Path

from docs.lint_rules import page
from mcpspy.analysis.lint import RULES

PAGE = (Path(__file__).parents[1] / "docs" / "lint.md").read_text(encoding="utf-8")


def test_the_page_is_current() -> None:
    assert PAGE.startswith(page(PAGE).rstrip()), "make docs"


def test_the_sections_before_the_rules_are_kept() -> None:
    assert page("# A page\n\n## ENV: old\n\nold rule\n").startswith("# A page\n\n## ENV: Envelope")
    assert "old rule" not in page("# A page\n\n## ENV: old\n\nold rule\n")


def test_every_rule_is_on_it_with_its_examples() -> None:
    text = page(PAGE)

    for rule in RULES:
        assert f"\n### {rule.code}\n" in text
        assert f"](#{rule.code.lower()})" in text
        assert rule.url in text


def test_nothing_on_it_is_invisible() -> None:
    assert all(line.isprintable() for line in page(PAGE).split("\n"))
