"""Shared fixtures for tests of a mock over HTTP."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcpspy.io.network.listener.GRACE", 0.01)
