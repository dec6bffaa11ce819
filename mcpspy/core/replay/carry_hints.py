"""Values that a client seems to have taken from an answer, and that are other ones this time.

Owns the guess, and the `--carry` rule that would make it true. It only ever
suggests: that two texts are equal may be chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mcpspy.core.jsontools import Pointer
from mcpspy.core.protocol.message import Request, loads
from mcpspy.core.replay.player import SentRequest
from mcpspy.core.replay.substitution import SubstitutionRule, given_back

SHORTEST = 4
"""Characters of a text that is no chance; of a part of one, two more."""

SMALLEST = 1000
"""A number below may be anything."""

OWN = frozenset("_meta name ref level protocolVersion capabilities clientInfo".split())
"""Parameters that a client knows by itself, or that lists give it by their names."""

_WORD = r"[\w.:/+=-]+"

_CONTEXT = 24
"""Characters before a value in a text by which it is found."""


def suggestions(
    sent: Iterable[SentRequest], known: Sequence[SubstitutionRule] = ()
) -> list[tuple[str, SubstitutionRule]]:
    """Return what was given back, and the rule that would carry it, each rule once."""
    rules: dict[str, tuple[str, SubstitutionRule]] = {}
    carried: set[str | int | None] = set()
    changed: list[tuple[Pointer, str | int, Any]] = []
    for each in sent:
        message = each.cue.message
        if isinstance(message, Request):
            for value in _own_values(message):
                for tokens, before, answer in changed:
                    rule = _rule(tokens, before, value)
                    if rule is not None and rule.value(answer) not in (None, value) and value not in carried:
                        rules.setdefault(str(rule), (f"{each.about} gave back {value!r}", rule))
        recorded = each.cue.exchange.answer if each.cue.exchange is not None else None
        if recorded is not None and each.answer is not None:
            answer = loads(each.answer.data)
            carried |= {rule.value(loads(recorded.data)) for rule in known}
            changed += [(*leaf, answer) for leaf in _changed(loads(recorded.data), answer, ())]
    return list(rules.values())


def _own_values(message: Request) -> Iterator[str | int]:
    """Yield what could have been taken from an answer: not what the protocol carries, nor what is too short."""
    params = message.params
    if not isinstance(params, dict):
        return
    left_out = {*OWN, *(path[0] for _, path, _ in given_back(message))}
    for value in _leaves({key: item for key, item in params.items() if key not in left_out}):
        if len(value) >= SHORTEST if isinstance(value, str) else value >= SMALLEST:
            yield value


def _leaves(value: Any) -> Iterator[str | int]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield value


def _changed(one: Any, other: Any, at: Pointer) -> Iterator[tuple[Pointer, str | int]]:
    """Yield the places at which two answers have other texts or numbers, and what the first has there."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key, item in one.items():
            if key in other and (at or key in ("result", "error")):
                yield from _changed(item, other[key], (*at, key))
    elif isinstance(one, list) and isinstance(other, list):
        for place, (first, second) in enumerate(zip(one, other, strict=False)):
            yield from _changed(first, second, (*at, str(place)))
    elif isinstance(one, str | int) and type(one) is type(other) and one != other:
        yield at, one


def _rule(tokens: Pointer, before: str | int, value: str | int) -> SubstitutionRule | None:
    """Return the rule by which a changed place yields a value; None if it does not."""
    if before == value and type(before) is type(value):
        return SubstitutionRule(tokens)
    if not (isinstance(before, str) and isinstance(value, str) and len(value) >= SHORTEST + 2):
        return None
    start = before.find(value)
    if start < 0 or not re.fullmatch(_WORD, value):
        return None
    context = before[max(0, start - _CONTEXT) : start].rpartition("\n")[2]
    escaped = re.escape(context).replace(r"\ ", " ")
    rule = SubstitutionRule(tokens, f"{escaped or '^'}({_WORD})")
    found = re.search(rule.pattern or "", before)
    return rule if found is not None and found[1] == value else None
