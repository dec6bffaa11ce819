"""Heads that a connection remembers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.exchange.heads import MAX_KNOWN, MAX_KNOWN_HEAD, KnownHeads

HEAD = b"POST /mcp HTTP/1.1\r\nContent-Length: 2\r\n\r\n"


def test_an_equal_head_is_known_whatever_its_body() -> None:
    known: KnownHeads[str] = KnownHeads()
    known.add(HEAD + b"{}", "head", 2)

    assert known.split(HEAD + b"[]") == ("head", b"[]")


@given(st.integers(0, len(HEAD) + 1), st.binary(max_size=9))
def test_no_other_packet_is_taken_for_a_known_message(at: int, more: bytes) -> None:
    known: KnownHeads[str] = KnownHeads()
    known.add(HEAD + b"{}", "head", 2)
    packet = (HEAD + b"{}")[:at] + more

    is_whole = packet.startswith(HEAD) and len(packet) == len(HEAD) + 2
    assert (known.split(packet) is not None) is is_whole


def test_a_packet_with_more_or_less_than_the_message_is_not_remembered() -> None:
    known: KnownHeads[str] = KnownHeads()
    for packet in (HEAD, HEAD + b"{", HEAD + b"{}{", HEAD[:-2]):
        known.add(packet, "head", 2)

    assert known.split(HEAD + b"{}") is None


def test_a_connection_remembers_a_bounded_number_of_heads_of_bounded_size() -> None:
    known: KnownHeads[int] = KnownHeads()
    packets = [b"GET /%d HTTP/1.1\r\n\r\n" % number for number in range(10 * MAX_KNOWN)]
    for number, packet in enumerate(packets):
        known.add(packet, number, 0)
    long = b"GET / HTTP/1.1\r\nA: " + b"a" * MAX_KNOWN_HEAD + b"\r\n\r\n"
    known.add(long, -1, 0)

    assert 0 < sum(known.split(packet) is not None for packet in packets) <= MAX_KNOWN
    assert known.split(packets[-1]) == (len(packets) - 1, b"")
    assert known.split(long) is None
