"""Requests that failed or got no response: which they are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import ERRORS, FailedRequest, Violation
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

SILENT = (State.UNANSWERED, State.CANCELLED)
_LATE = (State.LATE_OK, State.LATE_ERROR, State.LATE_TOOL_ERROR)

SHORT_WAIT = 10.0
"""Seconds below which a limit is short for a call, as its response shows."""

LONG_WAIT = 20.0
"""Seconds after which a request without a response is a hang, and not slow work."""

_NO_ARGUMENTS = ("initialize", "notifications/initialized", "server/discover", "ping", "logging/setLevel")


def has_fixed_form(method: str) -> bool:
    """Return whether the protocol has the whole form of a message, with nothing in it that a server defines."""
    return method in _NO_ARGUMENTS or method.endswith("/list")


def is_limit(seconds: float) -> bool:
    """Return whether a time is one of the usual limits of clients, to a tenth of a second."""
    return any(0 <= seconds - limit < 0.1 for limit in (5, 10, 15, 20, 30, 60, 120, 300))


NO_PARAMS = re.compile(r"(?i)invalid (?:request )?param(?:eter)?s\.?")
"""The whole error of the Python SDK for a method that it does not know, and for a request before the end of the handshake."""


def errors(facts: Facts, side: str = CLIENT) -> Iterator[FailedRequest]:
    """Yield the requests of a side that got an error."""
    for failed in facts.failed(*ERRORS):
        if failed.side == side and not failed.effects:
            yield failed


def held_up(facts: Facts, asking: FailedRequest) -> list[FailedRequest]:
    """Return the failed calls during which the other side sent a request."""
    return [each for each in facts.failed(*ERRORS) if each.about in asking.waiting]


def without_response(facts: Facts, side: str = "") -> Iterator[FailedRequest]:
    """Yield the requests that got no response in time, and whose HTTP exchange, if any, was accepted."""
    for failed in facts.failed(*SILENT, *_LATE):
        carrier = failed.carrier
        refused = carrier is not None and (bool(carrier.error) or (carrier.status or 0) >= 300)
        if (not side or failed.side == side) and not failed.effects and not refused:
            yield failed


def answers_to_notifications(facts: Facts) -> list[Violation]:
    """Return the responses without an id that are to notifications: each request has its own, and notifications were sent."""
    is_answered = not any(each.side == CLIENT for each in facts.failed(*SILENT))
    is_answered &= not facts.client.odd_count  # Then it is an error about a line that it could not read.
    has_notified = any(method.startswith("notifications/") for method in facts.client.methods)
    return facts.violations("ENV207", side=SERVER) if facts.is_stdio and is_answered and has_notified else []
