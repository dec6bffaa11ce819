"""Decisions on messages of a stdio session, with in-memory streams: decided, recorded, and then sent."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core.intercept.actions import CommandError
from mcpspy.core.intercept.interceptor import Interceptor
from mcpspy.io.intercept import interception
from mcpspy.io.recording.recorder import Recorder
from mcpspy.io.stdio.base import STDERR, RunOptions, taps
from mcpspy.io.stdio.interception import StdioInterception
from tests.core.trust.locks import lock_text

if TYPE_CHECKING:
    from pathlib import Path

    from mcpspy.io.stdio.message_channel import MessageChannel

TOOLS = '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s"}}'


def call(number: object, tool: str = "echo") -> bytes:
    return (TOOLS % (json.dumps(number), tool)).encode() + b"\n"


def result(number: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":{}}\n' % json.dumps(number).encode()


class ByteStream:
    """A direction in memory. Data that is put must already be recorded."""

    def __init__(self, spy: Spy) -> None:
        self._spy = spy
        self.channel: MessageChannel | None = None
        self.out = b""
        self.backlog = 0
        self.is_writable = self.is_read = True
        self._waited_for: list[ByteStream] = []

    def put(self, data: bytes) -> None:
        if self.is_writable and self._spy.written is not None:
            written = self._spy.written()
            for line in data.splitlines(keepends=True):
                if line.startswith(b'{"jsonrpc"') and line.endswith(b"}\n"):
                    said = line.removesuffix(b"\n")
                    in_a_note = json.dumps(said.decode()).encode()
                    assert said in written or in_a_note in written, "sent before it was recorded"
        if self.is_writable:
            self.out += data
            self.backlog += 0 if self.is_read else len(data)

    def divert(self, channel: Any) -> None:
        self.channel = channel

    def is_diverted(self) -> bool:
        return self.channel is not None

    def end(self) -> None:
        """End like a channel whose source has ended."""
        assert self.channel is not None
        self.channel.eof()

    def wait_for(self, other: ByteStream) -> None:
        self._waited_for.append(other)

    def waited_for(self) -> list[ByteStream]:
        """Return the stream it had to wait for, since the last call."""
        found, self._waited_for = self._waited_for, []
        return found

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def finish(self) -> None:
        self.is_writable = False

    def bytes_read(self) -> bytes:
        """Return the bytes written since the last call."""
        out, self.out = self.out, b""
        return out


class Spy:
    """A session without peers."""

    def __init__(self, path: Path | None = None, *, noise: str = "pass", **interception: Any) -> None:
        options = RunOptions(["weather"])
        options.recording = path is not None
        options.record = str(path)
        options.redaction.off = True
        options.noise = noise
        for name, value in interception.items():
            setattr(options.interception, name, value)
        self.recorder = Recorder(options, {})
        self.written = None if path is None else path.read_bytes
        self.taps = taps(self.recorder)
        self.to_server, self.to_client, self.stderr = ByteStream(self), ByteStream(self), ByteStream(self)
        self.alarms = 0
        self.told: list[tuple[str | None, dict[str, Any]]] = []
        streams = [self.to_server, self.to_client, self.stderr]
        self.live = StdioInterception(self.recorder, options, self.taps, streams, self._alarm)
        self.live.tell = lambda viewer, event: self.told.append((viewer, event))
        if options.intercepts:
            self.live.begin()

    def _alarm(self) -> None:
        self.alarms += 1

    def _read(self, stream: ByteStream, tap: int, data: bytes) -> None:
        if stream.channel is not None:
            stream.channel.feed(data)
        else:
            self.taps[tap].feed(data)
            stream.put(data)

    def client(self, data: bytes) -> None:
        self._read(self.to_server, 0, data)

    def server(self, data: bytes) -> None:
        self._read(self.to_client, 1, data)

    def entries(self) -> list[dict[str, Any]]:
        assert self.written is not None
        return [json.loads(line) for line in self.written().splitlines()[1:]]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [event for _, event in self.told if event["event"] == kind]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "r.jsonl"


ODD = b'{"n":123456789012345678901234567890,"n":1.0}\r\n\nnoise\n\xff\xfe\n[1]\n{"\\ud800":1e2}\n{oops}\n'


def test_messages_that_match_no_rule_are_forwarded_unchanged(path: Path) -> None:
    spy = Spy(path, flags=["tool:other => drop"])
    said = ODD + call(1) + ODD
    for at in range(0, len(said), 7):
        spy.client(said[at : at + 7])
    assert spy.to_server.out == said
    assert spy.written is not None
    assert b'"note":"rule"' not in spy.written()


def test_without_rules_and_viewers_no_message_is_intercepted(path: Path) -> None:
    spy = Spy(path)
    assert not spy.to_server.is_diverted()
    spy.live.order("tui", {"order": "list"})
    assert not spy.to_server.is_diverted()
    spy.live.order("tui", {"order": "hold", "query": "tool:echo"})
    assert spy.to_server.is_diverted()
    assert spy.to_client.is_diverted()
    spy.live.order("tui", {"order": "hold", "query": None})
    assert not spy.to_server.is_diverted()
    assert spy.live.due_at is None


@pytest.mark.parametrize(
    ("rule", "to_server", "to_client"),
    [
        ("drop", b"", b""),
        ("error -32000 boom", b"", b'{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"boom"}}\n'),
        ('respond {"x":1}', b"", b'{"jsonrpc":"2.0","id":1,"result":{"x":1}}\n'),
        ("replace /params/name=new", call(1, "new"), b""),
        ("corrupt half-line", call(1)[:35], b""),
    ],
    ids=lambda value: value.split()[0] if isinstance(value, str) else "",
)
def test_a_rule_changes_what_is_sent_and_both_are_recorded(
    path: Path, rule: str, to_server: bytes, to_client: bytes
) -> None:
    spy = Spy(path, flags=[f"tool:echo => times=1 {rule}"])
    spy.client(call(1))
    assert (spy.to_server.bytes_read(), spy.to_client.bytes_read()) == (to_server, to_client)
    original, note, *by_us = [entry for entry in spy.entries() if entry.get("note") != "rules"]
    assert original["msg"] == json.loads(call(1))
    assert (original.get("to") == "mcpspy") == (not to_server)
    assert note["action"] == rule.split(maxsplit=1)[0]
    sent = (to_server or to_client).decode().removesuffix("\n")
    assert note.get("sent", "") == sent
    assert [(entry["from"], entry["by"], entry["msg"]) for entry in by_us] == (
        [("server", "mcpspy", json.loads(to_client))] if to_client else []
    )
    spy.client(call(2))
    assert spy.to_server.bytes_read() == call(2)


def test_a_disconnect_closes_both_pipes_of_the_host_after_what_came_before_it(path: Path) -> None:
    spy = Spy(path, flags=["tool:bad => disconnect"])
    spy.client(call(1) + call(2, "bad") + call(3))
    assert spy.to_server.out == call(1)
    assert not spy.to_server.is_writable
    assert not spy.to_client.is_writable
    assert [entry.get("to") for entry in spy.entries() if "msg" in entry] == [None, "mcpspy", "mcpspy"]


def test_a_delay_continues_when_its_time_has_come(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(interception, "monotonic", lambda: now[0])
    spy = Spy(path, flags=["tool:echo => delay 2s"])
    spy.client(call(1) + call(2, "other"))
    assert spy.to_server.bytes_read() == call(2, "other")
    assert spy.alarms
    assert spy.live.due_at == pytest.approx(102.0, abs=0.1)
    now[0] = 101.0
    spy.live.wake()
    assert spy.to_server.bytes_read() == b""
    now[0] = 102.5
    spy.live.wake()
    assert spy.to_server.bytes_read() == call(1)
    assert spy.live.due_at is None


def test_a_late_answer_to_a_call_that_was_answered_for_its_server_is_swallowed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(interception, "monotonic", lambda: now[0])
    spy = Spy(path, call_timeout=2.0)
    spy.client(call(1) + call(2))
    spy.server(result(2))
    now[0] = 103.0
    spy.live.wake()
    answer = json.loads(spy.to_client.bytes_read().splitlines()[1])
    assert (answer["id"], answer["error"]["code"]) == (1, -32001)
    assert "echo" in answer["error"]["message"]
    assert json.loads(spy.to_server.bytes_read().splitlines()[-1])["params"]["requestId"] == 1
    spy.server(result(1) + result(3))
    assert spy.to_client.bytes_read() == result(3)
    late, swallowed, ordinary = spy.entries()[-3:]
    assert (late["msg"]["id"], late["to"], swallowed["action"]) == (1, "mcpspy", "swallowed")
    assert "to" not in ordinary


def test_held_messages_are_forwarded_in_order_before_the_end(path: Path) -> None:
    spy = Spy(path)
    spy.live.order("tui", {"order": "hold", "query": "tool:*"})
    spy.client(call(1) + b"{}\r\n" + call(2)[:-1] + b"\r\n" + call(3) + b'{"half"')
    assert spy.to_server.bytes_read() == b"{}\r\n"
    spy.to_server.end()
    assert spy.to_server.bytes_read() == call(1) + call(2)[:-1] + b"\r\n" + call(3) + b'{"half"'
    assert [entry["why"] for entry in spy.entries() if entry.get("action") == "release"] == [
        "session ended"
    ] * 3


def test_the_end_of_one_side_keeps_the_held_messages_of_the_other(path: Path) -> None:
    spy = Spy(path)
    spy.live.order("tui", {"order": "hold", "query": "method:*"})
    spy.client(call(1))
    spy.server(call("a", "theirs"))
    spy.to_client.end()
    assert (spy.to_client.bytes_read(), spy.to_server.bytes_read()) == (call("a", "theirs"), b"")
    spy.live.finish()
    assert spy.to_server.bytes_read() == call(1)


def test_answered_and_dropped_messages_are_not_forwarded_at_the_end(path: Path) -> None:
    spy = Spy(path)
    spy.live.order("tui", {"order": "hold", "query": "tool:*"})
    spy.client(call(1) + call(2))
    first, second = (event["ticket"] for event in spy.events("held"))
    spy.live.order("tui", {"order": "answer", "ticket": first, "error": {"code": 5, "message": "no"}})
    spy.live.order("tui", {"order": "drop", "ticket": second})
    assert spy.to_client.bytes_read() == b'{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"no"}}\n'
    spy.live.finish()
    assert spy.to_server.bytes_read() == b""


def test_a_thousand_held_messages_keep_their_order(path: Path) -> None:
    spy = Spy(path)
    spy.live.order("tui", {"order": "hold", "query": "tool:echo"})
    calls = [call(n) for n in range(1000)]
    spy.client(b"".join(calls))
    assert len(spy.events("held")) == 1000
    spy.client(call("passes", "other"))
    assert spy.to_server.bytes_read() == call("passes", "other")
    tickets = [event["ticket"] for event in spy.events("held")]
    some = random.Random(7).sample(range(1000), 300)
    spy.live.order("tui", {"order": "release", "tickets": [tickets[n] for n in some]})
    released = spy.to_server.bytes_read()
    assert released == b"".join(calls[n] for n in sorted(some))
    spy.live.viewer_left("tui")
    assert spy.to_server.bytes_read() == b"".join(calls[n] for n in range(1000) if n not in set(some))
    assert not spy.to_server.is_diverted()


def test_nothing_is_sent_into_a_handshake(path: Path) -> None:
    spy = Spy(path)
    with pytest.raises(CommandError, match="not started"):
        spy.live.order("send", {"n": 2, "order": "request", "method": "tools/list"})
    spy.client(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n')
    with pytest.raises(CommandError, match="not started"):
        spy.live.order("send", {"n": 3, "order": "request", "method": "tools/list"})
    spy.client(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    assert spy.live.order("send", {"n": 4, "order": "request", "method": "tools/list"})


def test_a_response_to_an_injected_request_never_reaches_the_host(path: Path) -> None:
    spy = Spy(path)
    spy.client(call(2))
    assert spy.to_server.bytes_read() == call(2)
    asked = spy.live.order("send", {"n": 3, "order": "request", "method": "tools/list"})
    injected = json.loads(asked["id"])
    sent = json.loads(spy.to_server.bytes_read())
    assert (sent["id"], sent["method"]) == (injected, "tools/list")
    spy.server(call(1, "theirs") + result(injected) + result(2))
    assert spy.to_client.bytes_read() == call(1, "theirs") + result(2)
    ((viewer, event),) = [told for told in spy.told if told[1]["event"] == "answer"]
    assert viewer == "send"
    assert (event["n"], event["message"]) == (3, json.loads(result(injected)))
    frames = [(entry["from"], entry.get("by"), entry.get("to")) for entry in spy.entries() if "msg" in entry]
    assert frames == [
        ("client", None, None),
        ("client", "mcpspy", None),
        ("server", None, None),
        ("server", None, "mcpspy"),
        ("server", None, None),
    ]
    assert not spy.to_client.is_diverted()


def test_the_text_of_an_injected_request_reaches_the_server_byte_for_byte(path: Path) -> None:
    spy = Spy(path)
    spy.client(call(2))
    spy.to_server.bytes_read()
    text = '{"method":"x", "params":{"n":1E5,\n"n":1e400}, "id":%s}'
    asked = spy.live.order("send", {"n": 3, "order": "request", "text": text % 7})
    assert spy.to_server.bytes_read().decode() == (text % asked["id"]).replace("\n", " ") + "\n"


def test_nothing_is_injected_into_the_middle_of_a_line(path: Path) -> None:
    spy = Spy(path)
    spy.client(call(1) + call(2)[:10])
    spy.live.order("send", {"order": "notify", "method": "notifications/x"})
    assert spy.to_server.bytes_read() == call(1) + call(2)[:10]
    spy.client(call(2)[10:] + call(3)[:5])
    end = call(2)[10:] + b'{"jsonrpc":"2.0","method":"notifications/x"}\n'
    assert spy.to_server.bytes_read() == end + call(3)[:5]
    assert not spy.to_server.is_diverted()
    spy.client(call(3)[5:])
    assert [entry["msg"].get("id") for entry in spy.entries() if "msg" in entry] == [1, None, 2, 3]


def test_a_late_viewer_finds_an_interceptor_that_knows_earlier_messages(path: Path) -> None:
    spy = Spy(path)
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    spy.client(
        json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}).encode()
    )
    spy.client(b"\n" + call(2))
    spy.live.order("send", {"order": "request", "method": "tools/list"})
    assert json.loads(spy.to_server.out.splitlines()[-1])["params"]["_meta"] == meta
    spy.live.order("tui", {"order": "hold", "query": "tool:echo"})
    spy.server(result(2))
    assert [event["id"] for event in spy.events("held")] == ["2"]


@pytest.mark.parametrize("moment", ["process", "run_due", "execute", "viewer_left", "end"])
def test_a_bug_in_the_interceptor_costs_the_rules_and_never_the_traffic(
    path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], moment: str
) -> None:
    spy = Spy(path, flags=["tool:drop => drop", "tool:late => delay 1h"])
    spy.live.order("tui", {"order": "hold", "query": "tool:held"})
    spy.client(call(1, "held") + call(2, "held") + call(9, "late"))

    def breaks(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(Interceptor, moment, breaks)
    expected = call(1, "held") + call(2, "held") + call(9, "late")
    if moment == "process":
        spy.client(call(3) + call(4, "drop"))
        expected += call(3) + call(4, "drop")
    elif moment == "run_due":
        monkeypatch.setattr(interception, "monotonic", lambda: 1e12)
        spy.live.wake()
    elif moment == "execute":
        with pytest.raises(CommandError, match="a bug in mcpspy: ZeroDivisionError: oh"):
            spy.live.order("tui", {"order": "list"})
    elif moment == "viewer_left":
        spy.live.viewer_left("tui")
    else:
        spy.live.finish()
    assert spy.to_server.bytes_read() == expected
    assert not spy.to_server.is_diverted()
    out, err = capfd.readouterr()
    assert out == ""
    assert err == (
        "mcpspy: interception stopped by a bug in mcpspy: ZeroDivisionError: oh; traffic continues without it\n"
    )
    assert [entry["note"] for entry in spy.entries() if "note" in entry][-1] == "error"
    with pytest.raises(CommandError, match="stopped by a bug"):
        spy.live.order("tui", {"order": "list"})
    spy.client(call(5, "drop"))
    assert spy.to_server.bytes_read() == call(5, "drop")


def test_decisions_before_a_bug_remain(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spy = Spy(path, flags=["tool:drop => drop"])
    spy.live.order("tui", {"order": "hold", "query": "tool:held"})
    takes = Interceptor.process

    def breaks_at_once(interceptor: Interceptor, at: float, side: str, data: bytes) -> Any:
        if b'"bug"' in data:
            raise ZeroDivisionError
        return takes(interceptor, at, side, data)

    monkeypatch.setattr(Interceptor, "process", breaks_at_once)
    spy.client(call(1, "drop") + call(2, "held") + call(3) + call(4, "bug") + call(5, "drop"))
    assert spy.to_server.bytes_read() == call(3) + call(2, "held") + call(4, "bug") + call(5, "drop")
    spy.live.finish()
    assert spy.to_server.bytes_read() == b""


def test_decisions_are_executed_if_the_recording_fails(path: Path) -> None:
    spy = Spy(path, flags=["tool:bad => drop"])
    spy.recorder.broke(RuntimeError("oh"))
    spy.written = None
    spy.client(call(1, "bad") + call(2))
    assert spy.to_server.bytes_read() == call(2)


def test_viewers_can_inject_messages_without_a_recording_too() -> None:
    spy = Spy()
    assert spy.live.hello()["file"] is None
    assert len(spy.live.session) == 8
    asked = spy.live.order("send", {"order": "request", "method": "ping"})
    spy.server(result(json.loads(asked["id"])) + result(1))
    assert spy.to_client.bytes_read() == result(1)


NOISE = b"DEBUG: 3 stations\n\n{'a': 1}\n[INFO] ready [x]\n{oops}\n\xff\n"


@pytest.mark.parametrize(("noise", "kept"), [("pass", NOISE), ("drop", b""), (STDERR, b"")])
def test_noise_is_passed_dropped_or_put_on_stderr(path: Path, noise: str, kept: bytes) -> None:
    spy = Spy(path, noise=noise)
    messages = [
        b'{"id":1,"result":{}}\r\n',
        b"[1,2]\n",
        b'{"x":123456789012345678901234567890,"y":"\\ud800"}\n',
    ]
    spy.server(messages[0] + NOISE + messages[1] + messages[2] + b"half")
    half = b"half" if noise == "pass" else b""
    if spy.to_client.is_diverted():
        spy.to_client.end()
    assert spy.to_client.out == messages[0] + kept + messages[1] + messages[2] + half
    assert spy.stderr.out == (NOISE + b"half\n" if noise == STDERR else b"")
    spy.client(NOISE)
    assert spy.to_server.out == NOISE
    assert not spy.to_server.is_diverted()
    if noise != "pass":
        assert spy.written is not None
        found = spy.written()
        assert (
            found.count(b'"to":"mcpspy"') == found.count(b'"note":"noise","did":"%b"' % noise.encode()) == 7
        )


@pytest.mark.parametrize("unfinished", [b'{"id":2}', b'{"id":2} \r', b" [1]"])
def test_a_message_without_a_line_end_reaches_the_host_at_the_end(path: Path, unfinished: bytes) -> None:
    spy = Spy(path, noise="drop")
    spy.server(b'{"id":1}\n' + unfinished)
    assert spy.to_client.out == b'{"id":1}\n'
    spy.to_client.end()
    assert spy.to_client.out == b'{"id":1}\n' + unfinished


def test_mcpspy_reads_nothing_from_a_peer_that_does_not_read_injected_responses(path: Path) -> None:
    result = '{"x":"' + "y" * 300_000 + '"}'
    spy = Spy(path, flags=[f"tool:echo => respond {result}"])
    spy.to_client.is_read = False
    for number in range(3):
        spy.client(call(number))
    assert spy.to_server.waited_for() == []
    spy.client(call(3))
    assert spy.to_server.waited_for() == [spy.to_client]
    spy.to_client.backlog = 0  # The client has read its data.
    spy.client(call(4))
    assert spy.to_server.waited_for() == []


def test_an_injection_into_a_closed_or_unread_pipe_is_refused(path: Path) -> None:
    spy = Spy(path)
    spy.to_server.is_writable = False
    with pytest.raises(CommandError, match="cannot send to the server: its pipe is closed"):
        spy.live.order("send", {"order": "request", "method": "ping"})
    spy.to_client.backlog = 1 << 30
    with pytest.raises(CommandError, match="the client is not reading: 1073741824 bytes are queued"):
        spy.live.order("send", {"order": "notify", "to": "client", "method": "x"})
    assert spy.entries() == []


def test_an_order_that_is_wrong_changes_nothing(path: Path) -> None:
    spy = Spy(path)
    for order in ({"order": "no"}, {"order": "hold", "query": "(("}, {"order": "release", "ticket": 7}):
        with pytest.raises(CommandError):
            spy.live.order("tui", order)
    assert spy.entries() == []
    assert not spy.to_server.is_diverted()


def test_a_session_describes_itself_to_viewers(path: Path) -> None:
    spy = Spy(path)
    hello = spy.live.hello()
    assert hello["session"] == spy.recorder.id
    assert hello["file"] == str(path)
    assert (hello["name"], hello["transport"], hello["state"]) == ("weather", "stdio", {})
    spy.live.order("tui", {"order": "hold", "query": "tool:x"})
    assert spy.live.hello()["state"]["holds"] == {"tui": "tool:x"}


chunks = st.lists(st.integers(1, 40), min_size=1, max_size=40)


@settings(max_examples=25)
@given(
    chunks, st.lists(st.sampled_from(["hold", "free", "ask"]), max_size=8), st.randoms(use_true_random=False)
)
def test_nothing_that_viewers_do_loses_or_changes_a_message(
    sizes: list[int], orders: list[str], dice: random.Random
) -> None:
    spy = Spy()
    said = b"".join(call(n) if n % 3 else ODD for n in range(12))
    at, left = 0, list(orders)
    while at < len(said):
        size = dice.choice(sizes)
        spy.client(said[at : at + size])
        at += size
        if left and dice.random() < 0.3:
            what = left.pop()
            if what == "ask":
                spy.live.order("tui", {"order": "notify", "method": "ours"})
            else:
                spy.live.order("tui", {"order": "hold", "query": "tool:echo" if what == "hold" else None})
    spy.live.viewer_left("tui")
    if spy.to_server.is_diverted():
        spy.to_server.end()
    lines = [line for line in spy.to_server.out.split(b"\n") if b'"ours"' not in line]
    assert sorted(lines) == sorted(said.split(b"\n"))


def test_a_refused_request_leaves_the_bytes_alone(path: Path) -> None:
    spy = Spy(path)
    spy.client(call(1))
    spy.server(result(1))
    with pytest.raises(CommandError, match="method must be a non-empty string"):
        spy.live.order("tui", {"order": "request", "method": 7})
    assert not spy.to_server.is_diverted()
    assert not spy.live.is_on


def test_calls_of_trusted_tools_pass_as_bytes_until_another_one_is_called(path: Path, tmp_path: Path) -> None:
    lock = tmp_path / "mcp.lock"
    lock.write_text(lock_text(), encoding="utf-8")
    spy = Spy(path, trust=str(lock), on_change="block", name="sample")
    spy.client(call(1) + call(2))
    passed = ODD + call(3) + b"\n" + call(4)
    spy.client(passed)
    spy.server(result(3))
    assert (spy.to_server.bytes_read(), spy.to_client.bytes_read()) == (call(1) + call(2) + passed, result(3))
    for cut in range(1, len(call(5)), 9):
        spy.client(call(5)[:cut])
        spy.client(call(5)[cut:] + call(6, "rm"))
        assert spy.to_server.bytes_read() == call(5)
        assert b"not trusted" in spy.to_client.bytes_read()
    spy.client(call(7) + call(8, "rm") + call(9))
    assert spy.to_server.bytes_read() == call(7) + call(9)
    assert b"not trusted" in spy.to_client.bytes_read()
