"""HTTP Archive 1.2: HTTP sessions unchanged, stdio sessions as pseudo-requests with `stdio:` URLs.

Headers and times of HTTP exchanges come from notes; server-sent events are written again from their recorded
fields. Of a stdio session (docs/export.md) a request is a POST to its receiver with the method as path, and
its response is the HTTP response. A notification is a POST with status 202, as over HTTP. Other messages have
no entry.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from mcpspy import __version__
from mcpspy.analysis import rows
from mcpspy.analysis.export.base import RecordedSession, WallClock, dumps, http_number
from mcpspy.core.protocol.http_headers import EVENTS
from mcpspy.core.protocol.message import Failure, Message, Notification, Request
from mcpspy.core.protocol.spec import CLIENT, METHODS
from mcpspy.core.recording.decode import Frame, Header, Note
from mcpspy.core.sanitize import sanitize
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change

COMMENT = (
    "Created by mcpspy. POST stdio://NAME/METHOD is not HTTP: it represents a JSON-RPC message over stdio, "
    "and its status the outcome of the message (docs/export.md)."
)

UNKNOWN = -1

_CODES = {
    code: HTTPStatus(code).phrase
    for code in (200, 202, 204, 400, 401, 403, 404, 405, 406, 415, 500, 502, 503)
}
"""RFC 9110 reason phrases; a recording has none."""

UNKNOWN_ORIGIN = "http://unknown"

_ORIGIN = re.compile(
    r"(https?://)(?:[^/?#@]*@)?((?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?)(?![^/?#])", re.ASCII | re.IGNORECASE
)
"""Scheme, host and port; user information before the host is omitted."""

_SIGNS = "/?:@!$&'()*+,;=~%"
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")

JSON = {"content-type": "application/json"}


def export(sessions: Iterable[RecordedSession]) -> Iterator[str]:
    """Yield the archive: one page per session, written while its entries are read."""
    creator = {"name": "mcpspy", "version": __version__}
    pages: list[dict[str, Any]] = []
    yield f'{{"log":{{"version":"1.2","creator":{dumps(creator)},"comment":{dumps(COMMENT)},"entries":['
    before = ""
    for session in sessions:
        page = f"{session.header.id}-{len(pages) + 1}"
        started = WallClock(session.header.started).iso(0.0)
        title = sanitize(session.name)
        pages.append({"startedDateTime": started, "id": page, "title": title, "pageTimings": {}})
        entries = http_entries if session.header.transport == "http" else stdio_entries
        for entry in entries(session):
            yield f"{before}\n{dumps({'pageref': page, **entry})}"
            before = ","
    yield f'\n],"pages":{dumps(pages)}}}}}\n'


class HttpTransfer:
    def __init__(self, at: float) -> None:
        self.began = at
        self.last = at
        self.head: Note | None = None
        self.end: Note | None = None
        self.requests: list[Frame] = []
        self.responses: list[Frame | Note] = []
        self.selected: dict[bool, bool] = {}
        """True → the filter selects one of its messages; False → it selects one of its notes."""
        self.summaries: list[str] = []

    def add(self, change: Change) -> None:
        what = change.what
        self.last = what.at
        if isinstance(what, Note):
            if what.kind == "http":
                self.head = what
                self.began = _number(what.fields.get("asked_at"), what.at)
            elif what.kind == "http-end":
                self.end = what
            else:
                self.responses.append(what)
        elif isinstance(what, Message):
            frames: list[Any] = self.requests if what.side == CLIENT else self.responses
            if not frames or frames[-1] is not what.frame:  # All messages of a batch are in one frame.
                frames.append(what.frame)
            if isinstance(what, Request | Notification):
                self.summaries.append(f"{what.method} {what.subject or ''}".rstrip())
                if isinstance(what, Request) and change.exchange is not None:
                    self.summaries[-1] += f": {rows.outcome(change.exchange)[0]}"

    def fields(self, name: str) -> dict[str, str]:
        found = self.head.fields.get(name) if self.head is not None else None
        return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def http_entries(session: RecordedSession) -> Iterator[dict[str, Any]]:
    """Yield the entries of an HTTP session, in the order of the requests."""
    exchanges: dict[int, HttpTransfer] = {}
    for change in session.changes:
        number = http_number(change.what)
        if number is None:
            continue
        transfer = exchanges.get(number)
        if transfer is None:
            transfer = exchanges[number] = HttpTransfer(change.what.at)
        transfer.add(change)
        is_message = isinstance(change.what, Message)
        transfer.selected[is_message] = transfer.selected.get(is_message, False) or session.keep(change)
    clock = WallClock(session.header.started)
    for number, transfer in sorted(exchanges.items(), key=lambda item: item[1].began):
        # Skip a transfer if the filter selects none of its messages, even if it selects its notes.
        if transfer.selected.get(True, transfer.selected.get(False, False)):
            yield _http_entry(session.header, clock, number, transfer)


def _http_entry(header: Header, clock: WallClock, number: int, transfer: HttpTransfer) -> dict[str, Any]:
    head = transfer.head.fields if transfer.head is not None else {}
    head_at = transfer.head.at if transfer.head is not None else transfer.last
    end_at = transfer.end.at if transfer.end is not None else max(transfer.last, head_at)
    status = head.get("status")
    responses = transfer.fields("response")
    is_stream = responses.get("content-type", "").startswith(EVENTS)
    body = b"".join(map(_event if is_stream else _bytes, transfer.responses))
    end = transfer.end.fields if transfer.end is not None else {}
    if isinstance(refusal := end.get("body"), str) and not body:
        body = refusal.encode("utf-8", "replace")
    request = entry_request(
        str(head.get("method", "POST")),
        _http_url(header, head.get("path")),
        transfer.fields("request"),
        b"".join(map(_bytes, transfer.requests)) if transfer.requests else None,
    )
    entry: dict[str, Any] = {
        "startedDateTime": clock.iso(transfer.began),
        **entry_times(head_at - transfer.began, end_at - head_at),
        "request": request,
        "response": entry_response(
            status if isinstance(status, int) else 0,
            None,
            responses,
            body,
            size=UNKNOWN if is_stream else _length(responses),
        ),
        "_resourceType": "fetch",
        "_http": number,
    }
    if body and end.get("cut"):
        entry["response"]["content"] |= {
            "size": end.get("size"),
            "comment": "only the beginning was recorded",
        }
    if transfer.summaries:
        entry["comment"] = "; ".join(transfer.summaries)
    if error := _error(transfer):
        entry["_error"] = error
    return entry


def _length(headers: dict[str, str]) -> int | None:
    """Return the response's `content-length`, since a body without messages may not be recorded."""
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() and len(length) < 16 else None


