"""`mcpspy send`, to a session that responds at once."""

from __future__ import annotations

import json
import os
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.intercept.actions import CommandError
from mcpspy.io.control.server_poll import ThreadedServer
from mcpspy.io.recording.writer import Writer
from mcpspy.ui.cli import send
from mcpspy.ui.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Live:
    """A session whose peer returns `answer`, or does not respond if that is None."""

    def __init__(self, session: str, name: str, folder: Path, file: str | None) -> None:
        self.session = session
        self._hello: dict[str, Any] = {
            "name": name,
            "file": file,
            "folder": str(folder),
            "transport": "stdio",
            "pid": 4711,
            "state": {"held": [{}, {}]},
        }
        self.answer: dict[str, Any] | None = {"jsonrpc": "2.0", "id": "x", "result": {"tools": ["a"]}}
        self.events: list[dict[str, Any]] = []
        """Sent before the response."""
        self.orders: list[dict[str, Any]] = []
        self.tell: Callable[[str | None, dict[str, Any]], None] = lambda _viewer, _event: None

    def listening(self, path: str | None) -> None: ...

    def closing(self) -> None: ...

    def closed(self) -> None: ...

    def hello(self) -> dict[str, Any]:
        return {"session": self.session, **self._hello}

    def order(self, viewer: str, order: dict[str, Any]) -> dict[str, Any]:
        if order["method"] == "refused":
            raise CommandError("the server is not reachable")
        self.orders.append({key: value for key, value in order.items() if key != "n"})
        assert viewer == "send"
        if order["order"] == "notify":
            return {}
        self.tell("send", {"event": "answer", "id": '"other"', "message": {}})
        for event in self.events:
            self.tell("send", event)
        if self.answer is not None:
            self.tell("send", {"event": "answer", "id": '"x"', "seconds": 0.1, **self.answer})
        return {"id": '"x"'}

    def viewer_left(self, viewer: str) -> None:
        pass


@pytest.fixture
def live(runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """A live session, and an older one of another name."""
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path))
    lock = threading.Lock()
    older = Live("deadbeef", "clock", tmp_path, None)
    live = Live("0badcafe", "weather", tmp_path, str(tmp_path / "w.jsonl"))
    header = '{"mcpspy":1,"id":"%s","started":"2026-11-21T08:00:00.000Z","name":"%s"}\n'
    (tmp_path / "w.jsonl").write_text(header % ("0badcafe", "weather"), encoding="utf-8")
    (tmp_path / "e.jsonl").write_text(header % ("0000aaaa", "ended"), encoding="utf-8")
    with lock:
        opened = [ThreadedServer(each, lock) for each in (older, live)]
    os.utime(opened[0].path, (1, 1))
    yield live
    with lock:
        for each in opened:
            each.close()


@pytest.fixture
def answering(live: Live) -> Callable[..., None]:
    """Set the response of the peer."""

    def answers(**message: Any) -> None:
        live.answer = {"message": {"jsonrpc": "2.0", "id": "x", **message}}

    answers(result={"tools": ["a"]})
    return answers


