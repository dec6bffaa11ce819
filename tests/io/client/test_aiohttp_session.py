"""Connections to servers, and the errors when they cannot be reached."""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from mcpspy.errors import CannotStart
from mcpspy.io.client import ServerAddress
from mcpspy.io.client.aiohttp_session import check_reachable, client, reason
from tests.io.forward.conftest import make_pki

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_refused_connection_is_reported_with_the_address_and_a_hint() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        await check_reachable(ServerAddress(f"http://127.0.0.1:{port}/mcp"))

    with pytest.raises(CannotStart) as raised:
        await check_reachable(ServerAddress(f"http://127.0.0.1:{port}/mcp"))
    assert str(raised.value) == (
        f"cannot reach http://127.0.0.1:{port}/mcp: Connection refused (is the server running?)"
    )


async def test_a_server_behind_a_proxy_is_not_looked_for_directly(monkeypatch: pytest.MonkeyPatch) -> None:
    address = ServerAddress("http://server.invalid/mcp")
    with pytest.raises(CannotStart, match=r"cannot reach http://server\.invalid/mcp: "):
        await check_reachable(address)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    await check_reachable(address)


async def test_an_invalid_certificate_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("nothing", encoding="utf-8")
    for path in (tmp_path / "none.pem", tmp_path / "ca.pem"):
        with pytest.raises(CannotStart, match="--cacert takes a PEM file"):
            client(ServerAddress("https://example.org/", cacert=str(path)))


def checks(context: object) -> bool:
    return isinstance(context, ssl.SSLContext) and context.verify_mode is ssl.CERT_REQUIRED


async def test_a_certificate_is_checked_unless_checking_is_off() -> None:
    async with client(ServerAddress("https://example.org/")) as careful:
        assert isinstance(careful.connector, aiohttp.TCPConnector)
        assert checks(careful.connector._ssl)
    async with client(ServerAddress("https://example.org/", insecure=True)) as careless:
        assert isinstance(careless.connector, aiohttp.TCPConnector)
        assert not checks(careless.connector._ssl)


@pytest.mark.parametrize("terse", [False, True])
async def test_a_minimal_private_ca_is_accepted_in_every_python(terse: bool, tmp_path: Path) -> None:
    pki = make_pki(tmp_path, terse=terse)

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="here")

    application = web.Application()
    application.router.add_get("/", answer)
    server = TestServer(application, scheme="https")
    await server.start_server(ssl=pki.server())
    async with server:
        url = str(server.make_url("/"))
        async with (
            client(ServerAddress(url, cacert=str(pki.authority))) as trusting,
            trusting.get(url) as response_headers,
        ):
            assert await response_headers.text() == "here"
        async with client(ServerAddress(url)) as careful:
            with pytest.raises(aiohttp.ClientConnectorCertificateError) as refused:
                await careful.get(url)
            assert reason(refused.value).startswith("its certificate is not trusted: ")


def test_a_reason_is_short() -> None:
    assert reason(aiohttp.ServerDisconnectedError()) == "the server closed the connection"
    assert reason(aiohttp.ClientPayloadError("payload is not completed")) == "payload is not completed"
