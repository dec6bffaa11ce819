"""Scripts that raise, hang, exit, print and sleep, with real processes: no message is lost or out of order."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"jsonrpc": "2.0", "id": json.loads(line)["id"], "result": {}}), flush=True)
"""

LIMIT = 60
"""Seconds for one session."""


class Played:
    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.err = done.stderr.splitlines()
        self.messages = [json.loads(line) for line in done.stdout.splitlines()]
        self.ids = [message["id"] for message in self.messages if "id" in message]
        recording = folder / "r.jsonl"
        lines = recording.read_text(encoding="utf-8").splitlines() if recording.exists() else []
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in lines[1:]]

    @property
    def notes(self) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry.get("note") == "rule"]

    def sent(self, side: str) -> list[Any]:
        return [entry["msg"]["id"] for entry in self.entries if entry.get("from") == side and "msg" in entry]


INJECTING = """
import mcpspy
async def request(exchange):
    if exchange.id != 0:
        return
    for method in "ping", "refused":
        try:
            print(method, await exchange.session.request(method))
        except mcpspy.McpspyError as error:
            print(error)
    try:
        print("notified", await exchange.session.notify("notifications/tools/list_changed"))
    except mcpspy.McpspyError as error:
        print(error)
"""

REFUSING_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "refused":
        answer = {"error": {"code": -32601, "message": "no such method"}}
    else:
        answer = {"result": {"capabilities": {}, "protocolVersion": "2025-11-25"}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""

HANDSHAKE = (
    '{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    '"clientInfo":{"name":"a","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
)


def play(
    folder: Path, script: str, *options: str, calls: int = 3, server: str = SERVER, before: str = ""
) -> Played:
    """Send calls to a server behind a script, all at once, and close stdin; `before` is sent first."""
    (folder / "script.py").write_text(script, encoding="utf-8")
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{}}}\n'
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mcpspy", "run", "--record", str(folder / "r.jsonl")),
            *(
                "--script",
                str(folder / "script.py"),
                *options,
                "--",
                sys.executable,
                "-I",
                "-S",
                "-c",
                server,
            ),
        ],
        input=before + "".join(call % number for number in range(calls)),
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    return Played(folder, done)


def test_a_script_that_changes_nothing_leaves_no_note(tmp_path: Path) -> None:
    played = play(tmp_path, "def request(exchange): pass\nasync def response(exchange): pass\n")

    assert (played.code, played.err, played.ids, played.notes) == (0, [], [0, 1, 2], [])


def test_a_hook_that_raises_leaves_a_line_and_a_note(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "def request(exchange):\n    if exchange.id == 1:\n        exchange.drop()\n        raise ValueError('a\\nb')\n",
    )

    assert played.ids == [0, 1, 2]
    assert played.err == ["mcpspy: script script.py: request: ValueError: a b (line 4); forwarded unchanged"]
    (note,) = played.notes
    assert (note["action"], note["id"], note["failed"]) == (
        "script",
        "1",
        "request: ValueError: a b (line 4)",
    )


def test_a_failure_names_the_script_that_failed(tmp_path: Path) -> None:
    second = tmp_path / "second.py"
    second.write_text("async def request(exchange): exchange.note('seen')\n", encoding="utf-8")
    played = play(
        tmp_path, "def request(exchange): raise ValueError('no')\n", "--script", str(second), calls=1
    )

    assert played.err == ["mcpspy: script script.py: request: ValueError: no (line 1); forwarded unchanged"]
    assert [note["script"] for note in played.notes] == ["script.py", "second.py"]


def test_an_asynchronous_hook_that_hangs_leaves_a_line_and_a_note(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "import asyncio\nasync def request(exchange):\n    if exchange.id == 1:\n        await asyncio.sleep(99)\n",
        *("--script-timeout", "request=200ms"),
    )

    assert played.ids == [0, 1, 2]
    assert played.err == [
        "mcpspy: script script.py: request: TimeoutError: not done after 0.2 s; forwarded unchanged"
    ]
    assert len(played.notes) == 1


