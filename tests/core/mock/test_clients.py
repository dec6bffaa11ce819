"""Which client a request without a session is from."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.mock.clients import Guests


def who(guests: Guests[object], name: str, id: str, connection: object = None) -> object:  # noqa: A002
    """Return who sends a request, somebody new if nobody who is known does."""
    guest = guests.find(name, id, connection)
    if guest is None:
        guest = object()
        guests.add(guest, name, id, connection)
    return guest


def test_a_client_that_goes_on_counting_is_the_same_on_another_connection() -> None:
    guests: Guests[object] = Guests()
    first = who(guests, "c", "1", "a")
    assert [who(guests, "c", "2", "b"), who(guests, "c", "3", "a")] == [first, first]


def test_an_id_that_comes_again_is_somebody_new() -> None:
    guests: Guests[object] = Guests()
    first = who(guests, "c", "1", "a")
    second = who(guests, "c", "1", "a")
    assert second != first
    assert who(guests, "c", "2", "a") == second


def test_another_name_is_another_client() -> None:
    guests: Guests[object] = Guests()
    assert who(guests, "c", "1") != who(guests, "d", "2")


def test_of_many_the_one_on_the_connection_is_meant_first() -> None:
    guests: Guests[object] = Guests()
    clients = [who(guests, "c", "1", place) for place in range(64)]
    for number in range(2, 10):
        assert [who(guests, "c", str(number), place) for place in range(64)] == clients


def test_else_the_one_who_used_the_id_before() -> None:
    guests: Guests[object] = Guests()
    first, second = who(guests, "c", "1", "a"), who(guests, "c", "1", "b")
    who(guests, "c", "2", "a")
    assert who(guests, "c", "3", "new") == first
    assert who(guests, "c", "2", "newer") == second


def test_a_probe_says_that_somebody_is_new() -> None:
    guests: Guests[object] = Guests()
    who(guests, "c", "5", "a")
    assert guests.find("c", "6", "a", is_new=True) is None


def test_who_was_heard_longest_ago_is_forgotten_first() -> None:
    guests: Guests[int] = Guests(most=2)
    guests.add(1, "a", "1", None)
    guests.add(2, "b", "1", None)
    assert guests.find("a", "2", None) == 1
    assert guests.add(3, "c", "1", None) == [2]
    assert guests.find("b", "2", None) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.sampled_from([1, 2, None]))))
def test_nobody_sends_an_id_twice(said: list[tuple[str, int, int | None]]) -> None:
    guests: Guests[list[str]] = Guests()
    for name, id, connection in said:  # noqa: A001
        guest = guests.find(name, str(id), connection)
        if guest is None:
            guest = [name]
            guests.add(guest, name, str(id), connection)
        assert guest[0] == name
        assert str(id) not in guest[1:]
        guest.append(str(id))
