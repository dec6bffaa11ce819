"""The end of the server: it crashed, the client had left, or it did not end with its stdin."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcpspy.analysis.explain.causes import examples as ex
from mcpspy.analysis.explain.causes.leaving import SECONDS_TO_LEAVE
from mcpspy.analysis.explain.causes.requests import LONG_WAIT, SHORT_WAIT, is_limit
from mcpspy.analysis.explain.causes.start import before_answer
from mcpspy.analysis.explain.claims import Claim, Level, cause
from mcpspy.analysis.explain.evidence import NamedError, clause, evidence, is_error, named_error, quote
from mcpspy.analysis.explain.facts import PATIENCE, Facts
from mcpspy.analysis.explain.symptoms import FailedRequest, ServerEnd
from mcpspy.core.counted import counted, duration
from mcpspy.core.protocol.spec import CLIENT, SERVER
from mcpspy.core.session.exchange import State

_BROKEN_PIPE = re.compile(
    r"(?i)\bEPIPE\b|broken ?pipe|write after end|ERR_STREAM_(?:WRITE_AFTER_END|DESTROYED)"
)
"""A closed pipe in the words of the system, of Python, Ruby and Rust, and of Node.js."""

_PIPE_ERROR = ex.stderr("BrokenPipeError: [Errno 32] Broken pipe")


@cause(
    "client-gone-first",
    "the client went away first, and the server's error follows from that",
    Level.EXACT,
    positive=ex.session(ex.call(), ex.CLIENT_CLOSED, "+ 0.1", _PIPE_ERROR, ex.exited(1)),
    negative=ex.session(ex.call(), _PIPE_ERROR, ex.exited(1)),
)
def client_gone_first(facts: Facts) -> Iterator[Claim]:
    """A server that writes to a pipe that no one reads any more ends with EPIPE: it is not to blame."""
    gone = [
        (closed.at, place)
        for closed, place in facts.notes.get("closed", [])
        if closed.fields.get("by") == CLIENT and closed.fields.get("pipe") == "stdout"
    ]
    if facts.client.closed_at is not None:
        gone.append((facts.client.closed_at, facts.client.closed_place))
    for end in facts.of(ServerEnd):
        text = "" if end.named is None else end.named.text
        is_pipe = _BROKEN_PIPE.search(text) or end.signal == "SIGPIPE"
        if not gone or min(gone)[0] > end.at + 0.5 or not is_pipe:
            continue
        at, place = min(gone)
        calls = [f", {duration(at - each.asked_at)} after {each.about}" for each in end.during[:1]]
        title = (
            f"the client went away first{''.join(calls)}: the server then failed to write its response "
            f"({quote(text) or end.words})"
        )
        next_step = "look into the client's log why it left; the server may handle a closed pipe quietly"
        symptoms = [end, *end.during]
        lines = [evidence(place, "the client closed its end")]
        yield Claim(title, next_step, symptoms, evidence=lines)


_END_OF_INPUT = re.compile(r"\bEOF\b|(?i:\bend of (?:file|input|stream)\b)")
"""A program that names the end of its stdin."""

SECONDS_OF_A_PIPE = 0.5
"""Seconds within which a program that only pipes its requests into a server has closed stdin."""


@cause(
    "stdin-closed-early",
    "the client closed stdin at once, and the server ended without a response",
    Level.SPECIFIC,
    positive=ex.session(
        *("@ bare", "+ 0.01", ex.initialize(), ex.CLIENT_CLOSED),
        *(ex.stderr("server is closing: EOF"), ex.exited(1)),
    ),
    negative=(
        ex.session(
            "@ bare", ex.initialize(), "+ 0.1", ex.CLIENT_CLOSED, ex.stderr("KeyError: 'TOKEN'"), ex.exited(1)
        ),
        ex.session("@ bare", ex.initialize(), "+ 5", ex.CLIENT_CLOSED, ex.exited(1)),
    ),
)
def stdin_closed_early(facts: Facts) -> Iterator[Claim]:
    """A script pipes its requests into a server, and some servers take the end of stdin for the end of their work
    (modelcontextprotocol/go-sdk#1061).
    """
    closed_at = facts.client.closed_at
    for end, symptoms in before_answer(facts):
        text = end.named.text if end.named is not None else ""
        is_named = is_error(text) and not _END_OF_INPUT.search(text)
        if closed_at is None or closed_at > end.at or not end.during or is_named or facts.server.odd:
            continue
        first = end.during[0]
        waited = closed_at - first.asked_at
        if end.signal is None and 0 <= waited < SECONDS_OF_A_PIPE:
            title = (
                f"the client closed the server's stdin {duration(waited)} after {first.about}, and the server then ended without a "
                f"response ({end.words}){clause(text)}"
            )
            next_step = (
                "let the client keep stdin open until the responses have come (in a shell: { cat requests; sleep 2; } | server); and let "
                "the server answer what it has read before it ends"
            )
            lines = [evidence(facts.client.closed_place, "the client closed stdin")]
            yield Claim(title, next_step, symptoms, evidence=lines)


IDLE_SECONDS = 10.0
"""Seconds without a message after which a server that ends by itself has probably been idle for too long."""

_NO_NOTIFICATION = re.compile(r"(?i)client ?notification|cancelled ?notification|notifications/")
"""The types of the Python SDK for what a client may notify of, in the words of pydantic."""


def _given_up_before(facts: Facts, error_at: float) -> FailedRequest | None:
    """Return the request that the client cancelled just before an error."""
    cancelled = [each for each in facts.failed() if each.side == CLIENT and each.gave_up_at is not None]
    return next((each for each in cancelled if 0 <= error_at - (each.gave_up_at or 0.0) < 1.0), None)


@cause(
    "crash",
    "the server ended in the middle of the session",
    Level.SPECIFIC,
    rules="LIFE401 LIFE403 LIFE404",
    positive=(
        ex.session(ex.request("ping"), ex.stderr("TypeError: x is not a function"), ex.exited(1)),
        ex.session(
            *("@ bare", ex.initialize(), ex.welcome(), "+ 0.1", ex.request("logging/setLevel", level="info")),
            *(ex.stderr("Error: expect initialized notification"), ex.exited(1)),
        ),
        ex.session("@ bare", "+ 0.1", ex.initialize(), ex.welcome(), ex.INITIALIZED, ex.exited(0)),
        ex.session(ex.listed("a"), ex.note("exit", code=None, signal="SIGTERM")),
        ex.session(ex.call(), "+ 30", ex.CLIENT_CLOSED, "+ 0.1", ex.stderr("CancelledError"), ex.exited(1)),
    ),
)
def crash(facts: Facts) -> Iterator[Claim]:
    """An error that nothing caught, a kill, or a limit of memory."""
    for end in facts.of(ServerEnd):
        if not end.has_answered:
            continue
        calls = f" while {counted(len(end.during), 'request')} had no response" if end.during else ""
        calls = f" during {end.during[0].about}" if len(end.during) == 1 else calls
        last = facts.client.last_at
        if not calls and last is not None and 0 <= end.at - last < SECONDS_TO_LEAVE:
            calls = f" {duration(end.at - last)} after {facts.client.last_message} of the client"
        if _is_shutdown(facts, end):
            yield _cut_off(facts, end)
            continue
        how, side = end.words if end.signal else f"with {end.words}", SERVER
        killed_by = _killed_by(end)
        if killed_by and end.signal is None:
            how += f" (killed by {killed_by})"
        title = f"the server ended{calls}, {how}{clause(end.named.framed if end.named else '')}"
        if end.named is not None and not (killed_by and _STOPPED.search(end.named.text)):
            title, next_step = _with_error(facts, end, end.named, calls, how)
            side = "" if _is_before_initialized(facts, end, end.named) else side
        elif end.code == 0:
            title, next_step = _ended_by_itself(facts, end, calls)
        elif killed_by:
            side = ""  # The server, if it took too much, or whatever runs beside it.
            next_step = _LOOK_FOR_ASKER if killed_by in _ASKING else _LOOK_FOR_KILLER
        else:
            next_step = (
                "mcpspy replay repeats the session against the server; its last lines on stderr say "
                "where it was"
            )
        if end.named is None and end.code != 0:
            title += _last_line(facts, end)
        symptoms = [end, *end.during, *facts.violations("LIFE401", "LIFE403", "LIFE404")]
        lines = [] if end.named is None else [end.named.evidence]
        yield Claim(title, next_step, symptoms, evidence=lines, side=side)


_STOPPED = re.compile(
    r"\bKeyboardInterrupt\b|\bSIG(?:INT|TERM|HUP|KILL)\b|\bCancelledError\b|(?i:\bkilled\b|\bterminated\b)"
)
"""The words of runtimes about a signal."""

_ASKING = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
"""Signals by which people and supervisors end a program."""

_LOOK_FOR_KILLER = "something killed it: a limit of memory (dmesg, docker inspect), or a supervisor"
_LOOK_FOR_ASKER = (
    "something asked it to end, and not this client: a supervisor, the end of its container, a terminal, or another copy of "
    "the server that replaces it; its log and the host's name it"
)

_CODES = {129: "SIGHUP", 130: "SIGINT", 137: "SIGKILL", 143: "SIGTERM"}
"""Exit codes by which shells and containers pass a signal on."""


def _is_shutdown(facts: Facts, end: ServerEnd) -> bool:
    """Return whether a server ended because the client had closed its stdin, and names no other error."""
    closed_at = facts.client.closed_at
    is_after = closed_at is not None and closed_at <= end.at and end.signal is None and bool(end.during)
    return is_after and (end.named is None or _STOPPED.search(end.named.text) is not None)


def _cut_off(facts: Facts, end: ServerEnd) -> Claim:
    """Return the claim of a server that ended, with an exit code, after the client had left requests without a response."""
    first, closed_at = end.during[0], facts.client.closed_at or end.at
    waited = closed_at - first.asked_at
    title = (
        f"the client closed stdin {duration(waited)} after {first.about}, which had no response; the server then ended with "
        f"{end.words}"
    )
    next_step = (
        f"look where the server waits at {first.about} (py-spy dump, a debugger), if the client closed the session because of that; "
        f"the exit code only follows"
    )
    symptoms = [end, *end.during, *facts.violations("LIFE401", "LIFE403", "LIFE404")]
    error = named_error(first.stderr, certain=True)
    if error is not None and error.line.at < closed_at - PATIENCE:
        title = f"the server failed during {first.about}, which had no response, and ended only with its stdin: {quote(error.framed)}"
        return Claim(title, error.next_step, symptoms, evidence=[error.evidence], side=SERVER)
    side = SERVER if waited >= LONG_WAIT else ""
    lines = [evidence(facts.client.closed_place, "the client closed stdin")]
    return Claim(title, next_step, symptoms, evidence=lines, side=side, level=Level.GENERAL)


def _killed_by(end: ServerEnd) -> str:
    """Return the signal by which others ended a server; empty if there was none, or one that its own mistakes bring about."""
    signal = end.signal or _CODES.get(end.code or 0, "")
    return signal if signal in ("SIGKILL", *_ASKING) else ""


def _is_before_initialized(facts: Facts, end: ServerEnd, named: NamedError) -> bool:
    """Return whether a server ended at a request because notifications/initialized had not come."""
    is_missing = not facts.client.methods["notifications/initialized"]
    return bool(end.during) and is_missing and "nitialized" in named.text


def _with_error(facts: Facts, end: ServerEnd, named: NamedError, calls: str, how: str) -> tuple[str, str]:
    """Return the title and the next step of a server that named an error before it ended."""
    title = f"the server ended{calls}, {how}{clause(named.framed)}"
    next_step = named.next_step
    if _is_before_initialized(facts, end, named):
        title = (
            f"the server ended{calls}, {how}: the request came before notifications/initialized: "
            f"{quote(named.framed)}"
        )
        next_step = (
            "let the client send notifications/initialized right after the response to initialize (2025-11-25, Lifecycle); let the server "
            "take requests before it, or answer them with an error, and not end: update its SDK"
        )
    elif "nitialized" in named.text and facts.client.methods["initialize"] > 1 and facts.is_stdio:
        title += "; a second initialize had begun the handshake again"
        next_step = (
            "let each client have a process of the server alone: a bridge that passes several clients on to one process sends it the "
            "initialize of each"
        )
    given_up = _given_up_before(facts, named.line.at)
    if given_up is not None:
        title = f"the server ended when the client cancelled {given_up.about}, {how}{clause(named.framed)}"
        if _NO_NOTIFICATION.search(named.text):
            next_step = (
                "the server's SDK does not know notifications/cancelled, and ends at its error: update the SDK; "
                "a server must continue after each message that it cannot use"
            )
    return title, next_step


def _ended_by_itself(facts: Facts, end: ServerEnd, calls: str) -> tuple[str, str]:
    """Return the title and the next step of a server that ended without an error."""
    title = (
        f"the server ended by itself with exit code 0{calls}, although the client had not closed its stdin"
    )
    next_step = "let the server wait until its transport closes: its main function returns too early"
    broken = [each for each in facts.client.odd if 0 <= end.at - each.at < SECONDS_TO_LEAVE]
    if broken and not calls:
        title += f", right after a line of the client that is not a message: {quote(broken[-1].data.decode('utf-8', 'replace'), 60)}"
        next_step = "let the server answer a line that it cannot read with the error -32700, and continue with the next one"
    quiet = end.at - max(facts.server.last_at or 0.0, facts.client.last_at or 0.0)
    if quiet > IDLE_SECONDS and not end.during:
        title += f", {duration(quiet)} after the last message"
        next_step = (
            "a limit of idle time may end it: remove it, as hosts keep a session open for hours and do not "
            "start a server again"
        )
    return title + _last_line(facts, end), next_step


def _last_line(facts: Facts, end: ServerEnd) -> str:
    """Return the last line on stderr before the end of a server, to follow a title; may be empty."""
    printed = [line for line in facts.stderr if 0 <= end.at - line.at < 1.0]
    return f"; its last line on stderr: {quote(printed[-1].text, 100)}" if printed else ""


SLOW_SECONDS = 4.0
"""Seconds after the end of stdin within which a busy server may still be ending itself."""

_END_AT_EOF = "end the server at the end of stdin, also its threads, timers and child processes"


@cause(
    "server-did-not-end",
    "the server did not end when the client closed its stdin",
    Level.GENERAL,
    rules="LIFE402",
    positive=ex.session(ex.call(), ex.done(), ex.CLIENT_CLOSED, ex.note("signal", signal="SIGTERM")),
)
def server_did_not_end(facts: Facts) -> Iterator[Claim]:
    """Threads, timers, child processes or an HTTP listener keep it running; hosts then kill it, or
    leave it behind.
    """
    left_at, exit_, violations = facts.client.closed_at, facts.exit, facts.violations("LIFE402")
    if left_at is not None and not violations:
        # One that handles the signal ends with exit code 0.
        signals = [each for each in facts.notes.get("signal", []) if each[0].at - left_at > PATIENCE]
        for sent, place in signals[:1]:
            name, after = sent.fields.get("signal"), duration(sent.at - left_at)
            title = f"the server still ran {after} after the client had closed its stdin; then came {name}"
            claim = Claim(title, _END_AT_EOF, [], evidence=[evidence(place, f"signal: {name}")], side=SERVER)
            is_slow = exit_ is not None and sent.at - left_at < SLOW_SECONDS
            claim.is_observation = is_slow or bool(facts.failed() and exit_ is not None)
            yield claim
    for violation in violations:
        # Hosts close stdin, wait about 2 s and send SIGTERM: a server that then ends at once has only been slow.
        waited = 0.0 if exit_ is None or left_at is None else exit_.at - left_at
        was_killed = exit_ is not None and exit_.fields.get("signal") == "SIGKILL"
        title = violation.findings[0].message
        claim = Claim(title, _END_AT_EOF, [violation], side=SERVER)
        claim.is_observation = (waited < SLOW_SECONDS and not was_killed) or bool(facts.failed())
        yield claim


@cause(
    "stopped-by-host",
    "the host stopped the server with SIGTERM, and had not closed its stdin",
    Level.GENERAL,
    positive=ex.session(
        ex.call(),
        ex.done(),
        "+ 6",
        ex.note("signal", signal="SIGTERM"),
        ex.note("exit", code=None, signal="SIGTERM"),
    ),
    negative=(
        ex.session(ex.call(), ex.done(), ex.CLIENT_CLOSED, ex.note("signal", signal="SIGTERM"), ex.exited(0)),
        ex.session(ex.call(), ex.done(), ex.note("signal", signal="SIGINT"), ex.exited(0)),
    ),
)
def stopped_by_host(facts: Facts) -> Iterator[Claim]:
    """The server did not crash. A host that meant to end the session closes stdin first (2025-11-25, Lifecycle, Shutdown);
    some send the signal at once, and some only because a thread or a process between them and the server ended.
    """
    for sent, place in facts.notes.get("signal", [])[:1]:
        if not facts.is_stdio or facts.client.closed_at is not None or sent.fields.get("signal") != "SIGTERM":
            continue
        last = max(facts.client.last_at or 0.0, facts.server.last_at or 0.0)
        title = f"the host stopped the server with SIGTERM {duration(sent.at - last)} after the last message, and had not closed its stdin"
        next_step = "if the session should have continued: look into the log of the host; the server did not end by itself"
        # A host that has waited for as long as a limit may have stopped it for that.
        cut_off = [
            each
            for each in facts.failed(State.UNANSWERED)
            if each.side == CLIENT
            and not each.is_handshake
            and each.asked_at <= sent.at
            and each.took < SHORT_WAIT
            and not is_limit(each.took)
        ]
        if cut_off:
            title = f"the host stopped the server with SIGTERM {duration(sent.at - cut_off[0].asked_at)} after {cut_off[0].about}, before a response"
        claim = Claim(title, next_step, [*cut_off], evidence=[evidence(place, "signal: SIGTERM")])
        claim.level, claim.is_observation = Level.SPECIFIC, not cut_off
        yield claim
