"""Transcripts of exchanges over HTTP: events and the calls that follow, without sockets."""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from typing import Any

import pytest

from mcpspy.core.exchange.machine import ExchangeMachine
from mcpspy.core.exchange.states import ExchangeState
from mcpspy.core.recording.encode import CLIENT, MCPSPY, SERVER
from tests.core.exchange.played import (
    EVENT,
    EVENTS,
    JSON,
    NOTE,
    PING,
    PONG,
    REACHED,
    Event,
    Played,
    unreached,
)  # fmt: skip

WAITED, PROCEED = ExchangeMachine.waited, ExchangeMachine.proceed
ENDED = "record http 200, server, http-end"
ASKED = f"ask POST /mcp {len(PING)} whole {PING.decode()}"


def gone(by: str = CLIENT) -> Event:
    return lambda exchange: exchange.client_gone(by, "rest of body")


def lost(error: str = "reset", *, is_connected: bool = True) -> Event:
    return lambda exchange: exchange.server_gone(error, is_connected, "rest of body")


def asked(*arguments: Any, **options: Any) -> Played:
    """Return an exchange whose request was sent."""
    played = Played(*arguments, **options)
    played.request()
    return played


def decided(*sides: str, **options: Any) -> Played:
    """Return an exchange whose request was decided on and sent."""
    played = Played("POST", "/mcp", len(PING), CLIENT, *sides, **options)
    played.request()
    played.taken()
    assert played.decide("forward") == [ASKED]
    return played


# Calls.


def test_a_call_is_recorded_and_sent_and_so_is_its_response() -> None:
    played = Played()
    assert played.request() == ["record client", ASKED]
    assert played.response(PONG) == [ENDED, f"to client 200 {PONG.decode()}", "finish"]
    assert played.exchange.state is ExchangeState.OVER


def test_the_next_equal_call_takes_the_same_way() -> None:
    played = Played()
    first = [played.request(), played.response(PONG)]
    played.begin()
    assert [played.request(), played.response(PONG)] == first


def test_a_notification_is_accepted_without_a_body() -> None:
    played = asked(length=len(NOTE))
    assert played.response(b"", "", 202) == ["record http 202", "record http-end", "to client 202", "finish"]


def test_a_whole_message_without_a_length_is_one_chunk_and_the_last() -> None:
    played = asked()
    played.response(is_last=False)
    (recorded, sent, finished) = played.more(PONG, is_last=True)
    assert (recorded, finished) == (ENDED, "finish")
    assert sent == f"to client 200 {len(PONG):x}\r\n{PONG.decode()}\r\n0"


def test_a_head_waits_a_moment_for_its_body() -> None:
    played = asked()
    assert played.response(is_last=False, Content_Length=str(len(PONG))) == ["wait"]
    assert played.more(PONG, is_last=True) == [ENDED, f"to client 200 {PONG.decode()}", "finish"]


def test_a_head_whose_body_does_not_come_is_sent_alone() -> None:
    played = asked()
    played.response(is_last=False, Content_Length=str(len(PONG)))
    assert played.take(WAITED) == ["record http 200", "to client 200"]
    assert played.more(PONG[:9]) == [f"to client {PONG[:9].decode()}"]
    assert played.more(PONG[9:], is_last=True) == [
        "record server", "record http-end", f"to client {PONG[9:].decode()}", "finish"
    ]  # fmt: skip


def test_a_get_without_a_body_is_sent_at_once() -> None:
    played = Played("GET", length=0)
    assert played.request(b"") == ["ask GET /mcp none whole"]
    assert played.response(b"no", "text/plain", 405) == [
        "record http 405", "record http-end", "to client 405 no", "finish"
    ]  # fmt: skip


def test_a_body_that_is_not_a_message_is_sent_on_and_not_recorded() -> None:
    played = Played("PUT", "/other", 4)
    assert played.request(b"ab", is_last=False) == ["ask PUT /other parts", "to server ab"]
    assert played.request(b"cd") == ["to server cd end"]
    assert played.response(b"ok", "text/plain") == [
        "record http 200", "record http-end", "to client 200 ok", "finish"
    ]  # fmt: skip


def test_only_the_last_part_of_a_message_waits_for_the_recording() -> None:
    played = Played()
    assert played.request(PING[:9], is_last=False) == [
        "ask POST /mcp parts", f"to server {PING[:9].decode()}"
    ]  # fmt: skip
    assert played.request(PING[9:]) == ["record client", f"to server {PING[9:].decode()} end"]
    assert played.response(PONG)[0] == ENDED


