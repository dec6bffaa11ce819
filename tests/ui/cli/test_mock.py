"""`mcpspy mock`: its options, its exit codes, and its report at the end."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mcpspy.io.stdio.base import RunOptions
from mcpspy.ui.cli.main import main, parse

Make = Callable[..., Path]


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


def call(number: int, tool: str = "echo", **arguments: Any) -> bytes:
    return line(id=number, method="tools/call", params={"name": tool, "arguments": arguments})


@pytest.fixture
def recording(make_recording: Make) -> Path:
    return make_recording(
        [
            ("client", call(1, n=1)),
            ("server", line(id=1, result={"said": "first"})),
            ("client", call(2, n=1)),
            ("server", line(id=2, result={"said": "second"})),
            ("client", call(3, "other")),
            ("server", line(id=3, result={"said": "other"})),
        ]
    )


def played(recording: Path, *arguments: str, sent: tuple[bytes, ...]) -> tuple[list[Any], list[str], int]:
    """Return the result or error code of each call, the lines on stderr, and the exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "mock", str(recording), *arguments],
        input=b"".join(each + b"\n" for each in sent),
        capture_output=True,
        timeout=30,
    )
    answers = [json.loads(each) for each in done.stdout.splitlines()]
    results = [each["result"]["said"] if "result" in each else each["error"]["code"] for each in answers]
    return results, done.stderr.decode().splitlines(), done.returncode


def test_the_mock_answers_as_recorded_and_prints_nothing(recording: Path) -> None:
    sent = (call(7, n=1), call(8, n=1), call(9, n=1))
    assert played(recording, sent=sent) == (["first", "second", "second"], [], 0)


@pytest.mark.parametrize(
    ("options", "results"),
    [
        ((), [-32603, -32603]),
        (("--on-miss", "method-not-found"), [-32601, -32601]),
        (("--match", "lenient"), ["first", -32603]),
        (("--match", "nearest"), ["first", -32603]),
        (("--match", "tool"), ["first", -32603]),
        (("--match", "method"), ["first", "second"]),
        (("--on-miss", "nearest"), ["first", -32603]),
        (("--ignore-path", "/params/arguments/n"), ["first", -32603]),
        (("--ignore-path", "/params"), ["first", "second"]),
    ],
)
def test_options_choose_how_requests_match(
    options: tuple[str, ...], results: list[Any], recording: Path
) -> None:
    assert played(recording, *options, sent=(call(1, n=2), call(2, "third")))[0] == results


def test_a_used_up_answer_is_an_error_if_one_wants_it(recording: Path) -> None:
    results, lines, code = played(
        recording, "--on-exhausted", "error", sent=(call(1, "other"), call(2, "other"))
    )
    assert results == ["other", -32603]
    assert lines == ["mcpspy: every recorded answer is used up: tools/call other"]
    assert code == 0


def test_a_miss_is_a_line_on_stderr(recording: Path) -> None:
    _, (warning,), code = played(recording, sent=(call(1, n=2),))
    assert warning.startswith("mcpspy: not recorded: tools/call echo; nearest: ")
    assert "tools/call echo differs at /params/arguments/n" in warning
    assert code == 0


def test_strict_lists_misses_and_what_was_never_requested(recording: Path) -> None:
    _, lines, code = played(recording, "--strict", sent=(call(1, n=1), call(2, n=2)))
    assert lines[1:] == [
        "mcpspy: strict: not recorded: tools/call echo",
        f"mcpspy: strict: never sent: tools/call echo (request 1 of {recording.name})",
        f"mcpspy: strict: never sent: tools/call other (request 2 of {recording.name})",
    ]
    assert code == 1


def test_strict_counts_a_request_that_got_the_nearest_response(recording: Path) -> None:
    results, lines, code = played(
        recording, "--strict", "--on-miss", "nearest", sent=(call(1, n=2), call(2, "other"))
    )
    assert results == ["first", "other"]
    assert lines[0].endswith("differs at /params/arguments/n: recorded 1, sent 2; playing the nearest")
    assert "mcpspy: strict: not recorded: tools/call echo" in lines
    assert code == 1


def test_strict_lets_the_recorded_conversation_pass(recording: Path) -> None:
    sent = (call(1, n=1), call(2, n=1), call(3, "other"))
    assert played(recording, "--strict", sent=sent) == (["first", "second", "other"], [], 0)


