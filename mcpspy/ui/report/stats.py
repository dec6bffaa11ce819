"""Statistics of one session as text, and as one line of JSON (docs/stats.md).

In JSON, times are in seconds and sizes in bytes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import orjson

from mcpspy.analysis import rows
from mcpspy.analysis.stats import Distribution, MessageGroup, StatsCollector
from mcpspy.analysis.stats.collector import KINDS
from mcpspy.analysis.stats.group import GroupKind
from mcpspy.analysis.stats.tables import LargeMessage
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import State
from mcpspy.ui.report import stats_table
from mcpspy.ui.report.stats_table import CountedSession, head, states
from mcpspy.ui.text.numbers import BarStyle, share, span

Lines = Iterator[tuple[str, str | None]]

LABEL = 12

BAR = 20

PROFILE = 160

BOUNDS = tuple(step * 10.0**power for power in range(-5, 4) for step in (1, 2, 5))
"""Upper bounds of the latency histogram in seconds: from 10 µs to about an hour and a half."""


def terminal(counted: CountedSession, look: stats_table.TableStyle) -> Lines:
    stats, width, bars, top = counted.stats, look.width, look.bars, look.top
    first, *rest = head(counted)
    yield first, None
    yield from ((line, rows.QUIET) for line in rest)
    yield "", None
    if stats.query is not None:
        query = sanitize(stats.query.text)
        yield _fact("filter", f"{query} · applies only to the line requests and the tables")
    yield from _facts(stats, width, bars)
    for side in (CLIENT, SERVER):
        yield from _requests(stats, side, look)
    yield from _section("notifications", _notifications(stats, top))
    yield from _section("latency of responses to the client", _histogram(stats, width, bars))
    yield from _section("calls with input_required, first request to final response", _chains(stats))
    yield from _section("largest messages", _largest(counted))
    yield from _waiting(stats, top)


def _section(title: str, lines: Lines) -> Lines:
    """Yield lines below their title; nothing if there are none."""
    for number, line in enumerate(lines):
        if number == 0:
            yield "", None
            yield title, rows.QUIET
        yield line


def _fact(label: str, text: str, tone: str | None = None) -> tuple[str, str | None]:
    return f"{label:{LABEL}}{text}".rstrip(), tone


def _facts(stats: StatsCollector, width: int, bars: BarStyle) -> Lines:
    yield _fact("duration", rows.duration(stats.last_at))
    sides = " · ".join(
        f"{rows.arrow(side)} {stats.messages[side]:,} ({rows.size(stats.bytes[side])})"
        for side in (CLIENT, SERVER)
    )
    yield _fact("messages", f"{sum(stats.messages.values()):,} · {sides}")
    issues = {
        "malformed": stats.kinds["malformed"],
        "repeated on a resumed stream": stats.kinds["repeated"],
        "unsolicited responses": stats.strays,
        "errors that settle no request": stats.stray_errors,
        "damaged lines": stats.damaged,
        "lost entries": stats.lost,
    }
    if found := ", ".join(f"{count:,} {name}" for name, count in issues.items() if count):
        yield _fact("", found, rows.ISSUE)
    for side in (CLIENT, SERVER):
        if (total := stats.groups.total(side)).count:
            yield _fact("requests" if side == CLIENT else "", f"{rows.arrow(side)} {states(total)}")
    yield _fact("initialize", _handshake(stats))
    if streams := stats.http_exchanges.totals.describe():
        yield _fact("GET streams", streams)
    flight = stats.flight
    if flight.peak:
        bar = bars.bar(flight.served / stats.last_at if stats.last_at else 0, BAR)
        text = f"busy {share(flight.served, stats.last_at)} of the time {bar}"
        if flight.client_seconds:
            text += f" · waiting for the client {share(flight.client_seconds, stats.last_at)}"
        yield _fact("server", text)
        mean = flight.area / stats.last_at if stats.last_at else 0.0
        tail = f"  peak {flight.peak}, mean {mean:.2g}"
        room = max(min(width - LABEL - len(tail), PROFILE), 8)
        yield _fact("concurrency", bars.profile(flight.profile(room)) + tail)


def _handshake(stats: StatsCollector) -> str:
    handshakes = stats.handshakes
    first, answer = handshakes.first, handshakes.first_answer
    if first is None:
        first_answer = f" · first response {span(answer)} after the start" if answer is not None else ""
        return f"no handshake{first_answer}"
    text = f"{span(first.took)} ({sanitize(first.method)}), response {span(first.at)} after the start"
    if first.ready is not None:
        text += f", ready {span(first.ready)}"
    return text + (f" · {handshakes.count:,} handshakes" if handshakes.count > 1 else "")


def _requests(stats: StatsCollector, side: str, look: stats_table.TableStyle) -> Lines:
    groups = [group for group in stats.groups.of(side, GroupKind.REQUEST) if group.count]
    if not groups:
        return
    found, hidden = [], 0
    for rows_of_method in stats_table.methods(groups, look.sort):
        found += rows_of_method[: look.top + 1]
        hidden += len(rows_of_method[look.top + 1 :])
    yield "", None
    yield from stats_table.lines(f"{rows.arrow(side)} requests", found, look)
    if hidden:
        yield f"  and {hidden:,} more: --top {look.top + hidden}", rows.QUIET


def _notifications(stats: StatsCollector, top: int) -> Lines:
    sides = (stats.groups.of(side, GroupKind.NOTIFICATION) for side in (CLIENT, SERVER))
    groups = [group for side in sides for group in side if group.count]
    groups.sort(key=lambda group: (-group.count, group.method))
    for group in groups[:top]:
        label = sanitize(group.method) or f"(other {group.kind}s)"
        yield f"{rows.arrow(group.side)} {label}: {group.count:,} ({rows.size(group.sent)})", None
    if len(groups) > top:
        yield f"  and {len(groups) - top:,} more: --top {len(groups)}", rows.QUIET


def _histogram(stats: StatsCollector, width: int, bars: BarStyle) -> Lines:
    took = stats.groups.total(CLIENT).took
    if len(took) < 2:
        return
    *upto, whole = took.counts(BOUNDS)
    counts = [count - before for count, before in zip([*upto, whole], [0, *upto], strict=True)]
    used = [place for place, count in enumerate(counts) if count]
    digits = len(f"{max(counts):,}")
    room = min(max(width - 13 - digits, 8), 60)
    for place in range(used[0], used[-1] + 1):
        label = f"to {_bound(BOUNDS[place])}" if place < len(BOUNDS) else f"over {_bound(BOUNDS[-1])}"
        bar = bars.bar(counts[place] / max(counts), room)
        yield f"{label:>10}  {counts[place]:{digits},} {bar}".rstrip(), None


def _bound(seconds: float) -> str:
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    unit, name = next((unit, name) for unit, name in units if seconds >= unit * 0.999)
    return f"{seconds / unit:.0f}{name}"


def _chains(stats: StatsCollector) -> Lines:
    for group in (group for group in stats.groups.all if len(group.chains)):
        chains, times = group.chains, group.chains.whole.times()
        label = sanitize(" ".join(filter(None, (group.method, group.subject))))
        counts = f"{len(chains):,} calls of {chains.requests:,} requests"
        latency = f"p50 {span(times.p50)}, p95 {span(times.p95)}, max {span(times.most)}"
        part = f"server share {share(chains.served, times.total)}"
        yield f"{label}: {counts} · {latency} · {part}", None


def _largest(counted: CountedSession) -> Lines:
    stats = counted.stats
    for large in stats.groups.largest:
        part, number = stats.place(large.line)
        about = " ".join(filter(None, (large.method, large.subject, large.id and f"id {large.id}")))
        where = f"line {number}" + (f" of part {part + 1}" if len(counted.paths) > 1 else "")
        line = f"{rows.size(large.size):>7}  {rows.arrow(large.side)} {large.kind}  {about}  {where}"
        yield sanitize(line), None


def _waiting(stats: StatsCollector, top: int) -> Lines:
    for call in stats.waiting[:top]:
        about = sanitize(" ".join(filter(None, (call.method, call.subject))))
        waited = span(max(stats.last_at - call.at, 0.0))
        yield f"pending: {about}, id {sanitize(call.id)}, for {waited}", rows.OPEN
    if len(stats.waiting) > top:
        yield f"  and {len(stats.waiting) - top:,} more", rows.OPEN


PROFILE_COLUMNS = 60


def document(counted: CountedSession) -> bytes:
    report = members(counted)
    try:
        return orjson.dumps(report, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # Integers beyond 64 bits, lone surrogates.
        return json.dumps(report, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def members(counted: CountedSession) -> dict[str, Any]:
    """Return the object of a session (docs/stats.md)."""
    stats, flight = counted.stats, counted.stats.flight
    header, note, first = stats.header, stats.exit, stats.handshakes.first
    assert header is not None
    streams = stats.http_exchanges.totals
    profile = flight.profile(PROFILE_COLUMNS)
    return {
        "id": header.id,
        "name": header.name,
        "path": counted.paths[0],
        "started": header.started,
        "transport": header.transport,
        "live": counted.is_live,
        "exit": note.fields.get("code") if note else None,
        "signal": note.fields.get("signal") if note else None,
        "filter": stats.query.text if stats.query else None,
        "client": stats.client._asdict() if stats.client else None,
        "server": stats.server._asdict() if stats.server else None,
        "clients": dict(stats.handshakes.clients),
        "revision": stats.revision,
        "seconds": _seconds(stats.last_at),
        "messages": stats.messages,
        "bytes": stats.bytes,
        "kinds": {kind: stats.kinds[kind] for kind in KINDS},
        "strays": stats.strays,
        "stray_errors": stats.stray_errors,
        "damaged": stats.damaged,
        "lost": stats.lost,
        "notes": dict(stats.notes),
        "get_streams": {
            "count": streams.streams,
            "events": streams.events,
            "longest": _seconds(streams.longest),
            "empty": streams.empty,
            "refused": streams.refused,
        },
        "handshakes": stats.handshakes.count,
        "initialize": first
        and {
            "method": first.method,
            "at": _seconds(first.at),
            "took": _seconds(first.took),
            "ready": _seconds(first.ready),
        },
        "first_answer": _seconds(stats.handshakes.first_answer),
        "server_seconds": _seconds(flight.served),
        "client_seconds": _seconds(flight.client_seconds),
        "server_share": _ratio(flight.served, stats.last_at),
        "in_flight": {
            "most": flight.peak,
            "most_back": flight.server_peak,
            "mean": _ratio(flight.area, stats.last_at),
            "stretch": _seconds(flight.span / len(profile)),
            "profile": profile,
        },
        "requests": {side: _group(stats.groups.total(side)) for side in (CLIENT, SERVER)},
        "groups": [_group(group) for group in stats.groups.all],
        "largest": [_large(stats, large) for large in stats.groups.largest],
        "waiting": [
            {
                "from": call.group.side,
                "method": call.method,
                "about": call.subject or None,
                "id": _id(call.id),
                "at": _seconds(call.at),
                "seconds": _seconds(max(stats.last_at - call.at, 0.0)),
            }
            for call in stats.waiting
        ],
    }


def _group(group: MessageGroup) -> dict[str, Any]:
    members: dict[str, Any] = {
        "from": group.side,
        "kind": str(group.kind),
        "method": group.method or None,
        "about": group.subject,
        "count": group.count,
        "sent": group.sent,
    }
    if group.kind is GroupKind.NOTIFICATION:
        return members
    members |= {
        "errors": group.errors,
        "unanswered": group.unanswered,
        "states": {str(state): group.states[state] for state in State},
        "apart": group.apart,
        "back": group.back,
        "latency": _times(group.took),
    }
    if chains := group.chains:
        members["chains"] = {
            "count": len(chains),
            "requests": chains.requests,
            "server_seconds": _seconds(chains.served),
            "latency": _times(chains.whole),
        }
    return members


def _times(spread: Distribution) -> dict[str, Any] | None:
    times = spread.times()
    if not times.answers:
        return None
    return {
        "count": times.answers,
        "total": _seconds(times.total),
        "mean": _seconds(times.mean),
        "p50": _seconds(times.p50),
        "p95": _seconds(times.p95),
        "p99": _seconds(times.p99),
        "max": _seconds(times.most),
    }


def _large(stats: StatsCollector, large: LargeMessage) -> dict[str, Any]:
    part, line = stats.place(large.line)
    return {
        "size": large.size,
        "from": large.side,
        "kind": large.kind,
        "method": large.method or None,
        "about": large.subject or None,
        "id": _id(large.id),
        "at": _seconds(large.at),
        "part": part + 1,
        "line": line,
    }


def _seconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 6) if whole > 0 else 0.0


def _id(text: str) -> Any:
    """Return the value of an id; None for numbers that JSON cannot represent."""
    value = loads(text.encode("utf-8", "surrogatepass"))
    return None if isinstance(value, float) and not math.isfinite(value) else value
