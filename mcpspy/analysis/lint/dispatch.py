"""Selection of the rules that concern an event, and the findings made from their reports.

Owns one table: the rules for each kind, method, side and revision, filled when the first such event comes.
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
"""Entries of the table: a peer may send any method."""


class RuleDispatch:
    """The rules of one linter."""

    def __init__(self, rules: Iterable[LintRule]) -> None:
        self._rules = tuple(rules)
        self._tables: dict[tuple[EventKind, str, str, str | None, bool, bool], tuple[LintRule, ...]] = {}
        self._reported_once: set[tuple[str, str]] = set()

    def check(self, kind: EventKind, event: LintEvent) -> list[Finding]:
        """Return the findings of all rules that concern an event."""
        is_text = kind is EventKind.RESULT and event.method == "tools/call" and event.is_text
        key = kind, event.method, event.side, event.revision, event.is_unusual, is_text
        rules = self._tables.get(key)
        if rules is None:
            rules = tuple(
                rule
                for rule in self._rules
                if rule.concerns(kind, event.method, event.side)
                and rule.holds_in(event.revision)
                and (event.is_unusual or not rule.unusual)
                and not (is_text and rule.beyond_text)
            )
            if len(self._tables) < MOST:
                self._tables[key] = rules
        found: list[Finding] = []
        for rule in rules:
            for report in rule.check(event):
                if rule.once:
                    if (rule.code, event.side) in self._reported_once:
                        break
                    self._reported_once.add((rule.code, event.side))
                found.append(
                    Finding(
                        rule.code,
                        rule.severity,
                        report.message,
                        _excerpt(report.excerpt, event.what),
                        event.place,
                        event.number,
                        event.at,
                        event.side,
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
