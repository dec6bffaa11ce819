"""Heads of HTTP requests and responses that wait for the scripts: events, decisions, notes.

Scripts see and change the headers, except those of the connection and of the body's length.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from mcpspy.core.intercept.actions import AddNote, Fields, HeadDecided, Step, StepReceiver, rule_note
from mcpspy.core.intercept.commands import ScriptDecision
from mcpspy.core.protocol.http_headers import FIXED, Headers
from mcpspy.core.protocol.spec import CLIENT


class HttpHead(Struct, eq=False):
    """A head between its arrival and its delivery."""

    ticket: int
    at: float
    side: str
    exchange: StepReceiver
    method: str
    path: str
    headers: Headers
    status: int | None = None
    """The status of a response; None for a request."""

    @property
    def hook(self) -> str:
        return "http_request" if self.side == CLIENT else "http_response"

    @property
    def size(self) -> int:
        return sum(len(name) + len(value) for name, value in self.headers)

    def event(self) -> Fields:
        """Return the event for the script process, without what is not UTF-8."""
        shown = [pair for pair in self.headers if _is_shown(*pair)]
        return {
            "event": "head",
            "ticket": self.ticket,
            "at": self.at,
            "from": self.side,
            "method": self.method,
            "path": self.path.encode("utf-8", "replace").decode(),
            "status": self.status,
            "headers": shown,
        }

    def decide(self, decisions: Iterable[ScriptDecision]) -> list[Step]:
        """Return the notes and the end of the wait. Notes have the names of headers, never their values."""
        notes: list[AddNote] = []
        headers = self.headers
        for decision in decisions:
            rest = {"script": decision.script, "head": self.hook.removeprefix("http_")}
            noted = decision.own_notes
            if decision.headers is not None:
                hidden = [pair for pair in headers if not _is_shown(*pair)]
                noted.append(("headers", _changed(headers, decision.headers + hidden)))
                headers = decision.headers + hidden
            notes += [rule_note(action, rest | fields, self.exchange) for action, fields in noted]
        return [*notes, HeadDecided(headers, self.exchange)]


def _is_shown(name: str, value: str) -> bool:
    return name.lower() not in FIXED and (name + value).isprintable()


def _changed(old: Headers, new: Headers) -> Fields:
    """Return the names of the headers with other values, and of those that were removed."""
    names = sorted({name.lower() for name, _ in old + new})
    kept = {name: values for name in names if (values := _values(new, name))}
    changed = [name for name, values in kept.items() if values != _values(old, name)]
    return {"set": changed or None, "removed": [name for name in names if name not in kept] or None}


def _values(headers: Headers, name: str) -> list[str]:
    return [value for each, value in headers if each.lower() == name]
