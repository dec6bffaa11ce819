"""What differs from run to run, and says nothing: left out without being asked.

Owns the list: ids, progress tokens, session and subscription ids are no part of
what is compared; cursors, task ids and sealed states are compared by being
there; `_meta` of the protocol's own, and what revisions say on every message,
are the revision's and not the session's.
"""

from __future__ import annotations

from typing import Any

from mcpspy.core.protocol.spec import META

MARK = "…"
"""Stands for a value that only its minter understands."""

_HANDLED = frozenset(("_meta", "requestState", "inputResponses"))

_MARKED = frozenset(
    "cursor nextCursor taskId requestState requestId progressToken elicitationId subscriptionId".split()
)

_OF_TASKS = frozenset(("taskId", "createdAt", "lastUpdatedAt"))
"""Of an object that has a `taskId` (2025-11-25 and the extension of 2026-07-28)."""

NOTED = frozenset(("_meta", "ttlMs", "cacheScope"))
"""Members of a result that are worth a note: what a server adds for itself, and how long it may be kept."""

OF_MODERN = frozenset(("ttlMs", "cacheScope"))
"""Members that results have from 2026-07-28 on."""


def settled_params(params: Any) -> Any:
    """Return the params of a request or notification, as they are compared. None are empty ones."""
    if params is None:
        return {}
    if not isinstance(params, dict):
        return params
    kept = {key: value for key, value in _marked(params).items() if key not in _HANDLED}
    if kept.get("arguments") == {}:
        del kept["arguments"]
    return kept


def settled_result(result: Any) -> Any:
    """Return a result, as it is compared."""
    if not isinstance(result, dict):
        return result
    kept = _marked(result)
    if kept.get("resultType") == "complete":
        del kept["resultType"]
    if isinstance(task := kept.get("task"), dict):
        kept["task"] = _marked(task)
    if isinstance(meta := kept.get("_meta"), dict):
        kept["_meta"] = {key: value for key, value in meta.items() if not key.startswith(META)}
        if not kept["_meta"]:
            del kept["_meta"]
    return kept


def settled_error(error: Any) -> Any:
    """Return an error, as it is compared."""
    if not isinstance(error, dict) or not isinstance(data := error.get("data"), dict):
        return error
    if not isinstance(asked := data.get("elicitations"), list):
        return error
    marked = [_marked(item) if isinstance(item, dict) else item for item in asked]
    return {**error, "data": {**data, "elicitations": marked}}


def _marked(value: dict[str, Any]) -> dict[str, Any]:
    marked = _MARKED | _OF_TASKS if "taskId" in value else _MARKED
    return {key: MARK if key in marked else item for key, item in value.items()}
