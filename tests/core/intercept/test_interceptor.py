"""Interception engine."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mcpspy.core.intercept import held as held_module
from mcpspy.core.intercept.actions import (
    AddNote,
    CommandError,
    Disconnect,
    Dropped,
    Forward,
    Inject,
    Notify,
    Step,
    Substitute,
)
from mcpspy.core.protocol.message import loads
from tests.core.intercept.interceptors import (
    PREFIX,
    actions,
    call,
    events,
    exchange_named,
    interceptor,
    notes,
    progress,
    result,
)

LANE = exchange_named("lane")
BATCH = b"[" + call(1, "a") + b"," + call(2, "b") + b"]"


@given(st.lists(st.tuples(st.sampled_from(["client", "server"]), st.binary(max_size=40)), max_size=8))
def test_without_rules_every_message_is_forwarded_unchanged(said: list[tuple[str, bytes]]) -> None:
    idle = interceptor()
    for side, data in said:
        decision = idle.process(0.0, side, data, exchange=LANE)

        assert decision.is_untouched
        assert decision.steps[0] == Forward(side, data, LANE, decision.ticket)
    assert idle.is_idle
    assert idle.next_at is None


@pytest.mark.parametrize(
    ("flag", "goes"),
    [
        ("tool:echo => drop", Dropped),
        ("tool:echo => error no", Inject),
        ("tool:echo => respond {}", Inject),
        ("tool:echo => replace /params = 1", Substitute),
        ("tool:echo => corrupt bad-json", Substitute),
        ("tool:echo => disconnect", Disconnect),
    ],
)
def test_the_decision_of_a_rule_is_noted_before_it_is_carried_out(flag: str, goes: type) -> None:
    decision = interceptor(flag).process(1.0, "client", call(1), stream="2", exchange=LANE)
    (note,) = notes(decision.steps)
    deed, *gone = actions(decision.steps)

    assert decision.steps[1] is deed
    assert [type(step) for step in gone] == ([Dropped] if goes is Inject else [])
    assert (note["rule"], note["from"], note["id"], note["stream"]) == ("1", "client", "1", "2")
    assert isinstance(deed, goes)
    assert getattr(deed, "exchange", None) is LANE
    assert decision.to_mcpspy == (goes is not Substitute)
    assert not decision.is_held


def test_a_response_of_a_rule_is_sent_to_the_requester() -> None:
    for side, other in (("client", "server"), ("server", "client")):
        answer, _ = actions(interceptor(" => error no").process(0.0, side, call(1)).steps)

        assert isinstance(answer, Inject)
        assert answer.side == other


def test_half_a_line_is_forwarded_without_its_end() -> None:
    (half,) = actions(interceptor("tool:echo => corrupt half-line").process(0.0, "client", call(1)).steps)

    assert isinstance(half, Substitute)
    assert half.raw


def test_delayed_messages_are_forwarded_in_the_order_of_their_times() -> None:
    delayed = interceptor("tool:slow => delay 3s", "tool:echo => delay 1s")
    first = delayed.process(0.0, "client", call(1, tool="slow"), exchange=exchange_named("a"))
    second = delayed.process(0.5, "client", call(2), exchange=exchange_named("b"))
    delayed.process(0.5, "client", call(3), exchange=exchange_named("c"))

    assert first.is_held
    assert not first.to_mcpspy
    assert actions(first.steps) == []
    assert delayed.next_at == 1.5
    assert delayed.run_due(1.4) == []
    assert [step.exchange for step in delayed.run_due(1.5) if isinstance(step, Forward)] == [
        exchange_named("b"),
        exchange_named("c"),
    ]
    assert delayed.run_due(5) == [Forward("client", call(1, tool="slow"), exchange_named("a"), first.ticket)]
    assert second.ticket == first.ticket + 1
    assert delayed.describe(0.0)["bytes"] == 0


def test_a_delayed_message_may_be_held_afterwards() -> None:
    both = interceptor("echo => delay 1s", "echo => hold")
    decision = both.process(0.0, "client", call(1))
    assert [note["action"] for note in notes(decision.steps)] == ["delay"]
    steps = both.run_due(1.0)

    assert [note["action"] for note in notes(steps)] == ["hold"]
    assert events(steps)[0]["deadline"] == 301.0
    assert both.describe(3.0)["held"][0]["age"] == 2.0


def test_only_messages_that_match_a_viewers_query_are_held_responses_too() -> None:
    open_interceptor = interceptor()
    open_interceptor.execute(0.0, "tui", {"order": "hold", "query": "tool:echo"})
    assert open_interceptor.process(1.0, "client", call(1, tool="other")).is_untouched
    held = open_interceptor.process(2.0, "client", call(2), stream="s")

    assert held.is_held
    assert not held.to_mcpspy
    assert notes(held.steps) == [
        {
            "action": "hold",
            "viewer": "tui",
            "stream": "s",
            "from": "client",
            "id": "2",
            "method": "tools/call",
            "subject": "echo",
            "ticket": held.ticket,
        }
    ]
    (event,) = events(held.steps)
    assert (event["event"], event["text"], event["deadline"]) == ("held", call(2).decode(), 302.0)
    assert isinstance(held.steps[1], Notify)
    assert held.steps[1].viewer is None
    assert open_interceptor.process(3.0, "server", result(2), stream="s").is_held


def test_a_message_that_is_not_utf8_is_shown_in_base64() -> None:
    (event,) = events(interceptor(" => hold").process(0.0, "server", b'{"\xff":1}').steps)

    assert "text" not in event
    assert event["b64"] == "eyL/IjoxfQ=="


def test_releasing_all_keeps_the_order() -> None:
    held = interceptor()
    held.execute(0.0, "tui", {"order": "hold", "query": ""})
    for number in range(1000):
        held.process(float(number), "client", call(number))
    reply = held.execute(1000.0, "send", {"order": "release", "tickets": "all"})

    assert reply.answer == {"released": 1000}
    assert [step.data for step in reply.steps if isinstance(step, Forward)] == [call(n) for n in range(1000)]
    assert notes(reply.steps)[0] == {
        "action": "release",
        "from": "client",
        "id": "0",
        "method": "tools/call",
        "subject": "echo",
        "ticket": 1,
        "why": "accepted",
        "viewer": "send",
        "seconds": 1000.0,
    }
    assert held.describe(0.0)["bytes"] == 0


def test_a_held_message_is_edited_dropped_or_answered() -> None:
    held = interceptor(" => hold")
    tickets = [held.process(0.0, "client", call(number)).ticket for number in range(4)]
    edited = held.execute(1.0, "tui", {"order": "release", "ticket": tickets[0], "message": {"x": 1}})
    assert actions(edited.steps) == [Substitute("client", b'{"x":1}', None, tickets[0])]
    assert (notes(edited.steps)[0]["why"], notes(edited.steps)[0]["sent"]) == ("edited", '{"x":1}')
    dropped = held.execute(1.0, "tui", {"order": "drop", "ticket": tickets[1]})
    assert actions(dropped.steps) == [Dropped("client", None, tickets[1])]
    assert events(dropped.steps) == [
        {"event": "released", "ticket": tickets[1], "why": "dropped", "viewer": "tui"}
    ]
    error = {"code": 5, "message": "no"}
    answered = held.execute(1.0, "tui", {"order": "answer", "ticket": tickets[2], "error": error})
    answer, gone = actions(answered.steps)
    assert isinstance(answer, Inject)
    assert gone == Dropped("client", None, tickets[2])
    assert (answer.side, loads(answer.data)) == ("server", {"jsonrpc": "2.0", "id": 2, "error": error})
    assert notes(answered.steps)[0]["sent"].encode() == answer.data

    for ticket in tickets[:3]:
        with pytest.raises(CommandError, match=f"no message is held under ticket {ticket}"):
            held.execute(2.0, "tui", {"order": "drop", "ticket": ticket})
    assert [each["ticket"] for each in held.describe(2.0)["held"]] == tickets[3:]


def test_only_a_request_can_be_answered() -> None:
    held = interceptor(" => hold")
    for data in (result(1), BATCH):
        ticket = held.process(0.0, "server", data).ticket
        with pytest.raises(CommandError, match="is not a request"):
            held.execute(0.0, "tui", {"order": "answer", "ticket": ticket, "result": {}})


def test_a_command_with_a_wrong_ticket_releases_nothing() -> None:
    held = interceptor(" => hold")
    ticket = held.process(0.0, "client", call(1)).ticket
    with pytest.raises(CommandError):
        held.execute(0.0, "tui", {"order": "release", "tickets": [ticket, 99]})

    assert len(held.describe(0.0)["held"]) == 1


def test_messages_held_by_a_viewer_are_released_when_it_disconnects_and_no_others() -> None:
    held = interceptor("tool:ruled => hold")
    held.execute(0.0, "a", {"order": "hold", "query": "tool:a"})
    held.execute(0.0, "b", {"order": "hold", "query": "tool:b"})
    for number, tool in enumerate(("a", "b", "ruled", "a")):
        held.process(0.0, "client", call(number, tool=tool))
    steps = held.viewer_left(1.0, "a")

    assert [step.data for step in steps if isinstance(step, Forward)] == [
        call(0, tool="a"),
        call(3, tool="a"),
    ]
    assert {note["why"] for note in notes(steps)} == {"viewer left"}
    assert held.process(2.0, "client", call(9, tool="a")).is_untouched
    steps = held.execute(3.0, "b", {"order": "hold", "query": None}).steps
    assert [note["why"] for note in notes(steps)] == ["hold off"]
    assert [each["rule"] for each in held.describe(3.0)["held"]] == ["1"]


def test_a_viewer_named_like_a_rule_does_not_release_what_the_rule_holds() -> None:
    held = interceptor("tool:echo => hold")
    held.process(0.0, "client", call(1))

    assert held.viewer_left(1.0, "1") == []
    assert [each["rule"] for each in held.describe(1.0)["held"]] == ["1"]


def test_a_hold_ends_at_its_deadline() -> None:
    held = interceptor("tool:echo => hold", hold_timeout=10)
    held.process(1.0, "client", call(1))
    held.process(2.0, "client", call(2))

    assert held.next_at == 11.0
    steps = held.run_due(11.0)
    assert [step.data for step in steps if isinstance(step, Forward)] == [call(1)]
    assert [(note["why"], note["seconds"]) for note in notes(steps)] == [("timeout", 10.0)]
    assert held.next_at == 12.0


def test_if_the_buffer_is_full_messages_are_forwarded_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_module, "MAX_MESSAGES", 1)
    for flag, action in (("echo => hold", "hold"), ("echo => delay 1s", "delay")):
        full = interceptor(flag)
        full.process(0.0, "client", call(1))
        decision = full.process(0.0, "client", call(2))

        assert [(note["action"], note.get("why")) for note in notes(decision.steps)][-1] == (action, "full")
        assert isinstance(decision.steps[-1], Forward)
        assert not decision.is_held


def test_a_handshake_is_over_when_the_client_says_so_or_is_modern() -> None:
    legacy, modern = interceptor(), interceptor()
    legacy.observe(0.0, "client", b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}')
    opening = [legacy.injected.is_initializing]
    legacy.process(2.0, "client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert [*opening, legacy.injected.is_initializing] == [True, False]
    meta = b'{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    modern.observe(
        0.0, "client", b'{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":%b}}' % meta
    )
    assert not modern.injected.is_initializing


def test_an_injected_request_is_answered_to_its_viewer_alone() -> None:
    asking = interceptor()
    assert asking.is_idle
    order = {"order": "request", "n": 5, "method": "tools/call", "params": {"name": "echo"}, "stream": "3"}
    reply = asking.execute(1.0, "tui", order)
    speak, note = reply.steps
    assert isinstance(speak, Inject)
    assert (speak.side, speak.stream, speak.id) == ("client", "3", f'"{PREFIX}1"')
    assert reply.answer == {"id": speak.id}
    assert notes([note])[0] == {
        "action": "inject",
        "viewer": "tui",
        "stream": "3",
        "from": "client",
        "method": "tools/call",
        "subject": "echo",
        "id": speak.id,
    }
    assert asking.describe(1.0)["injected"]
    assert asking.process(1.5, "server", result(f"{PREFIX}2")).is_untouched  # No request has this id.
    moved = asking.process(1.7, "server", progress(f"{PREFIX}1"))
    assert events(moved.steps)[0]["event"] == "progress"
    assert moved.to_mcpspy
    answered = asking.process(2.0, "server", result(f"{PREFIX}1"))

    assert answered.to_mcpspy
    assert events(answered.steps) == [
        {
            "event": "answer",
            "n": 5,
            "id": speak.id,
            "message": loads(result(f"{PREFIX}1")),
            "seconds": 1.0,
        }
    ]
    assert not any(isinstance(step, Forward | Substitute) for step in answered.steps)
    assert asking.is_idle


def test_rules_do_not_apply_to_the_response_to_an_injected_request() -> None:
    asking = interceptor(" => hold")
    asking.execute(0.0, "tui", {"order": "request", "method": "ping", "to": "client"})

    assert not asking.process(1.0, "client", result(f"{PREFIX}1")).is_held


def test_a_notification_is_injected_as_given() -> None:
    order = {"order": "notify", "to": "client", "method": "notifications/tools/list_changed"}
    reply = interceptor().execute(0.0, "send", order)

    assert reply.steps[0] == Inject(
        "server", b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    )
    assert reply.answer == {}


def test_the_viewer_is_notified_if_its_request_cannot_be_delivered() -> None:
    asking = interceptor()
    asking.execute(0.0, "tui", {"order": "request", "n": 1, "method": "ping"})
    steps = asking.injection_failed(1.0, f'"{PREFIX}1"', "no stream is open")

    assert [event["error"] for event in events(steps)] == ["no stream is open"]
    assert asking.injection_failed(1.0, f'"{PREFIX}1"', "again") == []
    assert asking.is_idle


def test_messages_observed_before_interception_are_known() -> None:
    late = interceptor("kind:result tool:echo => drop")
    late.observe(0.0, "client", call(1))
    late.observe(0.0, "client", call(2))
    late.observe(0.0, "server", result(2))

    assert late.process(1.0, "server", result(1)).to_mcpspy
    assert late.process(1.0, "server", result(2)).is_untouched


def test_a_batch_is_ruled_part_by_part() -> None:
    decision = interceptor("tool:a => error no").process(0.0, "client", BATCH)
    speak, send = actions(decision.steps)

    assert isinstance(speak, Inject)
    assert send == Substitute("client", b"[" + call(2, "b") + b"]", None, decision.ticket)
    assert not decision.to_mcpspy


def test_the_response_to_an_injected_request_is_removed_from_a_batch() -> None:
    asking = interceptor()
    asking.execute(0.0, "tui", {"order": "request", "method": "ping"})
    decision = asking.process(1.0, "server", b"[" + result(1) + b"," + result(f"{PREFIX}1") + b"]")

    assert actions(decision.steps) == [Substitute("server", b"[" + result(1) + b"]", None, decision.ticket)]


def test_held_messages_of_an_exchange_that_has_ended_are_not_forwarded() -> None:
    held = interceptor("tool:echo => hold", "tool:slow => delay 1s")
    held.process(0.0, "client", call(1), exchange=exchange_named("gone"))
    held.process(0.0, "client", call(2), exchange=exchange_named("here"))
    held.process(0.0, "client", call(3, tool="slow"), exchange=exchange_named("gone"))
    steps = held.exchange_ended(0.5, exchange_named("gone"))

    assert actions(steps) == []
    assert [note["why"] for note in notes(steps)] == ["connection closed"]
    assert [step.exchange for step in held.run_due(1e6) if isinstance(step, Forward)] == [
        exchange_named("here")
    ]
    assert held.describe(0.0)["bytes"] == 0


def test_at_the_end_held_messages_are_released_and_viewers_are_notified() -> None:
    ending = interceptor("tool:slow => delay 9s", "tool:echo => hold")
    ending.process(0.0, "client", call(1, tool="slow"))
    ending.process(0.0, "client", call(2))
    ending.execute(0.0, "tui", {"order": "request", "n": 1, "method": "ping"})
    steps = ending.end(1.0)

    assert {step.data for step in steps if isinstance(step, Forward)} == {call(1, tool="slow"), call(2)}
    assert [note["why"] for note in notes(steps)] == ["session ended"]
    assert events(steps)[-1]["error"] == "the session has ended"
    assert ending.run_due(1e6) == []


def test_it_describes_its_state() -> None:
    standing = interceptor("tool:a => hold", call_timeout=3, slow=2)
    standing.execute(0.0, "tui", {"order": "hold", "query": "tool:b"})
    standing.process(1.0, "client", call(1, tool="a"))
    standing.execute(1.0, "tui", {"order": "request", "method": "ping"})
    said = standing.execute(2.5, "send", {"order": "list"}).answer

    assert said["holds"] == {"tui": "tool:b"}
    assert [(each["age"], each["rule"], each["text"]) for each in said["held"]] == [
        (1.5, "1", call(1, tool="a").decode())
    ]
    assert said["injected"] == [{"id": f'"{PREFIX}1"', "from": "client", "method": "ping", "viewer": "tui"}]
    assert json.dumps(said)
    opening = standing.rules_note()
    assert opening.kind == "rules"
    assert opening.fields == {
        "rules": [{"rule": "1", "when": "tool:a", "action": "hold"}],
        "seed": 1,
        "call_timeout": 3,
        "slow": 2,
    }


@pytest.mark.parametrize("options", [{"call_timeout": 1.0}, {"slow": 1.0}])
def test_a_watchdog_is_never_idle(options: dict[str, Any]) -> None:
    assert not interceptor(**options).is_idle


def test_it_is_not_idle_while_an_injected_request_is_open() -> None:
    asking = interceptor()
    asking.execute(0.0, "tui", {"order": "request", "method": "ping"})
    assert not asking.is_idle
    asking.process(1.0, "server", progress(f"{PREFIX}1"))
    assert not asking.is_idle
    asking.process(2.0, "server", result(f"{PREFIX}1"))
    assert asking.is_idle


def test_it_is_not_idle_while_it_has_rules_or_a_viewer_holds_messages() -> None:
    assert not interceptor("tool:never => drop").is_idle
    wanted = interceptor()
    wanted.execute(0.0, "tui", {"order": "hold", "query": "tool:echo"})
    assert not wanted.is_idle
    wanted.process(1.0, "client", call())
    assert not wanted.is_idle
    wanted.viewer_left(2.0, "tui")
    assert wanted.is_idle


def test_the_next_deadline_is_the_earliest_of_delays_holds_and_both_watchdogs() -> None:
    busy = interceptor("tool:a => hold", "tool:b => delay 3s", call_timeout=50, slow=20, hold_timeout=10)
    busy.process(0.0, "client", call(1, "c"))
    assert busy.next_at == 20.0
    busy.process(1.0, "client", call(2, "a"))
    assert busy.next_at == 11.0
    busy.process(2.0, "client", call(3, "b"))
    assert busy.next_at == 5.0

    for at, following in ((5.0, 11.0), (11.0, 20.0), (20.0, 22.0), (22.0, 31.0), (31.0, 50.0)):
        assert busy.run_due(at)
        assert busy.next_at == following


def test_the_opening_note_leaves_out_limits_that_are_not_set() -> None:
    assert interceptor().rules_note().fields == {"rules": [], "seed": 1}
    assert interceptor(slow=0.5).rules_note().fields == {"rules": [], "seed": 1, "slow": 0.5}


def test_a_request_that_was_forwarded_before_interception_is_cancelled_when_it_times_out() -> None:
    received = interceptor(call_timeout=5)
    received.observe(1.0, "client", call(1), stream="s")
    answer, cancelled = actions(received.run_due(6.0))

    assert isinstance(answer, Inject)
    assert isinstance(cancelled, Inject)
    assert (answer.side, cancelled.side, cancelled.stream) == ("server", "client", "s")
    assert not received.process(
        7.0, "server", result(1)
    ).to_mcpspy  # Without the stream, it responds to another request.
    late = received.process(7.0, "server", result(1), stream="s", exchange=LANE)
    assert [note["action"] for note in notes(late.steps)] == ["swallowed"]
    assert isinstance(late.steps[0], AddNote)
    assert late.steps[0].exchange is LANE
    assert late.steps[1:] == [Dropped("server", LANE, late.ticket)]


def test_messages_heard_from_the_client_advance_the_handshake() -> None:
    received = interceptor()
    received.observe(0.0, "server", b'{"jsonrpc":"2.0","method":"notifications/message"}')
    assert not received.injected.has_client_message
    received.observe(0.0, "client", b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}')
    assert (received.injected.has_client_message, received.injected.is_initializing) == (True, True)
    received.observe(1.0, "client", b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    assert (received.injected.has_client_message, received.injected.is_initializing) == (True, False)


def test_an_intercepted_initialize_opens_the_handshake() -> None:
    intercepted = interceptor("tool:never => drop")
    intercepted.process(0.0, "client", b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}')
    assert (intercepted.injected.has_client_message, intercepted.injected.is_initializing) == (True, True)
    intercepted.process(1.0, "client", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    assert (intercepted.injected.has_client_message, intercepted.injected.is_initializing) == (True, False)


def test_a_dropped_message_cannot_be_edited_afterwards() -> None:
    held = interceptor("tool:ruled => drop", "tool:echo => hold")
    held.execute(0.0, "tui", {"order": "hold", "query": ""})
    by_rule = held.process(0.0, "client", call(1, "ruled"))
    by_viewer = held.process(0.0, "client", call(2))
    assert not by_rule.is_held
    held.execute(1.0, "tui", {"order": "drop", "ticket": by_viewer.ticket})

    for ticket in (by_rule.ticket, by_viewer.ticket):
        with pytest.raises(CommandError, match="no message is held"):
            held.execute(2.0, "tui", {"order": "release", "ticket": ticket, "message": {}})
    assert held.describe(2.0)["held"] == []


def test_an_edit_replaces_a_batch_after_a_rule_dropped_a_part_of_it() -> None:
    for edit, sent in (({"text": '{"x":1}'}, b'{"x":1}'), ({}, b"[" + call(2, "b") + b"]")):
        held = interceptor("tool:a => drop")
        held.execute(0.0, "tui", {"order": "hold", "query": "tool:b"})
        ticket = held.process(0.0, "client", BATCH).ticket
        reply = held.execute(1.0, "tui", {"order": "release", "ticket": ticket, **edit})

        assert actions(reply.steps) == [Substitute("client", sent, None, ticket)]


def test_a_viewer_does_not_hold_a_batch_for_a_part_that_a_rule_removed() -> None:
    for flag in ("tool:a => drop", "tool:a => error no"):
        held = interceptor(flag)
        held.execute(0.0, "tui", {"order": "hold", "query": "tool:a"})
        decision = held.process(0.0, "client", BATCH)

        assert not decision.is_held
        assert decision.steps[-1] == Substitute("client", b"[" + call(2, "b") + b"]", None, decision.ticket)


@pytest.mark.parametrize("is_edited", [True, False])
def test_a_response_that_a_rule_corrupted_ends_the_wait_only_if_a_viewer_edited_it(is_edited: bool) -> None:
    held = interceptor("kind:result => corrupt bad-json", call_timeout=5)
    held.execute(0.0, "tui", {"order": "hold", "query": "kind:result"})
    held.process(0.0, "client", call(1))
    ticket = held.process(1.0, "server", result(1)).ticket
    edit = {"text": "{}"} if is_edited else {}
    (sent,) = actions(held.execute(2.0, "tui", {"order": "release", "ticket": ticket, **edit}).steps)

    assert isinstance(sent, Substitute)
    assert (sent.data == b"{}") == is_edited
    assert held.next_at == (None if is_edited else 7.0)
    assert [type(step) for step in actions(held.run_due(7.0))] == ([] if is_edited else [Inject])


def test_an_edit_does_not_revive_a_message_whose_request_has_timed_out() -> None:
    held = interceptor("tool:echo => delay 9s", "tool:echo => hold", call_timeout=5)
    request = held.process(0.0, "client", call(1), exchange=LANE)
    held.run_due(5.0)
    assert [event["event"] for event in events(held.run_due(9.0))] == ["held"]
    order = {"order": "release", "ticket": request.ticket, "message": {"x": 1}}
    assert actions(held.execute(10.0, "tui", order).steps) == [Dropped("client", LANE, request.ticket)]
    assert held.next_at is None

    held = interceptor("kind:result => delay 9s", "kind:result => hold", call_timeout=5)
    held.process(0.0, "client", call(1))
    answer = held.process(1.0, "server", result(1), exchange=LANE)
    held.run_due(5.0)
    held.run_due(10.0)
    steps = held.execute(11.0, "tui", {**order, "ticket": answer.ticket}).steps
    assert [note["action"] for note in notes(steps)] == ["release", "swallowed"]
    assert {step.exchange for step in steps if isinstance(step, AddNote)} == {LANE}
    assert actions(steps) == [Dropped("server", LANE, answer.ticket)]
    assert held.next_at is None


@pytest.mark.parametrize("data", [call(1, "a"), BATCH])
def test_a_disconnect_happens_at_once_and_can_be_neither_held_nor_edited(data: bytes) -> None:
    held = interceptor("tool:a => disconnect", "tool:b => hold")
    held.execute(0.0, "tui", {"order": "hold", "query": ""})
    decision = held.process(0.0, "client", data, exchange=LANE)

    assert actions(decision.steps) == [Disconnect(LANE)]
    assert (decision.to_mcpspy, decision.is_held) == (True, False)
    with pytest.raises(CommandError, match="no message is held"):
        held.execute(1.0, "tui", {"order": "release", "ticket": decision.ticket, "message": {}})


def test_a_request_is_answered_before_another_part_of_its_batch_disconnects() -> None:
    answer, cut = actions(
        interceptor("tool:a => error no", "tool:b => disconnect").process(0.0, "client", BATCH).steps
    )

    assert isinstance(answer, Inject)
    assert loads(answer.data)["id"] == 1
    assert cut == Disconnect(None)


def test_a_request_that_disconnects_is_not_watched_while_it_is_delayed() -> None:
    watched = interceptor("tool:echo => delay 9s", "tool:echo => disconnect", call_timeout=5, slow=3)
    decision = watched.process(0.0, "client", call(1), exchange=LANE)

    assert (decision.to_mcpspy, decision.is_held) == (True, True)
    assert watched.next_at == 9.0
    assert watched.run_due(8.9) == []
    assert watched.run_due(9.0) == [Disconnect(LANE)]
    assert watched.next_at is None


def test_a_request_that_a_rule_has_answered_is_not_watched_while_its_batch_is_delayed() -> None:
    watched = interceptor("tool:a => error no", "tool:b => delay 9s", call_timeout=5)
    decision = watched.process(0.0, "client", BATCH)
    assert actions(decision.steps) == []
    timed_out, *_ = actions(watched.run_due(5.0))
    assert isinstance(timed_out, Inject)
    assert loads(timed_out.data)["id"] == 2
    assert watched.next_at == 9.0
    answered, gone = actions(watched.run_due(9.0))

    assert isinstance(answered, Inject)
    assert loads(answered.data) == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}}
    assert gone == Dropped("client", None, decision.ticket)
    assert watched.next_at is None


def test_a_delayed_response_from_a_rule_ends_the_wait() -> None:
    watched = interceptor("tool:echo => delay 1s", "tool:echo => error no", call_timeout=5, slow=3)
    decision = watched.process(0.0, "client", call(1), stream="s", exchange=LANE)
    assert (decision.to_mcpspy, decision.is_held) == (True, True)
    answer, gone = watched.run_due(1.0)

    assert isinstance(answer, Inject)
    assert (answer.side, answer.exchange, answer.stream, answer.id) == ("server", LANE, "s", None)
    assert gone == Dropped("client", LANE, decision.ticket)
    assert watched.next_at is None


def test_a_response_from_a_viewer_ends_the_wait() -> None:
    watched = interceptor("tool:echo => hold", call_timeout=5, slow=3)
    decision = watched.process(0.0, "client", call(1), stream="s", exchange=LANE)
    order = {"order": "answer", "ticket": decision.ticket, "result": {}}
    note, event, answer, gone = watched.execute(1.0, "tui", order).steps

    assert isinstance(note, AddNote)
    assert isinstance(event, Notify)
    assert answer == Inject("server", b'{"jsonrpc":"2.0","id":1,"result":{}}', LANE, "s")
    assert gone == Dropped("client", LANE, decision.ticket)
    assert (note.exchange, note.fields["why"], event.event["why"]) == (LANE, "answered", "answered")
    assert watched.next_at is None


def test_a_held_request_that_was_answered_meanwhile_is_not_watched_again() -> None:
    watched = interceptor(call_timeout=5, slow=3)
    watched.execute(0.0, "tui", {"order": "hold", "query": "kind:request"})
    ticket = watched.process(0.0, "client", call(1)).ticket
    assert watched.process(1.0, "server", result(1)).is_untouched
    reply = watched.execute(2.0, "tui", {"order": "release", "ticket": ticket})

    assert actions(reply.steps) == [Forward("client", call(1), None, ticket)]
    assert watched.next_at is None


def test_the_time_limit_starts_again_when_a_viewer_drops_a_held_response() -> None:
    watched = interceptor(call_timeout=5)
    watched.execute(0.0, "tui", {"order": "hold", "query": "kind:result"})
    watched.process(0.0, "client", call(1))
    ticket = watched.process(1.0, "server", result(1)).ticket
    assert watched.run_due(100.0) == []
    watched.execute(100.0, "tui", {"order": "drop", "ticket": ticket})

    assert watched.next_at == 105.0
    (answer,) = actions(watched.run_due(105.0))  # No cancellation, because the server has responded.
    assert isinstance(answer, Inject)
    assert answer.side == "server"


def test_a_delayed_response_that_is_due_at_the_time_limit_is_forwarded() -> None:
    watched = interceptor("kind:result => delay 4s", call_timeout=5)
    watched.process(0.0, "client", call(1))
    ticket = watched.process(1.0, "server", result(1)).ticket

    assert watched.run_due(5.0) == [Forward("server", result(1), None, ticket)]


def test_a_response_that_comes_too_late_is_not_noted_as_swallowed_if_a_rule_drops_it_anyway() -> None:
    watched = interceptor("kind:result => delay 9s", "kind:result => drop", call_timeout=5)
    watched.process(0.0, "client", call(1))
    ticket = watched.process(1.0, "server", result(1)).ticket
    watched.run_due(5.0)

    assert watched.run_due(10.0) == [Dropped("server", None, ticket)]


def test_a_delayed_request_that_has_timed_out_goes_nowhere_and_is_not_noted_as_swallowed() -> None:
    watched = interceptor("tool:echo => delay 9s", call_timeout=5)
    ticket = watched.process(0.0, "client", call(1)).ticket
    watched.run_due(5.0)

    assert watched.run_due(9.0) == [Dropped("client", None, ticket)]


def test_no_part_of_a_held_batch_times_out() -> None:
    watched = interceptor("tool:b => hold", call_timeout=5, slow=3)
    watched.process(0.0, "client", BATCH)

    assert watched.next_at == 300.0
    steps = watched.run_due(300.0)
    assert [note["why"] for note in notes(steps)] == ["timeout"]
    assert watched.next_at == 303.0


def test_a_held_batch_is_dropped_as_a_whole() -> None:
    held = interceptor("tool:b => hold")
    ticket = held.process(0.0, "client", BATCH).ticket

    assert actions(held.execute(1.0, "tui", {"order": "drop", "ticket": ticket}).steps) == [
        Dropped("client", None, ticket)
    ]


def test_a_delayed_message_is_not_a_held_one() -> None:
    delayed = interceptor("tool:echo => delay 9s")
    ticket = delayed.process(0.0, "client", call(1)).ticket
    for order in (
        {"order": "release", "ticket": ticket},
        {"order": "drop", "ticket": ticket},
        {"order": "answer", "ticket": ticket, "result": {}},
    ):
        with pytest.raises(CommandError, match="no message is held"):
            delayed.execute(1.0, "tui", order)

    reply = delayed.execute(1.0, "tui", {"order": "release", "tickets": "all"})
    assert (reply.answer, reply.steps) == ({"released": 0}, [])
    said = delayed.describe(1.0)
    assert (said["held"], said["delayed"], said["bytes"]) == ([], 1, len(call(1)))
    assert delayed.run_due(9.0) == [Forward("client", call(1), None, ticket)]


def test_tickets_are_released_once_each_in_the_order_of_arrival() -> None:
    held = interceptor("tool:echo => hold")
    one, two, three = (
        held.process(0.0, "client", call(number), exchange=exchange_named(str(number))).ticket
        for number in range(3)
    )
    reply = held.execute(1.0, "tui", {"order": "release", "tickets": [three, one, three]})

    assert reply.answer == {"released": 2}
    assert [type(step) for step in reply.steps] == [AddNote, Notify, Forward] * 2
    assert [step.exchange for step in reply.steps if isinstance(step, AddNote | Forward)] == [
        exchange_named(name) for name in "0022"
    ]
    assert [each["ticket"] for each in held.describe(1.0)["held"]] == [two]


def test_a_released_message_is_not_released_again_at_its_deadline() -> None:
    held = interceptor("tool:echo => hold", hold_timeout=10)
    ticket = held.process(0.0, "client", call(1)).ticket
    held.execute(1.0, "tui", {"order": "release", "ticket": ticket})

    assert held.next_at is None
    assert held.run_due(10.0) == []


def test_notes_belong_to_the_http_exchange_of_their_message() -> None:
    both = interceptor("tool:echo => delay 1s", "tool:echo => hold", hold_timeout=10)
    steps = both.process(0.0, "client", call(1), exchange=LANE).steps + both.run_due(1.0) + both.run_due(11.0)

    assert [(step.fields["action"], step.exchange) for step in steps if isinstance(step, AddNote)] == [
        ("delay", LANE),
        ("hold", LANE),
        ("release", LANE),
    ]


def test_a_message_for_which_there_was_no_room_is_still_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_module, "MAX_MESSAGES", 1)
    full = interceptor("tool:echo => hold", call_timeout=5)
    full.process(0.0, "client", call(1))
    decision = full.process(1.0, "client", call(2), exchange=LANE)

    assert [type(step) for step in decision.steps] == [AddNote, Forward]
    assert isinstance(decision.steps[0], AddNote)
    assert decision.steps[0].exchange is LANE
    assert full.next_at == 6.0
    assert [each["ticket"] for each in full.describe(1.0)["held"]] == [1]


def test_a_message_that_can_be_neither_delayed_nor_held_is_forwarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_module, "MAX_MESSAGES", 0)
    decision = interceptor("tool:echo => delay 1s", "tool:echo => hold").process(
        0.0, "client", call(1), exchange=LANE
    )
    delay, delay_full, hold_full, forwarded = decision.steps

    assert [(note["action"], note.get("why")) for note in notes([delay, delay_full, hold_full])] == [
        ("delay", None),
        ("delay", "full"),
        ("hold", "full"),
    ]
    assert forwarded == Forward("client", call(1), LANE, decision.ticket)


def test_a_rule_holds_before_a_viewer_and_the_first_viewer_before_the_next() -> None:
    held = interceptor("tool:ruled => hold")
    held.execute(0.0, "a", {"order": "hold", "query": "tool:echo"})
    held.execute(0.0, "b", {"order": "hold", "query": ""})
    for number, tool in enumerate(("ruled", "echo", "other")):
        held.process(0.0, "client", call(number, tool))

    said = held.describe(0.0)["held"]
    assert [(each.get("rule"), each.get("viewer")) for each in said] == [
        ("1", None),
        (None, "a"),
        (None, "b"),
    ]


def test_another_query_of_a_viewer_replaces_the_first_and_releases_nothing() -> None:
    held = interceptor()
    held.execute(0.0, "tui", {"order": "hold", "query": "tool:a"})
    held.process(0.0, "client", call(1, "a"))
    reply = held.execute(1.0, "tui", {"order": "hold", "query": "tool:b"})

    assert (reply.answer, reply.steps) == ({}, [])
    assert held.process(1.0, "client", call(2, "a")).is_untouched
    assert held.process(1.0, "client", call(3, "b")).is_held
    assert held.describe(1.0)["holds"] == {"tui": "tool:b"}
    assert len(held.describe(1.0)["held"]) == 2


def test_closing_one_side_forwards_its_messages_and_fails_injected_requests_to_it() -> None:
    for closed, peer in (("client", "server"), ("server", "client")):
        ending = interceptor("tool:slow => delay 9s", "tool:echo => hold")
        for number, side in enumerate((closed, peer)):
            ending.process(0.0, side, call(number, "slow"))
            ending.process(0.0, side, call(number))
            ending.execute(0.0, "tui", {"order": "request", "n": side, "method": "ping", "to": side})
        steps = ending.end(1.0, closed)

        assert actions(steps) == [
            Forward(closed, call(0, "slow"), None, 1),
            Forward(closed, call(0), None, 2),
        ]
        assert [note["why"] for note in notes(steps)] == ["session ended"]
        assert [(event["n"], event["error"]) for event in events(steps) if event["event"] == "answer"] == [
            (closed, "the session has ended")
        ]
        said = ending.describe(1.0)
        assert (len(said["held"]), said["delayed"]) == (1, 1)
        assert [each["from"] for each in said["injected"]] == [closed]
        assert [type(step) for step in actions(ending.run_due(9.0))] == [
            Forward
        ]  # The peer's delayed message.
        answered = ending.process(10.0, peer, result(json.loads(said["injected"][0]["id"])))
        assert [event["n"] for event in events(answered.steps)] == [peer]


def test_only_the_side_that_got_an_injected_request_can_answer_it_and_only_its_viewer_is_notified() -> None:
    asking = interceptor()
    asking.execute(0.0, "tui", {"order": "request", "method": "ping"})
    for data in (progress(f"{PREFIX}1"), result(f"{PREFIX}1")):
        assert asking.process(1.0, "client", data).is_untouched
        decision = asking.process(1.0, "server", data, exchange=LANE)
        assert decision.to_mcpspy
        assert [step.viewer for step in decision.steps if isinstance(step, Notify)] == ["tui"]
        assert actions(decision.steps) == [Dropped("server", LANE, decision.ticket)]


class Traffic(RuleBasedStateMachine):
    """Random actions of two peers and two viewers, with time passing."""

    def __init__(self) -> None:
        super().__init__()
        self.interceptor = interceptor(
            "tool:ruled => hold", "tool:later => delay 2s", hold_timeout=5, call_timeout=20
        )
        self.now = 0.0
        self.number = 0
        self.tickets: list[int] = []
        self.underway: dict[int, tuple[str, bytes]] = {}
        """Ticket → side and data of a message that was neither forwarded nor dropped yet."""
        self.injected: set[str] = set()
        self.awaited: list[int] = []
        self.answered: list[int] = []

    def perform(self, steps: list[Step]) -> None:
        for step in steps:
            assert not isinstance(step, Substitute | Disconnect)
            if isinstance(step, Forward):
                assert self.underway.pop(step.ticket) == (step.side, step.data)  # Once, and unchanged.
            elif isinstance(step, Dropped):
                del self.underway[step.ticket]
            elif isinstance(step, Inject) and step.id is not None:
                assert step.id not in self.injected
                self.injected.add(step.id)
            elif isinstance(step, Inject) and step.side == "server":  # Sent by the watchdog.
                self.answered.append(loads(step.data)["id"])
            if isinstance(step, Forward) and step.side == "server":
                self.answered.append(loads(step.data)["id"])

    def take(self, side: str, data: bytes) -> None:
        ticket = len(self.tickets) + 1
        self.tickets.append(ticket)
        self.underway[ticket] = (side, data)
        decision = self.interceptor.process(self.now, side, data)
        assert decision.ticket == ticket
        self.perform(decision.steps)
        assert decision.is_held == (ticket in self.underway)

    @rule(tool=st.sampled_from(["ruled", "later", "a", "b"]))
    def call(self, tool: str) -> None:
        self.number += 1
        self.awaited.append(self.number)
        self.take("client", call(self.number, tool=tool))

    @precondition(lambda self: self.awaited)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.awaited))
        self.awaited.remove(number)
        self.take("server", result(number))

    @precondition(lambda self: self.injected)
    @rule(data=st.data())
    def answer_injected(self, data: st.DataObject) -> None:
        said = data.draw(st.sampled_from(sorted(self.injected)))
        self.injected.remove(said)
        self.take("server", result(json.loads(said)))
        assert said not in [each["id"] for each in self.interceptor.describe(self.now)["injected"]]

    @rule(viewer=st.sampled_from("xy"), query=st.sampled_from(["tool:a", "kind:result", "", None]))
    def hold(self, viewer: str, query: str | None) -> None:
        self.perform(self.interceptor.execute(self.now, viewer, {"order": "hold", "query": query}).steps)

    @rule(viewer=st.sampled_from("xy"))
    def leave(self, viewer: str) -> None:
        self.perform(self.interceptor.viewer_left(self.now, viewer))
        assert not any(each.get("viewer") == viewer for each in self.interceptor.describe(self.now)["held"])

    @rule()
    def release_all(self) -> None:
        steps = self.interceptor.execute(self.now, "x", {"order": "release", "tickets": "all"}).steps
        tickets = [step.ticket for step in steps if isinstance(step, Forward)]
        assert tickets == sorted(tickets)
        self.perform(steps)

    @rule(seconds=st.sampled_from([0.5, 2.0, 6.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.perform(self.interceptor.run_due(self.now))
        next_at = self.interceptor.next_at
        assert next_at is None or next_at > self.now

    @rule()
    def inject(self) -> None:
        self.perform(self.interceptor.execute(self.now, "x", {"order": "request", "method": "ping"}).steps)

    @invariant()
    def no_request_is_answered_twice(self) -> None:
        assert len(self.answered) == len(set(self.answered))

    @invariant()
    def the_engine_has_all_messages_in_flight(self) -> None:
        said = self.interceptor.describe(self.now)
        assert len(said["held"]) + said["delayed"] == len(self.underway)
        assert self.interceptor.describe(0.0)["bytes"] == sum(len(data) for _, data in self.underway.values())

    def teardown(self) -> None:
        self.perform(self.interceptor.end(self.now))
        assert not self.underway


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
