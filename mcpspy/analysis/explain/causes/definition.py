"""Definition of causes: by a function, or by a row of what failures have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes.exchanges import about, alike, exchanges, is_overcome, who_refused
from mcpspy.analysis.explain.claims import Claim, Explain, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

Examples = str | tuple[str, ...]

Advice = tuple[tuple[str, str], ...]
"""Pattern of words → next step; the first pattern that the words have counts."""


def advised(advice: Advice, words: str) -> str:
    """Return the next step for these words; the last pattern must have all."""
    return next(step for pattern, step in advice if re.search(pattern, words, re.IGNORECASE))


class Definition(NamedTuple):
    """A cause by its function, whose docstring has the reasons."""

    claims: Explain
    code: str
    summary: str
    level: Level
    positive: Examples = ()
    negative: Examples = ()


class Failure(NamedTuple):
    """A failed request, or a refused HTTP exchange, or both."""

    symptom: Symptom
    exchange: RefusedExchange | None

    @property
    def words(self) -> str:
        """The words of the JSON-RPC error, else of the body or challenge."""
        own = self.symptom.words if isinstance(self.symptom, FailedRequest) else ""
        return own or ("" if self.exchange is None else self.exchange.words)

    def shown(self, facts: Facts) -> dict[str, object]:
        """Return the parts of a title."""
        request = self.symptom if isinstance(self.symptom, FailedRequest) else None
        exchange = self.exchange
        is_refused = exchange is not None and (exchange.status or 0) >= 300
        return {
            "about": request.about if request else about(exchange) if exchange else "",
            "code": request.code if request else "",
            "status": exchange.status if exchange else "",
            "who": who_refused(exchange) if exchange else "",
            "error": quote(exchange.error) if exchange else "",
            "waited": request.waited if request else "",
            "words": quote(self.words),
            "said": clause(self.words or (request.why if request and not is_refused else "")),
            "sessions": facts.answered[CLIENT, "initialize"],
        }


class Row(NamedTuple):
    """A cause by what its failures have in common."""

    code: str
    summary: str
    level: Level
    why: str
    """The reasons, for docs/explain.md."""
    title: str
    """With the parts that `Failure.shown` names; {said} is the words after a colon."""
    next_step: str | Advice
    positive: Examples
    negative: Examples = ()
    side: str = SERVER
    words: str = ""
    """A pattern of their words, without regard to case."""
    states: Collection[State] = ()
    """The states of requests; if there are none, the failures are HTTP exchanges."""
    statuses: Collection[int] = ()
    when: Callable[[Facts, Failure], bool] = lambda facts, failure: True
    is_together: bool = False
    """True if one claim explains all alike: with the same HTTP status, or with these words."""
    rules: str = ""
    """Rules of lint whose findings accompany them."""
    is_observation: bool = False

    def claims(self, facts: Facts) -> Iterator[Claim]:
        """Yield a claim for each failure, or for all alike; those that were overcome later are observations."""
        failures = [each for each in self._failures(facts) if self._fits(facts, each)]
        for failure in failures[:1] if self.is_together else failures:
            symptoms = [each.symptom for each in failures] if self.is_together else [failure.symptom]
            if self.is_together and failure.exchange is not None:
                symptoms = alike(facts, failure.exchange)
            step = (
                self.next_step if isinstance(self.next_step, str) else advised(self.next_step, failure.words)
            )
            yield Claim(
                title=self.title.format(**failure.shown(facts)),
                next_step=step,
                symptoms=[*symptoms, *facts.violations(*self.rules.split())],
                side=self.side,
                is_observation=self.is_observation or (not self.states and is_overcome(symptoms)),
            )

    def _failures(self, facts: Facts) -> Iterator[Failure]:
        for failed in facts.failed(*self.states) if self.states else ():
            if failed.side == CLIENT and not failed.effects:
                yield Failure(failed, failed.refusal)
        for exchange, symptom in () if self.states else exchanges(facts, *self.statuses):
            yield Failure(symptom, exchange)

    def _fits(self, facts: Facts, failure: Failure) -> bool:
        return re.search(f"(?i){self.words}", failure.words[:400]) is not None and self.when(facts, failure)


def define(area: str, *definitions: Definition | Row) -> None:
    """Add the causes of a module, in this order, which decides between claims that are equally specific."""
    for each in definitions:
        claims = each.claims
        if isinstance(each, Row):
            claims = _of_row(each, area)
        cause(each.code, each.summary, level=each.level, positive=each.positive, negative=each.negative)(
            claims
        )


def _of_row(row: Row, area: str) -> Explain:
    def claims(facts: Facts) -> Iterator[Claim]:
        return row.claims(facts)

    claims.__doc__, claims.__module__ = row.why, area
    return claims
