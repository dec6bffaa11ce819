"""Two sessions, whole: the steps of one against those of the other.

Owns what is paired with what, what is missing on a side and how much that
weighs, what changed its order, and what became slow.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable
from statistics import median

from msgspec import UNSET, structs

from mcpspy.analysis.diff.answers import Terms, compare_steps
from mcpspy.analysis.diff.difference import Case, Change, Difference, Kind, Place, Severity
from mcpspy.analysis.diff.handshake import handshake, is_other_era
from mcpspy.analysis.diff.ignore import is_cut
from mcpspy.analysis.diff.options import LISTED, DiffOptions
from mcpspy.analysis.diff.pairs import Pair, Pairs, moved, pair
from mcpspy.analysis.diff.steps import Said, Step, Steps, step_of
from mcpspy.analysis.diff.values import fingerprint
from mcpspy.core.jsontools import pointer, spelled
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, is_known
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Session

BREAKING, DIFFERENT, NOTE = Severity

_POLLS = "tasks/get"

_UNDER_WAY = frozenset(("working", "submitted", "input_required"))
"""What a task's status is until it is over (2025-11-25, basic/utilities/tasks)."""

_BY_CHANCE = frozenset(
    """notifications/tools/list_changed notifications/resources/list_changed notifications/prompts/list_changed
    notifications/tasks/status notifications/tasks""".split()
)
"""How often these come, and whether they do, depends on when somebody looks."""


def compare(old: Session, new: Session, options: DiffOptions | None = None) -> Difference:
    """Return what the new session says otherwise than the old one.

    Neither is changed. What is pending in one of them counts as unanswered.
    """
    options = DiffOptions() if options is None else options
    before, now = Steps(old), Steps(new)
    terms = Terms(options, is_other_era(before, now))
    cases = _Cases()
    _compare_steps(before, now, terms, cases)
    if not options.only:
        _compare_said(before, now, terms, cases)
        cases.first += _counting(handshake(before, now), terms)
        cases.last += _counting(_exit(before, now), terms)
    return Difference(cases.in_order())


def compare_exchanges(old: Exchange, new: Exchange, options: DiffOptions | None = None) -> Case:
    """Return what came of one request otherwise than of another. Their places have no lines."""
    terms = Terms(DiffOptions() if options is None else options, old.is_modern != new.is_modern)
    one, two = step_of(old, Place(0, old.number)), step_of(new, Place(0, new.number))
    keyed = _key(one, terms) == _key(two, terms)
    changes = [*compare_steps(one, two, terms, is_exact=keyed)]
    if keyed:
        changes += _latency([Pair(one, two, keyed, None)], terms)
    return _case(one, two, changes)


def unlisted(session: Session, options: DiffOptions) -> list[str]:
    """Return of what `options.only` asks for the parts that the session never listed: there is nothing to compare."""
    listed = {
        exchange.request.method
        for exchange in session.exchanges
        if exchange.request.method in options.methods
    }
    return sorted(part for part in options.only if listed.isdisjoint(LISTED[part]))


def _counting(case: Case | None, terms: Terms) -> list[Case]:
    """Return a case without what is ignored; none if all of it is."""
    if case is None or terms.is_ignored(case.method, None):
        return []
    patterns = terms.patterns(case.method, None)
    left = [
        change
        for change in case.changes
        if not change.pointer or not is_cut(pointer(change.pointer), patterns)
    ]
    return [structs.replace(case, changes=tuple(left))]


class _Cases:
    """What was compared so far, and where it belongs."""

    def __init__(self) -> None:
        self.first: list[Case] = []
        self.last: list[Case] = []
        self._cases: list[Case] = []

    def add(self, case: Case) -> None:
        self._cases.append(case)

    def in_order(self) -> tuple[Case, ...]:
        """Return the cases in the order of the new session; what it lacks, after what it followed in the old one."""
        both = sorted((case.old.line, case.new.line) for case in self._cases if case.old and case.new)
        lines = [line for line, _ in both]

        def position(case: Case) -> tuple[int, int]:
            if case.new is not None:
                return case.new.line, 0
            assert case.old is not None
            earlier = bisect_right(lines, case.old.line)
            return (both[earlier - 1][1] if earlier else 0), case.old.line

        return (*self.first, *sorted(self._cases, key=position), *self.last)


