"""Causes that are defined by what failures have in common, and not by a function."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from mcpspy.analysis.explain.causes.exchanges import about, alike, exchanges, is_overcome, said, who_refused
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import clause, quote
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, RefusedExchange, Symptom
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

Examples = str | tuple[str, ...]

Advice = tuple[tuple[str, str], ...]
"""Pattern of words → next step; the first pattern that the words have counts, and the last one has
to fit all.
"""


def advised(advice: str | Advice, words: str) -> str:
    """Return the next step: the one for these words, if it depends on them."""
    if isinstance(advice, str):
        return advice
    return next(step for pattern, step in advice if re.search(pattern, words, re.IGNORECASE))


class Trouble(NamedTuple):
    """A kind of error outside the protocol, by the words in which programs name it."""

    code: str
    what: str
    """The trouble, as a clause."""
    next_step: str | Advice
    named_by: str
    """The programs that print these words, for docs/explain.md."""
    signs: str
    """The words, as a pattern without regard to case."""
    errors: tuple[str, ...]
    """Errors that name it, from servers that do not start."""
    side: str = "environment"
    only_at_start: bool = False
    later: str = ""
    """Of a trouble that is only at the start: those of its words that also name it in a call."""


class FailureRow(NamedTuple):
    """A cause by what its failures have in common: requests of the client in a state, or refused
    HTTP exchanges.
    """

    code: str
    summary: str
    level: Level
    why: str
    """The reasons, for docs/explain.md."""
    title: str
    """With the parts that `shown` returns."""
    next_step: str | Advice
    positive: Examples
    negative: Examples = ()
    side: str | Callable[[Facts, RefusedExchange | None], str] = SERVER
    words: str = ""
    """A pattern of their words, without regard to case."""
    states: Collection[State] = ()
    """The states of requests; if there are none, the failures are HTTP exchanges."""
    statuses: Collection[int] = ()
    if_failed: Callable[[Facts, FailedRequest], bool] = lambda facts, failed: True
    if_refused: Callable[[Facts, RefusedExchange], bool] = lambda facts, exchange: True
    is_together: bool = False
    """True if one claim explains all alike: with the same HTTP status, or with these words."""
    rules: str = ""
    """Rules of lint whose findings accompany them."""
    is_observation: bool = False
    brings: Callable[[Facts, RefusedExchange], list[Symptom]] = lambda facts, exchange: []
    """The failures that a refused exchange brings about."""

    def define(self, area: str) -> None:
        """Add the cause of this row, of a module."""

        def claims(facts: Facts) -> Iterator[Claim]:
            return self.claims(facts)

        claims.__doc__, claims.__module__ = self.why, area
        examples = {"positive": self.positive, "negative": self.negative}
        cause(self.code, self.summary, self.level, rules=self.rules, **examples)(claims)

    def claims(self, facts: Facts) -> Iterator[Claim]:
        """Yield a claim for each failure, or for all alike; those that were overcome later are
        observations.
        """
        found = [*self._found(facts)]
        for symptom, exchange, words in found[:1] if self.is_together else found:
            symptoms = [symptom]
            if self.is_together:
                symptoms = alike(facts, exchange) if exchange is not None else [each[0] for each in found]
            title = self.title.format(**shown(facts, symptom, exchange, words))
            step = advised(self.next_step, words)
            side = self.side if isinstance(self.side, str) else self.side(facts, exchange)
            claim = Claim(title, step, symptoms, side=side)
            claim.is_observation = self.is_observation or (exchange is not None and is_overcome(symptoms))
            claim.symptoms = [*symptoms, *facts.violations(*self.rules.split())]
            claim.symptoms += [] if exchange is None else self.brings(facts, exchange)
            yield claim

    def _found(self, facts: Facts) -> Iterator[tuple[Symptom, RefusedExchange | None, str]]:
        """Yield each failure with its HTTP exchange, if that is what failed, and its words."""
        pattern = re.compile(self.words, re.IGNORECASE)
        for failed in facts.failed(*self.states) if self.states else ():
            is_own = failed.side == CLIENT and not failed.effects
            if is_own and pattern.search(failed.words[:400]) and self.if_failed(facts, failed):
                yield failed, None, failed.words or failed.why
        for exchange, symptom in () if self.states else exchanges(facts, *self.statuses):
            words = said(exchange, symptom)
            if pattern.search(words[:400]) and self.if_refused(facts, exchange):
                yield symptom, exchange, words


def shown(facts: Facts, symptom: Symptom, exchange: RefusedExchange | None, words: str) -> dict[str, object]:
    """Return the parts of a title; `quoted` is the words after a colon, or nothing."""
    parts = {"words": quote(words), "quoted": clause(words), "sessions": facts.answered[CLIENT, "initialize"]}
    if exchange is not None:
        status, error = exchange.status, quote(exchange.error)
        parts |= {"about": about(exchange), "status": status, "who": who_refused(exchange), "error": error}
    if isinstance(symptom, FailedRequest):
        parts |= {"about": symptom.about, "code": symptom.code, "waited": symptom.waited}
    return parts
