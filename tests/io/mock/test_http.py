"""A recording in place of an HTTP server: methods, headers, statuses, streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import aiohttp
import pytest

from mcpspy.core.mock.clients import ClientRegistry
from mcpspy.core.mock.loader import InteractionLoader
from mcpspy.core.mock.recordings import Recordings
from mcpspy.core.mock.steering import MockOptions
from mcpspy.core.mock.store import InteractionStore
from mcpspy.core.protocol.message import AnyMessage
from mcpspy.io.client import ServerCommand
from mcpspy.io.http.server import accepting
from mcpspy.io.mock import http
from mcpspy.io.mock.http import Mock
from mcpspy.io.mock.loader import RecordingsLoader
from mcpspy.io.network.listener import listening, origin
from mcpspy.io.serving import mcp_server
from mcpspy.io.serving.client import ClientStream, ServedClient
from mcpspy.io.serving.live_server import LiveServer, LiveServerConnection
from tests.core.mock.talking import VERSION, Json, Talk, asking, entries, modern, progress, slow
from tests.io.mock.speaking import Spoken, echo, event, received, recent, spoken

pytestmark = pytest.mark.timeout(60)


async def test_an_immediate_response_is_json() -> None:
    async with spoken(echo()) as mock:
        await mock.begin()
        assert [await mock.call(5), await mock.call(6), await mock.call(7)] == ["first", "second", "second"]


async def test_every_session_begins_at_the_beginning() -> None:
    async with spoken(echo()) as mock:
        first = await mock.begin()
        assert await mock.call(1) == "first"
        assert await mock.begin() != first
        assert await mock.call(1) == "first"
        mock.session = {"Mcp-Session-Id": first}
        assert await mock.call(2) == "second"


async def test_a_response_after_notifications_is_sent_as_a_numbered_stream() -> None:
    async with spoken(slow()) as mock:
        mock.session = {"Mcp-Session-Id": await mock.begin()}
        params = {"name": "slow", "_meta": {"progressToken": "t"}}
        status, said = await mock.say(id=1, method="tools/call", params=params)
        assert status == 200
        assert said[:2] == [
            {"jsonrpc": "2.0", **progress("t", 1)},
            {"jsonrpc": "2.0", **progress("t", 2)},
        ]
        assert said[2]["result"] == {"said": "done"}


async def test_a_server_request_waits_on_the_stream_for_an_answer_by_another_post() -> None:
    async with spoken(asking()) as mock:
        await mock.begin(roots={})
        body = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}'
        async with await mock.send(body) as response:
            assert (await event(response))[1] == "data: "  # Names the stream before its first message.
            asked = json.loads((await event(response))[2].removeprefix("data: "))
            assert asked["method"] == "roots/list"
            assert await mock.say(id=asked["id"], result={"roots": []}) == (202, None)
            assert [message.get("id") for message in await received(response)] == [None, 7]


async def test_a_broken_stream_resumes_after_the_last_event() -> None:
    async with spoken(asking()) as mock:
        await mock.begin(roots={})
        body = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask"}}'
        async with await mock.send(body) as response:
            primed = (await event(response))[0].removeprefix("id: ")
            asked = json.loads((await event(response))[2].removeprefix("data: "))
            response.close()
        assert await mock.say(id=asked["id"], result={"roots": []}) == (202, None)
        async with await mock.get(**{"Last-Event-ID": primed}) as response:
            methods = [message.get("method", message.get("id")) for message in await received(response)]
        assert methods == ["roots/list", "notifications/message", 7]
        async with await mock.get(**{"Last-Event-ID": "4711"}) as response:
            assert response.status == 400


async def test_a_get_that_does_not_accept_a_stream_is_refused() -> None:
    async with spoken(echo()) as mock:
        await mock.begin()
        async with await mock.get(Accept="application/json") as response:
            assert response.status == 406
            assert (await received(response))["error"]["message"] == "Accept must name text/event-stream"


async def test_there_is_one_get_stream_for_messages_without_a_request() -> None:
    changed: Json = {"method": "notifications/tools/list_changed"}
    async with spoken(Talk().handshake().server(**changed)) as mock:
        await mock.begin("2025-06-18")
        async with await mock.get() as response:
            assert response.headers["Content-Type"] == "text/event-stream"
            assert (await event(response))[0] == "id: 1"
            assert (
                json.loads((await event(response))[2].removeprefix("data: "))["method"] == changed["method"]
            )
            async with await mock.get() as second:
                assert second.status == 409


async def test_delete_does_not_wait_for_the_end_of_the_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    async def close(_real_server: LiveServerConnection) -> None:
        await ended.wait()

    monkeypatch.setattr(LiveServerConnection, "close", close)
    real = LiveServer(ServerCommand(["server"]), "server", None)
    mock = Mock(echo().recordings(), MockOptions(), lambda _: None, real=real)
    with listening("127.0.0.1", 0, "-") as listener:
        async with accepting(mock.handle, listener), aiohttp.ClientSession() as client:
            spoken = Spoken(mock, client, origin("127.0.0.1", listener))
            await spoken.begin()
            async with (
                asyncio.timeout(30),
                client.delete(f"{spoken.url}/mcp", headers=spoken.session) as response,
            ):
                assert response.status == 200
            closing = asyncio.ensure_future(mock.close())
            await asyncio.sleep(0)
            assert not closing.done(), "but the end of the mock waits for it"
            ended.set()
            await closing


async def test_delete_ends_a_session_and_its_streams() -> None:
    async with spoken(echo()) as mock:
        await mock.begin("2025-06-18")
        async with await mock.get() as response:
            async with mock.client.delete(mock.url + "/mcp", headers=mock.session) as deleted:
                assert deleted.status == 200
            assert await response.read() is not None
        assert (await mock.say(id=1, method="ping"))[0] == 404


class Awaited(asyncio.Event):
    """Reports when something waits for it."""

    def __init__(self) -> None:
        super().__init__()
        self.is_awaited = asyncio.Event()

    async def wait(self) -> Literal[True]:
        self.is_awaited.set()
        return await super().wait()


async def test_at_the_end_whatever_is_open_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.io.network.listener.GRACE", 600.0)
    stops: list[Callable[[int], None]] = []
    complaints: list[str] = []
    monkeypatch.setattr(http, "stop_on_signals", stops.append)
    talk = asking().client(method="notifications/x")
    loader = InteractionLoader(InteractionStore("r.jsonl"), talk.session.header)
    for entry in entries(talk.session):
        loader.add(entry)  # Everything is read, but the end is not reported yet.
    mock = Mock(Recordings([loader.store]), MockOptions(), complaints.append)
    monkeypatch.setattr(mock, "_is_read", is_read := Awaited())
    begun: asyncio.Queue[ServedClient] = asyncio.Queue()

    def visited(*given: Any, **options: Any) -> ServedClient:
        begun.put_nowait(client := ServedClient(*given, **options))
        return client

    monkeypatch.setattr(http, "ServedClient", visited)
    with listening("127.0.0.1", 0, "-") as listener:
        serving = asyncio.ensure_future(http.serve(mock, listener, "127.0.0.1", lambda: True))
        async with aiohttp.ClientSession() as client:
            spoken = Spoken(mock, client, origin("127.0.0.1", listener))
            await spoken.begin("2025-11-25", roots={})
            open_ones = [await spoken.get(), await client.get(spoken.url + "/sse")]
            call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{}}}'
            open_ones.append(await spoken.send(call))
            for response in open_ones:
                assert await event(response)
            # An `initialize` and a probe wait for the rest of the recording.
            other = {"protocolVersion": "2025-06-18", "capabilities": {}}
            waiting = asyncio.ensure_future(spoken.say(id=2, method="initialize", params=other))
            probe = asyncio.ensure_future(spoken.ask(3, "server/discover", _meta=modern()))
            await is_read.is_awaited.wait()
            for _ in range(3):
                await begun.get()
            (stop,) = stops
            stop(15)
            await serving
            for response in open_ones:
                assert b"result" not in await response.read(), "a regular end, and no invented response"
            assert [(await each)[0] for each in (waiting, probe)] == [404, 503]


async def test_a_batch_is_answered_where_batches_are_part_of_the_revision() -> None:
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]'
    async with spoken(Talk().handshake("2025-03-26")) as mock:
        await mock.begin("2025-03-26")
        async with await mock.send(batch) as response:
            assert sorted(message["id"] for message in await received(response)) == [1, 2]
        async with await mock.send(batch, Accept="application/json") as response:
            assert [message["id"] for message in await received(response)] == [1, 2]
    async with spoken(Talk().handshake()) as mock:
        await mock.begin()
        async with await mock.send(batch) as response:
            assert (response.status, (await received(response))["error"]["code"]) == (400, -32600)


async def test_requests_of_2026_need_no_session_and_each_client_begins_at_the_beginning() -> None:
    async with spoken(recent()) as mock:
        answers = []
        for id in (1, 2, 1):  # noqa: A001
            status, said = await mock.ask(id, "tools/call", name="echo", _meta=modern())
            answers.append((status, said["result"]["said"]))
        assert answers == [(200, "first"), (200, "second"), (200, "first")]


async def test_errors_of_2026_have_a_status() -> None:
    async with spoken(recent()) as mock:
        for version, method, status, code in (
            ("2026-07-28", "tools/nothing", 200, -32603),
            ("2099-01-01", "tools/call", 400, -32022),
        ):
            meta = {**modern(), VERSION: version}
            got = await mock.ask(1, method, _meta=meta)
            assert (got[0], got[1]["error"]["code"]) == (status, code)
    async with spoken(recent(), miss=-32601) as mock:
        assert (await mock.ask(1, "tools/nothing", _meta=modern()))[0] == 404


@pytest.mark.parametrize(
    ("body", "status", "text"),
    [
        ({"method": "notifications/cancelled", "params": {"requestId": 1}}, 202, ""),
        ({"id": 1, "method": "tools/list"}, 400, "_meta lacks io.modelcontextprotocol/protocolVersion"),
        ({"id": 1, "result": {}}, 400, "not a request"),
    ],
)
async def test_messages_of_2026_without_its_meta_are_accepted_only_as_notifications(
    body: dict[str, object], status: int, text: str
) -> None:
    async with spoken(recent()) as mock:
        data = json.dumps({"jsonrpc": "2.0", **body}).encode()
        async with await mock.send(data, MCP_Protocol_Version="2026-07-28") as response:
            assert response.status == status
            said = await response.text()
    assert text in said
    assert bool(said) == (status == 400)


async def test_a_client_of_2026_beyond_the_limit_ends_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ClientRegistry", lambda: ClientRegistry[ServedClient](1))
    async with spoken(recent()) as mock:
        said: list[tuple[int, str]] = []
        for name in ("a", "b", "a"):
            meta = {**modern(), "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}
            status, answer = await mock.ask(1 + len(said), "tools/call", name="echo", _meta=meta)
            said.append((status, answer["result"]["said"]))
    assert said == [(200, "first")] * 3  # The mock has forgotten the first client, which begins again.


async def test_headers_that_contradict_the_body_are_refused() -> None:
    async with spoken(recent()) as mock:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "echo", "_meta": modern()},
        }
        async with await mock.send(json.dumps(body).encode(), Mcp_Method="tools/list") as response:
            assert response.status == 400
            assert (await received(response))["error"]["code"] == -32020


async def test_a_client_of_2026_cancels_by_disconnecting(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, hung_up = asyncio.Event(), asyncio.Event()

    class Watched(ServedClient):
        def post(
            self, body: bytes, ids: list[bytes], messages: Sequence[AnyMessage] | None = None
        ) -> ClientStream:
            stream = super().post(body, ids, messages)
            assert self.session.owes
            asked.set()
            return stream

        def hang_up(self, ids: list[bytes]) -> None:
            super().hang_up(ids)
            assert not self.session.owes
            hung_up.set()

    monkeypatch.setattr(http, "ServedClient", Watched)
    talk = Talk().client(id=1, method="tools/call", params={"name": "slow", "_meta": modern()})
    talk.server(id=1, result={"said": "done", "resultType": "complete"})
    async with spoken(talk, speed=0.001) as mock:
        asking = asyncio.ensure_future(mock.ask(1, "tools/call", name="slow", _meta=modern()))
        async with asyncio.timeout(30):
            await asked.wait()
            asking.cancel()
            await hung_up.wait()


async def test_each_era_refuses_clients_of_the_other_with_its_own_error() -> None:
    async with spoken(echo()) as legacy:
        status, said = await legacy.ask(1, "server/discover", _meta=modern())
        assert (status, said["id"], said["error"]["code"]) == (400, None, -32000)
    async with spoken(recent()) as mock:
        status, said = await mock.say(id=0, method="initialize", params={"protocolVersion": "2025-11-25"})
        assert (status, said["error"]["code"]) == (400, -32022)
        assert said["error"]["data"]["supported"] == ["2026-07-28"]
        async with await mock.get() as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")


async def test_a_session_beyond_the_limit_ends_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_server, "SESSIONS", 1)
    async with spoken(echo()) as mock:
        first = await mock.begin()
        await mock.begin()
        assert await mock.call(1) == "first"
        mock.session = {"Mcp-Session-Id": first}
        assert (await mock.say(id=1, method="ping"))[0] == 404


async def test_a_host_that_is_allowed_by_name_is_accepted() -> None:
    async with spoken(echo(), allowed=("mock.internal",)) as mock:
        await mock.begin()
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        async with await mock.send(body, Host="mock.internal:80") as response:
            assert response.status == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("PUT", "/mcp", 405, "GET, POST, DELETE"),
        ("POST", "/sse", 405, "GET"),
        ("GET", "/messages", 405, "POST"),
        ("GET", "/real_server", 404, None),
    ],
)
async def test_unknown_paths_and_methods_are_refused(
    method: str, path: str, status: int, allow: str | None
) -> None:
    async with spoken(echo()) as mock, mock.client.request(method, mock.url + path) as response:
        assert (response.status, response.headers.get("Allow")) == (status, allow)


async def test_a_client_of_2024_has_one_stream_and_posts_beside_it() -> None:
    async with spoken(Talk().handshake("2024-11-05").call(1)) as mock:
        async with mock.client.get(mock.url + "/sse") as stream:
            name, data = await event(stream)
            assert name == "event: endpoint"
            where = data.removeprefix("data: ")
            for body in (
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}',
                b'[{"jsonrpc":"2.0","id":2,"method":"ping"}]',
            ):
                async with await mock.send(body, where) as response:
                    assert (response.status, await response.text()) == (202, "Accepted")
            said = json.loads((await event(stream))[1].removeprefix("data: "))
            assert (said["id"], said["result"]["said"]) == (1, "yes")
        async with await mock.send(b"{}", "/messages?session_id=nobody") as response:
            assert response.status == 404


@pytest.mark.timeout(60)
async def test_64_clients_at_once_each_get_their_own_answers() -> None:
    talk = Talk().handshake()
    for number in range(100):
        talk.call(number, "echo", f"said {number}", n=number)
    async with spoken(talk) as mock:

        async def client(first: int) -> list[str]:
            own = Spoken(mock.mock, mock.client, mock.url)
            await own.begin()
            return [await own.call(n, n=(first + n) % 100) for n in range(100)]

        async with asyncio.timeout(60):
            answers = await asyncio.gather(*(client(first) for first in range(64)))
    assert answers == [[f"said {(first + n) % 100}" for n in range(100)] for first in range(64)]


async def test_the_mock_serves_while_it_reads(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    entries = [
        ("client", {"id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
        (
            "server",
            {"id": 0, "result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}},
        ),
    ]
    entries.append(("client", {"method": "notifications/initialized"}))
    for number in range(1, 400):
        params = {"name": "echo", "arguments": {"n": number}}
        entries.append(("client", {"id": number, "method": "tools/call", "params": params}))
        entries.append(("server", {"id": number, "result": {"said": f"{number}" + " " * 2000}}))
    header = {"mcpspy": 1, "id": "00000000", "started": "2026-11-21T08:00:00.000Z", "name": "large"}
    lines = [{"t": 0.1, "from": side, "msg": {"jsonrpc": "2.0", **message}} for side, message in entries]
    path.write_text("".join(json.dumps(line) + "\n" for line in (header, *lines)), encoding="utf-8")
    loader = RecordingsLoader([path], [], merge=False)
    async with spoken(loader.begin()) as mock:
        await mock.begin()
        assert (await mock.call(1, n=1)).strip() == "1"
        last = asyncio.ensure_future(mock.call(2, n=399))
        behind = asyncio.ensure_future(mock.call(3, n=1))
        probe = asyncio.ensure_future(mock.ask(4, "server/discover", _meta=modern()))
        done, _ = await asyncio.wait((last, behind, probe), timeout=0.2)
        assert not done
        await mock.mock.read(loader.read_on)
        assert ((await last).strip(), (await behind).strip()) == ("399", "1")
        assert (await probe)[0] == 400


@pytest.mark.parametrize(("echoed", "expected"), [(b"1.0", b"2.0"), (b"1", b"2")])
@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
async def test_an_id_with_a_fraction_is_spelled_as_the_recorded_server_spelled_it(
    echoed: bytes, expected: bytes, method: str
) -> None:
    asked = (
        b'{"jsonrpc":"2.0","id":%b,"method":"'
        + method.encode()
        + b'","params":{"name":"a","_meta":{"progressToken":1}}}'
    )
    notice = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    answer = b'{"jsonrpc":"2.0","id":%b,"result":{"said":"yes"}}'
    talk = Talk().handshake().frame("client", asked % b"1.0")
    if method == "tools/call":
        talk.frame("server", notice)
    talk.frame("server", answer % echoed)
    async with spoken(talk) as mock:
        await mock.begin()
        async with await mock.send(asked % b"2.0") as response:
            assert response.status == 200
            assert (await response.read()).rstrip().endswith(answer % expected)
