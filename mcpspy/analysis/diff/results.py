"""Compare the outcomes of two steps with the same request, and the handshakes of two sessions.

Without a handshake, `server/discover` is compared. A client may probe for the revision, so a refused or missing probe
is not a difference (2026-07-28, basic/versioning).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import ValueChange, deltas, fingerprint
from mcpspy.analysis.diff.listings import by_name, compare_listed
from mcpspy.analysis.diff.model import (
    ChangeKind,
    ChangePosition,
    ChangeSeverity,
    Comparable,
    ComparedCase,
    DiffChange,
    DiffOptions,
    cut,
    is_cut,
)
from mcpspy.analysis.diff.steps import RequestStep, SessionSteps, StandaloneMessage
from mcpspy.analysis.diff.volatile import NOTED, OF_MODERN, settled_error, settled_params, settled_result
from mcpspy.core.jsontools import Pointer, pointer_text
from mcpspy.core.protocol.listing import EVERY_LISTING, LISTINGS, ListMethod
from mcpspy.core.protocol.message import Failure, Notification, Result, loads
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.protocol.spec import META, METHODS, MODERN, SERVER_CAPABILITIES
from mcpspy.core.session.exchange import TRANSITIONS, Event, Exchange, State
from mcpspy.core.session.outcome import FAILED, OK, OUTCOMES, TOOL_ERRORS, describe

BREAKING, DIFFERENT, NOTE = ChangeSeverity

SUMMARY = 200

_SUCCEEDED = frozenset(state for state, outcome in OUTCOMES.items() if outcome.tone == OK)
_FAILED = frozenset(
    state
    for state, outcome in OUTCOMES.items()
    if outcome.failed or outcome.unanswered or outcome.is_withheld
)
"""The states of a request whose sender got no usable outcome."""

NAMED = {method: (listing.member, listing.key) for method, listing in EVERY_LISTING.items()}
"""Method → the unordered list in its result, and the member that identifies an item."""

_AT_END = {state: after[Event.END] for state, after in TRANSITIONS.items() if Event.END in after}
"""The states of a live session: they differ from their values only by the time at which it was read."""

_CANCELLED = {State.CANCELLED, *(state for state, outcome in OUTCOMES.items() if outcome.is_late)}
"""States that differ by a race: whether a response arrives after a cancellation, and which one, is chance."""

_NOT_FOUND = frozenset((-32002, -32602))
"""Error codes for a missing resource: until 2025-11-25, and since 2026-07-28."""


class ComparisonContext(NamedTuple):
    """The options of a comparison, and what they mean for a message."""

    options: DiffOptions
    is_across: bool = False
    """True if one session is of a revision with a handshake and the other of one without."""
    resources: frozenset[str] = frozenset()
    """URIs that the new server listed."""

    def patterns(self, message: Comparable) -> tuple[Pointer, ...]:
        ignored = self.options.ignored
        return tuple(each.tokens for each in ignored if each.tokens and each.is_about(message))

    def is_ignored(self, message: Comparable) -> bool:
        return any(not each.tokens and each.is_about(message) for each in self.options.ignored)

    def params(self, message: StandaloneMessage | Notification) -> Any:
        """Return normalized params without ignored values, in the structure of the message."""
        return cut({"params": settled_params(message.params)}, self.patterns(message))

    def differences(self, old: Any, new: Any, patterns: tuple[Pointer, ...]) -> Iterator[ValueChange]:
        for found in deltas(old, new, tolerance=self.options.tolerance):
            if not is_cut(found.tokens, patterns):
                yield found


def compare_steps(
    old: RequestStep, new: RequestStep, context: ComparisonContext, *, is_exact: bool
) -> Iterator[DiffChange]:
    """Yield the differences of two steps, except latency."""
    if not is_exact:
        yield from compare_params(ChangeKind.REQUEST, DIFFERENT, old, new, context)
    before, now = _AT_END.get(old.state, old.state), _AT_END.get(new.state, new.state)
    if before is now and before not in _CANCELLED:
        if is_exact:
            yield from _responses(old, new, context)
    elif State.UNKNOWN not in (before, now) and not (before in _CANCELLED and now in _CANCELLED):
        yield from _outcome(old, new, before, now, is_exact=is_exact)
        if is_exact and before in _FAILED and now in _SUCCEEDED:
            yield from one_listing(None, new, context)
    if is_exact:
        yield from _progress(old, new, context)


def compare_params(
    kind: ChangeKind,
    severity: ChangeSeverity,
    old: StandaloneMessage,
    new: StandaloneMessage,
    context: ComparisonContext,
) -> Iterator[DiffChange]:
    for found in context.differences(context.params(old), context.params(new), context.patterns(new)):
        yield _value_change(kind, severity, found)


def _value_change(
    kind: ChangeKind, severity: ChangeSeverity, found: ValueChange, why: str = ""
) -> DiffChange:
    pointer = pointer_text(found.tokens)
    return DiffChange(kind=kind, severity=severity, why=why, pointer=pointer, old=found.old, new=found.new)


def _outcome(
    old: RequestStep, new: RequestStep, before: State, now: State, *, is_exact: bool
) -> Iterator[DiffChange]:
    why = f"{ended(old)} → {ended(new)}"
    if new.is_subscription and new.progress and old.progress:
        # It ends with the session; the way it ends is a race.
        yield DiffChange(kind=ChangeKind.OUTCOME, severity=NOTE, why=why)
    elif before in _SUCCEEDED and now in _FAILED:
        # A different request may fail for other reasons.
        yield _failing(ChangeKind.ERROR, BREAKING if is_exact else DIFFERENT, why, old, new)
    elif before in _FAILED and now in _SUCCEEDED:
        yield _failing(ChangeKind.RECOVERED, DIFFERENT, why, old, new)
    elif before in _FAILED and now in _FAILED:
        yield _failing(ChangeKind.ERROR, DIFFERENT, why, old, new)
    else:
        yield DiffChange(kind=ChangeKind.OUTCOME, severity=DIFFERENT, why=why)


def _failing(
    kind: ChangeKind, severity: ChangeSeverity, why: str, old: RequestStep, new: RequestStep
) -> DiffChange:
    is_error = old.error is not None or new.error is not None
    before, now = (_response(step, is_error=is_error) for step in (old, new))
    pointer = "" if before is UNSET and now is UNSET else "/error" if is_error else "/result"
    return DiffChange(kind=kind, severity=severity, why=why, pointer=pointer, old=before, new=now)


def _response(step: RequestStep, *, is_error: bool) -> Any:
    if is_error:
        return UNSET if step.error is None else loads(step.error)
    return step.result if step.results else UNSET


def ended(step: RequestStep) -> str:
    """Return the outcome in a few words; may contain a peer's text."""
    late = "late " if OUTCOMES[step.state].is_late else ""
    if step.error is not None:
        return late + _first_line(step.error_description)
    if step.state in TOOL_ERRORS and isinstance(result := step.result, dict):
        content = result.get("content")
        first = content[0] if isinstance(content, list) and content else None
        if isinstance(first, dict) and isinstance(text := first.get("text"), str):
            return f"{late}tool error: {_first_line(text)}"
    return str(step.state)


