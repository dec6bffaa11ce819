"""The reports on a session or a run as JSON for the page: statistics, findings, differences …

Each reads the recording in its current state, as the command of the same name does. They take a while: run them in a
thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

import msgspec
import orjson

from mcpspy.analysis import rows
from mcpspy.analysis.apps import AppLinks
from mcpspy.analysis.context import DEFAULT_WINDOW, ContextCollector, definition, size_of
from mcpspy.analysis.diff import DiffOptions, SessionDiff, compare, compare_exchanges
from mcpspy.analysis.explain import Cause, EvidenceLine
from mcpspy.analysis.lint import EntryPosition, Finding
from mcpspy.analysis.negotiation import negotiated
from mcpspy.analysis.stats import StatsCollector
from mcpspy.analysis.trust import interface_of
from mcpspy.core.protocol.extensions import is_for_model
from mcpspy.core.query.parser import parse
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import verdict_tone
from mcpspy.core.session.session import Session
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.recording.listed_session import ListedSession
from mcpspy.io.recording.reader import Recording, RecordingState, Summary
from mcpspy.io.recording.scan import RecordingScan
from mcpspy.io.recording.session_counts import is_too_large
from mcpspy.ui.report import diff as diff_report
from mcpspy.ui.report import explanation, stats_context
from mcpspy.ui.report import stats as stats_report
from mcpspy.ui.report.last_good import compared_with_last_good
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, LintScan, LintSettings, by_rule
from mcpspy.ui.report.stats_table import counted_session

LARGEST = 10
"""Number of largest messages in the statistics."""

MOST_FINDINGS = 200
"""Maximum findings per rule that are listed; all are counted."""

Query = Mapping[str, str]
"""The parameters of the request."""


def stats(summaries: Sequence[Summary], query: Query) -> Any:
    """Return the statistics (docs/stats.md) of the messages that match `q`, one object per session."""
    return {"sessions": [_stats(summary, query.get("q", "")) for summary in summaries]}


def _stats(summary: Summary, text: str) -> dict[str, Any]:
    is_live = summary.state is RecordingState.LIVE
    selected = parse(text) if text.strip() else None
    if selected is not None:
        selected.end = summary.last
    collector = StatsCollector(Recording(summary.path).header, selected, LARGEST)
    with closing(RecordingScan(summary.path)) as scan:
        return stats_report.members(counted_session(summary.header.name, scan, collector, is_live=is_live))


def context(summaries: Sequence[Summary], _: Query) -> Any:
    """Return the context cost (docs/stats.md#context-cost)."""
    collector = ContextCollector()
    for summary in summaries:
        collector.add(_session(summary, "mcpspy stats --context"))
    report = collector.report()
    notes = f"{stats_context.NOTES[report.tokenizer]} {stats_context.CUTS}"
    return {**orjson.loads(stats_context.document(report, DEFAULT_WINDOW)), "notes": notes}


def findings(summaries: Sequence[Summary], _: Query) -> Any:
    """Return the lint findings by rule, the most severe first; `number` is the row of each."""
    (summary,) = summaries
    rules = LintSettings().of(summary.header.name)[0]
    found = by_rule(LintScan(summary.path, rules).findings())
    listed = [
        {
            "code": rule.code,
            "severity": str(rule.severity),
            "summary": rule.summary,
            "explanation": " ".join(rule.explanation.split()),
            "url": rule.url,
            "count": len(found[rule.code]),
            "findings": [*map(_finding, found[rule.code][:MOST_FINDINGS])],
        }
        for rule in sorted(
            map(RULES_BY_CODE.__getitem__, found), key=lambda rule: (rule.severity.rank, rule.code)
        )
    ]
    return {"rules": listed, "total": sum(map(len, found.values()))}


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "number": finding.number + 1,
        "at": finding.at,
        "message": sanitize(finding.message),
        "excerpt": sanitize(finding.excerpt or ""),
    }


