"""The table of outcomes, written out independently; tasks, redirects and incomplete responses in whole sessions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import structs

from mcpspy.core.recording.decode import Entry, Frame, Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.index import Index
from mcpspy.core.session.outcome import (
    ATOMS,
    OUTCOMES,
    Reply,
    SessionCounts,
    Verdict,
    VerdictFacts,
    describe,
    filter_status,
    of,
    reply_of,
    states_of,
    verdict_words,
)
from mcpspy.core.session.session import Session

FAILED = "tool error, error, refused, task failed, late tool error, late error"
UNANSWERED = "no answer, redirected, incomplete, not continued, task not finished"
OPEN = "pending, working"


def test_each_state_has_one_meaning() -> None:
    assert set(OUTCOMES) == set(State)
    for words, flag in ((FAILED, "failed"), (UNANSWERED, "unanswered"), (OPEN, "is_open")):
        assert {state.value for state in State if getattr(of(state), flag)} == set(words.split(", "))
    assert not any(each.failed and each.unanswered for each in OUTCOMES.values())


def test_the_atoms_of_the_filter_language_are_those_of_the_table() -> None:
    assert {atom for outcome in OUTCOMES.values() for atom in outcome.atoms} == set(ATOMS)
    assert {state.value for state in states_of("error")} == set(FAILED.split(", "))
    assert {state.value for state in states_of("noanswer")} == set(UNANSWERED.split(", "))


def test_a_failure_that_does_not_count_has_no_status_in_filters() -> None:
    assert filter_status(State.ERROR) == "error"
    assert filter_status(State.ERROR, is_counted=False) == ""
    assert filter_status(State.OK, is_counted=False) == "ok"


CALL = {"id": 1, "method": "tools/call", "params": {"name": "a", "task": {}}}
POLL = {"id": 2, "method": "tasks/get", "params": {"taskId": "t"}}
FETCH = {"id": 3, "method": "tasks/result", "params": {"taskId": "t"}}


def client(**message: Any) -> Frame:
    return frame("client", message)


def server(**message: Any) -> Frame:
    return frame("server", message)


def frame(side: str, message: dict[str, Any], at: float = 0.0, **head: Any) -> Frame:
    return Frame(at, side, json.dumps({"jsonrpc": "2.0", **message}).encode(), **head)


def task(status: str, **more: Any) -> dict[str, Any]:
    return {"taskId": "t", "status": status, **more}


def ended(*entries: Entry) -> Session:
    """Return the session of these entries, a second apart, after its end; the index has the same numbers."""
    session, index = Session(), Index()
    for at, each in enumerate(entries):
        entry = structs.replace(each, at=float(at)) if isinstance(each, Frame | Note) else each
        session.add(entry)
        index.add(entry, 0, 0)
    session.end()
    index.end()
    assert index.counts == session.counts
    for change in session.changes:
        assert index.filter_status(change.number, exchanges=False) == change.filter_status
        if change.exchange is not None and change.what is change.exchange.request:
            assert index.latency(change.number) == change.exchange.latency
            assert index.state(change.number) == change.exchange.state
    return session


BEGUN = (client(**CALL), server(id=1, result={"task": task("working")}))
GOT = client(**POLL)
FETCHED = client(**FETCH)


@pytest.mark.parametrize(
    ("entries", "state", "words", "latency"),
    [
        ((), "task not finished", "task not finished: still working at the end", None),
        (
            (GOT, server(id=2, result=task("working", statusMessage="half"))),
            *("task not finished", "task not finished: half", None),
        ),
        ((GOT, server(id=2, result=task("completed"))), "ok", "ok, as a task in 3.00 s", 3.0),
        (
            (GOT, server(id=2, result=task("completed")), FETCHED, server(id=3, result={"isError": True})),
            *("tool error", "tool error", 3.0),
        ),
        (
            (GOT, server(id=2, result=task("failed", statusMessage="died"))),
            *("task failed", "task failed: died", 3.0),
        ),
        (
            (
                GOT,
                server(id=2, result=task("failed")),
                FETCHED,
                server(id=3, error={"code": 7, "message": "x"}),
            ),
            *("error", "error 7: x", 3.0),
        ),
        ((FETCHED, server(id=3, result={"content": []})), "ok", "ok, as a task in 3.00 s", 3.0),
        (
            (server(method="notifications/tasks/status", params=task("failed", statusMessage="no")),),
            *("task failed", "task failed: no", 2.0),
        ),
        (
            (
                client(id=2, method="tasks/cancel", params={"taskId": "t"}),
                server(id=2, result=task("cancelled")),
            ),
            *("cancelled", "cancelled by the client after 3.00 s", 3.0),
        ),
        ((GOT, server(id=2, error={"code": -32602, "message": "gone"})), "task not finished", None, None),
    ],
)
def test_the_outcome_of_a_call_is_that_of_its_task(
    entries: tuple[Frame, ...], state: str, words: str | None, latency: float | None
) -> None:
    session = ended(*BEGUN, *entries)
    call, *polls = session.exchanges
    assert call.state == state
    assert words is None or describe(call)[0] == words
    assert call.latency == latency
    assert call.polls == polls
    failed, unanswered = of(call.state).failed, of(call.state).unanswered
    assert (session.counts.errors, session.counts.unanswered) == (failed, unanswered)


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (task("completed", result={"content": []}), "ok"),
        (task("completed", result={"isError": True}), "tool error"),
        (task("failed", error={"code": 1, "message": "x"}), "error"),
        (task("cancelled"), "cancelled"),
    ],
)
def test_a_task_of_2026_has_its_result_in_its_status(told: dict[str, Any], state: str) -> None:
    session = ended(
        client(**CALL),
        server(id=1, result={"resultType": "task", **task("working")}),
        GOT,
        server(id=2, result=told),
    )
    assert session.exchanges[0].state == state
    assert session.counts.errors == of(session.exchanges[0].state).failed


def test_a_request_about_an_unknown_task_is_an_ordinary_one() -> None:
    session = ended(GOT, server(id=2, error={"code": -32602, "message": "unknown"}))
    assert session.exchanges[0].poll_of is None
    assert session.counts.errors == 1


LIST = {"id": 1, "method": "tools/list"}


def posted(number: int, message: dict[str, Any], stream: str = "1") -> Frame:
    return frame("client", message, stream=stream, http=number)


def answered(number: int, status: int, **response: str) -> tuple[Note, Note]:
    fields = {"http": number, "status": status, "request": {"host": "a"}, "response": response}
    return Note(0.0, "http", fields), Note(0.0, "http-end", {"http": number, "hung_up": None})


MOVED = answered(1, 307, location="http://a/mcp/")


def test_a_redirected_request_that_is_sent_again_is_one_request() -> None:
    result = frame("server", {"id": 1, "result": {}}, stream="2", http=2)
    session = ended(posted(1, LIST), *MOVED, posted(2, LIST, "2"), result, answered(2, 200)[1])
    (exchange,) = session.exchanges
    assert (exchange.state, exchange.latency) == (State.OK, 4.0)
    assert describe(exchange)[0] == "307 → /mcp/; ok"
    assert [change.flaw for change in session.changes] == [None] * 6
    assert session.counts[:2] == (3, 0)


def test_a_redirect_that_is_not_followed_is_unanswered_and_names_its_target() -> None:
    session = ended(posted(1, LIST), *MOVED, posted(2, {**LIST, "id": 2}))
    assert describe(session.exchanges[0])[0] == "redirected: 307 → /mcp/ (not followed)"
    assert session.counts.unanswered == 2


def test_an_accepted_request_without_a_message_says_so_at_the_end() -> None:
    session = ended(posted(1, LIST), *answered(1, 202))
    assert describe(session.exchanges[0])[0] == "no answer: HTTP 202 without a message"


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (
            (client(**LIST), frame("server", {"id": 1, "result": {}}, eol="")),
            "a line of 41 bytes was never completed (no newline)",
        ),
        (
            (client(**LIST), Frame(0.0, "server", b'{"jsonrpc":"2.0","id":1,"res', eol="")),
            "a line of 28 bytes was never completed (cut)",
        ),
        (
            (
                posted(1, LIST),
                answered(1, 200, **{"content-type": "text/event-stream"})[0],
                frame("server", {"id": 1, "result": {}}, stream="1", http=1, eol=""),
            ),
            "an event of 41 bytes was never completed (no blank line)",
        ),
    ],
)
def test_an_incomplete_response_leaves_its_request_unanswered(entries: tuple[Entry, ...], why: str) -> None:
    session = ended(*entries)
    (exchange,) = session.exchanges
    assert (exchange.state, exchange.answer) == (State.INCOMPLETE, None)
    assert describe(exchange)[0] == f"no answer: {why}"
    assert session.counts.unanswered == 1


def test_silence_after_initialize_is_named_as_such() -> None:
    session = ended(client(id=1, method="initialize", params={"protocolVersion": "2025-11-25"}))
    assert describe(session.exchanges[0])[0] == "no answer to initialize"
    assert session.revision_text == "2025-11-25 (no answer to initialize)"


def test_a_question_that_no_one_continues_is_unanswered() -> None:
    session = ended(
        client(**LIST), server(id=1, result={"resultType": "input_required", "inputRequests": {}})
    )
    assert describe(session.exchanges[0])[0] == "input required, never continued"
    assert session.counts.unanswered == 1


def test_requests_of_a_viewer_are_counted_apart() -> None:
    session = ended(
        frame("client", {**LIST, "params": {}}, by="mcpspy"), server(id=1, error={"code": 1, "message": "x"})
    )
    assert session.counts == (2, 0, 0, 0, 0, 1)


def end_of(
    *entries: Entry, code: object = 0, signal: object = None, has_started: bool = True
) -> VerdictFacts:
    session = Session().add_all(entries)
    session.end()
    return VerdictFacts(False, has_started, reply_of(session.exchanges), False, code, signal)


HELLO = {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}}
HELLO_ERROR = {"id": 1, "error": {"code": -32602, "message": "no"}}
HELLO_RESULT = {"id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}}}
REFUSAL = (
    Note(0.1, "http", {"http": 1, "stream": "1", "method": "POST", "path": "/mcp", "status": 401}),
    Note(0.1, "http-end", {"http": 1, "stream": "1", "hung_up": None}),
)


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        (end_of(), Verdict.FINE),
        (end_of(client(**HELLO), server(**HELLO_RESULT)), Verdict.FINE),
        (end_of(client(**HELLO), server(**HELLO_RESULT), signal="SIGTERM"), Verdict.FINE),
        (end_of(client(**HELLO), server(**HELLO_RESULT), code=143), Verdict.FINE),
        (end_of(client(**HELLO), server(**HELLO_RESULT), code=1), Verdict.CRASHED),
        (end_of(client(**HELLO), server(**HELLO_RESULT), signal="SIGSEGV"), Verdict.CRASHED),
        (end_of(client(**HELLO), server(**HELLO_RESULT), signal="SIGKILL"), Verdict.CRASHED),
        (end_of(client(**HELLO)), Verdict.NEVER_ANSWERED),
        (end_of(client(**HELLO), signal="SIGKILL"), Verdict.NEVER_ANSWERED),
        (end_of(client(**HELLO), code=1), Verdict.CRASHED),
        (end_of(client(**HELLO), has_started=False, code=127), Verdict.NEVER_STARTED),
        (end_of(client(**HELLO), server(**HELLO_ERROR)), Verdict.REFUSED),
        (
            end_of(
                client(**HELLO),
                server(**HELLO_ERROR),
                client(**(HELLO | {"id": 2})),
                server(**(HELLO_RESULT | {"id": 2})),
            ),
            Verdict.FINE,
        ),
        (end_of(frame("client", HELLO, stream="1", http=1), *REFUSAL), Verdict.REFUSED),
        (end_of(server(id=5, method="ping"), client(id=5, result={})), Verdict.FINE),
    ],
)
def test_the_verdict_of_a_session(end: VerdictFacts, verdict: Verdict) -> None:
    assert end.verdict(SessionCounts(4, 0, 0)) is verdict


@pytest.mark.parametrize(
    ("counts", "verdict", "words"),
    [
        (SessionCounts(4, 0, 0, issues=3), Verdict.FINE, "fine"),
        (SessionCounts(4, 1, 0), Verdict.FAILURES, "1 error"),
        (SessionCounts(4, 2, 0, unanswered=1), Verdict.FAILURES, "2 errors, 1 unanswered"),
        (None, None, "ended"),
    ],
)
def test_a_session_that_worked_has_failures_or_is_fine_by_its_counts(
    counts: SessionCounts | None, verdict: Verdict | None, words: str
) -> None:
    end = end_of(client(**HELLO), server(**HELLO_RESULT))
    assert end.verdict(counts) is verdict
    assert verdict_words(end.verdict(counts), counts) == words


def test_a_session_that_is_live_or_was_cut_says_so() -> None:
    assert VerdictFacts(True, True, Reply.SILENCE).verdict(None) is Verdict.LIVE
    assert VerdictFacts(False, True, Reply.SILENCE, is_cut=True).verdict(None) is Verdict.DIED


@pytest.mark.parametrize(
    ("verdict", "is_http", "words"),
    [
        (Verdict.CRASHED, False, "crashed, exit 1, 2 unanswered"),
        (Verdict.NEVER_ANSWERED, False, "never answered, exit 1"),
        (Verdict.DIED, False, "mcpspy was killed, 2 unanswered"),
        (Verdict.NEVER_STARTED, False, "never started"),
        (Verdict.NEVER_STARTED, True, "server not reached"),
        (Verdict.REFUSED, True, "refused"),
        (Verdict.LIVE, False, "live"),
    ],
)
def test_a_verdict_has_words(verdict: Verdict, is_http: bool, words: str) -> None:
    counts = SessionCounts(4, 1, 0, unanswered=2)
    assert verdict_words(verdict, counts, "exit 1", is_http=is_http) == words