def _first_line(text: str) -> str:
    line = text.strip().partition("\n")[0]
    return line if len(line) <= SUMMARY else line[: SUMMARY - 1] + "…"


def _responses(old: RequestStep, new: RequestStep, context: ComparisonContext) -> Iterator[DiffChange]:
    """Yield the differences of two responses with the same state."""
    if old.results == new.results and old.error == new.error:
        return
    patterns = context.patterns(new)
    one, two = cut(_whole(old), patterns), cut(_whole(new), patterns)
    listing = LISTINGS.get(new.method)
    if listing is not None and _is_named(one, listing.member) and _is_named(two, listing.member):
        items, others = one["result"].pop(listing.member), two["result"].pop(listing.member)
        yield from _listed(listing, items, others, context)
    kind = ChangeKind.ERROR if old.state in FAILED else ChangeKind.RESULT
    for found in context.differences(one, two, patterns):
        if _is_of_era(found.tokens, found.old, found.new, context):
            continue
        is_noted = found.is_layout or (found.tokens[1:2] and found.tokens[1] in NOTED)
        why = "same JSON, formatted differently" if found.is_layout else ""
        yield _value_change(kind, NOTE if is_noted else DIFFERENT, found, why)


def one_listing(
    old: RequestStep | None, new: RequestStep | None, context: ComparisonContext
) -> Iterator[DiffChange]:
    """Yield what a listing lost or gained if the other session has none, since its server offered nothing to list."""
    (step,) = (each for each in (old, new) if each is not None)
    whole, listing = cut(_whole(step), context.patterns(step)), LISTINGS.get(step.method)
    if listing is not None and _is_named(whole, listing.member):
        items = whole["result"][listing.member]
        yield from _listed(listing, {} if old is None else items, {} if new is None else items, context)


