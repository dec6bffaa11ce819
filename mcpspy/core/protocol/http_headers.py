"""HTTP headers and origins, as a proxy on a developer's machine must treat them.

Owns which headers go on, which are worth a place in the recording, who may
talk to a listener, and what becomes of addresses that would lead a client past
us. Sources: RFC 9110, 7.6.1 (hop-by-hop); MCP basic/transports, all revisions
(headers; the DNS-rebinding warning); RFC 9728, 3.3 and 5.1, and RFC 8414, 3.3
(metadata has to name the URL that the client was given).
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
"""Noted by name; their values never reach a file."""

NOTED = frozenset(
    """accept allow content-encoding content-length content-type host last-event-id location origin retry-after
    user-agent www-authenticate""".split()
)
"""Worth a place in the recording, besides everything that starts with `mcp-`."""

METADATA = {
    "/.well-known/oauth-protected-resource": "resource",
    "/.well-known/oauth-authorization-server": "issuer",
    "/.well-known/openid-configuration": "issuer",
}
"""Documents about a server, and the member that names it: clients refuse them if it is not the URL they know."""

_METADATA_AT = re.compile(r'(\bresource_metadata=")([^"]*)')

_CODE_IN = re.compile("([?&#](?:code|access_token|id_token)=)[^&#]*")
"""What an authorization server sends a browser back with."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")

REDACTED = "[redacted]"


class Upstream(NamedTuple):
    """Where the server is."""

    origin: str
    """Scheme, host and port, as in `http://127.0.0.1:3001`."""
    path: str
    """Path of the MCP endpoint."""
    host: str
    """What belongs into the Host header."""
    query: str = ""
    """With its `?`; some servers want a key there."""


def read_upstream(url: str) -> Upstream | None:
    """Return the parts of an `http://` or `https://` URL; None if it is none, or holds a password."""
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
    """Return the headers that are meant for the other end, in their order."""
    given = list(headers)
    named = {
        token.strip().lower()
        for name, value in given
        if name.lower() == "connection"
        for token in value.split(",")
    }
    return [(name, value) for name, value in given if name.lower() not in HOP_BY_HOP | named]


def towards_server(headers: Iterable[tuple[str, str]], upstream: Upstream, ours: str) -> Headers:
    """Return a request's headers for upstream: its Host, its own Origin for ours, no compression."""
    kept: Headers = [("Host", upstream.host)]
    for name, value in end_to_end(headers):
        lower = name.lower()
        if lower in ("host", "accept-encoding", "expect"):
            continue
        kept.append((name, upstream.origin if lower == "origin" and value == ours else value))
    kept.append(("Accept-Encoding", "identity"))
    return kept


def towards_client(headers: Iterable[tuple[str, str]], upstream: Upstream, ours: str) -> Headers:
    """Return a response's headers for the client; what leads to the server leads to the proxy."""
    return [(name, _led(name.lower(), value, upstream.origin, ours)) for name, value in end_to_end(headers)]


def _led(name: str, value: str, origin: str, ours: str) -> str:
    if name == "location":
        return moved(value, origin, ours)
    if name == "www-authenticate":
        return _METADATA_AT.sub(lambda found: found[1] + moved(found[2], origin, ours), value)
    return value


def is_metadata(target: str) -> bool:
    """Whether this path is that of a document about the server."""
    return any(path in target for path in METADATA)


def moved_metadata(target: str, body: bytes, origin: str, ours: str) -> bytes:
    """Return a document about the server, named as the client knows it; the same bytes if there is nothing to move."""
    try:
        document = orjson.loads(body)
    except ValueError:
        return body
    name = next(member for path, member in METADATA.items() if path in target)
    value = document.get(name) if isinstance(document, dict) else None
    if not isinstance(value, str) or moved(value, origin, ours) == value:
        return body
    return orjson.dumps({**document, name: moved(value, origin, ours)})


def moved(url: str, origin: str, ours: str) -> str:
    """Return the URL at our origin if it is absolute and at the server's; as it is otherwise."""
    rest = url.removeprefix(origin)
    return ours + rest if rest != url and (not rest or rest[0] in "/?#") else url


def noted(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return what the recording keeps of headers, names in lower case."""
    kept: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in SECRET:
            kept[lower] = REDACTED
        elif lower == "location":
            kept[lower] = _CODE_IN.sub(rf"\1{REDACTED}", value)
        elif lower in NOTED or lower.startswith("mcp-"):
            kept[lower] = f"{kept[lower]}, {value}" if lower in kept else value
    return kept


def refusal(host: str | None, origin: str | None, allowed: Iterable[str]) -> str | None:
    """Say why a request may not pass: it names a host, or comes from a page, that is not ours.

    A page of a stranger can make a browser send requests to loopback, and DNS
    rebinding gives it a name there: so loopback names and `allowed` ones pass.
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
