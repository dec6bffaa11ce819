"""An event loop whose time passes only while nothing is due, and a temporary folder, for fuzz targets."""

from __future__ import annotations

import asyncio
import atexit
import selectors
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any


class VirtualTime(selectors.SelectSelector):
    """Waits for no socket: lets the time of its loop pass instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        assert timeout is not None, "nothing is due, and nothing will be"
        self.now += timeout
        return []


@cache
def virtual_loop() -> asyncio.SelectorEventLoop:
    selector = VirtualTime()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    return loop


@cache
def temporary_folder() -> Path:
    """Return a folder that is deleted at the end."""
    folder = mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
