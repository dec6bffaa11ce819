"""Sign-in for servers that require OAuth: discovery, registration, and a browser or another device.

Sources: MCP basic/authorization of 2025-03-26 to 2026-07-28; RFC 9728, 8414, 7591, 7636, 8628, 8707, 9207. authlib
makes and reads the messages of OAuth. None of them is recorded: they consist of secrets.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from asyncio.subprocess import DEVNULL
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import parse_qsl, urlsplit

from mcpspy.core.redact.display import redacted_text
from mcpspy.errors import CannotStart
from mcpspy.io.client.token_store import TokenStore
from mcpspy.io.network.outgoing import trust
from mcpspy.io.recording.recorder import say

if TYPE_CHECKING:
    from authlib.integrations.httpx_client import AsyncOAuth2Client

    from mcpspy.io.client.base import ServerAddress


TIMEOUT = 30.0
"""Seconds for one request to an authorization server."""

SIGN_IN = 300.0
"""Seconds that the user has to sign in."""

EARLY = 30
"""Seconds before its end at which a token is renewed."""

CALLBACK = "/callback"

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"

POLL = 5.0
"""Seconds between two requests for the token of a device, if the server names none (RFC 8628, 3.2)."""

_PARAMETER = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,"]+))')

_PAGE = b"HTTP/1.1 %b\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b"


def is_installed() -> bool:
    return find_spec("authlib") is not None and find_spec("httpx") is not None


class OAuthOptions(NamedTuple):
    """A client that is registered already, and the scopes to ask for."""

    client_id: str | None = None
    client_secret: str | None = None
    scope: str | None = None
    """Scopes, separated by spaces; None asks for those that the server names."""


class OAuthClient:
    """The token for one server. `renew` gets another one, with the user's help if it must."""

    def __init__(
        self, address: ServerAddress, options: OAuthOptions | None = None, store: TokenStore | None = None
    ) -> None:
        self._address = address
        self._options = options or OAuthOptions()
        self._resource = address.url.partition("#")[0]
        self._store = store or TokenStore(self._resource)
        self._entry = self._store.load()
        self._lock = asyncio.Lock()
        self._renewed = ""
        """The last token that came from a refresh token."""

    @property
    def token(self) -> str | None:
        """The current access token."""
        token = self._entry.get("token", {}).get("access_token")
        return token if isinstance(token, str) else None

    @property
    def is_expiring(self) -> bool:
        """True if the token ends soon and can be renewed without the user."""
        token = self._entry.get("token", {})
        return "refresh_token" in token and token.get("expires_at", float("inf")) < time.time() + EARLY

    async def renew(self, refused: str | None, challenge: str = "") -> None:
        """Get another token than the one that was refused. `challenge` is `WWW-Authenticate`. Raises CannotStart."""
        import httpx
        from authlib.common.errors import AuthlibBaseError

        async with self._lock, self._store.exclusive():
            self._entry = self._store.load()
            if self.token is not None and self.token != refused:
                return  # Another request or process has signed in.
            asked = {name: quoted or plain for name, quoted, plain in _PARAMETER.findall(challenge)}
            # A token that was renewed just now is refused for another reason than its age.
            may_renew = asked.get("error") != "insufficient_scope" and refused != self._renewed
            try:
                if not (may_renew and await self._refresh()):
                    await self._sign_in(asked)
            except (AuthlibBaseError, httpx.HTTPError, ValueError) as error:
                why = redacted_text(str(error)) or type(error).__name__
                raise CannotStart(f"cannot sign in to {self._address.shown}: {why}") from None
            except (AttributeError, LookupError, TypeError) as error:
                # A member is missing, or of another type.
                why = f"the authorization server's metadata is malformed: {type(error).__name__}: {error}"
                raise CannotStart(f"cannot sign in to {self._address.shown}: {redacted_text(why)}") from None
            self._store.save(self._entry)

    async def _refresh(self) -> bool:
        """Return whether the refresh token gave another token."""
        from authlib.common.errors import AuthlibBaseError

        token, server = self._entry.get("token", {}), self._entry.get("server", {})
        if "refresh_token" not in token or "token_endpoint" not in server:
            return False
        async with self._client() as client:
            try:
                renewed = await client.refresh_token(
                    server["token_endpoint"], token["refresh_token"], resource=self._entry.get("audience")
                )
            except AuthlibBaseError:  # It has ended: the user signs in again.
                return False
        self._entry["token"] = {**token, **renewed}
        self._renewed = renewed["access_token"]
        return True

    async def issuer(self) -> str:
        """Return the authorization server that the metadata name; a user could sign in there. Raise CannotStart."""
        import httpx

        try:
            _, server = await self._discover({})
        except (httpx.HTTPError, ValueError, AttributeError, LookupError, TypeError) as error:
            raise CannotStart(redacted_text(str(error)) or type(error).__name__) from None
        return str(server["issuer"])

    async def _discover(self, asked: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the metadata of the server and of its authorization server."""
        async with self._client() as http:
            protected = await self._protected_resource(http, asked.get("resource_metadata"))
            issuers = protected.get("authorization_servers") or [_origin(self._resource)]
            return protected, await self._server_metadata(http, issuers[0], has_metadata=bool(protected))

    async def _sign_in(self, asked: dict[str, str]) -> None:
        protected, server = await self._discover(asked)
        before = self._entry if self._entry.get("server", {}).get("issuer") == server["issuer"] else {}
        self._entry = {
            "audience": protected.get("resource", self._resource),
            "server": server,
            "client": before.get("client", {}),
            "scope": self._scope(asked, protected, before),
        }
        if not _has_browser() and "device_authorization_endpoint" in server:
            await self._register(None)
            self._entry["token"] = await self._on_device(server)
        else:
            self._entry["token"] = await self._in_browser(server)
        say(f"signed in to {self._address.shown}")

    def _scope(self, asked: dict[str, str], protected: dict[str, Any], before: dict[str, Any]) -> str | None:
        """Return the scopes of the challenge, else of the metadata, with those granted before."""
        if self._options.scope is not None:
            return self._options.scope
        named = asked.get("scope", "").split() or protected.get("scopes_supported") or []
        granted = (before.get("scope") or "").split() if asked.get("error") == "insufficient_scope" else []
        return " ".join(dict.fromkeys([*granted, *named])) or None

    def _client(self, redirect: str | None = None) -> AsyncOAuth2Client:
        from authlib.integrations.httpx_client import AsyncOAuth2Client

        client = self._entry.get("client", {})
        return AsyncOAuth2Client(
            client.get("client_id"),
            client.get("client_secret"),
            token_endpoint_auth_method=client.get("token_endpoint_auth_method", "none"),
            scope=self._entry.get("scope"),
            redirect_uri=redirect,
            code_challenge_method="S256",
            verify=trust(self._address.cacert, insecure=self._address.insecure),
            timeout=TIMEOUT,
        )

    async def _protected_resource(self, http: AsyncOAuth2Client, named: str | None) -> dict[str, Any]:
        """Return the metadata of the server (RFC 9728); empty for a server of 2025-03-26, which has none."""
        url = urlsplit(self._resource)
        well_known = f"{_origin(self._resource)}/.well-known/oauth-protected-resource"
        places = [named] if named else [well_known + url.path.rstrip("/"), well_known]
        found = await self._first(http, dict.fromkeys(places))
        resource = found.get("resource", self._resource)
        if not f"{self._resource.rstrip('/')}/".startswith(f"{str(resource).rstrip('/')}/"):
            raise ValueError(f"its metadata is for {resource}, not for {self._resource}")
        return found

    async def _server_metadata(
        self, http: AsyncOAuth2Client, issuer: str, *, has_metadata: bool
    ) -> dict[str, Any]:
        """Return the metadata of an authorization server (RFC 8414, OpenID Connect Discovery)."""
        origin, path = _origin(issuer), urlsplit(issuer).path.rstrip("/")
        names = ("oauth-authorization-server", "openid-configuration")
        places = [f"{origin}/.well-known/{name}{path}" for name in names]
        if path:
            places.append(f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        server = await self._first(http, places)
        if not server and not has_metadata:  # 2025-03-26: these are the endpoints without metadata.
            ends = {"authorization": "authorize", "token": "token", "registration": "register"}
            return {"issuer": issuer, **{f"{name}_endpoint": f"{origin}/{end}" for name, end in ends.items()}}
        if server.get("issuer", "").rstrip("/") != issuer.rstrip("/"):
            raise ValueError(f"the metadata of {issuer} has the issuer {server.get('issuer')}")
        if "S256" not in server.get("code_challenge_methods_supported", ["S256"] if not has_metadata else []):
            raise ValueError(f"{issuer} does not support PKCE with S256")
        return server

    async def _first(self, http: AsyncOAuth2Client, places: Iterable[str]) -> dict[str, Any]:
        """Return the first JSON object at these places; empty if there is none."""
        for place in places:
            answer = await http.request(
                "GET", place, withhold_token=True, headers={"Accept": "application/json"}
            )
            if answer.status_code == 200:
                found = answer.json()
                return found if isinstance(found, dict) else {}
        return {}

    async def _register(self, redirect: str | None) -> None:
        """Use the client that the user names, or the one that is known, or register one (RFC 7591)."""
        server, known = self._entry["server"], self._entry["client"]
        if self._options.client_id is not None:
            method = "client_secret_post" if self._options.client_secret else "none"
            self._entry["client"] = {
                "client_id": self._options.client_id,
                "client_secret": self._options.client_secret,
                "token_endpoint_auth_method": method,
            }
            return
        if known and (redirect is None or redirect in known.get("redirect_uris", ())):
            return
        if "registration_endpoint" not in server:
            raise ValueError(
                f"{server['issuer']} registers no clients itself: name one with --oauth-client-id"
            )
        grants = ["authorization_code", "refresh_token", *([DEVICE] if redirect is None else [])]
        body = {
            "client_name": "mcpspy",
            "application_type": "native",
            "redirect_uris": [redirect or f"http://127.0.0.1{CALLBACK}"],
            "grant_types": grants,
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            **({"scope": self._entry["scope"]} if self._entry["scope"] else {}),
        }
        async with self._client() as http:
            answer = await http.request(
                "POST", server["registration_endpoint"], json=body, withhold_token=True
            )
        client = answer.json() if answer.status_code in (200, 201) else None
        if not isinstance(client, dict) or "client_id" not in client:
            raise ValueError(f"registration failed with HTTP {answer.status_code}: {answer.text[:200]}")
        self._entry["client"] = {"redirect_uris": body["redirect_uris"], **client}

    async def _in_browser(self, server: dict[str, Any]) -> dict[str, Any]:
        """Send the user to the server's page and return the token for the code that comes back."""
        from authlib.common.security import generate_token

        async with _Callback(self._entry["client"].get("redirect_uris", ())) as callback:
            await self._register(callback.url)
            verifier = generate_token(64)
            async with self._client(callback.url) as client:
                url, state = client.create_authorization_url(
                    server["authorization_endpoint"],
                    code_verifier=verifier,
                    resource=self._entry["audience"],
                )
                say(f"sign in to {self._address.shown}: {url}")
                await _open_browser(url)
                try:
                    answer = await asyncio.wait_for(callback.received, SIGN_IN)
                except TimeoutError:
                    raise ValueError(f"the user did not sign in within {SIGN_IN:.0f} s") from None
                _check(answer, state, server)
                return dict(
                    await client.fetch_token(
                        server["token_endpoint"],
                        code=answer["code"],
                        code_verifier=verifier,
                        resource=self._entry["audience"],
                    )
                )

    async def _on_device(self, server: dict[str, Any]) -> dict[str, Any]:
        """Show a code that the user enters on another device, and wait for the token (RFC 8628)."""
        from authlib.common.errors import AuthlibBaseError

        client_id, audience = self._entry["client"]["client_id"], self._entry["audience"]
        form = {"client_id": client_id, "scope": self._entry["scope"], "resource": audience}
        async with self._client() as client:
            answer = await client.request(
                "POST",
                server["device_authorization_endpoint"],
                data={name: value for name, value in form.items() if value},
                withhold_token=True,
            )
            device = answer.json() if answer.status_code == 200 else {}
            if "device_code" not in device:
                raise ValueError(
                    f"device authorization failed with HTTP {answer.status_code}: {answer.text[:200]}"
                )
            say(
                f"sign in to {self._address.shown}: open {device['verification_uri']}, enter {device['user_code']}"
            )
            wait, end = device.get("interval", POLL), time.monotonic() + device.get("expires_in", SIGN_IN)
            while time.monotonic() < end:
                await asyncio.sleep(wait)
                try:
                    return dict(
                        await client.fetch_token(
                            server["token_endpoint"],
                            grant_type=DEVICE,
                            device_code=device["device_code"],
                            client_id=client_id,
                            resource=audience,
                        )
                    )
                except AuthlibBaseError as error:
                    if error.error == "slow_down":
                        wait += POLL
                    elif error.error != "authorization_pending":
                        raise
        raise ValueError("the code was not entered in time")


class _Callback:
    """A listener on loopback for the redirect from the authorization server (RFC 8252, 7.3)."""

    def __init__(self, registered: Sequence[str]) -> None:
        """Create a listener that uses the port of a registered redirect URI if it is free."""
        self.received: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self.url = ""
        self._ports = [port for uri in registered if (port := urlsplit(uri).port)]
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        for port in self._ports:
            with suppress(OSError):
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
                break
        else:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        assert self._server is not None
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{CALLBACK}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            target = (await asyncio.wait_for(reader.readline(), TIMEOUT)).split(b" ")[1].decode("ascii")
            path, _, query = target.partition("?")
            answer = dict(parse_qsl(query))
            is_answer = path == CALLBACK and ("code" in answer or "error" in answer)
            if is_answer and not self.received.done():
                self.received.set_result(answer)
            status = b"200 OK" if is_answer else b"404 Not Found"
            text = (
                b"You can close this page and return to your host."
                if is_answer
                else b"mcpspy waits for a sign-in."
            )
            writer.write(_PAGE % (status, len(text), text))
            await writer.drain()
        except (IndexError, ValueError, OSError, TimeoutError):  # Not a browser.
            pass
        finally:
            writer.close()


def _check(answer: dict[str, str], state: str, server: dict[str, Any]) -> None:
    """Raise ValueError for an answer to another request, or from another server (RFC 9207, 2.4)."""
    is_named = server.get("authorization_response_iss_parameter_supported") is True
    if answer.get("state") != state:
        raise ValueError("the answer has another state: it is not to this request")
    if ("iss" in answer or is_named) and answer.get("iss") != server["issuer"]:
        raise ValueError("the answer is from another authorization server")
    if "code" not in answer:
        raise ValueError(
            f"{answer['error']}: {answer.get('error_description', 'the user or the server refused')}"
        )


def _has_browser() -> bool:
    if sys.platform.startswith("linux") and not (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    ):
        return "BROWSER" in os.environ
    return True


async def _open_browser(url: str) -> None:
    """Open a page. In another process, because a text browser would write to stdout, which is the host's."""
    if _has_browser():
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "webbrowser", url), stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
