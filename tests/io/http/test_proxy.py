"""`mcpspy http` as a process: start, end, trusted certificates, memory."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import asynccontextmanager, closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web

from mcpspy.core.protocol.http_headers import Upstream
from mcpspy.io.http.context import THREAD_WRITE_SIZE, ExchangeContext
from mcpspy.io.http.proxy import HttpOptions
from mcpspy.io.http.upstream import UpstreamClient
from mcpspy.io.recording.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

pytestmark = pytest.mark.timeout(60)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}'
AS_JSON = {"Content-Type": "application/json"}
MIB = 1 << 20


def _has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


class Spy:
    """A running `mcpspy http`."""

    def __init__(self, process: subprocess.Popen[bytes], recording: Path) -> None:
        self.process = process
        self.recording = recording
        self.said: list[str] = []
        self.url = ""

    def line(self) -> str:
        """Return the next line of stderr; empty at the end."""
        assert self.process.stderr is not None
        self.said.append(self.process.stderr.readline().decode())
        return self.said[-1]

    def listens(self) -> str:
        """Wait until it reports its address, and return that."""
        while " -> " not in self.line():
            assert self.said[-1], "the process has ended"
        self.url = self.said[-1].removeprefix("mcpspy: ").split(" ")[0]
        return self.url

    def entries(self) -> list[dict[str, Any]]:
        data = self.recording.read_bytes()
        assert data.endswith(b"\n")
        return [json.loads(line) for line in data.splitlines()]

    def notes(self, kind: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries() if entry.get("note") == kind]

    def peak_memory(self) -> int:
        """Return the peak resident memory of the process, in bytes (Linux)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    async def wait(self, bound: float) -> int:
        return await asyncio.to_thread(self.process.wait, bound)


class Start:
    """Starts `mcpspy http`."""

    def __init__(self, folder: Path) -> None:
        self.recording = folder / "recording.jsonl"
        self.started: list[Spy] = []

    def __call__(self, upstream: str, *options: str, listen: str = ":0") -> Spy:
        command = [sys.executable, "-m", "mcpspy", "http", "--upstream", upstream, "--listen", listen]
        environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        process = subprocess.Popen(
            [*command, "--record", str(self.recording), *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        spy = Spy(process, self.recording)
        self.started.append(spy)
        return spy


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start it, as often as a test needs. Everything ends with the test."""
    starter = Start(tmp_path)
    yield starter
    for spy in starter.started:
        spy.process.kill()
        spy.process.wait()
        if spy.process.stderr is not None:
            spy.process.stderr.close()


@asynccontextmanager
async def serving(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
) -> AsyncIterator[str]:
    """Serve with this handler. Return the address of the endpoint."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


async def pong(_: web.Request) -> web.Response:
    return web.Response(body=PONG, content_type="application/json")


async def test_the_url_is_printed_and_works_and_the_header_describes_the_session(start: Start) -> None:
    async with serving(pong) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream, "--name", "weather")
        url = spy.listens()
        assert url.startswith("http://127.0.0.1:")
        assert url.endswith("/mcp")
        assert spy.said == [f"mcpspy: {url} -> {upstream}\n"]
        async with client.post(url, data=PING, headers=AS_JSON) as answer:
            assert await answer.read() == PONG
        header, *entries = spy.entries()
        assert header["mcpspy"] == 1
        assert (header["transport"], header["upstream"], header["listen"], header["name"]) == (
            "http",
            upstream,
            url,
            "weather",
        )
        assert [entry["from"] for entry in entries if "from" in entry] == ["client", "server"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("is_under_way", [False, True])
async def test_a_signal_ends_it_soon_with_the_file_complete(
    start: Start, number: int, is_under_way: bool
) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: " + PONG + b"\n\n")
        await asyncio.Event().wait()
        return response

    async with serving(endless) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream)
        url = spy.listens()
        if is_under_way:
            answer = await client.post(url, data=PING, headers=AS_JSON)
            assert await answer.content.readany() == b"data: " + PONG + b"\n\n"
        spy.process.send_signal(number)
        assert await spy.wait(20) == 0
        assert spy.line() == ""
        last = spy.entries()[-1]
        assert (last["note"], last["code"], last["signal"]) == ("exit", 0, None)
        assert len(spy.notes("http")) == is_under_way
        assert [end["hung_up"] for end in spy.notes("http-end")] == ["mcpspy"] * is_under_way


async def test_killed_it_leaves_what_a_peer_has_seen(start: Start) -> None:
    async with serving(pong) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream)
        async with client.post(spy.listens(), data=PING, headers=AS_JSON) as answer:
            assert await answer.read() == PONG
            spy.process.kill()
        await spy.wait(20)
        assert [entry["msg"]["id"] for entry in spy.entries() if "msg" in entry] == [1, 1]


