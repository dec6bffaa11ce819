"""What `mcpspy replay` says of its runs, once they are over.

Owns the choice of the run that is reported, the lines on stderr beside the
report, and the exit code. How sessions are compared is `comparing`'s.

How long requests took, over several runs, as a table.

Owns the layout.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mcpspy.analysis.diff import ChangeSeverity, SessionDiff, compare
from mcpspy.analysis.rows import duration
from mcpspy.analysis.stats.quantiles import Distribution
from mcpspy.core.replay.carry_hints import suggestions
from mcpspy.core.replay.subset import as_recorded, reduced
from mcpspy.core.replay.substitution import SubstitutionRule
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.correlation import event_of
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, CannotStart
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.diff_options import options_of, report
from mcpspy.ui.terminal import Output, columns

if TYPE_CHECKING:
    from mcpspy.core.replay.player import SentRequest
    from mcpspy.io.recording.atomic import Replacement
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


def compared(session: Session, played: ReplayRun, args: argparse.Namespace) -> SessionDiff:
    """Compare with what was recorded of the requests that were made."""
    if played.unsent:
        made = {sent.cue.exchange.number for sent in played.sent if sent.cue.exchange is not None}
        session = reduced(session, made)
    new = played.session
    if args.carry:
        new = as_recorded(new, played.carried)
    return compare(session, new, options_of(args))


def tell(
    judged: list[tuple[ReplayRun, SessionDiff]],
    args: argparse.Namespace,
    carry: tuple[SubstitutionRule, ...],
    seconds: float,
) -> int:
    """Report the first run that is different, else the last; return the exit code."""
    bad = [each for each in judged if not _is_well(*each, args)]
    played, difference = bad[0] if bad else judged[-1]
    where = played.path or "(not recorded)"
    code = report(difference, (sanitize(str(args.recording)), sanitize(where)), args)
    for remark in dict.fromkeys(played.remarks):
        complain(remark)
    for gave, found in suggestions(played.sent, carry):
        complain(f"{gave}, which is another this time: perhaps --carry '{found}'")
    if played.stopped is not None:
        complain(f"stopped: {played.stopped}; {_requests(played.unsent)} not made")
        _last_words(played)
    elif played.unsent:
        complain(f"{_requests(played.unsent)} not made")
    if len(judged) > 1:
        complain(f"{len(bad)} of {len(judged)} runs are different")
        if not args.json:
            output = Output()
            for line in table([each for each, _ in judged], seconds):
                output.line(sanitize(line))
    if played.path is not None and not args.update:
        complain(f"recorded to {played.path}")
    return FINDINGS if bad else code


def _is_well(played: ReplayRun, difference: SessionDiff, args: argparse.Namespace) -> bool:
    """Whether all was asked, and answered as it was."""
    return not played.unsent and played.stopped is None and difference.is_same(ChangeSeverity(args.fail_on))


def update(replacement: Replacement, judged: tuple[ReplayRun, SessionDiff], args: argparse.Namespace) -> int:
    """Put the new session in the recording's place, unless nothing changed or it is not whole; return the exit code."""
    played, difference = judged
    if played.stopped is not None or played.unsent:
        complain(f"{replacement.old} is left as it is: the new session is not whole")
        return FINDINGS
    if not difference.changes:
        complain(f"{replacement.old} is left as it is: nothing changed")
        return 0
    kept = replacement.put_in_place(played.path)
    complain(f"{replacement.old} is the new session now; the old one is {kept}")
    return 0


def raise_failure(runs: list[ReplayRun]) -> None:
    """Raise CannotStart if none of the runs had a server to speak of."""
    first = runs[0]
    if first.failed is None or not all(played.failed for played in runs):
        return
    _last_words(first)
    hint = "--header 'Authorization: Bearer …' gives it a token"
    raise CannotStart(sanitize(first.failed), hint if "HTTP 401" in first.failed else "")


def _last_words(played: ReplayRun) -> None:
    if played.last_words:
        complain("the end of its stderr:")
        for line in played.last_words:
            complain(f"  {line}")


def _requests(number: int) -> str:
    return "1 request was" if number == 1 else f"{number} requests were"


def complain(line: str) -> None:
    sys.stdout.flush()  # In the order of the report, also where both go to one file.
    say(sanitize(line))
