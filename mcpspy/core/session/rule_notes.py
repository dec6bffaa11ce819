"""Notes of kind `rule` and `trust`: the actions of rules, viewers, watchdog and lockfile on messages.

Owns their wording, and which message a note is about: the one held under its ticket, or the one before it.
Written by `core.intercept`, specified in docs/format.md.
"""

from __future__ import annotations

from typing import Any

from mcpspy.core.session.exchange import Event
from mcpspy.core.session.translation_notes import TRANSLATE

RULE, TRUST = ABOUT_MESSAGES = ("rule", "trust")

NOTICED = frozenset(("drop", "error", "respond", "replace", "corrupt", "disconnect", "hold", "timeout"))
"""Actions that the peers of a message notice."""

_DONE = {
    "drop": "dropped",
    "error": "answered with an error",
    "respond": "answered with a result",
    "disconnect": "disconnected",
    "hold": "held",
    "repair": "repaired",
    "inject": "sent",
    "headers": "headers changed",
    TRANSLATE: "translated",
    "swallowed": "late response, not forwarded",
}

_TEXTS = {"tag": ("tag", "tag "), "note": ("text", "note: "), "script": ("failed", "failed: ")}
"""Actions of scripts that are shown by a text: the field of that, and the words before it."""

_TRUST = {"report": "differs from the lockfile", "hold": "held", "block": "blocked"}

_RELEASED = {
    "accepted": "released",
    "edited": "edited",
    "dropped": "dropped",
    "answered": "answered",
    "timeout": "auto-released",
    "viewer left": "viewer left, released",
    "hold off": "interception turned off, released",
    "session ended": "session ended, released",
    "connection closed": "sender disconnected",
}


def has_effect(kind: str, fields: dict[str, Any]) -> bool:
    """Return True if a note states what became of a message. A note of trust before a hold does not.

    Nor does one on a translation: it has what the receiver got, in a session in which every message is translated.
    """
    if kind == RULE:
        return fields.get("action") != TRANSLATE
    return kind == TRUST and fields.get("action") != "hold"


def words(fields: dict[str, Any]) -> str:
    """Return the action and its author: `delayed 2 s (rule 3)`; of the lockfile, the action and the differences."""
    action = fields.get("action")
    if isinstance(found := fields.get("differences"), list):
        return f"{_TRUST.get(str(action), action)}: {'; '.join(map(str, found))}"
    author = next(
        (f"{kind} {fields[kind]}" for kind in ("rule", "script") if kind in fields), fields.get("viewer")
    )
    return _done(str(action), fields) + (f" ({author})" if author else "")


def not_forwarded(fields: dict[str, Any]) -> Event | None:
    """Return what kept the message from its receiver; None if it was forwarded, held or answered."""
    action, why = fields.get("action"), fields.get("why")
    if action in ("drop", "disconnect") or (action == "release" and why == "dropped"):
        return Event.DROP
    return Event.ABANDON if action == "release" and why == "connection closed" else None


def about(fields: dict[str, Any]) -> str:
    """Return a description of the message that a note is about: `tools/call echo, id 7`."""
    named = " ".join(str(fields[key]) for key in ("method", "subject") if fields.get(key))
    id_text = f"id {fields['id']}" if "id" in fields else ""
    return ", ".join(part for part in (named, id_text) if part)


def _done(action: str, fields: dict[str, Any]) -> str:
    seconds = fields.get("seconds")
    span = f"{round(seconds, 3):g} s" if isinstance(seconds, int | float) else "a while"
    if fields.get("why") == "full":
        return f"buffer full, cannot {action} it"
    if action == "delay":
        return f"delayed {span}"
    if action == "replace":
        return f"not changed: {fields['failed']}" if "failed" in fields else "changed"
    if action == "corrupt":
        return f"corrupted: {fields.get('how')}"
    if action == "release":
        why = str(fields.get("why"))
        return f"{_RELEASED.get(why, why)} after {span}"
    if action == "timeout":
        return f"timed out after {span} without a response"
    if action == "slow":
        return f"no response after {span}"
    if action in _TEXTS:
        name, before = _TEXTS[action]
        return before + " ".join(str(fields.get(name, "")).split())
    return _DONE.get(action, action)
