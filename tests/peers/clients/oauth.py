"""The Python SDK's client at a server that requires a token: it registers, is authorized, and calls a tool.

    .peers/venv/bin/python tests/peers/clients/oauth.py [--mode auto|legacy|2026-07-28] -- URL

There is no browser and no user: this client requests the authorization endpoint, which must redirect at once. Prints
its requests by origin and the result of the tool, as JSON; one line on stderr and exit code 1 if it was rejected.
"""

import argparse
import json
import sys
from typing import Any

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

    def __init__(self) -> None:
        self._back = httpx2.URL(CALLBACK)
        self.asked: list[str] = []
        """All requests, in order."""

    async def hear(self, request: httpx2.Request) -> None:
        self.asked.append(f"{request.method} {request.url.copy_with(query=None)}")

    async def authorize(self, url: str) -> None:
        async with httpx2.AsyncClient(event_hooks={"request": [self.hear]}) as browser:
            answer = await browser.get(url)
            if not answer.is_redirect:
                raise RuntimeError(f"not authorized: {answer.status_code} {answer.text[:200]}")
            self._back = httpx2.URL(answer.headers["location"])

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult.model_validate(dict(self._back.params))


async def run(url: str, mode: str) -> dict[str, Any]:
    user = User()
    about = OAuthClientMetadata(client_name="oauth-client", redirect_uris=[AnyUrl(CALLBACK)])
    auth = OAuthClientProvider(url, about, Storage(), user.authorize, user.come_back)
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
            async with Client(transport, mode=mode, client_info=info) as client:
                result = await client.call_tool("scopes")
    # The requests of the authorization; the GET of a stream comes at any time.
    asked = [line for line in user.asked if not line.endswith(" " + url)]
    return {"asked": asked, "scopes": sdk.plain(result.structured_content)}


def main() -> int:
    parser = argparse.ArgumentParser(description="Be authorized, and call a tool.")
    parser.add_argument("--mode", choices=["auto", "legacy", *MODERN_PROTOCOL_VERSIONS], default="auto")
    parser.add_argument("url")
    options = parser.parse_args()
    try:
        transcript = anyio.run(run, options.url, options.mode)
    except Exception as error:
        print(f"oauth.py: {sdk.reason(error)}", file=sys.stderr)
        return 1
    print(json.dumps(transcript, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