def test_a_port_that_is_taken_is_one_line_and_exit_code_3(start: Start) -> None:
    first = start("http://127.0.0.1:9/mcp")
    port = first.listens().split(":")[2].split("/")[0]
    start.recording = start.recording.with_name("second.jsonl")
    second = start("http://127.0.0.1:9/mcp", listen=port)
    line = second.line()
    assert line.startswith(f"mcpspy: cannot listen on 127.0.0.1:{port}: ")
    assert second.line() == ""
    assert second.process.wait(30) == 3
    assert not second.recording.exists()


def test_a_listener_for_other_machines_is_warned_of(start: Start) -> None:
    spy = start("http://127.0.0.1:9/mcp", listen="0.0.0.0:0")
    assert spy.line().startswith("mcpspy: warning: listening on 0.0.0.0")
    assert spy.listens().startswith("http://0.0.0.0:")


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no ::1")
async def test_it_listens_on_ipv6(start: Start) -> None:
    async with serving(pong) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream, listen="[::1]:0")
        url = spy.listens()
        assert url.startswith("http://[::1]:")
        assert len(spy.said) == 1  # No warning, because this address is local.
        async with client.post(url, data=PING, headers=AS_JSON) as answer:
            assert await answer.read() == PONG
        assert spy.entries()[0]["listen"] == url


async def test_a_long_session_continues_in_parts(start: Start) -> None:
    async with serving(pong) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream, "--max-size", "2k")
        url = spy.listens()
        for _ in range(20):
            async with client.post(url, data=PING, headers=AS_JSON) as answer:
                assert await answer.read() == PONG
        spy.process.send_signal(signal.SIGTERM)
        assert await spy.wait(20) == 0
    headers, entries = [], []
    while True:
        header, *more = spy.entries()
        headers.append(header)
        entries += more
        if more[-1]["note"] != "part":
            break
        spy.recording = spy.recording.with_name(more[-1]["next"])
    assert len(headers) > 3
    assert {(header["id"], header["transport"], header["listen"]) for header in headers} == {
        (headers[0]["id"], "http", url)
    }
    assert [sum(entry.get("from") == side for entry in entries) for side in ("client", "server")] == [20, 20]
    assert entries[-1]["note"] == "exit"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has a disk that is always full")
async def test_a_full_disk_is_one_line_and_loses_no_traffic(start: Start) -> None:
    start.recording = Path("/dev/full")
    async with serving(pong) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream)
        url = spy.listens()
        for _ in range(20):
            async with client.post(url, data=PING, headers=AS_JSON) as answer:
                assert await answer.read() == PONG
        spy.process.send_signal(signal.SIGTERM)
        assert await spy.wait(20) == 0
        assert spy.line() == ""
    assert [line for line in spy.said if " -> " not in line] == [
        "mcpspy: cannot write /dev/full: No space left on device; traffic continues unrecorded\n",
        "",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="sets the limit of another process")
