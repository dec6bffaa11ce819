"""Changes of watched files: those that count, and those that do not."""

from __future__ import annotations

import asyncio
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from mcpspy.errors import CannotStart, UsageError
from mcpspy.io import extras
from mcpspy.io.watch.files import FileWatcher, not_ignored

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


async def changes(
    watcher: FileWatcher, change: Callable[[], Awaitable[None]], recording: str | None = None
) -> list[str]:
    """Return the files of the first report, while `change` is repeated until there is one."""
    found: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

    def report(files: list[str]) -> None:
        if not found.done():
            found.set_result(files)

    watching = asyncio.ensure_future(watcher.watch(report, recording))
    either: list[asyncio.Future[Any]] = [found, watching]
    try:
        async with asyncio.timeout(20):
            while not found.done():
                await change()
                await asyncio.wait(either, timeout=0.2, return_when=asyncio.FIRST_COMPLETED)
                assert not watching.done(), watching.result()
            return found.result()
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def test_a_file_that_an_editor_replaces_is_still_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "server.py"
    file.write_text("1", encoding="utf-8")
    (tmp_path / "other.py").write_text("1", encoding="utf-8")

    async def replace() -> None:
        new = tmp_path / "new"
        new.write_text("2", encoding="utf-8")
        (tmp_path / "other.py").write_text("2", encoding="utf-8")
        os.replace(new, file)

    assert await changes(FileWatcher([str(file)]), replace) == ["server.py"]


async def test_the_recording_and_caches_in_a_watched_folder_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "__pycache__").mkdir()

    async def change() -> None:
        names = (
            "session.jsonl",
            "session.part2.jsonl",
            ".mcpspy-index-session.bin",
            "__pycache__/a.pyc",
            "server.py",
        )
        for name in names:
            (tmp_path / name).write_text("", encoding="utf-8")

    watcher = FileWatcher([str(tmp_path)])
    assert await changes(watcher, change, str(tmp_path / "session.jsonl")) == ["server.py"]


def test_files_that_git_ignores_do_not_count(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.log\nbuild/\n", encoding="utf-8")
    names = ["a.py", "a.log", "build/out.js", "gone/b.py"]
    paths = [str(tmp_path / name) for name in names]
    assert not_ignored(paths) == [paths[0], paths[3]]


def test_without_a_repository_every_file_counts(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.log")]
    assert not_ignored(paths) == paths


def test_without_git_every_file_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    paths = [str(tmp_path / "a.py")]
    assert not_ignored(paths) == paths


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone: no such file or folder"):
        FileWatcher([str(tmp_path / "gone")])


def test_without_watchfiles_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(CannotStart, match="--watch needs watchfiles") as raised:
        FileWatcher([str(tmp_path)])
    assert "[watch]" in raised.value.hint
