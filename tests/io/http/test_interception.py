"""An HTTP session with a viewer."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from mcpspy.core.framing import is_message
from mcpspy.core.intercept import interceptor as interceptor_module
from mcpspy.io.control.client import AsyncControlClient, CommandRefused, live_sessions
from mcpspy.io.intercept import executor
from mcpspy.io.intercept import interception as base_module
from tests.core.redact import corpus, unseen
from tests.core.trust.locks import lock_text
from tests.io.http_spy import EVENTS, JSON, PING, PONG, chunk, event, plain

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable
    from pathlib import Path

    from mcpspy.core.intercept.interceptor import Interceptor
    from tests.io.http_spy import Call, Client, Spy, Start

pytestmark = pytest.mark.timeout(60)

SESSION = "Mcp-Session-Id: s"
CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
BUG = "a bug in mcpspy: ZeroDivisionError: division by zero"


@asynccontextmanager
async def connected_viewer() -> AsyncIterator[AsyncControlClient]:
    (found,) = await asyncio.to_thread(live_sessions)
    viewer = await AsyncControlClient.open(found.path, "tui")
    try:
        yield viewer
    finally:
        await viewer.close()


async def next_event(viewer: AsyncControlClient, kind: str) -> dict[str, Any]:
    async for said in viewer.events():
        assert said["event"] == kind
        return said
    raise AssertionError("the session has ended")


async def listening(spy: Spy) -> tuple[Client, Call]:
    """Return a client that listens in a session, and the stream on which it listens."""
    client = await spy.client()
    await client.ask("GET", "/mcp", None, SESSION, "Accept: text/event-stream")
    stream = await spy.server.call()
    await stream.send(EVENTS + chunk(event(b'{"n":1}')))
    await client.head()
    assert await client.read(len(event(b'{"n":1}'))) == event(b'{"n":1}')
    return client, stream


async def posted(spy: Spy, body: bytes = PING, *headers: str) -> None:
    """Send a message of a client in its session, and wait for the response."""
    client = await spy.client()
    await client.post(body, SESSION, *headers)
    await (await spy.server.call()).send(plain(PONG, JSON))
    assert await client.answer() == (200, PONG)


async def test_no_one_is_there_until_someone_wants_something_and_then_no_more(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        await posted(spy)
        assert viewer.hello["transport"] == "http"
        assert viewer.hello["file"] == str(spy.recording)
        await viewer.order("hold", query="ping")
        client = await spy.client()
        await client.post(PING, SESSION)
        held = await next_event(viewer, "held")
        assert (await viewer.order("list"))["held"][0]["ticket"] == held["ticket"]
        assert spy.server.calls.empty()
        await viewer.order("hold", query=None)
        await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        await posted(spy)
        assert [note["action"] for note in spy.notes("rule")] == ["hold", "release"]


async def test_a_held_message_is_unchanged_for_its_viewer_and_redacted_in_the_recording(proxy: Start) -> None:
    """A viewer edits and releases the message itself, so the control socket, which is the user's alone, has its secrets."""
    calls = unseen.calls(8)
    async with proxy() as spy, connected_viewer() as viewer:
        await posted(spy)
        await viewer.order("hold", query="tools/call")
        for case in calls:
            client = await spy.client()
            await client.post(case.text.encode(), SESSION)
            held = await next_event(viewer, "held")
            assert held["text"] == case.text
            await viewer.order("release", ticket=held["ticket"])
            await next_event(viewer, "released")
            await (await spy.server.call()).send(plain(PONG, JSON))
            await client.answer()
        written = corpus.texts(spy.recording.read_bytes())
    assert "[redacted:" in written
    assert [case.what for case in calls if any(secret in written for secret in case.secrets)] == []


