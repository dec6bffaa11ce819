"""The assignment of exchanges to sessions, and of clients to their processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable

import pytest

from mcpspy.core.protocol.http_headers import location_at_proxy, read_upstream
from mcpspy.io.http import context as streams_module
from mcpspy.io.http.context import ClientProcesses, ExchangeContext, SessionScopes
from mcpspy.io.http.request import ClientAddress


@pytest.fixture
def streams() -> SessionScopes:
    return SessionScopes("/mcp")


def test_each_exchange_without_a_session_is_a_separate_stream(streams: SessionScopes) -> None:
    assert [streams.of(None, "/mcp", number) for number in (1, 2)] == ["1", "2"]


def test_a_session_is_the_conversation_that_began_it(streams: SessionScopes) -> None:
    streams.bind("s", "1")
    streams.bind("s", "9")

    assert [streams.of("s", "/mcp", 2), streams.of("never opened", "/mcp", 3)] == ["1", "3"]
    assert streams.of("never opened", "/mcp", 4) == "3"


def test_an_address_that_was_handed_out_belongs_to_its_stream(streams: SessionScopes) -> None:
    assert not streams.is_endpoint("/message?id=1")
    streams.bind_address("/message?id=1", "7")

    assert streams.is_endpoint("/mcp?key=1")
    assert streams.is_endpoint("/message?id=1")
    assert streams.is_address("/message?id=1")
    assert not streams.is_address("/mcp")
    assert streams.of(None, "/message?id=1", 8) == "7"


def test_the_oldest_ended_session_is_forgotten_first(
    streams: SessionScopes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "MAX_ENDED", 1)
    streams.end("unknown")
    for name in "ab":
        streams.bind(name, name)
        streams.end(name)

    assert [streams.of(name, "/mcp", 9) for name in "ab"] == ["9", "b"]


def test_of_very_many_that_never_end_the_one_that_was_silent_longest_is_forgotten(
    streams: SessionScopes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "MAX_REMEMBERED", 2)
    monkeypatch.setattr(streams_module, "MAX_ENDED", 1)
    streams.bind("a", "1")
    streams.bind("b", "2")
    streams.end("b")
    assert streams.of("a", "/mcp", 3) == "1"
    streams.bind("c", "4")
    streams.end("c")
    streams.end("a")

    assert [streams.of(name, "/mcp", 9) for name in "ab"] == ["1", "9"]


SHORT, LISTENING = ("127.0.0.1", 50_001), ("127.0.0.1", 50_002)
"""Addresses of a connection that closes before it is found, and of one that stays open."""


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> dict[object, threading.Event]:
    """Return the events that end a look at each address. A look at `SHORT` finds nothing."""
    ends: dict[object, threading.Event] = {SHORT: threading.Event(), LISTENING: threading.Event()}

    def clients_of(addresses: Iterable[object], _: Iterable[int]) -> dict[object, dict[str, str | int]]:
        assert all(ends[address].wait(10) for address in addresses)
        return {address: {"pid": 7} for address in addresses if address != SHORT}

    monkeypatch.setattr(streams_module, "clients_of", clients_of)
    return ends


async def taken(clients: ClientProcesses, address: object, stream: str) -> object:
    async with asyncio.timeout(10):
        while (found := clients.take(address, stream)) is None:  # noqa: ASYNC110 - a look has no event.
            await asyncio.sleep(0)
    return found


async def test_a_connection_that_stays_open_is_looked_at_while_the_look_at_another_will_fail(
    looks: dict[object, threading.Event],
) -> None:
    clients = ClientProcesses()
    clients.look(SHORT, "1")
    clients.look(LISTENING, "1")
    looks[SHORT].set()
    looks[LISTENING].set()

    assert await taken(clients, SHORT, "1") == {"pid": 7}
    assert clients.take(LISTENING, "1") is None


async def test_the_process_of_a_client_is_taken_once_for_all_its_connections(
    looks: dict[object, threading.Event],
) -> None:
    clients = ClientProcesses()
    looks[LISTENING].set()
    clients.look(LISTENING, "1")

    assert await taken(clients, LISTENING, "1") == {"pid": 7}
    clients.look(LISTENING, "2")
    assert [clients.take(LISTENING, "2"), clients.take(SHORT, "1")] == [None, None]


async def test_of_very_many_connections_the_oldest_is_forgotten(
    looks: dict[object, threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "MAX_CLIENTS", 1)
    looks[LISTENING].set()
    looks[SHORT].set()
    clients = ClientProcesses()
    clients.look(LISTENING, "1")
    assert await taken(clients, LISTENING, "1") == {"pid": 7}
    clients.look(SHORT, "2")
    clients.look(LISTENING, "1")
    assert await taken(clients, LISTENING, "1") == {"pid": 7}


async def test_a_port_that_another_process_reuses_has_the_name_of_that_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pids = iter((7, 8))
    monkeypatch.setattr(
        streams_module, "clients_of", lambda addresses, _: {addresses[0]: {"pid": next(pids)}}
    )
    clients = ClientProcesses()

    for stream, pid in (("1", 7), ("2", 8)):
        address = ClientAddress(LISTENING)
        clients.look(address, stream)
        assert await taken(clients, address, stream) == {"pid": pid}


@pytest.mark.parametrize(
    ("location", "hint"),
    [
        (
            "http://up.example/mcp/?key=s3cret",
            (
                "http://up.example/mcp/?key=[redacted] without TLS; use --upstream "
                "https://up.example/mcp/?key=[redacted], or let the server trust X-Forwarded-Proto"
            ),
        ),
        (
            "http://other.example/mcp",
            "http://other.example/mcp; to record that: --upstream http://other.example/mcp",
        ),
    ],
)
def test_a_redirect_past_the_proxy_is_reported_with_the_next_step_once_per_origin(
    location: str, hint: str, capfd: pytest.CaptureFixture[str]
) -> None:
    upstream = read_upstream("https://up.example/mcp")
    assert upstream is not None
    context = ExchangeContext(upstream, None, None)  # type: ignore[arg-type]  # It neither records nor connects.
    for _ in range(2):
        target = location_at_proxy(location, upstream.origin, "http://127.0.0.1:8808")
        context.report_redirect(target, keeps_method=True)
    assert capfd.readouterr().err == f"mcpspy: https://up.example/mcp redirects past mcpspy to {hint}\n"
