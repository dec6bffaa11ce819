"""Read rules: from keys and values, from a `--rule` flag, from a TOML 1.0.0 file.

A flag is `QUERY => [20%] [times=3] [after=2] [seed=7] [name=slow] ACTION [VALUE]`; a file is an array of
tables `[[rule]]`. Errors contain the position of the mistake: column of the flag; file, line and column.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

import orjson

from mcpspy.core.hostconfig import toml
from mcpspy.core.hostconfig.tree import Node, NodeKind, where
from mcpspy.core.jsontools import pointer
from mcpspy.core.query.parser import QueryError, parse
from mcpspy.core.regex import AllowUnsafe, refuse
from mcpspy.core.rules import model
from mcpspy.core.rules.edit import CORRUPTIONS, OVERSIZE
from mcpspy.core.rules.repair import LONGEST_NAME
from mcpspy.errors import UsageError

T = TypeVar("T", int, str)

FLAG_HINT = "like 'tool:echo => delay 2s' or 'method:tools/call => 20% error -32000 boom'; see docs/rules.md"
FILE_HINT = "see docs/rules.md"

ARROW = "=>"

DEFAULT_CODE = -32000
"""Default error code: the first that is reserved for implementations (JSON-RPC 2.0, 5.1)."""

_SETTING = re.compile(r"(times|after|seed|name)=(\S+)\s*|([0-9.]+%)\s*")
_CODE = re.compile(r"-?[0-9]+(?=\s)")
_BARE = ("drop", "disconnect", "hold", "repair")


class RuleError(ValueError):
    """An invalid rule; `path` is the key of the mistake."""

    def __init__(self, message: str, *path: str, offset: int = 0) -> None:
        super().__init__(message)
        self.path = path
        self.offset = offset


def read_rule(number: int, table: dict[str, Any], allow_unsafe: AllowUnsafe = refuse) -> model.Rule:
    """Return the rule of this number; raise RuleError."""
    for key in table:
        if key not in KEYS:
            raise RuleError(unknown(key, KEYS), key)
    if "when" not in table:
        raise RuleError('missing key "when": write when = "tool:echo", or when = "" for every message')
    when = _typed(table, "when", str, "a query in quotes")
    if when.strip() == '""':  # As docs/rules.md writes the query that matches every message.
        when = ""
    try:
        query = parse(when, allow_unsafe=allow_unsafe)
    except QueryError as error:
        raise RuleError(str(error), "when", offset=error.start) from None
    actions = [key for key in table if key in _ACTIONS]
    if len(actions) != 1:
        has = f"this one has {' and '.join(actions)}" if actions else f"use one of {', '.join(_ACTIONS)}"
        raise RuleError(f"a rule needs exactly one action: {has}", *actions[1:2])
    probability = _probability(table)
    if "seed" in table and probability == 1:
        raise RuleError("a seed has no effect without a probability", "seed")
    return model.Rule(
        number,
        query,
        model.is_request_only(when),
        _ACTIONS[actions[0]](table[actions[0]]),
        name=_name(table),
        probability=probability,
        seed=seed(table),
        times=_count(table, "times", 1),
        after=_count(table, "after", 0) or 0,
    )


def seed(table: dict[str, Any]) -> int | str | None:
    value = table.get("seed")
    if isinstance(value, bool) or not isinstance(value, int | str | None):
        raise RuleError("seed takes a whole number or a text", "seed")
    return value


def unknown(key: str, known: Iterable[str]) -> str:
    """Return the message for an unknown word, with a suggestion."""
    return f'unknown "{key}": {_suggestion(key, list(known))}'


def _suggestion(word: str, known: list[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else f"use one of {', '.join(known)}"


def _typed(table: dict[str, Any], key: str, kind: type[T], what: str) -> T:
    value = table[key]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise RuleError(f"{key} takes {what}", key)
    return value


def _name(table: dict[str, Any]) -> str:
    name = _typed(table, "name", str, "a text") if "name" in table else ""
    if "name" in table and (not name.strip() or name.isdigit()):
        raise RuleError("name takes a word, not a number: rules already have numbers", "name")
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
        raise RuleError(
            'probability takes a number from 0 to 1, or a percentage like "20%"', "probability"
        ) from None


def _count(table: dict[str, Any], key: str, least: int) -> int | None:
    if key not in table:
        return None
    value = _typed(table, key, int, "a whole number")
    if value < least:
        raise RuleError(f"{key} must be at least {least}", key)
    return value


def _delay(value: Any) -> model.DelayAction:
    try:
        return model.DelayAction(model.seconds(value))
    except ValueError as error:
        raise RuleError(str(error), "delay") from None


def _flag_reader(key: str, action: model.Action) -> Callable[[Any], model.Action]:
    def read(value: Any) -> model.Action:
        if value is not True:
            raise RuleError(f"{key} takes only true: write {key} = true", key)
        return action

    return read


def _fail(value: Any) -> model.FailAction:
    if isinstance(value, str):
        return model.FailAction(DEFAULT_CODE, value)
    if not isinstance(value, dict):
        raise RuleError('error takes a text, or { code = -32000, message = "…", data = … }', "error")
    for key in value:
        if key not in ("code", "message", "data"):
            raise RuleError(unknown(key, ("code", "message", "data")), "error", key)
    code, message = value.get("code", DEFAULT_CODE), value.get("message")
    if not isinstance(code, int) or isinstance(code, bool):
        raise RuleError("code takes a whole number (JSON-RPC 2.0)", "error", "code")
    if not isinstance(message, str):
        path = ("error", "message") if "message" in value else ("error",)
        raise RuleError("error needs a message, which is a text (JSON-RPC 2.0)", *path)
    return model.FailAction(code, message, _json(value.get("data"), "error", "data"), "data" in value)


def _replace(value: Any) -> model.ReplaceAction:
    patch = _object(value, "replace")
    pointers = [key for key in patch if key.startswith("/")]
    if not patch:
        raise RuleError("replace is empty", "replace")
    if not pointers:
        return model.ReplaceAction(patch)
    if len(pointers) < len(patch):
        other = next(key for key in patch if not key.startswith("/"))
        raise RuleError("replace takes a merge patch, or pointers that begin with /", "replace", other)
    values = []
    for key, new in patch.items():
        try:
            values.append((pointer(key), new))
        except ValueError as error:
            raise RuleError(str(error), "replace", key) from None
    return model.ReplaceAction(values=tuple(values))


def _repair(value: Any) -> model.RepairAction:
    words = value.lower().split() if isinstance(value, str) else [] if value is True else [""]
    numbers = [int(word) for word in words if word.isdecimal()]
    what = {word for word in words if not word.isdecimal()}
    if not what <= {"names", "schemas"} or len(numbers) > 1:
        raise RuleError('repair takes true, "names", "names 50" or "schemas"', "repair")
    if numbers and (what == {"schemas"} or not 16 <= numbers[0] <= 1000):
        raise RuleError("repair takes 16 to 1000 as the maximum length of names", "repair")
    longest = numbers[0] if numbers else LONGEST_NAME
    return model.RepairAction(longest if what != {"schemas"} else None, what != {"names"})


def _corrupt(value: Any) -> model.CorruptAction:
    if not isinstance(value, str) or not (words := value.lower().replace("_", "-").split()):
        raise RuleError(f"corrupt takes one of {', '.join(CORRUPTIONS)}", "corrupt")
    way = words[0] if words[0] in CORRUPTIONS else "-".join(words)
    if way not in CORRUPTIONS:
        raise RuleError(f'unknown corruption "{value}": {_suggestion(way, list(CORRUPTIONS))}', "corrupt")
    if way != words[0] or len(words) == 1:
        return model.CorruptAction(way)
    if way != OVERSIZE:
        raise RuleError(f"{way} takes no size", "corrupt")
    try:
        return model.CorruptAction(way, model.size("".join(words[1:])))
    except ValueError as error:
        raise RuleError(str(error), "corrupt") from None


def _object(value: Any, key: str) -> dict[str, Any]:
    """Return an object, given as a table or as JSON text: TOML has no null."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RuleError(
                f"{key} takes a table, or JSON in quotes; this is not JSON: {error}", key
            ) from None
    if not isinstance(value, dict):
        raise RuleError(f"{key} takes a table, or a JSON object in quotes", key)
    _json(value, key)
    return value


