"""The steps of OAuth are recognised, and metadata gets the proxy's addresses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpspy.core.protocol.http_headers import names_only
from mcpspy.core.protocol.oauth import HINT, OAuthTracker
from mcpspy.core.protocol.oauth_flows import OAuthRequest

SERVER, REMOTE, PROXY = "http://127.0.0.1:3001", "https://mcp.example", "http://127.0.0.1:8808"
RESOURCE = "/.well-known/oauth-protected-resource/mcp"
ISSUER = "/.well-known/oauth-authorization-server"


def rewritten(tracker: OAuthTracker, target: str, document: object) -> Any:
    return json.loads(tracker.rewritten(target, json.dumps(document).encode(), PROXY)[0])


def request(target: str, form: bytes = b"", *, is_mcp: bool = False, **headers: str) -> OAuthRequest:
    return OAuthRequest(target, headers, form, is_mcp=is_mcp)


def follow(tracker: OAuthTracker, *steps: tuple[str, int]) -> None:
    for target, status in steps:
        assert tracker.step_fields(request(target), status, {}) is not None


def read_metadata(tracker: OAuthTracker) -> None:
    _, facts = tracker.rewritten(RESOURCE, json.dumps({"resource": f"{SERVER}/mcp"}).encode(), PROXY)
    fields = tracker.step_fields(request(RESOURCE), 200, facts)
    assert fields is not None
    assert fields.keys() == {"flow", "step", "status", "names", "resource", "servers", "address", "path"}


@pytest.mark.parametrize("target", [RESOURCE, "/mcp/.well-known/oauth-protected-resource"])
def test_the_resource_and_a_server_of_the_same_origin_get_the_address_of_the_proxy(target: str) -> None:
    given = {"resource": f"{SERVER}/mcp", "authorization_servers": [f"{SERVER}/", "https://login.example"]}
    assert rewritten(OAuthTracker(SERVER), target, given) == {
        "resource": f"{PROXY}/mcp",
        "authorization_servers": [f"{PROXY}/", "https://login.example"],
    }


def test_metadata_is_rewritten_at_the_url_that_a_challenge_names() -> None:
    tracker = OAuthTracker(SERVER)
    assert not tracker.is_metadata("/about?x=1")
    challenge = f'Bearer error="invalid_token", resource_metadata="{SERVER}/about?x=1"'
    assert tracker.learn([("WWW-Authenticate", challenge)]) == {"error": "invalid_token"}
    assert tracker.is_metadata("/about?x=1")
    assert rewritten(tracker, "/about?x=1", {"resource": f"{SERVER}/mcp"}) == {"resource": f"{PROXY}/mcp"}


def test_keep_resource_keeps_the_servers_own_name() -> None:
    tracker = OAuthTracker(SERVER)
    tracker.keeps_resource = True
    given = {"resource": f"{SERVER}/mcp", "authorization_servers": [SERVER]}
    assert rewritten(tracker, RESOURCE, given) == {**given, "authorization_servers": [PROXY]}


@pytest.mark.parametrize(
    ("origin", "names_issuer", "authorize_at"),
    [(SERVER, False, PROXY), (REMOTE, False, REMOTE), (REMOTE, True, PROXY)],
)
def test_the_sign_in_page_keeps_its_address_if_it_needs_its_cookies(
    origin: str, names_issuer: bool, authorize_at: str
) -> None:
    given = {
        "issuer": f"{origin}/",
        "authorization_endpoint": f"{origin}/login",
        "token_endpoint": f"{origin}/oauth2",
        "jwks_uri": f"{origin}/keys",
        "authorization_response_iss_parameter_supported": names_issuer,
    }
    tracker = OAuthTracker(origin)
    assert rewritten(tracker, ISSUER, given) == {
        **given,
        "issuer": f"{PROXY}/",
        "authorization_endpoint": f"{authorize_at}/login",
        "token_endpoint": f"{PROXY}/oauth2",
    }
    assert [tracker.step(path) for path in ("/login?x", "/oauth2", "/other")] == ["authorize", "token", None]


def test_the_issuer_of_an_authorization_response_is_the_one_that_the_client_knows() -> None:
    tracker = OAuthTracker(REMOTE)
    given = [("Location", "http://127.0.0.1:9/back?code=a&iss=https%3A%2F%2Fmcp.example%2F&state=b")]
    expected = [("Location", "http://127.0.0.1:9/back?code=a&iss=http%3A%2F%2F127.0.0.1%3A8808%2F&state=b")]
    assert tracker.response_headers("/authorize?x", given, PROXY) == expected
    foreign = [("Location", "http://127.0.0.1:9/back?iss=https%3A%2F%2Fmcp.example.evil")]
    assert tracker.response_headers("/authorize", foreign, PROXY) == foreign
    assert tracker.response_headers("/elsewhere", given, PROXY) == given


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b'{"resource": 1}', b'{ "resource" : "https://a.example/mcp" }']
)
def test_metadata_that_does_not_name_the_server_stays_as_it_is(body: bytes) -> None:
    assert OAuthTracker(SERVER).rewritten(RESOURCE, body, PROXY)[0] == body


@pytest.mark.parametrize(
    ("target", "form"),
    [
        ("/token?b=1", b"a=secret&c="),
        ("/token?c=", b'{"a":"secret","b":{"d":"secret"}}'),
        ("/token?c&b=1", b"a"),
    ],
)
def test_parameters_are_noted_by_name(target: str, form: bytes) -> None:
    assert request(target, form).names == ["a", "b", "c"]


def test_a_path_of_oauth_is_recorded_without_values() -> None:
    tracker = OAuthTracker(SERVER)
    assert tracker.recorded("/authorize?a=1&b=2;c=3#d=4") == (
        "/authorize?a=[redacted]&b=[redacted];c=[redacted]#d=[redacted]"
    )
    assert tracker.recorded("/list?a=1") == "/list?a=1"


@pytest.mark.parametrize(
    ("query", "recorded"),
    [
        ("?error=invalid_scope&state=s", "?error=invalid_scope&state=[redacted]"),
        ("#state=s&error=access_denied", "#state=[redacted]&error=access_denied"),
        ("?error=S3cret.code&error_description=a+token", "?error=[redacted]&error_description=[redacted]"),
        ("?errors=invalid_scope&my_error=x", "?errors=[redacted]&my_error=[redacted]"),
    ],
)
def test_only_the_code_of_an_error_stays_in_the_query_of_a_url(query: str, recorded: str) -> None:
    assert names_only(f"http://127.0.0.1/callback{query}") == f"http://127.0.0.1/callback{recorded}"


def test_the_first_request_after_the_token_ends_the_flow_and_another_challenge_begins_the_next() -> None:
    tracker = OAuthTracker(SERVER)
    call = request("/mcp", is_mcp=True)
    assert tracker.step_fields(call, 200, {}) is None
    first = {"flow": 1, "step": "challenge", "status": 401, "authorized": False}
    assert tracker.step_fields(call, 401, {}) == first
    read_metadata(tracker)
    follow(tracker, ("/register", 201), ("/authorize", 302), ("/token", 200))
    authorized = request("/mcp", is_mcp=True, Authorization="Bearer a")
    last = tracker.step_fields(authorized, 401, {})
    assert last is not None
    steps = ("challenge 401", "resource metadata 200", "registration 201", "authorize 302", "token 200")
    assert last["chain"] == [*steps, "retry 401"]
    assert (last["flow"], last["hint"], tracker.hint) == (1, HINT, HINT)
    again = tracker.step_fields(call, 401, {})
    assert again is not None
    assert (again["flow"], again["step"]) == (2, "challenge")


@pytest.mark.parametrize(
    ("status", "error", "reads_metadata"),
    [(200, None, True), (403, "insufficient_scope", True), (401, None, False)],
)
def test_no_hint_is_given_if_the_audience_is_not_the_reason(
    status: int, error: str | None, *, reads_metadata: bool
) -> None:
    tracker = OAuthTracker(SERVER)
    tracker.step_fields(request("/mcp", is_mcp=True), 401, {})
    if reads_metadata:
        read_metadata(tracker)
    follow(tracker, ("/token", 200))
    authorized = request("/mcp", is_mcp=True, Authorization="Bearer a")
    last = tracker.step_fields(authorized, status, {"error": error} if error else {})
    assert last is not None
    assert last["step"] == "retry"
    assert "hint" not in last
    assert tracker.hint is None
