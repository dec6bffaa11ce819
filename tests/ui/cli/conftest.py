"""A recording of the server that may change, for the tests of `mcpspy replay`, and runs of mcpspy in forks."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.io.changing import record
from tests.ui.cli.forking import Forking

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("recorded") / "changing.jsonl")


@pytest.fixture
def recorded(made: Path, tmp_path: Path) -> Path:
    path = tmp_path / "changing.jsonl"
    shutil.copy(made, path)
    return path


@pytest.fixture(scope="session")
def forking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forking]:
    """Run the process whose forks are runs of mcpspy: starting Python and importing take some 0.3 s of CPU time."""
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("forking.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:  # Closes its stdin at the end and waits for it.
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield Forking(process, tmp_path_factory.mktemp("forking"))