def _error(transfer: HttpTransfer) -> str:
    """Return an error below HTTP."""
    if transfer.head is not None and (error := transfer.head.fields.get("error")):
        return str(error)
    side = transfer.end.fields.get("hung_up") if transfer.end is not None else None
    if side:
        return f"{side} hung up"
    return "" if transfer.end is not None else "no end was recorded"


def _http_url(header: Header, path: object) -> str:
    """Return the URL at the server, not at the proxy. Always a valid URL (RFC 3986)."""
    upstream = header.upstream or ""
    origin = _ORIGIN.match(upstream)
    target = upstream[origin.end() :] if origin is not None and path is None else str(path or "")
    quoted = _NO_ESCAPE.sub("%25", quote(target, _SIGNS, errors="replace"))
    base = origin[1] + origin[2] if origin is not None else UNKNOWN_ORIGIN
    return f"{base}{'' if quoted.startswith('/') else '/'}{quoted}"


def _bytes(item: Frame | Note) -> bytes:
    return b"" if isinstance(item, Note) else item.data + (b"" if item.eol == "\n" else item.eol.encode())


def _event(item: Frame | Note) -> bytes:
    """Return a server-sent event (WHATWG HTML, 9.2.5)."""
    if isinstance(item, Frame):
        return _field("id", item.event_id) + _data(item.data) + b"\n"
    fields = item.fields
    names = ("event", "id", "retry")
    lines = b"".join(_field(name, fields.get(name)) for name in names)
    data = fields.get("data")
    return lines + (b"" if data is None else _data(str(data).encode("utf-8", "replace"))) + b"\n"


def _field(name: str, value: object) -> bytes:
    return b"" if value is None else f"{name}: {value}\n".encode("utf-8", "replace")


def _data(data: bytes) -> bytes:
    return b"".join(b"data: " + line + b"\n" for line in data.split(b"\n"))


def _number(value: object, otherwise: float) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else otherwise


