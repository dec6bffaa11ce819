"""A recording of the server that may change, for the tests of `mcpspy replay`."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.io.changing import record

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded") / "changing.jsonl")


@pytest.fixture
def recorded(made: Path, tmp_path: Path) -> Path:
    path = tmp_path / "changing.jsonl"
    shutil.copy(made, path)
    return path
