"""One exchange over HTTP whose messages are intercepted."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.core.exchange import events as events_module
from mcpspy.io.http import proxy as proxy_module
from tests.io.http_spy import EVENTS, JSON, PING, PONG, chunk, event, plain

if TYPE_CHECKING:
    from tests.io.http_spy import Client, Spy, Start

pytestmark = pytest.mark.timeout(60)

SESSION = "Mcp-Session-Id: s"
ACCEPTED = plain(b"", status="202 Accepted")


def call(id: int, tool: str = "echo", **arguments: object) -> bytes:  # noqa: A002
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


def result(id: int, text: str = "hi") -> bytes:  # noqa: A002
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": text}}).encode()


async def got(client: Client) -> Any:
    status, body = await client.answer()
    assert status == 200
    return json.loads(body)


async def noted(spy: Spy, action: str, times: int = 1) -> None:
    """Wait until the recording has this number of notes about an action."""
    while [note["action"] for note in spy.notes("rule")].count(action) < times:  # noqa: ASYNC110 - a file sets no event.
        await asyncio.sleep(0.005)


async def test_messages_that_match_no_rule_are_forwarded_unchanged_in_both_directions(proxy: Start) -> None:
    asked, said = b'{"jsonrpc": "2.0","id":1,"method":"ping"}\r\n', PONG + b"\n"
    async with proxy("/mcp", "tool:other => drop") as spy:
        client, served = await spy.exchange(asked, "X-One: 1")
        assert (served.body, served.header("content-length")) == (asked, str(len(asked)))
        await served.send(plain(said, JSON, "X-Two: 2"))
        _, headers = await client.head()
        assert headers == [
            ("Content-Type", "application/json"),
            ("X-Two", "2"),
            ("Content-Length", str(len(said))),
        ]
        assert await client.body() == said
        assert spy.said("client") == [asked.strip()]
        assert spy.said("server") == [PONG]
        assert await spy.ended() == [None]
        assert spy.notes("rule") == []


async def test_a_changed_request_has_the_length_and_the_headers_of_what_it_became(proxy: Start) -> None:
    rules = ("tool:echo => replace /params/name = écho", "tool:echo => replace /params/arguments/region = us")
    async with proxy("/mcp", *rules) as spy:
        client = await spy.client()
        given = ("Mcp-Method: tools/call", "mcp-name: echo", "Mcp-Param-Region: eu", "X-One: 1")
        await client.post(call(1, region="eu"), *given)
        served = await spy.server.call()
        await served.send(plain(result(1), JSON))
        assert await got(client) == json.loads(result(1))

        assert json.loads(served.body)["params"] == {"name": "écho", "arguments": {"region": "us"}}
        assert served.header("content-length") == str(len(served.body))
        assert served.header("mcp-name") == "=?base64?w6ljaG8=?="
        assert served.header("mcp-param-region") == "us"
        assert served.header("mcp-method") == "tools/call"
        assert served.header("x-one") == "1"
        assert spy.said("client") == [call(1, region="eu")]
        assert [note["sent"].encode() for note in spy.notes("rule")][-1] == served.body


async def test_a_rule_answers_in_the_servers_place(proxy: Start) -> None:
    async with proxy("/mcp", "tool:echo => error -32000 boom", 'tool:can => respond {"x": 1}') as spy:
        client = await spy.client()
        await client.post(call(1))
        assert await got(client) == {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "boom"}}
        await client.post(call(2, "can"))
        assert await got(client) == {"jsonrpc": "2.0", "id": 2, "result": {"x": 1}}

        assert spy.server.calls.empty()
        assert [frame.to for frame in spy.frames("client")] == ["mcpspy"] * 2
        assert [frame.by for frame in spy.frames("server")] == ["mcpspy"] * 2
        assert [(head["status"], head["by"]) for head in spy.notes("http")] == [(200, "mcpspy")] * 2
        assert await spy.ended(2) == [None] * 2


async def test_a_dropped_request_waits_until_its_client_leaves_a_dropped_notification_is_accepted(
    proxy: Start,
) -> None:
    async with proxy("/mcp", " => drop") as spy:
        client = await spy.client()
        await client.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        assert await client.answer() == (202, b"")
        await client.post(call(1))
        await noted(spy, "drop", 2)
        client.writer.close()

        assert await spy.ended(2) == [None, "client"]
        assert spy.server.calls.empty()


async def test_a_disconnected_client_has_no_connection_and_no_answer(proxy: Start) -> None:
    async with proxy("/mcp", "tool:echo => disconnect", "kind:result id:2 => disconnect") as spy:
        for number, tool in ((1, "echo"), (2, "other")):
            client = await spy.client()
            await client.post(call(number, tool))
            if number == 2:
                await (await spy.server.call()).send(plain(result(2), JSON))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.answer()

        assert await spy.ended(2) == ["mcpspy", "mcpspy"]
        assert [frame.to for frame in spy.frames("server")] == ["mcpspy"]


@pytest.mark.parametrize("is_stream", [False, True], ids=["json", "events"])
async def test_an_answer_is_changed_under_a_head_that_fits(proxy: Start, is_stream: bool) -> None:
    async with proxy("/mcp", "kind:result => replace /result/content = changed") as spy:
        client, served = await spy.exchange(call(1))
        if is_stream:
            await served.send(
                EVENTS + chunk(b": hm\r\n\r\nid: 7\r\nevent: message\r\ndata: " + result(1) + b"\r\n\r\n")
            )
            await served.send(chunk(b""))
        else:
            await served.send(plain(gzip.compress(result(1)), JSON, "Content-Encoding: gzip"))
        _, headers = await client.head()
        body = await client.body()

        changed = b'{"jsonrpc":"2.0","id":1,"result":{"content":"changed"}}'
        if is_stream:
            assert body == b": hm\r\n\r\nevent: message\nid: 7\ndata: " + changed + b"\n\n"
        else:
            assert body == changed
            assert headers == [("Content-Type", "application/json"), ("Content-Length", str(len(changed)))]
        assert spy.said("server") == [result(1)]
        assert await spy.ended() == [None]


async def test_a_held_event_stops_no_other_and_the_stream_waits_for_it(proxy: Start) -> None:
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    )
    async with proxy("/mcp", "kind:result => delay 300ms") as spy:
        client, served = await spy.exchange(call(1))
        await served.send(EVENTS + chunk(event(result(1)) + event(progress)) + chunk(b""))
        await client.head()

        assert await client.body() == event(progress) + event(result(1))
        assert [note["action"] for note in spy.notes("rule")] == ["delay"]
        assert await spy.ended() == [None]


async def test_the_watchdog_answers_where_the_client_waits_and_the_late_answer_is_swallowed(
    proxy: Start,
) -> None:
    async with proxy(call_timeout=1.0) as spy:
        client, served = await spy.exchange(call(1), SESSION)
        error = (await got(client))["error"]
        assert error["code"] == -32001
        assert "no response to tools/call echo within 1 s" in error["message"]

        cancelled = await spy.server.call()
        assert json.loads(cancelled.body)["params"]["requestId"] == 1
        assert cancelled.header("mcp-session-id") == "s"
        await cancelled.send(ACCEPTED)
        assert not served.gone.is_set()
        await served.send(plain(result(1), JSON))
        await noted(spy, "swallowed")
        assert [(frame.by, frame.to) for frame in spy.frames("server")] == [
            ("mcpspy", None),
            (None, "mcpspy"),
        ]


@pytest.mark.parametrize(
    ("late", "ends", "noted_as"),
    [
        (b"", True, None),
        (EVENTS + chunk(event(result(1))) + chunk(b""), False, "swallowed"),
        (EVENTS + chunk(event(result(1))), True, "swallowed"),
        (plain(result(1), JSON)[:-5], True, None),
        (plain(result(1, "x" * 2000), JSON), False, None),
    ],
    ids=["hangs up", "stream", "broken stream", "broken", "too large"],
)
async def test_whatever_the_server_does_after_the_watchdog_answered_the_next_call_is_answered(
    late: bytes,
    ends: bool,
    noted_as: str | None,
    *,
    proxy: Start,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(proxy_module, "MAX_BODY", 1000)
    async with proxy(call_timeout=0.3) as spy:
        client, served = await spy.exchange(call(1), SESSION)
        assert (await got(client))["error"]["code"] == -32001
        await (await spy.server.call()).send(ACCEPTED)
        await served.send(late)
        if ends:
            served.writer.close()
        await client.post(call(2), SESSION)
        await (await spy.server.call()).send(plain(result(2), JSON))
        assert await got(client) == json.loads(result(2))
        if noted_as is not None:
            await noted(spy, noted_as)
        if b"x" * 2000 in late:
            while not spy.notes("oversized"):  # noqa: ASYNC110 - a file sets no event.
                await asyncio.sleep(0.005)
    assert "a bug" not in capfd.readouterr().err


async def test_the_watchdog_answers_while_a_response_arrives(proxy: Start) -> None:
    async with proxy(call_timeout=0.3) as spy:
        client, served = await spy.exchange(call(1), SESSION)
        response = plain(result(1), JSON)
        await served.send(response[:-5])
        assert (await got(client))["error"]["code"] == -32001
        await (await spy.server.call()).send(ACCEPTED)
        await served.send(response[-5:])
        await noted(spy, "swallowed")


async def test_on_a_stream_the_watchdog_answers_in_an_event_and_ends_it(proxy: Start) -> None:
    async with proxy(call_timeout=1.0) as spy:
        client, served = await spy.exchange(call(1), SESSION)
        await served.send(EVENTS + chunk(b"id: 1\ndata:\n\n"))
        await client.head()
        body = await client.body()
        assert body.startswith(b"id: 1\ndata:\n\ndata: ")
        assert json.loads(body.removeprefix(b"id: 1\ndata:\n\ndata: "))["error"]["code"] == -32001

        await (await spy.server.call()).send(ACCEPTED)
        await served.send(chunk(event(result(1))) + chunk(b""))
        await noted(spy, "swallowed")


async def test_in_2026_07_28_the_watchdog_closes_the_request(proxy: Start) -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "_meta": meta}}
    async with proxy(call_timeout=1.0) as spy:
        client, served = await spy.exchange(json.dumps(asked).encode())
        assert (await got(client))["error"]["code"] == -32001
        await served.gone.wait()

        assert spy.server.calls.empty()


async def test_a_batch_is_answered_as_one(proxy: Start) -> None:
    async with proxy("/mcp", " => error no") as spy:
        client = await spy.client()
        await client.post(b"[" + call(1) + b"," + call(2) + b"]")
        assert [answer["id"] for answer in await got(client)] == [1, 2]


async def test_a_body_that_is_not_a_message_is_forwarded_whatever_the_rules(proxy: Start) -> None:
    async with proxy("/mcp", " => drop") as spy:
        client = await spy.client()
        await client.post(b"no message")
        await (await spy.server.call()).send(plain(b"oops", JSON, status="400 Bad Request"))
        assert await client.answer() == (400, b"oops")
        assert spy.said("client") == [b"no message"]
        assert spy.said("server") == [b"oops"]


async def test_an_answer_that_breaks_off_breaks_off(proxy: Start) -> None:
    async with proxy("/mcp", "tool:other => drop") as spy:
        client, served = await spy.exchange()
        await served.send(plain(PONG, JSON)[:-5])
        while not spy.notes("http"):  # noqa: ASYNC110 - a file sets no event.
            await asyncio.sleep(0.005)
        served.writer.close()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.answer()
        client, served = await spy.exchange()
        await served.send(EVENTS + chunk(event(b"{}") + event(PONG)[:-9]))
        await client.head()
        await client.read(len(event(b"{}")))
        served.writer.close()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.body()

        assert await spy.ended(2) == ["server", "server"]
        assert spy.said("server") == [PONG[:-5], b"{}", PONG[:-7]]


async def test_over_http_and_sse_the_answer_of_a_rule_comes_on_the_stream(proxy: Start) -> None:
    async with proxy("/sse", "tool:echo => error boom") as spy:
        listening = await spy.client()
        await listening.ask("GET", "/sse", None, "Accept: text/event-stream")
        stream = await spy.server.call()
        await stream.send(EVENTS + chunk(b"event: endpoint\ndata: /messages?x=1\n\n"))
        await listening.head()
        endpoint = await listening.some()
        assert endpoint == b"event: endpoint\ndata: /messages?x=1\n\n"
        client = await spy.client()
        await client.ask("POST", "/messages?x=1", call(1), JSON)

        assert await client.answer() == (202, b"")
        said = await listening.some()
        assert json.loads(said.removeprefix(b"data: "))["error"]["message"] == "boom"
        await stream.send(chunk(b""))
        assert await listening.body() == b""


async def test_the_beginning_of_a_body_whose_client_left_is_recorded_as_incomplete(proxy: Start) -> None:
    async with proxy("/mcp", "tool:none => drop") as spy:
        for start, torn in ((plain(PONG, JSON)[: -len(PONG)], PONG[:9]), (EVENTS, chunk(b"data: {"))):
            client = await spy.client()
            await client.post(PING)
            await (await spy.server.call()).send(start + torn)
            await client.head() if start is EVENTS else await head_noted(spy)
            client.writer.close()
            await spy.ended(len(spy.notes("http")))

        assert [(frame.data, frame.eol) for frame in spy.frames("server")] == [(PONG[:9], ""), (b"{", "")]


async def head_noted(spy: Spy) -> None:
    """Wait until a response has started."""
    while not spy.notes("http"):  # noqa: ASYNC110 - a file sets no event.
        await asyncio.sleep(0.005)


async def test_a_server_that_cannot_be_reached_is_a_502_with_the_id(proxy: Start) -> None:
    async with proxy("/mcp", "tool:none => drop") as spy:
        client = await spy.client()
        await client.post(PING)
        (await spy.server.call()).writer.close()
        status, body = await client.answer()

        assert (status, json.loads(body)["id"]) == (502, 1)


async def test_a_bug_in_reading_a_stream_ends_it_and_leaves_no_one_waiting(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxy("/mcp", "tool:none => drop") as spy:
        client, served = await spy.exchange()
        monkeypatch.setattr(events_module, "is_message", lambda _: 1 / 0)
        await served.send(EVENTS + chunk(event(PONG)))
        await client.head()
        with pytest.raises(asyncio.IncompleteReadError):
            await client.body()

        assert await spy.ended() == ["mcpspy"]
