"""The proxy runs on uvloop where that is installed, and on asyncio elsewhere: some tests use both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module

import pytest

BOTH = ("test_exchange.py", "test_interception.py")


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    factories: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}
    if item.path.name in BOTH:
        factories["uvloop"] = import_module("uvloop").new_event_loop
    return factories
