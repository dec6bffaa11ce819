"""Forwarded and recorded headers, rejected requests, and rewritten URLs."""

from __future__ import annotations

import pytest

from mcpspy.core.protocol.http_headers import (
    REDACTED,
    Upstream,
    end_to_end,
    location_at_proxy,
    read_upstream,
    recorded_headers,
    rejection_reason,
    request_headers,
    response_headers,
    rewritten_url,
    without_downgrade,
)

UPSTREAM = Upstream("http://up.example:3001", "/mcp", "up.example:3001")
OURS = "http://localhost:8808"


@pytest.mark.parametrize(
    ("url", "upstream"),
    [
        ("http://localhost:3001/mcp", ("http://localhost:3001", "/mcp", "localhost:3001", "")),
        ("https://x.org/m?key=1", ("https://x.org", "/m", "x.org", "?key=1")),
        ("https://example.com", ("https://example.com", "/", "example.com", "")),
        ("https://example.com/", ("https://example.com", "/", "example.com", "")),
        ("http://[::1]:80/x/y", ("http://[::1]:80", "/x/y", "[::1]:80", "")),
    ],
)
def test_a_url_is_split_into_the_parts_of_upstream(url: str, upstream: tuple[str, str, str, str]) -> None:
    assert read_upstream(url) == upstream


@pytest.mark.parametrize(
    "url",
    [
        "https://ada:secret@example.com/mcp",
        "",
        "localhost:3001",
        "//host",
        "ftp://host/",
        "http://",
        "http:///mcp",
        "http://h:x/",
        "http://[",
        "/mcp",
    ],
)
def test_an_invalid_upstream_url_is_none(url: str) -> None:
    assert read_upstream(url) is None


@pytest.mark.parametrize(
    "name",
    [
        "Connection",
        "keep-alive",
        "Proxy-Authenticate",
        "PROXY-AUTHORIZATION",
        "Proxy-Connection",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    ],
)
def test_hop_by_hop_headers_are_not_forwarded(name: str) -> None:
    assert end_to_end([("A", "1"), (name, "x"), ("a", "2")]) == [("A", "1"), ("a", "2")]


def test_headers_named_by_connection_are_not_forwarded_either() -> None:
    given = [
        ("X-Hop", "1"),
        ("Connection", "close, x-hop"),
        ("connection", " X-Other "),
        ("x-other", "2"),
        ("B", "3"),
    ]
    assert end_to_end(given) == [("B", "3")]


def test_a_request_names_the_server_and_disables_compression() -> None:
    given = [
        ("Host", "localhost:8808"),
        ("accept-encoding", "gzip"),
        ("Expect", "100-continue"),
        ("X", "1"),
        ("X", "2"),
    ]
    assert request_headers(given, UPSTREAM, OURS) == [
        ("Host", "up.example:3001"),
        ("X", "1"),
        ("X", "2"),
        ("Accept-Encoding", "identity"),
    ]


@pytest.mark.parametrize(
    ("origin", "sent"),
    [(OURS, UPSTREAM.origin), ("http://localhost:5173", "http://localhost:5173"), ("null", "null")],
)
def test_the_origin_of_mcpspy_becomes_the_origin_of_the_server(origin: str, sent: str) -> None:
    assert ("Origin", sent) in request_headers([("Origin", origin)], UPSTREAM, OURS)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://up.example:3001", OURS),
        ("http://up.example:3001/a?b#c", f"{OURS}/a?b#c"),
        ("http://up.example:3001?b", f"{OURS}?b"),
        ("http://up.example:3001#c", f"{OURS}#c"),
        ("http://up.example:30010/a", "http://up.example:30010/a"),
        ("http://up.example:3001.evil.example/", "http://up.example:3001.evil.example/"),
        ("https://up.example:3001/a", "https://up.example:3001/a"),
        ("/a", "/a"),
        ("", ""),
    ],
)
def test_a_url_at_the_server_is_rewritten_to_mcpspy(url: str, expected: str) -> None:
    assert rewritten_url(url, UPSTREAM.origin, OURS) == expected
    assert response_headers([("location", url), ("Link", url)], UPSTREAM, OURS) == [
        ("location", expected),
        ("Link", url),
    ]


SECURE = "https://up.example"
LOOPBACK_NAME, LOOPBACK_4, LOOPBACK_6 = (
    f"http://{name}:3001" for name in ("localhost", "127.0.0.1", "[::1]")
)


@pytest.mark.parametrize(
    ("location", "origin", "expected"),
    [
        ("HTTP://UP.Example:3001/a?b#c", UPSTREAM.origin, f"{OURS}/a?b#c"),
        ("//up.example:3001/a", UPSTREAM.origin, f"{OURS}/a"),
        ("https://up.example:443/a", SECURE, f"{OURS}/a"),
        ("//up.example/a", SECURE, f"{OURS}/a"),
        ("http://up.example:80", "http://up.example", OURS),
        (f"{LOOPBACK_NAME}/a", LOOPBACK_4, f"{OURS}/a"),
        (f"{LOOPBACK_NAME}/a", LOOPBACK_6, f"{OURS}/a"),
        (f"{LOOPBACK_4}/a", LOOPBACK_NAME, f"{OURS}/a"),
        (f"{OURS}/a", UPSTREAM.origin, f"{OURS}/a"),
        ("http://127.0.0.1:8808/a", UPSTREAM.origin, "http://127.0.0.1:8808/a"),
        ("a/b", UPSTREAM.origin, "a/b"),
        ("?a", UPSTREAM.origin, "?a"),
        ("///a", UPSTREAM.origin, "///a"),
    ],
)
def test_a_redirect_within_the_server_stays_at_mcpspy_however_the_server_is_spelled(
    location: str, origin: str, expected: str
) -> None:
    assert location_at_proxy(location, origin, OURS) == (expected, None)


