"""Selection of rules by `--select` and `--ignore`: codes or prefixes of codes.

As in ruff, the longer prefix wins: `--select ENV --ignore ENV1 --select ENV101` leaves ENV101.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import RULES


def selected(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[LintRule, ...]:
    """Return the selected rules, all if `select` is empty; raise ValueError with the first word that matches no code.

    Words may contain several codes, separated by commas.
    """
    chosen, left_out = _codes(select), _codes(ignore)
    return tuple(rule for rule in RULES if _longest(rule, chosen, 0) > _longest(rule, left_out, -1))


def _codes(words: Iterable[str]) -> list[str]:
    codes = [code.strip().upper() for word in words for code in word.split(",") if code.strip()]
    for code in codes:
        if not any(rule.code.startswith(code) for rule in RULES):
            raise ValueError(code)
    return codes


def _longest(rule: LintRule, codes: list[str], none: int) -> int:
    """Return the length of the longest prefix that matches a rule; `none` if there are no codes."""
    if not codes:
        return none
    return max((len(code) for code in codes if rule.code.startswith(code)), default=-1 if none == 0 else none)