async def test_an_injected_request_is_sent_like_the_clients_and_its_response_goes_to_the_viewer(
    proxy: Start,
) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        await posted(spy, PING, "MCP-Protocol-Version: 2025-11-25", "Authorization: token")
        answer = await viewer.order("request", method="tools/list")
        injected = await spy.server.call()
        said = json.loads(injected.body)
        assert json.dumps(said["id"]) == answer["id"]
        headers = [
            injected.header(name)
            for name in ("mcp-session-id", "mcp-protocol-version", "authorization", "accept")
        ]
        assert headers == ["s", "2025-11-25", "token", None]
        assert injected.header("content-length") == str(len(injected.body))
        await injected.send(
            plain(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": {}}).encode(), JSON)
        )
        event_of = await next_event(viewer, "answer")

        assert event_of["message"]["result"] == {}
        assert [(frame.by, frame.to) for frame in spy.frames("client")] == [(None, None), ("mcpspy", None)]
        assert [(frame.by, frame.to) for frame in spy.frames("server")] == [(None, None), (None, "mcpspy")]
        assert await spy.ended(2) == [None, None]
        assert spy.notes("http")[1]["by"] == "mcpspy"


async def test_the_text_of_an_injected_request_is_the_body_byte_for_byte(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        await posted(spy, PING, "MCP-Protocol-Version: 2025-11-25")
        text = '{"method":"x", "params":{"n":1E5,"n":1e400}, "id":%s}'
        answer = await viewer.order("request", text=text % 7)
        injected = await spy.server.call()
        assert injected.body.decode() == text % answer["id"]
        response = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % answer["id"].encode()
        await injected.send(plain(response, JSON))
        assert (await next_event(viewer, "answer"))["id"] == answer["id"]


async def test_a_stream_that_was_open_before_is_listened_to_and_spoken_on(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        client, stream = await listening(spy)
        await posted(spy)
        await viewer.order("notify", to="client", method="notifications/tools/list_changed")
        assert await client.some() == b"data: " + CHANGED + b"\n\n"
        answer = await viewer.order("request", to="client", method="roots/list")
        said = await client.some()
        assert json.dumps(json.loads(said[6:])["id"]) == answer["id"]
        poster = await spy.client()
        await poster.post(b'{"jsonrpc":"2.0","id":%b,"result":{"roots":[]}}' % answer["id"].encode(), SESSION)
        assert await poster.answer() == (202, b"")
        assert (await next_event(viewer, "answer"))["message"]["result"] == {"roots": []}
        assert spy.server.calls.empty()

        await viewer.order("hold", query="list_changed")
        await stream.send(chunk(event(CHANGED) + event(b'{"n":2}')))
        held = await next_event(viewer, "held")
        assert await client.some() == event(b'{"n":2}')
        await viewer.order("release", ticket=held["ticket"])
        assert await client.some() == event(CHANGED)
        await stream.send(chunk(b""))
        assert await client.body() == b""
        assert spy.said("server").count(CHANGED) == 2


async def test_a_thousand_held_events_continue_in_their_order(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        client, stream = await listening(spy)
        await viewer.order("hold", query="kind:notification")
        said = [event(b'{"jsonrpc":"2.0","method":"n%d"}' % number) for number in range(1000)]
        await stream.send(chunk(b"".join(said)))
        for _ in said:
            await next_event(viewer, "held")
        assert (await viewer.order("list"))["bytes"] == sum(len(each) for each in said) - 1000 * len(
            event(b"")
        )
        await viewer.order("release", tickets="all")
        assert await client.read(sum(map(len, said))) == b"".join(said)
        assert (await viewer.order("list"))["bytes"] == 0


async def test_half_an_event_goes_by_before_anyone_listens(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        client, stream = await listening(spy)
        await posted(spy)
        await stream.send(chunk(event(CHANGED)[:20]))
        assert await client.some() == event(CHANGED)[:20]
        await viewer.order("hold", query="list_changed")
        await stream.send(chunk(event(CHANGED)[20:]))
        assert await client.some() == event(CHANGED)[20:]
        await stream.send(chunk(event(CHANGED)))
        await next_event(viewer, "held")
        assert spy.said("server").count(CHANGED) == 2


async def test_an_order_that_cannot_be_delivered_is_refused(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        with pytest.raises(CommandRefused, match="no client has sent a message yet"):
            await viewer.order("request", method="ping")
        await posted(spy)
        with pytest.raises(CommandRefused, match="no open stream"):
            await viewer.order("notify", to="client", method="x")
        with pytest.raises(CommandRefused, match="unknown order"):
            await viewer.order("hlod")
        client, served = await spy.exchange()
        await served.send(EVENTS + chunk(b": there\n\n"))
        await client.head()
        with pytest.raises(CommandRefused, match="has no session, so it cannot receive requests"):
            await viewer.order("request", to="client", method="roots/list")
        await viewer.order("notify", to="client", method="notifications/tools/list_changed")
        assert await client.read(9 + len(CHANGED) + 8) == b": there\n\ndata: " + CHANGED + b"\n\n"


@pytest.mark.parametrize(
    ("answered", "why"),
    [
        (plain(b"", status="404 Not Found"), "no response, only HTTP 404"),
        (
            plain(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}', JSON),
            "no response, only HTTP 200",
        ),
        (EVENTS + chunk(b": nothing\n\n") + chunk(b""), "no response, only HTTP 200"),
        (b"", "the server cannot be reached: "),
    ],
    ids=["404", "no id", "stream", "hang-up"],
)
async def test_the_viewer_learns_that_its_request_has_no_response(
    proxy: Start, answered: bytes, why: str
) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        await posted(spy)
        await viewer.order("request", method="ping")
        injected = await spy.server.call()
        await injected.send(answered)
        if not answered:
            injected.writer.close()

        assert (await next_event(viewer, "answer"))["error"].startswith(why)


async def test_a_request_of_a_viewer_without_a_response_does_not_delay_the_end(proxy: Start) -> None:
    async with asyncio.timeout(30), proxy() as spy, connected_viewer() as viewer:
        await posted(spy)
        await viewer.order("request", method="ping")
        injected = await spy.server.call()
    await asyncio.wait_for(injected.gone.wait(), 30)


async def test_messages_with_an_injected_requests_response_go_to_the_client(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        client, stream = await listening(spy)
        await posted(spy)
        answer = await viewer.order("request", method="tools/call", params={"name": "x"})
        injected = await spy.server.call()
        await injected.send(EVENTS + chunk(event(CHANGED)))
        assert await client.some() == b"data: " + CHANGED + b"\n\n"
        said = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % answer["id"].encode()
        await injected.send(chunk(event(said)) + chunk(b""))
        assert (await next_event(viewer, "answer"))["message"]["result"] == {}
        await stream.send(chunk(b""))
        assert await client.body() == b""


@pytest.mark.parametrize("is_bug", [False, True], ids=["viewer", "bug"])
async def test_a_held_message_with_an_injected_requests_response_goes_to_the_client_when_released(
    proxy: Start, is_bug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_module, "say", lambda _: None)
    async with proxy() as spy, connected_viewer() as viewer:
        client, stream = await listening(spy)
        await posted(spy)
        await viewer.order("hold", query="list_changed")
        answer = await viewer.order("request", method="tools/call", params={"name": "x"})
        said = b'{"jsonrpc":"2.0","id":%b,"result":{}}' % answer["id"].encode()
        await (await spy.server.call()).send(EVENTS + chunk(event(CHANGED) + event(said)) + chunk(b""))
        held = await next_event(viewer, "held")
        assert (await next_event(viewer, "answer"))["message"]["result"] == {}
        await spy.ended(2)
        if is_bug:
            monkeypatch.setattr(interceptor_module, "read_frame", lambda frame: 1 / 0)
            await posted(spy)
        else:
            await viewer.order("release", ticket=held["ticket"])
        assert await client.some() == b"data: " + CHANGED + b"\n\n"
        await stream.send(chunk(b""))
        assert await client.body() == b""


async def test_a_viewer_that_leaves_lets_go_and_so_does_the_end(proxy: Start) -> None:
    async with proxy() as spy:
        async with connected_viewer() as viewer:
            await viewer.order("hold", query="ping")
            client = await spy.client()
            await client.post(PING, SESSION)
            await next_event(viewer, "held")
        await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)
        assert [note.get("why") for note in spy.notes("rule")] == [None, "viewer left"]


async def test_held_messages_of_a_client_that_leaves_are_dropped(proxy: Start) -> None:
    async with proxy("/mcp", "ping => hold") as spy, connected_viewer() as viewer:
        client = await spy.client()
        await client.post(PING)
        await next_event(viewer, "held")
        client.writer.close()
        assert (await next_event(viewer, "released"))["why"] == "connection closed"
        assert await spy.ended() == ["client"]
        assert spy.server.calls.empty()


async def test_timers_run_without_a_recording_too(proxy: Start) -> None:
    async with proxy("/mcp", "ping => delay 100ms", recording=False) as spy:
        client = await spy.client()
        await client.post(PING)
        await (await spy.server.call()).send(plain(PONG, JSON))
        assert await client.answer() == (200, PONG)


async def test_calls_of_trusted_tools_pass_and_another_one_is_refused(
    proxy: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "mcp.lock"
    lock.write_text(lock_text(), encoding="utf-8")
    decided: list[bytes] = []
    process = interceptor_module.Interceptor.process

    def counted(self: Interceptor, at: float, side: str, data: bytes, **more: Any) -> Any:
        decided.append(data)
        return process(self, at, side, data, **more)

    monkeypatch.setattr(interceptor_module.Interceptor, "process", counted)
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%b","arguments":{}}}'
    async with proxy(trust=str(lock), on_change="block", name="sample") as spy:
        await posted(spy, call % b"echo")
        decided.clear()
        for _ in range(3):
            await posted(spy, call % b"echo")
        assert decided == []
        assert spy.said("client") == [call % b"echo"] * 4
        client = await spy.client()
        await client.post(call % b"rm", SESSION)
        status, body = await client.answer()
        assert (status, json.loads(body)["error"]["code"]) == (200, -32602)
        assert decided == [call % b"rm"]


async def test_a_bug_in_mcpspy_costs_the_rules_and_never_the_traffic(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(base_module, "say", said.append)
    async with proxy("/mcp", "ping => hold") as spy, connected_viewer() as viewer:
        listener, stream = await listening(spy)
        held = await spy.client()
        await held.post(PING)
        await next_event(viewer, "held")
        monkeypatch.setattr(interceptor_module, "read_frame", lambda frame: 1 / 0)
        client = await spy.client()
        await client.post(PING)
        for _ in range(2):
            await (await spy.server.call()).send(plain(PONG, JSON))
        assert await held.answer() == await client.answer() == (200, PONG)
        assert said == [f"interception stopped by {BUG}; traffic continues without it"]
        await stream.send(chunk(event(CHANGED) + event(b'{"n":2}')))
        assert await listener.read(len(event(CHANGED) + event(b'{"n":2}'))) == event(CHANGED) + event(
            b'{"n":2}'
        )
        with pytest.raises(CommandRefused, match="a bug in mcpspy"):
            await viewer.order("list")
        assert [note["text"] for note in spy.notes("error")] == [f"interception stopped by {BUG}"]


async def test_a_bug_in_the_steps_of_a_decision_loses_no_message_either(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(base_module, "say", said.append)
    async with proxy("/mcp", "ping => delay 1ms") as spy:
        monkeypatch.setattr(executor, "note", lambda *_: 1 / 0)
        await posted(spy)

        assert said == [f"interception stopped by {BUG}; traffic continues without it"]
        assert spy.said("client") == [PING]


async def test_decisions_before_a_bug_are_executed_once(
    proxy: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_module, "say", lambda _: None)
    async with proxy("/mcp", "tool:none => drop") as spy:
        client, stream = await listening(spy)
        written = web.StreamResponse.write
        is_let = asyncio.Event()
        monkeypatch.setattr(web.StreamResponse, "write", lambda *given: after(is_let, written(*given)))
        await stream.send(chunk(event(CHANGED) + event(CHANGED)))
        while len(spy.said("server")) < 3:  # noqa: ASYNC110 - a file sets no event.
            await asyncio.sleep(0.005)
        monkeypatch.setattr(interceptor_module, "read_frame", lambda frame: 1 / 0)
        other = await spy.client()
        await other.post(PING)
        served = await spy.server.call()
        is_let.set()
        await served.send(plain(PONG, JSON))
        assert await other.answer() == (200, PONG)
        await stream.send(chunk(event(b'{"n":2}')) + chunk(b""))

        assert await client.body() == event(CHANGED) * 2 + event(b'{"n":2}')


async def after(event: asyncio.Event, work: Awaitable[None]) -> None:
    await event.wait()
    await work


async def test_injected_ids_never_reach_a_client_under_load(proxy: Start) -> None:
    async with proxy() as spy, connected_viewer() as viewer:
        await posted(spy)

        async def serve() -> None:
            while True:
                served = await spy.server.call()
                asked = json.loads(served.body)
                said = {"jsonrpc": "2.0", "id": asked["id"], "result": {"of": asked["method"]}}
                await served.send(plain(json.dumps(said).encode(), JSON))

        async def host(first: int) -> None:
            client = await spy.client()
            for number in range(first, first + 25):
                asked = {"jsonrpc": "2.0", "id": number, "method": "ping"}
                await client.post(json.dumps(asked).encode(), SESSION)
                _, body = await client.answer()
                assert json.loads(body) == {"jsonrpc": "2.0", "id": number, "result": {"of": "ping"}}

        serving = asyncio.create_task(serve())
        orders = [viewer.order("request", method="tools/list") for _ in range(50)]
        answers, *_ = await asyncio.gather(asyncio.gather(*orders), *(host(1000 * n) for n in range(4)))
        ids = {answer["id"] for answer in answers}
        told = [await next_event(viewer, "answer") for _ in range(50)]
        serving.cancel()

        assert len(ids) == 50
        assert {each["id"] for each in told} == ids
        assert all(each["message"]["result"] == {"of": "tools/list"} for each in told)


def test_a_message_is_known_by_its_brackets() -> None:
    assert is_message(b' {"a":1}\r\n')
    assert is_message(b"[]")
    assert not is_message(b"{]")
    assert not is_message(b"")


REVISION = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


@pytest.mark.parametrize("rules", [(), ("tool:none => drop",)], ids=["passing", "decided"])
@pytest.mark.parametrize("is_stream", [False, True], ids=["body", "stream"])
async def test_an_injected_call_has_the_headers_that_its_tool_was_listed_with(
    proxy: Start, rules: tuple[str, ...], is_stream: bool
) -> None:
    schema = {"properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    tools = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "forecast", "inputSchema": schema}]}}
    said = json.dumps(tools).encode()
    async with proxy("/mcp", *rules) as spy, connected_viewer() as viewer:
        client = await spy.client()
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": REVISION}}
        await client.post(json.dumps(asked).encode(), "Mcp-Method: tools/list")
        listing = EVENTS + chunk(event(said)) + chunk(b"") if is_stream else plain(said, JSON)
        await (await spy.server.call()).send(listing)
        await client.answer()
        params = {"name": "forecast", "arguments": {"city": "Köln"}}
        await viewer.order("request", method="tools/call", params=params)
        injected = await spy.server.call()

        assert injected.header("mcp-param-city") == "=?base64?S8O2bG4=?="
        await injected.send(plain(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}', JSON))
        await next_event(viewer, "answer")


async def test_an_injected_listing_teaches_as_well_as_a_clients(proxy: Start) -> None:
    schema = {"properties": {"city": {"type": "string", "x-mcp-header": "City"}}}
    async with proxy() as spy, connected_viewer() as viewer:
        client = await spy.client()
        asked = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": REVISION}}
        await client.post(json.dumps(asked).encode(), "Mcp-Method: server/discover")
        await (await spy.server.call()).send(plain(PONG, JSON))
        await client.answer()
        for method, params in (
            ("tools/list", None),
            ("tools/call", {"name": "forecast", "arguments": {"city": "Rome"}}),
        ):
            await viewer.order("request", method=method, params=params)
            injected = await spy.server.call()
            result = {"tools": [{"name": "forecast", "inputSchema": schema}]}
            answer = {"jsonrpc": "2.0", "id": json.loads(injected.body)["id"], "result": result}
            await injected.send(plain(json.dumps(answer).encode(), JSON))
            await next_event(viewer, "answer")

        assert injected.header("mcp-param-city") == "Rome"
