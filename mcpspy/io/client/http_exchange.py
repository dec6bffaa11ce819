"""One HTTP exchange of a client connection, and its entries in the recording.

Reads a body as messages, from JSON or server-sent events, and records each before it is delivered.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from yarl import URL

from mcpspy.core.compression import missing_package
from mcpspy.core.protocol.http_headers import EVENTS, JSON, recorded_headers
from mcpspy.core.protocol.refusal import RefusalBody, is_refusal
from mcpspy.core.recording import encode
from mcpspy.core.recording.capped_body import CappedBody, CappedStream
from mcpspy.core.recording.encode import CLIENT, SERVER
from mcpspy.core.recording.encode_body import LAST_CHUNK, REST, BodyEncoder, SseEncoder
from mcpspy.io.extras import install_command
from mcpspy.io.network.outgoing import Turns, in_turns

if TYPE_CHECKING:
    from mcpspy.core.framing import SseEvent
    from mcpspy.core.recording.encode import Value
    from mcpspy.io.recording.recorder import Recorder

LONGEST_EXCERPT = 200
"""Maximum number of characters shown from a body that is not a message."""

REDIRECTS = 5


class ResponsePart(NamedTuple):
    """A part of a response: a message, or an event that only primes, names or paces a stream."""

    data: bytes | None
    """The message; None for any other event."""
    kind: str | None = None
    """The `event` field of an event."""
    text: str = ""
    """The data of an event that is not a message."""
    id: str | None = None
    retry: int | None = None
    """The milliseconds after which to reconnect."""
    fields: dict[str, Value] | None = None
    """Fields of the message's entry, which the caller records; None if it is recorded."""


