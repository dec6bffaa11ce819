"""HTTP headers and origins in a proxy on a developer's machine.

The module selects the headers that are forwarded or recorded, rejects requests from other machines, and rewrites
URLs that would make a client bypass the proxy. Sources: RFC 9110, 7.6.1 (hop-by-hop); MCP basic/transports,
all revisions (headers; the DNS-rebinding warning); RFC 9728, 5.1 (the URL of the metadata).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from mcpspy.core.protocol import dpop
from mcpspy.core.protocol.extensions import HEADERS, SECRET_HEADERS

Headers = list[tuple[str, str]]

JSON, EVENTS = "application/json", "text/event-stream"

SESSION = "Mcp-Session-Id"
"""The header that names a session (2025-03-26 to 2025-11-25)."""
"""Media types of a message, and of a stream of messages."""

HOP_BY_HOP = frozenset(
    """connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade""".split()
)

FIXED = HOP_BY_HOP | {"content-length"}
"""Headers of the connection and of the body's length, which only mcpspy sets."""

SECRET = frozenset(
    "authorization cookie set-cookie proxy-authorization x-api-key dpop dpop-nonce".split()
).union(SECRET_HEADERS)
"""Headers that are recorded by name only, those of extensions among them; their values never reach a file.

Of DPoP, the scheme and the facts of a proof are recorded (`core.protocol.dpop`).
"""

RECORDED = frozenset(
    """accept allow content-encoding content-length content-type host last-event-id location origin retry-after
    user-agent www-authenticate""".split()
).union(HEADERS)
"""Headers that are recorded, those of extensions among them, like all headers that start with one of `RECORDED_PREFIXES`."""

RECORDED_PREFIXES = ("mcp-", "access-control-")

OF_REFUSAL = frozenset("server via cf-mitigated x-amzn-remapped-www-authenticate".split())
"""Headers that are recorded of a refusal: they show whether the server or a proxy in front of it has refused."""

OF_REFUSAL_PREFIXES = ("x-ratelimit-", "ratelimit")

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header (RFC 9110, 5.6.2: token)."""

REDIRECTS = frozenset((301, 302, 303, 307, 308))
"""Statuses after which a client repeats its request at the `Location` (RFC 9110, 15.4)."""

_AUTHORITY = re.compile(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?//([^/?#\\]+)")
"""Scheme and authority of an absolute URL, or of one without a scheme (RFC 3986, 4.2)."""

_PORTS = {"http": 80, "https": 443}

_METADATA_URL = re.compile(r'(\bresource_metadata=")([^"]*)')

_QUERY_VALUE = re.compile(r"([?&#;](?!error=[a-z_]{1,40}(?![^&#;]))[^=&#;]*=)[^&#;]+")
"""Name and value of a parameter, except the code of an OAuth error (RFC 6749, 4.1.2.1), which is not a secret."""

LOCALHOST = "localhost"

LOOPBACK = (LOCALHOST, "127.0.0.1", "::1")

REDACTED = "[redacted]"


class Upstream(NamedTuple):
    origin: str
    """Scheme, host and port: `http://127.0.0.1:3001`."""
    path: str
    host: str
    query: str = ""
    """Query including the `?`; some servers expect a key in it."""


def read_upstream(url: str) -> Upstream | None:
    """Return the parts of an `http://` or `https://` URL; None for other URLs, and for those with credentials."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return None
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    host = name if port is None else f"{name}:{port}"
    query = f"?{parts.query}" if parts.query else ""
    return Upstream(f"{parts.scheme}://{host}", parts.path or "/", host, query)


