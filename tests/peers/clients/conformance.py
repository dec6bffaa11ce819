"""A client for the conformance suite: it connects, is authorized if necessary, and calls every tool it finds.

    .peers/venv/bin/python tests/peers/clients/conformance.py URL

The suite sets the revision, the scenario and, for some, credentials in MCP_CONFORMANCE_… variables. Exits with 1 and
one line on stderr if it could not connect.
"""

import json
import os
import sys
from typing import Any

import anyio
import mcp_types as types
import sdk
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from oauth import CALLBACK, Storage, User
from pydantic import AnyUrl

VALUES: dict[str, Any] = {
    "number": 2,
    "integer": 3,
    "string": "text",
    "boolean": True,
    "array": [],
    "object": {},
}
"""An argument of each type."""


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a value for each property."""
    properties = schema.get("properties", {})
    return {name: VALUES.get(str(each.get("type")), "text") for name, each in properties.items()}


async def elicit(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Accept, with the default values of the form."""
    form = getattr(params, "requested_schema", {}).get("properties", {})
    return types.ElicitResult(
        action="accept", content={name: each["default"] for name, each in form.items() if "default" in each}
    )


async def sample(context: object, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def roots(context: object) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[])


async def provider(url: str) -> OAuthClientProvider:
    """Return the authorization of the SDK, with the credentials that the suite gives."""
    storage, user = Storage(), User()
    given = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    if "client_id" in given:
        secret = given.get("client_secret")
        method = "client_secret_basic" if secret else "none"
        await storage.set_client_info(
            OAuthClientInformationFull(
                client_id=given["client_id"],
                client_secret=secret,
                redirect_uris=[AnyUrl(CALLBACK)],
                token_endpoint_auth_method=method,
            )
        )
    about = OAuthClientMetadata(client_name="conformance-client", redirect_uris=[AnyUrl(CALLBACK)])
    return OAuthClientProvider(url, about, storage, user.authorize, user.come_back)


async def run(url: str) -> None:
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "") in MODERN_PROTOCOL_VERSIONS
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    auth = await provider(url) if scenario.startswith("auth/") else None
    with anyio.fail_after(sdk.OVERALL_SECONDS):
        async with create_mcp_http_client(auth=auth) as http:
            client = Client(
                streamable_http_client(url, http_client=http),
                mode="auto" if modern else "legacy",
                elicitation_callback=elicit,
                sampling_callback=sample,
                list_roots_callback=roots,
            )
            async with client:
                for tool in (await client.list_tools()).tools:
                    try:
                        await client.call_tool(tool.name, arguments(tool.input_schema))
                    except MCPError as error:
                        print(f"{tool.name}: {error}")


def main() -> int:
    try:
        anyio.run(run, sys.argv[-1])
    except Exception as error:
        print(f"conformance.py: {sdk.reason(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
