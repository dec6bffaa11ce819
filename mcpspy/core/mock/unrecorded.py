"""Answers that were not recorded: handshakes made from what is known, and reports of misses."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from mcpspy.core.jsontools import ABSENT, pointer, value_at
from mcpspy.core.mock.recordings import NearestRequest, Recordings
from mcpspy.core.protocol.message import loads
from mcpspy.core.protocol.spec import META
from mcpspy.core.redact.placeholder import untagged
from mcpspy.core.redact.redactor import Redactor


def answer_id(sent: str, asked: str, answered: str | None) -> str:
    """Return the id of a response to a request with the id `sent`, a number with a fraction or an exponent.

    It is spelled as the recorded server spelled that of its response to `asked`: as the client had sent it, or as the
    integer of the same value, which JavaScript writes for `1.0`.
    """
    number = float(sent)
    is_integer = answered is not None and answered != asked and answered.lstrip("-").isdigit()
    return str(int(number)) if is_integer and number.is_integer() else sent


def initialized(recordings: Recordings) -> dict[str, Any]:
    """Return a result of `initialize`, without the revision, for a server whose handshake was not recorded."""
    return {"capabilities": _capabilities(recordings), "serverInfo": _info(recordings)}


def discovered(recordings: Recordings) -> dict[str, Any]:
    """Return a result of `server/discover` for a server of 2026-07-28 whose recording has none."""
    return {
        "supportedVersions": recordings.versions,
        "capabilities": _capabilities(recordings),
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": _info(recordings)},
    }


UNRECORDED, EXHAUSTED, UNANSWERED = "not recorded", "used up", "answer not recorded"
INVALID = "invalid arguments"
"""Reasons of a miss. INVALID: the arguments do not fit the listing that the mock is made from. EXHAUSTED: the request was recorded, but all recorded responses have been used."""

LONGEST_VALUE = 80
"""Characters of a value in the message of a miss."""


class Miss(Struct, frozen=True):
    about: str
    """The request, as in `RequestKey.about`; empty for an answer outside a request."""
    why: str
    nearest: list[NearestRequest]
    question: str = ""
    """Method of the server request whose answer was not recorded; empty from 2026-07-28 on."""
    detail: str = ""
    """The reason why arguments are invalid."""
    is_listed: bool = False
    """True if the mock is made from a listing, and nothing was recorded."""

    @property
    def text(self) -> str:
        if self.why == EXHAUSTED:
            return f"every recorded answer is used up: {self.about}"
        if self.why == INVALID:
            return f"invalid arguments: {self.about}: {self.detail}"
        if self.why == UNRECORDED:
            return f"{'not in the listing' if self.is_listed else 'not recorded'}: {self.about}"
        answer = f"this answer to {self.question}" if self.question else "these answers of the user"
        return f"not recorded: {self.about} with {answer}" if self.about else f"not recorded: {answer}"

    @property
    def line(self) -> str:
        """The miss with the nearest recorded request, and the values of the first difference."""
        if not self.nearest or (first := self.nearest[0].first) is None:
            return self.text
        at, recorded, sent = first
        line = f"{self.text}; nearest: {self.nearest[0].key.about} differs at {at}"
        if at != "/method":
            known = "listed" if self.is_listed else "recorded"
            line += f": {known} {value_text(at, recorded)}, sent {value_text(at, sent)}"
        more = self.nearest[0].more
        return line + (f" (and at {more} more)" if more else "")

    @property
    def data(self) -> dict[str, Any]:
        return {
            "mcpspy": self.why,
            "nearest": [
                {"method": near.key.method, "about": near.key.subject, "differs": near.differs}
                for near in self.nearest
            ],
        }


def value_text(at: str, value: Any) -> str:
    """Return the value at a pointer as text, without secrets: it is printed, and may be recorded again."""
    if value is ABSENT:
        return "nothing"
    tokens = pointer(at)
    for token in reversed(tokens):
        value = {token: value}
    data = Redactor(b"").message(json.dumps(value).encode())
    shown = value_at(loads(data), tokens)
    text = "[redacted]" if shown is ABSENT else untagged(json.dumps(shown, ensure_ascii=False))
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _info(recordings: Recordings) -> dict[str, str]:
    if recordings.server is None:
        return {"name": recordings.name or "mcpspy mock", "version": "0"}
    return recordings.server._asdict()


def _capabilities(recordings: Recordings) -> dict[str, Any]:
    capabilities: dict[str, Any] = {}
    for method in recordings.methods:
        first = method.partition("/")[0]
        if first in ("tools", "prompts", "resources", "logging"):
            capabilities.setdefault(first, {})
        elif first == "completion":
            capabilities["completions"] = {}
        if method == "resources/subscribe":
            capabilities.setdefault("resources", {})["subscribe"] = True
    return capabilities
