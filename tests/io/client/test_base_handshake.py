"""An injected handshake; `tests/io/bridge/test_bridge.py` and `mock/test_upstream.py` test its use."""

from __future__ import annotations

import json

from mcpspy.io.client.base import INITIALIZE_ID, with_mcpspy_id


def test_the_clients_handshake_gets_a_generated_id_and_is_one_line() -> None:
    said = with_mcpspy_id(b'{"jsonrpc":"2.0",\r\n"id":0,"method":"initialize","params":{"n":1.50}}')
    assert b"\n" not in said
    assert b"1.50" in said
    assert json.loads(said)["id"] == json.loads(INITIALIZE_ID)
