"""Values that change from run to run: protocol values, times, ids, ports, temporary paths.

Of the protocol's values, request ids, progress tokens, session and subscription ids are removed. Of cursors, task ids
and opaque states only the presence is compared. The protocol's own `_meta`, and members required by a revision, are
removed.

Other values are tolerated only on request. Dates are in ISO 8601, RFC 3339, HTTP, RFC 5322 and common local forms. Two
values are equal if their marks are: both have the same kind of value in the same place. A number is a process id or a
port only by its name.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Any

from mcpspy.core.jsontools import is_number
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


class Tolerance(Enum):
    """The values that count as equal although they differ."""

    NONE = 0
    DATES = 1
    """Dates and times in texts; a number is never a date, since it can be anything."""
    VOLATILE = 2
    """All of this module."""


_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d|:60)?(?:[.,]\d{1,9})?(?:\s?[AaPp]\.?[Mm]\.?\b)?"
_ZONE = r"(?:\s?(?:Z|UTC|GMT)?(?:[+-]\d\d:?\d\d)?(?:\s?\([\w \x2d+:]{2,40}\))?)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_NUMBERED = r"\d{4}[-/](?:0[1-9]|1[0-2])[-/](?:0[1-9]|[12]\d|3[01])"
_LOCAL = r"(?:0?[1-9]|[12]\d|3[01])[./](?:0?[1-9]|[12]\d|3[01])[./]\d{4}"
_WORDED = rf"(?:{_DAY},?\s)?(?:\d{{1,2}}[\s-]{_MONTH}[\s-]\d{{4}}|{_MONTH}\s\d{{1,2}}(?:,?\s\d{{4}})?)"

_DATE = re.compile(
    rf"(?<![\w.])(?:(?:{_NUMBERED}|{_LOCAL}|{_WORDED})(?:(?:T|,?\s(?:at\s)?){_CLOCK}(?:\s\d{{4}})?)?|{_CLOCK}){_ZONE}(?![\w])"
)

_HAS_DIGITS = re.compile(r"\d[:./ -]|[a-z] \d")
"""Matches every date; most texts don't match and are skipped."""

_EPOCH = re.compile(r"(?<![\w.-])(?:1[4-9]|2[01])\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d{1,9})?(?!\w)")

_KINDS = [
    (re.compile(pattern, re.IGNORECASE), mark)
    for pattern, mark in (
        (r"(?<![0-9a-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-z])", "<uuid>"),
        (r"(?<![0-9a-z])\d{8}T\d{6}(?:\.\d{1,9})?Z?(?![0-9a-z])", "<time>"),
        (r"(?<![\w.])(?:/private)?/(?:var/)?tmp/[^\s\"'<>|,;)\]}]+", "<path>"),
        (r"(?:/private)?/var/folders/[^\s\"'<>|,;)\]}]+", "<path>"),
        (r"(?<![a-z])[a-z]:\\[^\s\"'<>|]{0,200}?\\te?mp\\[^\s\"'<>|,;)\]}]+", "<path>"),
        (r"(\bp?pid|\bprocess(?: id)?)([\"']?\s?[:=#]?\s?)\d{1,10}\b", r"\1\2<pid>"),
        (
            r"(localhost|://[\w.-]{1,255}|\d{1,3}(?:\.\d{1,3}){3}|\[[0-9a-f:]{2,45}\]):\d{4,5}(?!\w)",
            r"\1:<port>",
        ),
        (r"(\bport)([\"']?\s?[:=#]?\s?)\d{4,5}(?!\w)", r"\1\2<port>"),
        (r"(?<![0-9a-z])0x[0-9a-f]{4,64}(?![0-9a-z])", "<hex>"),
        (r"(?<![0-9a-z])(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,128}(?![0-9a-z])", "<hex>"),
    )
]

_PROCESS = re.compile(r"(?:^p?p|P|_p)id$|[pP]rocess_?[iI]d$")
_PORT = re.compile(r"(?:^p|P|_p)ort$")


def marked_text(text: str, tolerance: Tolerance) -> str:
    """Return a text with a mark for each tolerated value."""
    if tolerance is Tolerance.NONE:
        return text
    text = _DATE.sub("\N{CALENDAR}", text) if _HAS_DIGITS.search(text) else text
    if tolerance is Tolerance.VOLATILE:
        for pattern, mark in _KINDS:
            text = pattern.sub(mark, text)
        text = _EPOCH.sub(lambda found: _epoch(float(found.group())) or found.group(), text)
    return text


def marked(value: Any, tolerance: Tolerance, name: str = "") -> Any:
    """Return a JSON value with a mark for each tolerated value; `name` is that of its member."""
    if isinstance(value, str):
        return marked_text(value, tolerance)
    if isinstance(value, dict):
        return {key: marked(item, tolerance, key) for key, item in value.items()}
    if isinstance(value, list):
        return [marked(item, tolerance, name) for item in value]
    if tolerance is Tolerance.VOLATILE and is_number(value):
        if value > 0 and _PROCESS.search(name):
            return "<pid>"
        if 1024 <= value <= 65535 and _PORT.search(name):
            return "<port>"
        return _epoch(value) or value
    return value


def _epoch(value: float) -> str | None:
    """Return a mark for a time since 1970 in s, ms, µs or ns, between 2014 and 2039; otherwise None."""
    return next(
        (f"<epoch {unit}>" for unit in (1, 10**3, 10**6, 10**9) if 1.4e9 <= value / unit < 2.2e9), None
    )
