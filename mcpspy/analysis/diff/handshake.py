"""Compare the handshakes of two sessions, or their `server/discover` if the revision has no handshake.

A client may probe for the revision, so a refused or missing probe is not a difference (2026-07-28,
basic/versioning).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import deltas
from mcpspy.analysis.diff.model import ChangeKind, ChangePosition, ChangeSeverity, ComparedCase, DiffChange
from mcpspy.analysis.diff.normalize import settled_result
from mcpspy.analysis.diff.steps import SessionSteps
from mcpspy.core.jsontools import pointer_text
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.peers import Peer
from mcpspy.core.protocol.spec import MODERN
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.outcome import describe

BREAKING, DIFFERENT, NOTE = ChangeSeverity

_OF_LEGACY = frozenset(("tasks", "logging"))
"""Capabilities that 2026-07-28 defines differently, or as an extension."""


def handshake(old: SessionSteps, new: SessionSteps) -> ComparedCase | None:
    before, now = _last_answered(old), _last_answered(new)
    if before is None and now is None and not (old.session.revision or new.session.revision):
        return None
    changes = [*_outcome(old, new), *_client(old, new), *_server(old, new)]
    if before is not None and now is not None:
        is_across = is_across_handshake(old, new)
        changes += _results(_result(before), _result(now), is_across=is_across)
    positions = _position(old, before), _position(new, now)
    return ComparedCase(method="handshake", old=positions[0], new=positions[1], changes=tuple(changes))


def is_across_handshake(old: SessionSteps, new: SessionSteps) -> bool:
    """Return whether one session has a handshake and the other is of a revision without one."""
    return ((old.session.revision or "") >= MODERN) != ((new.session.revision or "") >= MODERN)


def _last_answered(steps: SessionSteps) -> Exchange | None:
    answered = [found for found, _ in steps.introductions if isinstance(found.answer, Result)]
    return answered[-1] if answered else None


def _result(exchange: Exchange) -> dict[str, Any]:
    result = exchange.answer.result if isinstance(exchange.answer, Result) else None
    return result if isinstance(result, dict) else {}


def _position(steps: SessionSteps, exchange: Exchange | None) -> ChangePosition | None:
    places = [place for found, place in steps.introductions if exchange is None or found is exchange]
    return places[-1] if places else None


def _outcome(old: SessionSteps, new: SessionSteps) -> Iterator[DiffChange]:
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
            yield _capability(pointer, found.old, found.new, rest, is_revision_specific=is_revision_specific)
        elif first == "serverInfo" and (is_across or found.tokens[1:] in (("name",), ("version",))):
            continue  # Reported already; since 2026-07-28 it is in `_meta`.
        elif first == "supportedVersions" and not is_across:
            yield _change(BREAKING if found.new is UNSET else NOTE, pointer, found.old, found.new)
        elif first not in ("protocolVersion", "supportedVersions", "ttlMs", "cacheScope"):
            yield _note(pointer, found.old, found.new)


def _capability(
    pointer: str, old: Any, new: Any, rest: list[str], *, is_revision_specific: bool
) -> DiffChange:
    """Return the change of a capability, or of a part of one; `false` is equal to missing."""
    name = ".".join(rest)
    if rest[:1] in (["experimental"], ["extensions"]) or is_revision_specific:
        return _note(pointer, old, new)
    if new is UNSET or new is False:
        if old is False or old is UNSET:
            return _note(pointer, old, new)
        return _change(BREAKING, pointer, old, new, f"lost the capability {name}")
    if old is UNSET or old is False:
        return _change(NOTE, pointer, old, new, f"gained the capability {name}")
    return _change(DIFFERENT, pointer, old, new)


def _peer_fields(peer: Peer | None) -> Any:
    return UNSET if peer is None else peer._asdict()


def _note(pointer: str, old: Any, new: Any) -> DiffChange:
    return _change(NOTE, pointer, old, new)


def _change(severity: ChangeSeverity, pointer: str, old: Any, new: Any, why: str = "") -> DiffChange:
    kind = ChangeKind.HANDSHAKE
    return DiffChange(kind=kind, severity=severity, pointer=pointer, old=old, new=new, why=why)