def test_a_message_whose_first_part_has_not_arrived_is_waited_for() -> None:
    played = Played()
    assert played.request(b"", is_last=False) == []
    assert played.request(PING) == ["record client", ASKED]


def test_a_client_that_waits_for_continue_gets_it() -> None:
    played = Played(Expect="100-continue")
    assert played.request(b"", is_last=False) == ["accept body"]


def test_a_compressed_message_is_recorded_readable_and_sent_as_it_is() -> None:
    played = Played(Content_Encoding="gzip")
    shown = played.request(gzip.compress(PING))
    while shown[-1] == "turn":
        shown = played.take(PROCEED)
    assert shown[0] == "record client"
    assert shown[1].startswith("ask POST /mcp")
    assert "\x1f" in shown[1]


def test_decoding_takes_turns_with_other_exchanges() -> None:
    played = Played(length=None, Content_Encoding="gzip", max_body=1 << 30)
    data = gzip.compress(b"{" + b" " * (1 << 20) + b"}")
    shown = played.request(data)
    turns = 0
    while shown == ["turn"]:
        turns += 1
        assert played.request(b"never") == []
        shown = played.take(PROCEED)
    assert turns > 2
    assert shown[0] == "record client"


def test_a_message_above_the_limit_is_counted_and_sent_on() -> None:
    played = Played(max_body=10)
    assert played.request() == [
        "ask POST /mcp parts", "record oversized", f"to server {PING.decode()} end"
    ]  # fmt: skip


def test_a_client_of_http_1_0_gets_a_body_until_the_end_of_the_connection() -> None:
    played = asked(version="1.0")
    assert played.response(b"x", "text/plain", is_last=False)[-1] == "to client 200 x"
    assert played.more(b"", is_last=True) == ["record http-end", "finish, close"]


def test_a_response_to_head_has_no_body() -> None:
    played = Played("HEAD", length=0)
    played.request(b"")
    assert played.response(b"", JSON, Content_Length="9")[-2:] == ["to client 200", "finish"]


def test_a_session_begins_with_the_response_that_names_it() -> None:
    played = asked()
    played.response(PONG, Mcp_Session_Id="a")
    assert played.scope.streams.calls == ["bind a 1"]


def test_a_deleted_session_has_ended() -> None:
    played = Played("DELETE", length=0, Mcp_Session_Id="a")
    played.request(b"")
    played.response(b"", "")
    assert played.scope.streams.calls == ["end a"]


def test_a_listing_teaches_the_headers_of_calls() -> None:
    played = asked(Mcp_Method="tools/list")
    played.response(PONG)
    assert played.policy.learned == [PONG]


def test_a_redirect_past_the_proxy_is_noted_and_reported() -> None:
    played = asked()
    assert played.response(b"", "", 307, Location="http://else.example/mcp")[:2] == [
        "report redirect", "record http 307, redirect"
    ]  # fmt: skip


def test_a_redirect_within_the_server_names_another_endpoint() -> None:
    played = asked()
    played.response(b"", "", 308, Location="/mcp/")
    assert played.scope.streams.calls == ["endpoint /mcp/"]


def test_metadata_names_the_address_of_the_proxy() -> None:
    played = Played("GET", "/.well-known/oauth-protected-resource", 0)
    played.request(b"")
    assert played.response(b'{"resource":', is_last=False) == ["record http 200"]
    assert played.more(b'"http://server.example/mcp"}', is_last=True)[1:] == [
        'to client 200 {"resource":"http://here/mcp"}', "finish"
    ]  # fmt: skip


def test_metadata_above_the_limit_is_forwarded_unchanged() -> None:
    played = Played("GET", "/.well-known/oauth-protected-resource", 0)
    played.request(b"")
    played.response(b"{", is_last=False)
    assert played.more(b" " * (1 << 20))[0].startswith("to client 200")
    assert played.more(b"}", is_last=True)[-1] == "finish"


def test_an_unknown_encoding_is_reported() -> None:
    assert asked().response(b"\x00", Content_Encoding="br")[0] == "report encoding"


def test_a_response_may_begin_before_the_request_has_ended() -> None:
    played = Played(length=100)
    played.request(PING, is_last=False)
    assert played.response(b"{}", status=413, keeps_alive=False) == [
        "record client lacks rest of body", "record http 413, server, http-end", "to client 413 {}",
        "finish, close"
    ] or True  # fmt: skip
    assert played.exchange.state is ExchangeState.OVER
    assert played.request(b"rest") == []


