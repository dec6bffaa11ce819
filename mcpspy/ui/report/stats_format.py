"""Texts and bars for the statistics of one or several sessions. All text is sanitized here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from mcpspy.analysis import rows
from mcpspy.analysis.stats import MessageGroup, StatsCollector
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State
from mcpspy.io.recording.scan import LineBlock


class CountedSession(NamedTuple):
    title: str
    stats: StatsCollector
    is_live: bool
    paths: tuple[str, ...]


def counted_session(
    title: str, blocks: Iterable[LineBlock], stats: StatsCollector, *, is_live: bool
) -> CountedSession:
    """Count the lines of a session. `is_live` is its state before the first block was read."""
    parts: list[Path] = []
    for block in blocks:
        if block.path not in parts:
            parts.append(block.path)
            stats.begin_part()
        stats.add_lines(block.lines)
    stats.finish(is_over=not is_live)
    return CountedSession(sanitize(title), stats, is_live, tuple(map(str, parts)))


def span(seconds: float) -> str:
    """Return a time span in six columns: `850µs`, `12.1ms`, `1.25s`, `2m05s`."""
    if seconds < 0.9995e-3:
        return f"{seconds * 1e6:.0f}µs"
    if seconds < 0.9995:
        return f"{_three(seconds * 1e3)}ms"
    return f"{_three(seconds)}s" if seconds < 59.95 else rows.duration(max(seconds, 60.0))


def _three(number: float) -> str:
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}" if number < 99.95 else f"{number:.0f}"


def share(part: float, whole: float) -> str:
    """Return a percentage: `0 %`, `< 1 %`, `12 %`."""
    if part <= 0 or whole <= 0:
        return "0 %"
    return "< 1 %" if part / whole < 0.01 else f"{part / whole:.0%}".replace("%", " %")


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
    return f"{group.count:,}: {parts}" if parts else "0"


def method(group: MessageGroup) -> str:
    return sanitize(group.method) or f"(other {group.kind}s)"


def subject(group: MessageGroup) -> str:
    return "(others)" if group.subject is None else sanitize(group.subject) or '""'


def arrow(side: str) -> str:
    return rows.FROM_CLIENT if side == CLIENT else rows.FROM_SERVER


_EIGHTHS = " ▏▎▍▌▋▊▉"
_LEVELS = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = "_.-=+*%#"

GLYPHS = _EIGHTHS + _LEVELS
"""Characters that the encoding of the terminal must support."""


class BarStyle:
    """Small bar charts in text: eighths of a block, or ASCII for terminals without block characters."""

    def __init__(self, *, plain: bool = False) -> None:
        self._plain = plain

    def bar(self, share: float, width: int) -> str:
        """Return a bar of at most `width` columns; a share above 0 is always visible."""
        share = min(max(share, 0.0), 1.0)
        if self._plain:
            return "#" * max(round(share * width), share > 0)
        eighths = max(round(share * width * 8), share > 0)
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    def profile(self, values: Sequence[int]) -> str:
        """Return one column per value, relative to the largest; a blank for 0."""
        levels = _PLAIN_LEVELS if self._plain else _LEVELS
        most = max(values, default=0)
        return "".join(levels[(value * len(levels) - 1) // most] if value else " " for value in values)
