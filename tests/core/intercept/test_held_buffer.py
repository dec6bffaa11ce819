"""Buffer of held and delayed messages."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept import held as module
from mcpspy.core.intercept.held import HoldBuffer, InFlightMessage


def flight(ticket: int, size: int = 10) -> InFlightMessage:
    return InFlightMessage(ticket, 0.0, "client", b"x" * size, stream=None, exchange=None, parts=[])


def test_messages_are_iterated_in_the_order_of_their_tickets() -> None:
    buffer = HoldBuffer()
    for ticket in (3, 1, 2):
        assert buffer.add(flight(ticket))

    assert [each.ticket for each in buffer] == [1, 2, 3]


def test_it_counts_its_memory() -> None:
    buffer = HoldBuffer()
    one, two = flight(1), flight(2, 30)
    buffer.add(one)
    buffer.add(two)
    buffer.remove(one)
    buffer.remove(one)

    assert (buffer.bytes, len(buffer)) == (30, 1)
    assert (buffer.get(1), buffer.get(2)) == (None, two)


def test_it_is_full_by_bytes_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 25)
    monkeypatch.setattr(module, "MAX_MESSAGES", 3)
    buffer = HoldBuffer()

    assert [buffer.add(flight(n, size)) for n, size in enumerate((10, 20, 10, 1, 1))] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert buffer.bytes == 21
