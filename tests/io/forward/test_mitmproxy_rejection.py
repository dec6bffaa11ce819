"""Requests that are not for a proxy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from mcpspy.io.forward.mitmproxy import is_proxy_request
from tests.io.forward.spoken import JSON, PING, pong

if TYPE_CHECKING:
    from tests.io.forward.spoken import Serving, Spying

pytestmark = pytest.mark.timeout(60)


async def test_a_page_of_another_origin_gets_only_advice(spying: Spying, serving: Serving) -> None:
    async with serving(pong, plain=True) as server, spying() as spy:
        host = server.removeprefix("http://")
        # As after DNS rebinding: the name is foreign, the address is the proxy's.
        async with (
            aiohttp.ClientSession() as browser,
            browser.post(f"{spy.url}/mcp", data=PING, headers={"Host": host} | JSON) as answer,
        ):
            assert (answer.status, "mcpspy exec" in await answer.text()) == (400, True)
    assert spy.recorded() == {}


@pytest.mark.parametrize(
    ("line", "is_for_proxy"),
    [
        (b"CONNECT a:443 HTTP/1.1\r\n", True),
        (b"GET http://a/ HTTP/1.1\r\n", True),
        (b"GET / HTTP/1.1\r\nHost: http://a/", False),
        (b"OPTIONS * HTTP/1.1\r\n", False),
        (b"GE", True),
    ],
)
def test_requests_to_a_proxy_name_a_server(line: bytes, is_for_proxy: bool) -> None:
    assert is_proxy_request(line) is is_for_proxy