class BodyTooLarge(Exception):  # noqa: N818 - raised and handled in this package.
    """A response, or an event of one, is larger than the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the response is larger than {limit} bytes (--max-body)")


class ClientExchange:
    """One request over HTTP, and its response."""

    def __init__(
        self,
        recorder: Recorder | None,
        number: int,
        stream: str,
        max_body: int = 0,
        *,
        records_messages: bool = True,
    ) -> None:
        """Create an exchange. A response of more than `max_body` bytes raises BodyTooLarge (0: no limit).

        Without `records_messages`, the caller records the server's messages.
        """
        self._records_messages = records_messages
        self.is_request_recorded = False
        """True if the caller has recorded the request's message."""
        self._max_body = max_body
        self.number = number
        self.stream = stream
        self.status: int | None = None
        self._recorder = recorder
        self._method = ""
        self._url = URL()
        self._sent_at = 0.0
        self._request_headers: dict[str, str] = {}
        self._is_over = False
        self._response: aiohttp.ClientResponse | None = None
        self._refusal: RefusalBody | None = None
        """The body, if it is not a message."""

    @property
    def response(self) -> aiohttp.ClientResponse:
        """The head of the response. Use it only after `send_request`."""
        assert self._response is not None
        return self._response

    async def send_request(
        self,
        client: aiohttp.ClientSession,
        method: str,
        url: URL,
        headers: dict[str, str],
        data: bytes | None = None,
    ) -> aiohttp.ClientResponse:
        """Send the request and return the head of the response. Raises the exceptions of aiohttp."""
        self._method, self._url, self._request_headers = method, url, recorded_headers(headers.items())
        if self._recorder is not None:
            self._sent_at = self._recorder.now()
            if data is not None and not self.is_request_recorded:
                encoder = BodyEncoder(CLIENT, self.fields)
                encoder.feed(data)
                self._recorder.write(encoder.close(self._sent_at))
        for _ in range(REDIRECTS):
            response = await client.request(method, url, headers=headers, data=data, allow_redirects=False)
            # These two statuses repeat the request unchanged; its headers must not be sent to another origin.
            if response.status not in (307, 308) or "Location" not in response.headers:
                break
            target = url.join(URL(response.headers["Location"]))
            if target.origin() != url.origin():
                break
            response.release()
            url = target
        self._response = response
        self.status = response.status
        self._request_headers = recorded_headers(response.request_info.headers.items())
        is_odd = is_refusal(method, response.status, response.content_type)
        self._record_head(recorded_headers(response.headers.items(), is_refusal=is_odd), None)
        if is_odd and response.content_type not in (JSON, EVENTS):
            self._refusal = RefusalBody(None)  # aiohttp decodes it.
        return response

    async def events(self) -> AsyncIterator[ResponsePart]:
        """Yield the recorded messages of the body as they arrive. Raises aiohttp.ClientError if the body breaks off."""
        encoding = self.response.headers.get("Content-Encoding")
        package = missing_package(encoding)
        if package is not None:
            needed = f"the response is compressed by {encoding}, which needs {package}"
            raise aiohttp.ClientPayloadError(f"{needed}: {install_command('compression')}")
        if self.response.content_type == EVENTS:
            async for event in self._read_events(self.response):
                yield event
        elif data := await self._read_body(self.response):
            is_message = self.response.content_type == JSON and not self._records_messages
            yield ResponsePart(data, fields=self.fields if is_message else None)

    def record(self, part: ResponsePart) -> None:
        """Record a message that is not recorded yet."""
        if part.data is not None and part.fields is not None:
            prefix = encode.frame_prefix(SERVER, part.fields)
            self._write(list(encode.splice(prefix % self._now(), [part.data], body=True)))

    def close(self, hung_up: str | None, error: str | None = None) -> None:
        """End the exchange. `hung_up` is the side that closed it; `error` is the reason for a missing response."""
        if self._is_over:
            return
        self._is_over = True
        if self._response is None:
            self._record_head({}, error)
        elif hung_up:
            self._response.close()
        else:
            self._response.release()
        words = {} if self._refusal is None else self._refusal.fields()
        self._note("http-end", {**self.fields, "hung_up": hung_up, **words})

    async def _read_events(self, response: aiohttp.ClientResponse) -> AsyncIterator[ResponsePart]:
        encoder = SseEncoder(SERVER, self.fields, self._max_body)
        encoding = response.headers.get("Content-Encoding")
        decoded = CappedStream(SERVER, self.fields, encoding, self._max_body or sys.maxsize)
        try:
            async for chunk in response.content.iter_any():
                async for step in Turns(decoded.steps(chunk)):
                    events = encoder.events(step)
                    at = self._now()
                    recorded = [event for event in events if not self._is_recorded_later(event)]
                    self._write([line for event in recorded for line in encoder.line(at, event)])
                    for event in events:
                        if event.oversized:
                            raise BodyTooLarge(self._max_body)
                        yield self._part(encoder, event)
                    if encoder.is_oversized:
                        raise BodyTooLarge(self._max_body)
                if decoded.is_over:
                    raise BodyTooLarge(self._max_body)
        finally:
            at = self._now()
            self._write(list(decoded.close(at) if decoded.is_over else encoder.close(at)))

    def _part(self, encoder: SseEncoder, event: SseEvent) -> ResponsePart:
        data = b"".join(event.data or ())
        message = data if event.is_message else None
        text = "" if event.is_message else data.decode("utf-8", "replace")
        fields = encoder.fields(event) if self._is_recorded_later(event) else None
        return ResponsePart(message, event.event, text, event.id, event.retry, fields)

    def _is_recorded_later(self, event: SseEvent) -> bool:
        return event.is_message and event.oversized is None and not self._records_messages

    async def _read_body(self, response: aiohttp.ClientResponse) -> bytes:
        encoding = response.headers.get("Content-Encoding")
        body = CappedBody(SERVER, self.fields, encoding, self._max_body or sys.maxsize)
        is_torn, data = True, b""
        try:
            async for chunk in response.content.iter_any():
                await in_turns(body.feed(chunk))
                if self._refusal is not None:
                    for _ in self._refusal.feed(chunk):
                        pass  # It is not compressed here, so this is one step.
                if body.is_over:
                    raise BodyTooLarge(self._max_body)
            is_torn, data = False, body.data()
        finally:
            is_recorded = is_torn or self._records_messages
            if body.is_over or (is_recorded and response.content_type == JSON):
                lacks = LAST_CHUNK if response.headers.get("Transfer-Encoding") else REST
                self._write(list(body.close(self._now(), lacks=lacks if is_torn else "")))
        return data

    def _record_head(self, response_headers: dict[str, str], error: str | None) -> None:
        fields: dict[str, Value] = {
            **self.fields,
            "method": self._method,
            "path": self._url.raw_path_qs,
            "status": self.status,
            "asked_at": round(self._sent_at, 6),
            "request": self._request_headers,
            "response": response_headers,
            **({} if error is None else {"error": error}),
        }
        self._note("http", fields)

    @property
    def fields(self) -> dict[str, Value]:
        """Fields of its entries in the recording."""
        return {"stream": self.stream, "http": self.number}

    def _note(self, kind: str, fields: dict[str, Value]) -> None:
        if self._recorder is not None:
            self._recorder.write(encode.note(self._recorder.now(), kind, fields))

    def _write(self, lines: list[bytes | bytearray]) -> None:
        if self._recorder is not None and lines:
            self._recorder.write(lines)

    def _now(self) -> float:
        return self._recorder.now() if self._recorder is not None else monotonic()


def excerpt(data: bytes) -> str:
    """Return the beginning of a body, on one line, for the user."""
    text = " ".join(data.decode("utf-8", "replace").split())
    return text if len(text) <= LONGEST_EXCERPT else text[:LONGEST_EXCERPT] + "…"