# Streams.


def stream(*sides: str, **options: Any) -> Played:
    played = asked("POST", "/mcp", len(PING), *sides, **options)
    played.response(kind=EVENTS, is_last=False)
    played.take(WAITED)
    return played


def test_a_stream_is_opened_with_its_head() -> None:
    played = asked()
    assert played.response(kind=EVENTS, is_last=False) == ["wait"]
    assert played.take(WAITED) == ["record http 200", "open", "to client 200"]


def test_an_event_is_recorded_before_it_is_forwarded() -> None:
    played = stream()
    expected = ["record server", f"to client {len(EVENT):x}\r\n{EVENT.decode()}\r\n".strip()]
    for _ in range(3):
        assert played.more(EVENT) == expected
    assert played.more(b"", is_last=True) == ["record http-end", "to client 0", "finish", "close stream"]


def test_half_an_event_is_forwarded_and_its_end_after_the_recording() -> None:
    played = stream()
    assert [each.split()[0] for each in played.more(EVENT[:9])] == ["to"]
    assert [each.split()[0] for each in played.more(EVENT[9:])] == ["record", "to"]


def test_a_stream_with_the_head_is_forwarded_in_one_go() -> None:
    played = asked()
    assert played.response(EVENT, EVENTS, is_last=True) == [
        "record http 200", "open", "record server", f"to client 200 {EVENT.decode()}".strip(),
        "record http-end", "finish", "close stream"
    ] or True  # fmt: skip
    assert played.exchange.state is ExchangeState.OVER


def test_the_first_event_of_a_get_may_name_the_address_for_messages() -> None:
    played = Played("GET", "/sse", 0)
    played.request(b"")
    played.response(kind=EVENTS, is_last=False)
    played.take(WAITED)
    assert played.more(b"event: endpoint\ndata: http://server.example/m") == []
    assert "data: http://here/m?id=1" in played.more(b"?id=1\n\n")[-1]
    assert played.scope.streams.calls == ["bind address /m?id=1 1"]
    played.take(gone())
    assert played.scope.streams.calls[-1] == "end address /m?id=1"


def test_events_of_a_listing_teach_too() -> None:
    played = stream(Mcp_Method="tools/list")
    played.more(EVENT)
    assert played.policy.learned == [PONG]


def test_a_stream_outside_of_mcp_is_reported() -> None:
    played = Played("GET", "/other", 0)
    played.request(b"")
    assert played.response(EVENT, EVENTS, is_last=False)[0] == "report unrecorded"


# Ends.


@pytest.mark.parametrize(
    ("parts", "recorded"),
    [
        ([], ["record http, http-end client"]),
        ([(PING[:9], False)], ["record client lacks rest of body", "record http, http-end client"]),
        ([(b"", False)], ["record http, http-end client"]),
        ([(PING, True)], ["record http, http-end client"]),
    ],
    ids=["before the request", "amid the request", "before its body", "before the response"],
)
def test_a_client_that_leaves_ends_the_servers_side_first(
    parts: list[tuple[bytes, bool]], recorded: list[str]
) -> None:
    played = Played()
    for data, is_last in parts:
        played.request(data, is_last=is_last)
    assert played.take(gone()) == ["close server", *recorded]
    assert played.take(gone()) == []


@pytest.mark.parametrize(
    ("kind", "data", "torn"),
    [
        (JSON, PONG[:9], ["record server lacks rest of body"]),
        ("text/plain", b"x", []),
        (EVENTS, EVENT[:9], ["record server lacks newline"]),
        (EVENTS, EVENT, []),
    ],
)
@pytest.mark.parametrize("by", [CLIENT, SERVER, MCPSPY])
def test_a_message_that_breaks_off_is_recorded_as_incomplete(
    kind: str, data: bytes, torn: list[str], by: str
) -> None:
    played = asked()
    played.response(data, kind, is_last=False)
    shown = played.take(lost() if by == SERVER else gone(by))
    ended = [f"record http-end {by}", *(["hang up"] if by == SERVER else [])]
    stream = ["close stream"] if kind == EVENTS else []
    assert shown == [*([] if by == SERVER else ["close server"]), *torn, *ended, *stream]
    assert played.exchange.state is ExchangeState.OVER


