"""The first handshake is timed, and all of them are counted."""

from __future__ import annotations

import pytest

from mcpspy.analysis.stats import collector
from mcpspy.analysis.stats.collector import Handshakes
from tests.analysis.stats.talking import Talk


def test_a_handshake_lasts_from_its_request_to_its_response() -> None:
    first = Talk().hello(1.0, 0.25).hello(5.0, 3.0).stats().handshakes.first

    assert first is not None
    assert (first.method, first.at, first.took, first.ready) == ("initialize", 1.25, 0.25, 1.25)


def test_a_second_handshake_of_a_server_is_used() -> None:
    stats = (
        Talk()
        .hello()
        .ask(1, 2.0, "initialize", {"clientInfo": {"name": "other", "version": ""}})
        .answer(1, 3.0, {"serverInfo": {"name": "new"}, "protocolVersion": "2025-06-18"})
        .stats()
    )

    assert (str(stats.client), str(stats.server), stats.revision) == ("other", "new", "2025-06-18")
    assert (stats.handshakes.count, stats.handshakes.clients) == (2, {"host 1": 1, "other": 1})


def test_a_refused_probe_is_not_a_handshake() -> None:
    talk = Talk().ask(9, 0.1, "server/discover", {}).answer(9, 0.2, code=-32601).hello(1.0, 0.5)

    handshakes = talk.stats().handshakes

    assert handshakes.count == 1
    assert handshakes.first is not None
    assert handshakes.first.method == "initialize"
    assert handshakes.first_answer == 0.2


def test_another_client_is_not_the_one_that_is_ready() -> None:
    handshakes = Handshakes()
    handshakes.answered("initialize", 1.0, 0.5, "1")
    handshakes.set_ready(2.0, "2")
    assert handshakes.first is not None
    assert handshakes.first.ready is None


def test_clients_beyond_the_limit_are_not_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "MOST", 1)
    handshakes = Handshakes()
    for name in ("a", "b", "a"):
        handshakes.count_client(name)

    assert handshakes.clients == {"a": 2}
