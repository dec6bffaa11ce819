"""The recorded client against its own server, a changed server, and several at once."""

from __future__ import annotations

import json
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from mcpspy.core.recording.decode import Note
from mcpspy.core.replay.plan import plans
from mcpspy.core.replay.player import PlayerOptions
from mcpspy.core.replay.substitution import rule
from mcpspy.core.session.exchange import State
from mcpspy.errors import CannotStart
from mcpspy.io import replay
from mcpspy.io.client import ServerAddress, ServerCommand, stdio
from mcpspy.io.recording.recorder import RecordingTarget
from mcpspy.io.replay import ReplayInterrupted, ReplayOptions, ReplayRun, run
from tests.core.mock.talking import Talk
from tests.io.changing import CARRY, command, patience, read, record
from tests.io.files import CLIENT_FRAME, EXIT, POSIX, SERVER_FRAME, frame, write

if TYPE_CHECKING:
    from pathlib import Path

    from mcpspy.core.session.session import Session


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return read(record(tmp_path_factory.mktemp("recorded") / "changing.jsonl"))


def request_key(recorded: Session, how: str, path: Path | None = None, **more: int) -> ReplayOptions:
    where = RecordingTarget()
    where.recording, where.record = path is not None, str(path)
    options = PlayerOptions(timeout=patience(how), carry=(rule(CARRY),))
    return ReplayOptions(
        ServerCommand(command(how)),
        plans(recorded),
        options,
        where,
        "changing",
        more.get("repeat", 1),
    )


def play(recorded: Session, how: str = "same") -> ReplayRun:
    (played,) = run(request_key(recorded, how))
    return played


def states(played: ReplayRun) -> list[State]:
    return [each.state for each in played.session.exchanges if each.request.side == "client"]


def test_the_recorded_server_gives_the_same_responses_and_sends_the_same_requests(
    recorded: Session, tmp_path: Path
) -> None:
    (played,) = run(request_key(recorded, "same", tmp_path / "new.jsonl"))

    assert states(played) == [State.OK] * 8
    assert (played.warnings, played.stopped, played.unsent, played.failed) == ([], None, 0, None)
    for session in (played.session, read(str(played.path))):
        assert [
            (each.request.method, each.request.subject, each.state, len(each.progress))
            for each in session.exchanges
        ] == [
            (each.request.method, each.request.subject, each.state, len(each.progress))
            for each in recorded.exchanges
        ]
        assert session.exit is not None
        assert session.exit.fields == {"code": 0, "signal": None}
    assert read(str(played.path)).header.name == "changing"  # type: ignore[union-attr]


def test_without_its_rule_a_carried_value_is_the_recorded_one(recorded: Session) -> None:
    bare = request_key(recorded, "same")
    (played,) = run(ReplayOptions(bare.target, bare.plans, PlayerOptions(), bare.where))

    assert states(played)[3] is State.TOOL_ERROR


def test_a_crash_is_reported_with_the_request_and_the_last_output(recorded: Session) -> None:
    played = play(recorded, "crash")

    assert played.stopped == "the server ended with exit code 9 before it answered tools/call add"
    assert (played.unsent, played.failed) == (1, None)
    assert played.last_words == ["out of numbers"]
    assert states(played)[-1] is State.UNANSWERED


def test_a_hanging_call_and_a_hanging_server_are_reported(recorded: Session) -> None:
    played = play(recorded, "hang")

    assert played.warnings == ["no response to tools/call add within 2 s"] * 2
    assert played.stopped is not None
    assert "the server hangs" in played.stopped
    assert states(played)[:-2] == [State.OK] * 6


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("mute", "no response to initialize within 1 s"),
        ("dies", "the server ended with exit code 4 before it answered initialize"),
        (
            "garbage",
            "no response to initialize within 1 s; its output is not JSON-RPC: Hello, this is no JSON-RPC",
        ),
    ],
)
def test_a_server_that_never_answers_initialize_is_a_failure(how: str, why: str, recorded: Session) -> None:
    played = play(recorded, how)

    assert played.failed is not None
    assert played.failed.endswith(why)
    assert command(how)[0] in played.failed
    assert played.last_words == (["first", "last"] if how == "dies" else [])


STOPPED = """
import json, os, signal, sys
signal.alarm(60)
asked = json.loads(os.read(0, 65536).splitlines()[0])
result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
os.write(1, json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode() + b"\\n")
signal.pause()
"""


