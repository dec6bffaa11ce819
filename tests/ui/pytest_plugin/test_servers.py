"""A recording over HTTP, for one test, in its own thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from mcpspy.core.mock.steering import MockOptions
from mcpspy.errors import UsageError
from mcpspy.io.client import ServerCommand
from mcpspy.io.recording.reader import Recording, RecordingState
from mcpspy.io.recording.redaction import RedactionOptions
from mcpspy.ui.pytest_plugin.cassettes import sessions
from mcpspy.ui.pytest_plugin.servers import MockSettings, ServedEndpoint, real
from tests.ui.pytest_plugin.conversing import call_over_http

if TYPE_CHECKING:
    from tests.ui.conftest import Make, Said

RECEIVED: list[Said] = [
    ("client", b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{}}}'),
    ("server", b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"paid"}]}}'),
]


def mocked(*recordings: Path) -> MockSettings:
    return MockSettings(recordings, (), MockOptions(), None)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "mcp_recording"]


def test_it_listens_on_loopback_until_it_is_closed_and_records_messages(
    make_recording: Make, tmp_path: Path
) -> None:
    serving = ServedEndpoint(mocked(make_recording(RECEIVED)), tmp_path / "played", RedactionOptions())
    assert serving.url.startswith("http://127.0.0.1:")
    assert call_over_http(serving.url, ("pay", {})) == ["paid"]
    assert threads()
    serving.close()

    assert not threads()
    with pytest.raises(OSError, match="refused"):
        urlopen(serving.url, timeout=30)
    (played,) = sessions(tmp_path / "played")
    assert Recording(played).state is RecordingState.ENDED
    assert played.read_text(encoding="utf-8").count("paid") == 1


def test_an_endpoint_forwards_to_a_running_server(make_recording: Make, tmp_path: Path) -> None:
    server = ServedEndpoint(mocked(make_recording(RECEIVED)), tmp_path / "server", RedactionOptions())
    serving = ServedEndpoint(server.url, tmp_path / "played", RedactionOptions())
    assert call_over_http(serving.url, ("pay", {})) == ["paid"]
    serving.close()
    server.close()

    assert Recording(*sessions(tmp_path / "played")).header.upstream == server.url


def test_a_recording_that_cannot_be_served_is_an_error_for_the_caller(
    make_recording: Make, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="so there is nothing to answer"):
        ServedEndpoint(mocked(make_recording([])), tmp_path / "played", RedactionOptions())

    assert not threads()


def test_a_recording_of_http_and_sse_has_its_url(make_recording: Make, tmp_path: Path) -> None:
    path = make_recording(RECEIVED)
    text = path.read_bytes().replace(
        b'"transport":"stdio"', b'"transport":"http","upstream":"http://127.0.0.1:1/sse"', 1
    )
    path.write_bytes(text)
    serving = ServedEndpoint(mocked(path), tmp_path / "played", RedactionOptions())

    assert serving.url.endswith("/sse")
    with urlopen(serving.url, timeout=30) as stream:
        assert stream.readline() == b"event: endpoint\n"
    serving.close()


def test_a_page_of_another_origin_is_refused(make_recording: Make, tmp_path: Path) -> None:
    serving = ServedEndpoint(mocked(make_recording(RECEIVED)), tmp_path / "played", RedactionOptions())
    port = serving.url.rpartition(":")[2].partition("/")[0]
    assert port.isdecimal()
    from urllib.request import Request

    with pytest.raises(HTTPError) as refused:
        urlopen(Request(serving.url, headers={"Origin": "https://example.com"}), timeout=30)
    assert refused.value.code == 403
    refused.value.close()
    serving.close()


def test_the_real_server_is_a_command_or_a_url() -> None:
    command = real(("python", "weather.py"), None, "added/").target
    address = real((), "http://127.0.0.1:1/mcp", "added/").target

    assert command == ServerCommand(["python", "weather.py"])
    assert address[0] == "http://127.0.0.1:1/mcp"
