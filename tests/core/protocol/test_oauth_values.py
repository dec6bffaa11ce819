"""Parameters of a sign-in are compared with metadata and earlier steps, and never recorded."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from typing import Any
from urllib.parse import urlencode

import orjson
import pytest

from mcpspy.core.protocol.oauth import OAuthTracker
from mcpspy.core.protocol.oauth_flows import OAuthRequest
from mcpspy.core.protocol.oauth_values import MAX_KNOWN, KnownValues, challenge_of, claims_of_token

UPSTREAM, PROXY = "http://127.0.0.1:3001", "http://127.0.0.1:8080"
ENDPOINT = f"{PROXY}/mcp"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
CALLBACK = "http://127.0.0.1:5000/callback"
VERIFIER = "a-verifier-of-forty-three-characters-or-more"


class SignIn:
    """A client that signs in at a server whose metadata name the resource and two scopes."""

    def __init__(self) -> None:
        self.tracker = OAuthTracker(UPSTREAM)
        metadata = {"resource": f"{UPSTREAM}/mcp", "scopes_supported": ["read", "write"]}
        self.tracker.rewritten(RESOURCE, orjson.dumps(metadata), PROXY)

    def step(
        self, target: str, status: int = 200, answer: object = None, token: str = "", **given: Any
    ) -> dict[str, Any]:
        """Return the `same`, `differs` and `older` of a step with these parameters, and when its token expires."""
        is_query, is_json = target == "/authorize", target == "/register"
        form = b"" if is_query else orjson.dumps(given) if is_json else urlencode(given).encode()
        request = OAuthRequest(
            f"{target}?{urlencode(given)}" if is_query else target,
            {"Authorization": f"Bearer {token}"} if token else {},
            form,
            is_mcp=target == "/mcp",
            peer=("127.0.0.1", 40_000),
            response=b"" if answer is None else orjson.dumps(answer),
        )
        fields = self.tracker.step_fields(request, status, {}) or {}
        return {name: fields[name] for name in ("same", "differs", "older", "expires") if name in fields}

    def register(self) -> None:
        self.step("/register", 201, {"client_id": "c", "redirect_uris": [CALLBACK]}, redirect_uris=[CALLBACK])

    def authorize(self, **given: str) -> dict[str, Any]:
        usual = {"client_id": "c", "redirect_uri": CALLBACK, "code_challenge": challenge_of(VERIFIER)}
        return self.step("/authorize", 302, **(usual | given))


@pytest.mark.parametrize(
    ("given", "same", "differs"),
    [
        ({"resource": ENDPOINT}, ["redirect_uri", "resource"], []),
        ({"resource": f"{UPSTREAM}/mcp"}, ["redirect_uri", "resource"], []),
        ({"resource": f"{ENDPOINT}/"}, ["redirect_uri"], ["resource"]),
        ({"scope": "write read"}, ["redirect_uri", "scope"], []),
        ({"scope": "read openid"}, ["redirect_uri"], ["scope"]),
        ({"redirect_uri": "http://127.0.0.1:6000/callback"}, ["redirect_uri"], []),
        ({"redirect_uri": "http://127.0.0.1:5000/other"}, [], ["redirect_uri"]),
        ({"redirect_uri": "https://app.test/callback"}, [], ["redirect_uri"]),
    ],
)
def test_a_request_for_authorization_is_compared_with_metadata_and_registration(
    given: dict[str, str], same: list[str], differs: list[str]
) -> None:
    client = SignIn()
    client.register()
    found = client.authorize(**given)
    assert (found.get("same", []), found.get("differs", [])) == (same, differs)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"redirect_uri": CALLBACK, "code_verifier": VERIFIER}, {"same": ["redirect_uri", "code_verifier"]}),
        ({"redirect_uri": "http://127.0.0.1:6000/callback"}, {"differs": ["redirect_uri"]}),
        ({"code_verifier": challenge_of(VERIFIER)}, {"same": ["code_verifier"]}),
        ({"code_verifier": VERIFIER[1:]}, {"differs": ["code_verifier"]}),
    ],
)
def test_a_request_for_a_token_is_compared_with_the_request_for_authorization(
    given: dict[str, str], found: dict[str, Any]
) -> None:
    client = SignIn()
    client.authorize()
    assert client.step("/token", 400, client_id="c", **given) == found


def test_values_that_were_not_seen_are_compared_with_nothing() -> None:
    client = SignIn()
    assert client.authorize() == {}
    assert client.step("/token", 400, client_id="other", redirect_uri=CALLBACK, code_verifier="x") == {}


def test_the_token_of_a_refused_message_is_compared_with_the_issued_ones() -> None:
    client = SignIn()
    assert client.step("/mcp", 401, token="t1") == {}
    client.step("/token", 200, {"access_token": "t1"})
    assert client.step("/mcp", 401, token="t1") == {"same": ["access_token"]}
    assert client.step("/mcp", 401, token="t2") == {"differs": ["access_token"]}


def test_a_message_with_the_token_from_before_a_refresh_has_an_older_one() -> None:
    client = SignIn()
    client.step("/token", 200, {"access_token": "t1"}, client_id="c", code="1")
    assert client.step("/mcp", 401, token="t1") == {"same": ["access_token"]}
    client.step("/token", 200, {"access_token": "t2"}, client_id="c", refresh_token="r")
    assert client.step("/mcp", 401, token="t1") == {"same": ["access_token"], "older": ["access_token"]}
    assert client.step("/mcp", 401, token="t2") == {"same": ["access_token"]}


def test_a_json_web_token_shows_when_it_expires_and_whether_it_is_for_this_resource() -> None:
    def token(**claims: object) -> str:
        return f"h.{urlsafe_b64encode(orjson.dumps(claims)).decode().rstrip('=')}.s"

    client = SignIn()
    assert client.step("/mcp", 401, token=token(aud=ENDPOINT, exp=1)) == {
        "same": ["audience of the token"],
        "expires": 1,
    }
    assert client.step("/mcp", 401, token=token(aud="https://api.test")) == {
        "differs": ["audience of the token"]
    }
    for odd in ("a.b", "a.!.c", "a.bnVsbA.c", token(aud=["a", 1], exp="soon")):
        assert client.step("/mcp", 401, token=odd) == {}
    assert claims_of_token("a.bnVsbA.c") == {}


def test_values_are_bounded_and_joined() -> None:
    first, second = KnownValues(), KnownValues()
    first.add("scope", [f"s{n}" for n in range(2 * MAX_KNOWN)])
    second.add("scope", [None, "", "other"])
    assert first.has("scope", f"s{2 * MAX_KNOWN - 1}") is True
    assert first.has("scope", "s0") is None  # It may be one of those that were forgotten.
    assert second.has("scope", "s0") is False
    first.join(second)
    assert first.has("scope", "other") is True
    assert second.has("resource", "x") is None
    assert second.is_only("scope", "other", "x") is True
    assert first.is_only("scope", "other") is None  # Which of several sign-ins it belongs to is open.
