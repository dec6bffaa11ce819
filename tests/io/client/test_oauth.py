"""Sign-in at a fake authorization server; `tests/e2e/test_bridge.py` uses that of the Python SDK."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import aiohttp
import pytest
from aiohttp import web

from mcpspy.errors import CannotStart
from mcpspy.io.client import ExchangeRefused, ReceivedMessage, ServerAddress
from mcpspy.io.client import oauth as module
from mcpspy.io.client.http import SIGN_INS, open_http
from mcpspy.io.client.oauth import OAuthClient, OAuthOptions
from mcpspy.io.client.token_store import TokenStore
from tests.io.client.conftest import next_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from tests.io.client.conftest import Handler

    Site = Callable[[Handler], AbstractAsyncContextManager[str]]

pytestmark = pytest.mark.timeout(60)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


class Authority:
    """An MCP server and its authorization server, at one origin. Its user signs in at once."""

    def __init__(self) -> None:
        self.origin = ""
        self.valid: set[str] = set()
        self.refused: set[str] = set()
        """Tokens that the MCP server refuses although they are valid."""
        self.scopes: dict[str, str] = {}
        self.needs = "read"
        self.log: list[tuple[str, dict[str, str]]] = []
        """Paths and parameters of the requests."""
        self.issuer: dict[str, Any] = {}
        """Changes of the issuer's metadata; None removes a member."""
        self.resource: dict[str, Any] = {}
        self.answer: dict[str, str | None] = {}
        """Changes of the parameters that the redirect carries."""
        self.page = ""
        self.before: list[bytes] = []
        """Data that other programs send to the address of the redirect, before the browser does."""
        self.replies: list[bytes] = []
        self.waiting = 0
        """Number of requests for a device's token that the user has not answered yet."""

    @property
    def paths(self) -> list[str]:
        return [path for path, _ in self.log if not path.startswith("/.well-known")]

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        is_json = request.content_type == "application/json"
        body = await request.json() if is_json else dict(parse_qsl(await request.text()))
        self.log.append((request.path, {**dict(request.query), **body}))
        handle = getattr(
            self, request.path.strip("/").replace("-", "_").replace(".", "").replace("/", "_"), None
        )
        return web.Response(status=404) if handle is None else await handle(request, body)

    async def mcp(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        challenge = f'Bearer resource_metadata="{self.origin}/.well-known/about", scope="{self.needs}"'
        if token not in self.valid or token in self.refused:
            return web.json_response(
                {"error": "invalid_token"}, status=401, headers={"WWW-Authenticate": challenge}
            )
        if self.needs not in self.scopes[token].split():
            challenge += ', error="insufficient_scope"'
            return web.json_response({}, status=403, headers={"WWW-Authenticate": challenge})
        return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {}})

    async def well_known_about(self, *_: Any) -> web.StreamResponse:
        about = {"resource": f"{self.origin}/mcp", "authorization_servers": [f"{self.origin}/as"]}
        return web.json_response({**about, **self.resource})

    async def well_known_oauth_authorization_server_as(self, *_: Any) -> web.StreamResponse:
        metadata = {
            "issuer": f"{self.origin}/as",
            **{
                f"{name}_endpoint": f"{self.origin}/{name}"
                for name in ("authorization", "token", "registration")
            },
            "code_challenge_methods_supported": ["S256"],
            **self.issuer,
        }
        return web.json_response({name: value for name, value in metadata.items() if value is not None})

    async def registration(self, _: Any, body: dict[str, Any]) -> web.StreamResponse:
        return web.json_response({**body, "client_id": f"c{self.paths.count('/registration')}"}, status=201)

    async def device(self, *_: Any) -> web.StreamResponse:
        place = f"{self.origin}/activate"
        return web.json_response(
            {
                "device_code": "d1",
                "user_code": "ABCD-EFGH",
                "verification_uri": place,
                "interval": 0,
                "expires_in": 60,
            }
        )

    async def token(self, _: Any, body: dict[str, Any]) -> web.StreamResponse:
        if body["grant_type"] == module.DEVICE and self.waiting:
            self.waiting -= 1
            return web.json_response({"error": "authorization_pending"}, status=400)
        if body["grant_type"] == "authorization_code":
            digest = hashlib.sha256(body["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == self.asked["code_challenge"]
            assert body["redirect_uri"] == self.asked["redirect_uri"]
        if body["grant_type"] == "refresh_token" and body["refresh_token"] != "r":
            return web.json_response({"error": "invalid_grant"}, status=400)
        token = f"t{self.paths.count('/token')}"
        self.valid.add(token)
        self.scopes[token] = getattr(self, "asked", {}).get("scope", body.get("scope", self.needs))
        return web.json_response(
            {"access_token": token, "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r"}
        )

    async def visit(self, url: str) -> None:
        """Do what a browser does whose user consents."""
        asked = self.asked = dict(parse_qsl(urlsplit(url).query))
        self.page = url.partition("?")[0]
        for data in self.before:
            reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(asked["redirect_uri"]).port)
            writer.write(data)
            with suppress(ConnectionError):
                self.replies.append(await reader.read())
            writer.close()
        given = {"code": "xyz", "state": asked["state"], **self.answer}
        query = urlencode({name: value for name, value in given.items() if value is not None})
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{asked['redirect_uri']}?{query}") as page,
        ):
            assert page.status == 200


