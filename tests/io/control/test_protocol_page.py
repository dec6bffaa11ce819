"""docs/control.md names every key that the socket accepts and sends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from mcpspy.core.intercept import commands
from mcpspy.core.intercept.heads import HttpHead
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.core.intercept.scripts import ScriptQueue
from mcpspy.core.mock.steering import MockOptions, Steering
from mcpspy.core.rules.model import Rules
from mcpspy.core.rules.parser import read_flag
from mcpspy.io.control.server import ControlServer
from mcpspy.io.intercept.interception import RESTART, InterceptionOptions, SessionInterception
from mcpspy.io.recording.recorder import Recorder, RecordingTarget
from tests.core.intercept.interceptors import PREFIX, call, events, exchange_named, progress, result

PAGE = (Path(__file__).parents[3] / "docs" / "control.md").read_text(encoding="utf-8")

FLAGS = (
    "kind:result tool:held => 100% hold",
    "tool:rare => 50% seed=7 times=3 after=2 hold",
    "tool:held => hold",
    "kind:malformed => hold",
)


def tables() -> dict[str, set[str]]:
    """Return the keys of each row of the section `Every key`."""
    section = PAGE.split("### Every key\n")[1].split("\n## ")[0]
    found = {}
    for row in re.findall(r"^\| (.+?) \|(.*)\|$", section, re.MULTILINE):
        for name in re.sub(r"`state`", "state", row[0]).split(", and "):
            found[name.replace("`", "")] = set(re.findall(r"`(\w+)`", row[1]))
    return found


DOCUMENTED = tables()


class Idle(SessionInterception):
    """A session that carries nothing."""

    def _switch(self, *, is_wanted: bool) -> bool:
        return is_wanted

    def _set_alarm(self, next_at: float | None) -> None:
        pass


def interceptor() -> Interceptor:
    rules = tuple(read_flag(flag, number) for number, flag in enumerate(FLAGS, 1))
    scripts = ScriptQueue(["x.py"], "token")
    return Interceptor(Rules(rules, 1), prefix=PREFIX, scripts=scripts)


def seen() -> dict[str, set[str]]:
    """Return the keys that a session sends in a conversation with every order and every kind of held message."""
    engine, found = interceptor(), dict[str, set[str]]()

    def note(name: str, fields: dict[str, Any]) -> None:
        found.setdefault(name, set()).update(fields)

    def order(**fields: Any) -> dict[str, Any]:
        reply = engine.execute(2.0, "tui", fields)
        for event in events(reply.steps):
            note(f"event {event['event']}", event)
        note(f"answer to {fields['order']}", reply.answer or {})
        return reply.answer or {}

    def process(side: str, data: bytes) -> None:
        for event in events(engine.process(1.0, side, data, stream="1").steps):
            note(f"event {event['event']}", event)

    order(order="scripts", token="token", hooks=["request", "response"], timeout=1)
    process("client", call(8, tool="scripted"))
    order(order="decide", ticket=1, decisions=[{"script": "x.py", "hold": True}])
    process("server", result(8))
    process("server", b'[{"id":8,"result":"\xff"}]')
    order(order="decide", ticket=2)
    order(order="decide", ticket=3)
    order(order="note", script="x.py", text="hello")
    order(order="scripts", token="token", hooks=[], timeout=1)
    order(order="hold", query="tool:watched")
    process("client", call(1, tool="held"))
    process("client", call(2, tool="watched"))
    order(order="release", ticket=4)
    process("server", result(1))
    process("server", b"{oops\xff}")
    asked = order(order="request", method="tools/call", params={"name": "x", "_meta": {"progressToken": 5}})
    order(order="notify", method="notifications/x")
    process("server", progress(json.loads(asked["id"])))
    listed = order(order="list")
    for item in ("rules", "held", "injected"):
        for each in listed[item]:
            note(f"item of {item}", each)
    process("server", result(json.loads(asked["id"])))
    order(order="request", method="ping")
    order(order="scripts", token="token", hooks=["http_request"], timeout=1)
    head = HttpHead(0, 3.0, "client", exchange_named("1"), "POST", "/mcp", [("Host", "a")])
    for event in events([*engine.process_head(head), *engine.end(3.0)]):
        note(f"event {event['event']}", event)
    return found


def test_every_order_and_its_keys_are_documented() -> None:
    accepted = {name: set(keys) for name, (keys, _) in commands._PARSERS.items()}
    assert {name: keys for name, keys in DOCUMENTED.items() if name in accepted} == accepted
    assert DOCUMENTED["hello"] == {"viewer"}


@pytest.mark.parametrize(("name", "keys"), sorted(seen().items()))
def test_every_key_that_a_session_sends_is_documented(name: str, keys: set[str]) -> None:
    documented = DOCUMENTED.get(name, set())
    assert keys == documented
    rest = PAGE.split("### Every key\n")
    assert all(re.search(rf"\b{key}\b", rest[0]) for key in keys - {"event"} if "item of rules" not in name)


def test_nothing_else_is_documented() -> None:
    sent = {name for name in DOCUMENTED if name.startswith(("event", "item", "answer to"))}
    others = {"answer to hello", "event end", "event restart", "event stderr", "item of decisions"}
    of_one_kind = {"answer to mock", "item of answer", "item of answers", "answer to restart"}
    assert sent - set(seen()) == others | of_one_kind


def test_the_order_of_a_mock_is_documented() -> None:
    steering = Steering(MockOptions())
    answer = {"delay": 1.0, "times": 2, "interaction": 1, "error": {"code": 1, "message": ""}}
    steering.order({"match": "tool", "speed": 1, "misses": "nearest", "answer": answer})
    assert DOCUMENTED["mock"] == {"match", "speed", "misses", "answer"}
    assert DOCUMENTED["item of answer"] == DOCUMENTED["item of answers"] == {*answer, "result"}
    assert DOCUMENTED["answer to mock"] == {*steering.state, "clients"}


def test_the_greeting_and_the_answers_are_documented() -> None:
    nowhere = RecordingTarget()
    nowhere.recording = False
    live = Idle(Recorder(nowhere, {}), InterceptionOptions(), "weather")
    live.orders[RESTART] = lambda _viewer, _order: {}
    sent: list[bytes] = []
    server = ControlServer(live)
    connection = server.accept(sent.append, lambda: None)
    connection.feed(b'{"n":1,"order":"hello","viewer":"tui"}\n{"n":2,"order":"hello"}\n')
    server.end()
    greeting, renamed, refused, end = map(json.loads, sent)

    assert set(greeting) == DOCUMENTED["greeting"]
    assert set(renamed) | set(refused) == DOCUMENTED["every answer"] | DOCUMENTED["answer to hello"]
    assert set(end) == DOCUMENTED["event end"]
    assert set(interceptor().describe(0.0)) == DOCUMENTED["state"] == DOCUMENTED["answer to list"]