def test_the_failed_script_is_named_once(tmp_path: Path) -> None:
    other = tmp_path / "other.py"
    other.write_text("def request(exchange): exchange.tag('seen')\n", encoding="utf-8")
    played = play(tmp_path, "def session_started(session): 1 / 0\n", "--script", str(other), calls=1)

    assert played.err == [
        "mcpspy: script script.py: session_started: ZeroDivisionError: division by zero (line 1)"
    ]
    assert [note["script"] for note in played.notes] == ["script.py", "other.py"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("os._exit(3)", "exited with code 3"),
        ("import time; time.sleep(99)", "hangs: no decision in time"),
    ],
)
def test_a_process_that_exits_or_hangs_is_started_again(body: str, why: str, tmp_path: Path) -> None:
    marker = tmp_path / "failed"
    played = play(
        tmp_path,
        f"import os\ndef response(exchange):\n    if exchange.id == 1 and not os.path.exists({str(marker)!r}):\n"
        f"        open({str(marker)!r}, 'w').close()\n        {body}\n    exchange.tag('seen')\n",
        *("--script-timeout", "300ms"),
        calls=200,
    )

    assert played.ids == list(range(200))
    (line,) = played.err
    assert line.startswith(f"mcpspy: script script.py: {why}; ")
    assert line.endswith("messages forwarded unchanged; started again")
    (failure,) = [note for note in played.notes if note["action"] == "script"]
    assert failure["failed"] == why
    tags = [note["id"] for note in played.notes if note["action"] == "tag"]
    assert len(tags) + failure["released"] == 200


def test_a_process_that_always_exits_ends_the_script_but_not_the_session(tmp_path: Path) -> None:
    played = play(tmp_path, "import os\ndef request(exchange): os._exit(1)\n", calls=1000)

    assert played.ids == list(range(1000))
    assert len(played.err) == 6
    assert played.err[-1].endswith("traffic continues without it")


def test_a_process_that_ends_before_it_connects_is_noticed_by_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif 'mcpspy.ui.scripts.host' in sys.orig_argv: os._exit(7)\n", encoding="utf-8"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)

    played = play(tmp_path, "def request(exchange): pass\n")

    assert played.ids == [0, 1, 2]
    assert {"exited with code 7" in line for line in played.err} == {True}
    assert played.err[-1].endswith("traffic continues without it")


def test_the_output_of_a_script_goes_to_stderr(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "import os\nprint('loaded')\ndef request(exchange):\n    print(exchange)\n    os.write(1, b'raw\\n')\n"
        "def session_ended(session): print('ended', session.transport)\n",
        calls=1,
    )

    assert played.ids == [0]
    assert played.err == ["loaded", "<mcpspy.LiveExchange tools/call echo: pending>", "raw", "ended stdio"]


