"""The context cost of sessions as text, JSON and Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import to_builtins

from mcpspy.analysis import rows
from mcpspy.analysis.context import ContextReport, Size, share, total
from mcpspy.analysis.export.markdown import code_span
from mcpspy.core.counted import counted
from mcpspy.core.sanitize import sanitize
from mcpspy.ui.text.terminal import columns
from mcpspy.ui.text.width import cells, cut

Lines = Iterator[tuple[str, str | None]]

MOST = 60
"""Maximum width of a name in a text."""

_SIZE = ("bytes", "tokens", "share")

NOTES = {
    "estimate": "Tokens are estimates (docs/stats.md).",
    "o200k": "Tokens are those of o200k; other models count differently.",
}
CUTS = "A recording does not show what a host cut from a result."


class _Table(NamedTuple):
    heads: Sequence[str]
    """The first one is the title of the table."""
    rows: Sequence[Sequence[str]]


def text(report: ContextReport, window: int, top: int) -> Lines:
    yield from ((line, None) for line in _summary(report, window))
    for heads, found in _tables(report, window):
        shown = [(cut(name, MOST), *numbers) for name, *numbers in (heads, *found[:top])]
        widths = [max(map(cells, column)) for column in zip(*shown, strict=True)]
        yield "", None
        for at, row in enumerate(shown):
            yield columns(row, [widths[0], *(-width for width in widths[1:])]), None if at else rows.QUIET
        if len(found) > top:
            yield f"… {len(found) - top} more (--top)", rows.QUIET
    yield "", None
    yield f"{NOTES[report.tokenizer]} {CUTS}", rows.QUIET


def markdown(report: ContextReport, window: int, top: int) -> Lines:
    yield "### mcpspy stats --context", None
    for line in _summary(report, window):
        yield f"\n{code_span(line)}", None
    for heads, found in _tables(report, window):
        yield f"\n| {' | '.join(heads)} |\n|---|{'--:|' * (len(heads) - 1)}", None
        for name, *numbers in found[:top]:
            yield f"| {' | '.join((code_span(name).replace('|', chr(92) + '|'), *numbers))} |", None
        if len(found) > top:
            yield f"\n… {len(found) - top} more", None
    yield f"\n{NOTES[report.tokenizer]} {CUTS}", None


def document(report: ContextReport, window: int) -> bytes:
    """Return one JSON object: docs/stats.md defines its members."""
    members = {"window": window, **to_builtins(report)}
    members["repeated"] = [call._asdict() for call in report.repeated]
    return json.dumps(members, separators=(",", ":")).encode() + b"\n"


def _summary(report: ContextReport, window: int) -> Iterator[str]:
    servers = ", ".join(sanitize(name or "?") for name in report.servers)
    yield f"{counted(report.sessions, 'session')} of {counted(len(report.servers), 'server')}: {servers}"
    start = report.start
    part = share(start.tokens, window)
    yield f"before the first call: {start.tokens:,} tokens, {rows.size(start.bytes)}, {part} of {window:,}"


def _tables(report: ContextReport, window: int) -> Iterator[_Table]:
    def named(server: str, name: str) -> str:
        return sanitize(f"{server}: {name}" if len(report.servers) > 1 else name)

    def size(size: Size | None) -> tuple[str, ...]:
        return (
            (f"{size.bytes:,}", f"{size.tokens:,}", share(size.tokens, window)) if size else ("·", "·", "·")
        )

    lists = [
        (
            name,
            f"{found.count:,}",
            *(size(found.size) if name != "apps" else (f"{found.size.bytes:,}", "·", "·")),
        )
        for name, found in report.lists.items()
        if found.count  # The model sees no app, so that its tokens would say nothing.
    ]
    yield _Table(("lists", "count", *_SIZE), lists)
    tools = [(named(tool.server, tool.name), tool) for tool in report.tools]
    if tools:
        definitions = [(name, f"{tool.calls:,}", *size(tool.definition)) for name, tool in tools]
        yield _Table(("tool definitions", "calls", *_SIZE), definitions)
    results = [*((name, tool.results) for name, tool in tools if tool.results), *report.others.items()]
    if results:
        results.sort(key=lambda row: -row[1].total.tokens)
        costs = [
            (
                name,
                f"{cost.count:,}",
                *(f"{each.tokens:,}" for each in (cost.p50, cost.p95, cost.max)),
                *size(cost.total),
                f"{cost.media:,}" if cost.media else "·",
            )
            for name, cost in results
        ]
        yield _Table(("results", "count", "p50", "p95", "largest", *_SIZE, "media"), costs)
    if unused := [(name, tool.definition) for name, tool in tools if tool.definition and not tool.calls]:
        title = f"never called: {len(unused)} of {counted(report.lists['tools'].count, 'tool')}"
        whole = ("total", *size(total(each for _, each in unused)))
        yield _Table((title, *_SIZE), [whole, *((name, *size(each)) for name, each in unused)])
    if report.repeated:
        repeated = [
            (f"{named(call.server, call.tool)} {sanitize(call.arguments)}", f"{call.calls:,}")
            for call in report.repeated
        ]
        yield _Table(("same arguments in one session", "calls"), repeated)
