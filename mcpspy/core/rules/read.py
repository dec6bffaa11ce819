"""A rule as keys and values → a rule.

Owns which keys there are and what each takes, whoever wrote them down: `file`
and `flag` know where they stand. Refuses by `Mistake`, which names the key.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import orjson

from mcpspy.core.canonical import pointer
from mcpspy.core.query import QueryError, parse
from mcpspy.core.rules import units
from mcpspy.core.rules.corrupt import OVERSIZE, WAYS
from mcpspy.core.rules.rule import (
    NAMES,
    Action,
    Corrupt,
    Delay,
    Disconnect,
    Drop,
    Fail,
    Hold,
    Replace,
    Respond,
    Rule,
    means_request,
)

T = TypeVar("T", int, str)

BOOM = -32000
"""The code of an error that names none: the first of those that belong to each implementation (JSON-RPC 2.0, 5.1)."""


class Mistake(ValueError):  # noqa: N818 - reads as what it says at every raise.
    """What is wrong with a rule, and under which keys."""

    def __init__(self, message: str, *path: str, offset: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset
        """Characters into a text that is the value."""


def read_rule(number: int, table: dict[str, Any]) -> Rule:
    """Return the rule; raise Mistake."""
    for key in table:
        if key not in KEYS:
            raise Mistake(unknown(key, KEYS), key)
    if "when" not in table:
        raise Mistake('a rule says when: when = "tool:echo"; when = "" is every message')
    when = _typed(table, "when", str, "a query in quotes")
    try:
        query = parse(when)
    except QueryError as error:
        raise Mistake(str(error), "when", offset=error.start) from None
    actions = [key for key in table if key in _ACTIONS]
    if len(actions) != 1:
        has = f"this one has {' and '.join(actions)}" if actions else f"one of {', '.join(_ACTIONS)}"
        raise Mistake(f"a rule does exactly one thing: {has}", *actions[1:2])
    probability = _probability(table)
    if "seed" in table and probability == 1:
        raise Mistake("a seed means nothing without a probability", "seed")
    return Rule(
        number,
        query,
        means_request(when),
        _ACTIONS[actions[0]](table[actions[0]]),
        name=_name(table),
        probability=probability,
        seed=seed(table),
        times=_count(table, "times", 1),
        after=_count(table, "after", 0) or 0,
    )


def seed(table: dict[str, Any]) -> int | str | None:
    """Return what stands under `seed`; None if nothing does."""
    value = table.get("seed")
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise Mistake("a seed is a number or a text", "seed")
    return value


def unknown(key: str, known: Iterable[str]) -> str:
    """Say that there is no such word, and which was meant."""
    known = list(known)
    near = difflib.get_close_matches(key, known, 1)
    return f'unknown "{key}": ' + (f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}")


def _typed(table: dict[str, Any], key: str, kind: type[T], what: str) -> T:
    value = table[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Mistake(f"{key} takes {what}", key)
    return value


def _name(table: dict[str, Any]) -> str:
    name = _typed(table, "name", str, "a text") if "name" in table else ""
    if "name" in table and (not name.strip() or name.isdigit()):
        raise Mistake("a name is a word: rules have numbers already", "name")
    return name


def _probability(table: dict[str, Any]) -> float:
    value = table.get("probability", 1)
    try:
        if isinstance(value, str) and value.endswith("%"):
            value = float(value[:-1]) / 100
        if isinstance(value, bool) or not 0 <= float(value) <= 1:
            raise ValueError
        return float(value)
    except (TypeError, ValueError):
        raise Mistake(
            'probability takes a number from 0 to 1, or a percentage like "20%"', "probability"
        ) from None


def _count(table: dict[str, Any], key: str, least: int) -> int | None:
    if key not in table:
        return None
    value = _typed(table, key, int, "a whole number")
    if value < least:
        raise Mistake(f"{key} is {least} at least", key)
    return value


def _delay(value: Any) -> Delay:
    try:
        return Delay(units.seconds(value))
    except ValueError as error:
        raise Mistake(str(error), "delay") from None


def _plain(key: str, action: Action) -> Callable[[Any], Action]:
    def read(value: Any) -> Action:
        if value is not True:
            raise Mistake(f"{key} = true, or no {key} at all", key)
        return action

    return read


def _fail(value: Any) -> Fail:
    if isinstance(value, str):
        return Fail(BOOM, value)
    if not isinstance(value, dict):
        raise Mistake('error takes a text, or { code = -32000, message = "…", data = … }', "error")
    for key in value:
        if key not in ("code", "message", "data"):
            raise Mistake(unknown(key, ("code", "message", "data")), "error", key)
    code, message = value.get("code", BOOM), value.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        raise Mistake("a code is a whole number (JSON-RPC 2.0)", "error", "code")
    if not isinstance(message, str):
        raise Mistake(
            "an error has a message (JSON-RPC 2.0)", "error", *("message" for _ in "x" if "message" in value)
        )
    return Fail(code, message, _json(value.get("data"), "error", "data"), "data" in value)


def _respond(value: Any) -> Respond:
    return Respond(_object(value, "respond"))


def _replace(value: Any) -> Replace:
    patch = _object(value, "replace")
    pointers = [key for key in patch if key.startswith("/")]
    if not patch:
        raise Mistake("nothing to replace", "replace")
    if not pointers:
        return Replace(patch)
    if len(pointers) < len(patch):
        other = next(key for key in patch if not key.startswith("/"))
        raise Mistake("either a merge patch, or pointers that all begin with /", "replace", other)
    values = []
    for key, new in patch.items():
        try:
            values.append((pointer(key), new))
        except ValueError as error:
            raise Mistake(str(error), "replace", key) from None
    return Replace(values=tuple(values))


def _corrupt(value: Any) -> Corrupt:
    if not isinstance(value, str) or not (words := value.lower().replace("_", "-").split()):
        raise Mistake(f"corrupt takes one of {', '.join(WAYS)}", "corrupt")
    way = words[0] if words[0] in WAYS else "-".join(words)
    if way not in WAYS:
        near = difflib.get_close_matches(way, WAYS, 1)
        raise Mistake(
            f'cannot corrupt by "{value}": '
            + (f"did you mean {near[0]}?" if near else f"one of {', '.join(WAYS)}"),
            "corrupt",
        )
    if way != words[0] or len(words) == 1:
        return Corrupt(way)
    if way != OVERSIZE:
        raise Mistake(f"{way} takes no size", "corrupt")
    try:
        return Corrupt(way, units.size("".join(words[1:])))
    except ValueError as error:
        raise Mistake(str(error), "corrupt") from None


def _object(value: Any, key: str) -> dict[str, Any]:
    """Return an object, given as one or as JSON text: TOML has no null."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise Mistake(f"{key} takes a table, or JSON in quotes; this is not JSON: {error}", key) from None
    if not isinstance(value, dict):
        raise Mistake(f"{key} takes a table, or a JSON object in quotes", key)
    _json(value, key)
    return value


def _json(value: Any, *path: str) -> Any:
    """Return a value that JSON can hold: TOML has dates, and numbers that are none."""
    try:
        orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError as error:
        raise Mistake(f"JSON has no such value: {error}", *path) from None
    return value


_ACTIONS: dict[str, Callable[[Any], Action]] = {
    "delay": _delay,
    "drop": _plain("drop", Drop()),
    "error": _fail,
    "respond": _respond,
    "replace": _replace,
    "corrupt": _corrupt,
    "disconnect": _plain("disconnect", Disconnect()),
    "hold": _plain("hold", Hold()),
}
assert set(_ACTIONS) == set(NAMES.values())

KEYS = ("when", "name", "probability", "seed", "times", "after", *_ACTIONS)
