"""Statistics as one line of JSON per session (docs/stats.md). Times in seconds, sizes in bytes."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from mcpspy.analysis.stats import Distribution, MessageGroup, StatsCollector
from mcpspy.analysis.stats.collector import KINDS
from mcpspy.analysis.stats.group import GroupKind
from mcpspy.analysis.stats.tables import LargeMessage
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State
from mcpspy.ui.report.stats_format import CountedSession

COLUMNS = 60


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
    profile = flight.profile(COLUMNS)
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
