"""How long requests took, over several runs, as a table.

Owns the layout.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mcpspy.analysis.rows import duration
from mcpspy.analysis.stats.quantiles import Distribution
from mcpspy.core.session.session import event_of
from mcpspy.ui.cli.output import columns

if TYPE_CHECKING:
    from mcpspy.core.replay.player import SentRequest
    from mcpspy.io.replay import ReplayRun

WIDTHS = (40, -7, -7, -9, -9, -9, -9)


def table(runs: Sequence[ReplayRun], seconds: float) -> Iterator[str]:
    """Yield the lines: one for each kind of request, the slowest first, and the sum."""
    by_kind: dict[str, list[SentRequest]] = {}
    for run in runs:
        for sent in run.sent:
            by_kind.setdefault(sent.about, []).append(sent)
    rows = []
    for about, sents in by_kind.items():
        times, before = Distribution(), Distribution()
        for sent in sents:
            if sent.answered_at is not None:
                times.add(sent.answered_at - sent.at)
            if sent.cue.exchange is not None and (latency := sent.cue.exchange.latency) is not None:
                before.add(latency)
        shares = [*times.quantiles(0.5, 0.95, 1.0), *before.quantiles(0.5)]
        rows.append((about, len(sents), sum(map(_is_otherwise, sents)), shares))
    yield columns(("request", "made", "failed", "median", "p95", "max", "recorded"), WIDTHS)
    for about, count, failed, shares in sorted(rows, key=lambda row: -row[3][0]):
        yield columns((about, str(count), str(failed or ""), *map(_duration, shares)), WIDTHS)
    count = sum(row[1] for row in rows)
    rate = f" · {count / seconds:.0f} requests/s" if seconds else ""
    yield f"{len(runs)} runs · {count} requests in {seconds:.2f} s{rate}"


def _is_otherwise(sent: SentRequest) -> bool:
    """Whether it got no answer, or one of another kind than in the recording."""
    recorded = sent.cue.exchange.answer if sent.cue.exchange is not None else None
    if recorded is None or sent.answer is None:
        return recorded is not None
    return event_of(recorded) is not event_of(sent.answer)


def _duration(seconds: float) -> str:
    return duration(seconds) if seconds else ""
