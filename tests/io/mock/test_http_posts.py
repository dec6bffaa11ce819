"""The body of a client's POST, read or refused."""

from __future__ import annotations

import json

import pytest

from mcpspy.io.serving import client as served
from mcpspy.io.serving import mcp_server
from tests.core.mock.talking import Talk, modern
from tests.io.mock.speaking import echo, received, spoken

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize(
    ("data", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"", {}, 400),
        (b"[]", {}, 400),
        (b"42", {}, 400),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', {}, 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Content_Type": "text/plain"}, 415),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Accept": "text/html"}, 406),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Mcp_Session_Id": None}, 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Mcp_Session_Id": "nobody's"}, 404),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"MCP_Protocol_Version": "1999"}, 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Origin": "https://evil.example"}, 403),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Host": "evil.example"}, 403),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Accept": "*/*"}, 200),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Accept": None}, 200),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', {"Origin": "http://localhost:6274"}, 200),
    ],
)
async def test_invalid_and_foreign_requests_are_refused_and_the_session_continues(
    data: bytes, headers: dict[str, str | None], status: int
) -> None:
    async with spoken(echo()) as mock:
        await mock.begin()
        async with await mock.send(data, **headers) as response:
            assert response.status == status
            if status != 200:
                assert "message" in (await received(response))["error"]
        assert await mock.call(1) == "first"


async def test_a_body_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "LARGEST", 1000)
    async with spoken(echo()) as mock, await mock.send(b"[" + b" " * 2000 + b"]") as response:
        assert response.status == 413


async def test_an_answer_that_takes_long_becomes_a_stream_that_is_kept_alive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(served, "KEEPALIVE_SECONDS", 0.02)
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


@pytest.mark.parametrize(
    ("outcome", "status"), [({"result": None}, 200), ({"error": {"code": -1, "message": "no"}}, 400)]
)
async def test_a_response_without_an_id_is_the_body_of_the_response_to_the_notification(
    outcome: dict[str, object], status: int
) -> None:
    talk = echo().client("s", 9, method="notifications/roots/list_changed").server("s", 9, **outcome)
    async with spoken(talk) as mock:
        await mock.begin()
        said = await mock.say(method="notifications/roots/list_changed")
        assert said == (status, {"jsonrpc": "2.0", **outcome})
        assert await mock.call(1) == "first"
