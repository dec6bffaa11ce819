"""Compare the steps of two sessions: pair them, then report changed, missing, moved and slow ones.

Steps are paired by side, method and parameters, in order; the rest by side, method and subject.
Nothing here is quadratic in the length of a session.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from statistics import median
from typing import Generic, NamedTuple, TypeVar

from msgspec import UNSET, structs

from mcpspy.analysis.diff.json_diff import fingerprint, increasing
from mcpspy.analysis.diff.model import (
    LISTED,
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    ComparedCase,
    DiffChange,
    DiffOptions,
    SessionDiff,
    ignored,
    is_cut,
)
from mcpspy.analysis.diff.results import (
    ComparisonContext,
    compare_params,
    compare_steps,
    handshake,
    is_across_handshake,
    missing_capability,
    one_listing,
    resource_uris,
)
from mcpspy.analysis.diff.steps import RequestStep, SessionSteps, StandaloneMessage, step_of
from mcpspy.core.jsontools import pointer
from mcpspy.core.protocol.spec import CLIENT, METHODS, SERVER, is_known
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Session

T = TypeVar("T")

BREAKING, DIFFERENT, NOTE = ChangeSeverity

_POLLS = "tasks/get"

_UNDER_WAY = frozenset(("working", "submitted", "input_required"))
"""Task statuses that are not final (2025-11-25, basic/utilities/tasks)."""

_BY_CHANCE = frozenset(
    """notifications/tools/list_changed notifications/resources/list_changed notifications/prompts/list_changed
    notifications/tasks/status notifications/tasks""".split()
)
"""Notifications whose number and presence depend on timing."""


class MatchedPair(NamedTuple, Generic[T]):
    old: T
    new: T
    is_exact: bool
    """True if both have the same parameters; otherwise only the same subject."""
    key: Hashable


class MatchedItems(NamedTuple, Generic[T]):
    both: list[MatchedPair[T]]
    removed: list[T]
    added: list[T]

    def one_sided(
        self, before: SessionSteps, now: SessionSteps
    ) -> Iterator[tuple[ChangeKind, T, SessionSteps]]:
        """Yield each unmatched item, with the session that lacks it."""
        yield from ((ChangeKind.REMOVED, item, now) for item in self.removed)
        yield from ((ChangeKind.ADDED, item, before) for item in self.added)


def compare(old: Session, new: Session, options: DiffOptions | None = None) -> SessionDiff:
    """Compare two sessions without changing them. A pending request counts as unanswered."""
    options = DiffOptions() if options is None else options
    before, now = SessionSteps(old), SessionSteps(new)
    context = ComparisonContext(options, is_across_handshake(before, now), resource_uris(now))
    cases = [*_compare_steps(before, now, context)]
    if options.only:
        return SessionDiff(tuple(_in_order(cases)))
    cases += _compare_standalone(before, now, context)
    first, last = (_counting(case, context) for case in (handshake(before, now), _exit(before, now)))
    return SessionDiff((*first, *_in_order(cases), *last))


def compare_exchanges(old: Exchange, new: Exchange, options: DiffOptions | None = None) -> ComparedCase:
    """Compare the outcomes of two requests. The positions have no line numbers."""
    context = ComparisonContext(DiffOptions() if options is None else options, old.is_modern != new.is_modern)
    one, two = step_of(old, ChangePosition(0, old.number)), step_of(new, ChangePosition(0, new.number))
    if context.is_ignored(one) or context.is_ignored(two):
        return _case(one, two, [])
    keyed = _key(one, context) == _key(two, context)
    changes = [*compare_steps(one, two, context, is_exact=keyed)]
    if keyed:
        changes += _latency([MatchedPair(one, two, keyed, None)], context)
    return _case(one, two, changes)


def compare_chosen(old: Exchange, new: Exchange, options: DiffOptions | None = None) -> ComparedCase:
    """Compare two requests that a user chose, including their results if the requests differ.

    A comparison of sessions omits such results, because it matched the pair itself.
    """
    options = DiffOptions() if options is None else options
    case = compare_exchanges(old, new, options)
    request_changes = tuple(change for change in case.changes if change.kind is ChangeKind.REQUEST)
    if not request_changes or old.request.method != new.request.method:
        return case
    # Only for this method, if it is a valid pattern: progress notifications also have params.
    method = f"{new.request.method} " if new.request.method in METHODS else ""
    options = structs.replace(options, ignored=(*options.ignored, ignored(f"{method}/params")))
    result_diff = compare_exchanges(old, new, options)
    return structs.replace(result_diff, changes=request_changes + result_diff.changes)


def unlisted(session: Session, options: DiffOptions) -> list[str]:
    """Return the parts of `options.only` that the session never listed, so there is nothing to compare."""
    listed = {exchange.request.method for exchange in session.exchanges}
    return sorted(part for part in options.only if listed.isdisjoint(LISTED[part]))


def pair(
    old: Sequence[T], new: Sequence[T], exact: Callable[[T], Hashable], loose: Callable[[T], Hashable]
) -> MatchedItems[T]:
    """Pair items with the same `exact` key, and the remaining ones by their `loose` key."""
    both: list[tuple[int, MatchedPair[T]]] = []
    left, right = list(range(len(old))), list(range(len(new)))
    for key in (exact, loose):
        waiting: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for here in left:
            waiting[key(old[here])].append(here)
        rest: list[int] = []
        taken: set[int] = set()
        for there in right:
            known = key(new[there])
            if queue := waiting.get(known):
                here = queue.popleft()
                taken.add(here)
                both.append((there, MatchedPair(old[here], new[there], key is exact, known)))
            else:
                rest.append(there)
        left, right = [here for here in left if here not in taken], rest
    both.sort(key=lambda found: found[0])
    return MatchedItems(
        [found for _, found in both], [old[here] for here in left], [new[there] for there in right]
    )


def moved(pairs: Sequence[MatchedPair[T]], old: Sequence[T]) -> list[MatchedPair[T]]:
    """Return the fewest pairs without which both sides have the same order; `old` is the original order."""
    places = {id(item): place for place, item in enumerate(old)}
    kept = set(increasing([places[id(found.old)] for found in pairs]))
    return [found for place, found in enumerate(pairs) if place not in kept]


def _counting(case: ComparedCase | None, context: ComparisonContext) -> list[ComparedCase]:
    """Return the case without ignored changes; an empty list if the whole case is ignored."""
    if case is None or context.is_ignored(case):
        return []
    patterns = context.patterns(case)
    changes = (c for c in case.changes if not c.pointer or not is_cut(pointer(c.pointer), patterns))
    return [structs.replace(case, changes=tuple(changes))]


def _in_order(cases: list[ComparedCase]) -> list[ComparedCase]:
    """Return the cases in the order of the new session; removed ones after their old predecessor."""
    both = sorted((case.old.line, case.new.line) for case in cases if case.old and case.new)
    lines = [line for line, _ in both]

    def position(case: ComparedCase) -> tuple[int, int]:
        if case.new is not None:
            return case.new.line, 0
        assert case.old is not None
        earlier = bisect_right(lines, case.old.line)
        return (both[earlier - 1][1] if earlier else 0), case.old.line

    return sorted(cases, key=position)


def _compare_steps(
    before: SessionSteps, now: SessionSteps, context: ComparisonContext
) -> Iterator[ComparedCase]:
    old, new = _counted(before.steps, context), _counted(now.steps, context)
    pairs = pair(old, new, lambda step: _key(step, context), _loose_key)
    found: defaultdict[int, list[DiffChange]] = defaultdict(list)
    if not context.options.only:
        _find_moved(pairs, old, new, found)
    same_request: defaultdict[Hashable, list[MatchedPair[RequestStep]]] = defaultdict(list)
    for both in pairs.both:
        if both.is_exact:
            same_request[both.key].append(both)
    for several in same_request.values():
        found[id(several[0].new)] += _latency(several, context)
    reported: set[tuple[str, str, str, str]] = set()
    for both in pairs.both:
        changes = compare_steps(both.old, both.new, context, is_exact=both.is_exact)
        fresh = _not_reported(both.new.method, changes, reported)
        yield _case(both.old, both.new, [*fresh, *found[id(both.new)]])
    # The number of times an interface was listed does not matter.
    listed = {both.new.method for both in pairs.both} if context.options.only else ()
    for kind, step, other in pairs.one_sided(before, now):
        if step.method not in listed:
            case = _one_sided(kind, step, _missing(step, other), context)
            lacking = missing_capability(step.method, other) if step.side == CLIENT else None
            yield case if lacking is None else _of_capability(case, kind, step, lacking, context)


def _not_reported(
    method: str, changes: Iterable[DiffChange], reported: set[tuple[str, str, str, str]]
) -> list[DiffChange]:
    """Return the changes; report each change of an interface once, however often it is listed."""
    fresh = []
    for change in changes:
        if change.kind is ChangeKind.INTERFACE:
            known = method, change.pointer, str(change.old), str(change.new)
            if known in reported:
                continue
            reported.add(known)
        fresh.append(change)
    return fresh


def _find_moved(
    pairs: MatchedItems[RequestStep],
    old: list[RequestStep],
    new: list[RequestStep],
    found: defaultdict[int, list[DiffChange]],
) -> None:
    for side in (CLIENT, SERVER):
        both = [known for known in pairs.both if known.new.side == side]
        places = [
            {id(step): place for place, step in enumerate(step for step in steps if step.side == side)}
            for steps in (old, new)
        ]
        for known in moved(both, old):
            was, is_now = places[0][id(known.old)], places[1][id(known.new)]
            why = f"request {was + 1} of the {side}, now request {is_now + 1}"
            found[id(known.new)].append(DiffChange(kind=ChangeKind.ORDER, severity=DIFFERENT, why=why))


def _latency(pairs: list[MatchedPair[RequestStep]], context: ComparisonContext) -> list[DiffChange]:
    """Compare the latencies of identical requests; the median if there are several."""
    allowed = context.options.slower_than
    if allowed is None or pairs[0].new.side != CLIENT or pairs[0].new.is_subscription:
        return []  # The latency of users and models is not the server's.
    old = [both.old.latency for both in pairs if both.old.latency is not None]
    new = [both.new.latency for both in pairs if both.new.latency is not None]
    if not old or not new or allowed.allows(was := median(old), now := median(new)):
        return []
    why = f"median of {len(pairs)} identical requests" if len(pairs) > 1 else ""
    return [DiffChange(kind=ChangeKind.LATENCY, severity=DIFFERENT, why=why, old=was, new=now)]


def _compare_standalone(
    before: SessionSteps, now: SessionSteps, context: ComparisonContext
) -> Iterator[ComparedCase]:
    old = [message for message in before.standalone if not context.is_ignored(message)]
    new = [message for message in now.standalone if not context.is_ignored(message)]
    pairs = pair(
        old,
        new,
        lambda message: (message.side, message.method, _params(message, context)),
        lambda message: (message.side, message.method),
    )
    for both in pairs.both:
        old_message, new_message, is_exact, _ = both
        severity = NOTE if new_message.method in _BY_CHANCE else DIFFERENT
        changes = compare_params(ChangeKind.NOTIFICATION, severity, old_message, new_message, context)
        yield _case(old_message, new_message, [] if is_exact else [*changes])
    for kind, message, other in pairs.one_sided(before, now):
        severity = NOTE if message.method in _BY_CHANCE else _missing(message, other)
        yield _one_sided(kind, message, severity, context)


def _case(old: StandaloneMessage, new: StandaloneMessage, changes: list[DiffChange]) -> ComparedCase:
    return ComparedCase(
        method=new.method,
        subject=new.name,
        old=old.position,
        new=new.position,
        latency=new.latency,
        changes=tuple(changes),
    )


def _one_sided(
    kind: ChangeKind, what: StandaloneMessage, severity: ChangeSeverity, context: ComparisonContext
) -> ComparedCase:
    params = context.params(what).get("params") or UNSET
    is_old = kind is ChangeKind.REMOVED
    change = DiffChange(
        kind=kind,
        severity=severity,
        pointer="" if params is UNSET else "/params",
        old=params if is_old else UNSET,
        new=UNSET if is_old else params,
    )
    return ComparedCase(
        method=what.method,
        subject=what.name,
        old=what.position if is_old else None,
        new=None if is_old else what.position,
        latency=None if is_old else what.latency,
        changes=(change,),
    )


def _of_capability(
    case: ComparedCase, kind: ChangeKind, step: RequestStep, capability: str, context: ComparisonContext
) -> ComparedCase:
    """Return the case of a listing that only one session has because the other server lacks the capability.

    A client lists what a server has: the request follows from the capability, and its items were gained or lost.
    """
    is_old = kind is ChangeKind.REMOVED
    why = f"the {'new' if is_old else 'old'} server does not have the capability {capability}"
    request = (structs.replace(change, severity=NOTE, why=why) for change in case.changes)
    items = one_listing(step if is_old else None, None if is_old else step, context)
    return structs.replace(case, changes=(*request, *items))


def _missing(what: StandaloneMessage, other: SessionSteps) -> ChangeSeverity:
    """Return the severity of a one-sided item; NOTE if the other revision doesn't define it."""
    if isinstance(what, RequestStep) and what.method == _POLLS and _status(what) in _UNDER_WAY:
        return NOTE
    revision = other.session.revision
    if revision is not None and what.method in METHODS and not is_known(what.method, revision):
        return NOTE
    return DIFFERENT


