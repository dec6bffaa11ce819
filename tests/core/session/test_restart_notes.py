"""The words of notes about restarts, and what they mean for the requests of a recording."""

from __future__ import annotations

from mcpspy.core.recording.decode import Frame, Note
from mcpspy.core.session.exchange import State
from mcpspy.core.session.restart_notes import lines, reason, words
from mcpspy.core.session.session import Session

ASKED = b'{"jsonrpc":"2.0","id":0,"method":"roots/list"}'


def test_the_reason_names_files_and_viewers() -> None:
    assert reason({"files": ["a.py"]}) == "a.py changed"
    assert reason({"files": ["a.py", "b.py", "c.py"]}) == "a.py and 2 other files changed"
    assert reason({"files": ["a.py"], "viewer": "tui"}) == "a.py changed; ordered by tui"


def test_each_note_has_words() -> None:
    started = {"did": "started", "viewer": "web", "repeated": ['"listen-1"']}
    assert lines(started) == ["server restarted (ordered by web)", 'sent again: id "listen-1"']
    assert words({"did": "stopping", "files": ["a.py"]}) == "ending the server (a.py changed)"
    listed = {
        "did": "listed",
        "changes": ["gained the tool a"],
        "notified": ["tools"],
        "withheld": ["prompts"],
        "lost": ["logging/setLevel: error -32601"],
    }
    assert words(listed) == (
        "gained the tool a; the client was notified: tools; not notified, as it was not agreed: prompts; "
        "not restored: logging/setLevel: error -32601"
    )
    assert words({"did": "listed", "changes": []}) == "the interface did not change"
    assert words({"did": "listed"}) == "its lists are not compared"
    assert words({"did": "failed", "text": "it ended"}) == "no server: it ended"


def test_a_new_server_uses_the_ids_of_the_old_one_without_an_issue() -> None:
    session = Session()
    for _ in range(2):
        session.add(Frame(1.0, "server", ASKED))
        session.add(Note(2.0, "restart", {"did": "started", "files": ["a.py"]}))
    session.add(Frame(3.0, "server", ASKED))
    session.add(Frame(4.0, "client", b'{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}'))
    session.add(Note(5.0, "restart", {"did": "started", "viewer": "tui"}))
    session.add(Frame(6.0, "server", ASKED))
    session.end()
    states = [exchange.state for exchange in session.exchanges]
    assert states == [State.ABANDONED, State.ABANDONED, State.OK, State.UNANSWERED]
    assert not any(change.flaw for change in session.changes)


def test_other_notes_of_a_restart_abandon_nothing() -> None:
    session = Session()
    session.add(Frame(1.0, "server", ASKED))
    session.add(Note(2.0, "restart", {"did": "listed", "changes": []}))
    assert [exchange.state for exchange in session.exchanges] == [State.PENDING]


def test_refusals_of_an_ending_server_do_not_answer_their_requests() -> None:
    session = Session()
    listen = b'{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{}}'
    closed = b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32000,"message":"Connection closed"}}'
    session.add(Frame(1.0, "client", listen))
    session.add(Frame(1.0, "client", b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}'))
    session.add(Note(2.0, "restart", {"did": "stopping", "viewer": "tui"}))
    session.add(Frame(2.1, "server", closed % 1, to="mcpspy"))
    session.add(Frame(2.1, "server", closed % 2, to="mcpspy"))
    restarted = b'{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"restarted"}}'
    session.add(Frame(2.2, "server", restarted, by="mcpspy"))
    session.add(Note(2.3, "restart", {"did": "started", "repeated": ["1"]}))
    listening, call = session.exchanges
    assert (listening.state, call.state) == (State.PENDING, State.ERROR)
    assert call.answer is not None
    assert call.answer.data == restarted
    session.add(Frame(3.0, "server", closed % 1))
    assert listening.state is State.ERROR
    assert not any(change.flaw for change in session.changes)
