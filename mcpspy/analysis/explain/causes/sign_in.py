"""Signing in: its steps, the requests that were refused for it, and a claim of all that a failed
one brings about.
"""

from __future__ import annotations

from mcpspy.analysis.explain.causes.exchanges import exchanges
from mcpspy.analysis.explain.claims import Claim
from mcpspy.analysis.explain.evidence import EvidenceLine, clause, evidence, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.http_facts import OauthStep
from mcpspy.analysis.explain.symptoms import RefusedExchange, Symptom

RULES = "AUTH101 AUTH102 AUTH103 AUTH104 AUTH105 AUTH201 AUTH202 AUTH203 AUTH204 HTTP502"


Refused = tuple[RefusedExchange, Symptom]


def unauthorized(facts: Facts) -> list[Refused]:
    """Return the requests that were refused for lack of authorization, and did not succeed later."""
    return [each for each in exchanges(facts, 401, 403) if getattr(each[1], "succeeded_at", None) is None]


def steps_of(facts: Facts, *names: str) -> list[OauthStep]:
    return [each for each in facts.http.oauth if each.step in names]


def names_of(step: OauthStep) -> list[str]:
    """Return the names of what a step had: parameters of its request, members of the metadata."""
    return list(step.fields.get("names", ()))


def words_of(step: OauthStep) -> str:
    """Return the error of a step with its description; empty if it has none."""
    words = [str(step.fields[name]) for name in ("error", "error_description") if step.fields.get(name)]
    return quote(": ".join(words))


def _line(step: OauthStep) -> EvidenceLine:
    return evidence(step.place, f"{step.step}: HTTP {step.status}{clause(words_of(step))}")


def _symptoms(facts: Facts) -> list[Symptom]:
    """Return all that a failed sign-in brings about: the refused requests, and the refused steps."""
    refused = [symptom for _, symptom in unauthorized(facts)]
    steps = {key for step in facts.http.oauth for key in (step.place, step.fields.get("http"))}
    rest = [
        each
        for each in facts.of(RefusedExchange)
        if each.number in steps or each.place in steps or each.is_for_metadata
    ]
    early = [
        symptom
        for exchange, symptom in exchanges(facts, 400, 404, 405)
        if facts.http.oauth and exchange.asked == "initialize"
    ]
    return [
        *refused,
        *(each for each in rest if each not in refused),
        *early,
        *facts.violations(*RULES.split()),
    ]


def sign_in_claim(
    facts: Facts, title: str, next_step: str, *steps: OauthStep, side: str = "configuration"
) -> Claim:
    """Return a claim of all that a failed sign-in brings about, with these steps as its evidence."""
    return Claim(title, next_step, _symptoms(facts), evidence=[_line(step) for step in steps], side=side)


def refused_step(facts: Facts, *names: str) -> OauthStep | None:
    """Return the last of these steps, if it was refused."""
    steps = steps_of(facts, *names)
    return steps[-1] if steps and (steps[-1].status or 0) >= 400 else None