@pytest.fixture
async def authority(site: Site, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Authority]:
    authority = Authority()
    visits: set[asyncio.Task[None]] = set()

    async def open_browser(url: str) -> None:
        visits.add(asyncio.ensure_future(authority.visit(url)))

    monkeypatch.setattr(module, "_open_browser", open_browser)
    monkeypatch.setenv("BROWSER", "true")
    async with site(authority) as origin:
        authority.origin = origin
        yield authority
        await asyncio.gather(*visits)


@pytest.fixture
def make_client(authority: Authority, tmp_path: Path) -> Callable[..., OAuthClient]:
    def make(**options: Any) -> OAuthClient:
        address = ServerAddress(f"{authority.origin}/mcp")
        return OAuthClient(address, OAuthOptions(**options), TokenStore(address.url, tmp_path / "oauth"))

    return make


async def ask(authority: Authority, client: OAuthClient) -> Any:
    """Send a request and return the next event."""
    async with await open_http(ServerAddress(f"{authority.origin}/mcp"), oauth=client) as connection:
        await connection.send(PING)
        return await next_of(connection)


async def test_a_user_signs_in_once(
    authority: Authority, make_client: Callable[..., OAuthClient], tmp_path: Path
) -> None:
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths == ["/mcp", "/registration", "/token", "/mcp"]
    registered = authority.log[authority.log.index(("/mcp", json.loads(PING))) :]
    assert next(body for path, body in registered if path == "/registration")["application_type"] == "native"
    assert authority.asked["resource"] == f"{authority.origin}/mcp"
    assert authority.asked["scope"] == "read"
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths[4:] == ["/mcp"]
    (file,) = (tmp_path / "oauth").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600


