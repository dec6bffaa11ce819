"""The assignment of exchanges to sessions."""

from __future__ import annotations

import pytest

from mcpspy.io.http import context as streams_module
from mcpspy.io.http.context import SessionScopes


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