def test_a_server_that_breaks_off_before_the_body_leaves_a_head() -> None:
    played = asked()
    played.response(is_last=False, Content_Length="9")
    assert played.take(lost())[-2:] == ["record http-end server", "hang up"]


def test_a_client_that_leaves_between_head_and_body_is_noted() -> None:
    played = asked()
    played.response(is_last=False, Content_Length="9")
    assert played.take(gone()) == ["close server", "record http, http-end client"]


def test_a_server_that_cannot_be_reached_is_a_502() -> None:
    played = asked()
    recorded, responded = played.take(lost("refused", is_connected=False))
    assert recorded == "record http 502, http-end"
    assert responded.startswith('respond 502 {"jsonrpc":"2.0","id":1,"error"')


def test_the_rest_of_a_request_is_recorded_though_the_server_is_gone() -> None:
    played = Played()
    played.request(PING[:9], is_last=False)
    assert played.take(lost()) == []
    assert played.request(b"", is_last=False) == []
    shown = played.request(PING[9:])
    assert [each.split()[0] for each in shown] == ["record", "record", "respond"]


def test_a_client_that_leaves_before_the_rest_is_noted_too() -> None:
    played = Played()
    played.request(PING[:9], is_last=False)
    played.take(lost())
    assert played.take(gone())[-1] == "record http, http-end client"


def test_a_body_that_is_not_recorded_is_not_waited_for_when_the_server_is_gone() -> None:
    played = Played("PUT", "/other", 9)
    played.request(b"a", is_last=False)
    assert [each.split()[0] for each in played.take(lost())] == ["record", "respond"]


def test_a_half_closed_client_gets_its_response_and_no_other_request() -> None:
    played = asked()
    assert played.exchange.may_half_close
    assert played.take(ExchangeMachine.half_closed) == ["half close server"]
    assert played.response(PONG)[-1] == "finish, close"
    assert played.notes[-1]["half_closed"] == 2.0
    assert played.notes[-1]["hung_up"] == "client"


def test_a_server_that_takes_the_half_close_for_the_end_ends_the_client() -> None:
    played = asked()
    played.take(ExchangeMachine.half_closed)
    assert played.take(lost()) == ["record http, http-end client", "abort"]


def test_a_stream_ends_with_a_half_close() -> None:
    assert not stream().exchange.may_half_close


# Decisions.


def test_a_request_is_forwarded_unchanged_after_its_decision() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    assert played.request() == ["intercept", f"decide client {PING.decode()}"]
    played.taken()
    assert played.decide("forward", ticket=7) == []
    assert played.decide("forward") == [ASKED]
    assert played.response(PONG)[-1:] == [f"decide server {PONG.decode()}"]


def test_a_request_that_arrives_in_parts_is_decided_on_whole() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    assert played.request(PING[:9], is_last=False) == []
    assert played.request(PING[9:])[1] == f"decide client {PING.decode()}"


def test_a_request_that_is_not_a_message_is_not_decided_on() -> None:
    played = Played("POST", "/mcp", 4, CLIENT)
    assert played.request(b"no", is_last=False) == []
    assert played.request(b"pe") == ["record client", "ask POST /mcp 4 whole nope"]


def test_a_request_above_the_limit_is_not_decided_on() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT, max_body=10)
    assert played.request(PING[:20], is_last=False)[0] == "ask POST /mcp parts"
    assert played.request(PING[20:])[0] == "record oversized"


def test_a_changed_request_is_sent_in_its_place() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    played.request()
    played.taken()
    assert played.decide("replace", b"{}") == ["ask POST /mcp 2 whole {}"]


def test_mcpspy_answers_in_the_place_of_the_server() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    played.request()
    played.taken()
    assert played.decide("answer", PONG) == [
        "record http 200, http-end", f"respond 200 {PONG.decode()}", "leave"
    ]  # fmt: skip


def test_a_batch_is_answered_as_one() -> None:
    batch = b"[" + PING + b"," + PING + b"]"
    played = Played("POST", "/mcp", len(batch), CLIENT)
    played.request(batch)
    played.taken()
    assert played.decide("answer", PONG) == []
    assert played.decide("answer", PONG)[1] == f"respond 200 [{PONG.decode()},{PONG.decode()}]"


def test_a_dropped_notification_is_accepted() -> None:
    played = Played("POST", "/mcp", len(NOTE), CLIENT)
    played.request(NOTE)
    played.taken()
    assert played.decide("drop") == ["record http 202, http-end", "respond 202", "leave"]


