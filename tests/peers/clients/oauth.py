"""The Python SDK's client at a server that requires a token: it registers, is authorized, and calls a tool.

    .peers/venv/bin/python tests/peers/clients/oauth.py [--mode auto|legacy|2026-07-28] [--any-resource] [--secrets FILE] [--meet PORT] -- URL

There is no browser and no user: this client requests the authorization endpoint, which must redirect at once. Prints
its requests by origin and the result of the tool, as JSON; one line on stderr and exit code 1 if it was rejected.
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import anyio
import httpx2
import mcp_types as types
import sdk
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AnyUrl

SECRETS = frozenset(
    "code state code_challenge code_verifier client_secret access_token refresh_token".split()
)

CALLBACK = "http://127.0.0.1:9/callback"  # Never requested: the code is read from the redirect to it.


class Storage:
    """Storage of client and tokens, in memory."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class User:
    """The user with a browser."""

    def __init__(self, meets: int | None = None) -> None:
        self._meets = meets
        self.secrets: dict[str, str] = {}
        """Name → value of each code, token, state and verifier, and of the client's secret."""
        self._back = httpx2.URL(CALLBACK)
        self.asked: list[str] = []
        """All requests, in order."""

    async def hear(self, request: httpx2.Request) -> None:
        self.asked.append(f"{request.method} {request.url.copy_with(query=None)}")
        form = parse_qsl(request.content.decode() if request.method == "POST" else "")
        self.keep([*request.url.params.items(), *form])

    def keep(self, values: Iterable[tuple[str, Any]]) -> None:
        """Keep the values that no recording may contain."""
        self.secrets.update((name, str(value)) for name, value in values if name in SECRETS and value)

    async def authorize(self, url: str) -> None:
        if self._meets is not None:
            async with await anyio.connect_tcp("127.0.0.1", self._meets) as others:
                await others.receive()
        async with httpx2.AsyncClient(event_hooks={"request": [self.hear]}) as browser:
            answer = await browser.get(url)
            if not answer.is_redirect:
                raise RuntimeError(f"not authorized: {answer.status_code} {answer.text[:200]}")
            self._back = httpx2.URL(answer.headers["location"])
            self.keep(self._back.params.items())

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(self._back.params))


async def accept(url: str, resource: str | None) -> None:
    """Accept metadata of another resource than the URL."""


def use_resource_of_metadata(auth: OAuthClientProvider) -> None:
    """Request tokens for the resource that the metadata names, whatever the URL is."""
    given = auth.context.get_resource_url

    def resource() -> str:
        metadata = auth.context.protected_resource_metadata
        return given() if metadata is None else str(metadata.resource)

    auth.context.get_resource_url = resource


async def run(url: str, options: argparse.Namespace) -> dict[str, Any]:
    user, storage = User(options.meet), Storage()
    about = OAuthClientMetadata(client_name="oauth-client", redirect_uris=[AnyUrl(CALLBACK)])
    auth = OAuthClientProvider(
        url,
        about,
        storage,
        user.authorize,
        user.come_back,
        validate_resource_url=accept if options.any_resource else None,
    )
    if options.any_resource:
        use_resource_of_metadata(auth)
    info = types.Implementation(name="oauth-client", version="1.0.0")
    with anyio.fail_after(sdk.OVERALL_SECONDS):
        async with create_mcp_http_client(auth=auth) as http:
            # The provider's own requests do not trigger event hooks.
            plain = http._transport.handle_async_request

            async def handle(request: httpx2.Request) -> httpx2.Response:
                await user.hear(request)
                return await plain(request)

            http._transport.handle_async_request = handle
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=options.mode, client_info=info) as client:
                result = await client.call_tool("scopes")
    for given in (await storage.get_tokens(), await storage.get_client_info()):
        user.keep(given.model_dump().items() if given is not None else ())
    if options.secrets is not None:
        options.secrets.write_text(json.dumps(user.secrets), encoding="utf-8")
    # The requests of the authorization; the GET of a stream comes at any time.
    asked = [line for line in user.asked if not line.endswith(" " + url)]
    return {"asked": asked, "scopes": sdk.plain(result.structured_content)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Be authorized, and call a tool.")
    parser.add_argument("--mode", choices=["auto", "legacy", *MODERN_PROTOCOL_VERSIONS], default="auto")
    parser.add_argument("--any-resource", action="store_true", help="accept metadata of another resource")
    parser.add_argument(
        "--secrets", type=Path, help="write the values that no recording may contain, as JSON"
    )
    parser.add_argument("--meet", type=int, help="authorize when a server on this port sends something")
    parser.add_argument("url")
    options = parser.parse_args()
    try:
        transcript = anyio.run(run, options.url, options)
    except Exception as error:
        print(f"oauth.py: {sdk.reason(error)}", file=sys.stderr)
        return 1
    print(json.dumps(transcript, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