@POSIX
def test_a_server_that_no_longer_reads_is_reported_after_the_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stdio, "PATIENCE", 0.1)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "x" * 1_000_000}}
    result = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}
    path = write(
        tmp_path / "big.jsonl",
        frame(0.1, "client", CLIENT_FRAME),
        frame(0.2, "server", SERVER_FRAME),
        frame(0.3, "client", call),
        frame(0.4, "server", result),
        EXIT,
    )
    target = ServerCommand([sys.executable, "-I", "-S", "-c", STOPPED])
    where = RecordingTarget()
    where.recording = False

    (played,) = run(ReplayOptions(target, plans(read(path)), PlayerOptions(timeout=0.5), where))

    assert "the server did not accept a message within 0.5 s" in played.warnings
    assert [exchange.state for exchange in played.session.exchanges] == [State.OK, State.UNANSWERED]


class _Refusing(BaseHTTPRequestHandler):
    """Answers `initialize`, and refuses everything else."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_first = asked.get("method") == "initialize"
        answer = {**SERVER_FRAME, "id": asked.get("id")} if is_first else {"error": "out of order"}
        body = json.dumps(answer).encode()
        self.send_response(200 if is_first else 503)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_a_call_that_is_refused_with_an_http_status_fails_with_that_status(recorded: Session) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Refusing) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        bare = request_key(recorded, "same")
        target = ServerAddress(f"http://127.0.0.1:{server.server_port}/mcp")
        (played,) = run(ReplayOptions(target, bare.plans, bare.options, bare.where))
        server.shutdown()
        thread.join()

    calls = [sent for sent in played.sent if sent.about != "initialize"]
    assert calls
    assert {sent.failed for sent in calls} == {'HTTP 503 Service Unavailable: {"error": "out of order"}'}


def test_a_server_that_cannot_be_started_is_an_error_and_a_note(recorded: Session, tmp_path: Path) -> None:
    where = RecordingTarget()
    where.record = str(tmp_path / "new.jsonl")
    with pytest.raises(CannotStart, match="cannot start no-such-command"):
        run(ReplayOptions(ServerCommand(["no-such-command"]), plans(recorded), PlayerOptions(), where))

    (error, _) = (change.what for change in read(tmp_path / "new.jsonl").changes)
    assert isinstance(error, Note)
    assert (error.kind, error.text) == ("error", "cannot start no-such-command: not found on PATH")


def test_a_server_that_will_not_end_is_ended(recorded: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "PATIENCE", 0.1)

    played = play(recorded, "deaf")
    assert states(played) == [State.OK] * 8
    assert played.session.exit is not None
    assert played.session.exit.fields["signal"] == "SIGKILL"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_it_with_what_was_done_until_then(name: str, recorded: Session) -> None:
    with pytest.raises(ReplayInterrupted) as raised:
        run(request_key(recorded, name))

    (played,) = raised.value.played
    assert raised.value.number == signal.Signals[name]
    assert states(played) == [State.OK] * 6 + [State.UNANSWERED]
    assert played.session.exit is not None
    assert (played.unsent, played.failed) == (1, None)


def test_progress_reports_name_the_awaited_message(
    recorded: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "PROGRESS_INTERVAL", 0.1)
    told: list[tuple[str, float]] = []
    bare = request_key(recorded, "hang")
    run(
        ReplayOptions(
            bare.target,
            bare.plans,
            bare.options,
            bare.where,
            watch=lambda what, since: told.append((what, since)),
        )
    )

    waited = [since for what, since in told if what == "tools/call add"]
    assert 0.1 <= waited[0] < waited[1] < 1.0


def test_two_clients_of_one_recording_play_one_after_the_other_each_on_its_own(recorded: Session) -> None:
    talk = Talk()
    for stream, number in (("1", 1), ("4", 4)):
        talk.client(stream, number, id=0, method="initialize", params=recorded.exchanges[0].request.params)
        talk.server(stream, number, id=0, result={"protocolVersion": "2025-11-25"})
    for stream, number in (("4", 5), ("1", 6)):
        call = {"name": "add", "arguments": {"a": 1, "b": number}}
        talk.client(stream, number, id=1, method="tools/call", params=call)
        talk.server(stream, number, id=1, result={})
    talk.session.end()
    where = RecordingTarget()
    where.recording = False
    (played,) = run(ReplayOptions(ServerCommand(command()), plans(talk.session), PlayerOptions(), where))

    assert states(played) == [State.OK] * 4
    assert [each.request.params["arguments"]["b"] for each in played.session.exchanges[1::2]] == [6, 5]
    assert (
        len(
            [
                each
                for each in played.session.changes
                if isinstance(each.what, Note) and each.what.kind == "eof"
            ]
        )
        == 4
    )
