"""The process of a test reaches only its mock, if the test asks for that."""

from __future__ import annotations

import _socket
import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcpspy.errors import UsageError
from mcpspy.ui.pytest_plugin.fixture import McpRecording
from mcpspy.ui.pytest_plugin.network import NetworkAccess, blocking, read_allowed
from mcpspy.ui.pytest_plugin.options import PluginOptions
from tests.ui.pytest_plugin.conversing import call_over_http
from tests.ui.pytest_plugin.running import Runs
from tests.ui.pytest_plugin.test_options import Request, mark, read

ELSEWHERE = ("192.0.2.1", 80)
"""An address of RFC 5737, which no machine has."""


@pytest.fixture
def listening() -> Iterator[int]:
    """A port of loopback on which something other than the mock listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def access(*allowed: str, is_blocked: bool = True, is_open: bool = False) -> NetworkAccess:
    return NetworkAccess(
        is_blocked=is_blocked,
        is_open=is_open,
        allowed=[read_allowed(text) for text in allowed],
        is_own=lambda address: False,
    )


def by_connect() -> None:
    with socket.socket() as sock:
        sock.connect(ELSEWHERE)


def by_connect_ex() -> None:
    with socket.socket() as sock:
        sock.connect_ex(ELSEWHERE)


def by_c_socket() -> None:
    sock = _socket.socket()
    try:
        sock.connect(ELSEWHERE)
    finally:
        sock.close()


def by_datagram() -> None:
    with socket.socket(type=socket.SOCK_DGRAM) as sock:
        sock.sendto(b"", ELSEWHERE)


def by_asyncio() -> None:
    asyncio.run(asyncio.open_connection(*ELSEWHERE))


@pytest.mark.parametrize("reach", [by_connect, by_connect_ex, by_c_socket, by_datagram, by_asyncio])
def test_addresses_are_refused_and_reported_once(reach: Callable[[], None]) -> None:
    blocked = access()
    with blocking([blocked]):
        for _ in range(2):
            with pytest.raises(PermissionError, match=r"block_network: 192\.0\.2\.1:80 is not the mock"):
                reach()
    assert blocked.report() == (
        "mcpspy: block_network: the test tried to reach 192.0.2.1:80, which is not its mock "
        "(use mcp_recording.url, or allowed_hosts)"
    )
    assert blocked.report() == ""


def test_names_are_not_looked_up_but_addresses_and_localhost_are() -> None:
    blocked = access()
    with blocking([blocked]):
        for lookup in (
            lambda: socket.getaddrinfo("api.example.com", 443),
            lambda: socket.gethostbyname("api.example.com"),
            lambda: socket.create_connection(("api.example.com", 443)),
        ):
            with pytest.raises(PermissionError, match=r"api\.example\.com is not the mock"):
                lookup()
        assert socket.getaddrinfo("localhost", 80)
        assert socket.getaddrinfo("192.0.2.1", 80)
        assert socket.getaddrinfo(None, 80)
    assert "tried to reach api.example.com," in blocked.report()


def test_other_ports_of_loopback_are_refused_unless_they_are_allowed(listening: int) -> None:
    with blocking([access()]), pytest.raises(PermissionError, match=f"localhost:{listening}"):
        socket.create_connection(("127.0.0.1", listening))
    allowed = access(f"localhost:{listening}")
    with blocking([allowed]):
        socket.create_connection(("127.0.0.1", listening)).close()
        first, second = socket.socketpair()
        first.close()
        second.close()
    assert allowed.report() == ""


@pytest.mark.parametrize("others", [[access(is_open=True)], [access(is_blocked=False, is_open=True)]])
def test_nothing_is_blocked_while_a_server_is_recorded_or_after_the_test(
    others: list[NetworkAccess], listening: int
) -> None:
    with blocking([access(), *others]):
        socket.create_connection(("127.0.0.1", listening)).close()
    socket.create_connection(("127.0.0.1", listening)).close()


def test_the_mock_of_the_test_is_reached_by_any_name_of_loopback(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text('[{"tool": "add", "result": "three"}]', encoding="utf-8")
    options = PluginOptions(
        test="test_a",
        path=tmp_path / "x.jsonl",
        mode="none",
        fixtures=(tmp_path / "answers.json",),
        block_network=True,
    )
    test = McpRecording(options, tmp_path / "run")
    with blocking([test.access]):
        assert call_over_http(test.url, ("add", {})) == ["three"]
        assert call_over_http(test.url.replace("127.0.0.1", "localhost"), ("add", {})) == ["three"]
        test.has_passed = True
        assert test.finish() == ""


SUITE = """
import socket

import pytest
from conversing import call_over_http

pytestmark = pytest.mark.mcp_recording(fixtures=["answers.json"], block_network=True)


def test_that_catches_the_error(mcp_recording):
    call_over_http(mcp_recording.url, ("add", {}))
    try:
        socket.create_connection(("192.0.2.1", 80))
    except OSError:
        pass


def test_that_fails(mcp_recording):
    socket.create_connection(("192.0.2.2", 80))


def test_that_reaches_only_the_mock(mcp_recording):
    assert call_over_http(mcp_recording.url, ("add", {})) == ["three"]


@pytest.fixture
def client(mcp_recording):
    yield
    with pytest.raises(PermissionError):
        socket.create_connection(("192.0.2.3", 80))


def test_whose_fixture_is_blocked(client):
    pass
"""


def test_a_blocked_connection_fails_its_test_in_one_line(tmp_path: Path) -> None:
    runs = Runs(tmp_path, SUITE)
    (tmp_path / "answers.json").write_text('[{"tool": "add", "result": "three"}]', encoding="utf-8")
    output = runs.pytest()
    assert "2 failed, 2 passed, 1 error in" in output, output
    line = "mcpspy: block_network: the test tried to reach {}:80, which is not its mock (use"
    caught = output.partition("_ test_that_catches_the_error _")[2].partition("_ test_that_fails _")[0]
    assert caught.strip("_ \n").startswith(line.format("192.0.2.1"))
    assert caught.strip("_ \n").count("\n") == 0, "without a traceback"
    assert line.format("192.0.2.2") in output.partition("Captured mcpspy call")[2]
    assert line.format("192.0.2.3") in output
    assert "in _audit" not in output, "the traceback ends in the code under test"


def test_the_options_are_of_the_marker_and_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = mark(fixtures=["a.json"], block_network=True, allowed_hosts=["127.0.0.1:5432"])
    options = read(Request(tmp_path, marked, mcpspy_allowed_hosts=["192.0.2.1:80"]))
    assert options.block_network
    assert options.allowed_hosts == (("192.0.2.1", 80), ("localhost", 5432))
    unblocked = mark(fixtures=["a.json"], block_network=False)
    assert not read(Request(tmp_path, unblocked, mcpspy_block_network=True)).block_network
    with pytest.raises(UsageError, match=r"allowed_hosts db:5432: db is not an IP address"):
        read(Request(tmp_path, mark(fixtures=["a.json"], allowed_hosts=["db:5432"])))
    monkeypatch.setattr("mcpspy.ui.pytest_plugin.options.SEES_ASYNCIO", False)
    with pytest.raises(UsageError, match="block_network: not available on Windows"):
        read(Request(tmp_path, marked))