async def test_the_entries_of_a_time_in_which_the_disk_is_full_are_written_later(start: Start) -> None:
    import resource

    async with serving(pong) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream)
        url = spy.listens()
        count = 0

        async def ask() -> None:
            nonlocal count
            count += 1
            async with client.post(url, data=PING, headers=AS_JSON) as answer:
                assert await answer.read() == PONG

        await ask()
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        full = spy.recording.stat().st_size + 250
        resource.prlimit(spy.process.pid, resource.RLIMIT_FSIZE, (full, hard))
        for _ in range(10):
            await ask()
        assert spy.line().endswith(": File too large; traffic continues unrecorded\n")
        resource.prlimit(spy.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        async with asyncio.timeout(30):
            while len(spy.entries()) < 4 * count:
                await ask()
        assert spy.line().endswith(" again; nothing was lost\n")
        spy.process.send_signal(signal.SIGTERM)
        assert await spy.wait(20) == 0
        assert spy.line() == ""
    assert spy.notes("lost") == []
    assert len(spy.entries()) == 4 * count + 2  # The header and `exit`.


@pytest.mark.parametrize("text", [None, "this is not a certificate"])
def test_a_certificate_file_that_cannot_be_read_is_exit_code_3(
    start: Start, tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    spy = start("https://127.0.0.1:9/mcp", "--cacert", str(file))
    assert spy.line().startswith(f"mcpspy: {file}: ")
    assert spy.line() == ""
    assert spy.process.wait(30) == 3


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a private CA (ca.pem) and a certificate issued by it (server.pem, with its key)."""
    folder = tmp_path_factory.mktemp("authority")
    (folder / "server.ext").write_text(
        "subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n", encoding="ascii"
    )
    (folder / "ca.cnf").write_text(
        "[req]\ndistinguished_name=name\nx509_extensions=ca\nprompt=no\n[name]\nCN=private\n"
        "[ca]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=hash\n",
        encoding="ascii",
    )
    key = "-newkey rsa:2048 -nodes"
    for command in (
        f"req -x509 {key} -config ca.cnf -keyout ca.key -out ca.pem -days 2",
        f"req -new {key} -config ca.cnf -subj /CN=server -keyout server.key -out server.csr",
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile server.ext -days 2 -out server.pem",
    ):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True, timeout=20)
    return folder


class Pong(BaseHTTPRequestHandler):
    """Responds to every message in the same way."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", str(len(PONG)))
        self.end_headers()
        self.wfile.write(PONG)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def serving_tls(authority: Path) -> Iterator[str]:
    """Serve over TLS in a thread. Return the address of the endpoint."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority / "server.pem", authority / "server.key")
    with HTTPServer(("127.0.0.1", 0), Pong) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"https://127.0.0.1:{server.server_port}/mcp"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("option", "status"),
    [("--cacert", 200), ("--insecure", 200), ("", 502)],
    ids=["cacert", "insecure", "neither"],
)
def test_a_certificate_is_trusted_if_its_authority_is(
    start: Start, authority: Path, option: str, status: int
) -> None:
    options = {"--cacert": ["--cacert", str(authority / "ca.pem")], "--insecure": ["--insecure"], "": []}[
        option
    ]
    with serving_tls(authority) as upstream:
        spy = start(upstream, *options)
        client = HTTPConnection(spy.listens().split("/")[2], timeout=20)
        with closing(client):
            client.request("POST", "/mcp", PING, AS_JSON)
            answer = client.getresponse()
            body = answer.read()
            assert answer.status == status
        if status == 200:
            assert body == PONG
        else:
            error = json.loads(body)
            assert error["id"] == 1
            assert "certificate" in error["error"]["message"]
            assert "--cacert" in error["error"]["message"]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
async def test_a_long_message_each_way_is_in_memory_a_few_times_only(start: Start) -> None:
    size = 50 * MIB
    question = b'{"jsonrpc":"2.0","id":1,"method":"x","params":"' + b"q" * size + b'"}'
    answered = b'{"jsonrpc":"2.0","id":1,"result":"' + b"a" * size + b'"}'
    got: list[bytes] = []

    async def long(request: web.Request) -> web.Response:
        got.append(hashlib.sha256(await request.read()).digest())
        return web.Response(body=io.BytesIO(answered), content_type="application/json")

    async with serving(long) as upstream, aiohttp.ClientSession() as client:
        spy = start(upstream)
        async with client.post(spy.listens(), data=io.BytesIO(question), headers=AS_JSON) as answer:
            assert await answer.read() == answered
        assert got == [hashlib.sha256(question).digest()]
        assert spy.peak_memory() <= 3 * size + 60 * MIB
        with spy.recording.open("rb") as file:
            lines = [line.partition(b'"msg":')[2][:-2] for line in file if b'"from":' in line[:60]]
        assert lines == [question, answered]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain"])
async def test_a_client_that_stops_reading_stops_the_server(start: Start, kind: str) -> None:
    event = b'data: {"jsonrpc":"2.0","method":"x","params":"' + b"x" * 65536 + b'"}\n\n'
    stalled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    measured = asyncio.Event()

    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        sent = 0
        try:
            while sent < 500 * MIB:
                await asyncio.wait_for(response.write(event), 0.7)
                sent += len(event)
        except TimeoutError:
            pass
        stalled.set_result(sent)
        await measured.wait()
        if request.transport is not None:  # The rest of its buffer will never be read.
            request.transport.abort()
        return response

    async with serving(flood) as upstream:
        spy = start(upstream)
        host = spy.listens().split("/")[2]
        _, writer = await asyncio.open_connection(*host.split(":"), limit=1024)
        writer.write(f"POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\n{{}}".encode())
        assert await stalled < 60 * MIB
        assert spy.peak_memory() < 120 * MIB
        measured.set()
        writer.transport.abort()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def test_a_client_that_disconnects_during_a_long_write_does_not_split_the_entry(tmp_path: Path) -> None:
    options = HttpOptions(Upstream("http://127.0.0.1:9", "/mcp", "127.0.0.1:9"), "127.0.0.1", 0)
    options.record = str(tmp_path / "recording.jsonl")
    recorder = Recorder(options, {"transport": "http"})
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def lines() -> Iterator[bytes]:
        yield b'{"t":0,"from":"client",'
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(30)
        yield b'"msg":{}}\n'

    context = ExchangeContext(
        options.upstream, recorder, UpstreamClient("http://127.0.0.1:9", ssl.create_default_context())
    )
    writing = asyncio.create_task(context.record(lines(), THREAD_WRITE_SIZE + 1))
    await begun.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    noting = asyncio.create_task(context.note("http-end", {"hung_up": "client"}))
    await asyncio.wait([noting], timeout=0.05)
    go_on.set()
    await noting
    recorder.finish(0, None)
    entries = [json.loads(line) for line in (tmp_path / "recording.jsonl").read_bytes().splitlines()]
    assert [entry.get("from") or entry.get("note") for entry in entries[1:]] == ["client", "http-end", "exit"]
