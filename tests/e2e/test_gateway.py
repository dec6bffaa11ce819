"""A server on stdio, offered over HTTP to a real client: the client gets the same as on stdio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mcpspy.io.gateway.gateway import GatewayOptions, serving_command
from recordings import make
from tests.e2e.test_http import flaws, received

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

CLIENT = "sdk.py --script sdk --mode legacy"


async def test_a_client_over_http_receives_the_same_as_on_stdio_and_everything_is_recorded(
    peers: Peers,
) -> None:
    command = [str(make.PEERS / "venv" / "bin" / "python"), str(make.SDK_SERVER)]
    options = GatewayOptions(command, "127.0.0.1", 0)
    options.record = str(peers.folder / "recorded" / "r.jsonl")
    async with serving_command(options) as url:
        direct, offered = await asyncio.gather(peers.play(CLIENT, *command), peers.play(CLIENT, url))
    assert received(offered).transcript == received(direct).transcript
    assert offered.code == 0
    (read,) = await peers.recorded("recorded")
    assert (read.header.command, read.header.upstream) == (command, url)
    # A client whose stream ends with its session may open another, whose 404 has no id.
    assert flaws(read) <= {"response without an id"}
    assert len(read.exchanges("tools/call")) > 5
    assert read.session.exit is not None
