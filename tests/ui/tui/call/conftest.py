"""A live session, and folders without the user's hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ui.tui.intercept import conftest

reached = conftest.reached


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