def _counted(steps: list[RequestStep], context: ComparisonContext) -> list[RequestStep]:
    methods = context.options.methods
    if not methods and not context.options.ignored:
        return steps
    return [
        step for step in steps if (not methods or step.method in methods) and not context.is_ignored(step)
    ]


def _key(step: RequestStep, context: ComparisonContext) -> Hashable:
    return step.side, step.method, _status(step), _params(step, context)


def _loose_key(step: RequestStep) -> Hashable:
    return step.side, step.method, _status(step), step.name


def _params(what: StandaloneMessage, context: ComparisonContext) -> str:
    params = context.params(what)
    return fingerprint(params, context.options.tolerance)


def _status(step: RequestStep) -> str | None:
    """Return the task status that a `tasks/get` returned: the number of polls is chance."""
    if step.method != _POLLS:
        return None
    result = step.result if step.results else None
    return str(result.get("status")) if isinstance(result, dict) else None


def _exit(before: SessionSteps, now: SessionSteps) -> ComparedCase | None:
    """Compare how the servers exited, unless the host ended one of them."""
    if before.exit is None or now.exit is None:
        return None
    (one, old), (two, new) = before.exit, now.exit
    changes: list[DiffChange] = []
    if {"code": None, "signal": None} in (one.fields, two.fields):  # Imported: unknown.
        return None
    if not before.is_signalled and not now.is_signalled and one.fields != two.fields:
        changes.append(DiffChange(kind=ChangeKind.EXIT, severity=NOTE, old=one.fields, new=two.fields))
    return ComparedCase(method="exit", old=old, new=new, changes=tuple(changes))
