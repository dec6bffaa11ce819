"""Which rules are asked for: `--select` and `--ignore`, by code or the beginning of one.

Owns the reading of both. As in ruff, the longer beginning wins: `--select ENV
--ignore ENV1 --select ENV101` leaves ENV101.
"""

from __future__ import annotations

from collections.abc import Iterable

from mcpspy.analysis.lint.rule import LintRule
from mcpspy.analysis.lint.rules import RULES


def selected(select: Iterable[str] = (), ignore: Iterable[str] = ()) -> tuple[LintRule, ...]:
    """Return the rules that are left; raise ValueError with the word that is none of their codes.

    Nothing selected is everything. Words may hold several codes, with commas between.
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
    """Return how many letters of a rule's code are named; without any codes, what that counts as."""
    if not codes:
        return none
    return max((len(code) for code in codes if rule.code.startswith(code)), default=-1 if none == 0 else none)
