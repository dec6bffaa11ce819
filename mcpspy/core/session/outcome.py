"""The judge of outcomes: the meaning of each state of a request, in one table."""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.session.exchange import State

OK, BAD, OPEN, QUIET, ISSUE = "ok", "bad", "open", "quiet", "issue"
"""Tones: a colour may emphasise them, but the text alone must be clear without it."""


class Judgement(NamedTuple):
    """The meaning of a state."""

    tone: str
    mark: str
    """One character, for a timeline."""
    failed: bool = False
    """True for an error: the request got an error, or its operation failed."""
    unanswered: bool = False
    """True if its sender got no outcome."""


OUTCOMES: dict[State, Judgement] = {
    State.PENDING: Judgement(OPEN, "▸"),
    State.OK: Judgement(OK, " "),
    State.TOOL_ERROR: Judgement(BAD, "!", failed=True),
    State.ERROR: Judgement(BAD, "!", failed=True),
    State.REFUSED: Judgement(BAD, "!", failed=True),
    State.INPUT_REQUIRED: Judgement(OPEN, "?"),
    State.CANCELLED: Judgement(QUIET, "x"),
    State.LATE: Judgement(ISSUE, "x"),
    State.UNANSWERED: Judgement(BAD, "!", unanswered=True),
    State.UNKNOWN: Judgement(QUIET, "?"),
    State.CLOSED: Judgement(OK, " "),
    State.DROPPED: Judgement(ISSUE, "x"),
    State.ABANDONED: Judgement(QUIET, "x"),
}


def of(state: State) -> Judgement:
    """Return the meaning of a state."""
    return OUTCOMES[state]


FAILED = frozenset(state for state, outcome in OUTCOMES.items() if outcome.failed)
"""The states that count as errors."""

UNANSWERED = frozenset(state for state, outcome in OUTCOMES.items() if outcome.unanswered)
"""The states that count as unanswered."""
