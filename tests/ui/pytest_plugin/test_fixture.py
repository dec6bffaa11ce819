"""The fixture's value with real servers, and the plugin in real runs of pytest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from mcpspy.io.recording.reader import Recording
from mcpspy.ui.pytest_plugin import fixture as module
from mcpspy.ui.pytest_plugin.cassettes import recorded
from mcpspy.ui.pytest_plugin.fixture import McpRecording
from mcpspy.ui.pytest_plugin.options import PluginOptions
from tests.ui.pytest_plugin import conversing
from tests.ui.pytest_plugin.conversing import HELLO, SECONDS, call, call_over_http
from tests.ui.pytest_plugin.running import SERVER, Runs

Begin = Callable[..., McpRecording]


@pytest.fixture
def begin(tmp_path: Path) -> Begin:
    """Begin a test: a new value of the fixture, always for the same recording."""

    def begin(mode: str = "once", *server: str, **options: Any) -> McpRecording:
        fields: dict[str, Any] = {
            "test": "test_a.py::test_a",
            "path": tmp_path / "x.jsonl",
            "mode": mode,
            "server": server,
        }
        return McpRecording(
            PluginOptions(**{**fields, **options}), tmp_path / f"tmp{len(list(tmp_path.iterdir()))}"
        )

    return begin


def end(recording: McpRecording) -> str:
    """End a test that has passed."""
    recording.has_passed = True
    return recording.finish()


def test_mode_once_replays_the_recorded_responses(begin: Begin) -> None:
    first = begin("once", *SERVER)
    assert first.records_all
    responses = call(first.command, ("open", {}), ("add", {"a": 1, "b": 2}))
    assert end(first) == ""
    assert recorded(first.path) == [first.path]

    second_run = begin("once")
    assert not second_run.records_all
    assert call(second_run.command, ("open", {}), ("add", {"a": 1, "b": 2})) == responses
    assert call_over_http(second_run.url, ("open", {})) == responses[:1]
    assert len(second_run.sessions) == 2
    assert second_run.report_unrecorded() == ""
    assert end(second_run) == ""
    assert recorded(first.path) == [first.path]


def test_unrecorded_requests_are_reported_once(begin: Begin) -> None:
    first = begin("once", *SERVER)
    call(first.command, ("add", {"a": 1, "b": 2}))
    end(first)

    second = begin("none", on_exhausted="error")
    add = ("add", {"a": 1, "b": 2})
    refused = call(second.command, add, ("add", {"a": 1, "b": 3}), add)
    assert [text.removeprefix("mcpspy mock: ") for text in refused] == [
        "3",
        "not recorded: tools/call add; nearest: tools/call add differs at /params/arguments/b: recorded 2, sent 3",
        "every recorded answer is used up: tools/call add",
    ]
    report = second.report_unrecorded()
    assert report.startswith("mcpspy: 2 requests without a recorded response in ")
    assert "    /params/arguments/b: recorded 2, sent 3\n" in report
    assert "every recorded answer is used up: tools/call add\n" in report
    assert report.endswith("  pytest --mcpspy-record=new_episodes 'test_a.py::test_a'")
    assert second.report_unrecorded() == ""

    call_over_http(second.url, ("subtract", {}))  # In a fixture that ends later, say.
    report = end(second)
    assert report.startswith("mcpspy: 1 request without a recorded response in ")
    assert "not recorded: tools/call subtract\n" in report


def test_a_strict_test_sends_every_recorded_request(begin: Begin) -> None:
    add, again = ("add", {"a": 1, "b": 2}), ("add", {"a": 2, "b": 2})
    first = begin("once", *SERVER, strict=True)
    call(first.command, add, add, again)
    assert end(first) == ""

    assert end(begin("none")) == ""
    partial = begin("none", strict=True)
    call(partial.command, add)
    assert end(partial).splitlines() == [
        "mcpspy: strict: 2 recorded requests were not sent",
        "  tools/call add (request 2 of x.jsonl)",
        "  tools/call add (request 3 of x.jsonl)",
    ]
    assert len(end(begin("none", strict=True)).splitlines()) == 4

    both = begin("none", strict=True)  # Over two transports, and with several starts of the server.
    call(both.command, add, add)
    call_over_http(both.url, again)
    assert end(both) == ""

    lenient = begin("none", strict=True, ignore=("/params/arguments/a",))
    call(lenient.command, add, again, ("add", {"a": 9, "b": 2}))
    assert end(lenient) == ""

    failed = begin("none", strict=True)
    assert failed.finish() == ""


def test_ignored_params_may_differ_on_both_transports(begin: Begin) -> None:
    first = begin("once", *SERVER)
    call(first.command, ("add", {"a": 1, "b": 2}))
    end(first)

    second = begin("none", ignore=("/params/arguments/b",))
    assert call(second.command, ("add", {"a": 1, "b": 7})) == ["3"]
    assert call_over_http(second.url, ("add", {"a": 1, "b": 8})) == ["3"]
    assert end(second) == ""

    lenient = begin("none", match="lenient")
    assert call(lenient.command, ("add", {"a": 5})) == call_over_http(lenient.url, ("add", {"a": 6})) == ["3"]
    assert end(lenient) == ""


def test_either_transport_adds_new_episodes_and_mode_all_starts_over(begin: Begin) -> None:
    first = begin("new_episodes", *SERVER)
    call(first.command, ("add", {"a": 1, "b": 2}))
    end(first)

    second = begin("new_episodes", *SERVER)
    assert not second.records_all
    assert call(second.command, ("add", {"a": 1, "b": 2}), ("add", {"a": 1, "b": 3})) == ["3", "4"]
    assert call_over_http(second.url, ("add", {"a": 1, "b": 4})) == ["5"]
    assert end(second) == ""
    assert len(recorded(first.path)) == 3

    offline = begin("none")
    asked = [("add", {"a": 1, "b": number}) for number in (2, 3, 4)]
    assert call(offline.command, *asked) == ["3", "4", "5"]
    assert end(offline) == ""

    again = begin("all", *SERVER, "result")
    assert call(again.command, ("add", {"a": 1, "b": 2})) == ["4"]
    assert len(recorded(first.path)) == 3, "until the test has passed"
    assert end(again) == ""
    assert recorded(first.path) == [first.path]


def test_a_server_over_http_is_recorded_by_its_url_and_by_a_command(begin: Begin) -> None:
    first = begin("once", *SERVER)
    call(first.command, ("add", {"a": 1, "b": 2}))
    end(first)
    real = begin("none")

    by_url = begin("all", upstream=real.url)
    assert call_over_http(by_url.url, ("add", {"a": 1, "b": 2})) == ["3"]
    assert end(by_url) == ""
    assert Recording(by_url.path).header.transport == "http"

    by_command = begin("all", upstream=real.url)
    assert call(by_command.command, ("add", {"a": 1, "b": 2})) == ["3"]
    assert end(by_command) == ""
    assert Recording(by_command.path).header.upstream == real.url

    end(real)
    assert call(begin("none").command, ("add", {"a": 1, "b": 2})) == ["3"]


def test_a_command_is_recorded_by_a_url_once_per_client_and_served_on_both_transports(begin: Begin) -> None:
    first = begin("once", *SERVER)
    responses = call_over_http(first.url, ("open", {}), ("add", {"a": 1, "b": 2}))
    call_over_http(first.url, ("subtract", {}))
    assert end(first) == ""
    header = Recording(first.path).header
    assert (header.transport, header.command) == ("stdio", list(SERVER))
    assert len(recorded(first.path)) == 2

    second = begin("once")
    assert call_over_http(second.url, ("open", {}), ("add", {"a": 1, "b": 2})) == responses
    assert call(second.command, ("open", {})) == responses[:1]
    assert second.report_unrecorded() == ""
    assert end(second) == ""


def test_a_command_that_cannot_start_is_an_error_for_its_client(begin: Begin) -> None:
    broken = begin("once", "no-such-server")
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with urlopen(Request(broken.url, json.dumps(hello).encode(), headers), timeout=SECONDS) as response:
        assert json.load(response)["error"]["message"] == (
            "mcpspy: the request to the server failed: cannot start no-such-server: not found on PATH"
        )
        assert "Mcp-Session-Id" not in response.headers
    assert end(broken) == ""
    assert not broken.path.exists()


def test_a_recording_is_not_kept_before_its_server_has_ended(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "END_TIMEOUT", 0.1)
    first = begin("once", *SERVER)
    with subprocess.Popen(first.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n')
        server.stdin.flush()
        assert server.stdout.readline()
        assert "still runs" in end(first)
        server.communicate(timeout=conversing.SECONDS)
    assert recorded(first.path) == []
    assert end(first) == ""
    assert recorded(first.path) == [first.path]


def test_a_client_that_sends_nothing_changes_nothing(begin: Begin) -> None:
    def send_nothing(recording: McpRecording) -> None:
        subprocess.run(recording.command, stdin=subprocess.DEVNULL, timeout=conversing.SECONDS, check=True)

    first = begin("once", *SERVER)
    send_nothing(first)
    assert end(first) == ""
    assert recorded(first.path) == []

    second = begin("once", *SERVER)
    call(second.command, ("add", {"a": 1, "b": 2}))
    assert end(second) == ""
    third = begin("all", *SERVER)
    send_nothing(third)
    assert end(third) == ""
    assert recorded(first.path) == [first.path]


def test_added_episodes_are_redacted_by_the_project_settings(begin: Begin, tmp_path: Path) -> None:
    config = tmp_path / "mcpspy.toml"
    config.write_text('[redact]\nkeys = ["pin"]\n', encoding="utf-8")
    for add, transport in ((1, call), (2, call), (3, call_over_http)):
        recording = begin("new_episodes", *SERVER, config=config)
        server: Any = recording.command if transport is call else recording.url
        transport(server, ("add", {"a": add, "b": 2, "pin": "pin-of-the-user"}))
        assert end(recording) == ""
        assert not any("pin-of-the-user" in path.read_text(encoding="utf-8") for path in recording.sessions)

    files = [path.read_text(encoding="utf-8") for path in recorded(tmp_path / "x.jsonl")]
    assert len(files) == 3
    assert all('"pin": "[redacted:' in text and "pin-of-the-user" not in text for text in files)


def test_the_plugin_imports_nothing_that_pytest_has_not() -> None:
    program = (
        "import pytest, sys; before = set(sys.modules); import mcpspy.ui.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, timeout=30)

    assert done.stdout.split() == [b"mcpspy", b"mcpspy.ui", b"mcpspy.ui.pytest_plugin"]


SUITE = """
import os
import sys
import unittest

