"""Settings of mitmproxy that differ from its defaults."""

from __future__ import annotations

import asyncio
import io
import logging
import ssl
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web

from mcpspy.io.forward import mitmproxy
from tests.io.forward.spoken import EVENTS, JSON, PING, PONG

if TYPE_CHECKING:
    from mcpspy.io.forward.ca import CertificateAuthority
    from tests.io.forward.conftest import Pki, Start
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)

MIB = 1 << 20


async def test_a_stream_that_is_silent_for_longer_than_mitmproxy_waits_lives_on(
    spying: Spying, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()

    async def silent(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers=EVENTS)
        await answer.prepare(request)
        await answer.write(b": hello\n\n")
        await go.wait()
        await answer.write(b"data: %s\n\n" % PONG)
        return answer

    async def after(seconds: float) -> bool:
        """Return whether the stream receives its event after the clock jumps by this time."""
        go.clear()
        loop, monotonic, wall = asyncio.get_running_loop(), asyncio.get_running_loop().time, time.time
        async with (
            serving(silent) as server,
            spying() as spy,
            spy.client.post(f"{server}/mcp", data=PING, headers=JSON) as answer,
        ):
            assert await answer.content.readuntil(b"\n\n") == b": hello\n\n"
            with monkeypatch.context() as patch:
                patch.setattr(loop, "time", lambda: monotonic() + seconds)
                patch.setattr(time, "time", lambda: wall() + seconds)
                for _ in range(20):  # Everything that is due is executed here.
                    await asyncio.sleep(0)
                go.set()
                try:
                    return bool(await answer.content.readuntil(b"\n\n"))
                except (aiohttp.ClientError, asyncio.IncompleteReadError):
                    return False

    assert await after(11 * 60)
    # The setting makes the difference: with mitmproxy's default, the stream breaks off.
    monkeypatch.setattr(mitmproxy, "IDLE_TIMEOUT", 600)
    assert not await after(11 * 60)


async def test_a_download_of_200_megabytes_an_upload_and_a_socket_take_no_memory(
    start: Start, serving: Serving, pki: Pki, ca: CertificateAuthority, tmp_path: Path
) -> None:
    piece = b"x" * MIB

    async def pour(request: web.Request) -> web.StreamResponse:
        if request.method == "POST":
            size = 0
            async for data in request.content.iter_any():
                size += len(data)
            return web.Response(text=str(size))
        if "Upgrade" in request.headers:
            socket = web.WebSocketResponse()
            await socket.prepare(request)
            for _ in range(32):
                await socket.send_bytes(piece)
            await socket.close()
            return socket
        is_events = "Accept" in request.headers and "event-stream" in request.headers["Accept"]
        answer = web.StreamResponse(headers=EVENTS if is_events else None)
        await answer.prepare(request)
        for _ in range(32 if is_events else 200):
            await answer.write(b"data: %s\n\n" % piece if is_events else piece)
        return answer

    class Pieces(io.RawIOBase):
        left = 10

        def read(self, size: int = -1) -> bytes:
            self.left -= 1
            return piece if self.left >= 0 else b""

    process = start(
        *("http", "--forward", "--listen", ":0", "--cacert", pki.authority, "--record", f"{tmp_path}/r/")
    )
    assert process.stderr is not None
    said = (await asyncio.to_thread(process.stderr.readline)).decode()
    proxy = said.removeprefix("mcpspy: ").partition(" is a forward proxy; clients must trust ")[0]
    trusting = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(ca.certificate)))
    async with serving(pour) as server, aiohttp.ClientSession(connector=trusting, proxy=proxy) as client:
        async with client.get(server) as answer:
            await answer.content.readexactly(MIB)
            before = peak(process)
            size = MIB
            async for data in answer.content.iter_any():
                size += len(data)
        assert size == 200 * MIB
        async with client.post(server, data=Pieces()) as answer:
            assert await answer.text() == str(10 * MIB)
        async with client.get(server, headers={"Accept": "text/event-stream"}) as answer:
            assert len(await answer.read()) > 32 * MIB
        async with client.ws_connect(server) as socket:
            assert [message.data == piece async for message in socket] == [True] * 32
    assert peak(process) - before < 16 * MIB
    process.terminate()
    _, err = await asyncio.to_thread(process.communicate)
    assert (process.returncode, err) == (0, b"")
    assert not (tmp_path / "r").exists()


def peak(process: subprocess.Popen[bytes]) -> int:
    """Return the peak resident memory of the process, in bytes (Linux)."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


async def test_an_error_of_mitmproxy_is_one_line(spying: Spying, capfd: pytest.CaptureFixture[str]) -> None:
    async with spying():
        logging.getLogger("mitmproxy.proxy").error("two\nlines")
        try:
            raise ValueError("\x1b[31mred")
        except ValueError:
            logging.getLogger("mitmproxy.addons").exception("Addon error")
        logging.getLogger("mitmproxy.proxy").warning("not shown")
    assert capfd.readouterr().err == (
        "mcpspy: mitmproxy: 'two\\nlines'\nmcpspy: mitmproxy: 'ValueError: \\x1b[31mred'\n"
    )
