"""Which rules look at what, and what they say of it, as findings.

Owns the tables: for each kind, method, side and revision, the rules that
concern it, put together the first time there is such a thing and looked up from
then on. Refuses to know what the rules know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from mcpspy.analysis.lint.event import LintEvent
from mcpspy.analysis.lint.finding import EventKind, Finding
from mcpspy.analysis.lint.rule import LintRule
from mcpspy.core.protocol.message import AnyMessage, Message, text
from mcpspy.core.recording.decode import Damaged, Note

EXCERPT = 200
"""Characters of an excerpt."""

MOST = 1000
"""Tables that are kept: a method may be anything."""


class RuleDispatch:
    """The rules of one linter."""

    def __init__(self, rules: Iterable[LintRule]) -> None:
        self._rules = tuple(rules)
        self._tables: dict[tuple[EventKind, str, str, str | None, bool, bool], tuple[LintRule, ...]] = {}
        self._told_once: set[tuple[str, str]] = set()

    def look(self, kind: EventKind, seen: LintEvent) -> list[Finding]:
        """Have the rules look that concern it; return what they found."""
        is_text = kind is EventKind.RESULT and seen.method == "tools/call" and seen.is_text
        key = kind, seen.method, seen.side, seen.revision, seen.is_odd, is_text
        rules = self._tables.get(key)
        if rules is None:
            rules = tuple(
                rule
                for rule in self._rules
                if rule.concerns(kind, seen.method, seen.side)
                and rule.holds_in(seen.revision)
                and (seen.is_odd or not rule.odd)
                and not (is_text and rule.beyond_text)
            )
            if len(self._tables) < MOST:
                self._tables[key] = rules
        found: list[Finding] = []
        for rule in rules:
            for told in rule.look(seen):
                if rule.once:
                    if (rule.code, seen.side) in self._told_once:
                        break
                    self._told_once.add((rule.code, seen.side))
                found.append(
                    Finding(
                        rule.code,
                        rule.severity,
                        told.message,
                        _excerpt(told.excerpt, seen.what),
                        seen.place,
                        seen.number,
                        seen.at,
                        seen.side,
                    )
                )
        return found


def _excerpt(value: Any, what: AnyMessage | Note | Damaged) -> str:
    if value is None:
        if isinstance(what, Message):
            value = what.data
        else:
            return what.text if isinstance(what, Note) else ""
    if isinstance(value, str):
        written = value
    elif isinstance(value, bytes):
        written = value[: EXCERPT * 4].decode("utf-8", "backslashreplace")
    elif isinstance(value, Raw):
        written = text(value) or ""
    else:
        try:
            written = json.dumps(value, ensure_ascii=False)
        except (ValueError, RecursionError):
            written = "…"
    return written if len(written) <= EXCERPT else written[: EXCERPT - 1] + "…"
