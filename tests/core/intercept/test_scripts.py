"""Messages that wait for scripts: their order, the window, decisions, and failures of the script process."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.intercept import scripts
from mcpspy.core.intercept.actions import (
    CommandError,
    Dropped,
    Forward,
    HeadDecided,
    Inject,
    Step,
    Substitute,
)
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.intercept.interceptor import Interceptor
from tests.core.intercept.interceptors import (
    actions,
    call,
    events,
    exchange_named,
    interceptor,
    notes,
    result,
)

TOKEN = "secret"


def scripted(
    *flags: str, hooks: tuple[str, ...] | None = ("request", "response"), **options: Any
) -> Interceptor:
    """Return an interceptor with scripts; they are not loaded if `hooks` is None."""
    engine = interceptor(*flags, scripts=scripts.ScriptQueue(["x.py"], TOKEN), **options)
    assert engine.scripts is not None
    engine.scripts.started(0.0)
    order(engine, "scripts", token=TOKEN, hooks=None if hooks is None else list(hooks), timeout=5)
    return engine


def order(
    engine: Interceptor, name: str, *, at: float = 1.0, viewer: str = "viewer", **fields: Any
) -> list[Step]:
    return engine.execute(at, viewer, {"order": name, **fields}).steps


def decide(engine: Interceptor, ticket: int, **decision: Any) -> list[Step]:
    decisions = [{"script": "x.py", **decision}] if decision else []
    return order(engine, "decide", ticket=ticket, decisions=decisions)


def sent(steps: list[Step]) -> list[bytes]:
    return [step.data for step in steps if isinstance(step, Forward | Substitute)]


@given(st.permutations(range(1, 9)))
def test_decisions_in_any_order_take_effect_in_the_order_of_arrival(tickets: list[int]) -> None:
    engine = scripted()
    messages = [call(number) for number in range(8)]
    for message in messages:
        assert engine.process(0.0, "client", message).is_held

    steps = [step for ticket in tickets for step in decide(engine, ticket)]

    assert sent(steps) == messages
    assert notes(steps) == []


def test_directions_and_exchanges_do_not_wait_for_each_other() -> None:
    engine = scripted()
    one, two = exchange_named("one"), exchange_named("two")
    engine.process(0.0, "client", call(1), stream="1", exchange=one)
    engine.process(0.0, "client", call(2), stream="2", exchange=two)

    assert sent(decide(engine, 2)) == [call(2)]


def test_a_message_without_a_hook_waits_only_for_earlier_messages() -> None:
    engine = scripted(hooks=("request",))

    assert sent(engine.process(0.0, "server", result(7)).steps) == [result(7)]
    engine.process(0.0, "client", call(1))
    assert sent(engine.process(0.0, "client", result(8)).steps) == []
    assert sent(decide(engine, 2)) == [call(1), result(8)]


def test_messages_wait_until_the_scripts_are_loaded() -> None:
    engine = scripted(hooks=None)
    assert engine.process(0.0, "client", call(1)).steps == []
    engine.process(0.0, "server", result(1))

    steps = order(engine, "scripts", token=TOKEN, hooks=["request"], timeout=5)

    assert [event["ticket"] for event in events(steps)] == [1]
    assert sent(steps) == [result(1)]


def test_the_process_gets_a_limited_number_of_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "WINDOW", 2)
    engine = scripted()
    steps = [step for number in range(4) for step in engine.process(0.0, "client", call(number)).steps]

    assert [event["ticket"] for event in events(steps)] == [1, 2]
    assert [event["ticket"] for event in events(decide(engine, 2))] == [3]


def test_a_response_comes_with_its_request() -> None:
    engine = scripted()
    engine.process(0.5, "client", call(1))
    decide(engine, 1)

    (event,) = events(engine.process(2.0, "server", result(1)).steps)

    assert event["text"].encode() == result(1)
    assert event["requests"] == [{"at": 0.5, "text": call(1).decode()}]


def test_each_decision_has_its_effect_and_its_note() -> None:
    engine = scripted(hooks=("request",))
    for number in range(5):
        engine.process(0.0, "client", call(number))
    changed = decide(engine, 1, text="{}", tags=["slow"], notes=["why"])
    dropped = decide(engine, 2, drop=True)
    answered = decide(engine, 3, result={"content": []})
    delayed = decide(engine, 4, delay=2.5)
    held = decide(engine, 5, hold=True)

    assert [note["action"] for note in notes(changed)] == ["tag", "note", "replace"]
    assert {note["script"] for note in notes(changed)} == {"x.py"}
    assert sent(changed) == [b"{}"]
    assert [type(step) for step in actions(dropped)] == [Dropped]
    (inject, _) = actions(answered)
    assert isinstance(inject, Inject)
    assert inject.data == b'{"jsonrpc":"2.0","id":2,"result":{"content":[]}}'
    assert sent(delayed) == []
    assert sent(engine.run_due(3.5)) == [call(3)]
    assert notes(held)[0] | {"script": "x.py"} == notes(held)[0]
    assert notes(held)[0]["action"] == "hold"
    assert sent(order(engine, "release", ticket=5)) == [call(4)]


def test_rules_come_first() -> None:
    engine = scripted("tool:gone => drop", "tool:other => replace /params/name = echo")

    assert events(engine.process(0.0, "client", call(1, "gone")).steps) == []
    (event,) = events(engine.process(0.0, "client", call(2, "other")).steps)
    assert '"echo"' in event["text"]


def test_a_failure_releases_what_the_process_had_with_one_note() -> None:
    engine = scripted()
    for number in range(3):
        engine.process(0.0, "client", call(number))

    steps = engine.scripts_failed(1.0, "exited", is_final=True)

    assert sent(steps) == [call(0), call(1), call(2)]
    assert [(note["failed"], note["released"]) for note in notes(steps)] == [("exited", 3)]
    assert engine.is_idle


def test_a_process_that_owes_a_decision_is_hanging_after_its_time_limit() -> None:
    engine = scripted()
    deadlines = [engine.next_at]
    engine.process(2.0, "client", call(1))
    engine.process(3.0, "client", call(2))
    deadlines.append(engine.next_at)
    order(engine, "decide", ticket=1, at=4.0)
    deadlines.append(engine.next_at)
    order(engine, "decide", ticket=2)

    assert [*deadlines, engine.next_at] == [None, 7 + scripts.GRACE, 9 + scripts.GRACE, None]


def test_a_message_whose_exchange_ended_is_not_given_to_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scripts, "WINDOW", 1)
    engine, exchange = scripted(), exchange_named("one")
    engine.process(0.0, "client", call(1))
    engine.process(0.0, "client", call(2), stream="1", exchange=exchange)
    engine.process(0.0, "client", call(3))

    assert engine.exchange_ended(1.0, exchange) == []
    assert [event["text"] for event in events(decide(engine, 1))] == [call(3).decode()]


def test_the_end_of_an_exchange_or_a_session_leaves_nothing_behind() -> None:
    engine, exchange = scripted(), exchange_named("one")
    engine.process(0.0, "client", call(1), stream="1", exchange=exchange)
    engine.process(0.0, "server", result(9))

    assert engine.exchange_ended(1.0, exchange) == []
    assert sent(engine.end(2.0)) == [result(9)]
    assert engine.scripts is not None
    assert (engine.scripts.waiting("client"), engine.scripts.waiting("server")) == ((0, 0), (0, 0))
    assert decide(engine, 1) == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"order": "scripts", "token": "guess"}, "not a script process"),
        ({"order": "scripts", "token": TOKEN, "hooks": ["x"]}, "hooks must be"),
        ({"order": "decide", "ticket": 1, "decisions": [{"text": ""}]}, "text must be"),
        ({"order": "decide", "ticket": 1, "decisions": [{"delay": -1}]}, "delay must be"),
        ({"order": "decide", "ticket": 1, "decisions": [{"result": 1}]}, "result must be"),
    ],
)
def test_an_invalid_command_of_a_script_process_is_refused(fields: dict[str, Any], why: str) -> None:
    engine = scripted()
    with pytest.raises(CommandError, match=why):
        engine.execute(1.0, "viewer", fields)


def test_a_viewer_cannot_decide_in_place_of_the_script_process() -> None:
    engine = scripted()
    engine.process(0.0, "client", call(1))
    with pytest.raises(CommandError, match="tui is not a script process"):
        order(engine, "decide", viewer="tui", ticket=1)


def head(side: str = "client", exchange: str = "head") -> HttpHead:
    return HttpHead(
        0,
        0.0,
        side,
        exchange_named(exchange),
        "POST",
        "/mcp",
        [("Host", "a"), ("X-Old", "1"), ("X-Raw", "\udcff")],
    )


def test_a_head_waits_only_for_its_own_hook() -> None:
    engine = scripted(hooks=("http_request",))

    (event,) = events(engine.process_head(asked := head()))
    assert (event["event"], event["ticket"], event["method"], event["status"]) == ("head", 1, "POST", None)
    assert event["headers"] == [("Host", "a"), ("X-Old", "1")]
    assert engine.process_head(response := head("server")) == [
        HeadDecided(response.headers, response.exchange)
    ]
    assert not engine.process(0.0, "client", call(1)).is_held
    assert decide(engine, 1) == [HeadDecided(asked.headers, asked.exchange)]


def test_a_changed_head_is_noted_by_the_names_of_its_headers() -> None:
    engine = scripted(hooks=("http_request",))
    engine.process_head(head())

    *noted, decided = decide(engine, 1, headers=[["Host", "a"], ["X-New", "secret"]], tags=["t"])

    assert isinstance(decided, HeadDecided)
    assert decided.headers == [("Host", "a"), ("X-New", "secret"), ("X-Raw", "\udcff")]
    by = {"script": "x.py", "head": "request"}
    assert notes(noted) == [
        {"action": "tag", **by, "tag": "t"},
        {"action": "headers", **by, "set": ["x-new"], "removed": ["x-old"]},
    ]


def test_a_header_that_lost_one_of_its_values_is_noted() -> None:
    engine = scripted(hooks=("http_request",))
    asked = head()
    asked.headers += [("x-old", "2")]
    engine.process_head(asked)

    (note,) = notes(decide(engine, 1, headers=[["X-Old", "2"], ["host", "a"]]))

    assert (note["set"], "removed" in note) == (["x-old"], False)


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (["X Y", "1"], "'X Y' is not the name of a header"),
        (["Transfer-Encoding", "chunked"], "Transfer-Encoding: only mcpspy sets this header"),
        (["X", "a\r\nb"], "X: the value has control characters"),
    ],
)
def test_a_header_that_would_change_the_message_is_refused(header: list[str], why: str) -> None:
    engine = scripted(hooks=("http_request",))
    engine.process_head(head())

    with pytest.raises(CommandError, match=why):
        decide(engine, 1, headers=[header])


def test_a_head_is_released_by_a_failure_and_forgotten_with_its_exchange() -> None:
    engine = scripted(hooks=("http_response",))
    assert engine.scripts is not None
    one, two = head("server", "one"), head("server", "two")
    for each in (one, two):
        engine.process_head(each)
    engine.scripts.forget(one)

    steps = engine.scripts_failed(2.0, "exited", is_final=True)

    assert [step for step in steps if isinstance(step, HeadDecided)] == [
        HeadDecided(two.headers, two.exchange)
    ]
    assert engine.process_head(head("server")) == [HeadDecided(one.headers, exchange_named("head"))]
