"""The statistics of a recording in its current state, and their texts. All text is sanitized here."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from mcpspy.analysis import rows
from mcpspy.analysis.stats import MessageGroup, StatsCollector
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State
from mcpspy.io.recording.scan import LineBlock
from mcpspy.ui.text.terminal import scanned


class CountedSession(NamedTuple):
    title: str
    stats: StatsCollector
    is_live: bool
    paths: tuple[str, ...]


def count_session(path: Path, title: str, stats: StatsCollector, *, is_live: bool) -> CountedSession:
    """Return the statistics of a whole recording, with a progress bar while it is read."""
    with closing(scanned(path, is_live=is_live)) as blocks:
        return counted_session(title, blocks, stats, is_live=is_live)


def counted_session(
    title: str, blocks: Iterable[LineBlock], stats: StatsCollector, *, is_live: bool
) -> CountedSession:
    """Return the statistics of these lines. `is_live` is the state before the first block was read."""
    parts: list[Path] = []
    for block in blocks:
        if block.path not in parts:
            parts.append(block.path)
            stats.begin_part()
        stats.add_lines(block.lines)
    stats.finish(is_over=not is_live)
    return CountedSession(sanitize(title), stats, is_live, tuple(map(str, parts)))


def head(counted: CountedSession) -> list[str]:
    stats, header = counted.stats, counted.stats.header
    assert header is not None
    what = rows.server(header)
    clients = stats.handshakes.clients
    client = str(stats.client or "?")
    if clients.total() > 1:
        client = ", ".join(
            f"{name or '?'} x{count}" if count > 1 else name or "?" for name, count in clients.most_common(3)
        ) + ("…" if len(clients) > 3 else "")
    parts = [
        f"{client} → {stats.server or '?'}" if stats.client or stats.server else "",
        f"protocol {stats.revision_text}" if stats.revision_text else "",
        ending(counted),
    ]
    return [
        sanitize(" · ".join(filter(None, (header.name, header.id, header.started, what)))),
        sanitize(" · ".join(filter(None, parts))),
    ]


def ending(counted: CountedSession) -> str:
    if counted.is_live:
        return "live: numbers so far"
    return rows.ending(counted.stats.exit) or "died: no exit note"


def states(group: MessageGroup) -> str:
    """Return the number of requests by state: `12: 9 ok, 2 error, 1 no answer`."""
    parts = ", ".join(f"{group.states[state]:,} {state}" for state in State if group.states[state])
    return f"{group.count:,}: {parts}" if parts else f"{group.count:,}"


def method(group: MessageGroup) -> str:
    return sanitize(group.method) or f"(other {group.kind}s)"


def subject(group: MessageGroup) -> str:
    return "(others)" if group.subject is None else sanitize(group.subject) or '""'


def arrow(side: str) -> str:
    return rows.FROM_CLIENT if side == CLIENT else rows.FROM_SERVER