def _compare_steps(before: Steps, now: Steps, terms: Terms, cases: _Cases) -> None:
    old, new = _counted(before.steps, terms), _counted(now.steps, terms)
    pairs = pair(old, new, lambda step: _key(step, terms), _loose_key)
    found: defaultdict[int, list[Change]] = defaultdict(list)
    if not terms.options.only:
        _find_moved(pairs, old, new, found)
    same_request: defaultdict[Hashable, list[Pair[Step]]] = defaultdict(list)
    for both in pairs.both:
        if both.is_exact:
            same_request[both.key].append(both)
    for several in same_request.values():
        found[id(several[0].new)] += _latency(several, terms)
    told: set[tuple[str, str, str, str]] = set()
    for both in pairs.both:
        changes = compare_steps(both.old, both.new, terms, is_exact=both.is_exact)
        fresh = _first_told(both.new.method, changes, told)
        cases.add(_case(both.old, both.new, [*fresh, *found[id(both.new)]]))
    # Of an interface it is no matter how often it was listed.
    listed = {both.new.method for both in pairs.both} if terms.options.only else ()
    for kind, steps, other in ((Kind.REMOVED, pairs.removed, now), (Kind.ADDED, pairs.added, before)):
        for step in (step for step in steps if step.method not in listed):
            cases.add(_one_sided(kind, step, _missing(step, other), terms))


def _first_told(method: str, changes: Iterable[Change], told: set[tuple[str, str, str, str]]) -> list[Change]:
    """Return the changes; those of an interface only once, however often it is listed."""
    fresh = []
    for change in changes:
        if change.kind is Kind.INTERFACE:
            known = method, change.pointer, str(change.old), str(change.new)
            if known in told:
                continue
            told.add(known)
        fresh.append(change)
    return fresh


def _find_moved(
    pairs: Pairs[Step], old: list[Step], new: list[Step], found: defaultdict[int, list[Change]]
) -> None:
    """Find what changed its order, among the requests of one side."""
    for side in (CLIENT, SERVER):
        both = [known for known in pairs.both if known.new.side == side]
        places = [
            {id(step): place for place, step in enumerate(step for step in steps if step.side == side)}
            for steps in (old, new)
        ]
        for known in moved(both, old):
            was, is_now = places[0][id(known.old)], places[1][id(known.new)]
            why = f"request {was + 1} of the {side}, now request {is_now + 1}"
            found[id(known.new)].append(Change(kind=Kind.ORDER, severity=DIFFERENT, why=why))


def _latency(pairs: list[Pair[Step]], terms: Terms) -> list[Change]:
    """Judge how long the same request takes; of one that comes more often, the median."""
    allowed = terms.options.slower_than
    if allowed is None or pairs[0].new.side != CLIENT or pairs[0].new.is_subscription:
        return []  # How long people and models take to answer is no matter of the server.
    old = [both.old.latency for both in pairs if both.old.latency is not None]
    new = [both.new.latency for both in pairs if both.new.latency is not None]
    if not old or not new or allowed.allows(median(old), median(new)):
        return []
    why = f"the median of {len(pairs)} such requests" if len(pairs) > 1 else ""
    return [Change(kind=Kind.LATENCY, severity=DIFFERENT, why=why, old=median(old), new=median(new))]


