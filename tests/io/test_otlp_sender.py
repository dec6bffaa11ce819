"""Spans reach a collector, and its response is reported."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest
from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from mcpspy.analysis.export.otlp import batches
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io import otlp_sender
from mcpspy.io.client.base import ServerAddress
from mcpspy.io.otlp_sender import OtlpResult, send, traces_url
from tests.analysis.export.otlp.decoded import decoded
from tests.analysis.export.sessions import call, result, session_of


class Collector:
    """A receiver that accepts requests that OpenTelemetry's own messages can be parsed from, and refuses others."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[web.Response] = []
        self.ready = asyncio.Event()
        """Respond only after this event."""
        self.ready.set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        await self.ready.wait()
        if request.path != "/v1/traces" or request.content_type != "application/json":
            return web.Response(status=404, text="no such\npath")
        try:
            self.requests.append(decoded(await request.read()))
        except ValueError as error:
            return web.Response(status=400, text=str(error))
        self.headers.append(dict(request.headers))
        return self.answers.pop(0) if self.answers else web.json_response({})


@pytest.fixture
async def receiver() -> AsyncIterator[Collector]:
    made = Collector()
    server = web.ServerRunner(web.Server(made.handle), shutdown_timeout=0)
    await server.setup()
    site = web.TCPSite(server, "127.0.0.1", 0)
    await site.start()
    host, port = server.addresses[0][:2]
    made.url = f"http://{host}:{port}"
    yield made
    made.ready.set()
    await server.cleanup()


def calls(count: int) -> list[tuple[int, bytes]]:
    """Return requests of two spans each."""
    numbers = range(1, count + 1)
    return list(
        batches([session_of(*(each for n in numbers for each in (call(n, n), result(n + 0.5, n))))], 2)
    )


def sent(address: ServerAddress, count: int = 5) -> Awaitable[OtlpResult]:
    """Send in a thread, because this test already has a loop; the command has none."""
    return asyncio.to_thread(send, address, calls(count))


async def test_all_spans_arrive_with_the_configured_headers(receiver: Collector) -> None:
    address = ServerAddress(traces_url(receiver.url), (("X-Token", "s3"),))

    assert await sent(address) == OtlpResult(5, 0, "")
    names = [
        s.name for r in receiver.requests for x in r.resource_spans for y in x.scope_spans for s in y.spans
    ]
    assert names == ["tools/call forecast"] * 5
    assert len(receiver.requests) == 3
    assert {headers["X-Token"] for headers in receiver.headers} == {"s3"}


async def test_a_refusal_is_one_line_with_the_response_and_the_number_of_sent_spans(
    receiver: Collector,
) -> None:
    receiver.answers = [web.json_response({}), web.Response(status=503, text="over\nloaded \x1b[31m")]
    with pytest.raises(CannotStart) as refused:
        await sent(ServerAddress(traces_url(receiver.url)))

    assert str(refused.value) == (
        f"{receiver.url}/v1/traces refused the spans: HTTP 503: over loaded \\x1b[31m (2 spans had been sent)"
    )


async def test_an_explicit_path_is_not_changed(receiver: Collector) -> None:
    with pytest.raises(CannotStart, match="HTTP 404: no such path"):
        await sent(ServerAddress(traces_url(receiver.url + "/otlp")))


async def test_a_redirection_is_a_refusal(receiver: Collector) -> None:
    receiver.answers = [web.Response(status=301, headers={"Location": receiver.url})]
    with pytest.raises(CannotStart, match="HTTP 301"):
        await sent(ServerAddress(traces_url(receiver.url)))


async def test_spans_that_were_rejected_are_counted(receiver: Collector) -> None:
    partial = {"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}
    receiver.answers = [web.json_response(partial), web.json_response({"partialSuccess": {}})]

    assert await sent(ServerAddress(traces_url(receiver.url))) == OtlpResult(3, 2, "too old")


@pytest.mark.parametrize("answer", [b"", b"thanks", b"[]", b'{"partialSuccess":{"rejectedSpans":"x"}}'])
async def test_any_other_body_of_a_200_response_is_ignored(receiver: Collector, answer: bytes) -> None:
    receiver.answers = [web.Response(body=answer)]

    assert await sent(ServerAddress(traces_url(receiver.url)), 1) == OtlpResult(1, 0, "")


async def test_a_refused_connection_and_a_missing_response_are_reported_in_one_line(
    receiver: Collector, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CannotStart, match=r"cannot send to .*: Connection refused \(is it a collector"):
        await sent(ServerAddress(traces_url(f"http://127.0.0.1:{unused_tcp_port}")))
    receiver.ready.clear()
    monkeypatch.setattr(otlp_sender, "PATIENCE", 0.05)
    with pytest.raises(CannotStart, match="no response in 0 s"):
        await sent(ServerAddress(traces_url(receiver.url)))


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("http://localhost:4318", "http://localhost:4318/v1/traces"),
        ("https://h/", "https://h/v1/traces"),
        ("http://h/otlp/v1/traces?x=1", "http://h/otlp/v1/traces?x=1"),
    ],
)
def test_an_endpoint_without_a_path_gets_the_default_path(endpoint: str, url: str) -> None:
    assert traces_url(endpoint) == url


@pytest.mark.parametrize(
    "endpoint", ["localhost:4318", "", "file:///etc", "grpc://h:4317", "http://", "http://[x"]
)
def test_an_invalid_url_is_an_error(endpoint: str) -> None:
    with pytest.raises(UsageError, match="not a URL"):
        traces_url(endpoint)


def test_nothing_to_send_is_not_an_error() -> None:
    assert send(ServerAddress("http://127.0.0.1:9/v1/traces"), []) == OtlpResult(0, 0, "")
