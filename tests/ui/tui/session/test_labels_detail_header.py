"""The header lines of a message, and the text that is copied."""

from __future__ import annotations

from mcpspy.core.recording.decode import Damaged, Entry, Frame, Note, read_entry
from mcpspy.core.session.session import Change, Session
from mcpspy.ui.tui.session.labels import content, copy_text, message_header, refusal, replacement
from tests.core.session.test_http_exchanges import end, head


def last(*entries: Entry) -> Change:
    return Session().add_all(entries).changes[-1]


def said(change: Change) -> list[str]:
    return [text for text, _ in message_header(change) if text]


CALL = Frame(0.25, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"[b]x"}}')
ANSWER = Frame(0.5, "server", b'{"jsonrpc":"2.0","id":1,"result":{}}')


def test_a_request_shows_its_direction_and_outcome() -> None:
    assert said(last(CALL)) == [
        "request tools/call · [b]x",
        "client → server · at 0.250 s · id 1 · 71 bytes",
        "response: pending",
    ]
    session = Session().add_all([CALL, ANSWER])
    assert said(session.changes[0])[2] == "response: ok in 250.0 ms"


def test_a_response_shows_its_outcome_and_latency() -> None:
    assert said(last(CALL, ANSWER))[2] == "ok in 250.0 ms"


def test_a_protocol_issue_is_shown() -> None:
    assert said(last(ANSWER))[-1] == "protocol issue: unsolicited response"


def test_text_of_a_peer_is_sanitized_in_the_header() -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\\u001b]0;x\\u0007\\u202e"}}'

    assert "\\x1b]0;x\\x07\\u202e" in said(last(CALL, Frame(0.5, "server", error)))[2]


def test_a_note_shows_its_text_or_fields() -> None:
    assert content(last(Note(0.1, "stderr", {"text": "a\tword"}))) == b"a\tword"
    assert content(last(Note(0.1, "exit", {"code": 3}))) == b'{"code":3}'
    assert said(last(Note(0.1, "exit", {"code": 3}))) == ["event: exit", "at 0.100 s"]


def test_a_damaged_line_shows_the_reason() -> None:
    change = last(Damaged(b"{oops", "not JSON"))

    assert said(change) == ["damaged line in the recording", "not JSON"]
    assert content(change) == b"{oops"


def test_json_is_copied_unchanged_and_other_text_sanitized() -> None:
    assert copy_text(last(CALL)) == CALL.data.decode()
    assert copy_text(last(Frame(0.1, "server", b"DEBUG \x1b[201~rm\r"))) == "DEBUG \\x1b[201~rm\\r"


def test_a_replacement_has_its_exact_bytes() -> None:
    head, data = replacement(Note(1.0, "rule", {"action": "release", "sent": '{"a": 1}'}))
    assert ([text for text, _ in head[:2]], data) == (["forwarded instead", "8 bytes"], b'{"a": 1}')
    assert replacement(Note(1.0, "rule", {"sent_b64": "/3t9"}))[1] == b"\xff{}"
    assert replacement(Note(1.0, "rule", {"sent_b64": "x"}))[1] == b"", "cut, or not written by mcpspy"


def test_the_text_of_a_refusal_is_below_the_headers_with_its_size() -> None:
    note = Note(1.0, "http-end", {"http": 3, "body": '{"error":\n"\x1b[2J"}', "size": 9000, "cut": True})
    lines = [text for text, _ in refusal(note)]
    assert lines == ["", "body, the beginning of 9,000 bytes", '{"error":', '"\\x1b[2J"}']
    assert [text for text, _ in refusal(Note(1.0, "http-end", {"body": "No", "size": 2}))] == [
        "",
        "body",
        "No",
    ]


def test_the_head_of_an_exchange_has_its_outcome() -> None:
    session = Session()
    session.add_all(map(read_entry, [head(3, 1.0), end(3, 3.0)]))
    assert [text for text, _ in message_header(session.changes[0]) if text] == [
        "event: http",
        "at 1.000 s",
        "GET stream: no events in 2.50 s, ended by the server",
    ]
