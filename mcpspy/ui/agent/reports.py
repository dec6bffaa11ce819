"""The tools that judge sessions: `explain`, `lint`, `stats`, `diff` and `export`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, Struct

from mcpspy.analysis import rows
from mcpspy.analysis.diff import ChangeSeverity, DiffOptions, compare
from mcpspy.analysis.diff.model import ignored
from mcpspy.analysis.explain import CAUSES, Cause
from mcpspy.analysis.export import FORMATS, RecordedSession
from mcpspy.analysis.lint import Finding, Severity
from mcpspy.analysis.stats import StatsCollector
from mcpspy.analysis.stats.group import GroupKind
from mcpspy.core.counted import counted
from mcpspy.core.protocol.message import Request
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.session import Change
from mcpspy.errors import UsageError
from mcpspy.ui.agent.answer import BUDGET, AgentAnswer, AnswerBlock, ShownPart, block_text
from mcpspy.ui.agent.queries import Budget, Filter, Name, Offset, kept, read_filter
from mcpspy.ui.agent.sessions import SessionStore
from mcpspy.ui.report import explanation
from mcpspy.ui.report.diff import about, body, change_heading, gravest_first, places
from mcpspy.ui.report.last_good import last_good, since_last_good
from mcpspy.ui.report.lint_scan import RULES_BY_CODE, LintScan, LintSettings, by_rule, visible
from mcpspy.ui.report.stats_table import count_session, methods
from mcpspy.ui.text.numbers import span

MOST_LINES_OF_A_RULE = 10
SLOWEST = 5
KINDS = {kind.code: kind.summary for kind in CAUSES}
"""Code of a cause → its kind in words, without text of peers."""

WIDE = 160
"""Characters of a value in a diff."""


class ExplainArguments(Struct, forbid_unknown_fields=True):
    session: Name = "last"
    line: Annotated[int, Meta(ge=2, description="explain the exchange on this line only")] | None = None
    last_good: Annotated[
        str, Meta(description="session that worked; default: the last one of the server without an error")
    ] = ""
    max_tokens: Budget = BUDGET


class ExplainFacts(Struct):
    session: str
    causes: Annotated[list[str], Meta(description="codes, the most likely cause first")]
    sides: Annotated[
        list[str],
        Meta(
            description="whose mistake each cause is: server, client, proxy, configuration, environment, mcpspy; "
            "empty if open"
        ),
    ]
    observations: Annotated[
        list[str], Meta(description="codes of what is worth knowing, and is not a failure")
    ]
    lines: Annotated[list[int], Meta(description="lines that show the first cause")]
    last_good: Annotated[str, Meta(description="id of the session that worked; empty if there is none")]


class LintArguments(Struct, forbid_unknown_fields=True):
    session: Name = "last"
    codes: Annotated[list[str], Meta(description="only these rules or families: ENV, LIFE3")] = []
    max_tokens: Budget = BUDGET


class LintFacts(Struct):
    session: str
    errors: int
    warnings: int
    infos: int
    codes: Annotated[list[str], Meta(description="codes of the rules with findings, the most severe first")]


class StatsArguments(Struct, forbid_unknown_fields=True):
    session: Name = "last"
    filter: Filter = ""
    sort: Annotated[
        Literal["time", "count", "errors", "p95", "max"],
        Meta(description="order; time: the sum of latencies"),
    ] = "time"
    max_tokens: Budget = BUDGET


class StatsFacts(Struct):
    session: str
    seconds: float
    requests: int
    errors: int
    unanswered: int
    pending: int
    p50_ms: float
    p95_ms: float
    peak_concurrency: int


class DiffArguments(Struct, forbid_unknown_fields=True):
    old: Name
    new: Name = "last"
    volatile: Annotated[
        bool, Meta(description="ignore dates, UUIDs, ids, ports and temporary paths that change in one place")
    ] = True
    ignore: Annotated[list[str], Meta(description="values to ignore: /result/**/time")] = []
    max_tokens: Budget = BUDGET


class DiffFacts(Struct):
    same: bool
    compared: int
    breaking: int
    different: int
    notes: int


class ExportArguments(Struct, forbid_unknown_fields=True):
    format: Literal["markdown", "mermaid", "csv", "jsonl", "har", "otlp"]
    session: Name = "last"
    filter: Filter = ""
    offset: Offset = 0
    max_tokens: Budget = BUDGET


class ExportFacts(Struct):
    session: str
    characters: int


def explain(store: SessionStore, arguments: ExplainArguments) -> AgentAnswer:
    """Explain what went wrong in a session, or on a line. Begin here.

    Returns ranked causes, each with the lines that show it and the next step, and changes since it worked.
    """
    session = store.load(arguments.session)
    diagnosis = explanation.explain(session.readable, line=arguments.line)
    good = store.path(arguments.last_good) if arguments.last_good else None
    if diagnosis.causes and (good := good or last_good(session.path)):
        diagnosis = since_last_good(diagnosis, session.path, good, lambda path: store.load(path).readable)
    causes = diagnosis.causes
    blocks = [
        AnswerBlock(
            "\n".join(
                [
                    f"{number}. {block_text(cause.title)} ({cause.code})",
                    *_signs(cause),
                    f"  next: {block_text(cause.next_step)}",
                ]
            )
        )
        for number, cause in enumerate(causes, 1)
    ]
    for place, each in enumerate(diagnosis.observations):
        heading = [] if place else ["worth knowing:"]
        title = f"- {block_text(each.title)} ({each.code})"
        blocks.append(AnswerBlock("\n".join([*heading, title, *_signs(each)])))
    if diagnosis.last_good is not None:
        blocks.append(AnswerBlock(block_text("\n".join(explanation.since_lines(diagnosis.last_good)))))
    first = f"most likely: {KINDS[causes[0].code]}" if causes else "nothing wrong found"
    lines = [sign.line for sign in causes[0].evidence if sign.part == 1] if causes else []
    worked = "" if good is None or diagnosis.last_good is None else store.load(good).id
    return AgentAnswer(
        f"session {session.id}: {counted(len(causes), 'cause')}; {first}",
        ExplainFacts(
            session.id,
            [cause.code for cause in causes],
            [cause.side for cause in causes],
            [each.code for each in diagnosis.observations],
            lines,
            worked,
        ),
        tuple(blocks),
        more=lambda _: "explain with a line, or a larger max_tokens",
        sessions=[session.id],
    )


def _signs(cause: Cause) -> Iterator[str]:
    """Yield the lines of the recording that show a cause."""
    for sign in cause.evidence:
        place = f"#{sign.line}" if sign.part == 1 else f"part {sign.part}, line {sign.line}"
        yield f"  {place} {block_text(sign.text)}"
    if cause.count > len(cause.evidence):
        yield f"  and {cause.count - len(cause.evidence)} more"


def lint(store: SessionStore, arguments: LintArguments) -> AgentAnswer:
    """Check a session for protocol violations and limits of its host.

    One entry per rule, with lines and a fix.
    """
    session = store.load(arguments.session)
    settings = LintSettings(select=arguments.codes)
    name = session.header.name or session.path.stem
    rules, _ = settings.of(name)
    found = by_rule(LintScan(session.readable, rules, settings.hosts(name)).findings())
    groups = sorted(found.values(), key=lambda findings: (findings[0].severity.rank, -len(findings)))

    def block(findings: list[Finding]) -> AnswerBlock:
        first, rule = findings[0], RULES_BY_CODE[findings[0].code]
        lines = list(dict.fromkeys(f"#{session.line(finding.number)}" for finding in findings))
        more = f" … {len(lines) - MOST_LINES_OF_A_RULE} more" if len(lines) > MOST_LINES_OF_A_RULE else ""
        text = f"{first.code} {first.severity}, {' '.join(lines[:MOST_LINES_OF_A_RULE])}{more}: {visible(first.message)}"
        excerpt = f"\n  | {visible(first.excerpt)[:200]}" if first.excerpt else ""
        return AnswerBlock(f"{text}{excerpt}\n  fix: {' '.join(rule.explanation.split())}", first.code)

    counts = dict.fromkeys(Severity, 0)
    for findings in groups:
        counts[findings[0].severity] += len(findings)
    shown = ", ".join(counted(count, str(severity)) for severity, count in counts.items())
    return AgentAnswer(
        f"lint of session {session.id}: {shown}; one entry per rule",
        LintFacts(
            session.id,
            counts[Severity.ERROR],
            counts[Severity.WARNING],
            counts[Severity.INFO],
            [findings[0].code for findings in groups][:20],
        ),
        tuple(map(block, groups)),
        more=lambda _: "lint with codes of the other rules, or a larger max_tokens",
        sessions=[session.id],
    )


def stats(store: SessionStore, arguments: StatsArguments) -> AgentAnswer:
    """Measure a session: counts, errors, latency and sizes by method and tool.

    Also lists the slowest requests, and those without a response.
    """
    session = store.load(arguments.session)
    query = read_filter(arguments.filter)
    keep = kept(session, query)
    collector = StatsCollector(session.header, query)
    count_session(session.readable, session.id, collector, is_live=session.is_live)
    totals = [collector.groups.total(side) for side in (CLIENT, SERVER)]
    p50, p95 = totals[0].took.quantiles(0.5, 0.95)
    errors = sum(total.errors for total in totals) + (collector.stray_errors if query is None else 0)
    without = [change for change in session.session.unanswered if keep(change)]
    pending = sum(change.exchange is not None and change.exchange.is_open for change in without)
    slowest = sorted(filter(keep, session.session.changes), key=_latency, reverse=True)[:SLOWEST]
    blocks = [
        *(AnswerBlock(f"no outcome: {session.row(change)}") for change in without),
        *(AnswerBlock(f"slow: {session.row(change)}") for change in slowest if _latency(change)),
        *(
            AnswerBlock(text)
            for side in (CLIENT, SERVER)
            for text in _groups(collector, side, arguments.sort)
        ),
    ]
    facts = StatsFacts(
        session.id,
        round(collector.last_at or 0.0, 3),
        sum(total.count for total in totals),
        errors,
        len(without) - pending,
        pending,
        round(p50 * 1000, 3),
        round(p95 * 1000, 3),
        collector.flight.peak,
    )
    still = f"{facts.pending} pending, " if facts.pending else ""
    return AgentAnswer(
        f"session {session.id}: {facts.requests} requests in {facts.seconds:g} s, {facts.errors} errors, "
        f"{facts.unanswered} unanswered, {still}latency p50 {span(p50)}, p95 {span(p95)}",
        facts,
        tuple(blocks),
        more=lambda _: "stats with a filter, or a larger max_tokens",
        sessions=[session.id],
    )


def _latency(change: Change) -> float:
    """Return the latency of an answered request; 0 for other changes."""
    exchange = change.exchange if isinstance(change.what, Request) else None
    return 0.0 if exchange is None else exchange.latency or 0.0


def _groups(collector: StatsCollector, side: str, sort: str) -> Iterator[str]:
    groups = [group for group in collector.groups.of(side, GroupKind.REQUEST) if group.count]
    for table in methods(groups, sort):
        for row in table:
            numbers = {"errors": row.group.errors, "unanswered": row.group.unanswered}
            bad = "".join(f", {number} {name}" for name, number in numbers.items() if number)
            times = row.times
            took = f", p50 {span(times.p50)}, p95 {span(times.p95)}, max" if times.answers > 1 else ","
            took = f"{took} {span(times.most)}" if times.answers else ""
            size = f", {row.group.back // row.group.count:,} B each"
            yield f"{'  ' * row.depth}{rows.arrow(side)} {row.label}: {row.group.count}{bad}{took}{size}"


def diff(store: SessionStore, arguments: DiffArguments) -> AgentAnswer:
    """Compare two sessions: changed tools, schemas, results and errors, the most severe first."""
    old, new = store.load(arguments.old), store.load(arguments.new)
    try:
        patterns = tuple(map(ignored, arguments.ignore))
    except ValueError as error:
        raise UsageError(f"ignore: {error}", "use /result/**/time") from None
    found = compare(old.session, new.session, DiffOptions(ignored=patterns, volatile=arguments.volatile))
    counts = found.counts
    blocks = []
    for case in gravest_first(found):
        lines = [f"{case.severity} {about(case)} · {places(case)}"]
        for change in case.changes:
            lines.append(f"  {change_heading(change)}")
            lines += [f"    {mark} {line}" for mark, line in body(change, WIDE)]
        blocks.append(AnswerBlock("\n".join(lines)))
    facts = DiffFacts(
        found.is_same(ChangeSeverity.DIFFERENT), len(found.cases), *map(counts.__getitem__, ChangeSeverity)
    )
    return AgentAnswer(
        f"{'same' if facts.same else 'changed'}: session {old.id} → {new.id}, {facts.breaking} breaking, "
        f"{facts.different} different, {facts.notes} notes; {len(found.changed)} of {facts.compared} compared changed",
        facts,
        tuple(blocks),
        more=lambda _: "diff with ignore, or a larger max_tokens",
        sessions=[old.id, new.id],
    )


def export(store: SessionStore, arguments: ExportArguments) -> AgentAnswer:
    """Return a session, or its matching exchanges, as Markdown, Mermaid, CSV, JSONL, HAR or OTLP."""
    session = store.load(arguments.session)
    keep = kept(session, read_filter(arguments.filter))
    recorded = RecordedSession(session.header, session.header.name, session.session.changes, keep)
    text = block_text("".join(FORMATS[arguments.format].exporter()([recorded])))

    def more(part: ShownPart) -> str:
        done = arguments.offset + (part.characters or 0)
        return (
            f"export with offset={done} or a narrower filter; the user gets the whole file from "
            f"`mcpspy export {session.id} --format {arguments.format} -o FILE`"
        )

    return AgentAnswer(
        f"session {session.id} as {arguments.format}, {len(text):,} characters, from {arguments.offset}",
        ExportFacts(session.id, len(text)),
        (AnswerBlock(text[arguments.offset :]),),
        more=more,
        sessions=[session.id],
    )