def test_names_sent_by_a_client_are_sanitized(recording: Path) -> None:
    _, (warning,), _ = played(recording, sent=(call(1, "\x1b[31m"),))
    assert "\\x1b[31m" in warning


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ["--ignore-path", "params/a"],
            "mock: --ignore-path params/a: a JSON pointer must begin with / (use /params/",
        ),
        (
            ["--ignore-path", "/id"],
            "mock: --ignore-path /id: only pointers below /params are compared (use /",
        ),
    ],
)
def test_a_pointer_to_nothing_that_is_compared_is_refused(
    options: list[str], why: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mock", str(recording), *options]) == 2
    assert capsys.readouterr().err.startswith(f"mcpspy: {why}")


@pytest.mark.parametrize("speed", ["fast", "-1", "nan", "inf"])
def test_a_speed_that_is_none_is_refused(
    speed: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mock", str(recording), f"--speed={speed}"]) == 2
    assert f"mock: --speed {speed}: not a speed" in capsys.readouterr().err


def test_a_recording_without_a_server_is_one_line(make_recording: Make) -> None:
    path = make_recording([("client", call(1))])
    results, lines, code = played(path, sent=())
    assert (results, code) == ([], 2)
    assert lines == [f"mcpspy: {path}: contains no messages from a server (did its command start?)"]


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mock", str(tmp_path / "none.jsonl")]) == 2
    assert "no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            ["--on-miss", "forward"],
            "--on-miss forward requires one server (use --upstream URL, or -- COMMAND at the end)",
        ),
        (
            ["--on-miss", "forward", "--upstream", "http://a", "--", "b"],
            "--upstream and -- COMMAND exclude each other",
        ),
        (["--on-miss", "forward", "--upstream", "nowhere"], "mock: --upstream nowhere: not a server URL"),
        (["--on-miss", "forward", "--upstream", "http://a", "--header", "x"], "--header: not a valid header"),
        (["--on-miss", "forward", "--header-env", "a=B", "--", "b"], "--header-env requires --upstream"),
        (["--on-miss", "forward", "--header", "a: b", "--", "b"], "--header requires --upstream"),
        (["--record", "x.jsonl"], "--record requires --on-miss forward"),
        (["--", "server"], "-- COMMAND requires --on-miss forward"),
        (["--upstream", "http://a"], "--upstream requires --on-miss forward"),
        (["--http", "nowhere"], "mock: --http nowhere: not a valid port"),
        (["--listen", "nowhere"], "mock: --listen nowhere: not a valid address"),
        (["--listen", "1", "--http", "2"], "mock: --http and --listen exclude each other"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], why: str, recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mock", str(recording), *options]) == 2
    assert why in capsys.readouterr().err


def test_a_taken_port_is_one_line(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["mock", str(recording), "--listen", f"127.0.0.1:{port}"]) == 3
    assert f"cannot listen on 127.0.0.1:{port}: " in capsys.readouterr().err


SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"said": "the server's"}}), flush=True)
"""


def test_unrecorded_requests_are_forwarded_to_the_server_and_recorded_separately(
    recording: Path, tmp_path: Path
) -> None:
    learned = tmp_path / "learned.jsonl"
    forward = ("--on-miss", "forward", "--record", str(learned), "--", sys.executable, "-c", SERVER)
    sent = (call(1, n=1), call(2, n=2))
    results, (warning,), code = played(recording, *forward, sent=sent)
    assert (results, code) == (["first", "the server's"], 0)
    assert warning == "mcpspy: not recorded: tools/call echo; forwarded to the server"
    # Both recordings are of one server without a name; the commands differ.
    more = (*sent, call(3, "other"), call(4, n=1))
    assert played(recording, str(learned), "--merge", "--strict", sent=more) == (
        ["first", "the server's", "other", "second"],
        [],
        0,
    )


def test_over_http_strict_speaks_for_all_clients_together(recording: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpspy", "mock", str(recording), "--listen", ":0", "--strict"],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        assert process.stderr is not None
        url = process.stderr.readline().split()[1]
        for tool, arguments in (("echo", {"n": 1}), ("nothing", {}), ("echo", {"n": 1})):
            session = _post(url, id=0, method="initialize", params={"protocolVersion": "2025-11-25"})[0]
            _post(url, session, id=1, method="tools/call", params={"name": tool, "arguments": arguments})
        process.send_signal(signal.SIGTERM)
        sent = process.stderr.read().splitlines()
    assert process.returncode == 1
    # Each client received the first response; the second request and `other` were never sent.
    assert [line.partition(" (")[0] for line in sent if "strict" in line] == [
        "mcpspy: strict: not recorded: tools/call nothing",
        "mcpspy: strict: never sent: tools/call echo",
        "mcpspy: strict: never sent: tools/call other",
    ]


LONG = 200
"""Exchanges of a recording of which a part is read while the mock serves."""


def incomplete_recording(make_recording: Make, exchanges: int) -> Path:
    said = [("client", call(1, n=1)), ("server", line(id=1, result={"said": "x" * 2000}))]
    return make_recording(said * exchanges, torn=b'{"t":')


@pytest.mark.parametrize("exchanges", [1, LONG])
def test_over_http_warnings_about_the_recording_and_the_address_are_printed(
    exchanges: int, make_recording: Make
) -> None:
    path = incomplete_recording(make_recording, exchanges)
    with subprocess.Popen(
        [sys.executable, "-m", "mcpspy", "mock", str(path), "--http", "0.0.0.0:0"],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        exposed, *others = (process.stderr.readline() for _ in range(3))
        process.send_signal(signal.SIGTERM)

    assert exposed == (
        "mcpspy: warning: listening on 0.0.0.0: other machines can read the recording through mcpspy\n"
    )
    url, incomplete = sorted(others, key=lambda text: "incomplete" in text)
    assert url.startswith("mcpspy: http://")
    assert incomplete == f"mcpspy: {path}: the last line is incomplete (5 bytes, skipped)\n"


def test_over_http_long_recordings_of_two_servers_are_refused(make_recording: Make) -> None:
    path = incomplete_recording(make_recording, LONG)
    other = path.with_name("other.jsonl")
    other.write_bytes(path.read_bytes().replace(b'["tested"', b'["another"'))
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", "mock", str(path), str(other), "--http", "0"],
        capture_output=True,
        timeout=30,
    )

    assert done.returncode == 2
    assert b"other.jsonl of another --x (use --merge to serve them as one server)\n" in done.stderr


def test_over_http_strict_reports_that_no_client_came(recording: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpspy", "mock", str(recording), "--listen", ":0", "--strict"],
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        assert process.stderr is not None
        assert process.stderr.readline().split()[1].startswith("http://")
        process.send_signal(signal.SIGTERM)
        sent = process.stderr.read().splitlines()
    assert process.returncode == 1
    assert [line.partition(" (")[0] for line in sent] == [
        "mcpspy: strict: never sent: tools/call echo",
        "mcpspy: strict: never sent: tools/call echo",
        "mcpspy: strict: never sent: tools/call other",
    ]


def _post(url: str, session: str = "", **members: Any) -> tuple[str, Any]:
    headers = {"Content-Type": "application/json", **({"Mcp-Session-Id": session} if session else {})}
    request = urllib.request.Request(url, line(**members), headers)
    with urllib.request.urlopen(request, timeout=20) as response:
        return response.headers.get("Mcp-Session-Id", ""), json.load(response)


def test_scripts_see_the_messages_and_the_exit_code_stays(recording: Path, tmp_path: Path) -> None:
    script = tmp_path / "refuse.py"
    script.write_text(
        "def request(exchange):\n    if exchange.tool == 'other':\n"
        "        exchange.answer(error={'code': 7, 'message': 'no'})\n",
        encoding="utf-8",
    )
    results, lines, code = played(
        recording, "--strict", "--script", str(script), sent=(call(1, n=1), call(2, "other"))
    )

    assert (sorted(map(str, results)), code) == (["7", "first"], 1)
    assert "never sent: tools/call other" in lines[-1]


def test_the_mock_behind_scripts_gets_all_other_options(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`mcpspy run` gets the same command without the options of scripts."""
    started: list[RunOptions] = []

    def run(options: RunOptions) -> NoReturn:
        started.append(options)
        raise SystemExit(0)

    monkeypatch.setattr("mcpspy.io.stdio.run.run", run)
    script = tmp_path / "script.py"
    script.write_text("def request(exchange): pass\n", encoding="utf-8")
    options = "--match lenient --ignore-path /params/a --ignore-path /params/b --speed 0.5 --strict --on-miss forward".split()
    scripted = ["--script", str(script), "--script-option", "a=1", "--script-timeout", "1s", "--reload"]
    server = ["--", "server", "--port", "1"]
    with pytest.raises(SystemExit):
        main(["mock", str(recording), *options, *scripted, *server])

    (chosen,) = started
    words = chosen.command[chosen.command.index("mock") + 1 :]
    assert vars(parse("mock", words)[1]) == vars(parse("mock", [str(recording), *options, *server])[1])
    assert (chosen.recording, chosen.name) == (False, recording.stem)
    assert chosen.interception.scripts.values == {"a": "1"}


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--script", "nothing.py"], "--script nothing.py: No such file or directory"),
        (["--reload"], "--reload requires --script"),
        (["--http", "0", "--script", "nothing.py"], "--script nothing.py: No such file or directory"),
    ],
)
def test_wrong_scripts_are_refused_before_the_mock_serves(
    options: list[str], why: str, recording: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["mock", str(recording), *options]) == (2 if options == ["--reload"] else 3)
    assert why in capfd.readouterr().err
