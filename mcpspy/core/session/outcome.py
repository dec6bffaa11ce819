"""The judge of outcomes: the meaning of each state of a request, and the numbers of a session.

`core.session.exchange` has the transitions between the states. Whether a request failed, whether it is unanswered, which
words, tone and mark it gets, and which filters match it, is decided here and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

from mcpspy.core.counted import duration
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.session.exchange import Exchange, State, outcome_of
from mcpspy.core.session.tasks import failure_in

OK, BAD, OPEN, QUIET, ISSUE = "ok", "bad", "open", "quiet", "issue"
"""Tones: a colour may emphasise them, but the text alone must be clear without it."""


class Judgement(NamedTuple):
    """The meaning of a state."""

    tone: str
    mark: str
    """One character, for a timeline."""
    atoms: tuple[str, ...]
    """The values of `status:` that match it, the most specific first."""
    failed: bool = False
    """True for an error: the request got an error, or its operation failed."""
    unanswered: bool = False
    """True if its sender got no outcome."""
    is_open: bool = False
    """True if its outcome is still awaited."""
    is_late: bool = False
    """True if the outcome came after the cancellation."""
    is_withheld: bool = False
    """True if mcpspy kept the request from its receiver."""


OUTCOMES: dict[State, Judgement] = {
    State.PENDING: Judgement(OPEN, "▸", ("pending",), is_open=True),
    State.WORKING: Judgement(OPEN, "▸", ("working", "pending", "task"), is_open=True),
    State.OK: Judgement(OK, " ", ("ok",)),
    State.TOOL_ERROR: Judgement(BAD, "!", ("toolerror", "error"), failed=True),
    State.ERROR: Judgement(BAD, "!", ("rpcerror", "error"), failed=True),
    State.REFUSED: Judgement(BAD, "!", ("refused", "error"), failed=True),
    State.TASK_FAILED: Judgement(BAD, "!", ("taskfailed", "error", "task"), failed=True),
    State.INPUT_REQUIRED: Judgement(OPEN, "?", ("input",)),
    State.CANCELLED: Judgement(QUIET, "x", ("cancelled",)),
    State.LATE_OK: Judgement(ISSUE, "x", ("late",), is_late=True),
    State.LATE_TOOL_ERROR: Judgement(BAD, "!", ("toolerror", "late", "error"), failed=True, is_late=True),
    State.LATE_ERROR: Judgement(BAD, "!", ("rpcerror", "late", "error"), failed=True, is_late=True),
    State.REDIRECTED: Judgement(BAD, "!", ("redirected", "noanswer"), unanswered=True),
    State.INCOMPLETE: Judgement(BAD, "!", ("incomplete", "noanswer"), unanswered=True),
    State.UNANSWERED: Judgement(BAD, "!", ("noanswer",), unanswered=True),
    State.NOT_CONTINUED: Judgement(BAD, "!", ("noanswer", "input"), unanswered=True),
    State.UNFINISHED: Judgement(BAD, "!", ("noanswer", "task"), unanswered=True),
    State.UNKNOWN: Judgement(QUIET, "?", ("unknown",)),
    State.CLOSED: Judgement(OK, " ", ("closed",)),
    State.DROPPED: Judgement(ISSUE, "x", ("dropped",), is_withheld=True),
    State.ABANDONED: Judgement(QUIET, "x", ("abandoned",), is_withheld=True),
}

ATOMS = tuple(
    """ok error toolerror rpcerror pending cancelled late noanswer unknown closed refused dropped abandoned input task
    working taskfailed redirected incomplete""".split()
)
"""All values of `status:`, as help shows them."""


def of(state: State) -> Judgement:
    """Return what a state means."""
    return OUTCOMES[state]


def states_of(atom: str) -> frozenset[State]:
    """Return the states that `status:` with this value matches."""
    return frozenset(state for state, outcome in OUTCOMES.items() if atom in outcome.atoms)


FAILED = frozenset(state for state, outcome in OUTCOMES.items() if outcome.failed)
"""The states that count as errors."""

TOOL_ERRORS = states_of("toolerror")
"""The states of a request whose result is the error of a tool."""

UNANSWERED = frozenset(state for state, outcome in OUTCOMES.items() if outcome.unanswered)
"""The states that count as unanswered."""


ASKED = frozenset({State.INPUT_REQUIRED, State.NOT_CONTINUED})
"""The states of a request that was answered by a question."""


class SessionCounts(NamedTuple):
    """The numbers of a session. What a viewer injected is in none but the first and the last."""

    messages: int
    errors: int
    """Operations that failed, once each, and error responses that settled no request.

    A request that polls a task belongs to the call that created the task.
    """
    pending: int
    """Operations that are open, without subscriptions."""
    issues: int = 0
    """Messages with a protocol issue, whatever their outcome."""
    unanswered: int = 0
    """Operations without an outcome."""
    injected: int = 0
    """Requests and notifications that a viewer sent."""


def is_error_response(message: Result | Failure) -> bool:
    """Return whether a response reports an error, whatever became of its request."""
    return outcome_of(message) in FAILED


def filter_status(state: State | None, *, is_counted: bool = True) -> str:
    """Return the status that filters test: empty for a failure that counts nowhere (injected, or a poll of a task)."""
    if state is None or (not is_counted and (state in FAILED or state in UNANSWERED)):
        return ""
    return state.value


def describe(exchange: Exchange) -> tuple[str, str]:
    """Return the outcome of a request in words, not sanitized, and its tone.

    The text of a tool error is not among the words.
    """
    state = exchange.state
    if state is State.PENDING and exchange.is_subscription:
        return "open", OPEN
    text = words(state, exchange.final or exchange.answer, exchange.why)
    if state is State.OK and exchange.is_task:
        text = "ok, as a task"
        if exchange.ended_at is not None and (took := exchange.latency) is not None:
            text += f" in {duration(max(took, 0.0))}"
    elif state is State.UNANSWERED and exchange.request.method == "initialize":
        text = text.replace("no answer", "no answer to initialize", 1)
    return (f"{exchange.redirect}; {text}" if exchange.redirect else text), OUTCOMES[state].tone


def reported_by(exchange: Exchange) -> Result | Failure | None:
    """Return the response that reports the outcome: the error in it, if it has that of a task (2026-07-28)."""
    answer = exchange.final or exchange.answer
    if exchange.state is State.ERROR and exchange.is_task and isinstance(answer, Result):
        return failure_in(answer) or answer
    return answer


def error_of(exchange: Exchange) -> Result | Failure | None:
    """Return the response with the error of a request that failed: a tool error is a result. None if none has it."""
    answer, state = reported_by(exchange), exchange.state
    return answer if state in TOOL_ERRORS or (state in FAILED and isinstance(answer, Failure)) else None


def error_text(exchange: Exchange) -> str:
    """Return the text of the error of a request that failed, not sanitized, or the reason for its state."""
    answer = error_of(exchange)
    return ("" if answer is None else answer.text) or exchange.why


_WORDS = {
    State.INCOMPLETE: "no answer",
    State.NOT_CONTINUED: "input required, never continued",
}
"""The words of states that are not their names."""

_WITHOUT_REASON = frozenset(
    {
        *(State.OK, State.LATE_OK, State.CLOSED, State.TOOL_ERROR, State.LATE_TOOL_ERROR),
        *(State.INPUT_REQUIRED, State.DROPPED, State.ABANDONED),
    }
)
"""States after which the reason for an earlier state is of no interest."""


def words(state: State, answer: Result | Failure | None = None, why: str = "") -> str:
    """Return a state in words, with the error of the response that reports it, or the reason."""
    if state in (State.ERROR, State.LATE_ERROR):
        late = "late " if state is State.LATE_ERROR else ""
        return late + (answer.description if isinstance(answer, Failure) else why or "error")
    text = _WORDS.get(state, state.value)
    if state is State.UNFINISHED and not why:
        why = "still working at the end"
    if not why or state in _WITHOUT_REASON:
        return text
    if state is State.REDIRECTED:
        return f"{text}: {why} (not followed)"
    if state is State.CANCELLED:
        return f"{text} {why}"
    return f"{text}, {why}" if state is State.REFUSED else f"{text}: {why}"


def cancelled_by(side: str, seconds: float) -> str:
    """Return who cancelled a request before any response, and how long after it."""
    return f"by the {side} after {duration(max(seconds, 0.0))}"


def never_completed(unit: str, size: int, missing: str) -> str:
    """Return the reason for an incomplete response: its `unit` is an event, a line or a body."""
    article = "an" if unit == "event" else "a"
    lacks = f" ({missing})" if missing else ""
    return f"{article} {unit} of {size} bytes was never completed{lacks}"
