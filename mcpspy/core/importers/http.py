"""MCP sessions from HTTP exchanges that browsers and proxies have saved.

The module finds the MCP exchanges, and the server and stream of each. A file has the body of an event stream
without the time of each event. Times are estimated from cause and effect: a response follows its request, a
server request precedes its response, events keep their order, and any other event has the time of the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from msgspec import Struct

from mcpspy.core.counted import counted
from mcpspy.core.framing import SseEvent, SseFramer
from mcpspy.core.importers.base import ImportedSession, RecordingLines
from mcpspy.core.protocol.http_headers import Headers, recorded_headers
from mcpspy.core.protocol.message import AnyMessage, Failure, Notification, Request, Result, read_frame, text
from mcpspy.core.recording.decode import Frame
from mcpspy.core.recording.encode import CLIENT, SERVER

if TYPE_CHECKING:
    from mcpspy.core.recording.encode import Value

RESOLUTION = 1e-6
"""Time resolution of a recording, in seconds."""

Key = tuple[str, str]
"""Stream, and JSON text of an id or token in it."""

SESSION = "mcp-session-id"

LACKS = [
    "the time of each event of a stream (estimated: the end of the response, but before the effects of the event)",
    "the server's stderr and exit status",
]

_RPC = re.compile(rb'[{,]\s*"jsonrpc"\s*:')


class PostHistory:
    """Messages that the client posted, with their times."""

    def __init__(self) -> None:
        self._requests: dict[Key, float] = {}
        """Times at which the server had received each request."""
        self._tokens: dict[Key, float] = {}
        self._responses: dict[Key, float] = {}
        """Times of the client's responses to server requests."""

    def post(self, stream: str, at: float, end_at: float, data: bytes) -> None:
        """Read a body that was posted at `at`, in an exchange that ended at `end_at`."""
        received_at = max(end_at, at + RESOLUTION)
        for message in read_frame(Frame(at, CLIENT, data)):
            if isinstance(message, Request):
                self._requests.setdefault((stream, message.id), received_at)
                if (token := message.progress_token) is not None:
                    self._tokens.setdefault((stream, token), received_at)
            elif isinstance(message, Result | Failure) and message.id is not None:
                self._responses.setdefault((stream, message.id), at)

    def times(self, stream: str, start: float, end_at: float, body: bytes, *, own: bool) -> list[float]:
        """Return the time of each event of a body that arrived between `start` and `end_at`.

        Events in the response to a POST are placed as late as possible, and those on the server's `own` stream,
        which do not wait for a request, as early as possible.
        """
        framer = SseFramer()
        events = framer.feed(body)
        if (incomplete := framer.close()) is not None:
            events.append(incomplete)
        messages = [_messages(event) for event in events]
        earliest, latest = [end_at] * len(events), [end_at] * len(events)
        low = high = end_at
        for number in reversed(range(len(events))):
            causes = (
                _present(self._cause_time(stream, message) for message in messages[number]) if own else []
            )
            low = max(causes, default=low)
            high = min([high, *_present(self._effect_time(stream, message) for message in messages[number])])
            earliest[number], latest[number] = low, high
        at = start + RESOLUTION
        times = []
        for low, high in zip(earliest, latest, strict=True):
            at = max(at, min(low, high))
            times.append(at)
        return times

    def _cause_time(self, stream: str, message: AnyMessage) -> float | None:
        """Return the time from which the cause of a server message existed."""
        if isinstance(message, Result | Failure):
            return self._requests.get((stream, message.id or ""))
        if isinstance(message, Notification) and message.method == "notifications/progress":
            return self._tokens.get((stream, text(message.body.progress_token) or ""))
        return None

    def _effect_time(self, stream: str, message: AnyMessage) -> float | None:
        """Return the time of the client's response to a server request."""
        return self._responses.get((stream, message.id)) if isinstance(message, Request) else None


def _present(times: Iterable[float | None]) -> list[float]:
    return [at for at in times if at is not None]


def _messages(event: SseEvent) -> list[AnyMessage]:
    return read_frame(Frame(0.0, SERVER, b"".join(event.data or ()))) if event.is_message else []


EMPTY = "as mitmproxy writes it for streamed bodies"


class ImportedExchange(Struct, kw_only=True):
    """One request and its response. Times are in seconds since 1970."""

    at: float
    head_at: float
    """Time of the response headers."""
    end_at: float
    method: str
    url: str
    request: Headers
    request_body: bytes | None
    """None if the file does not contain the body."""
    status: int | None
    response: Headers
    response_body: bytes | None
    error: str | None = None
    """Reason why there is no response."""
    hung_up: str | None = None
    """Side that disconnected early."""
    is_open: bool = False
    """True if the exchange was in progress when the file was saved."""


def mcp_sessions(
    exchanges: list[ImportedExchange], *, whole: bool = False, **fields: Any
) -> list[ImportedSession]:
    """Return one session per MCP server, with these fields.

    `whole` keeps all other requests to the same origin: in a file exported by mcpspy they belong to the session.
    """
    addresses = _addresses(exchanges)
    servers: dict[str, list[ImportedExchange]] = {}
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
    changed = [f"left out: {counted(other, 'exchange')} with other URLs"] if other else []
    return [
        _session(endpoint, exchanges, addresses, changed=changed, **fields)
        for endpoint, exchanges in servers.items()
    ]


