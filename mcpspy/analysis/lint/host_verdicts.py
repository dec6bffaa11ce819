"""The verdict on a session for one host: it works, it is degraded, it is blocked, or that is unknown.

A verdict is as good as what is known of the host. Only a host whose limits were measured here gets `works`; one
with reported limits, none of which is exceeded, gets `unknown`. So does any host if the tools of the server are not
in the session, for example because it ended at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from mcpspy.analysis.lint.host_profiles import MEASURED, HostFeature, HostLimit, HostProfile
from mcpspy.analysis.lint.state import LintState
from mcpspy.core.protocol.extensions import declared
from mcpspy.core.protocol.extensions.skills import EXTENSION as SKILLS

_REFUSES_THE_SERVER = (
    "name-length",
    "name",
    "root",
    "root-keyword",
    "keyword",
    "property",
    "tools",
    "revision",
)
"""Limits that, if the host refuses what is beyond them, make all tools of the server unusable."""

MOST_REMEMBERED = 1000


class Fitness(StrEnum):
    """The worst first."""

    BLOCKED = "blocked"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"
    WORKS = "works"


class HostVerdict(NamedTuple):
    """A verdict, with its reason and where that is known from."""

    host: str
    verdict: Fitness
    reason: str
    source: str


class Effect(NamedTuple):
    """Something that a host does with the session."""

    is_blocking: bool
    text: str
    source: str


class HostEffects:
    """Effects of hosts that the rules reported in a session."""

    def __init__(self) -> None:
        self.of: dict[str, list[Effect]] = {}
        """Title of a host → effects."""
        self.is_image_seen = False

    def add(self, host: HostProfile, limit: HostLimit, text: str) -> None:
        found = self.of.setdefault(host.title, [])
        if len(found) < MOST_REMEMBERED:
            is_blocking = limit.effect == "drops-all" or (
                limit.effect == "refuses" and limit.on in _REFUSES_THE_SERVER
            )
            found.append(Effect(is_blocking, text, limit.cause(host)))


def verdict_of(host: HostProfile, state: LintState) -> HostVerdict:
    """Return the verdict on a session that has been checked."""
    seen = state.memory[HostEffects]
    effects = sorted(seen.of.get(host.title, ()), key=lambda effect: not effect.is_blocking)
    shown = {feature.name: feature for feature in host.features}
    unknown = []
    for name in _used(state, seen):
        feature = shown.get(name)
        if feature is None:
            unknown.append(name)
        elif not feature.is_shown:
            effects.append(Effect(False, f"does not show {name}", _cause(host, feature)))
    if effects:
        first = effects[0]
        more = f"; and {len(effects) - 1} more" if len(effects) > 1 else ""
        verdict = Fitness.BLOCKED if first.is_blocking else Fitness.DEGRADED
        return HostVerdict(host.title, verdict, first.text + more, first.source)
    if not state.has_listed_tools and "tools" in (state.server_capabilities or {"tools": {}}):
        return HostVerdict(host.title, Fitness.UNKNOWN, "the session lists no tools", "nothing to compare")
    measured = f"measured with {host.version} on {host.date}"
    if unknown:
        reason = f"nothing is known about {' and '.join(unknown)}, and no known limit is exceeded"
        return HostVerdict(
            host.title, Fitness.UNKNOWN, reason, measured if host.is_measured else "not measured"
        )
    if not host.is_measured:
        return HostVerdict(host.title, Fitness.UNKNOWN, "no reported limit is exceeded", "not measured")
    return HostVerdict(host.title, Fitness.WORKS, "no limit is exceeded", measured)


def _used(state: LintState, seen: HostEffects) -> Iterator[str]:
    """Yield the features that the server uses and that not every host shows."""
    metas = (listed.definition.get("_meta") for listed in state.tools.values())
    if any(isinstance(meta, dict) and isinstance(meta.get("ui"), dict) for meta in metas):
        yield "apps"
    if seen.is_image_seen:
        yield "images"
    if SKILLS.id in declared(state.server_capabilities or {}):
        yield "skills"


def _cause(host: HostProfile, feature: HostFeature) -> str:
    is_measured = feature.source == MEASURED
    return f"measured with {host.version} on {host.date}" if is_measured else feature.source


def worst(verdicts: Iterable[HostVerdict]) -> list[HostVerdict]:
    """Return the worst verdict of each host, in the order of their first ones."""
    found: dict[str, HostVerdict] = {}
    rank = list(Fitness).index
    for each in verdicts:
        known = found.setdefault(each.host, each)
        if rank(each.verdict) < rank(known.verdict):
            found[each.host] = each
    return list(found.values())
