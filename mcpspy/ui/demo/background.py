"""The demo, recorded behind a screen that has the terminal.

Owns starting `mcpspy demo --plain` so that neither of the two sees the
terminal, and that it is not left behind. What the demo does is its own.
"""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE

from mcpspy.core.sanitize import sanitize_bytes

PATIENCE = 60.0
"""Seconds for all of it; its own bound is shorter."""


async def record(folder: str) -> str:
    """Record the demo into a folder; return what went wrong, in one inert line, or nothing."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mcpspy", "demo", "--plain", "--dir", folder),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            _, said = await process.communicate()
    except TimeoutError:
        return f"it took more than {PATIENCE:.0f} s"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    lines = said.split(b"\n")
    told = next((line for line in reversed(lines) if line.strip()), b"")
    return "" if process.returncode == 0 else sanitize_bytes(told) or f"exit {process.returncode}"
