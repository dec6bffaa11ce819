"""A folder of generated recordings, and settings apart from the user's own."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from mcpspy.io.lake.files import Lake
from tests.io.lake.lakes import filled, folder_of, generated, summaries

if TYPE_CHECKING:
    from pathlib import Path

    from mcpspy.io.recording.reader import Summary


@pytest.fixture(autouse=True)
def _settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture(scope="session")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve sessions of four servers with some 600 messages."""
    folder = tmp_path_factory.mktemp("recordings")
    generated(folder, 12, 600)
    return folder


@pytest.fixture(scope="session")
def whole(recordings: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of these recordings, by one process. Not to be changed."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        return folder_of(filled(folder / "lake", summaries(recordings))[0])


@pytest.fixture
def lake(whole: Path, tmp_path: Path) -> Lake:
    """A copy of the lake, with the same times: its files are known to it."""
    return Lake(shutil.copytree(whole, tmp_path / "lake"))


@pytest.fixture
def found(recordings: Path) -> list[Summary]:
    return summaries(recordings)