def explained(summaries: Sequence[Summary], _: Query) -> Any:
    """Return the diagnosis (docs/explain.md); `number` is the row of a line of the evidence, or null."""
    (summary,) = summaries
    diagnosis = compared_with_last_good(explanation.explain(summary.path), summary.path)
    numbers: dict[EntryPosition, int] = {}
    for number, place in enumerate(explanation.places_of(summary.path), 1):
        numbers.setdefault(place, number)

    def shown(lines: Sequence[EvidenceLine]) -> list[dict[str, Any]]:
        return [
            {"number": numbers.get(EntryPosition(each.line, each.part)), "text": each.text} for each in lines
        ]

    def members(cause: Cause) -> dict[str, Any]:
        return {**msgspec.to_builtins(cause), "evidence": shown(cause.evidence)}

    good = diagnosis.last_good
    return {
        "last_good": good and {**msgspec.to_builtins(good), "changes": shown(good.changes)},
        "summary": diagnosis.summary,
        "causes": [*map(members, diagnosis.causes)],
        "observations": [*map(members, diagnosis.observations)],
    }


def capabilities(summaries: Sequence[Summary], _: Query) -> Any:
    """Return what the server declared in the last handshake, and listed in the last listings, with token estimates."""
    session = _session(summaries[0], "mcpspy trust")
    found, apps = interface_of(session), AppLinks()
    for change in session.changes:
        apps.add(change, session.client_capabilities)
    return {
        "server": found.server,
        "revision": found.revision or session.revision,
        "instructions": found.instructions,
        "capabilities": {"server": found.capabilities, "client": session.client_capabilities},
        "extensions": [
            {**each._asdict(), "status": each.status}
            for each in negotiated(
                session.client_capabilities,
                found.capabilities,
                {exchange.request.method for exchange in session.exchanges},
            )
        ],
        "listings": {
            member: [
                {
                    "name": name,
                    **_texts(item),
                    "app": sanitize(apps.about(item)) if member == "tools" else "",
                    "tokens": size_of(definition(item)).tokens
                    if member == "tools" and is_for_model(item)
                    else None,
                    "definition": orjson.dumps(item, default=str).decode(),
                }
                for name, item in items.items()
            ]
            for member, items in found.items.items()
        },
    }


def _texts(item: dict[str, Any]) -> dict[str, str]:
    """Return the title and the description of a listed item; of a skill, those of its frontmatter."""
    front = item.get("frontmatter")
    texts = {"title": front.get("name"), **front} if isinstance(front, dict) else item
    return {"title": _text(texts, "title"), "description": _text(texts, "description")}


def diff(summaries: Sequence[Summary], query: Query) -> Any:
    """Return the differences of two sessions, or of two exchanges (`old` and `new` are their rows) of one session."""
    options, old = DiffOptions(), _session(summaries[0], "mcpspy diff")
    if len(summaries) > 1:
        difference = compare(old, _session(summaries[1], "mcpspy diff"), options)
        titles = sanitize(summaries[0].header.name), sanitize(summaries[1].header.name)
    else:
        numbers = int(query.get("old", 0)), int(query.get("new", 0))
        one, other = (_exchange(old, number) for number in numbers)
        difference = SessionDiff((compare_exchanges(one, other, options),))
        titles = f"row {numbers[0]}", f"row {numbers[1]}"
    return orjson.loads(diff_report.document(difference, titles))


REPORTS: dict[str, Callable[[Sequence[Summary], Query], Any]] = {
    "stats": stats,
    "context": context,
    "findings": findings,
    "explain": explained,
    "capabilities": capabilities,
    "diff": diff,
}
"""Name in the address → function of a session, and for `diff` another one."""

RUN_REPORTS = ("stats", "context")
"""Reports that can be of all sessions of a run."""


def state_tone(listed: ListedSession) -> str:
    """Return the tone of a session's verdict."""
    return verdict_tone(listed.verdict) or rows.QUIET


def _session(summary: Summary, command: str) -> Session:
    """Return a whole session in memory. Raise CannotStart for one that is too large for a page."""
    if is_too_large(summary):
        why = f"{summary.path.name}: {rows.size(summary.size)}B, too large for this view"
        raise CannotStart(why, f"use {command}")
    return Recording(summary.path).session()


def _exchange(session: Session, number: int) -> Exchange:
    exchange = session.changes[number - 1].exchange if 0 < number <= len(session.changes) else None
    if exchange is None:
        raise UsageError(f"row {number}: not a request or a response", "choose two requests")
    return exchange


def _text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""
