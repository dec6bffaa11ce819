"""HTTP exchanges of a session: streams opened with GET, refusals, and durations."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from mcpspy.core.recording.decode import Note, read_entry
from mcpspy.core.session.exchange import State
from mcpspy.core.session.http_exchanges import KEPT, KEPT_OPEN, HttpExchanges, RecordedHttpExchange
from mcpspy.core.session.index import Index
from mcpspy.core.session.session import Session
from mcpspy.core.session.streaming import StreamingSession

LOGGED: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}


def head(number: int, at: float, *, method: str = "GET", status: int | None = 200, **fields: Any) -> bytes:
    """Return the line of the head of an exchange in the session 1, which began 0.5 s before."""
    kind = "text/event-stream" if status == 200 else "text/plain"
    note = {
        "t": at,
        "note": "http",
        "http": number,
        "stream": "1",
        "method": method,
        "path": "/mcp",
        "status": status,
        "asked_at": at - 0.5,
        "request": {"accept": "text/event-stream"},
        "response": {"content-type": kind},
    }
    return orjson.dumps(note | fields)


def end(number: int, at: float, hung_up: str | None = None, **fields: Any) -> bytes:
    return orjson.dumps(
        {"t": at, "note": "http-end", "http": number, "stream": "1", "hung_up": hung_up} | fields
    )


def event(number: int, at: float, message: dict[str, Any] = LOGGED, side: str = "server") -> bytes:
    return orjson.dumps({"t": at, "from": side, "stream": "1", "http": number, "msg": message})


STREAMS = [
    head(3, 1.0),
    event(3, 2.0),
    b'{"t":2.5,"note":"sse","http":3,"stream":"1","id":"7","data":""}',
    event(3, 3.0),
    end(3, 720.5),
    *(
        line
        for number in range(4, 11)
        for line in (head(number, 800.0 + number), end(number, 800.2 + number))
    ),
    head(20, 900.0),
    event(20, 901.0),
]
"""A stream that is opened again seven times without an event, and then with one."""


def sessions(*lines: bytes) -> tuple[Session, Index]:
    session, index = Session(), Index()
    session.add_all(map(read_entry, lines))
    index.begin_part()
    index.add_lines(lines, 0)
    return session, index


def described(*lines: bytes) -> list[str]:
    """Return the GETs of a session in words, as a session and an index find them."""
    session, index = sessions(*lines)
    found = [each.describe() for each in session.http_exchanges.gets.values()]
    assert found == [each.describe() for each in index.http_exchanges.gets.values()]
    return found


def test_a_stream_is_described_with_its_events_its_end_and_its_repetitions() -> None:
    assert described(*STREAMS) == [
        "GET stream: 3 events in 12m00s, ended by the server; reopened 7 times, each empty",
        "GET stream: 1 event, open",
    ]


@pytest.mark.parametrize(
    ("hung_up", "words"),
    [
        ("client", "ended by the client"),
        ("server", "broken off by the server"),
        ("mcpspy", "ended by mcpspy"),
        (None, "ended by the server"),
    ],
)
def test_the_side_that_ended_a_stream_is_named(hung_up: str | None, words: str) -> None:
    assert described(head(3, 1.0), end(3, 2.0, hung_up)) == [f"GET stream: no events in 1.50 s, {words}"]


def test_plain_messages_on_a_stream_are_counted_as_others_are() -> None:
    hello = orjson.dumps(
        {"t": 0.0, "from": "client", "stream": "1", "http": 1, "msg": {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}}}
    )  # fmt: skip
    answer = orjson.dumps(
        {"t": 0.1, "from": "server", "stream": "1", "http": 1, "msg": {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}}}
    )  # fmt: skip
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    lines = [
        *(hello, answer, head(3, 1.0), event(3, 2.0), event(3, 2.1, ping)),
        *(
            event(4, 2.2, asked, "client"),
            event(3, 2.3, {"jsonrpc": "2.0", "id": 2, "result": {}}),
            end(3, 3.0),
        ),
    ]
    assert described(*lines) == ["GET stream: 3 events in 2.50 s, ended by the server"]


def test_an_allowed_refusal_of_a_stream_is_not_a_failure() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Method not allowed."}}
    lines = [
        line
        for number in (3, 4, 5)
        for line in (head(number, 1.0, status=405), event(number, 1.0, error), end(number, 1.1))
    ]
    assert described(*lines) == [
        "no GET stream: HTTP 405, the server offers none, which is allowed; asked 2 more times"
    ]
    session, index = sessions(*lines)
    assert session.counts == index.counts
    assert (session.counts.errors, session.counts.issues) == (0, 0)


def test_the_same_refusal_of_a_post_is_an_error() -> None:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Method not allowed."}}
    session, index = sessions(head(3, 1.0, method="POST", status=405), event(3, 1.0, error), end(3, 1.1))
    assert session.counts == index.counts
    assert session.counts.errors == 1


def test_a_refused_stream_is_described_with_the_text_of_the_refusal() -> None:
    lines = [head(3, 1.0, status=400), end(3, 1.1, body='{"error":"bad session"}', size=23)]
    assert described(*lines) == ["no GET stream: HTTP 400, bad session"]


def test_a_get_without_a_stream_is_none() -> None:
    metadata = head(3, 1.0, request={"accept": "*/*"}, response={"content-type": "application/json"})
    assert described(metadata, end(3, 1.1)) == []


def test_streams_of_other_sessions_are_not_repetitions() -> None:
    assert described(head(3, 1.0), end(3, 1.1), head(4, 2.0, stream="2"), end(4, 2.1, stream="2")) == [
        "GET stream: no events in 600.0 ms, ended by the server",
        "GET stream: no events in 600.0 ms, ended by the server",
    ]


def test_the_totals_are_those_of_all_streams() -> None:
    session, _ = sessions(*STREAMS, head(30, 950.0, status=405), end(30, 950.1))
    totals = session.http_exchanges.totals
    assert (totals.streams, totals.events, totals.empty, totals.refused) == (9, 4, 7, 1)
    assert totals.longest == pytest.approx(720.0)


def test_a_session_that_forgets_keeps_a_bounded_number_of_streams() -> None:
    session = StreamingSession()
    for number in range(KEPT + 100):
        for line in (head(number, 1.0, stream=f"s{number}"), end(number, 1.1)):
            session.add(read_entry(line))
    exchanges = session.http_exchanges
    assert (len(exchanges.gets), len(exchanges.latest), exchanges.totals.streams) == (KEPT, KEPT, KEPT + 100)
    for number in range(KEPT_OPEN + 10):
        exchanges.begin(Note(1.0, "http", {"http": number, "method": "GET", "status": 200}))
    assert len(exchanges.open) == KEPT_OPEN


ASKED = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([head(3, 1.0, method="POST", status=401), end(3, 1.1, body="no token", size=8)], "HTTP 401: no token"),
        ([head(3, 1.0, method="POST", status=401), end(3, 1.1)], "HTTP 401"),
        (
            [
                head(3, 1.0, method="POST", status=401, response={"www-authenticate": 'Bearer error="invalid_token", error_description="expired"'}),
                end(3, 1.1),
            ],
            "HTTP 401: invalid_token: expired",
        ),
        ([head(3, 1.0, method="POST", status=502, error="mcpspy: cannot reach it"), end(3, 1.1)], "HTTP 502: mcpspy: cannot reach it"),
        ([head(3, 1.0, method="POST", status=429), event(3, 1.0, {"detail": "slow down"}), end(3, 1.1)], "HTTP 429: slow down"),
    ],
)  # fmt: skip
def test_a_refused_request_has_the_text_of_the_refusal(lines: list[bytes], why: str) -> None:
    session, index = sessions(event(3, 0.5, ASKED, "client"), *lines)
    (exchange,) = session.exchanges
    assert (exchange.state, exchange.why) == (State.REFUSED, why)
    assert index.why == {0: why}


def test_a_request_that_a_page_answers_has_its_title() -> None:
    page = head(3, 1.0, method="POST", response={"content-type": "text/html"})
    session, _ = sessions(
        event(3, 0.5, ASKED, "client"), page, end(3, 1.1, body="<title>Sign in</title>", size=22)
    )
    session.end()
    (exchange,) = session.exchanges
    assert (exchange.state, exchange.why) == (State.UNANSWERED, "HTTP 200 without a message: Sign in")


def test_the_text_of_a_refused_notification_is_that_of_the_row_of_its_exchange() -> None:
    lines = [
        event(3, 0.5, LOGGED, "client"),
        head(3, 1.0, method="POST", status=404),
        end(3, 1.1, body="gone", size=4),
    ]
    session, index = sessions(*lines)
    http = session.changes[1].http
    assert http is not None
    assert (http.words, http.is_told) == ("gone", False)
    assert http.took == pytest.approx(0.6)
    assert index.why == {1: "gone"}


def test_an_exchange_without_a_head_or_an_end_is_none() -> None:
    exchanges = HttpExchanges()
    assert exchanges.end(Note(1.0, "http-end", {"http": 7})) is None
    assert exchanges.begin(Note(1.0, "http", {"http": "x"})) is None
    found = exchanges.begin(Note(1.0, "http", {"http": 7, "method": "POST", "status": None}))
    assert isinstance(found, RecordedHttpExchange)
    assert (found.took, found.is_refused) == (None, True)


def test_a_redirected_get_is_not_a_refused_stream() -> None:
    lines = [
        head(3, 1.0, status=307),
        end(3, 1.1),
        head(4, 1.2),
        end(4, 2.2),
    ]
    assert described(*lines) == ["GET stream: no events in 1.50 s, ended by the server"]
