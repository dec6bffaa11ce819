"""Fixtures of the tests of telemetry: a receiver of OTLP, and recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.otlp_receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of mcpspy."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("MCPSPY_TELEMETRY", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "state" / "mcpspy" / "telemetry"
