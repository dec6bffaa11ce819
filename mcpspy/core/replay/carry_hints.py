"""Suggestions of `--carry` rules for values that a client seems to have taken from a response.

These are only suggestions: two equal texts may be a coincidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mcpspy.core.jsontools import Pointer
from mcpspy.core.protocol.message import Request, loads
from mcpspy.core.replay.player import SentRequest
from mcpspy.core.replay.substitution import SubstitutionRule, sent_back

MIN_LENGTH = 4
"""Minimum characters of a text that is not a coincidence; two more for a part of one."""

MIN_NUMBER = 1000
"""Smaller numbers may be coincidences."""

CLIENT_PARAMS = frozenset("_meta name ref level protocolVersion capabilities clientInfo".split())
"""Parameters that a client sets by itself, or takes from lists by name."""

_WORD = r"[\w.:/+=-]+"

_CONTEXT = 24
"""Maximum characters before a value that identify it within a text."""


def suggestions(
    sent: Iterable[SentRequest], known: Sequence[SubstitutionRule] = ()
) -> list[tuple[str, SubstitutionRule]]:
    """Return each suggested rule once, with a description of the value that was sent back."""
    rules: dict[str, tuple[str, SubstitutionRule]] = {}
    substituted: set[str | int | None] = set()
    changed: list[tuple[Pointer, str | int, Any]] = []
    for each in sent:
        message = each.step.message
        if isinstance(message, Request):
            for value in _candidate_values(message):
                for tokens, before, answer in changed:
                    rule = _rule(tokens, before, value)
                    if (
                        rule is not None
                        and rule.value(answer) not in (None, value)
                        and value not in substituted
                    ):
                        rules.setdefault(str(rule), (f"{each.about} sent back {value!r}", rule))
        recorded = each.step.exchange.answer if each.step.exchange is not None else None
        if recorded is not None and each.answer is not None:
            answer = loads(each.answer.data)
            substituted |= {rule.value(loads(recorded.data)) for rule in known}
            changed += [(*leaf, answer) for leaf in _changed(loads(recorded.data), answer, ())]
    return list(rules.values())


def _candidate_values(message: Request) -> Iterator[str | int]:
    """Yield values that may come from a response: neither protocol fields nor too short."""
    params = message.params
    if not isinstance(params, dict):
        return
    left_out = {*CLIENT_PARAMS, *(path[0] for _, path, _ in sent_back(message))}
    for value in _leaves({key: item for key, item in params.items() if key not in left_out}):
        if len(value) >= MIN_LENGTH if isinstance(value, str) else value >= MIN_NUMBER:
            yield value


def _leaves(value: Any) -> Iterator[str | int]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif isinstance(value, str | int) and not isinstance(value, bool):
        yield value


def _changed(one: Any, other: Any, at: Pointer) -> Iterator[tuple[Pointer, str | int]]:
    """Yield the places at which two responses differ in a text or number, with the first one's value."""
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
    """Return the rule that extracts `value` from `before`, the text at a changed place; None if none does."""
    if before == value and type(before) is type(value):
        return SubstitutionRule(tokens)
    if not (isinstance(before, str) and isinstance(value, str) and len(value) >= MIN_LENGTH + 2):
        return None
    start = before.find(value)
    if start < 0 or not re.fullmatch(_WORD, value):
        return None
    context = before[max(0, start - _CONTEXT) : start].rpartition("\n")[2]
    escaped = re.escape(context).replace(r"\ ", " ")
    rule = SubstitutionRule(tokens, f"{escaped or '^'}({_WORD})")
    found = re.search(rule.pattern or "", before)
    return rule if found is not None and found[1] == value else None
