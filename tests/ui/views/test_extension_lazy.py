"""Results that are computed in a thread: late, failed, too slow."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest

from mcpspy.ui.views import extension as module
from mcpspy.ui.views.extension import Failed, LazyResults

SECONDS = 20.0


def results() -> LazyResults:
    return LazyResults(lambda _, error: str(error))


def test_a_result_is_computed_once() -> None:
    calls: list[int] = []

    def double(number: int) -> int:
        calls.append(number)
        return number * 2

    lazily = results()

    assert lazily.get("a", double, lambda: 21, SECONDS) == 42
    assert lazily.get("a", double, lambda: pytest.fail("not needed")) == 42
    assert calls == [21]


def test_a_slow_result_is_reported_when_it_is_there_and_the_last_request_comes_first() -> None:
    may_end, is_done = threading.Event(), threading.Event()
    order: list[str] = []

    def work(name: str) -> str:
        may_end.wait(SECONDS)
        order.append(name)
        return name

    lazily = results()
    lazily.on_result = lambda: is_done.set() if len(order) == 3 else None

    assert [lazily.get(name, work, partial(str, name)) for name in "abc"] == [None, None, None]
    may_end.set()
    assert is_done.wait(SECONDS)
    assert order == ["a", "c", "b"]
    assert lazily.get("b", work, str) == "b"


def test_an_exception_is_a_result() -> None:
    def fail(_: Any) -> None:
        raise ValueError("wrong")

    assert results().get("a", fail, str, SECONDS) == Failed("wrong")


def test_a_function_that_never_returns_is_not_called_again_and_others_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LIMIT", 0.1)
    never = threading.Event()
    lazily = results()

    def wait(_: Any) -> bool:
        return never.wait(SECONDS)

    assert lazily.get("a", wait, str, SECONDS) == Failed("not done after 0.1 s; not called again")
    assert isinstance(lazily.get("b", wait, str), Failed)
    assert lazily.get("c", str.upper, lambda: "c", SECONDS) == "C"
    never.set()


def test_of_many_requests_the_first_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING", 2)
    may_end, is_done = threading.Event(), threading.Event()
    order: list[str] = []

    def work(name: str) -> str:
        may_end.wait(SECONDS)
        order.append(name)
        return name

    lazily = results()
    lazily.on_result = lambda: is_done.set() if len(order) == 3 else None
    for name in "abcd":
        assert lazily.get(name, work, partial(str, name)) is None
    may_end.set()
    assert is_done.wait(SECONDS)
    assert order == ["a", "d", "c"]
    assert lazily.get("b", work, lambda: "b", SECONDS) == "b"


def test_results_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    lazily = results()
    for number in range(9):
        assert lazily.get(number, lambda given: given, partial(int, number), SECONDS) == number
    assert len(lazily._results) <= 3