import pytest
from conversing import call

NEW = int(os.environ.get("NEW", "2"))
SERVER = [sys.executable, os.environ["SERVER"]]
pytestmark = pytest.mark.mcp_recording(server=SERVER)


def add(recording, b=2):
    return call(recording.command, ("add", {"a": 1, "b": b, "pin": "1234"}))


class TestInAClass:
    @pytest.mark.parametrize("city", ["a/b"])
    def test_of_a_city(self, mcp_recording, city):
        assert add(mcp_recording) == ["3"]


@pytest.mark.mcp_recording("shared.jsonl")
@pytest.mark.parametrize("number", range(2))
def test_of_a_shared_recording(mcp_recording, number):
    assert add(mcp_recording) == ["3"]


def test_that_starts_its_server_twice(mcp_recording):
    assert add(mcp_recording, NEW) == add(mcp_recording, NEW) == ["3"]


class TestOfUnittest(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def _begin(self, mcp_recording):
        self.recording = mcp_recording

    def test_of_unittest(self):
        self.assertEqual(add(self.recording, NEW), ["3"])


@pytest.fixture
def client(mcp_recording):
    yield mcp_recording
    call(mcp_recording.command, ("add", {"a": 0, "b": NEW}))


def test_whose_client_goes_on_in_its_fixture(client):
    pass


def test_that_fails(mcp_recording):
    add(mcp_recording)
    assert False
"""


def test_a_suite_in_two_processes_is_recorded_served_and_fails_for_what_is_new(tmp_path: Path) -> None:
    runs = Runs(tmp_path, SUITE)

    responses = runs.pytest("-n", "2")
    assert "1 failed, 6 passed" in responses, responses
    made = runs.recordings()
    assert sorted(re.sub("-[0-9a-f]{8}", "-…", name) for name in made) == [
        "TestInAClass.test_of_a_city[a-b]-….jsonl",
        "TestOfUnittest.test_of_unittest.jsonl",
        "shared.jsonl",
        "test_that_starts_its_server_twice.2.jsonl",
        "test_that_starts_its_server_twice.jsonl",
        "test_whose_client_goes_on_in_its_fixture.jsonl",
    ]
    assert (
        "not saved as mcp_recordings/test_suite/test_that_fails.jsonl, because the test did not pass"
        in responses
    )
    (kept,) = {Path(path) for path in re.findall(r"^  mcpspy show (\S+)$", responses, re.MULTILINE)}
    assert list(Recording(tmp_path / kept))
    assert all(b'"pin": "[redacted:' in data for name, data in made.items() if "client" not in name)

    responses = runs.pytest("--mcpspy-record=none", SERVER=str(tmp_path / "gone"), NEW="3")
    assert re.search(r"= 2 failed, 4 passed, 2 errors in ", responses), responses
    assert "(create it with pytest --mcpspy-record=once 'test_suite.py::test_that_fails')" in responses
    assert responses.count("    /params/arguments/b: recorded 2, sent 3") == 3
    assert (
        "mcpspy: 2 requests without a recorded response in mcp_recordings/test_suite/test_that_starts"
        in responses
    )
    assert "Captured mcpspy call" in responses, "beside the assertion that failed first"
    assert "/params/arguments/pin" not in responses.replace(
        "differs at /params/arguments/b, /params/arguments/pin", ""
    )
    assert runs.recordings() == made


SHARING = """
import os
import sys

import pytest
from conversing import call

pytestmark = pytest.mark.mcp_recording("shared.jsonl", server=[sys.executable, os.environ["SERVER"]])


@pytest.mark.parametrize("number", range(4))
def test_it(mcp_recording, number):
    assert call(mcp_recording.command, ("add", {"a": number, "b": 1})) == [str(number + 1)]
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_tests_that_share_a_new_recording_lose_none_of_it(tmp_path: Path, workers: str) -> None:
    runs = Runs(tmp_path, SHARING)
    for mode in ("once", "all"):
        made = runs.recordings()
        output = runs.pytest("-n", workers, f"--mcpspy-record={mode}")
        assert "4 passed" in output, output
        assert len(runs.recordings()) == 4
        assert not set(made.values()) & set(runs.recordings().values())
        output = runs.pytest("-n", workers, "--mcpspy-record=none", SERVER="gone")
        assert "4 passed" in output, output