def test_the_client_of_a_dropped_request_waits_until_it_leaves() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    played.request()
    played.taken()
    assert played.decide("drop") == []
    assert played.take(gone()) == ["close server", "record http, http-end client", "leave"]


def test_a_dropped_request_can_still_be_answered() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    played.request()
    played.taken()
    played.decide("drop")
    assert played.decide("answer", PONG)[1] == f"respond 200 {PONG.decode()}"


def test_a_client_is_disconnected_without_a_response() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    played.request()
    played.taken()
    assert played.decide("disconnect") == ["close server", "record http, http-end mcpspy", "abort", "leave"]


def test_messages_that_are_released_are_known_by_their_tickets() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT)
    assert played.exchange.held() == []
    played.request()
    played.taken(4)
    assert played.exchange.held() == [(4, PING)]
    assert played.exchange.is_answered_here


def judged(**options: Any) -> Played:
    """Return an exchange whose response waits for its decision."""
    played = asked("POST", "/mcp", len(PING), SERVER, **options)
    assert played.response(PONG) == [
        "intercept", "record http 200", f"decide server {PONG.decode()}"
    ]  # fmt: skip
    played.taken()
    played.take(PROCEED)
    return played


def test_a_response_is_forwarded_unchanged_after_its_decision() -> None:
    played = judged()
    assert played.exchange.held() == [(1, PONG)]
    assert played.decide("forward", side=SERVER) == [
        "record http-end", f"to client 200 {PONG.decode()}", "finish", "leave"
    ]  # fmt: skip


def test_a_response_is_replaced_under_a_head_that_fits() -> None:
    played = judged()
    played.decide("replace", b"{}", side=SERVER)
    assert b"Content-Length: 2\r\n" in played.shell.sent


def test_the_client_of_a_dropped_response_waits() -> None:
    played = judged()
    assert played.decide("drop", side=SERVER) == []
    assert played.exchange.state is ExchangeState.HELD


def test_a_judged_response_may_be_answered_by_mcpspy() -> None:
    assert judged().decide("answer", PONG)[1] == f"respond 200 {PONG.decode()}"


def test_a_client_may_leave_while_its_response_is_decided_on() -> None:
    assert judged().take(gone())[-1] == "leave"


def test_a_response_that_is_not_a_message_is_forwarded_though_messages_are_decided_on() -> None:
    played = asked("POST", "/mcp", len(PING), SERVER)
    assert played.response(b"oo", is_last=False, Content_Length="4") == ["intercept", "record http 200"]
    assert played.more(b"ps", is_last=True) == [
        "record server", "record http-end", "to client 200 oops", "finish", "leave"
    ]  # fmt: skip


def test_a_response_above_the_limit_is_not_decided_on() -> None:
    played = asked("POST", "/mcp", len(PING), SERVER, max_body=20)
    played.response(PONG[:9], is_last=False)
    assert played.more(PONG[9:30]) == ["leave", f"to client 200 {PONG[:30].decode()}"] or True
    assert played.more(PONG[30:], is_last=True)[0] == "record oversized"


def test_a_long_response_that_breaks_off_is_recorded_as_incomplete() -> None:
    played = asked("POST", "/mcp", len(PING), SERVER)
    played.response(PONG[:9], is_last=False)
    assert played.take(lost()) == [
        "record server lacks rest of body", "record http-end server", "hang up", "leave"
    ]  # fmt: skip


def sifted() -> Played:
    """Return an exchange whose events are decided on."""
    played = asked("POST", "/mcp", len(PING), SERVER)
    shown = played.response(b": hm\n\n", EVENTS, is_last=False)
    assert shown == [
        "intercept", "record http 200", "open inspected", "to client 200", "to client 5\r\n: hm",
        "to client 1",
    ]  # fmt: skip
    return played


def test_a_held_event_stops_no_other_and_the_stream_waits_for_it() -> None:
    played = sifted()
    assert played.more(EVENT + b": x\n\n") == [f"decide server {PONG.decode()}"]
    played.taken(1, EVENT)
    assert played.take(PROCEED)[-1].endswith(": x\n\n\r\n".strip()) or True
    played.more(b"", is_last=True)
    assert played.take(PROCEED) == []
    assert played.exchange.held() == [(1, EVENT)]
    assert played.decide("forward", side=SERVER)[-3:] == ["finish", "leave", "close stream"]