def stdio_entries(session: RecordedSession) -> Iterator[dict[str, Any]]:
    """Yield the entries of a stdio session, in the order of the requests."""
    clock = WallClock(session.header.started)
    server = session.header.name or "server"
    for change in session.selected():
        what, exchange = change.what, change.exchange
        if isinstance(what, Request) and exchange is not None:
            yield _stdio_entry(what, server, clock, _stdio_outcome(exchange), exchange)
        elif isinstance(what, Notification):
            result = {**entry_times(0.0, 0.0), "response": entry_response(202, None, {}, b"")}
            yield _stdio_entry(what, server, clock, result, exchange)


def _stdio_entry(
    message: Request | Notification,
    server: str,
    clock: WallClock,
    result: dict[str, Any],
    exchange: Exchange | None,
) -> dict[str, Any]:
    return {
        "startedDateTime": clock.iso(message.at),
        "request": entry_request("POST", _stdio_url(message, server), JSON, message.data),
        **result,
        "_resourceType": "fetch",
        "_from": message.side,
        **({"_exchange": exchange.number} if exchange is not None else {}),
    }


def _stdio_outcome(exchange: Exchange) -> dict[str, Any]:
    """Return response and times. The status is 0 without a response, as in a browser."""
    answer, request = exchange.answer, exchange.request
    outcome = rows.outcome(exchange)[0]
    if answer is None:
        end = exchange.cancel.at if exchange.cancel is not None else request.at
        response = entry_response(0, outcome, {}, b"")
        return {
            **entry_times(end - request.at, 0.0),
            "response": response,
            "_error": outcome,
            "comment": outcome,
        }
    status = 500 if isinstance(answer, Failure) else 200
    response = entry_response(status, str(exchange.state), JSON, answer.data)
    return {**entry_times(answer.at - request.at, 0.0), "response": response, "comment": outcome}


def _stdio_url(message: Request | Notification, server: str) -> str:
    """Return receiver and method as URL: `stdio://weather/tools/call?name=forecast`."""
    receiver = server if message.side == CLIENT else "client"
    known = METHODS.get(message.method)
    parameter = known.subject if known is not None else None
    query = ""
    if parameter not in (None, "message") and message.subject:  # The text of an elicitation is not a name.
        query = f"?{urlencode({parameter: message.subject}, errors='replace')}"
    return f"stdio://{_quoted(receiver, '')}/{_quoted(message.method, '/')}{query}"


def _quoted(text: str, safe: str) -> str:
    return quote(text, safe, errors="replace")


def entry_request(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> dict[str, Any]:
    query = url.partition("#")[0].partition("?")[2]
    request: dict[str, Any] = {
        "method": method,
        "url": url,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "queryString": [
            {"name": name, "value": value} for name, value in parse_qsl(query, keep_blank_values=True)
        ],
        "headersSize": UNKNOWN,
        "bodySize": len(body or b""),
    }
    if body is not None:
        text, encoding = _text(body)
        request["postData"] = {"mimeType": headers.get("content-type", ""), "text": text}
        if encoding:
            request["postData"]["comment"] = f"not UTF-8, encoded as {encoding}"
    return request


def entry_response(
    status: int, phrase: str | None, headers: Mapping[str, str], body: bytes, *, size: int | None = None
) -> dict[str, Any]:
    """Return the response of an entry. A `phrase` of None is looked up; `size` replaces the body's size."""
    text, encoding = _text(body)
    content: dict[str, Any] = {"size": len(body), "mimeType": headers.get("content-type", "")}
    if body:
        content |= {"text": text, **({"encoding": encoding} if encoding else {})}
    return {
        "status": status,
        "statusText": _CODES.get(status, "") if phrase is None else phrase,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": _pairs(headers),
        "content": content,
        "redirectURL": headers.get("location", ""),
        "headersSize": UNKNOWN,
        "bodySize": len(body) if size is None else size,
    }


def entry_times(wait: float, receive: float) -> dict[str, Any]:
    """Return the times of an entry, given in seconds: until the response headers, then until the end."""
    waited, received = (round(max(seconds, 0.0) * 1000, 3) for seconds in (wait, receive))
    return {
        "time": round(waited + received, 3),
        "cache": {},
        "timings": {
            **dict.fromkeys(("blocked", "dns", "connect", "ssl"), UNKNOWN),
            "send": 0,
            "wait": waited,
            "receive": received,
        },
    }


def _pairs(headers: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in headers.items()]


def _text(body: bytes) -> tuple[str, str]:
    try:
        return body.decode(), ""
    except UnicodeDecodeError:
        return b2a_base64(body, newline=False).decode(), "base64"
