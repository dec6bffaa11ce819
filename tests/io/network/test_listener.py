"""A listening socket until a signal stops it; `tests/io/http/test_proxy.py` and `mock/test_http.py` serve on it."""

from __future__ import annotations

import asyncio
import os
import signal

import aiohttp
import pytest

from mcpspy.errors import CannotStart
from mcpspy.io.http.request import HttpRequest
from mcpspy.io.http.server import accepting
from mcpspy.io.network.listener import listening, origin, stop_on_signals

pytestmark = pytest.mark.timeout(60)


def test_a_taken_port_is_reported_with_the_way_out() -> None:
    with listening("127.0.0.1", 0, "-") as first:
        port = first.getsockname()[1]
        with pytest.raises(CannotStart, match=rf"127.0.0.1:{port}: Address already in use \(take another\)"):
            listening("127.0.0.1", port, "take another")


def test_a_name_that_is_not_an_address_is_reported() -> None:
    with pytest.raises(CannotStart, match=r"cannot listen on no\.such\.host\.invalid:0: "):
        listening("no.such.host.invalid", 0, "-")


def test_an_address_of_ipv6_is_written_in_brackets() -> None:
    with listening("::1", 0, "-") as listener:
        assert origin("::1", listener) == f"http://[::1]:{listener.getsockname()[1]}"


async def test_a_request_under_way_at_the_end_is_cancelled_and_the_port_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcpspy.io.network.listener.GRACE", 0.01)
    arrived, ended = asyncio.Event(), asyncio.Event()

    async def never(_request: HttpRequest) -> None:
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    with listening("127.0.0.1", 0, "-") as listener:
        url = origin("127.0.0.1", listener)
        async with aiohttp.ClientSession() as client:
            async with accepting(never, listener):
                asked = asyncio.ensure_future(client.get(url))
                await arrived.wait()
            assert ended.is_set()
            with pytest.raises(aiohttp.ClientError):
                await asked
    with listening("127.0.0.1", int(url.rpartition(":")[2]), "-"):
        pass


@pytest.mark.skipif(os.name != "posix", reason="signals cannot be sent on Windows")
async def test_both_signals_stop_with_their_number() -> None:
    said: asyncio.Queue[int] = asyncio.Queue()
    stop_on_signals(said.put_nowait)
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)
            assert await said.get() == number
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)