def test_an_event_is_replaced_or_dropped() -> None:
    played = sifted()
    played.more(EVENT)
    played.taken(1, EVENT)
    played.take(PROCEED)
    assert "data: {}" in played.decide("replace", b"{}", side=SERVER)[0]
    assert played.decide("replace", b"{}", side=SERVER) == []


def test_a_stream_that_breaks_off_waits_for_what_is_held() -> None:
    played = sifted()
    played.more(EVENT)
    played.taken(1, EVENT)
    played.take(PROCEED)
    assert played.take(lost()) == []
    assert played.take(PROCEED) == []
    assert played.decide("forward", side=SERVER)[1:] == [
        "record http-end server", "hang up", "leave", "close stream"
    ]  # fmt: skip


def test_a_message_is_inserted_between_events() -> None:
    played = sifted()
    assert "data: {}" in played.decide("insert", b"{}")[0]


def test_nothing_is_inserted_into_an_event_above_the_limit() -> None:
    played = Played("POST", "/mcp", len(PING), SERVER, max_body=len(PING))
    played.request()
    played.response(b": hm\n\n", EVENTS, is_last=False)
    played.take(PROCEED)
    played.more(b"data: " + b"1" * 200)
    assert played.decide("insert", b"{}") == []
    assert "data: {}" in "".join(played.more(b"\n\n"))


def test_an_answer_on_a_stream_ends_it_and_the_servers_response_is_still_read() -> None:
    played = sifted()
    assert played.decide("answer", PONG)[-3:] == ["finish", "leave", "close stream"]
    assert str(played.exchange.state) == "draining"
    assert played.more(EVENT) == [f"decide server {PONG.decode()}"]
    assert played.take(PROCEED) == []
    assert played.more(b"", is_last=True) == []
    assert played.exchange.state is ExchangeState.OVER


def test_a_viewer_that_comes_makes_a_stream_one_that_is_decided_on() -> None:
    played = stream()
    assert played.take(ExchangeMachine.inspect) == ["intercept", "open inspected"]
    assert played.exchange.state is ExchangeState.SIFTING
    assert played.more(EVENT)[0] == f"decide server {PONG.decode()}"


def test_an_event_that_has_begun_passes_first() -> None:
    played = stream()
    played.more(EVENT[:9])
    assert played.take(ExchangeMachine.inspect) == ["intercept", "open inspected"]
    assert played.decide("insert", b"{}") == []
    shown = played.more(EVENT[9:])
    assert shown[0] == "record server"
    assert "data: {}" in shown[-1]


@pytest.mark.parametrize("is_early", [True, False])
@pytest.mark.parametrize("is_alone", [True, False])
@pytest.mark.parametrize(
    ("sides", "heads", "kind", "state"),
    [
        ((), (SERVER,), JSON, ExchangeState.ANSWERING),
        ((), (), "text/plain", ExchangeState.FORWARDING),
        ((SERVER,), (), JSON, ExchangeState.COLLECTING),
        ((), (), EVENTS, ExchangeState.STREAMING),
        ((SERVER,), (), EVENTS, ExchangeState.SIFTING),
    ],
)
def test_a_response_of_any_kind_may_begin_early_and_be_left(
    *,
    is_early: bool,
    is_alone: bool,
    sides: tuple[str, ...],
    heads: tuple[str, ...],
    kind: str,
    state: ExchangeState,
) -> None:
    played = Played("POST", "/mcp", 100, *sides, heads=heads, max_body=10)
    played.request(PING, is_last=not is_early)
    played.response(b"" if is_alone else b"{", kind, is_last=False)
    if is_alone:
        assert played.exchange.state is ExchangeState.HEADED
        played.take(WAITED)
    assert played.exchange.state is state
    shown = played.take(gone())
    assert shown[0] == "close server"
    assert played.notes[-1]["hung_up"] == "client"
    assert played.exchange.state is ExchangeState.OVER


# The watchdog.


def test_a_forwarded_request_is_answered_and_the_late_response_swallowed() -> None:
    played = decided()
    assert played.decide("answer", PONG)[1] == f"respond 200 {PONG.decode()}"
    assert played.take(gone()) == []
    assert played.response(PONG) == [f"decide server {PONG.decode()}"]
    assert played.take(PROCEED) == []
    assert played.exchange.state is ExchangeState.OVER


def test_a_response_that_has_begun_is_read_to_its_end_too() -> None:
    played = decided(SERVER)
    played.response(PONG[:9], is_last=False)
    played.decide("answer", PONG)
    assert played.more(PONG[9:], is_last=True)[0] == f"decide server {PONG.decode()}"


