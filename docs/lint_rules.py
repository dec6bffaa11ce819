"""Generator of the rules in docs/lint.md: `make docs`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from mcpspy.analysis.lint import RULES, LintRule
from mcpspy.analysis.lint.rules import FAMILIES
from mcpspy.ui.report.lint_scan import visible

WIDTH = 120

LONGEST = 400


def page(current: str) -> str:
    """Return the page with the sections of the rules; those before the first family are kept."""
    return current.partition(f"\n## {next(iter(FAMILIES))}: ")[0] + "".join(_lines())


def _lines() -> Iterator[str]:
    for family, about in FAMILIES.items():
        rules = [rule for rule in RULES if rule.family == family]
        yield f"\n## {family}: {about}\n\n| code | | finding | revisions |\n|---|---|---|---|\n"
        for rule in rules:
            yield f"| [{rule.code}](#{rule.code.lower()}) | {rule.severity} | {_cell(rule.summary)} | {rule.revisions} |\n"
        for rule in rules:
            yield from _rule(rule)


def _rule(rule: LintRule) -> Iterator[str]:
    yield f"\n### {rule.code}\n\n"
    yield _wrapped(f"**{rule.summary}** · {rule.severity} · {rule.revisions} · [specification]({rule.url})")
    yield "\n" + _wrapped(rule.explanation)
    for title, examples in (("Wrong", rule.invalid), ("Right", rule.valid)):
        written = "\n\n".join("\n".join(map(str.strip, example.strip().splitlines())) for example in examples)
        yield f"\n{title}:\n\n```text\n{_short(written)}\n```\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False) + "\n"


def _short(text: str) -> str:
    lines = map(visible, text.split("\n"))
    return "\n".join(line if len(line) <= LONGEST else line[: LONGEST - 1] + "…" for line in lines)
