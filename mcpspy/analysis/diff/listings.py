"""Compare the lists of a server by name: tools, resources, resource templates and prompts.

Their order is ignored, since the protocol gives it no meaning (2026-07-28, server/tools and others).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from mcpspy.analysis.diff.json_diff import ValueChange, deltas
from mcpspy.analysis.diff.model import ChangeSeverity
from mcpspy.analysis.diff.schema import BREAKING, DIFFERENT, NOTE, SchemaChange, compare_schemas
from mcpspy.analysis.diff.volatile import Tolerance
from mcpspy.core.protocol.listing import ListMethod

_DESCRIPTIVE = frozenset("title description icons size _meta".split())


_TASKS = {
    "required": "a call that is not a task is refused now",
    "forbidden": "a call as a task is refused now",
}
"""New `taskSupport` → its effect on clients (2025-11-25, basic/utilities/tasks, Tool-Level Negotiation)."""


_DEFAULTS: dict[str, dict[str, Any]] = {
    "execution": {"taskSupport": "forbidden"},
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    },
}
"""Members of a tool → the values that they have if they are missing (2025-11-25, schema, Tool)."""


def by_name(items: Any, name: str) -> dict[str, Any] | None:
    """Return items by name; None if it is not a list, or an item has no name."""
    if not isinstance(items, list):
        return None
    found: dict[str, Any] = {}
    for item in items:
        if not isinstance(item, dict) or not isinstance(known := item.get(name), str):
            return None
        while known in found:  # A duplicate name: both are shown.
            known += "'"
        found[known] = item
    return found


def compare_listed(
    listing: ListMethod, old: dict[str, Any], new: dict[str, Any], *, tolerance: Tolerance
) -> Iterator[SchemaChange]:
    """Yield the changes, with pointers relative to the list."""
    for name, item in old.items():
        if name not in new:
            yield SchemaChange((name,), BREAKING, f"lost the {listing.noun} {name}", item, UNSET)
            continue
        for found in _item(listing, item, new[name], tolerance=tolerance):
            yield found._replace(tokens=(name, *found.tokens))
    for name, item in new.items():
        if name not in old:
            yield SchemaChange((name,), NOTE, f"gained the {listing.noun} {name}", UNSET, item)


def _item(listing: ListMethod, old: Any, new: Any, *, tolerance: Tolerance) -> Iterator[SchemaChange]:
    if not isinstance(old, dict) or not isinstance(new, dict):  # Ignored in one of them.
        return
    judged = {"inputSchema", "outputSchema"} if listing.noun == "tool" else {"arguments"}
    tasks = [_task_support(each) for each in (old, new)]
    others = [_other(each, judged) for each in (old, new)]
    if listing.noun == "tool":
        others = [_completed(each) for each in others]
    for change in deltas(*others, tolerance=tolerance):
        found, why = _written(change, old, new) if listing.noun == "tool" else (change, "")
        severity = _severity(listing, found)
        if found.tokens in (("execution",), ("execution", "taskSupport")) and tasks[0] != tasks[1]:
            why = _TASKS.get(tasks[1], why)
            severity = BREAKING if tasks[1] == "required" else DIFFERENT
        yield SchemaChange(found.tokens, severity, why, found.old, found.new)
    if listing.noun == "tool":
        yield from _schemas(old, new)
    elif listing.noun == "prompt":
        yield from _arguments(old.get("arguments"), new.get("arguments"), tolerance=tolerance)


def _schemas(old: dict[str, Any], new: dict[str, Any]) -> Iterator[SchemaChange]:
    for member in ("inputSchema", "outputSchema"):
        is_input = member == "inputSchema"
        before, now = old.get(member, UNSET), new.get(member, UNSET)
        if before is UNSET and now is UNSET:
            continue
        if before is UNSET or now is UNSET:
            severity = BREAKING if (now is UNSET) != is_input else NOTE
            yield SchemaChange((member,), severity, "", before, now)
            continue
        for found in compare_schemas(before, now, is_input=is_input):
            yield found._replace(tokens=(member, *found.tokens))


def _arguments(old: Any, new: Any, *, tolerance: Tolerance) -> Iterator[SchemaChange]:
    before, now = by_name(old or [], "name"), by_name(new or [], "name")
    if before is None or now is None:
        for found in deltas(old, new):
            yield SchemaChange(("arguments", *found.tokens), DIFFERENT, "", found.old, found.new)
        return
    for name, argument in before.items():
        at = ("arguments", name)
        if name not in now:
            yield SchemaChange(at, BREAKING, f"lost the argument {name}", argument, UNSET)
            continue
        was, is_needed = argument.get("required") is True, now[name].get("required") is True
        for found in deltas(
            _other(argument, {"required"}), _other(now[name], {"required"}), tolerance=tolerance
        ):
            severity = NOTE if _DESCRIPTIVE.issuperset(found.tokens[:1]) else DIFFERENT
            yield SchemaChange((*at, *found.tokens), severity, "", found.old, found.new)
        if was != is_needed:
            why = f"{name} is required now" if is_needed else f"{name} is no longer required"
            yield SchemaChange((*at, "required"), BREAKING if is_needed else NOTE, why, was, is_needed)
    for name, argument in now.items():
        if name not in before:
            needed = argument.get("required") is True
            why = f"gained {'a required' if needed else 'an optional'} argument {name}"
            yield SchemaChange(("arguments", name), BREAKING if needed else NOTE, why, UNSET, argument)


def _severity(listing: ListMethod, change: ValueChange) -> ChangeSeverity:
    tokens = change.tokens
    first = tokens[0] if tokens else ""
    if first in _DESCRIPTIVE or (first == "annotations" and tokens[-1] in ("title", "lastModified")):
        return NOTE
    if first == "name" and listing.key != "name":  # The key of a resource is its uri; its name is for users.
        return NOTE
    return DIFFERENT


def _task_support(item: dict[str, Any]) -> str:
    """Return the task support of a tool, which is `forbidden` if it is missing."""
    execution = item.get("execution")
    return str(execution.get("taskSupport", "forbidden")) if isinstance(execution, dict) else "forbidden"


def _completed(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool with the defaults of what it leaves out: writing a default down changes nothing."""
    found = dict(tool)
    for member, defaults in _DEFAULTS.items():
        if isinstance(given := tool.get(member, {}), dict):
            found[member] = {**defaults, **given}
    return found


def _written(change: ValueChange, old: dict[str, Any], new: dict[str, Any]) -> tuple[ValueChange, str]:
    """Return a change without the default that `_completed` added, and a text that names this default."""
    if len(change.tokens) != 2 or change.tokens[0] not in _DEFAULTS:
        return change, ""
    member, name = change.tokens
    is_absent = [name not in (tool.get(member) or {}) for tool in (old, new)]
    default = _DEFAULTS[member].get(name)
    if default is None or not any(is_absent):
        return change, ""
    was, now = (UNSET if absent else side for absent, side in zip(is_absent, change[1:3], strict=True))
    return ValueChange(change.tokens, was, now), f"absent means {json.dumps(default)}"


def _other(item: dict[str, Any], members: set[str]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in members}
