"""Substitution of live values for recorded ones that a server returns and a client sends back.

These are cursors, `requestState` and task ids, which the protocol defines, and values that the user names by
a rule: a session id in a tool's result that is an argument of the next call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from mcpspy.core.jsontools import Pointer, pointer, pointer_text, replaced, value_at
from mcpspy.core.protocol.message import Failure, Notification, Request, Result, decoded, loads, meta_raw
from mcpspy.core.protocol.spec import META

CURSOR, STATE, TASK = "cursor", "requestState", "taskId"

RELATED = META + "related-task"


class SubstitutionRule(Struct, frozen=True):
    """The place in a response of a value that the client sends back later."""

    tokens: Pointer
    pattern: str | None = None
    """With one group, the part of a text that is the value; None: all of it."""

    def value(self, answer: Any) -> str | int | None:
        """Return the value in a response, if there is one."""
        found = value_at(answer, self.tokens)
        if isinstance(found, bool) or not isinstance(found, str | int):
            return None
        if self.pattern is None:
            return found
        match = re.search(self.pattern, str(found))
        return match[1] if match is not None else None

    def __str__(self) -> str:
        return pointer_text(self.tokens) + (f"={self.pattern}" if self.pattern is not None else "")


def rule(text: str) -> SubstitutionRule:
    """Parse `POINTER` or `POINTER=REGEX`; raise ValueError with the reason."""
    place, equals, pattern = text.partition("=")
    tokens = pointer(place)
    if tokens[0] not in ("result", "error"):
        raise ValueError("the pointer must begin with /result/ or /error/")
    if not equals:
        return SubstitutionRule(tokens)
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"{pattern} is not a regular expression: {error}") from None
    if groups != 1:
        raise ValueError(f"{pattern} needs exactly one group, ( ), around the carried value")
    return SubstitutionRule(tokens, pattern)


class Substitutions:
    """Recorded values that the server has returned so far, and the live ones that replace them."""

    def __init__(self, rules: tuple[SubstitutionRule, ...] = ()) -> None:
        self._rules = rules
        self._known: dict[tuple[str, bytes], bytes | None] = {}
        """Kind and recorded JSON text → live JSON text; None if the live server returned none."""
        self._texts: dict[str, str] = {}
        self._numbers: dict[int, int] = {}

    def learn(self, recorded: Result | Failure, live: Result | Failure | None) -> None:
        """Compare the recorded and the live response to a request; None if there is no live one."""
        before = dict(returned_values(recorded))
        now = dict(returned_values(live)) if live is not None else {}
        for kind, value in before.items():
            self._known[kind, value] = now.get(kind)
        if live is None:
            return
        old, new = (loads(answer.data) for answer in (recorded, live)) if self._rules else (None, None)
        for each in self._rules:
            one, other = each.value(old), each.value(new)
            if one is None or other is None or one == other:
                continue
            if isinstance(one, int) and isinstance(other, int):
                self._numbers[one] = other
            else:
                self._texts[str(one)] = str(other)

    def missing(self, request: Request) -> str | None:
        """Return the name of a value that a request sends back and the live server has not returned."""
        for kind, path, value in sent_back(request):
            if self._known.get((kind, value), value) is None:
                return path[-1]
        return None

    def apply(self, message: Request | Notification, data: bytes) -> bytes:
        """Return a message of the client with the live values."""
        if self._texts or self._numbers:
            params = message.params
            if (carried := self._substituted(params)) != params:
                data = replaced(data, ("params",), written(carried))
        if isinstance(message, Request):
            for kind, path, value in sent_back(message):
                live = self._known.get((kind, value))
                if live is not None:
                    data = replaced(data, ("params", *path), live)
        return data

    def as_recorded(self, data: bytes) -> bytes:
        """Return a message with the recorded values in place of those that rules substitute."""
        for old, new in self._texts.items():
            data = data.replace(written(new)[1:-1], written(old)[1:-1])
        for recorded, live in self._numbers.items():
            data = re.sub(rb"(?<![\w.+-])%d(?![\w.+-])" % live, b"%d" % recorded, data)
        return data

    def _substituted(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._substituted(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._substituted(item) for item in value]
        if isinstance(value, str):
            any_of = "|".join(map(re.escape, sorted(self._texts, key=len, reverse=True)))
            return re.sub(any_of, lambda found: self._texts[found[0]], value) if any_of else value
        if isinstance(value, int) and not isinstance(value, bool):
            return self._numbers.get(value, value)
        return value


def returned_values(answer: Result | Failure) -> Iterator[tuple[str, bytes]]:
    if not isinstance(answer, Result):
        return
    body = answer.body
    if bytes(body.request_state):
        yield STATE, written(loads(body.request_state))
    if answer.is_task:
        task = decoded(body.task) if bytes(body.task) else {TASK: decoded(body.task_id)}
        if isinstance(task, dict):
            yield TASK, written(task.get(TASK))
    if b'"nextCursor"' in bytes(answer.raw_result) and isinstance(result := answer.result, dict):
        yield CURSOR, written(result.get("nextCursor"))


def sent_back(request: Request) -> Iterator[tuple[str, tuple[str, ...], bytes]]:
    """Yield kind, place in `params` and JSON text of each value that a request sends back."""
    body = request.body
    for kind, raw in ((STATE, body.request_state), (CURSOR, body.cursor), (TASK, body.task_id)):
        if bytes(raw):
            yield kind, (kind,), written(loads(raw))
    if bytes(body.meta) and isinstance(related := decoded(meta_raw(body.meta, RELATED)), dict):
        yield TASK, ("_meta", RELATED, TASK), written(related.get(TASK))


def written(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
