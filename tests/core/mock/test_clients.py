"""Identification of the client of a request without a session."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.core.mock.clients import ClientRegistry


def sender(registry: ClientRegistry[object], name: str, id: str, connection: object = None) -> object:  # noqa: A002
    """Return the client that sent a request; register a new one if none is known."""
    client = registry.find(name, id, connection)
    if client is None:
        client = object()
        registry.add(client, name, id, connection)
    return client


def test_a_client_with_increasing_ids_is_recognised_on_another_connection() -> None:
    registry: ClientRegistry[object] = ClientRegistry()
    first = sender(registry, "c", "1", "a")
    assert [sender(registry, "c", "2", "b"), sender(registry, "c", "3", "a")] == [first, first]


def test_a_repeated_id_comes_from_a_new_client() -> None:
    registry: ClientRegistry[object] = ClientRegistry()
    first = sender(registry, "c", "1", "a")
    second = sender(registry, "c", "1", "a")
    assert second != first
    assert sender(registry, "c", "2", "a") == second


def test_another_name_is_another_client() -> None:
    registry: ClientRegistry[object] = ClientRegistry()
    assert sender(registry, "c", "1") != sender(registry, "d", "2")


def test_a_client_on_the_same_connection_takes_precedence() -> None:
    registry: ClientRegistry[object] = ClientRegistry()
    clients = [sender(registry, "c", "1", place) for place in range(64)]
    for number in range(2, 10):
        assert [sender(registry, "c", str(number), place) for place in range(64)] == clients


def test_without_a_connection_the_client_that_used_the_previous_id_matches() -> None:
    registry: ClientRegistry[object] = ClientRegistry()
    first, second = sender(registry, "c", "1", "a"), sender(registry, "c", "1", "b")
    sender(registry, "c", "2", "a")
    assert sender(registry, "c", "3", "new") == first
    assert sender(registry, "c", "2", "newer") == second


def test_a_probe_comes_from_a_new_client() -> None:
    registry: ClientRegistry[object] = ClientRegistry()
    sender(registry, "c", "5", "a")
    assert registry.find("c", "6", "a", is_new=True) is None


def test_the_least_recently_seen_client_is_forgotten_first() -> None:
    registry: ClientRegistry[int] = ClientRegistry(most=2)
    registry.add(1, "a", "1", None)
    registry.add(2, "b", "1", None)
    assert registry.find("a", "2", None) == 1
    assert registry.add(3, "c", "1", None) == [2]
    assert registry.find("b", "2", None) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.sampled_from([1, 2, None]))))
def test_no_client_sends_an_id_twice(said: list[tuple[str, int, int | None]]) -> None:
    registry: ClientRegistry[list[str]] = ClientRegistry()
    for name, id, connection in said:  # noqa: A001
        client = registry.find(name, str(id), connection)
        if client is None:
            client = [name]
            registry.add(client, name, str(id), connection)
        assert client[0] == name
        assert str(id) not in client[1:]
        client.append(str(id))
