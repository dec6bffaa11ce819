"""`run --watch` with a server process that is restarted while a host uses it."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.io.control.client import ControlClient, find_session

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.io.conftest import Processes, Spy, Start

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "host", "version": "1"},
}

ENDS_BY_SIGNAL = """
import os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
os.write(1, b"{}\\n")
os.read(0, 1)
os._exit(1)
"""


class Host:
    """The host of one session, and the plan of its server."""

    def __init__(self, spy: Spy, plan: Path, processes: Processes) -> None:
        self.spy = spy
        self._plan = plan
        self._processes = processes

    def change(self, **plan: Any) -> None:
        """Replace the file as editors do, and wait until the new server runs, or has failed."""
        before = len(self.outcomes)
        new = self._plan.with_suffix(".new")
        new.write_text(json.dumps(plan), encoding="utf-8")
        os.replace(new, self._plan)
        self._processes.eventually(lambda: len(self.outcomes) > before)

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        return [note for note in self.spy.notes("restart") if note["did"] in ("listed", "failed")]

    def send(self, method: str, id_: int | None = None, **params: Any) -> None:
        fields = {
            "jsonrpc": "2.0",
            **({} if id_ is None else {"id": id_}),
            "method": method,
            "params": params,
        }
        self.spy.send(json.dumps(fields).encode() + b"\n")

    def answer(self, id_: Any, **result: Any) -> None:
        self.spy.send(json.dumps({"jsonrpc": "2.0", "id": id_, "result": result}).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        """Return the next message of the server or of mcpspy."""
        line = self.spy.out.line()
        message: dict[str, Any] = json.loads(line if line != b"starting\n" else self.spy.out.line())
        return message

    def begin(self) -> dict[str, Any]:
        self.send("initialize", 0, **INITIALIZE)
        answer = self.hear()
        self.send("notifications/initialized")
        self._processes.eventually(
            lambda: any(b"tools/list" in entry.payload for entry in self.spy.entries() if entry.side)
        )
        return answer


@pytest.fixture
def host(start: Start, tmp_path: Path, processes: Processes) -> Callable[..., Host]:
    """Start `run --watch` around the sample server."""

    def begun(*options: str, **plan: Any) -> Host:
        file = tmp_path / "watched" / "plan.json"
        file.parent.mkdir()
        file.write_text(json.dumps({"tools": ["echo"], **plan}), encoding="utf-8")
        more = ["--record", str(start.recording), "--watch", str(file), *options]
        return Host(start("versioned.py", file, options=more), file, processes)

    return begun


def test_the_host_keeps_its_session_while_servers_change_break_and_return(host: Callable[..., Host]) -> None:
    session = host("--stdout-noise", "drop", "--rule", "tool:refused => error -32000 not now")
    capabilities = session.begin()["result"]["capabilities"]
    assert capabilities == {"tools": {"listChanged": True}}
    session.send("tools/call", 1, name="echo")
    assert session.hear()["result"]["content"][0]["text"] == "['echo']"
    session.send("tools/call", 2, name="hang")
    session.send("tools/call", 3, name="ask")
    assert session.hear()["method"] == "roots/list"
    session.change(tools=["echo", "new"])
    heard = [session.hear() for _ in range(4)]
    assert [(each.get("id"), each.get("method")) for each in heard] == [
        (None, "notifications/cancelled"),
        (2, None),
        (3, None),
        (None, "notifications/tools/list_changed"),
    ]
    assert heard[1]["error"]["message"].endswith("plan.json changed)")
    session.send("tools/call", 4, name="ask")
    asked = session.hear()
    assert asked["id"] != 0
    session.answer(0, roots=["old"])
    session.answer(asked["id"], roots=["new"])
    assert session.hear()["result"]["content"][0]["text"] == '{"roots": ["new"]}'
    session.change(fails="SyntaxError: invalid syntax")
    session.send("tools/call", 5, name="echo")
    assert "SyntaxError: invalid syntax" in session.hear()["error"]["message"]
    session.change(tools=["echo", "new"])
    session.send("tools/call", 6, name="refused")
    assert session.hear()["error"] == {"code": -32000, "message": "not now"}
    session.send("tools/call", 7, name="echo")
    assert session.hear()["id"] == 7
    assert session.spy.finish()[0] == b""
    assert session.spy.wait() == 0
    listed, failed, again = session.outcomes
    assert (listed["notified"], listed["changes"]) == (["tools"], ["gained the tool new"])
    assert failed["text"] == "it ended with exit code 1; on stderr: SyntaxError: invalid syntax"
    assert again == {"did": "listed", "changes": []}
    assert len(session.spy.notes("noise")) == 3
    assert session.spy.notes("exit") == [{"code": 0, "signal": None}]


def test_a_server_that_dies_is_started_again_by_an_order(
    host: Callable[..., Host], processes: Processes
) -> None:
    session = host()
    session.begin()
    session.send("tools/call", 1, name="die")
    assert "it ended with exit code 7; on stderr: Segmentation fault" in str(session.hear())
    with ControlClient(find_session(str(session.spy.recording)), "tester") as viewer:
        assert viewer.hello["restarts"] is True
        viewer.order("restart")
        outcomes = [event["did"] for _, event in zip(range(2), viewer.events(20), strict=False)]
    assert outcomes == ["started", "listed"]
    session.send("tools/call", 2, name="echo")
    assert "result" in session.hear()
    session.spy.finish()
    (started,) = [note for note in session.spy.notes("restart") if note["did"] == "started"]
    assert started == {"did": "started", "viewer": "tester"}


def test_a_program_that_does_not_exist_is_an_error_of_the_request(start: Start, tmp_path: Path) -> None:
    spy = start("/nowhere/server", options=["--record", str(start.recording), "--watch", str(tmp_path)])
    spy.send(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}\n')
    assert b"cannot start /nowhere/server: no such file" in spy.out.line()
    spy.finish()
    assert spy.wait() == 127


def test_a_signal_ends_the_server_and_mcpspy(host: Callable[..., Host], processes: Processes) -> None:
    session = host()
    session.begin()
    family = processes.family(session.spy.pid)
    session.spy.kill(signal.SIGTERM)
    assert session.spy.wait() == 128 + signal.SIGTERM
    processes.gone(*family)
    assert session.spy.notes("signal") == [{"signal": "SIGTERM"}]


def test_the_server_gets_the_signal_before_the_end_of_its_input(start: Start, tmp_path: Path) -> None:
    options = ["--record", str(start.recording), "--watch", str(tmp_path)]
    spy = start(sys.executable, "-c", ENDS_BY_SIGNAL, options=options)
    assert spy.out.line() == b"{}\n"
    spy.kill(signal.SIGTERM)
    assert spy.wait() == 128 + signal.SIGTERM
    assert spy.notes("exit") == [{"code": 9, "signal": None}]


def test_a_path_that_does_not_exist_is_a_usage_error(start: Start, tmp_path: Path) -> None:
    spy = start("versioned.py", "x", options=["--watch", str(tmp_path / "src")])
    _, stderr = spy.finish()
    assert spy.wait() == 2
    assert b"/src: no such file or folder" in stderr