def _listed(
    listing: ListMethod, old: dict[str, Any], new: dict[str, Any], context: ComparisonContext
) -> Iterator[DiffChange]:
    for judged in compare_listed(listing, old, new, tolerance=context.options.tolerance):
        found = ValueChange(("result", listing.member, *judged.tokens), judged.old, judged.new)
        # Clients read the URI as before: without variables, a template is the URI of one resource (RFC 6570).
        is_resource = (
            listing.key == "uriTemplate" and judged.new is UNSET and judged.tokens[0] in context.resources
        )
        severity, why = (NOTE, f"{judged.why}, which is a resource now") if is_resource else judged[1:3]
        yield _value_change(ChangeKind.INTERFACE, severity, found, why)


def _whole(step: RequestStep) -> dict[str, Any]:
    """Return the normalized response in the structure of its message; unordered lists by name."""
    if step.error is not None:
        return {"error": settled_error(loads(step.error))}
    if not step.results:
        return {}
    result = settled_result(step.result)
    if isinstance(result, dict) and (member_and_name := NAMED.get(step.method)):
        member, name = member_and_name
        if (named := by_name(result.get(member), name)) is not None:
            result = {**result, member: named}
    return {"result": result}


def _is_named(whole: dict[str, Any], member: str) -> bool:
    result = whole.get("result")
    return isinstance(result, dict) and isinstance(result.get(member), dict)


def _is_of_era(tokens: Pointer, old: Any, new: Any, context: ComparisonContext) -> bool:
    """Return whether a difference is only due to the two revisions."""
    if not context.is_across:
        return False
    if tokens[1:2] and tokens[1] in OF_MODERN and (old is UNSET or new is UNSET):
        return True
    return tokens == ("error", "code") and {old, new} == _NOT_FOUND


def _progress(old: RequestStep, new: RequestStep, context: ComparisonContext) -> Iterator[DiffChange]:
    if not old.progress and not new.progress:
        return
    patterns = context.patterns(new)
    one, two = (cut({"progress": _notified(step, context)}, patterns) for step in (old, new))
    # The progress before a cancellation is chance.
    by_chance = old.state in _CANCELLED
    for found in context.differences(one, two, patterns):
        yield _value_change(ChangeKind.PROGRESS, NOTE if by_chance else DIFFERENT, found)


def _notified(step: RequestStep, context: ComparisonContext) -> list[Any]:
    """Return the notifications with its token or subscription; sorted for a subscription."""
    notified = []
    for message in step.progress:
        if context.is_ignored(message):
            continue
        whole = context.params(message)
        if isinstance(params := whole.get("params"), dict):
            whole = {"params": {key: value for key, value in params.items() if key != "progressToken"}}
        notified.append({"method": message.method, **whole})
    return sorted(notified, key=fingerprint) if step.is_subscription else notified