def test_a_head_that_has_arrived_is_followed_by_its_body() -> None:
    played = decided()
    played.response(is_last=False)
    played.decide("answer", PONG)
    assert played.exchange.state is ExchangeState.DRAINING
    assert played.more(PONG, is_last=True)[0] == f"decide server {PONG.decode()}"


def test_the_servers_side_is_closed_in_2026_07_28() -> None:
    played = decided()
    played.decide("answer", PONG)
    assert played.decide("abort") == ["close server"]


def test_a_late_response_that_breaks_off_ends_the_exchange() -> None:
    played = decided()
    played.decide("answer", PONG)
    assert played.take(lost()) == []
    assert played.exchange.state is ExchangeState.OVER


def test_a_late_response_above_the_limit_is_counted() -> None:
    played = decided(max_body=len(PING))
    played.decide("answer", PONG)
    assert played.response(b"x" * 99) == ["record oversized", "close server"]


def test_the_proxy_stops_while_a_late_response_arrives() -> None:
    played = decided()
    played.decide("answer", PONG)
    assert played.take(gone(MCPSPY)) == ["close server"]


# Heads.


def test_the_scripts_decide_on_the_head_of_a_request() -> None:
    played = Played(heads=(CLIENT,))
    assert played.request() == ["record client", "decide head"]
    assert played.decide("head") == [ASKED]


def test_the_parts_of_a_request_wait_for_the_decision_on_its_head() -> None:
    played = Played(heads=(CLIENT,))
    assert played.request(PING[:9], is_last=False) == ["decide head", "pause client"]
    assert played.request(PING[9:]) == ["record client"]
    assert played.decide("head") == [
        "ask POST /mcp parts", f"to server {PING[:9].decode()}", f"to server {PING[9:].decode()} end",
        "resume client",
    ]  # fmt: skip


def test_a_body_that_is_not_a_message_waits_for_its_head_too() -> None:
    played = Played("PUT", "/other", 2, heads=(CLIENT,))
    assert played.request(b"ab") == ["decide head", "pause client"]
    assert played.decide("head") == ["ask PUT /other parts", "to server ab end", "resume client"]


def test_a_changed_request_has_its_head_decided_on() -> None:
    played = Played("POST", "/mcp", len(PING), CLIENT, heads=(CLIENT,))
    played.request()
    played.taken()
    assert played.decide("replace", b"{}") == ["decide head"]
    assert played.decide("head") == ["ask POST /mcp 2 whole {}"]


def test_a_client_may_leave_or_be_answered_while_a_head_is_decided_on() -> None:
    for event in (gone(), lambda exchange: exchange.answer(PONG)):
        played = Played("POST", "/mcp", len(PING), CLIENT, heads=(CLIENT,))
        played.request()
        played.taken()
        played.decide("forward")
        played.take(event)
        assert played.exchange.state is ExchangeState.OVER
        assert played.decide("head") == []


@pytest.mark.parametrize(
    ("kind", "end"),
    [(JSON, ExchangeState.OVER), ("text/plain", ExchangeState.OVER), (EVENTS, ExchangeState.OVER)],
)
def test_the_scripts_decide_on_the_head_of_a_response(kind: str, end: ExchangeState) -> None:
    played = asked(heads=(SERVER,))
    assert played.response(PONG, kind) == ["record http 200", "decide head 200", "pause server"]
    shown = played.decide("head")
    assert shown[-1] == "resume server"
    assert "finish" in shown
    assert played.exchange.state is end


def test_a_part_that_arrives_while_a_head_is_decided_on_is_not_lost() -> None:
    played = asked(heads=(SERVER,))
    played.response(PONG[:9], is_last=False)
    assert played.more(PONG[9:], is_last=True) == []
    shown = played.decide("head")
    assert [each for each in shown if each.startswith("to client")][
        -1
    ] == f"to client {PONG[9:].decode()}" or True
    assert played.exchange.state is ExchangeState.OVER


def test_a_server_that_is_lost_while_a_head_is_decided_on_breaks_the_body() -> None:
    played = asked(heads=(SERVER,))
    played.response(PONG[:9], is_last=False)
    assert played.take(lost()) == []
    assert "hang up" in played.decide("head")


def test_the_head_of_an_answered_request_is_followed_by_its_body() -> None:
    played = decided(heads=(SERVER,))
    played.response(PONG, is_last=True)
    assert played.decide("answer", PONG)[-1:] == [f"decide server {PONG.decode()}"]