def end_to_end(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers that are not hop-by-hop, in their order."""
    pairs = list(headers)
    named = {
        token.strip().lower()
        for name, value in pairs
        if name.lower() == "connection"
        for token in value.split(",")
    }
    return [(name, value) for name, value in pairs if name.lower() not in HOP_BY_HOP | named]


def request_headers(headers: Iterable[tuple[str, str]], upstream: Upstream, proxy_origin: str) -> Headers:
    """Return a request's headers for upstream, with its Host, its Origin instead of the proxy's, and no compression."""
    forwarded = [
        (name, upstream.origin if name.lower() == "origin" and value == proxy_origin else value)
        for name, value in end_to_end(headers)
        if name.lower() not in ("host", "accept-encoding", "expect")
    ]
    return [("Host", upstream.host), *forwarded, ("Accept-Encoding", "identity")]


def response_headers(headers: Iterable[tuple[str, str]], upstream: Upstream, proxy_origin: str) -> Headers:
    """Return a response's headers for the client, with URLs of the server replaced by URLs of the proxy."""
    return [
        (name, _rewritten_value(name.lower(), value, upstream.origin, proxy_origin))
        for name, value in end_to_end(headers)
    ]


def _rewritten_value(name: str, value: str, origin: str, proxy_origin: str) -> str:
    if name == "location":
        return location_at_proxy(value, origin, proxy_origin).value
    if name == "www-authenticate":
        return _METADATA_URL.sub(
            lambda found: found[1] + rewritten_url(found[2], origin, proxy_origin), value
        )
    return value


def rewritten_url(url: str, origin: str, proxy_origin: str) -> str:
    """Return the URL with the server's origin replaced by the proxy's; other URLs unchanged."""
    rest = url.removeprefix(origin)
    return proxy_origin + rest if rest != url and (not rest or rest[0] in "/?#") else url


class Location(NamedTuple):
    """A `Location` as the client gets it."""

    value: str
    origin: str | None
    """The origin to which it leads past the proxy; None if the client stays."""


def location_at_proxy(value: str, origin: str, proxy_origin: str) -> Location:
    """Return a `Location` of the server at `origin`: at the proxy if it names that server, however it is spelled.

    Another scheme or port is another origin (RFC 6454, 4). `localhost` is both loopback addresses, but one address is
    not the other. A URL without a scheme has that of the server.
    """
    found = _AUTHORITY.match(value)
    if found is None or origin == proxy_origin:  # A forward proxy gets the requests to all origins.
        return Location(value, None)
    scheme = (found[1] or origin.partition(":")[0]).lower()
    named = _parsed_origin(f"{scheme}://{found[2]}")
    if _is_same_origin(named, _parsed_origin(origin)):
        return Location(proxy_origin + value[found.end() :], None)
    if _is_same_origin(named, _parsed_origin(proxy_origin)):
        return Location(value, None)
    whole = value if found[1] else f"{scheme}:{value}"
    return Location(whole, f"{scheme}://{found[2].rpartition('@')[2].lower()}")


def without_downgrade(value: str, origin: str) -> str | None:
    """Return a `Location` with TLS, if it is the server's own URL except that TLS is missing; None for any other.

    That is the mistake of a server behind a proxy that ends TLS, whose `X-Forwarded-Proto` it does not trust.
    """
    if not (origin.startswith("https:") and value.lower().startswith("http:")):
        return None
    secure = f"https{value[4:]}"
    here = location_at_proxy(secure, origin, "")
    return origin + here.value if here.origin is None else None


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int | None


def _parsed_origin(url: str) -> _Origin | None:
    """Return the origin of a URL; None if it has no valid host and port, or has credentials."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.username is not None:
        return None
    return _Origin(parts.scheme, parts.hostname, port or _PORTS.get(parts.scheme))


def _is_same_origin(one: _Origin | None, other: _Origin | None) -> bool:
    if one is None or other is None or one._replace(host="") != other._replace(host=""):
        return False
    hosts = {one.host, other.host}
    return len(hosts) == 1 or (LOCALHOST in hosts and hosts <= {*LOOPBACK})


def names_only(url: str) -> str:
    """Return a URL without the values of its query and fragment, which may be codes, tokens or states; `error` stays."""
    return _QUERY_VALUE.sub(rf"\1{REDACTED}", url)


_SHOWN_OF_SECRET = {"authorization": dpop.recorded_scheme, dpop.HEADER: dpop.recorded_proof}


def recorded_headers(headers: Iterable[tuple[str, str]], *, is_refusal: bool = False) -> dict[str, str]:
    """Return the headers that are recorded, with lower-case names and redacted secrets."""
    recorded: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in SECRET:
            shown = _SHOWN_OF_SECRET.get(lower)
            text = REDACTED if shown is None else shown(value)
            recorded[lower] = (
                f"{recorded[lower]}, {text}" if lower == dpop.HEADER and lower in recorded else text
            )
        elif lower == "location":
            recorded[lower] = names_only(value)
        elif (
            lower in RECORDED
            or lower.startswith(RECORDED_PREFIXES)
            or (is_refusal and (lower in OF_REFUSAL or lower.startswith(OF_REFUSAL_PREFIXES)))
        ):
            recorded[lower] = f"{recorded[lower]}, {value}" if lower in recorded else value
    return recorded


def header_flaw(name: str, value: str) -> str:
    """Return why a script may not set a header; empty if it may."""
    if not _NAME.fullmatch(name):
        return f"{name!r} is not the name of a header"
    if name.lower() in FIXED:
        return f"{name}: only mcpspy sets this header"
    return "" if value.isprintable() else f"{name}: the value has control characters"


def rejection_reason(host: str | None, origin: str | None, allowed: Iterable[str]) -> str | None:
    """Return the reason to reject a request whose Host or Origin is not this machine; None to accept it.

    A malicious web page can make a browser send requests to loopback, and DNS rebinding can point the page's host
    name there. So only loopback names and `allowed` names are accepted.
    """
    names = {*LOOPBACK, *(name.lower() for name in allowed)}
    if host is None or _hostname(f"//{host}") not in names:
        return f"Host {host or '(none)'} is not this machine"
    if origin is not None and _hostname(origin) not in names:
        return f"Origin {origin} is not this machine"
    return None


WEBSOCKET_REFUSAL = (
    "WebSocket is not a transport of MCP, and mcpspy does not forward it: use the http(s) URL of the endpoint, or "
    "connect to the server directly"
)


def is_websocket(method: str, headers: Mapping[str, str]) -> bool:
    """Return whether a request opens a WebSocket (RFC 6455, 4.1). `Upgrade` itself is a header of the connection."""
    return method == "GET" and "Sec-WebSocket-Key" in headers


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