@pytest.mark.parametrize(
    ("location", "origin", "to"),
    [
        ("https://up.example:3001/a", UPSTREAM.origin, "https://up.example:3001"),
        ("http://up.example/a", SECURE, "http://up.example"),
        ("http://up.example:443/a", SECURE, "http://up.example:443"),
        ("http://up.example/a", UPSTREAM.origin, "http://up.example"),
        ("HTTP://Other.example/a", UPSTREAM.origin, "http://other.example"),
        (f"{LOOPBACK_6}/a", LOOPBACK_4, LOOPBACK_6),
        ("http://localhost:3002/a", LOOPBACK_4, "http://localhost:3002"),
        ("http://ada:pw@up.example:3001/a", UPSTREAM.origin, UPSTREAM.origin),
        ("http://up.example:x/", UPSTREAM.origin, "http://up.example:x"),
        ("http://[::1/", UPSTREAM.origin, "http://[::1"),
        ("vscode://app/back", UPSTREAM.origin, "vscode://app"),
    ],
)
def test_a_redirect_to_another_origin_is_unchanged_and_named(location: str, origin: str, to: str) -> None:
    assert location_at_proxy(location, origin, OURS) == (location, to)


def test_a_redirect_without_a_scheme_has_that_of_the_server_not_that_of_mcpspy() -> None:
    for origin, scheme in ((SECURE, "https"), (UPSTREAM.origin, "http")):
        expected = (f"{scheme}://other.example/a", f"{scheme}://other.example")
        assert location_at_proxy("//other.example/a", origin, OURS) == expected


def test_no_redirect_leads_past_a_forward_proxy() -> None:
    location = "http://other.example/a"
    assert location_at_proxy(location, UPSTREAM.origin, UPSTREAM.origin) == (location, None)


@pytest.mark.parametrize(
    ("location", "origin", "expected"),
    [
        ("http://up.example/mcp/", SECURE, f"{SECURE}/mcp/"),
        ("HTTP://up.example:9502/mcp/?a", f"{SECURE}:9502", f"{SECURE}:9502/mcp/?a"),
        ("http://other.example/mcp/", SECURE, None),
        ("https://up.example/mcp/", SECURE, None),
        ("/mcp/", SECURE, None),
        ("http://up.example:3001/mcp/", UPSTREAM.origin, None),
    ],
)
def test_a_redirect_that_lost_tls_is_recognised(location: str, origin: str, expected: str | None) -> None:
    assert without_downgrade(location, origin) == expected


@pytest.mark.parametrize(
    "name", ["Authorization", "cookie", "Set-Cookie", "PROXY-Authorization", "X-Api-Key"]
)
def test_a_secret_is_noted_by_name_only(name: str) -> None:
    assert recorded_headers([(name, "s3cret"), (name, "another")]) == {name.lower(): REDACTED}


def test_only_headers_of_the_protocol_are_noted() -> None:
    given = [
        ("Mcp-Session-Id", "s"),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("Mcp-Param-X", "1"),
        ("mcp-param-x", "2"),
        ("Content-Type", "text/plain"),
        ("X-Anything", "x"),
    ]
    assert recorded_headers(given) == {
        "mcp-session-id": "s",
        "mcp-protocol-version": "2025-11-25",
        "mcp-param-x": "1, 2",
        "content-type": "text/plain",
    }


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8808", "[::1]:8808", "[::1]", "box", "Box:1"]
)
@pytest.mark.parametrize(
    "origin", [None, "http://localhost:1", "https://127.0.0.1", "http://[::1]:3", "http://box"]
)
def test_local_and_allowed_hosts_are_accepted(host: str, origin: str | None) -> None:
    assert rejection_reason(host, origin, ["BOX"]) is None


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.nip.io:80",
        "127.0.0.2",
        "localhost@evil",
        "[",
        "::1",
    ],
)
def test_another_host_is_refused(host: str | None) -> None:
    assert rejection_reason(host, None, []) == f"Host {host or '(none)'} is not this machine"


@pytest.mark.parametrize(
    "origin", ["null", "", "https://evil.example", "localhost", "http://localhost.evil.example", "http://["]
)
def test_another_origin_is_refused(origin: str) -> None:
    assert rejection_reason("localhost", origin, []) == f"Origin {origin} is not this machine"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{UPSTREAM.origin}/.well-known/x", f"{OURS}/.well-known/x"),
        ("https://elsewhere.example/x", "https://elsewhere.example/x"),
    ],
)
def test_a_challenge_names_metadata_at_the_address_of_mcpspy(url: str, expected: str) -> None:
    challenge = 'Bearer error="invalid_token", resource_metadata="{}", scope="tools"'
    given = [("WWW-Authenticate", challenge.format(url))]
    assert response_headers(given, UPSTREAM, OURS) == [("WWW-Authenticate", challenge.format(expected))]


def test_the_values_of_a_redirects_parameters_are_not_noted() -> None:
    for separator in "&#":
        location = f"http://127.0.0.1:9/callback?x={{0}}{separator}code={{0}}&state={{0}}"
        given = [("Location", location.format("secret"))]
        assert recorded_headers(given) == {"location": location.format(REDACTED)}
