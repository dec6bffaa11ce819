"""Server-sent events with their bytes, and the headers of changed and injected requests.

A stream is split into events independently of its chunks, so that one can be held while others pass (HTML Living
Standard, 9.2). A changed body changes `Content-Length` and the headers of 2026-07-28 that repeat parts of the body.
`Mcp-Param-*` repeats an argument; without the schema that names the argument, it is identified by its value
(basic/transports/streamable-http, standard and custom headers).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from mcpspy.core.framing import SseEvent, SseFramer, collect
from mcpspy.core.protocol import mcp_headers
from mcpspy.core.protocol.http_headers import Headers
from mcpspy.core.protocol.mcp_headers import ToolParamHeaders
from mcpspy.core.protocol.message import Request, read_frame
from mcpspy.core.protocol.spec import CLIENT
from mcpspy.core.recording.decode import Frame

if TYPE_CHECKING:
    from mcpspy.core.framing import Pieces

_LINE_END = re.compile(rb"\r\n|\r|\n")

PARAM = mcp_headers.PREFIX.lower()

_ROUTING = tuple(name.lower() for name in (mcp_headers.METHOD, mcp_headers.NAME, mcp_headers.VERSION))


class SseUnit(NamedTuple):
    """Bytes between two positions at which mcpspy may interrupt a stream."""

    raw: bytes
    event: SseEvent | None
    """None for a comment, or an extra blank line."""
    is_part: bool = False
    """True if an event above the limit continues after these bytes: mcpspy may not interrupt it here."""

    @property
    def message(self) -> bytes | None:
        """The message in the event; None if it has none."""
        if self.event is None or not self.event.is_message:
            return None
        assert self.event.data is not None
        return b"".join(self.event.data)


class SseUnits:
    """Splitter of a `text/event-stream` body into units. An event above the limit comes in parts (0: no limit)."""

    def __init__(self, limit: int = 0) -> None:
        self._framer = SseFramer(limit)
        self._raw: Pieces = []

    def feed(self, data: bytes) -> list[SseUnit]:
        units: list[SseUnit] = []
        for line in data.splitlines(keepends=True):  # On bytes: at CR, LF and CRLF only.
            collect(self._raw, line)
            events = self._framer.feed(line)
            if events:
                units.append(SseUnit(self._take(), events[0]))
            elif self._framer.is_oversized:
                units += self._parts()
            elif not self._framer.is_inside_event and line.endswith((b"\n", b"\r")):
                units.append(SseUnit(self._take(), None))
        return units

    def close(self) -> SseUnit | None:
        """Return the incomplete last unit, if any."""
        raw, event = self._take(), self._framer.close()
        return SseUnit(raw, event) if raw or event is not None else None

    def _take(self) -> bytes:
        pieces, self._raw = self._raw, []
        return b"".join(pieces)

    def _parts(self) -> Iterator[SseUnit]:
        """Yield what has arrived of an event above the limit, without joining it."""
        pieces, self._raw = self._raw, []
        for piece in pieces:
            yield SseUnit(bytes(piece), None, is_part=True)


def format_event(data: bytes, like: SseEvent | None = None) -> bytes:
    """Return an event with this message, and with the name, id and retry time of the event `like`."""
    lines = []
    if like is not None:
        named = {"event": like.event, "id": like.id, "retry": like.retry}
        lines = [f"{name}: {value}".encode() for name, value in named.items() if value is not None]
    lines += [b"data: " + line for line in _LINE_END.split(data)]
    return b"\n".join(lines) + b"\n\n"


def headers_for_changed_body(
    headers: Headers, before: bytes, after: bytes, tools: ToolParamHeaders
) -> Headers:
    """Return the headers for a request whose body was changed from `before` to `after`."""
    others = [(name, value) for name, value in headers if name.lower() != "content-length"]
    old, new = _request(before), _request(after)
    if new is None or not any(name.lower() == mcp_headers.METHOD.lower() for name, _ in others):
        return others
    repeated = {name.lower(): (name, value) for name, value in _mcp_headers(new, tools).items()}
    declared = {name.lower() for each in (old, new) if each is not None for name in tools.places(each)}
    changed: Headers = []
    for name, value in others:
        lower = name.lower()
        if lower in _ROUTING or lower in declared:
            if lower in repeated:
                changed.append((name, repeated.pop(lower)[1]))
        elif lower.startswith(PARAM) and old is not None:
            updated = _updated(lower.removeprefix(PARAM), mcp_headers.decoded(value), old, new)
            if updated is not None:
                changed.append(
                    (name, value if updated == mcp_headers.decoded(value) else mcp_headers.encoded(updated))
                )
        else:
            changed.append((name, value))
    return changed + list(repeated.values())


def headers_for_injected(headers: Headers, body: bytes, tools: ToolParamHeaders) -> Headers:
    """Return the headers for an injected request, based on those of a request of the client."""
    dropped = ("content-length", "content-encoding", "last-event-id", *_ROUTING)
    others = [
        (name, value)
        for name, value in headers
        if name.lower() not in dropped and not name.lower().startswith(PARAM)
    ]
    request = _request(body)
    is_modern = any(name.lower() == mcp_headers.METHOD.lower() for name, _ in headers)
    if request is not None and (is_modern or request.revision is not None):
        return [*others, *_mcp_headers(request, tools).items()]
    return others + [(name, value) for name, value in headers if name.lower() == mcp_headers.VERSION.lower()]


def _mcp_headers(request: Request, tools: ToolParamHeaders) -> dict[str, str]:
    return mcp_headers.headers(request) | tools.headers(request)


def _request(body: bytes) -> Request | None:
    messages = read_frame(Frame(0.0, CLIENT, body))
    return messages[0] if len(messages) == 1 and isinstance(messages[0], Request) else None


def _updated(name: str, value: str, old: Request, new: Request) -> str | None:
    """Return the new value of a header that repeats an argument; None if the argument was removed."""
    found = [path for path, held in _scalars(_arguments(old), ()) if held == value]
    wanted = _normalized(name)
    path = next((path for path in found if _normalized(path[-1]) == wanted), None)
    if path is None and len(found) != 1:
        return value  # The argument cannot be identified.
    return mcp_headers.text(mcp_headers.at(_arguments(new), path or found[0]))


def _arguments(request: Request) -> Any:
    params = request.params
    return params.get("arguments") if isinstance(params, dict) else None


def _scalars(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _scalars(inner, (*path, key))
    elif path and (text := mcp_headers.text(value)) is not None:
        yield path, text


def _normalized(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
