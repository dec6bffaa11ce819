"""Claims: which cause explains which symptom.

A cause is a function that reads the facts and yields claims: the symptoms that it explains, the evidence, a sentence, and
the next step, which is computed from the evidence. Each symptom belongs to the most specific claim; a claim that has lost
all its symptoms is dropped. So a general cause never hides the failure of another request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

from msgspec import Struct, field

from mcpspy.analysis.explain.evidence import EvidenceLine
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import (
    ClientLeft,
    FailedRequest,
    IgnoredResponse,
    RefusedExchange,
    ServerEnd,
    Symptom,
    Violation,
)
from mcpspy.core.counted import counted

MAX_ALIKE = 3
"""Maximum number of claims of one cause that are shown one by one."""


class Level(IntEnum):
    """The specificity of a claim: the higher one gets a symptom that two claim."""

    QUOTE = 0
    """Only the words of the peer, or the state."""
    GENERAL = 1
    """A kind of failure: a status, a timeout."""
    SPECIFIC = 2
    """The evidence shows the mistake."""
    EXACT = 3
    """The evidence names the thing that has to be changed."""
    DELIBERATE = 4
    """mcpspy did it, on the user's behalf."""


class Claim(Struct, eq=False):
    title: str
    """The event and its reason, in one sentence without a full stop; with text of peers that is not sanitized."""
    next_step: str
    symptoms: list[Symptom]
    evidence: list[EvidenceLine] = field(default_factory=list)
    """Further lines beside those of its symptoms; they come first."""
    side: str = ""
    """The origin of the mistake: `server`, `client`, `proxy`, `configuration`, `environment`; empty if that is open."""
    level: Level | None = None
    """None for that of its cause."""
    is_observation: bool = False
    """True if it is worth knowing, and not a failure: it changes no exit code."""
    code: str = ""
    """The name of its cause."""

    @property
    def at(self) -> float:
        return min((symptom.at for symptom in self.symptoms), default=0.0)


Explain = Callable[[Facts], Iterable[Claim]]


class CauseKind(NamedTuple):
    """A cause: its name, what it is in general, and examples in the notation of `analysis.lint.examples`."""

    code: str
    summary: str
    claims: Explain
    level: Level
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()
    rules: frozenset[str] = frozenset()
    """The rules of lint whose findings it reads."""

    @property
    def explanation(self) -> str:
        return inspect.cleandoc(self.claims.__doc__ or "")


CAUSES: list[CauseKind] = []
"""All causes, in the order of their definition."""


def cause(
    code: str,
    summary: str,
    level: Level,
    *,
    rules: str | Iterable[str] = "",
    positive: str | tuple[str, ...] = (),
    negative: str | tuple[str, ...] = (),
) -> Callable[[Explain], Explain]:
    """Add the decorated function as a cause; its docstring has the reasons. Raise ValueError for a code in use.

    `rules` are the rules of lint whose findings it reads: no others are checked.
    """
    if any(other.code == code for other in CAUSES):
        raise ValueError(f"{code}: already in use")

    def add(claims: Explain) -> Explain:
        examples = _several(positive), _several(negative)
        read = frozenset(rules.split() if isinstance(rules, str) else rules)
        CAUSES.append(CauseKind(code, summary, claims, level, *examples, read))
        return claims

    return add


def _several(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


def claims_of(facts: Facts, causes: Iterable[CauseKind]) -> list[Claim]:
    """Return the claims that explain the symptoms, the most important first; observations last."""
    made = []
    for kind in causes:
        for claim in kind.claims(facts):
            claim.code = kind.code
            claim.level = kind.level if claim.level is None else claim.level
            made.append(claim)
    made = _merged(made)
    owners: dict[int, Claim] = {}
    for claim in made:
        for symptom in claim.symptoms:
            owner = owners.get(id(symptom))
            if owner is None or _level(claim) > _level(owner):
                owners[id(symptom)] = claim
    kept = []
    for claim in made:
        claimed = list({id(symptom): symptom for symptom in claim.symptoms}.values())
        claim.symptoms = [symptom for symptom in claimed if owners[id(symptom)] is claim]
        # Findings accompany a failure; alone they do not keep a claim whose failures another one explains.
        needed = [symptom for symptom in claimed if not isinstance(symptom, Violation)] or claimed
        if not claimed or any(owners[id(symptom)] is claim for symptom in needed):
            kept.append(claim)
    return sorted(kept, key=_order)


def _merged(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims with those that say the same as one."""
    merged: dict[tuple[str, str], Claim] = {}
    for claim in claims:
        known = merged.setdefault((claim.code, claim.title), claim)
        if known is not claim:
            known.symptoms += [symptom for symptom in claim.symptoms if symptom not in known.symptoms]
            known.evidence += claim.evidence
    return list(merged.values())


def folded(claims: Iterable[Claim]) -> list[Claim]:
    """Return the claims with at most `MAX_ALIKE` of one cause: the last of these has the symptoms of the others."""
    kept: list[Claim] = []
    alike: dict[str, list[Claim]] = {}
    for claim in claims:
        same = alike.setdefault(claim.code, [])
        same.append(claim)
        if len(same) <= MAX_ALIKE:
            kept.append(claim)
        else:
            same[MAX_ALIKE - 1].symptoms += claim.symptoms
    for same in alike.values():
        if (more := len(same) - MAX_ALIKE) > 0:
            same[MAX_ALIKE - 1].title += f" (and {counted(more, 'more failure')} of this kind)"
    return kept


def _order(claim: Claim) -> tuple[bool, int, int, float]:
    weight = max((_weight(symptom) for symptom in claim.symptoms), default=0)
    return claim.is_observation, -weight, -_level(claim), claim.at


def _level(claim: Claim) -> Level:
    return Level.QUOTE if claim.level is None else claim.level


def _weight(symptom: Symptom) -> int:
    """Return how much a symptom kept people from using the server."""
    match symptom:
        case ServerEnd(has_answered=False):
            return 9
        case FailedRequest() if symptom.is_handshake:
            return 8
        case ClientLeft(is_initialized=False):
            return 7
        case ServerEnd() | ClientLeft() | IgnoredResponse():
            return 6
        case FailedRequest(method="tools/list"):
            return 6
        case FailedRequest():
            return 5
        case RefusedExchange():
            return 4
        case Violation():
            return 3
    return 0


def lines_of(claim: Claim) -> Iterator[EvidenceLine]:
    """Yield the evidence of a claim, each line once."""
    lines = [*claim.evidence, *(line for symptom in claim.symptoms for line in symptom.lines)]
    yield from dict.fromkeys(lines)
