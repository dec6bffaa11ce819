"""What `mcpspy replay` says of its runs, once they are over.

Owns the choice of the run that is reported, the lines on stderr beside the
report, and the exit code. How sessions are compared is `comparing`'s.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from mcpspy.analysis.diff import ChangeSeverity, SessionDiff, compare
from mcpspy.core.replay.carry_hints import suggestions
from mcpspy.core.replay.subset import as_recorded, reduced
from mcpspy.core.replay.substitution import SubstitutionRule
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.session import Session
from mcpspy.errors import FINDINGS, CannotStart
from mcpspy.io.recording.recorder import say
from mcpspy.ui.cli.comparing import options_of, report
from mcpspy.ui.cli.output import Output
from mcpspy.ui.latencies import table

if TYPE_CHECKING:
    from mcpspy.io.recording.atomic import Replacement
    from mcpspy.io.replay import ReplayRun


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
