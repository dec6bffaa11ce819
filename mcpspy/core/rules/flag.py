"""A rule on a command line: `QUERY => [20%] [times=3] [after=2] [seed=7] [name=slow] ACTION [VALUE]`.

Owns that spelling; what the keys mean is `read`'s.
"""

from __future__ import annotations

import json
import re
from typing import Any

from mcpspy.core.rules.read import Mistake, read_rule, unknown
from mcpspy.core.rules.rule import NAMES, Rule
from mcpspy.errors import UsageError

HINT = "like 'tool:echo => delay 2s' or 'method:tools/call => 20% error -32000 boom'; see docs/rules.md"

ARROW = "=>"

_SETTING = re.compile(r"(times|after|seed|name)=(\S+)\s*|([0-9.]+%)\s*")
_CODE = re.compile(r"-?[0-9]+(?=\s)")
_BARE = ("drop", "disconnect", "hold")


def read_flag(text: str, number: int) -> Rule:
    """Return the rule of this number; raise UsageError."""
    try:
        text.encode()
    except UnicodeEncodeError:  # It would be in every note, and a recording is UTF-8.
        raise UsageError(f"--rule {text!a}: not UTF-8") from None
    when, arrow, rest = text.partition(ARROW)
    if not arrow:
        raise UsageError(f"--rule {text}: no {ARROW} between the query and what to do", HINT)
    table: dict[str, Any] = {"when": when.strip()}
    rest = rest.strip()
    while found := _SETTING.match(rest):
        key, value, percentage = found.groups()
        table[key or "probability"] = percentage or _setting(key, value)
        rest = rest[found.end() :]
    action, _, value = rest.partition(" ")
    if not action:
        raise UsageError(f"--rule {text}: what to do?", HINT)
    if action not in NAMES.values():
        raise UsageError(f"--rule {text}: {unknown(action, NAMES.values())}", HINT)
    table[action] = _value(action, value.strip())
    try:
        return read_rule(number, table)
    except Mistake as mistake:
        if mistake.path == ("when",):
            column = len(when) - len(when.lstrip()) + mistake.offset + 1
            raise UsageError(f"--rule {text}: column {column}: {mistake}", HINT) from None
        raise UsageError(f"--rule {text}: {mistake}", HINT) from None


def _setting(key: str, value: str) -> int | str:
    return int(value) if value.isdecimal() and key != "name" else value


def _value(action: str, value: str) -> Any:
    if action in _BARE:
        return value or True
    if action == "error" and not value.startswith("{"):
        code = _CODE.match(value)
        if code is None:
            return value
        return {"code": int(code[0]), "message": value[code.end() :].strip()}
    if action == "replace" and value.startswith("/"):
        place, _, new = value.partition("=")
        try:
            return {place.strip(): json.loads(new)}
        except ValueError:
            return {place.strip(): new.strip()}
    if action == "error":
        try:
            return json.loads(value)
        except ValueError as error:
            raise UsageError(f"--rule … error {value}: not JSON: {error}", HINT) from None
    return value