def test_the_answer_is_printed(
    live: Live, answering: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", "last", "tools/list"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"tools": ["a"]}
    assert out.count("\n") > 1
    assert err == ""
    assert live.orders == [{"order": "request", "to": "server", "method": "tools/list"}]


def test_all_of_it_is_printed_in_one_line(answering: Callable[..., None], capfdbinary: Any) -> None:
    answering(result={"n": 10**30, "text": "\ud800"})
    assert main(["send", "weather", "tools/list", "--format", "json"]) == 0
    out = capfdbinary.readouterr().out
    assert out.count(b"\n") == 1
    assert json.loads(out)["result"] == {"n": 10**30, "text": "\ud800"}


@pytest.mark.parametrize("which", ["last", "weather", "0badcafe", "0bad", "FILE"])
def test_a_session_is_found_by_what_it_is_called(
    which: str, live: Live, answering: Callable[..., None], tmp_path: Path
) -> None:
    which = which.replace("FILE", str(tmp_path / "w.jsonl"))
    assert main(["send", which, "ping"]) == 0
    assert len(live.orders) == 1


def test_every_field_is_sent(live: Live, answering: Callable[..., None]) -> None:
    arguments = ["--to", "client", "--stream", "3", "roots/list", "a.b=1"]
    assert main(["send", "last", *arguments]) == 0
    assert live.orders == [
        {"order": "request", "to": "client", "method": "roots/list", "params": {"a": {"b": 1}}, "stream": "3"}
    ]


def test_a_notification_gets_no_response(live: Live, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["send", "last", "notifications/x", "--notify"]) == 0
    assert live.orders == [{"order": "notify", "to": "server", "method": "notifications/x"}]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("answer", "complains"),
    [
        ({"error": {"code": -32601, "message": "no\x1b[31m"}}, True),
        ({"result": {"isError": True, "content": []}}, False),
    ],
)
def test_an_error_is_printed_and_the_exit_code_1(
    answer: dict[str, Any],
    complains: bool,
    answering: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    answering(**answer)
    assert main(["send", "last", "tools/call", "name=x"]) == 1
    out, err = capsys.readouterr()
    assert "\x1b" not in out
    assert ("-32601" in out) == complains
    assert err == ("mcpspy: send: the server returned an error\n" if complains else "")


@pytest.mark.parametrize(
    ("arguments", "code", "why"),
    [
        ([], 2, "send: missing SESSION and METHOD (use mcpspy send last tools/list)"),
        (["last"], 2, "send: missing METHOD"),
        (["last", "--list"], 2, "SESSION and --list exclude each other (use mcpspy send --list)"),
        (["last", "m", "{"], 2, "not JSON"),
        (["last", "tools/call", "{name:x}"], 2, "not JSON"),
        (["last", "tools/call", "arguments={name:x}"], 2, "arguments={name:x}"),
        (["last", "refused"], 2, "the server is not reachable"),
        (["absent", "m"], 2, "no such file or session"),
        (["ended", "m"], 3, "send: ended is not live, its state is died (mcpspy send --list"),
        (["0", "m"], 2, "no such file or session"),
    ],
)
def test_a_message_that_cannot_be_sent_is_reported_in_one_line(
    arguments: list[str], code: int, why: str, live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["send", *arguments]) == code
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err
    assert live.orders == []


def test_an_answer_that_does_not_come_is_not_waited_for_longer_than_asked(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    live.answer = None
    assert main(["send", "last", "m", "--timeout", "0.05"]) == 3
    assert "no response within 0.05 s (use --timeout 300 to wait longer)" in capsys.readouterr().err
    live.answer = {"error": "the session has ended"}
    assert main(["send", "last", "m"]) == 3
    assert "no response: the session has ended" in capsys.readouterr().err


def test_progress_is_printed_on_a_terminal(
    live: Live,
    answering: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = ({"progress": 1, "total": 3, "message": "one\x1b"}, {"progress": 2}, None)
    live.events = [
        {"event": "progress", "id": id_, "message": {"method": "notifications/progress", "params": params}}
        for params in told
        for id_ in ('"x"', '"other"')
    ]
    assert main(["send", "last", "m"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert main(["send", "last", "m"]) == 0
    assert capsys.readouterr().err == "mcpspy: 1/3 one\\x1b\nmcpspy: 2\n"


def test_a_session_that_ends_before_it_answers_is_reported(
    live: Live, capsys: pytest.CaptureFixture[str]
) -> None:
    live.answer, live.events = None, [{"event": "end"}]
    assert main(["send", "last", "m"]) == 3
    assert capsys.readouterr().err == "mcpspy: send: no response: the session has ended\n"


def test_an_id_that_two_sessions_begin_with_is_refused(
    live: Live, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = threading.Lock()
    with lock:
        another = ThreadedServer(Live("0badf00d", "third", tmp_path, None), lock)
    assert main(["send", "0bad", "m"]) == 2
    with lock:
        another.close()
    assert "send: 0bad: 2 live sessions have ids like this (use more characters)" in capsys.readouterr().err
    assert live.orders == []


def test_a_missing_live_session_is_reported(
    runtime: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ["--dir", str(tmp_path)]
    assert main(["send", "last", "m", *folder]) == 3
    said = capsys.readouterr().err
    assert said == f"mcpspy: send: no live session in {tmp_path} (start one with mcpspy run -- COMMAND)\n"
    assert main(["send", "--list", *folder]) == 0
    assert capsys.readouterr().out == f"No session is live in {tmp_path}.\n"


@pytest.mark.parametrize("which", ["last", "weather", "0badcafe", "0bad"])
def test_a_session_of_another_folder_is_reported_and_not_reached(
    which: str, live: Live, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (other := tmp_path / "other").mkdir()
    assert main(["send", which, "ping", "--dir", str(other)]) == 3
    sessions, which = ("2 live sessions", "") if which == "last" else ("1 live session", f" {which}")
    assert capsys.readouterr().err == (
        f"mcpspy: send: no live session{which} in {other}; {sessions} in another folder: use --dir {tmp_path}\n"
    )
    assert live.orders == []


def test_a_recording_of_another_folder_is_reached_by_its_path(
    live: Live, answering: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("MCPSPY_DIR", str(tmp_path / "other"))
    assert main(["send", str(tmp_path / "w.jsonl"), "ping"]) == 0
    assert main(["send", "last", "ping", "--dir", f"{tmp_path}/other/.."]) == 0
    assert len(live.orders) == 2


def test_the_list_has_the_sessions_of_the_folder_and_counts_the_others(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (other := tmp_path / "other").mkdir()
    monkeypatch.setenv("MCPSPY_DIR", str(other))
    for more in ([], ["--format", "json"]):
        assert main(["send", "--list", *more]) == 0
        assert capfd.readouterr() == (
            "",
            f"mcpspy: send: 0 live sessions in {other}; 2 live sessions in another folder: use --dir {tmp_path}\n",
        )


def test_the_live_sessions_are_listed(live: Live, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["send", "--list"]) == 0
    heads, clock, weather = (line.split() for line in capfd.readouterr().out.splitlines())
    assert heads == ["id", "name", "transport", "pid", "held", "recording"]
    assert clock == ["deadbeef", "clock", "stdio", "4711", "2", "not", "recorded"]
    assert weather == ["0badcafe", "weather", "stdio", "4711", "2", str(tmp_path / "w.jsonl")]
    assert main(["send", "--list", "--format", "json"]) == 0
    answering = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [session["session"] for session in answering] == ["deadbeef", "0badcafe"]
    assert answering[1]["socket"].endswith("0badcafe.sock")


def test_a_session_that_cannot_be_reached_is_not_waited_for_because_the_clock_was_set_back(
    runtime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    writer = Writer(str(tmp_path), None, {"name": "weather"}, say=pytest.fail)
    yesterday = time.time() - 86_400
    clock = SimpleNamespace(time=lambda: yesterday, sleep=lambda _: pytest.fail("it waits"))
    monkeypatch.setattr(send, "time", clock)

    assert main(["send", "last", "ping", "--dir", str(tmp_path)]) == 3
    assert "no live session" in capsys.readouterr().err
    assert main(["send", "weather", "ping", "--dir", str(tmp_path)]) == 3
    writer.close()
    assert "send: weather is live, but not reachable (its mcpspy printed" in capsys.readouterr().err
