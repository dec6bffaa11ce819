"""What is held or delayed, within limits."""

from __future__ import annotations

import pytest

from mcpspy.core.intercept import held as module
from mcpspy.core.intercept.held import HoldBuffer, InFlightMessage


def letter(ticket: int, size: int = 10) -> InFlightMessage:
    return InFlightMessage(ticket, 0.0, "client", b"x" * size, stream=None, lane=None, parts=[])


def test_letters_come_in_the_order_of_their_tickets() -> None:
    room = HoldBuffer()
    for ticket in (3, 1, 2):
        assert room.take_in(letter(ticket))

    assert [each.ticket for each in room] == [1, 2, 3]


def test_it_knows_what_it_keeps_in_memory() -> None:
    room = HoldBuffer()
    one, two = letter(1), letter(2, 30)
    room.take_in(one)
    room.take_in(two)
    room.let_out(one)
    room.let_out(one)

    assert (room.bytes, len(room)) == (30, 1)
    assert (room.get(1), room.get(2)) == (None, two)


def test_it_is_full_by_bytes_and_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 25)
    monkeypatch.setattr(module, "MOST_LETTERS", 3)
    room = HoldBuffer()

    assert [room.take_in(letter(n, size)) for n, size in enumerate((10, 20, 10, 1, 1))] == [
        True,
        False,
        True,
        True,
        False,
    ]
    assert room.bytes == 21
