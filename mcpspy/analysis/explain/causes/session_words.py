"""Refusals of requests in a session over HTTP: whether they are about the session."""

from __future__ import annotations

import re

from mcpspy.analysis.explain.causes.exchanges import NO_ROUTE
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.symptoms import RefusedExchange

SESSION_ID = "mcp-session-id"
_OTHER_SESSION = re.compile(
    r"(?i)\b(?:browser|database|db|sql\w*|chat|login|sign-in|playwright|query|shell|ssh|debug\w*)[ _-]?sessions?\b"
    r"|\b(?:creat|start|open|acquir|launch|establish)\w* .{0,20}sessions?\b"
    r"|mismatch|\bbelongs?\b|(?:another|different|other) (?:user|client)|\bowner|not (?:allowed|permitted|authori[sz]ed)"
)
"""Words of a session of another kind, or of the session of another user."""
_SIGNED_OUT = re.compile(r"(?i)\blog(?:ged)? ?(?:in|out)\b|\bsign(?:ed)? ?(?:in|out)\b|authenticat")
"""Words of 401 or 403 of a sign-in that is over."""
OTHER_THING = re.compile(
    r"(?i)\b(?:method|tool|(?<!requested )(?<!static )resource|prompt|task|template|project|workspace|tenant|user|file|document|record|model)s?\b"
    r"(?! session).{0,60}\b(?:not (?:be )?found|unknown|does(?: not|n't) exist|not (?:supported|implemented|available))"
    r"|\b(?:unknown|no such|invalid|unsupported)\b.{0,4} ?(?:method|tool|resource|prompt|task|project|workspace|tenant|user|file)\b"
)
"""Words of a 404 that is about what a request names, and not about its session."""


def is_of_other_session(exchange: RefusedExchange, words: str) -> bool:
    """Return whether the words of a refusal are about a session that is not that of MCP, or of a sign-in."""
    is_signed_out = exchange.status in (401, 403) and _SIGNED_OUT.search(words) is not None
    return is_signed_out or _OTHER_SESSION.search(words) is not None


_ABOUT_SESSIONS = re.compile(r"(?i)\bsessions?\b|initiali[sz]ed|\btransport\b|^bad request$")


def is_about_its_message(exchange: RefusedExchange, words: str) -> bool:
    """Return whether a refusal is about what its message names, and not about its session."""
    if NO_ROUTE.search(words) or (exchange.status == 400 and words and not _ABOUT_SESSIONS.search(words)):
        return True
    return OTHER_THING.search(words) is not None and not re.search(r"(?i)\bsessions?\b", words)


def is_unread_notification(facts: Facts, exchange: RefusedExchange, words: str) -> bool:
    """Return whether a notification was refused without a word in a session that requests still used after it."""
    is_used = facts.http.accepted_at(exchange) > exchange.last_at
    return exchange.asked.startswith("notifications/") and not words and is_used
