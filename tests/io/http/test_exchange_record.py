"""The text of a refusal in the recording: the beginning of its body, and the headers that show who refused."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from tests.io.http_spy import EVENTS, JSON, PING, chunk, event, plain

if TYPE_CHECKING:
    from tests.io.http_spy import Start

pytestmark = pytest.mark.timeout(60)

PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


@pytest.mark.parametrize(
    ("status", "kind"),
    [("502 Bad Gateway", "text/html"), ("404 Not Found", "text/plain"), ("200 OK", "text/html")],
)
async def test_the_body_of_a_refusal_is_recorded_before_its_end_is_forwarded(
    proxy: Start, status: str, kind: str
) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(
            plain(PAGE, f"Content-Type: {kind}", "Server: nginx", "X-RateLimit-Limit: 9", status=status)
        )
        assert await client.answer() == (int(status[:3]), PAGE)
        (end,), (head,) = spy.notes("http-end"), spy.notes("http")
        assert (end["body"], end["size"], "cut" in end) == (PAGE.decode(), len(PAGE), False)
        assert (head["response"]["server"], head["response"]["x-ratelimit-limit"]) == ("nginx", "9")


async def test_no_more_than_the_beginning_of_a_long_refusal_is_recorded(proxy: Start) -> None:
    body = b"<p>no</p>" * 100_000
    async with proxy() as spy:
        client, call = await spy.exchange()
        head = plain(b"", "Transfer-Encoding: chunked", status="503 Busy").replace(
            b"Content-Length: 0\r\n", b""
        )
        await call.send(head + chunk(body[:1000]) + chunk(body[1000:]) + chunk(b""))
        await client.head()
        assert await client.body() == body
        (end,) = spy.notes("http-end")
        assert (end["size"], end["cut"]) == (len(body), True)
        assert body.decode().startswith(end["body"])
        assert 2000 < len(end["body"]) <= 2048


async def test_a_compressed_refusal_is_recorded_readable(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        packed = gzip.compress(PAGE, mtime=0)
        await call.send(plain(packed, "Content-Encoding: gzip", status="502 Bad Gateway"))
        assert await client.answer() == (502, packed)
        assert spy.notes("http-end")[0]["body"] == PAGE.decode()


async def test_secrets_in_a_refusal_are_redacted(proxy: Start) -> None:
    async with proxy() as spy:
        client, call = await spy.exchange()
        token = b"ghp_0123456789abcdefABCDEF0123456789abcd"
        await call.send(plain(b"bad token " + token + b' {"password":"hunter22"}', status="401 No"))
        await client.answer()
        body = spy.notes("http-end")[0]["body"]
        assert body.startswith("bad token [redacted:")
        assert "hunter22" not in body


async def test_a_message_with_an_error_status_is_recorded_once_as_a_message(proxy: Start) -> None:
    error = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"no session"}}'
    async with proxy() as spy:
        client, call = await spy.exchange()
        await call.send(plain(error, JSON, "Server: uvicorn", status="400 Bad Request"))
        assert await client.answer() == (400, error)
        assert spy.said("server") == [error]
        assert "body" not in spy.notes("http-end")[0]
        assert spy.notes("http")[0]["response"]["server"] == "uvicorn"


async def test_an_ordinary_response_has_neither_a_body_nor_more_headers(proxy: Start) -> None:
    async with proxy() as spy:
        for answer in (
            plain(PING, JSON, "Server: uvicorn", "Via: 1.1 x"),
            plain(b"Accepted", "Content-Type: text/plain", "Server: uvicorn", status="202 Accepted"),
        ):
            client, call = await spy.exchange()
            await call.send(answer)
            await client.answer()
        assert all("body" not in end for end in spy.notes("http-end"))
        assert all(not {"server", "via"} & {*head["response"]} for head in spy.notes("http"))


async def test_a_preflight_has_the_headers_of_cors_on_both_sides(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        asked = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: mcp-session-id")
        await client.ask("OPTIONS", "/mcp", None, "Origin: http://localhost:5173", *asked)
        call = await spy.server.call()
        await call.send(plain(b"OK", "Access-Control-Allow-Origin: *", "Allow: POST", "Server: uvicorn"))
        await client.answer()
        (head,) = spy.notes("http")
        assert head["request"] == {
            "host": spy.host,
            "origin": "http://localhost:5173",
            "access-control-request-method": "POST",
            "access-control-request-headers": "mcp-session-id",
        }
        wanted = {"access-control-allow-origin": "*", "allow": "POST", "server": "uvicorn"}
        assert wanted.items() <= head["response"].items()
        assert "body" not in spy.notes("http-end")[0]


async def test_a_preflight_is_not_a_step_of_oauth(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("OPTIONS", "/register", None, "Origin: http://localhost:6274")
        await (await spy.server.call()).send(plain(b"", "Access-Control-Allow-Origin: *"))
        await client.answer()
        await client.ask("POST", "/register", b"{}")
        await (await spy.server.call()).send(plain(b"", status="404 Not Found"))
        await client.answer()
        (step,) = spy.notes("oauth")
        assert (step["step"], step["status"]) == ("registration", 404)


async def test_of_a_refused_step_of_oauth_only_the_error_is_recorded(proxy: Start) -> None:
    refused = b'{"error":"invalid_grant","error_description":"expired","debug":"user-4711"}'
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("POST", "/token", b"grant_type=refresh_token&refresh_token=r3fresh")
        await (await spy.server.call()).send(plain(refused, JSON, "Server: auth", status="400 Bad Request"))
        assert await client.answer() == (400, refused)
        (step,) = spy.notes("oauth")
        assert (step["error"], step["error_description"]) == ("invalid_grant", "expired")
        assert spy.notes("http")[0]["response"]["server"] == "auth"
        assert b"user-4711" not in spy.recording.read_bytes()


@pytest.mark.parametrize("mark", ["?", "#", "?app=1#"])
async def test_the_error_of_a_refused_sign_in_is_recorded_without_the_state(proxy: Start, mark: str) -> None:
    query = "error=invalid_scope&error_description=unknown%20scope%3A+files&state=s3cret"
    location = f"http://127.0.0.1:9/callback{mark}{query}"
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("GET", "/authorize?scope=files&state=s3cret")
        await (await spy.server.call()).send(plain(b"", f"Location: {location}", status="302 Found"))
        assert (await client.answer())[0] == 302
        (step,) = spy.notes("oauth")
        assert (step["error"], step["error_description"]) == ("invalid_scope", "unknown scope: files")
        assert (
            "error=invalid_scope&error_description=[redacted]" in spy.notes("http")[0]["response"]["location"]
        )
        assert b"s3cret" not in spy.recording.read_bytes()


async def test_the_body_of_another_path_is_not_recorded(proxy: Start) -> None:
    async with proxy() as spy:
        client = await spy.client()
        await client.ask("GET", "/other")
        await (await spy.server.call()).send(plain(b"private", status="403 Forbidden"))
        await client.answer()
        assert b"private" not in spy.recording.read_bytes()


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("rules", [(), ("--delay", "x")])
async def test_the_ends_of_events_are_recorded_with_the_first_one(
    proxy: Start, end: bytes, rules: tuple[str, ...]
) -> None:
    given = ["method:tools/list => delay 0s"] if rules else []
    async with proxy("/mcp", *given) as spy:
        client, call = await spy.exchange()
        await call.send(EVENTS + chunk(event(PING, end)) + chunk(event(PING, end)) + chunk(b""))
        await client.head()
        await client.body()
        first, second = [
            line for line in spy.recording.read_bytes().split(b"\n") if b'"event":"message"' in line
        ]
        named = b'"event_end":%b,' % (b'"' + repr((end * 2).decode())[1:-1].encode() + b'"')
        assert (named in first) is (end != b"\n")
        assert b"event_end" not in second


@pytest.mark.parametrize("rules", [(), ("method:tools/list => delay 0s",)])
async def test_an_event_without_a_space_before_its_data_is_recorded_as_such(
    proxy: Start, rules: tuple[str, ...]
) -> None:
    async with proxy("/mcp", *rules) as spy:
        client, call = await spy.exchange()
        bare = event(PING).replace(b"data: ", b"data:")
        await call.send(EVENTS + chunk(bare) + chunk(event(PING)) + chunk(b""))
        await client.head()
        assert (await client.body()).startswith(bare)
        first, second = [
            line for line in spy.recording.read_bytes().split(b"\n") if b'"event":"message"' in line
        ]
        assert b'"data_space":false,' in first
        assert b"data_space" not in second


async def test_a_server_card_is_recorded_and_other_documents_are_not(proxy: Start) -> None:
    card = b'{\n "name": "com.example/a"\n}'
    async with proxy() as spy:
        client = await spy.client()
        for path, body in (
            ("/mcp/server-card", card),
            ("/.well-known/ai-catalog.json", b"{"),
            ("/other", b"{}"),
        ):
            await client.ask("GET", path)
            headers = (
                ("Content-Type: application/mcp-server-card+json", 'ETag: "1"') if body == card else (JSON,)
            )
            await (await spy.server.call()).send(plain(body, *headers, "Access-Control-Allow-Origin: *"))
            assert await client.answer() == (200, body)
        found = [
            (note["document"], note["path"], note["body"], note.get("etag")) for note in spy.notes("document")
        ]
        assert found == [
            ("server card", "/mcp/server-card", {"name": "com.example/a"}, '"1"'),
            ("AI catalog", "/.well-known/ai-catalog.json", "{", None),
        ]
        assert spy.notes("document")[0]["allow_origin"] == "*"