_OF_LEGACY = frozenset(("tasks", "logging"))
"""Capabilities that 2026-07-28 defines differently, or as an extension."""


def handshake(old: SessionSteps, new: SessionSteps) -> ComparedCase | None:
    before, now = _last_answered(old), _last_answered(new)
    if before is None and now is None and not (old.session.revision or new.session.revision):
        return None
    changes = [*_handshake_outcome(old, new), *_client(old, new), *_server(old, new)]
    if before is not None and now is not None:
        is_across = is_across_handshake(old, new)
        changes += _results(_result(before), _result(now), is_across=is_across)
    positions = _position(old, before), _position(new, now)
    return ComparedCase(method="handshake", old=positions[0], new=positions[1], changes=tuple(changes))


def is_across_handshake(old: SessionSteps, new: SessionSteps) -> bool:
    """Return whether one session has a handshake and the other is of a revision without one."""
    return ((old.session.revision or "") >= MODERN) != ((new.session.revision or "") >= MODERN)


def resource_uris(steps: SessionSteps) -> frozenset[str]:
    """Return the URIs of the resources that the server listed."""
    results = (step.result for step in steps.steps if step.method == "resources/list" and step.results)
    lists = (result.get("resources") for result in results if isinstance(result, dict))
    return frozenset(uri for listed in lists for uri in by_name(listed, "uri") or ())


def missing_capability(method: str, steps: SessionSteps) -> str | None:
    """Return the capability without which a client cannot list; None if the server has it, or stated none at all."""
    known, answered = METHODS.get(method), _last_answered(steps)
    needed = known.needs if known is not None and method in LISTINGS else None
    if needed is None or answered is None:
        return None
    capabilities = _result(answered).get("capabilities")
    return needed if isinstance(capabilities, dict) and needed not in capabilities else None


def _last_answered(steps: SessionSteps) -> Exchange | None:
    answered = [found for found, _ in steps.introductions if isinstance(found.answer, Result)]
    return answered[-1] if answered else None


def _result(exchange: Exchange) -> dict[str, Any]:
    """Return the result, with `serverInfo` where a handshake has it: since 2026-07-28 it is in `_meta`."""
    result = exchange.answer.result if isinstance(exchange.answer, Result) else None
    if not isinstance(result, dict):
        return {}
    meta = result.get("_meta")
    server = meta.get(META + "serverInfo") if isinstance(meta, dict) else None
    return result if server is None else {"serverInfo": server, **result}


def _position(steps: SessionSteps, exchange: Exchange | None) -> ChangePosition | None:
    places = [place for found, place in steps.introductions if exchange is None or found is exchange]
    return places[-1] if places else None


def _handshake_outcome(old: SessionSteps, new: SessionSteps) -> Iterator[DiffChange]:
    if old.introductions and new.introductions:
        was, is_now = _last_answered(old) is not None, _last_answered(new) is not None
        if was != is_now:
            kind = ChangeKind.RECOVERED if is_now else ChangeKind.ERROR
            severity = DIFFERENT if is_now else BREAKING
            why = f"{_ended(old)} → {_ended(new)}"
            yield DiffChange(kind=kind, severity=severity, why=why, **_errors(old, new))


def _errors(old: SessionSteps, new: SessionSteps) -> dict[str, Any]:
    errors = {}
    for side, steps in (("old", old), ("new", new)):
        last = steps.introductions[-1][0].answer
        if isinstance(last, Failure) and _last_answered(steps) is None:
            errors[side] = last.error
    return {**errors, "pointer": "/error"} if errors else {}


def _ended(steps: SessionSteps) -> str:
    if _last_answered(steps) is not None:
        return "ok"
    return describe(steps.introductions[-1][0])[0]