def test_a_script_gets_the_results_and_the_errors_of_what_it_injects(tmp_path: Path) -> None:
    played = play(tmp_path, INJECTING, calls=1, server=REFUSING_SERVER, before=HANDSHAKE)

    assert played.ids == [9, 0]
    assert {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"} in played.messages
    assert played.err == [
        "ping {'capabilities': {}, 'protocolVersion': '2025-11-25'}",
        "request refused: no such method",
        "notified None",
    ]


def test_a_hook_that_raises_at_the_start_of_the_session_is_reported(tmp_path: Path) -> None:
    script = "def session_started(session): raise ValueError('early')\ndef request(exchange): pass\n"
    played = play(tmp_path, script, calls=1)

    assert (played.code, played.ids) == (0, [0])
    assert len(played.err) == 1
    assert "session_started: ValueError: early (line 1)" in played.err[0]


@pytest.mark.parametrize(
    ("hook", "error"),
    [
        ("def session_ended(session): 1 / 0", "session_ended: ZeroDivisionError: division by zero (line 2)"),
        ("def session_ended(session): time.sleep(99)", "session_ended: not done after 1 s"),
        ("async def session_ended(session): await asyncio.sleep(99)", "session_ended: not done after 1 s"),
        ("def session_ended(session): os.kill(os.getpid(), signal.SIGSTOP)", ""),
    ],
)
def test_a_hook_that_fails_at_the_end_is_reported_and_the_session_ends(
    hook: str, error: str, tmp_path: Path
) -> None:
    played = play(tmp_path, f"import asyncio, os, signal, time\n{hook}\n", calls=1)

    assert (played.code, played.ids) == (0, [0])
    assert played.err == ([f"mcpspy: script script.py: {error}"] if error else [])


def test_scripts_without_a_control_socket_are_reported_and_traffic_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MCPSPY_RUNTIME", str(tmp_path / "file"))
    played = play(tmp_path, "def request(exchange): exchange.drop()\n")

    assert (played.code, played.ids) == (0, [0, 1, 2])
    viewers, scripts = played.err
    assert viewers.startswith(f"mcpspy: viewers cannot connect to this session: {tmp_path / 'file'}: ")
    assert scripts == (
        "mcpspy: script script.py: cannot run without a control socket; traffic continues without it"
    )


def test_asynchronous_hooks_that_sleep_at_random_keep_the_order_and_lose_nothing(tmp_path: Path) -> None:
    played = play(
        tmp_path,
        "import asyncio, random\nasync def request(exchange): await asyncio.sleep(random.random() / 500)\n"
        "async def response(exchange): await asyncio.sleep(random.random() / 500)\n",
        calls=10_000,
    )

    assert played.ids == list(range(10_000))
    assert (played.err, played.notes) == ([], [])
    assert played.sent("client") == played.sent("server") == list(range(10_000))


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("import nothing_like_it\n", "script.py: not loaded: ModuleNotFoundError: No module named"),
        ("x = 1\n", "script.py: not loaded: defines none of the hooks configure, "),
        (
            "def configure(options): raise KeyError('limit')\n",
            "script.py: configure: KeyError: 'limit' (line 1)",
        ),
    ],
)
def test_a_script_that_cannot_be_loaded_is_reported_on_one_line(
    script: str, line: str, tmp_path: Path
) -> None:
    played = play(tmp_path, script)

    assert played.ids == [0, 1, 2]
    assert len(played.err) == 1
    assert line in played.err[0]


def test_a_script_that_is_not_python_is_refused_before_the_server_starts(tmp_path: Path) -> None:
    played = play(tmp_path, "def request(:\n")

    assert (played.code, played.ids) == (2, [])
    assert played.err == [
        f"mcpspy: run: --script {tmp_path / 'script.py'}: not valid Python: invalid syntax (line 1)"
    ]


def test_a_changed_script_decides_on_the_next_messages(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("def request(exchange): exchange.answer({'from': 'old'})\n", encoding="utf-8")
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}\n'
    command = [
        sys.executable,
        "-m",
        "mcpspy",
        "run",
        "--no-record",
        "--reload",
        "--script",
        str(script),
        "--",
    ]
    with subprocess.Popen(
        [*command, sys.executable, "-I", "-S", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        bufsize=1,
    ) as spy:
        assert spy.stdin is not None
        assert spy.stdout is not None
        assert spy.stderr is not None
        results, lines = [], []
        for text in ("def request(:\n", "def request(exchange): exchange.answer({'from': 'new'})\n", None):
            spy.stdin.write(call)
            results.append(json.loads(spy.stdout.readline())["result"])
            if text is not None:
                script.write_text(text, encoding="utf-8")
                lines.append(spy.stderr.readline().strip())
        spy.stdin.close()

    assert results == [{"from": "old"}, {"from": "old"}, {"from": "new"}]
    assert "script.py: not loaded: SyntaxError: invalid syntax" in lines[0]
    assert lines[1] == "mcpspy: script script.py: reloaded"