def _json(value: Any, *path: str) -> Any:
    """Return a value if JSON can represent it: TOML has dates, and numbers that JSON lacks."""
    try:
        orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATETIME)
    except TypeError as error:
        raise RuleError(f"not a JSON value: {error}", *path) from None
    return value


_ACTIONS: dict[str, Callable[[Any], model.Action]] = {
    "delay": _delay,
    "drop": _flag_reader("drop", model.DropAction()),
    "error": _fail,
    "respond": lambda value: model.RespondAction(_object(value, "respond")),
    "replace": _replace,
    "repair": _repair,
    "corrupt": _corrupt,
    "disconnect": _flag_reader("disconnect", model.DisconnectAction()),
    "hold": _flag_reader("hold", model.HoldAction()),
}
assert set(_ACTIONS) == set(model.NAMES.values())

KEYS = ("when", "name", "probability", "seed", "times", "after", *_ACTIONS)


def read_flag(text: str, number: int, allow_unsafe: AllowUnsafe = refuse) -> model.Rule:
    """Return the rule of this number; raise UsageError."""
    try:
        text.encode()
    except UnicodeEncodeError:  # Every note would contain it, and a recording is UTF-8.
        raise UsageError(f"--rule {text!a}: not UTF-8") from None
    when, arrow, rest = text.partition(ARROW)
    if not arrow:
        raise UsageError(f"--rule {text}: missing {ARROW} between the query and the action", FLAG_HINT)
    table: dict[str, Any] = {"when": when.strip()}
    rest = rest.strip()
    while found := _SETTING.match(rest):
        key, value, percentage = found.groups()
        is_number = key and key != "name" and value.isdecimal()
        table[key or "probability"] = percentage or (int(value) if is_number else value)
        rest = rest[found.end() :]
    action, _, value = rest.partition(" ")
    if not action:
        raise UsageError(f"--rule {text}: missing action after {ARROW}", FLAG_HINT)
    if action not in model.NAMES.values():
        raise UsageError(f"--rule {text}: {unknown(action, model.NAMES.values())}", FLAG_HINT)
    table[action] = _value(action, value.strip())
    try:
        return read_rule(number, table, allow_unsafe)
    except RuleError as mistake:
        if mistake.path == ("when",):
            column = len(when) - len(when.lstrip()) + mistake.offset + 1
            raise UsageError(f"--rule {text}: column {column}: {mistake}", FLAG_HINT) from None
        raise UsageError(f"--rule {text}: {mistake}", FLAG_HINT) from None


