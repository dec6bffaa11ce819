"""Changes of watched files, by watchfiles: without what git ignores, and without the usual junk."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from mcpspy.errors import UsageError
from mcpspy.io.extras import require

DEBOUNCE, STEP = 400, 50
"""Milliseconds for which changes are collected at most, and without a change after which they are reported: an editor
writes a file in several steps, and a branch of git changes many."""

MOST = 20
"""Changed files that a note names."""


class FileWatcher:
    def __init__(self, paths: Sequence[str]) -> None:
        """Check the paths. Raise UsageError for one that does not exist, CannotStart without watchfiles."""
        require("watchfiles", "--watch", "watch")
        for path in paths:
            if not path or not os.path.exists(path):
                raise UsageError(f"--watch {path}: no such file or folder", "name one that exists")
        found = [os.path.realpath(path) for path in paths]
        self._folders = [path for path in found if os.path.isdir(path)]
        self._files = frozenset(found).difference(self._folders)

    async def watch(self, changed: Callable[[list[str]], object], recording: str | None = None) -> None:
        """Call `changed` with the changed files, relative to the working folder, until cancelled.

        Changes of `recording`, of its further parts, and of the recordings and caches beside it do not count: they may
        be in a watched folder.
        """
        folder = _folder(recording)

        async def report(found: set[str]) -> None:
            own = {path for path in found if os.path.dirname(path) == folder and _is_own(path)}
            if kept := await asyncio.to_thread(not_ignored, sorted(found - own)):
                changed([_shown(path) for path in kept[:MOST]])

        async with asyncio.TaskGroup() as tasks:
            if self._folders:
                tasks.create_task(_watch(self._folders, report, recursive=True))
            if self._files:
                # An editor that replaces a file leaves a watch of the file itself with the old one.
                parents = sorted({os.path.dirname(path) for path in self._files})
                tasks.create_task(_watch(parents, report, recursive=False, only=self._files))

    async def restart(
        self,
        restart: Callable[[dict[str, Any]], object],
        recording: str | None,
        report: Callable[[str], None],
    ) -> None:
        """Call `restart` with the fields of the note when files change, until cancelled.

        A failure, such as too many files, ends no session: `report` gets one line.
        """
        try:
            await self.watch(lambda files: restart({"files": files}), recording)
        except* Exception as group:
            report(f"files are no longer watched: {group.exceptions[0]}; use mcpspy restart")


async def _watch(
    folders: Sequence[str],
    report: Callable[[set[str]], Awaitable[None]],
    *,
    recursive: bool,
    only: frozenset[str] = frozenset(),
) -> None:
    from watchfiles import DefaultFilter, awatch

    async for changes in awatch(
        *folders,
        watch_filter=None if only else DefaultFilter(),
        debounce=DEBOUNCE,
        step=STEP,
        recursive=recursive,
    ):
        found = {path for _, path in changes}
        if found := found & only if only else found:
            await report(found)


def not_ignored(paths: Sequence[str]) -> list[str]:
    """Return the paths that git does not ignore; all of them without git, or without a repository.

    git itself is asked, because its rules come from many files: `.gitignore` of each folder, `.git/info/exclude`, and
    the user's own.
    """
    kept: list[str] = []
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        by_folder.setdefault(_existing_folder(path), []).append(path)
    for folder, inside in by_folder.items():
        ignored = _ignored(folder, inside)
        kept += [path for path in inside if path not in ignored]
    return kept


def _ignored(folder: str, paths: Sequence[str]) -> set[str]:
    try:
        found = subprocess.run(
            ["git", "-C", folder, "check-ignore", "-z", "--stdin"],
            input="\0".join(paths).encode("utf-8", "surrogateescape"),
            capture_output=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return set()
    return set(found.stdout.decode("utf-8", "surrogateescape").split("\0")) - {""}


def _existing_folder(path: str) -> str:
    """Return the folder of a path, or the nearest one above it: the path may have been deleted."""
    folder = Path(path).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return str(folder)


def _folder(recording: str | None) -> str | None:
    return os.path.dirname(os.path.realpath(recording)) if recording else None


def _is_own(path: str) -> bool:
    name = os.path.basename(path)
    return name.endswith(".jsonl") or name.startswith(".mcpspy-")


def _shown(path: str) -> str:
    try:
        relative = os.path.relpath(path)
    except ValueError:  # Another drive of Windows.
        return path
    return path if relative.startswith("..") else relative