def _session(
    endpoint: str,
    exchanges: list[ImportedExchange],
    addresses: dict[str, str],
    changed: list[str],
    **fields: Any,
) -> ImportedSession:
    lines = RecordingLines(by_time=True)
    start = exchanges[0].at
    sessions: dict[str, str] = {}
    opened: dict[str, str] = {}
    history = PostHistory()
    numbered: list[tuple[ImportedExchange, dict[str, Value]]] = []
    for number, exchange in enumerate(exchanges, 1):
        session = _header(exchange.request, SESSION) or _header(exchange.response, SESSION)
        stream = str(number)
        if session is not None:
            stream = sessions.setdefault(session, stream)
        elif exchange.url in addresses:
            stream = opened.get(exchange.url, stream)
        for address in _named_addresses(exchange):
            opened[address] = stream
        numbered.append((exchange, {"stream": stream, "http": number}))
        if exchange.method == "POST" and exchange.request_body:
            history.post(stream, exchange.at, exchange.end_at, exchange.request_body)
    missing = sum(_add(lines, exchange, ids, start, history) for exchange, ids in numbered)
    empty = sum(_has_empty_response(exchange) for exchange, _ in numbered)
    return lines.session(
        start=start,
        key=endpoint,
        name=_origin(endpoint).rpartition("/")[2].rpartition("@")[2],
        transport="http",
        upstream=endpoint,
        changed=[
            *changed,
            *([f"bodies missing from the file: {missing}"] if missing else []),
            *([f"responses with an empty body in the file: {empty} ({EMPTY})"] if empty else []),
        ],
        **fields,
    )


def _add(
    lines: RecordingLines,
    exchange: ImportedExchange,
    ids: dict[str, Value],
    start: float,
    history: PostHistory,
) -> int:
    """Add the messages and notes of an exchange; return the number of its missing bodies."""
    kind = (_header(exchange.response, "content-type") or "").partition(";")[0].strip().lower()
    posts = exchange.method == "POST"
    if posts and exchange.request_body is not None:
        lines.message(exchange.at, CLIENT, exchange.request_body, **ids)
    fields: dict[str, Value] = {
        "method": exchange.method,
        "path": _target(exchange.url),
        "status": exchange.status,
        "asked_at": round(exchange.at - start, 6),
        "request": recorded_headers(exchange.request),
        "response": recorded_headers(exchange.response),
    }
    if exchange.error:
        fields["error"] = exchange.error
    lines.note(exchange.head_at, "http", **ids, **fields)
    answers = kind in ("application/json", "text/event-stream")
    if answers and exchange.response_body:
        if kind == "text/event-stream":
            begins, ends, stream = exchange.at, exchange.end_at, str(ids["stream"])
            times = history.times(stream, begins, ends, exchange.response_body, own=not posts)
            lines.events(times, exchange.response_body, **ids)
        else:
            lines.message(exchange.end_at, SERVER, exchange.response_body, **ids)
    if posts and (_has_empty_response(exchange) or (answers and exchange.response_body is None)):
        # Whether the server answered is not known, which is not the same as "no response".
        is_empty = exchange.response_body is not None
        why = f"the file has an empty body, {EMPTY}" if is_empty else "the file does not contain this body"
        since = round(exchange.head_at - start, 6)
        lines.note(exchange.end_at, "lost", stream=ids["stream"], entries=1, since=since, why=why)
    if not exchange.is_open:
        lines.note(exchange.end_at, "http-end", **ids, hung_up=exchange.hung_up)
    return (posts and exchange.request_body is None) + (answers and exchange.response_body is None)


def _has_empty_response(exchange: ImportedExchange) -> bool:
    """Return whether the response to a request has a content type and no body, which no server of MCP sends."""
    kind = (_header(exchange.response, "content-type") or "").partition(";")[0].strip().lower()
    return (
        exchange.method == "POST"
        and exchange.status == 200
        and kind in ("application/json", "text/event-stream")
        and exchange.response_body == b""
        and not exchange.is_open
    )


def _is_rpc(exchange: ImportedExchange) -> bool:
    return (
        exchange.method == "POST"
        and bool(exchange.request_body)
        and bool(_RPC.search(exchange.request_body or b""))
    )


def _addresses(exchanges: list[ImportedExchange]) -> dict[str, str]:
    """Return the message URLs of HTTP+SSE streams (2024-11-05), with their endpoints."""
    return {
        address: _endpoint(exchange.url) for exchange in exchanges for address in _named_addresses(exchange)
    }


def _named_addresses(exchange: ImportedExchange) -> list[str]:
    """Return the message URL that the first event of an HTTP+SSE stream names, if any."""
    if exchange.method != "GET" or not exchange.response_body:
        return []
    events = SseFramer().feed(exchange.response_body[:8192])
    if not events or events[0].event != "endpoint":
        return []
    data = b"".join(events[0].data or ()).decode("utf-8", "replace")
    try:
        return [urljoin(exchange.url, data)]
    except ValueError:  # Not a URL.
        return []


def _endpoint(url: str) -> str:
    return url.partition("#")[0].partition("?")[0]


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def _target(url: str) -> str:
    """Return path and query; `urlsplit` would raise for invalid URLs, which a file may contain."""
    return "/" + "".join(url.partition("#")[0].split("/", 3)[3:])


def _header(headers: Headers, wanted: str) -> str | None:
    return next((value for name, value in headers if name.lower() == wanted), None)
