"""Unix sockets as the listener and as the way to the server."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import TYPE_CHECKING

import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.network.listener import listening
from tests.io.http_spy import PING, PONG

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform == "win32", reason="Python has no Unix sockets on Windows"),
]


class Pong(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def address_string(self) -> str:
        return "client"

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        assert self.rfile.read(int(self.headers["Content-Length"])) == PING
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(PONG)))
        self.end_headers()
        self.wfile.write(PONG)


class UnixClient(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(os.fspath(self._path))


@contextmanager
def serving(path: Path) -> Iterator[None]:
    with ThreadingUnixStreamServer(os.fspath(path), Pong) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield
        server.shutdown()


def test_a_call_passes_through_two_unix_sockets(tmp_path: Path) -> None:
    here, there, recording = tmp_path / "proxy.sock", tmp_path / "server.sock", tmp_path / "r.jsonl"
    command = [sys.executable, "-m", "mcpspy", "http", "--upstream", "http://localhost/mcp"]
    options = ["--unix-socket", f"{there}", "--listen", f"unix:{here}", "--record", f"{recording}"]
    with serving(there), subprocess.Popen([*command, *options], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        banner = process.stderr.readline().decode()
        assert banner == f"mcpspy: http://localhost/mcp on unix:{here} -> http://localhost/mcp\n"
        assert stat.S_IMODE(here.stat().st_mode) == 0o600
        client = UnixClient(here)
        for _ in range(2):
            client.request("POST", "/mcp", PING, {"Content-Type": "application/json"})
            assert client.getresponse().read() == PONG
        client.close()
        process.terminate()
        assert process.wait(30) == 0
    assert not here.exists()
    entries = [json.loads(line) for line in recording.read_bytes().splitlines()]
    assert [entry["from"] for entry in entries if "msg" in entry] == ["client", "server"] * 2


def test_the_socket_of_a_killed_process_is_replaced_and_that_of_a_live_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "proxy.sock"
    for _ in range(2):
        listening(f"unix:{path}", 0, "-").close()
    with listening(f"unix:{path}", 0, "-"), pytest.raises(CannotStart, match="Address already in use"):
        listening(f"unix:{path}", 0, "-")
    (tmp_path / "file").write_bytes(b"data")
    with pytest.raises(CannotStart, match="Address already in use"):
        listening(f"unix:{tmp_path}/file", 0, "-")
    assert (tmp_path / "file").read_bytes() == b"data"
