"""The columns of messages and exchanges as values, with units in their names.

`show --format json`, CSV and JSONL have the same columns (docs/show.md). JSON omits a column that does not apply.
"""

from __future__ import annotations

from typing import Any, TypeVar

import orjson
from msgspec import Raw

from mcpspy.analysis.export.base import ExchangeTable, WallClock, fragment
from mcpspy.analysis.rows import batch_size
from mcpspy.core.protocol.message import Failure, Message, Notification, Request, Result, loads
from mcpspy.core.protocol.peers import Peer, Peers
from mcpspy.core.protocol.spec import METHODS, error_name
from mcpspy.core.recording.decode import Header
from mcpspy.core.session import outcome as judge
from mcpspy.core.session.exchange import Exchange, State
from mcpspy.core.session.session import Change

T = TypeVar("T")

_TARGETS = {"tools/call": "tool", "prompts/get": "prompt"}


class SessionColumns:
    """Columns that are the same for all messages of a session, or of an HTTP stream: ids, time, peers."""

    def __init__(self, header: Header) -> None:
        self._recording = {"session": header.id, "name": header.name}
        self._clock = WallClock(header.started)
        self._peers: dict[str | None, Peers] = {}
        self._labels: dict[str, str] = {}
        self._moved: dict[str, str] = {}
        """Stream of a request that was sent again after a redirect → the stream of the first time."""
        self.clients: dict[Peer, None] = {}
        """The clients, each once."""
        self._servers: dict[Peer, None] = {}
        self._revisions: dict[str, None] = {}

    def add(self, change: Change) -> None:
        """Read the descriptions of the peers in a message."""
        what, exchange = change.what, change.exchange
        if not isinstance(what, Request | Result | Failure):
            return
        peers = self._peers.get(what.frame.stream)
        if peers is None:
            peers = self._peers[what.frame.stream] = Peers()
        if isinstance(what, Request):
            peers.add_request(what)
            if exchange is not None and what is not exchange.request and what.frame.stream is not None:
                first = exchange.request.frame.stream
                self._moved.setdefault(what.frame.stream, first or what.frame.stream)
        elif exchange is not None:
            peers.add_response(what, exchange.request.method)
        if peers.client is not None:
            self.clients[peers.client] = None
        if peers.server is not None:
            self._servers[peers.server] = None
        if peers.revision is not None and (peers.server is not None or peers.is_modern):
            self._revisions[peers.revision] = None

    def label(self, stream: str) -> str:
        """Return the name of a stream's client, with `#` and the stream if an earlier one introduced itself so.

        Return the stream itself if its client has no name.
        """
        peers = self._peers.get(stream)
        if peers is None or peers.client is None:
            return stream
        name, stream = peers.client.name, self._moved.get(stream, stream)
        # Until 2025-11-25 a stream is a session; later, each POST is a stream and names its client.
        first = stream if peers.is_modern else self._labels.setdefault(name, stream)
        return name if first == stream else f"{name} #{stream}"

    def moment(self, at: float) -> dict[str, Any]:
        return {**self._recording, "time": self._clock.iso(at), "t": at}

    def peers(self, stream: str | None) -> dict[str, Any]:
        """Return the columns of the peers. A stream without its own has those that all other streams share."""
        here = self._peers.get(stream) or Peers()
        client = here.client or _only(self.clients)
        server = here.server or _only(self._servers)
        return {
            "client": None if client is None else str(client),
            "server": None if server is None else str(server),
            "revision": here.revision or _only(self._revisions),
        }

    def of_exchange(self, exchange: Exchange) -> dict[str, Any]:
        """Return the columns of an exchange; the times and the peers are those of its request."""
        request = exchange.request
        stream = request.frame.stream
        return {
            **self.moment(request.at),
            **({} if stream is None else {"stream": stream}),
            **self.peers(stream),
            "from": request.side,
            **batch(request),
            **target(request.method, request.subject),
            "id": json_id(request),
            **outcome(exchange),
        }


def of_session(session: ExchangeTable) -> SessionColumns:
    """Return the columns of a session whose messages are all known."""
    columns = SessionColumns(session.header)
    for change in session.changes:
        columns.add(change)
    return columns


def _only(values: dict[T, None]) -> T | None:
    return next(iter(values)) if len(values) == 1 else None


def target(method: str, subject: str | None) -> dict[str, Any]:
    """Return the method and its target: `about`, and also `tool`, `prompt` or `uri` if it is one."""
    known = METHODS.get(method)
    name = _TARGETS.get(method) or ("uri" if known is not None and known.subject == "uri" else "")
    return {"method": method, "about": subject, **({name: subject} if name and subject is not None else {})}


def batch(message: Message) -> dict[str, Any]:
    """Return the place of a message in its batch, from 0, and the size of the batch; empty outside a batch."""
    index = message.index
    return {} if index is None else {"batch": {"index": index, "size": batch_size(message.frame)}}


def json_id(message: Request | Result | Failure) -> Any:
    """Return an id as JSON; as text if it is not strict JSON."""
    return _literal(message.id)


def _literal(text: str | None) -> Any:
    return None if text is None else fragment(text.encode("utf-8", "surrogatepass")) or text


def error(answer: Result | Failure | None) -> dict[str, Any]:
    """Return the code, name and message of a JSON-RPC error, or the text of a tool error; empty without a response."""
    if isinstance(answer, Failure):
        return {
            "code": _literal(answer.code_text),
            "error": {"name": error_name(answer.code), "message": answer.text},
        }
    return {} if answer is None else {"error": {"name": str(State.TOOL_ERROR), "message": answer.text}}


def outcome(exchange: Exchange) -> dict[str, Any]:
    """Return the outcome of a request, its latency and its sizes."""
    answer = exchange.answer
    return {
        "exchange": exchange.number,
        "status": str(exchange.state),
        "latency_ms": milliseconds(exchange.latency),
        **error(judge.error_of(exchange)),
        "request_bytes": len(exchange.request.data),
        "response_bytes": None if answer is None else len(answer.data),
        **({"progress_count": len(exchange.progress)} if exchange.progress else {}),
    }


def milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def progress(message: Notification) -> dict[str, Any]:
    """Return the values of a progress notification, as they were sent; empty for any other notification."""
    if message.method != "notifications/progress":
        return {}
    body = message.body
    values = {
        "token": body.progress_token,
        "progress": body.progress,
        "total": body.total,
        "message": body.message,
    }
    return {"progress": {name: _value(raw) for name, raw in values.items() if bytes(raw)}}


def _value(raw: Raw) -> orjson.Fragment | Any:
    return fragment(bytes(raw)) or loads(raw)
