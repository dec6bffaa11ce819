"""Viewers of `mcpspy run`, on the poll loop and on threads, with real processes."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

if sys.platform == "win32":
    pytest.skip("signals and descriptors of POSIX", allow_module_level=True)

from mcpspy.io.control.client import ControlClient, find_session
from tests.io.stdio.test_run import BUSY, FORBIDDEN, THREE_PIPES
from tests.io.stdio.test_windows import ON_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.io.conftest import Processes, Spy, Start

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

on_one_pump = pytest.mark.parametrize("run", ["poll"], indirect=True)
"""Tests of code that both loops share."""

MB = 1 << 20

VIEWER = """
import sys
from mcpspy.io.control.client import ControlClient, find_session
with ControlClient(find_session(sys.argv[1]), "tui") as visit:
    visit.order("hold", query=sys.argv[2])
    print("holding", flush=True)
    for event in visit.events():
        print(event["event"], flush=True)
"""


@pytest.fixture(params=["poll", "threads"])
def run(request: pytest.FixtureRequest, start: Start, runtime: Path) -> Callable[..., Spy]:
    """Start mcpspy around a command, on either loop."""

    def start_one(*command: object, **more: Any) -> Spy:
        if request.param == "threads":
            more["interpreter"] = ["-c", ON_THREADS]
        return start(*command, **more)

    return start_one


@pytest.fixture
def viewer(processes: Processes, runtime: Path) -> Callable[[Spy], ControlClient]:
    """Connect to a session as soon as that is possible."""

    def connect_one(spy: Spy) -> ControlClient:
        processes.eventually(lambda: list(runtime.glob("*.sock")))
        return ControlClient(find_session(spy.recording), "tui")

    return connect_one


def call(number: int, method: str = "m") -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"%b"}\n' % (number, method.encode())


def options(spy_recording: Path, *more: str) -> list[str]:
    return ["--record", str(spy_recording), *more]


def test_a_session_can_be_reached_once_it_is_quiet_and_no_more_when_it_has_ended(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient], runtime: Path
) -> None:
    spy = run("echo.py", 7)
    spy.send(call(1))
    assert spy.out.line() == call(1)
    with viewer(spy) as session:
        assert session.hello["file"] == str(spy.recording)
        assert session.hello["pid"] == spy.pid
        (socket,) = runtime.iterdir()
        assert socket.stat().st_mode & 0o777 == 0o600
        assert spy.finish() == (b"", b"")
        assert [event["event"] for event in session.events(20)] == ["end"]
    assert spy.wait() == 7
    assert list(runtime.iterdir()) == []


@linux_only
def test_a_session_that_waits_for_viewers_imports_nothing_heavy_and_does_nothing(
    start: Start, processes: Processes, runtime: Path
) -> None:
    spy = start("echo.py", interpreter=["-X", "importtime", "-m", "mcpspy"])
    spy.send(call(1))
    assert spy.out.line() == call(1)
    processes.eventually(lambda: list(runtime.glob("*.sock")))

    def switches() -> str:
        with open(f"/proc/{spy.pid}/status", encoding="ascii") as file:
            return "".join(line for line in file if "ctxt_switches" in line)

    def stays_asleep() -> bool:
        before = switches()
        spy.stays(0.4)
        return switches() == before

    # On a busy machine, the loop may still be on its way into poll() at the first look.
    processes.eventually(stays_asleep)
    _, err = spy.finish()
    imported = [line.rpartition("|")[2].strip() for line in err.decode().splitlines()]
    assert imported.index("mcpspy.io.stdio.poll_loop") < imported.index("mcpspy.io.control.socket")
    before_quiet = imported[: imported.index("mcpspy.io.control.server_poll")]
    assert {name.partition(".")[0] for name in before_quiet} & FORBIDDEN == set()
    assert "mcpspy.core.intercept.interceptor" not in imported


@on_one_pump
@pytest.mark.parametrize("why", ["too long", "accessible to other users"])
def test_a_socket_that_cannot_be_created_is_one_line_and_changes_nothing_else(
    run: Callable[..., Spy], runtime: Path, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    if why == "too long":
        monkeypatch.setenv("MCPSPY_RUNTIME", str(runtime / ("x" * 120)))
    else:
        runtime.chmod(0o755)
    spy = run("echo.py")
    line = spy.err.line().decode()
    assert line.startswith("mcpspy: viewers cannot connect to this session: ")
    assert why in line
    assert spy.finish(call(1)) == (call(1), b"")
    assert spy.wait() == 0


def test_messages_held_by_a_killed_viewer_are_released_within_a_second(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient]
) -> None:
    spy = run("echo.py")
    viewer(spy).close()
    process = subprocess.Popen(
        [sys.executable, "-c", VIEWER, str(spy.recording), "method:m from:client"], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"holding\n"
    spy.send(call(1) + call(2, "passes"))
    assert process.stdout.readline() == b"held\n"
    assert spy.out.line() == call(2, "passes")
    assert not spy.out.is_ready(0.05)
    process.send_signal(signal.SIGKILL)
    began = time.monotonic()
    assert spy.out.line() == call(1)
    assert time.monotonic() - began < BUSY
    process.wait(20)
    process.stdout.close()
    spy.finish()
    assert [note["why"] for note in spy.notes("rule") if note["action"] == "release"] == ["viewer left"]


def test_held_messages_are_forwarded_in_order_when_the_host_closes_stdin(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient]
) -> None:
    spy = run("echo.py", 7)
    with viewer(spy) as session:
        session.order("hold", query="method:m from:client")
        calls = [call(n) for n in range(100)]
        spy.send(b"".join(calls) + b'{"half"')
        assert len(list(islice(session.events(20), len(calls)))) == len(calls)
        out, err = spy.finish()
    assert (out, err, spy.wait()) == (b"".join(calls) + b'{"half"', b"", 7)
    assert spy.said("client") == spy.said("server") == out
    assert [note["from"] for note in spy.notes("eof")] == ["client", "server"]


@on_one_pump
def test_held_messages_reach_the_host_when_the_server_has_ended(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient]
) -> None:
    spy = run("goodbye.py")
    hello = spy.out.line()
    with viewer(spy) as session:
        session.order("hold", query="is:notification or from:server")
        os.kill(json.loads(hello)["pid"], signal.SIGTERM)
        said = spy.out.rest()
    assert json.loads(said)["got"] == [signal.SIGTERM]
    assert spy.wait() == 3


LEAVES_A_GRANDCHILD = """
read go
sleep 60 &
printf '{"method":"m","pid":%d,"x":"%0200000d"}\\n' $! 7
exit 5
"""


def test_held_messages_reach_a_slow_host_though_a_grandchild_keeps_the_pipe_open(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient], processes: Processes
) -> None:
    spy = run("sh", "-c", LEAVES_A_GRANDCHILD)
    with viewer(spy) as session:
        session.order("hold", query="from:server")
        spy.send(b"go\n")
        assert next(session.events(20))["event"] == "held"
        spy.stays(0.6)  # Longer than LINGER for a grandchild: the host is the one that does not read.
        line = json.loads(spy.out.line())
        os.kill(line["pid"], signal.SIGKILL)
        processes.gone(line["pid"])
        assert len(line["x"]) == 200_000
    assert spy.wait() == 5


@on_one_pump
def test_viewers_and_rules_decide_on_messages_of_a_relay(
    run: Callable[..., Spy], start: Start, viewer: Callable[[Spy], ControlClient], processes: Processes
) -> None:
    rule = 'method:answer => respond {"text":"mcpspy"}'
    spy = run("left_behind.py", "serves", options=options(start.recording, "--rule", rule))
    server = json.loads(spy.out.line())["pid"]
    assert spy.wait() == 0
    with viewer(spy) as session:
        assert session.hello["pid"] != spy.pid
        spy.send(call(1, "answer"))
        assert json.loads(spy.out.line())["result"] == {"text": "mcpspy"}
        session.order("hold", query="method:m from:client")
        spy.send(call(2))
        assert next(session.events(20))["event"] == "held"
        session.order("release", tickets="all")
        assert spy.out.line() == call(2)
        spy.close()
        assert [event["event"] for event in session.events(20)][-1] == "end"
    assert spy.out.rest() == b""
    processes.gone(server)


@on_one_pump
def test_messages_of_the_client_stay_held_when_a_launcher_exits(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient], processes: Processes
) -> None:
    spy = run("sh", "-c", "trap 'exit 0' USR1; exec 3<&0; cat <&3 & echo $!; wait")
    cat = int(spy.out.line())
    with viewer(spy) as session:
        session.order("hold", query="method:m from:client")
        spy.send(call(1))
        events = session.events(20)
        assert next(events)["event"] == "held"
        spy.kill(signal.SIGUSR1)
        assert spy.wait() == 0
        assert not spy.out.is_ready(0.2)
        session.order("release", tickets="all")
        assert spy.out.line() == call(1)
    spy.close()
    assert spy.out.rest() == b""
    processes.gone(cat)


@on_one_pump
@linux_only
def test_a_thousand_held_messages_take_bounded_memory_and_keep_their_order(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient]
) -> None:
    spy = run("echo.py")
    calls = [
        b'{"jsonrpc":"2.0","id":%d,"method":"m","params":{"x":"%b"}}\n' % (n, b"x" * 1000)
        for n in range(1000)
    ]
    with viewer(spy) as session:
        session.order("hold", query="method:m from:client")
        spy.send(b"".join(calls))
        tickets = [event["ticket"] for event in islice(session.events(20), len(calls))]
        assert len(tickets) == len(calls)
        assert spy.peak_memory() < 60 * MB
        session.order("release", tickets=tickets[500:])
        session.order("release", tickets="all")
        assert b"".join(spy.out.line() for _ in calls) == b"".join(calls[500:] + calls[:500])
    assert spy.finish() == (b"", b"")


def test_switched_on_and_off_in_a_flood_not_a_byte_changes(
    run: Callable[..., Spy], viewer: Callable[[Spy], ControlClient]
) -> None:
    dice = random.Random(5)
    kinds = [call(1), b"noise\r\n", b"\xff\n", b'{"x":"%b"}\n' % (b"x" * 5000), b"{oops}\n", b"\n"]
    data = b"".join(dice.choice(kinds) for _ in range(1500)) + b'{"half'
    spy = run("echo.py")
    with viewer(spy) as session:
        got = bytearray()
        at = 0
        while at < len(data):
            step = dice.randrange(1, 40_000)
            spy.send(data[at : at + step])
            at += step
            session.order("hold", query=dice.choice(["method:nothing", None]))
            while spy.out.is_ready():
                got += spy.out.some()
        session.order("hold", query="method:nothing")
        spy.close()
        got += spy.out.rest()
    assert bytes(got) == data
    assert spy.wait() == 0
    assert spy.said("client") == spy.said("server") == data


@linux_only
def test_mcpspy_reads_nothing_from_a_host_that_does_not_read_injected_responses(
    run: Callable[..., Spy], start: Start
) -> None:
    result = '{"text":"' + "y" * 40_000 + '"}'
    spy = run(
        "echo.py", options=options(start.recording, "--no-redact", "--rule", f"method:m => respond {result}")
    )
    padded = b'{"jsonrpc":"2.0","id":%d,"method":"m","params":"%b"}\n'
    calls = b"".join(padded % (n, b"x" * 8000) for n in range(300))
    assert spy.process.stdin is not None
    stdin = spy.process.stdin.fileno()
    os.set_blocking(stdin, False)
    rest = memoryview(calls)
    while select.select([], [stdin], [], 1)[1]:  # Answered all at once, these would be 12 MB of unread data.
        rest = rest[os.write(stdin, rest) :]
    assert len(rest) > MB
    assert spy.peak_memory() < 60 * MB
    answers: list[int] = []
    while len(answers) < 300:
        if rest and select.select([], [stdin], [], 0)[1]:
            rest = rest[os.write(stdin, rest) :]
        if spy.out.is_ready(0.05):
            answers.append(json.loads(spy.out.line())["id"])
    assert answers == list(range(300))
    assert spy.finish() == (b"", b"")


@on_one_pump
def test_with_rules_signals_and_last_words_are_what_they_were(run: Callable[..., Spy], start: Start) -> None:
    spy = run("leave.py", 5, THREE_PIPES, options=options(start.recording, "--rule", "method:x => drop"))
    out = spy.out.rest()
    assert len(out) == THREE_PIPES // 17 * 17 or len(out) == THREE_PIPES
    assert spy.wait() == 5
    assert spy.said("server") == out


@on_one_pump
def test_a_call_that_hangs_is_answered_and_cancelled(run: Callable[..., Spy], start: Start) -> None:
    spy = run("broken.py", options=options(start.recording, "--call-timeout", "100ms", "--slow", "50ms"))
    params = '{"name":"LIFE201","_meta":{"progressToken":1}}'  # The tool that never answers.
    spy.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":%b}\n' % params.encode())
    answer = json.loads(spy.out.line())
    assert (answer["id"], answer["error"]["code"]) == (1, -32001)
    assert "LIFE201" in answer["error"]["message"]
    assert json.loads(spy.out.line()) == {"jsonrpc": "2.0", "id": None, "result": {}}  # To the cancellation.
    spy.finish()
    assert [note["action"] for note in spy.notes("rule")] == ["slow", "timeout"]
    (cancelled,) = [entry.fields["msg"] for entry in spy.entries() if b"cancelled" in entry.payload]
    assert cancelled["params"]["requestId"] == 1


@pytest.mark.parametrize("noise", ["drop", "stderr"])
def test_noise_does_not_reach_the_host(run: Callable[..., Spy], start: Start, noise: str) -> None:
    spy = run("echo.py", options=options(start.recording, "--stdout-noise", noise))
    said = b"DEBUG one\n" + call(1) + b"\xff\xfe\r\n" + call(2) + b"[three]\n"
    out, err = spy.finish(said)
    assert out == call(1) + call(2)
    assert err == (b"DEBUG one\n\xff\xfe\r\n[three]\n" if noise == "stderr" else b"")
    assert spy.notes("noise") == [{"did": noise}] * 3
    assert spy.said("client") == spy.said("server") == said


@pytest.mark.parametrize("noise", ["drop", "stderr"])
@pytest.mark.parametrize("half", [b"Traceback: boo", b'{"jsonrpc":"2.0","id":1,"resu', b"\xff"])
def test_half_a_line_of_noise_at_the_end_does_not_reach_the_host(
    run: Callable[..., Spy], start: Start, noise: str, half: bytes
) -> None:
    spy = run("echo.py", options=options(start.recording, "--stdout-noise", noise))
    out, err = spy.finish(call(1) + half)
    assert (out, err) == (call(1), half + b"\n" if noise == "stderr" else b"")
    assert spy.notes("noise") == [{"did": noise}]
    assert spy.said("server") == call(1) + half


def test_noise_reaches_stderr_after_the_server_has_closed_its_own(
    run: Callable[..., Spy], start: Start
) -> None:
    server = "exec 2>&-; echo {}; read go; echo noise; read go; echo more"
    spy = run("sh", "-c", server, options=options(start.recording, "--stdout-noise", "stderr"))
    assert spy.out.line() == b"{}\n"
    spy.send(b"go\n")
    assert spy.err.line() == b"noise\n"
    assert spy.finish(b"go\n") == (b"", b"more\n")
    assert spy.wait() == 0


@on_one_pump
def test_rules_that_are_wrong_start_no_server(run: Callable[..., Spy], tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nwhen = "tool:x"\ndelay = "soon"\n', encoding="utf-8")
    spy = run("echo.py", options=["--rules", str(rules)])
    out, err = spy.finish()
    assert (out, spy.wait(), err.count(b"\n")) == (b"", 2, 1)
    assert err.startswith(b"mcpspy: ")
    assert b"rules.toml" in err
