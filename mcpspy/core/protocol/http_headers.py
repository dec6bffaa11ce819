"""HTTP headers, origins and server metadata, as a proxy on a developer's machine handles them.

Decides which headers are forwarded or recorded, who may connect to a listener, and how URLs that would
lead a client around the proxy are rewritten. Sources: RFC 9110, 7.6.1 (hop-by-hop); MCP basic/transports,
all revisions (headers; the DNS-rebinding warning); RFC 9728, 3.3 and 5.1, and RFC 8414, 3.3 (metadata
must name the URL that the client was given).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

import orjson

Headers = list[tuple[str, str]]

HOP_BY_HOP = frozenset(
    """connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer
    transfer-encoding upgrade""".split()
)

SECRET = frozenset("authorization cookie set-cookie proxy-authorization x-api-key".split())
"""Recorded by name only; their values never reach a file."""

RECORDED = frozenset(
    """accept allow content-encoding content-length content-type host last-event-id location origin retry-after
    user-agent www-authenticate""".split()
)
"""Recorded, like everything that starts with `mcp-`."""

METADATA = {
    "/.well-known/oauth-protected-resource": "resource",
    "/.well-known/oauth-authorization-server": "issuer",
    "/.well-known/openid-configuration": "issuer",
}
"""Metadata documents, and the member with the server's URL, which must be the URL that the client knows."""

_METADATA_URL = re.compile(r'(\bresource_metadata=")([^"]*)')

_CODE = re.compile("([?&#](?:code|access_token|id_token)=)[^&#]*")
"""Credentials in the URL to which an authorization server redirects a browser."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")

REDACTED = "[redacted]"


class Upstream(NamedTuple):
    origin: str
    """Scheme, host and port, as in `http://127.0.0.1:3001`."""
    path: str
    host: str
    query: str = ""
    """With its `?`; some servers expect a key there."""


def read_upstream(url: str) -> Upstream | None:
    """Return the parts of an `http://` or `https://` URL; None if it is not one, or contains a password."""
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
    given = list(headers)
    named = {
        token.strip().lower()
        for name, value in given
        if name.lower() == "connection"
        for token in value.split(",")
    }
    return [(name, value) for name, value in given if name.lower() not in HOP_BY_HOP | named]


def request_headers(headers: Iterable[tuple[str, str]], upstream: Upstream, proxy_origin: str) -> Headers:
    """Return a request's headers for upstream: its Host, its Origin for the proxy's, no compression."""
    kept = [
        (name, upstream.origin if name.lower() == "origin" and value == proxy_origin else value)
        for name, value in end_to_end(headers)
        if name.lower() not in ("host", "accept-encoding", "expect")
    ]
    return [("Host", upstream.host), *kept, ("Accept-Encoding", "identity")]


def response_headers(headers: Iterable[tuple[str, str]], upstream: Upstream, proxy_origin: str) -> Headers:
    """Return a response's headers for the client; URLs at the server become URLs at the proxy."""
    return [
        (name, _rewritten_value(name.lower(), value, upstream.origin, proxy_origin))
        for name, value in end_to_end(headers)
    ]


def _rewritten_value(name: str, value: str, origin: str, proxy_origin: str) -> str:
    if name == "location":
        return rewritten_url(value, origin, proxy_origin)
    if name == "www-authenticate":
        return _METADATA_URL.sub(
            lambda found: found[1] + rewritten_url(found[2], origin, proxy_origin), value
        )
    return value


def is_metadata(target: str) -> bool:
    return any(path in target for path in METADATA)


def rewritten_metadata(target: str, body: bytes, origin: str, proxy_origin: str) -> bytes:
    """Return a metadata document with the proxy's URL; the same bytes if there is nothing to rewrite."""
    try:
        document = orjson.loads(body)
    except ValueError:
        return body
    name = next(member for path, member in METADATA.items() if path in target)
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, str) or rewritten_url(value, origin, proxy_origin) == value:
        return body
    return orjson.dumps({**document, name: rewritten_url(value, origin, proxy_origin)})


def rewritten_url(url: str, origin: str, proxy_origin: str) -> str:
    """Return the URL at the proxy's origin if it is at the server's; unchanged otherwise."""
    rest = url.removeprefix(origin)
    return proxy_origin + rest if rest != url and (not rest or rest[0] in "/?#") else url


def recorded_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers that are recorded, names in lower case, secrets redacted."""
    kept: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in SECRET:
            kept[lower] = REDACTED
        elif lower == "location":
            kept[lower] = _CODE.sub(rf"\1{REDACTED}", value)
        elif lower in RECORDED or lower.startswith("mcp-"):
            kept[lower] = f"{kept[lower]}, {value}" if lower in kept else value
    return kept


def rejection_reason(host: str | None, origin: str | None, allowed: Iterable[str]) -> str | None:
    """Return the reason to reject a request: its Host or Origin is not this machine.

    A foreign web page can make a browser send requests to loopback, and DNS rebinding gives it a name
    there: so only loopback names and `allowed` ones are accepted.
    """
    names = {*LOOPBACK, *(name.lower() for name in allowed)}
    if host is None or _hostname(f"//{host}") not in names:
        return f"Host {host or '(none)'} is not this machine"
    if origin is not None and _hostname(origin) not in names:
        return f"Origin {origin} is not this machine"
    return None


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