def _compare_said(before: Steps, now: Steps, terms: Terms, cases: _Cases) -> None:
    old, new = (
        [said for said in steps.said if not terms.is_ignored(said.method, said.subject)]
        for steps in (before, now)
    )
    pairs = pair(
        old,
        new,
        lambda said: (said.side, said.method, _params(said, terms)),
        lambda said: (said.side, said.method),
    )
    for both in pairs.both:
        changes = []
        if not both.is_exact:
            one, two = (terms.params(said.method, said.subject, said.params) for said in (both.old, both.new))
            changes = [
                Change(
                    kind=Kind.NOTIFICATION,
                    severity=NOTE if both.new.method in _BY_CHANCE else DIFFERENT,
                    pointer=spelled(found.tokens),
                    old=found.old,
                    new=found.new,
                )
                for found in terms.differences(one, two, terms.patterns(both.new.method, both.new.subject))
            ]
        cases.add(_case(both.old, both.new, changes))
    for kind, listed, other in ((Kind.REMOVED, pairs.removed, now), (Kind.ADDED, pairs.added, before)):
        for said in listed:
            severity = NOTE if said.method in _BY_CHANCE else _missing(said, other)
            cases.add(_one_sided(kind, said, severity, terms))


def _case(old: Step | Said, new: Step | Said, changes: list[Change]) -> Case:
    return Case(
        method=new.method,
        subject=_about(new),
        old=old.place,
        new=new.place,
        latency=None if isinstance(new, Said) else new.latency,
        changes=tuple(changes),
    )


def _one_sided(kind: Kind, what: Step | Said, severity: Severity, terms: Terms) -> Case:
    params = terms.params(what.method, what.subject, what.params).get("params") or UNSET
    is_old = kind is Kind.REMOVED
    change = Change(
        kind=kind,
        severity=severity,
        pointer="" if params is UNSET else "/params",
        old=params if is_old else UNSET,
        new=UNSET if is_old else params,
    )
    return Case(
        method=what.method,
        subject=_about(what),
        old=what.place if is_old else None,
        new=None if is_old else what.place,
        latency=None if isinstance(what, Said) or is_old else what.latency,
        changes=(change,),
    )


def _about(what: Step | Said) -> str | None:
    return what.subject if isinstance(what, Said) else what.name


def _missing(what: Step | Said, other: Steps) -> Severity:
    """Judge what only one side has: what the other's revision does not know cannot be there."""
    if isinstance(what, Step) and what.method == _POLLS and _status(what) in _UNDER_WAY:
        return NOTE
    revision = other.session.revision
    if revision is not None and what.method in METHODS and not is_known(what.method, revision):
        return NOTE
    return DIFFERENT


def _counted(steps: list[Step], terms: Terms) -> list[Step]:
    """Return the steps that are to be compared."""
    methods = terms.options.methods
    if not methods and not terms.options.ignored:
        return steps
    return [
        step
        for step in steps
        if (not methods or step.method in methods) and not terms.is_ignored(step.method, step.subject)
    ]


def _key(step: Step, terms: Terms) -> Hashable:
    return step.side, step.method, _status(step), _params(step, terms)


def _loose_key(step: Step) -> Hashable:
    return step.side, step.method, _status(step), step.name


def _params(what: Step | Said, terms: Terms) -> str:
    params = terms.params(what.method, what.subject, what.params)
    return fingerprint(params, dates=terms.options.dates)


def _status(step: Step) -> str | None:
    """Return how far the task was that a request asks about: how often somebody asks is chance."""
    if step.method != _POLLS:
        return None
    result = step.result if step.answers else None
    return str(result.get("status")) if isinstance(result, dict) else None


def _exit(before: Steps, now: Steps) -> Case | None:
    """Return how the server left; unless the host ended it, which is the host's affair."""
    if before.exit is None or now.exit is None:
        return None
    (one, there), (two, here) = before.exit, now.exit
    changes: list[Change] = []
    if {"code": None, "signal": None} in (one.fields, two.fields):  # An import: nobody knows how it ended.
        return None
    if not before.is_signalled and not now.is_signalled and one.fields != two.fields:
        changes.append(Change(kind=Kind.EXIT, severity=NOTE, old=one.fields, new=two.fields))
    return Case(method="exit", old=there, new=here, changes=tuple(changes))