def _client(old: SessionSteps, new: SessionSteps) -> Iterator[DiffChange]:
    one, two = old.session, new.session
    if one.client != two.client:
        yield _note("/params/clientInfo", _peer_fields(one.client), _peer_fields(two.client))
    for found in deltas(one.client_capabilities, two.client_capabilities):
        yield _note("/params/capabilities" + pointer_text(found.tokens), found.old, found.new)


def _server(old: SessionSteps, new: SessionSteps) -> Iterator[DiffChange]:
    one, two = old.session.server, new.session.server
    if one is not None and two is not None and one != two:
        severity = NOTE if one.name == two.name else DIFFERENT
        for member in ("name", "version"):
            before, now = getattr(one, member), getattr(two, member)
            if before != now:
                level = severity if member == "name" else NOTE
                yield _change(level, f"/result/serverInfo/{member}", before, now)
    was, is_now = old.session.revision, new.session.revision
    if was != is_now and was is not None and is_now is not None:
        is_same_request = _requested_revision(old) == _requested_revision(new) is not None
        yield _change(DIFFERENT if is_same_request else NOTE, "/result/protocolVersion", was, is_now)


def _requested_revision(steps: SessionSteps) -> str | None:
    for exchange, _ in reversed(steps.introductions):
        if exchange.request.method == "initialize" and isinstance(params := exchange.request.params, dict):
            version = params.get("protocolVersion")
            return version if isinstance(version, str) else None
    return None


def _results(old: dict[str, Any], new: dict[str, Any], *, is_across: bool) -> Iterator[DiffChange]:
    for found in deltas(settled_result(old), settled_result(new)):
        first, *rest = found.tokens or ("",)
        pointer = "/result" + pointer_text(found.tokens)
        if first == "capabilities":
            # Subscriptions work differently since 2026-07-28.
            is_revision_specific = is_across and (len(rest) > 1 or not _OF_LEGACY.isdisjoint(rest))
            yield from _capability(
                pointer, found.old, found.new, rest, is_revision_specific=is_revision_specific
            )
        elif first == "serverInfo" and found.tokens[1:] in (("name",), ("version",)):
            continue  # Reported already.
        elif first == "supportedVersions" and not is_across:
            yield _change(BREAKING if found.new is UNSET else NOTE, pointer, found.old, found.new)
        elif first not in ("protocolVersion", "supportedVersions", "ttlMs", "cacheScope"):
            yield _note(pointer, found.old, found.new)


def _capability(
    pointer: str, old: Any, new: Any, rest: list[str], *, is_revision_specific: bool
) -> Iterator[DiffChange]:
    """Yield the change of a capability, or of a part of one; `false` is equal to missing.

    No client can miss a capability that no method of a server needs: one of clients, or an unknown one.
    """
    name = ".".join(rest)
    had, has = (side is not UNSET and side is not False for side in (old, new))
    if rest and (rest[0] not in SERVER_CAPABILITIES or is_revision_specific):
        yield _note(pointer, old, new)
    elif had and has:
        yield _change(DIFFERENT, pointer, old, new)
    elif had:
        # A client cannot rely on notifications: a server that has `listChanged` may never send one.
        severity = DIFFERENT if rest[1:] == ["listChanged"] else BREAKING
        yield _change(severity, pointer, old, new, f"lost the capability {name}")
    elif has:
        yield _change(NOTE, pointer, old, new, f"gained the capability {name}")


def _peer_fields(peer: Peer | None) -> Any:
    return UNSET if peer is None else peer._asdict()


def _note(pointer: str, old: Any, new: Any) -> DiffChange:
    return _change(NOTE, pointer, old, new)


def _change(severity: ChangeSeverity, pointer: str, old: Any, new: Any, why: str = "") -> DiffChange:
    kind = ChangeKind.HANDSHAKE
    return DiffChange(kind=kind, severity=severity, pointer=pointer, old=old, new=new, why=why)
