"""A stream of the mock, written to a client."""

from __future__ import annotations

import json

import pytest

from mcpspy.io.mock import http_messages
from tests.core.mock.talking import Talk, modern
from tests.io.mock.speaking import spoken

pytestmark = pytest.mark.timeout(60)


async def test_an_answer_that_takes_long_becomes_a_stream_that_is_kept_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_messages, "PATIENCE", 0.02)
    talk = Talk().client(id=1, method="tools/call", params={"name": "slow", "_meta": modern()})
    talk.server(id=1, result={"said": "done", "resultType": "complete"})
    async with spoken(talk, speed=5.0) as mock:
        headers = {"Mcp_Method": "tools/call", "Mcp_Name": "slow", "MCP_Protocol_Version": "2026-07-28"}
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "slow", "_meta": modern()},
        }
        async with await mock.send(json.dumps(body).encode(), **headers) as response:
            said = (await response.read()).decode()
        assert said.startswith(": keepalive\n\n")
        assert json.loads(said.splitlines()[-2].removeprefix("data: "))["result"]["said"] == "done"
        assert "id: " not in said