def _value(action: str, value: str) -> Any:
    if action in _BARE:
        return value or True
    if action == "error" and not value.startswith("{"):
        code = _CODE.match(value)
        if code is None:
            return value
        return {"code": int(code[0]), "message": value[code.end() :].strip()}
    if action == "replace" and value.startswith("/"):
        target, _, new = value.partition("=")
        try:
            return {target.strip(): json.loads(new)}
        except ValueError:
            return {target.strip(): new.strip()}
    if action == "error":
        try:
            return json.loads(value)
        except ValueError as error:
            raise UsageError(f"--rule … error {value}: not JSON: {error}", FLAG_HINT) from None
    return value


def read_file(text: str, name: str, first: int = 1, allow_unsafe: AllowUnsafe = refuse) -> list[model.Rule]:
    """Return the rules of a file, numbered from `first`; raise UsageError with the position of a mistake."""
    text = text.removeprefix("\ufeff")
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{name}: not TOML: {error}") from None
    root = toml.read(text)
    for key in document:
        if key not in ("rule", "seed"):
            position = _position(text, root, [key])
            raise UsageError(f'{name}: {position}: unknown key "{key}": use [[rule]] or seed', FILE_HINT)
    tables = document.get("rule", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise UsageError(
            f"{name}: {_position(text, root, ['rule'])}: each rule must be a table under [[rule]]", FILE_HINT
        )
    try:
        default_seed = seed(document)
    except RuleError as mistake:
        raise UsageError(f"{name}: {_position(text, root, ['seed'])}: {mistake}", FILE_HINT) from None
    rules = []
    for number, table in enumerate(tables):
        try:
            rule = read_rule(first + number, table, allow_unsafe)
        except RuleError as mistake:
            position = _position(text, root, ["rule", number, *mistake.path], mistake.offset)
            raise UsageError(f"{name}: {position}: {mistake}", FILE_HINT) from None
        rules.append(replace(rule, seed=default_seed) if rule.seed is None else rule)
    return rules


def _position(text: str, node: Node, path: list[Any], offset: int = 0) -> str:
    """Return the position of the last key of the path, or with an offset, inside its value."""
    at = 0
    for key in path:
        if isinstance(key, int):
            item = node.items[key]
            at, node = item.start, item.node
            continue
        member = node.member(key) if node.kind is NodeKind.OBJECT else None
        if member is None:
            break
        at, node = (member.start if member.start >= 0 else at), member.node
    if offset and node.kind is NodeKind.STRING and text[node.start + 1 : node.end - 1] == node.text:
        at = node.start + 1 + offset
    return where(text, at)
