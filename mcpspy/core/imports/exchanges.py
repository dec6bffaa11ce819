"""HTTP exchanges as browsers and proxies save them → the sessions of MCP in them.

Owns which exchanges are MCP, which of them are one server and which one stream,
and the notes about their heads. Such files keep a body, and not when each part
of it came: that is `causality`'s to estimate.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from msgspec import Struct

from mcpspy.core.envelope import CLIENT, SERVER
from mcpspy.core.framing import SseFramer
from mcpspy.core.headers import Headers, noted
from mcpspy.core.imports.causality import Causes
from mcpspy.core.imports.imported import Imported, Lines, counted

if TYPE_CHECKING:
    from mcpspy.core.envelope import Value

SESSION = "mcp-session-id"

LACKS = [
    "when each event of a stream came (it stands where it can have come: at the end, but before what it caused)",
    "what the server writes to stderr and how it left",
]

_RPC = re.compile(rb'[{,]\s*"jsonrpc"\s*:')


class Exchanged(Struct, kw_only=True):
    """One request and its response. Times are seconds since 1970."""

    at: float
    head_at: float
    """When the head of the response came."""
    end_at: float
    method: str
    url: str
    request: Headers
    asked: bytes | None
    """The body; None if the file does not have it."""
    status: int | None
    response: Headers
    answered: bytes | None
    error: str | None = None
    """Why there is no answer, if there is none."""
    hung_up: str | None = None
    """Who left before its end."""
    is_open: bool = False
    """Whether its end came after that of the file."""


def conversations(
    exchanges: list[Exchanged],
    format: str,  # noqa: A002 - it is one.
    lacks: list[str],
    *,
    whole: bool = False,
) -> list[Imported]:
    """Return a session for each server that is spoken MCP with; none if none is.

    `whole` keeps what else was asked of the same origin: in a file of ours it belongs to the session.
    """
    addresses = _addresses(exchanges)
    servers: dict[str, list[Exchanged]] = {}
    for exchange in exchanges:
        if _is_rpc(exchange):
            servers.setdefault(addresses.get(exchange.url, _endpoint(exchange.url)), [])
    other = 0
    for exchange in sorted(exchanges, key=lambda each: each.at):
        endpoint = addresses.get(exchange.url, _endpoint(exchange.url))
        if whole and endpoint not in servers:
            endpoint = next((each for each in servers if _origin(each) == _origin(endpoint)), endpoint)
        if endpoint in servers:
            servers[endpoint].append(exchange)
        else:
            other += 1
    changed = [f"left out: {counted(other, 'exchange')} with other addresses"] if other else []
    return [
        _session(endpoint, said, addresses, format=format, lacks=lacks, changed=changed)
        for endpoint, said in servers.items()
    ]


def _session(
    endpoint: str,
    exchanges: list[Exchanged],
    addresses: dict[str, str],
    *,
    format: str,  # noqa: A002 - as above.
    lacks: list[str],
    changed: list[str],
) -> Imported:
    lines = Lines(by_time=True)
    begun = exchanges[0].at
    sessions: dict[str, str] = {}
    opened: dict[str, str] = {}
    causes = Causes()
    placed: list[tuple[Exchanged, dict[str, Value]]] = []
    for number, exchange in enumerate(exchanges, 1):
        session = _header(exchange.request, SESSION) or _header(exchange.response, SESSION)
        stream = str(number)
        if session is not None:
            stream = sessions.setdefault(session, stream)
        elif exchange.url in addresses:
            stream = opened.get(exchange.url, stream)
        for address in _named(exchange):
            opened[address] = stream
        placed.append((exchange, {"stream": stream, "http": number}))
        if exchange.method == "POST" and exchange.asked:
            causes.post(stream, exchange.at, exchange.end_at, exchange.asked)
    missing = sum(_add(lines, exchange, where, begun, causes) for exchange, where in placed)
    lines.ended()
    _, made = lines.done(begun)
    return Imported(
        format=format,
        key=endpoint,
        name=_origin(endpoint).rpartition("/")[2].rpartition("@")[2],
        transport="http",
        upstream=endpoint,
        started=begun,
        lines=made,
        messages=lines.messages,
        lacks=lacks,
        changed=[*changed, *([f"bodies that were not saved with it: {missing}"] if missing else [])],
    )


def _add(lines: Lines, exchange: Exchanged, where: dict[str, Value], begun: float, causes: Causes) -> int:
    """Add what one exchange carried; return how many of its bodies are missing."""
    kind = (_header(exchange.response, "content-type") or "").partition(";")[0].strip().lower()
    posts = exchange.method == "POST"
    if posts and exchange.asked is not None:
        lines.message(exchange.at, CLIENT, exchange.asked, **where)
    fields: dict[str, Value] = {
        "method": exchange.method,
        "path": _target(exchange.url),
        "status": exchange.status,
        "asked_at": round(exchange.at - begun, 6),
        "request": noted(exchange.request),
        "response": noted(exchange.response),
    }
    if exchange.error:
        fields["error"] = exchange.error
    lines.note(exchange.head_at, "http", **where, **fields)
    answers = kind in ("application/json", "text/event-stream")
    if answers and exchange.answered:
        if kind == "text/event-stream":
            begins, ends, stream = exchange.at, exchange.end_at, str(where["stream"])
            times = causes.times(stream, begins, ends, exchange.answered, own=not posts)
            lines.events(times, exchange.answered, **where)
        else:
            lines.message(exchange.end_at, SERVER, exchange.answered, **where)
    if not exchange.is_open:
        lines.note(exchange.end_at, "http-end", **where, hung_up=exchange.hung_up)
    return (posts and exchange.asked is None) + (answers and exchange.answered is None)


def _is_rpc(exchange: Exchanged) -> bool:
    return exchange.method == "POST" and bool(exchange.asked) and bool(_RPC.search(exchange.asked or b""))


def _addresses(exchanges: list[Exchanged]) -> dict[str, str]:
    """Return the addresses that streams of HTTP+SSE (2024-11-05) named, and the endpoint of the stream."""
    return {address: _endpoint(exchange.url) for exchange in exchanges for address in _named(exchange)}


def _named(exchange: Exchanged) -> list[str]:
    """Return the addresses that an exchange named for messages: one, in the first event of its stream."""
    if exchange.method != "GET" or not exchange.answered:
        return []
    events = SseFramer().feed(exchange.answered[:8192])
    if not events or events[0].event != "endpoint":
        return []
    said = b"".join(events[0].data or ()).decode("utf-8", "replace")
    try:
        return [urljoin(exchange.url, said)]
    except ValueError:  # No address at all.
        return []


def _endpoint(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _target(url: str) -> str:
    """Return path and query. `urlsplit` raises for what is no URL, and what a file calls one may be none."""
    return "/" + "".join(url.partition("#")[0].split("/", 3)[3:])


def _header(headers: Headers, wanted: str) -> str | None:
    return next((value for name, value in headers if name.lower() == wanted), None)
