"""Names, capabilities and revisions of client and server in all protocol eras."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.protocol.message import Failure, Request, Result, read_frame
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.recording.decode import Frame

P = "io.modelcontextprotocol/"
INFO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}


def request(method: str, **params: Any) -> Request:
    (message,) = read_frame(
        Frame(
            0.0,
            "client",
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode(),
        )
    )
    assert isinstance(message, Request)
    return message


def answer(**members: Any) -> Result | Failure:
    (message,) = read_frame(Frame(0.0, "server", json.dumps({"jsonrpc": "2.0", "id": 1, **members}).encode()))
    assert isinstance(message, Result | Failure)
    return message


def test_a_handshake_introduces_both() -> None:
    peers = Peers()
    peers.add_request(request("initialize", **INFO, clientInfo={"name": "c", "version": "1"}))
    assert (peers.client, peers.revision, peers.is_modern) == (Peer("c", "1"), "2025-06-18", False)
    result = {**INFO, "protocolVersion": "2025-03-26", "serverInfo": {"name": "s"}}
    peers.add_response(answer(result=result), "initialize")
    assert (peers.server, peers.revision) == (Peer("s", ""), "2025-03-26")
    assert peers.server_capabilities == {"tools": {}}


def test_a_modern_request_names_its_client() -> None:
    meta = {P + "protocolVersion": "2026-07-28", P + "clientInfo": {"name": "c", "version": "1"}}
    peers = Peers()
    peers.add_request(request("tools/list", _meta=meta))
    assert (str(peers.client), peers.is_modern) == ("c 1", True)
    peers.add_response(
        answer(result={"_meta": {P + "serverInfo": {"name": "s", "version": "2"}}}), "tools/list"
    )
    assert str(peers.server) == "s 2"


def test_a_refused_introduction_leaves_the_revision_open() -> None:
    peers = Peers()
    peers.add_request(request("server/discover", _meta={P + "protocolVersion": "2026-07-28"}))
    peers.add_response(answer(error={"code": -32601, "message": "no"}), "server/discover")
    assert peers.revision is None


@pytest.mark.parametrize("info", [None, 5, {}, {"name": 5}, {"name": ""}])
def test_peer_info_without_a_name_is_ignored(info: object) -> None:
    peers = Peers()
    peers.add_request(request("initialize", clientInfo=info))
    assert peers.client is None
