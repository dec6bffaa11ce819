"""`mcpspy replay` on the command line: its findings, its output and its exit codes."""

from __future__ import annotations

import json
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from mcpspy.ui.cli.main import main
from tests.io.changing import CARRY, command, read
from tests.ui.cli.replays import Ran

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the sample server is POSIX")


CRASHED = """\
mcpspy: stopped: the server ended with exit code 9 before it answered tools/call add; 1 request was not sent
mcpspy: end of the server's stderr:
mcpspy:   out of numbers
"""

GARBLED = """\
mcpspy: {}: no response to initialize within 1 s; its output is not JSON-RPC: Hello, this is no JSON-RPC
"""

DIED = """\
mcpspy: end of the server's stderr:
mcpspy:   first
mcpspy:   last
mcpspy: {}: the server ended with exit code 4 before it answered initialize
"""


def test_the_same_server_gives_the_same_results(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capfd, recorded, "same")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("same: ")


@pytest.mark.parametrize(
    ("how", "found", "complaint"),
    [
        ("lost-tool", "ask", ""),
        ("required", "/inputSchema", ""),
        ("result", '"3" → "4"', ""),
        ("error", "no numbers today", ""),
        (
            "crash",
            "tools/call add",
            CRASHED,
        ),
        ("hang", "tools/call add", "mcpspy: no response to tools/call add within 2 s\n"),
    ],
)
def test_a_server_that_has_changed_is_found_and_what_has_changed_is_named(
    how: str, found: str, complaint: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, how)

    assert ran.code == 1
    assert found in ran.out
    assert "\nchanged: " in ran.out
    assert ran.err.startswith(complaint)
    assert bool(complaint) == bool(ran.err)


