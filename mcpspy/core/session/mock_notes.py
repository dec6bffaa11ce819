"""Notes of kind `mock`: what a request got from a mock, and what viewers change. Owns their wording.

Written by `core.mock.steering`, specified in docs/format.md.
"""

from __future__ import annotations

from typing import Any

MOCK = "mock"

UNRECORDED = ("missed", "forwarded", "nearest")
"""Outcomes of a request that was not recorded."""

_DONE = {
    "generated": "answered by the mock",
    "missed": "not recorded",
    "forwarded": "not recorded, passed on to the real server",
    "nearest": "not recorded, answered with the nearest",
    "left": "client left",
}


def about(fields: dict[str, Any]) -> str:
    """Return the request that a note is about: `tools/call echo, id 7`."""
    id_text = f"id {fields['id']}" if "id" in fields else ""
    return ", ".join(part for part in (str(fields.get("request", "")), id_text) if part)


def words(fields: dict[str, Any]) -> str:
    """Return what the request got, or what changed: `request 7 of echo.jsonl (1 of 2)`."""
    outcome, *difference = lines(fields)
    if not difference:
        return outcome
    nearest, *values = difference
    return (
        f"{outcome}; {', '.join((nearest, *values[:1]))}{': ' if values[1:] else ''}{', '.join(values[1:])}"
    )


def lines(fields: dict[str, Any]) -> list[str]:
    """Return the same as lines: of a miss also the nearest recorded request, and the first difference."""
    return [_outcome(fields), *_difference(fields)]


def _outcome(fields: dict[str, Any]) -> str:
    did = str(fields.get("did"))
    if did == "changed":
        answers = fields.get("answers")
        given = [given_words(each) for each in answers if isinstance(each, dict)] if answers else []
        options = ", ".join(f"{name} {fields.get(name)}" for name in ("match", "speed", "misses"))
        return "; ".join([f"mock: {options}", *given])
    recorded = f"request {fields['interaction']}" if "interaction" in fields else ""
    if recorded and "recording" in fields:
        recorded += f" of {fields['recording']}"
    if "count" in fields:
        recorded += f" ({fields.get('place')} of {fields['count']})"
    if did == "played":
        found = recorded
    elif did == "answered":
        found = f"{_answer_words(fields)}{f' in place of {recorded}' if recorded else ''}"
    else:
        found = _DONE.get(did, did)
        if fields.get("miss") in ("used up", "answer not recorded"):
            found = found.replace("not recorded", str(fields["miss"]), 1)
        if did == "nearest" and recorded:
            found += f": {recorded}"
    return found + (f", after {fields['delay']:g} s" if isinstance(fields.get("delay"), float) else "")


def _difference(fields: dict[str, Any]) -> list[str]:
    if "nearest_request" not in fields:
        return []
    found = [f"nearest: request {fields.get('nearest')}, {fields['nearest_request']}"]
    if "at" in fields:
        more = f" (and at {fields['more']} more)" if fields.get("more") else ""
        found.append(f"differs at {fields['at']}{more}")
    if "sent" in fields:
        found += [f"recorded {fields.get('recorded')}", f"sent {fields['sent']}"]
    return found


def given_words(fields: dict[str, Any]) -> str:
    """Return an answer that the user has set: `next request: error -32000`."""
    number, times = fields.get("interaction"), fields.get("times")
    target = "next request" if number is None else f"request {number}"
    parts = [_answer_words(fields)] if "error" in fields or "result" in fields else []
    if delay := fields.get("delay"):
        parts.append(f"after {delay:g} s")
    if times is not None and number is not None:
        parts.append(f"{times} times" if times != 1 else "once")
    return f"{target}: {', '.join(parts)}"


def _answer_words(fields: dict[str, Any]) -> str:
    error = fields.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    return "edited result"
