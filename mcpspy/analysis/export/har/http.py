"""One HAR entry per HTTP exchange of a recording.

Headers and times come from notes. A stream of server-sent events is written event by event with the recorded
fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from mcpspy.analysis import rows
from mcpspy.analysis.export.base import RecordedSession, WallClock
from mcpspy.analysis.export.har.entry import UNKNOWN, answered, asked, timed
from mcpspy.core.protocol.message import Message, Notification, Request
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame, Header, Note
from mcpspy.core.session.session import Change

EVENTS = "text/event-stream"

UNKNOWN_ORIGIN = "http://unknown"
"""For recordings without a server address."""

_ORIGIN = re.compile(
    r"(https?://)(?:[^/?#@]*@)?((?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?)(?![^/?#])", re.ASCII | re.IGNORECASE
)
"""Scheme, host and port; user information before the host is left out."""

_SIGNS = "/?:@!$&'()*+,;=~%"
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")


class HttpTransfer:
    """One HTTP exchange and its messages."""

    def __init__(self, at: float) -> None:
        self.began = at
        self.last = at
        self.head: Note | None = None
        self.end: Note | None = None
        self.asked: list[Frame] = []
        self.said: list[Frame | Note] = []
        self.wanted: dict[bool, bool] = {}
        """Whether the filter selects one of its messages (True), and one of its notes (False)."""
        self.about: list[str] = []

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
                self.said.append(what)
        elif isinstance(what, Message):
            frames: list[Any] = self.asked if what.side == CLIENT else self.said
            if not frames or frames[-1] is not what.frame:  # All messages of a batch are in one frame.
                frames.append(what.frame)
            if isinstance(what, Request | Notification):
                self.about.append(f"{what.method} {what.subject or ''}".rstrip())
                if isinstance(what, Request) and change.exchange is not None:
                    self.about[-1] += f": {rows.outcome(change.exchange)[0]}"

    def fields(self, name: str) -> dict[str, str]:
        """Return the headers of `request` or `response`."""
        found = self.head.fields.get(name) if self.head is not None else None
        return {key: str(value) for key, value in found.items()} if isinstance(found, dict) else {}


def entries(session: RecordedSession) -> Iterator[dict[str, Any]]:
    """Yield the entries of an HTTP session, in the order of the requests."""
    exchanges: dict[int, HttpTransfer] = {}
    for change in session.changes:
        number = _exchange_of(change)
        if number is None:
            continue
        carried = exchanges.get(number)
        if carried is None:
            carried = exchanges[number] = HttpTransfer(change.what.at)
        carried.add(change)
        is_message = isinstance(change.what, Message)
        carried.wanted[is_message] = carried.wanted.get(is_message, False) or session.keep(change)
    clock = WallClock(session.header.started)
    for number, carried in sorted(exchanges.items(), key=lambda item: item[1].began):
        # A filter that leaves messages out leaves out what carried them, though it knows nothing against the head.
        if carried.wanted.get(True, carried.wanted.get(False, False)):
            yield _entry(session.header, clock, number, carried)


def _entry(header: Header, clock: WallClock, number: int, carried: HttpTransfer) -> dict[str, Any]:
    head = carried.head.fields if carried.head is not None else {}
    head_at = carried.head.at if carried.head is not None else carried.last
    end_at = carried.end.at if carried.end is not None else max(carried.last, head_at)
    status = head.get("status")
    responses = carried.fields("response")
    is_stream = responses.get("content-type", "").startswith(EVENTS)
    body = b"".join(map(_event if is_stream else _bytes, carried.said))
    request = asked(
        str(head.get("method", "POST")),
        _url(header, head.get("path")),
        carried.fields("request"),
        b"".join(map(_bytes, carried.asked)) if carried.asked else None,
    )
    entry: dict[str, Any] = {
        "startedDateTime": clock.iso(carried.began),
        **timed(head_at - carried.began, end_at - head_at),
        "request": request,
        "response": answered(
            status if isinstance(status, int) else 0,
            None,
            responses,
            body,
            size=UNKNOWN if is_stream else _length(responses),
        ),
        "_resourceType": "fetch",
        "_http": number,
    }
    if carried.about:
        entry["comment"] = "; ".join(carried.about)
    if error := _error(carried):
        entry["_error"] = error
    return entry


def _length(headers: dict[str, str]) -> int | None:
    """Return the response's `content-length`: a body without messages may not be recorded."""
    said = headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 16 else None


def _error(carried: HttpTransfer) -> str:
    """Return an error below HTTP."""
    if carried.head is not None and (error := carried.head.fields.get("error")):
        return str(error)
    who = carried.end.fields.get("hung_up") if carried.end is not None else None
    if who:
        return f"{who} hung up"
    return "" if carried.end is not None else "no end was recorded"


def _exchange_of(change: Change) -> int | None:
    what = change.what
    number = what.fields.get("http") if isinstance(what, Note) else None
    if isinstance(what, Message):
        number = what.frame.http
    return number if isinstance(number, int) else None


def _url(header: Header, path: object) -> str:
    """Return the URL at the server, not at the proxy. Always a valid URL (RFC 3986)."""
    upstream = header.upstream or ""
    origin = _ORIGIN.match(upstream)
    target = upstream[origin.end() :] if origin is not None and path is None else str(path or "")
    quoted = _NO_ESCAPE.sub("%25", quote(target, _SIGNS, errors="replace"))
    whose = origin[1] + origin[2] if origin is not None else UNKNOWN_ORIGIN
    return f"{whose}{'' if quoted.startswith('/') else '/'}{quoted}"


def _bytes(said: Frame | Note) -> bytes:
    return b"" if isinstance(said, Note) else said.data + (b"" if said.eol == "\n" else said.eol.encode())


def _event(said: Frame | Note) -> bytes:
    """Return a server-sent event (WHATWG HTML, 9.2.5)."""
    if isinstance(said, Frame):
        return _field("id", said.event_id) + _data(said.data) + b"\n"
    fields = said.fields
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