@pytest.mark.parametrize(
    ("how", "err"),
    [
        ("mute", "mcpspy: {}: no response to initialize within 1 s\n"),
        (
            "dies",
            DIED,
        ),
        ("garbage", GARBLED),
    ],
)
def test_a_server_that_does_not_start_is_reported_with_its_last_output(
    how: str, err: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(capfd, recorded, how)

    assert ran.code == 3
    assert ran.err == err.format(" ".join(command(how)))


def test_a_part_of_it_is_played_with_what_it_needs(recorded: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ran = Ran(capfd, recorded, "result", "--filter", "tool:slow or tool:ask", "--format", "json")

    assert (ran.code, ran.err) == (0, "")
    document = json.loads(ran.out)
    assert document
    assert not re.search(r"\badd\b", ran.out)


def test_a_session_is_recorded_where_the_options_say(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.jsonl"
    code = main(["replay", str(recorded), "--carry", CARRY, "--record", str(path), "--", *command()])

    assert code == 0
    assert capfd.readouterr().err == f"mcpspy: recorded to {path}\n"
    assert len(read(path).exchanges) == 11


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--no-record", "--", "x", "--upstream"], None),
        ([], "missing the server (use mcpspy replay RECORDING -- COMMAND, or --upstream URL)"),
        (["--upstream", "ftp://x", "--"], "replay: --upstream ftp://x: not a server URL"),
        (["--upstream", "http://x/", "--", "x"], "COMMAND and --upstream exclude each other"),
        (["--upstream", "http://x/", "--header", "nonsense"], "replay: --header: not a valid header"),
        (
            ["--secret", "api_key", "--", "x"],
            "replay: --secret: not a valid secret (use NAME=VARIABLE, e.g. api_key=EXAMPLE_KEY)",
        ),
        (
            ["--secret", "api_key=NOT_SET_AT_ALL", "--", "x"],
            "--secret api_key: environment variable NOT_SET_AT_ALL is not set",
        ),
        (["--header", "A: b", "--", "x"], "--header requires --upstream"),
        (["--header-env", "A=B", "--", "x"], "--header-env requires --upstream"),
        (
            ["--upstream", "http://a", "--header-env", "A=NOT_SET_AT_ALL"],
            "--header-env A: environment variable NOT_SET_AT_ALL is not set",
        ),
        (["--sse", "--", "x"], "--sse requires --upstream"),
        (["--carry", "/params/x", "--", "x"], "--carry /params/x"),
        (["--filter", "tool:", "--", "x"], "--filter"),
        (["--filter", "tool:absent", "--", "x"], "replay: --filter tool:absent: matches no request"),
        (["--update", "--filter", "tool:add", "--", "x"], "--update and --filter exclude each other"),
        (["--update", "--no-record", "--", "x"], "--update and --no-record"),
        (["--update", "--clients", "2", "--", "x"], "--update and --clients"),
    ],
)
def test_invalid_options_are_reported_before_anything_starts(
    options: list[str], why: str | None, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["replay", str(recorded), *options])
    err = capfd.readouterr().err

    assert code == (3 if why is None else 2)  # Words after -- belong to the command, and x is not found.
    assert (why or "cannot start x: not found on PATH") in err


@pytest.mark.parametrize("option", ["--speed=-1", "--speed=x", "--timeout=0", "--repeat=0", "--clients=1.5"])
def test_a_number_that_is_none_is_usage(
    option: str, recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", str(recorded), option, "--", "x"]) == 2
    assert f"mcpspy: replay: {option.replace('=', ' ')}: not a " in capfd.readouterr().err


class _RefusesNotifications(BaseHTTPRequestHandler):
    """A server that responds to requests, and refuses all other messages."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_request = "id" in message
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}) if is_request else "not here"
        self.send_response(200 if is_request else 400)
        self.send_header("Content-Type", "application/json" if is_request else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Print nothing."""


def test_a_notification_that_the_server_refuses_is_a_warning(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorded = tmp_path / "r.jsonl"
    changed, ping = (
        json.dumps({"jsonrpc": "2.0", **message})
        for message in ({"method": "notifications/roots/list_changed"}, {"id": 1, "method": "ping"})
    )
    recorded.write_text(
        '{"mcpspy":1,"id":"0badcafe","started":"2026-11-21T08:00:00.000Z","transport":"http","name":"x"}\n'
        f'{{"t":1.0,"from":"client","stream":"1","http":1,"msg":{changed}}}\n'
        f'{{"t":2.0,"from":"client","stream":"1","http":2,"msg":{ping}}}\n'
        '{"t":2.1,"from":"server","stream":"1","http":2,"msg":{"jsonrpc":"2.0","id":1,"result":{}}}\n',
        encoding="utf-8",
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), _RefusesNotifications) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/mcp"
            code = main(["replay", str(recorded), "--upstream", url, "--no-record"])
        finally:
            server.shutdown()

    assert code == 0
    assert (
        capfd.readouterr().err
        == "mcpspy: the server did not accept a message: HTTP 400 Bad Request: not here\n"
    )


def test_a_run_that_cannot_start_leaves_the_report_of_those_before_it(
    recorded: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = tmp_path / "once"
    once.write_text('#!/bin/sh\nrm "$0" && exec "$@"\n', encoding="utf-8")
    once.chmod(0o755)
    options = ["--carry", CARRY, "--no-record", "--repeat", "3"]

    assert main(["replay", str(recorded), *options, "--", str(once), *command("same")]) == 3

    out, err = capfd.readouterr()
    assert out.startswith("same: ")
    assert err == f"mcpspy: cannot start {once}: no such file\n"


def test_the_same_results_as_in_a_recording_that_lost_entries_are_incomplete(
    recorded: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lost = '{"t":0.001,"note":"lost","entries":2,"since":0.0,"why":"ENOSPC"}'
    lines = recorded.read_text(encoding="utf-8").splitlines()
    recorded.write_text("\n".join([lines[0], lost, *lines[1:]]) + "\n", encoding="utf-8")

    ran = Ran(capfd, recorded, "same")

    assert ran.code == 4
    assert "2 entries were not recorded" in ran.err
