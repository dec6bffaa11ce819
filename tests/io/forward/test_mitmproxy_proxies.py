"""The environment's own proxies, on the way to a server."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64encode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import aiohttp
import pytest
from yarl import URL

from tests.io.forward.spoken import JSON, PING, PONG, pong

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.io.forward.conftest import Pki
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


class Corporate:
    """A proxy that resolves `localhost.example` and stores its requests."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.targets: list[bytes] = []
        self.shown: list[bytes] = []
        self.url = ""
        self.tasks: set[asyncio.Task[None]] = set()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._take(reader, writer))
        self.tasks.add(task)
        await asyncio.wait([task])
        writer.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b" ", 2)
        self.asked.append(method)
        self.targets.append(target)
        lines = head.lower().split(b"\r\n")
        self.shown += [line for line in lines if line.startswith(b"proxy-authorization")]
        port = target.removeprefix(b"http://").partition(b":")[2].partition(b"/")[0]
        far, away = await asyncio.open_connection("127.0.0.1", int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            away.write(head)
        try:
            await asyncio.gather(_pipe(reader, away), _pipe(far, writer))
        finally:
            away.close()


async def _pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    try:
        while data := await source.read(1 << 16):
            target.write(data)
    except ConnectionError:
        pass
    target.close()


@asynccontextmanager
async def corporate() -> AsyncIterator[Corporate]:
    proxy = Corporate()
    server = await asyncio.start_server(proxy.take, "127.0.0.1", 0)
    proxy.url = f"http://me:secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        for task in proxy.tasks:
            task.cancel()
        await asyncio.gather(*proxy.tasks, return_exceptions=True)


@pytest.mark.parametrize("plain", [True, False], ids=["http", "https"])
@pytest.mark.parametrize("path", ["/mcp", "/page"])
async def test_a_server_is_reached_through_the_proxy_of_the_environment(
    plain: bool, path: str, spying: Spying, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(pong, plain=plain) as server, corporate() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("https_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "direct.example")
        # No certificate has this name; verification is not tested here.
        async with spying(insecure=True) as spy:
            url = server.replace("127.0.0.1", "localhost.example") + path
            body = PING if path == "/mcp" else b"page"
            kind = JSON if path == "/mcp" else {}
            for _ in range(2):
                async with spy.client.post(url, data=body, headers=kind) as answer:
                    assert await answer.read() == PONG
            with pytest.raises(aiohttp.ClientError):
                async with spy.client.get(server.replace("127.0.0.1", "direct.example")) as answer:
                    # 502: the name cannot be resolved.
                    answer.raise_for_status()
    assert proxy.asked
    assert set(proxy.asked) == {b"CONNECT"} if not plain else {b"POST"}
    # The proxy is used only for the server, not for mcpspy's own listener.
    assert all(b"localhost.example" in target for target in proxy.targets)
    secret = b64encode(b"me:secret")
    assert set(proxy.shown) == {b"proxy-authorization: basic " + secret.lower()}
    assert list(spy.recorded()) == ([url] if path == "/mcp" else [])


@pytest.mark.parametrize("line", [b"GET http://[x/ HTTP/1.1", b"CONNECT a:b HTTP/1.1"])
async def test_an_invalid_address_is_refused_with_a_proxy_in_the_environment(
    line: bytes, spying: Spying, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with corporate() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("https_proxy", proxy.url)
        async with spying() as spy:
            reader, writer = await asyncio.open_connection("127.0.0.1", URL(spy.url).port)
            writer.write(line + b"\r\nHost: x\r\n\r\n")
            assert b"HTTP/1.1 400 " in await asyncio.wait_for(reader.read(), 30)
            writer.close()
    assert proxy.asked == []


async def test_an_undecrypted_tunnel_uses_the_proxy_too(
    spying: Spying, serving: Serving, pki: Pki, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(pong) as server, corporate() as proxy:
        monkeypatch.setenv("https_proxy", proxy.url)
        async with spying(ignored=["*"]) as spy:
            trust = ssl.create_default_context(cafile=str(pki.authority))
            trust.check_hostname = False
            url = server.replace("127.0.0.1", "localhost.example")
            async with spy.client.post(f"{url}/mcp", data=PING, headers=JSON, ssl=trust) as answer:
                assert await answer.read() == PONG
    assert proxy.asked == [b"CONNECT"]
