"""The judge of outcomes: the meaning of each state of a request, and the numbers of a session.

`core.session.exchange` has the transitions between the states. Whether a request failed, whether it is unanswered, which
words, tone and mark it gets, and which filters match it, is decided here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import StrEnum
from typing import NamedTuple

from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.message import Failure, Result
from mcpspy.core.protocol.spec import CLIENT
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


class Reply(StrEnum):
    """The best response that the client of a session got."""

    NOT_ASKED = "not asked"
    """The client sent no request."""
    SILENCE = "silence"
    """No request of the client got a response."""
    REFUSED = "refused"
    """Some got a refusal or an error, none a result, and the handshake or an HTTP request was refused."""
    ANSWERED = "answered"


HANDSHAKE = ("initialize", "server/discover")
"""Requests without whose result no session begins."""

_ERRORS = frozenset({State.ERROR, State.LATE_ERROR})


def reply_of(exchanges: Iterable[Exchange]) -> Reply:
    """Return what the client got, of the exchanges at the beginning of a session."""
    reply = Reply.NOT_ASKED
    for exchange in exchanges:
        if exchange.request.side != CLIENT or not exchange.is_counted:
            continue
        state = exchange.state
        is_refused = state is State.REFUSED or (state in _ERRORS and exchange.request.method in HANDSHAKE)
        if not is_refused and (exchange.answer is not None or state is State.UNKNOWN):
            return Reply.ANSWERED
        if is_refused or reply is Reply.NOT_ASKED:
            reply = Reply.REFUSED if is_refused else Reply.SILENCE
    return reply


class Verdict(StrEnum):
    """The outcome of a whole session; the values are those of `verdict:` in a filter of sessions."""

    LIVE = "live"
    NEVER_STARTED = "never-started"
    """The server's command could not be started, or no HTTP request reached the server."""
    NEVER_ANSWERED = "never-answered"
    """The server was reached, and answered no request."""
    REFUSED = "refused"
    """The server refused the client: HTTP ≥ 400, or an error instead of the handshake."""
    CRASHED = "crashed"
    """The server exited with an error, or a signal killed it that is not one by which hosts end servers."""
    DIED = "died"
    """mcpspy was killed before the end of the session."""
    FAILURES = "failures"
    """It worked, and had errors or unanswered requests."""
    FINE = "fine"


TROUBLE = frozenset(
    {Verdict.NEVER_STARTED, Verdict.NEVER_ANSWERED, Verdict.REFUSED, Verdict.CRASHED, Verdict.DIED}
)
"""Verdicts of sessions that did not work or did not end as they should."""

NORMAL_SIGNALS: Collection[object] = ("SIGTERM", "SIGINT", "SIGHUP", "SIGPIPE")
"""Signals by which hosts end servers, and that of a closed pipe (2025-11-25, basic/lifecycle: Shutdown)."""

NORMAL_CODES: Collection[object] = (None, 0, 130, 143)
"""Exit codes of servers that exited normally, or because of SIGINT or SIGTERM."""


def ended_badly(code: object, signal: object) -> bool:
    """Return whether a server crashed, by its exit code or the name of the signal that ended it."""
    return signal not in NORMAL_SIGNALS if signal is not None else code not in NORMAL_CODES


class VerdictFacts(NamedTuple):
    """The facts on which the verdict of a session depends, except its counts."""

    is_live: bool
    has_started: bool
    """False if the server could not be started or reached."""
    reply: Reply
    is_cut: bool = False
    """True if the recording has no end."""
    code: object = None
    """The exit code; None if it is not known."""
    signal: object = None
    """The name of the signal that ended the server; None without one."""

    def verdict(self, counts: SessionCounts | None) -> Verdict | None:
        """Return the verdict; None if it depends on counts that are not known."""
        if self.is_live:
            return Verdict.LIVE
        if not self.has_started:
            return Verdict.NEVER_STARTED
        # A host kills a server for which it has waited too long.
        is_silent = self.reply is Reply.SILENCE and self.signal == "SIGKILL"
        if ended_badly(self.code, self.signal) and not is_silent:
            return Verdict.CRASHED
        if self.reply is Reply.REFUSED:
            return Verdict.REFUSED
        if self.reply is Reply.SILENCE and not self.is_cut:
            return Verdict.NEVER_ANSWERED
        if self.is_cut:
            return Verdict.DIED
        if counts is None:
            return None
        return Verdict.FAILURES if counts.errors or counts.unanswered else Verdict.FINE


def verdict_tone(verdict: Verdict | None) -> str | None:
    """Return the tone of a verdict, as a list shows it; None for the usual colour."""
    return OK if verdict is Verdict.LIVE else BAD if verdict in TROUBLE else None


def verdict_mark(verdict: Verdict | None) -> str:
    """Return the mark of a verdict: one character."""
    return "●" if verdict is Verdict.LIVE else "✗" if verdict in TROUBLE else "○"


_VERDICTS = {
    Verdict.NEVER_STARTED: "never started",
    Verdict.NEVER_ANSWERED: "never answered",
    Verdict.DIED: "mcpspy was killed",
}
"""The words of verdicts that are not their values."""


def verdict_words(
    verdict: Verdict | None,
    counts: SessionCounts | None = None,
    ending: str = "",
    *,
    is_http: bool = False,
    is_imported: bool = False,
) -> str:
    """Return a verdict in words, with the exit in words (`exit 1`), and with the numbers of failures if given.

    None, for a session whose counts are not known, is `ended`.
    """
    if verdict is None:
        return "ended"
    text = _VERDICTS.get(verdict, verdict.value)
    if verdict is Verdict.NEVER_STARTED and is_http:
        text = "server not reached"
    if verdict is Verdict.DIED and is_imported:
        text = "end not in the file"
    parts = [text]
    if verdict in (Verdict.CRASHED, Verdict.NEVER_ANSWERED):
        parts.append(ending)
    if counts is not None and verdict is Verdict.FAILURES:
        parts = [counted(counts.errors, "error") if counts.errors else ""]
    if counts is not None and counts.unanswered and verdict in WITH_NUMBERS:
        parts.append(f"{counts.unanswered} unanswered")
    return ", ".join(filter(None, parts))


WITH_NUMBERS = (Verdict.FAILURES, Verdict.CRASHED, Verdict.DIED)
"""Verdicts whose words have numbers, if they are known."""
