"""Connections that are decrypted, connections that are not, and the reports about them."""

from __future__ import annotations

import asyncio
import ssl
import warnings
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from mcpspy.io.forward.mitmproxy import MAX_HELD_BODY
from tests.io.forward.spoken import EVENTS, JSON, PING, PONG, heads, pong

if TYPE_CHECKING:
    from tests.io.forward.conftest import Pki
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


async def test_traffic_that_is_not_mcp_is_forwarded_and_not_recorded(
    spying: Spying, serving: Serving
) -> None:
    async def anything(request: web.Request) -> web.StreamResponse:
        if request.path == "/events":
            return web.Response(body=b"data: 1\n\ndata: 2\n\n" * 1000, headers=EVENTS)
        if request.path != "/socket":
            return web.Response(body=await request.read())
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            await socket.send_str(f"{message.data}!")
        return socket

    async with serving(anything) as server, spying() as spy:
        long = b'{"jsonrpc":"2.0","method":"ping","params":{"text":"%s"}}' % (b"x" * 1_100_000)
        assert MAX_HELD_BODY == "1m"
        for body in (b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber"}', b'{"model":"x"}', b"{", long):
            assert await spy.post(f"{server}/rpc", body) == (200, body)
        headers = {"Accept": "text/event-stream"}
        async with spy.client.get(f"{server}/events", headers=headers) as answer:
            assert len(await answer.read()) == 18_000
        async with spy.client.ws_connect(f"{server}/socket") as socket:
            for number in range(100):
                await socket.send_str(str(number))
                assert await socket.receive_str() == f"{number}!"
    assert spy.recorded() == {}


@pytest.mark.parametrize(
    ("options", "is_open"),
    [
        ({}, True),
        ({"allowed": ["LOCAL*"]}, True),
        ({"allowed": ["localhost:*"]}, True),
        ({"allowed": ["*.example"]}, False),
        ({"ignored": ["localhost"]}, False),
        ({"allowed": ["*"], "ignored": ["localhost:*"]}, False),
    ],
)
async def test_only_allowed_hosts_are_decrypted(
    options: dict[str, Any], is_open: bool, spying: Spying, serving: Serving, pki: Pki
) -> None:
    async with serving(pong) as server, spying(**options) as spy:
        url = server.replace("127.0.0.1", "localhost") + "/mcp"
        # A client sees the server's own certificate only if TLS is not decrypted.
        trust = None if is_open else ssl.create_default_context(cafile=str(pki.authority))
        async with spy.client.post(url, data=PING, headers=JSON, ssl=trust or True) as answer:
            assert await answer.read() == PONG
    assert list(spy.recorded()) == ([url] if is_open else [])


async def test_plain_http_of_an_excluded_host_is_forwarded_and_not_recorded(
    spying: Spying, serving: Serving
) -> None:
    async with serving(pong, plain=True) as server, spying(ignored=["127.0.0.1"]) as spy:
        assert await spy.post(f"{server}/mcp", PING) == (200, PONG)
        assert await spy.post(server.replace("127.0.0.1", "localhost") + "/mcp", PING) == (200, PONG)
        assert [url.partition("//")[2].partition(":")[0] for url in spy.recorded()] == ["localhost"]


async def test_a_protocol_that_is_not_http_is_forwarded_through_a_tunnel(spying: Spying) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server, spying() as spy:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", URL(spy.url).port)
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        for data in (b"\x00\xffbinary", b"x" * 1_000_000):
            writer.write(data)
            assert await reader.readexactly(len(data)) == data
        writer.close()
    assert spy.recorded() == {}


async def test_a_client_whose_handshake_fails_is_named_with_the_reason(
    spying: Spying, serving: Serving, capfd: pytest.CaptureFixture[str]
) -> None:
    old = ssl.create_default_context()
    old.set_ciphers("DEFAULT@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    async with serving(pong) as server, spying() as spy:
        url = server.replace("127.0.0.1", "localhost") + "/mcp"
        with pytest.raises(aiohttp.ClientConnectorError):
            await spy.client.post(url, data=PING, headers=JSON, ssl=old)
        error = ""
        async with asyncio.timeout(30):
            while not error:
                await asyncio.sleep(0)
                error = capfd.readouterr().err
    assert error.startswith("mcpspy: localhost: the TLS handshake with a client failed: ")
    assert error.endswith("; its traffic to this host is no longer decrypted\n")
    assert error.count("\n") == 1


async def test_a_client_that_distrusts_the_ca_connects_undecrypted_the_next_time_and_others_do_not(
    spying: Spying, serving: Serving, pki: Pki, capfd: pytest.CaptureFixture[str]
) -> None:
    pinned = ssl.create_default_context(cafile=str(pki.authority))
    pinned.set_ciphers("ECDHE+AESGCM")
    async with serving(pong) as server, spying() as spy:
        url = server.replace("127.0.0.1", "localhost") + "/mcp"
        with pytest.raises(aiohttp.ClientConnectorError):
            await spy.client.post(url, data=PING, headers=JSON, ssl=pinned)
        while True:  # The client's alert is still on its way, and a fast client may be earlier.
            try:
                async with spy.client.post(url, data=PING, headers=JSON, ssl=pinned) as answer:
                    assert await answer.read() == PONG
                    break
            except aiohttp.ClientConnectorError:
                pass
        assert spy.recorded() == {}
        assert capfd.readouterr().err == (
            "mcpspy: localhost: a client does not trust mcpspy's CA (see mcpspy ca); "
            "its traffic to this host is no longer decrypted\n"
        )
        assert await spy.post(url, PING) == (200, PONG)
    assert list(spy.recorded()) == [url]


async def test_a_server_whose_certificate_is_not_trusted_is_named_with_the_reason(
    spying: Spying, serving: Serving, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(pong) as server, spying(cacert=None) as spy:
        for _ in range(2):
            status, body = await spy.post(f"{server}/mcp", b'{"jsonrpc":"2.0","id":"a","method":"ping"}')
            assert status == 502
            assert body.startswith(
                b'{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"mcpspy: cannot'
            )
            assert b"unable to get local issuer certificate" in body or b"self-signed" in body
            async with spy.client.get(f"{server}/page") as answer:
                assert answer.status == 502
    ((_, entries),) = spy.recorded().items()
    assert heads(entries) == [("POST", "/mcp", 502)] * 2
    host = server.removeprefix("https://")
    recording, *lines = capfd.readouterr().err.splitlines()
    assert " recording to " in recording
    # Once each: about the endpoint, and about other traffic of that host.
    assert [line.split(": ")[1] for line in lines] == [host, host.partition(":")[0]]
    assert all("ertificate" in line and "--cacert FILE" in line for line in lines)


async def test_insecure_turns_certificate_checks_off(spying: Spying, serving: Serving) -> None:
    async with serving(pong) as server, spying(cacert=None, insecure=True) as spy:
        assert await spy.post(f"{server}/mcp", PING) == (200, PONG)
        async with spy.client.get(f"{server}/page") as answer:
            assert await answer.read() == PONG
