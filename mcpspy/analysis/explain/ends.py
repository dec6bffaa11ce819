"""The ends as symptoms: of a server that was not asked to end, and of a client that left early."""

from __future__ import annotations

from mcpspy.analysis.explain.evidence import PrintedLine, evidence, named_error
from mcpspy.analysis.explain.facts import Facts
from mcpspy.analysis.explain.side_facts import about_message
from mcpspy.analysis.explain.symptoms import ClientLeft, ServerEnd
from mcpspy.core.protocol.message import Failure, Message, Result
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.origin import CLIENTS
from mcpspy.core.session.exchange import State

LAST_SECONDS = 5.0
"""Seconds before the end of the server whose lines on stderr explain it."""


_BY_SIGNAL = (128 + 2, 128 + 9, 128 + 15)
"""Exit codes for SIGINT, SIGKILL and SIGTERM."""


def server_end(facts: Facts) -> ServerEnd | None:
    """Return the end of the server, if the client had not asked for it."""
    error = facts.notes.get("error")
    if not facts.is_stdio or (facts.exit is None and error is None):
        return None
    fields = {} if facts.exit is None else facts.exit.fields
    code, signal = fields.get("code"), fields.get("signal")
    ended_at = facts.last_at if facts.exit is None else facts.exit.at
    left_at, host_signals = facts.client.closed_at, facts.notes.get("signal", [])
    stopped_at = min(
        [note.at for note, _ in host_signals] + ([] if left_at is None else [left_at]), default=None
    )
    server_closed = facts.server.closed_at
    first = min(at for at in (server_closed, ended_at) if at is not None)
    asked = stopped_at is not None and stopped_at <= first
    # Runtimes that handle a signal, such as the JVM, end with 128 and its number.
    is_by_signal = signal is not None or (bool(host_signals) and code in _BY_SIGNAL)
    during = [each for each in facts.failed(State.UNANSWERED) if each.side == CLIENT and not each.carrier]
    if asked and error is None and (left_at is None or not during or is_by_signal or not code):
        return None
    has_answered = facts.server.messages > 0
    if (
        has_answered
        and not code
        and signal is None
        and not during
        and not asked
        and not facts.client.messages
    ):
        return None
    if error is None and not facts.client.messages and code == 0 and facts.header.origin not in CLIENTS:
        return None
    end = ServerEnd(
        at=first,
        place=facts.exit_place if error is None else error[0][1],
        code=code if isinstance(code, int) else None,
        signal=None if signal is None else str(signal),
        has_answered=has_answered,
        error="" if error is None else error[0][0].text,
        during=during,
    )
    end.named = named_error(_last_words(facts, first, has_answered=has_answered), certain=has_answered)
    if error is not None:
        end.add_line(evidence(error[0][1], end.error))
    elif facts.exit is not None:
        end.add_line(evidence(facts.exit_place, f"the server ended: {end.words}"))
    return end


def _left_at_first(facts: Facts, first: Message) -> bool:
    """Return whether the client left at the first messages of the server, which came before the response to initialize."""
    server, client = facts.server, facts.client
    is_last = facts.answered[CLIENT, "initialize"] == 1 and server.messages == server.methods.total() + 1
    is_alone = client.messages == 1 and is_last
    is_at_once = client.closed_at is not None and first.at <= client.closed_at < first.at + 1.0
    return is_alone and is_at_once and not isinstance(first, Result | Failure)


def _last_words(facts: Facts, at: float, *, has_answered: bool) -> list[PrintedLine]:
    """Return what the server printed before its end: on stderr, and on stdout if it had not answered."""
    if has_answered:
        return [line for line in facts.stderr if line.at >= at - LAST_SECONDS]
    odd = [
        PrintedLine(each.at, each.place, each.data.decode("utf-8", "replace"), "stdout")
        for each in facts.server.odd
    ]
    return sorted([*facts.stderr, *odd], key=lambda line: (line.at, line.place))


def client_left(facts: Facts) -> ClientLeft | None:
    """Return the end of the client, if it left right after a message and had not used the session."""
    if facts.header.origin in CLIENTS and facts.client.methods["tools/list"]:
        return None  # mcpspy was the client, and had read what it wanted.
    server, client = facts.server, facts.client
    left_at = client.closed_at if facts.is_stdio else facts.http.last_at
    if facts.is_stdio and left_at is None and not client.methods["notifications/initialized"]:
        # A host may end the server, and its stdin stays open until then.
        left_at = next((note.at for note, _ in facts.notes.get("signal", [])), None)
    if server.last_at is None or left_at is None or not server.messages:
        return None
    is_initialized = bool(client.methods["notifications/initialized"] or facts.session.is_modern)
    has_asked_more = client.last_request_at > server.last_at
    has_called = client.methods["tools/call"]
    has_left_before = client.closed_at is not None and client.closed_at <= server.last_at
    if has_left_before and client.heard is not None and _left_at_first(facts, client.heard):
        left = ClientLeft(
            at=left_at,
            place=client.closed_place,
            after=left_at - client.heard.at,
            message=about_message(client.heard, None),
            is_initialized=False,
            is_before_answer=True,
        )
        left.add_line(evidence(client.closed_place, "the client closed stdin"))
        return left
    if has_called or has_asked_more or has_left_before or not client.messages or server.ends_refused:
        return None
    if not facts.is_stdio and not is_initialized and facts.answered[CLIENT, "tools/list"]:
        return None  # It uses the session without notifications/initialized: `handshake-incomplete` has what fails of that.
    left = ClientLeft(
        at=server.last_at,
        place=server.last_place,
        after=max(left_at - server.last_at, 0.0),
        message=server.last_message,
        is_initialized=is_initialized,
        findings=[*server.last[3]] if server.last is not None else [],
    )
    left.add_line(evidence(server.last_place, f"the last message: {server.last_message}"))
    return left