async def test_an_expired_token_is_renewed_without_the_user(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    await ask(authority, make_client())
    authority.valid.clear()
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths[4:] == ["/mcp", "/token", "/mcp"]
    assert authority.log[-2][1]["grant_type"] == "refresh_token"


async def test_a_token_that_ends_soon_is_renewed_before_it_is_refused(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    client = make_client()
    await ask(authority, client)
    client._store.save({**client._entry, "token": {**client._entry["token"], "expires_at": time.time() + 1}})
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths[4:] == ["/token", "/mcp"]


async def test_a_server_of_2025_03_26_without_metadata_has_the_default_endpoints(
    authority: Authority, make_client: Callable[..., OAuthClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> web.StreamResponse:
        return web.Response(status=404)

    monkeypatch.setattr(authority, "well_known_about", nothing)
    monkeypatch.setattr(authority, "well_known_oauth_authorization_server_as", nothing)
    monkeypatch.setattr(authority, "register", authority.registration, raising=False)
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths == ["/mcp", "/register", "/token", "/mcp"]
    assert authority.page == f"{authority.origin}/authorize"


async def test_a_port_scan_does_not_disturb_a_sign_in(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    authority.before = [b"hello\r\n", b"GET /\xff HTTP/1.1\r\n", b"x" * 100_000 + b"\r\n"]
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.replies == [b""] * 3


async def test_a_desktop_has_a_browser(
    authority: Authority, make_client: Callable[..., OAuthClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    authority.issuer = {"device_authorization_endpoint": f"{authority.origin}/device"}
    monkeypatch.delenv("BROWSER")
    monkeypatch.setenv("DISPLAY", ":0")
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert "/device" not in authority.paths


async def test_a_refresh_token_that_has_ended_leads_to_another_sign_in_of_the_same_client(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    client = make_client()
    await ask(authority, client)
    authority.valid.clear()
    client._store.save({**client._entry, "token": {**client._entry["token"], "refresh_token": "ended"}})
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths[4:] == ["/mcp", "/token", "/token", "/mcp"]
    assert authority.asked["client_id"] == "c1"


async def test_more_scopes_are_asked_for_in_addition_to_those_granted(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    await ask(authority, make_client())
    authority.needs = "write"
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.asked["scope"] == "read write"


async def test_a_server_that_refuses_every_token_is_asked_a_few_times(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    authority.valid = Empty()
    refused = await ask(authority, make_client())
    assert (type(refused), refused.status) == (ExchangeRefused, 401)
    assert authority.paths.count("/mcp") == SIGN_INS + 1


async def test_a_request_is_sent_with_the_token_of_the_last_sign_in(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    await ask(authority, make_client())
    authority.valid.clear()
    authority.refused.add("t2")  # That of the refresh token.
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths[4:] == ["/mcp", "/token", "/mcp", "/token", "/mcp"]


class Empty(set[str]):
    def add(self, _: str) -> None:
        """Accept no token."""


async def test_without_a_browser_the_user_enters_a_code_on_another_device(
    authority: Authority,
    make_client: Callable[..., OAuthClient],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "_has_browser", lambda: False)
    authority.issuer = {"device_authorization_endpoint": f"{authority.origin}/device"}
    authority.waiting = 2
    assert isinstance(await ask(authority, make_client()), ReceivedMessage)
    assert authority.paths == ["/mcp", "/registration", "/device", "/token", "/token", "/token", "/mcp"]
    assert f"open {authority.origin}/activate, enter ABCD-EFGH" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("status", "device", "tokens", "why"),
    [
        (400, {"error": "no"}, [], 'device authorization failed with HTTP 400: {"error": "no"}'),
        (200, {"device_code": "d", "user_code": "A"}, [], "malformed: KeyError: 'verification_uri'"),
        (200, {"expires_in": 0}, [], "the code was not entered in time"),
        (200, {}, ["slow_down", "authorization_pending", "access_denied"], "access_denied: "),
    ],
)
async def test_a_device_that_is_not_authorized_is_refused_with_the_reason(
    status: int,
    device: dict[str, Any],
    tokens: list[str],
    why: str,
    *,
    authority: Authority,
    make_client: Callable[..., OAuthClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = {"device_code": "d", "user_code": "A", "verification_uri": "https://x.example", "interval": 0}
    form = device if status != 200 or "device_code" in device else {**whole, **device}
    left = iter(tokens)

    async def answer_device(*_: Any) -> web.StreamResponse:
        return web.json_response(form, status=status)

    async def answer_token(*_: Any) -> web.StreamResponse:
        return web.json_response({"error": next(left)}, status=400)

    monkeypatch.setattr(authority, "device", answer_device)
    monkeypatch.setattr(authority, "token", answer_token)
    monkeypatch.setattr(module, "POLL", 0.001)
    monkeypatch.setattr(module, "_has_browser", lambda: False)
    authority.issuer = {"device_authorization_endpoint": f"{authority.origin}/device"}

    with pytest.raises(CannotStart) as error:
        await make_client().renew(None, f'Bearer resource_metadata="{authority.origin}/.well-known/about"')
    assert why in str(error.value)
    assert list(left) == []


async def test_a_refused_registration_and_a_sign_in_that_takes_too_long_are_reported(
    authority: Authority, make_client: Callable[..., OAuthClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: Any) -> None:
        pass

    async def refuse(*_: Any) -> web.StreamResponse:
        return web.Response(status=403, text="not here")

    challenge = f'Bearer resource_metadata="{authority.origin}/.well-known/about"'
    monkeypatch.setattr(module, "SIGN_IN", 0.01)
    client = make_client()
    monkeypatch.setattr(module, "_open_browser", nothing)
    with pytest.raises(CannotStart, match="the user did not sign in within 0 s"):
        await client.renew(None, challenge)

    monkeypatch.setattr(authority, "registration", refuse)
    with pytest.raises(CannotStart, match="registration failed with HTTP 403: not here"):
        await make_client().renew(None, challenge)


async def test_a_client_that_the_user_names_is_not_registered(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    client = make_client(client_id="mine", client_secret="s3", scope="a b")
    await ask(authority, client)
    assert "/registration" not in authority.paths
    assert (authority.asked["client_id"], authority.asked["scope"]) == ("mine", "a b")
    assert next(body for path, body in authority.log if path == "/token")["client_secret"] == "s3"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"issuer": {"issuer": "https://other.example"}}, "has the issuer https://other.example"),
        ({"issuer": {"code_challenge_methods_supported": None}}, "does not support PKCE with S256"),
        ({"issuer": {"registration_endpoint": None}}, "name one with --oauth-client-id"),
        (
            {"resource": {"resource": "https://other.example/mcp"}},
            "its metadata is for https://other.example/mcp",
        ),
        ({"issuer": {"authorization_endpoint": None}}, "malformed: KeyError: 'authorization_endpoint'"),
        ({"resource": {"authorization_servers": 7}}, "malformed: TypeError"),
        ({"answer": {"state": "other"}}, "the answer has another state"),
        ({"answer": {"iss": "https://other.example"}}, "another authorization server"),
        (
            {"issuer": {"authorization_response_iss_parameter_supported": True}},
            "another authorization server",
        ),
        (
            {"answer": {"code": None, "error": "access_denied"}},
            "access_denied: the user or the server refused",
        ),
    ],
)
async def test_a_sign_in_that_cannot_be_trusted_or_fails_is_refused_with_the_reason(
    changes: dict[str, Any], why: str, authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    for name, value in changes.items():
        setattr(authority, name, value)
    with pytest.raises(CannotStart, match=f"cannot sign in to {authority.origin}/mcp: .*{why}"):
        await make_client().renew(None, f'Bearer resource_metadata="{authority.origin}/.well-known/about"')
    assert "/token" not in authority.paths
    refused = await ask(authority, make_client())
    assert refused.why.startswith("HTTP 401 Unauthorized")
    assert why in refused.why


async def test_requests_at_the_same_time_sign_in_once(
    authority: Authority, make_client: Callable[..., OAuthClient]
) -> None:
    clients = make_client(), make_client()
    challenge = f'Bearer resource_metadata="{authority.origin}/.well-known/about"'
    await asyncio.gather(*(client.renew(None, challenge) for client in (*clients, clients[0])))
    assert authority.paths.count("/token") == 1
    assert clients[0].token == clients[1].token == "t1"