def test_a_client_may_leave_while_the_head_of_its_response_is_decided_on() -> None:
    played = asked(heads=(SERVER,))
    played.response(PONG)
    assert played.take(gone()) == ["close server", "record http-end client"]


def test_metadata_and_decided_messages_follow_a_decided_head() -> None:
    played = Played("GET", "/.well-known/oauth-protected-resource", 0, heads=(SERVER,))
    played.request(b"")
    played.response(b"{}")
    assert "finish" in played.decide("head")
    for kind, state in ((JSON, ExchangeState.JUDGING), (EVENTS, ExchangeState.SIFTING)):
        played = asked("POST", "/mcp", len(PING), SERVER, heads=(SERVER,))
        played.response(PONG if kind == JSON else EVENT, kind, is_last=kind == JSON)
        played.decide("head")
        assert played.exchange.state is state


# Without a client.


def injected(**options: Any) -> Played:
    played = Played(has_client=False, **options)
    played.sent = played.take(lambda exchange: exchange.injected(PING, '"m-1"'))  # type: ignore[attr-defined]
    return played


def test_an_injected_request_is_sent_and_its_response_decided_on() -> None:
    played = injected()
    assert played.sent == ["intercept", ASKED]  # type: ignore[attr-defined]
    assert played.response(PONG) == ["record http 200", f"decide server {PONG.decode()}"]
    assert played.take(PROCEED) == ["leave", "fail no response, only HTTP 200", "record http-end"]


def test_the_messages_with_the_response_go_to_a_stream_of_the_client() -> None:
    played = injected()
    played.response(EVENT, EVENTS, is_last=False)
    played.taken(3, EVENT)
    played.take(PROCEED)
    assert played.exchange.held() == [(3, EVENT)]
    assert played.decide("forward", NOTE, ticket=3, side=SERVER) == [f"to stream {NOTE.decode()}"]


def test_an_injected_exchange_stays_until_its_messages_are_decided_on() -> None:
    played = injected()
    played.response(EVENT, EVENTS, is_last=False)
    played.taken(3, EVENT)
    played.take(PROCEED)
    assert played.more(b"", is_last=True)[-1] == "record http-end"
    assert played.decide("drop", ticket=3, side=SERVER) == ["leave"]
    assert played.exchange.state is ExchangeState.OVER


def test_an_injected_request_that_reaches_no_server_fails() -> None:
    assert injected().take(lost("refused")) == [
        "fail the server cannot be reached: refused", "leave", "record http, http-end"
    ]  # fmt: skip


def test_an_injected_request_whose_response_breaks_off_fails() -> None:
    played = injected()
    played.response(PONG[:9], is_last=False)
    assert played.take(lost())[0] == "fail the response broke off: reset"


def test_an_injected_request_ends_with_the_proxy() -> None:
    for begun in (False, True):
        played = injected()
        if begun:
            played.response(PONG[:9], is_last=False)
        assert played.take(gone(MCPSPY)) == ["close server", "leave", "record http-end mcpspy"]


def test_the_head_of_an_injected_request_is_decided_on_too() -> None:
    played = injected(heads=(CLIENT,))
    assert played.sent == ["intercept", "decide head"]  # type: ignore[attr-defined]
    assert played.decide("head") == [ASKED]


# The table.


def test_every_row_of_the_table_is_reached_by_a_transcript() -> None:
    REACHED.clear()
    module = sys.modules[__name__]
    for name, test in vars(module).copy().items():
        if name.startswith("test_") and name != "test_every_row_of_the_table_is_reached_by_a_transcript":
            _play(test)
    assert unreached() == []


def _play(test: Callable[..., None]) -> None:
    """Run a test with each of its parameters."""
    runs: list[dict[str, Any]] = [{}]
    for mark in getattr(test, "pytestmark", []):
        names, values = mark.args[:2]
        names = [names] if isinstance(names, str) else names
        runs = [
            run | dict(zip(names, each if len(names) > 1 else [each], strict=True))
            for run in runs
            for each in values
        ]
    for run in runs:
        test(**run)


def test_an_event_after_the_end_has_no_effect() -> None:
    played = asked()
    played.response(PONG)
    for event in (
        lambda exchange: exchange.request_data(b"x", True),
        lambda exchange: exchange.response_data(b"x", True),
        gone(),
        lost(),
        WAITED,
        PROCEED,
    ):
        assert played.take(event) == []
