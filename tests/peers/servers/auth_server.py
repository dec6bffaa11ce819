"""A server on the Python SDK that requires a token, and issues tokens itself.

Its authorization server asks no user: `/authorize` redirects back with a code at once. All its data is in memory,
and is lost with the process.

    .peers/venv/bin/python tests/peers/servers/auth_server.py --port 8000 [--bound] [--undescribed] [--public-url URL]
"""

import os
import sys
from contextlib import suppress

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with suppress(ImportError):  # A copy of this file is alone.
    import forked  # noqa: F401 - a fork that has imported the SDK may run this file.

import argparse
import secrets
import time
from collections.abc import Sequence

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

SCOPE = "tools"
SECONDS = 300


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Clients, codes and tokens, in memory."""

    def __init__(self) -> None:
        self._clients: dict[str | None, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            scopes=params.scopes or [SCOPE],
            expires_at=time.time() + SECONDS,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        token = AccessToken(
            token=secrets.token_urlsafe(),
            client_id=authorization_code.client_id,
            scopes=authorization_code.scopes,
            expires_at=int(time.time()) + SECONDS,
            resource=authorization_code.resource,
        )
        self._tokens[token.token] = token
        return OAuthToken(access_token=token.token, expires_in=SECONDS, scope=" ".join(token.scopes))

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._tokens.get(token)

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return None

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        raise TokenError("invalid_grant")

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._tokens.pop(token.token, None)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="A server that wants a token.")
    parser.add_argument("--port", type=int, default=8000, help="where HTTP listens, on 127.0.0.1")
    parser.add_argument("--bound", action="store_true", help="refuse tokens made for another resource")
    parser.add_argument(
        "--undescribed", action="store_true", help="no metadata but its issuer's, as in 2025-03-26"
    )
    parser.add_argument("--public-url", help="the origin that clients know; default: its own")
    options = parser.parse_args(argv)
    origin = options.public_url or f"http://127.0.0.1:{options.port}"
    server = MCPServer(
        "auth-peer",
        version="1.0.0",
        log_level="CRITICAL",
        auth_server_provider=Provider(),
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=None if options.undescribed else AnyHttpUrl(f"{origin}/mcp"),
            validate_token_resource=options.bound,
            required_scopes=[SCOPE],
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=[SCOPE], default_scopes=[SCOPE]
            ),
        ),
    )

    @server.tool()
    def scopes() -> list[str]:
        """Say what the caller may do."""
        token = get_access_token()
        return token.scopes if token else []

    server.run("streamable-http", host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
