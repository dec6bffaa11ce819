"""Values that differ in every run and are normalized before a comparison.

Request ids, progress tokens, session and subscription ids are removed. Of cursors, task ids and opaque states
only the presence is compared. The protocol's own `_meta`, and members required by a revision, are removed.
"""

from __future__ import annotations

from typing import Any

from mcpspy.core.protocol.spec import META

MARK = "…"
"""Replaces a value that only its sender understands."""

_HANDLED = frozenset(("_meta", "requestState", "inputResponses"))

_MARKED = frozenset(
    "cursor nextCursor taskId requestState requestId progressToken elicitationId subscriptionId".split()
)

_OF_TASKS = frozenset(("taskId", "createdAt", "lastUpdatedAt"))
"""Members of an object with a `taskId` (2025-11-25 and the extension of 2026-07-28)."""

NOTED = frozenset(("_meta", "ttlMs", "cacheScope"))
"""Members of a result whose changes are notes: server metadata and caching hints."""

OF_MODERN = frozenset(("ttlMs", "cacheScope"))


def settled_params(params: Any) -> Any:
    """Return normalized params of a request or notification. Missing params are equal to empty ones."""
    if params is None:
        return {}
    if not isinstance(params, dict):
        return params
    kept = {key: value for key, value in _marked(params).items() if key not in _HANDLED}
    if kept.get("arguments") == {}:
        del kept["arguments"]
    return kept


def settled_result(result: Any) -> Any:
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
    if not isinstance(error, dict) or not isinstance(data := error.get("data"), dict):
        return error
    if not isinstance(listed := data.get("elicitations"), list):
        return error
    marked = [_marked(item) if isinstance(item, dict) else item for item in listed]
    return {**error, "data": {**data, "elicitations": marked}}


def _marked(value: dict[str, Any]) -> dict[str, Any]:
    marked = _MARKED | _OF_TASKS if "taskId" in value else _MARKED
    return {key: MARK if key in marked else item for key, item in value.items()}
