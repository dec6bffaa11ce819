"""A message on its way, with what has been decided about it."""

from __future__ import annotations

from mcpspy.core.intercept.judge import Judge
from mcpspy.core.intercept.letter import Letter, Part
from mcpspy.core.message import read_frame
from mcpspy.core.record import Frame
from tests.core.intercept.desks import call, rules

BATCH = b"[" + call(1, "a") + b" , " + call(2, "b") + b"]"


def letter(data: bytes, *flags: str) -> Letter:
    judge = Judge(rules(*flags))
    parts = [
        Part(message, None, judge.verdict(message, None))
        for message in read_frame(Frame(0.0, "client", data))
    ]
    return Letter(1, 0.0, "client", data, stream=None, lane=None, parts=parts)


def test_what_nobody_touches_goes_on_as_it_came() -> None:
    assert letter(BATCH).outgoing() is None
    assert letter(call(1, "a")).outgoing() is None


def test_a_part_of_a_batch_may_be_left_out_or_changed() -> None:
    assert letter(BATCH, "tool:a => drop").outgoing() == b"[" + call(2, "b") + b"]"
    changed = letter(BATCH, "tool:b => replace /params = 1").outgoing()
    assert changed == b"[" + call(1, "a") + b',{"jsonrpc":"2.0","id":2,"method":"tools/call","params":1}]'


def test_a_batch_waits_for_its_slowest_part_and_ends_with_any() -> None:
    both = letter(BATCH, "tool:a => delay 1s", "tool:b => delay 3s", "tool:b => disconnect")

    assert both.delay == 3
    assert both.is_disconnected
    assert both.is_kept_back


def test_nothing_of_it_goes_on_if_all_is_left_out() -> None:
    assert letter(BATCH, " => drop").is_kept_back
    assert not letter(BATCH, "tool:a => drop").is_kept_back


def test_what_a_viewer_made_of_it_counts_for_more_than_rules() -> None:
    half = letter(call(1, "a"), "tool:a => corrupt half-line")
    assert half.is_cut
    half.edited = b"{}"

    assert half.outgoing() == b"{}"
    assert not half.is_cut


def test_its_size_is_what_it_keeps_in_memory() -> None:
    assert letter(BATCH).size == len(BATCH)
    assert letter(call(1, "a"), " => corrupt oversize 1mb").size == (1 << 20) + len(call(1, "a"))
