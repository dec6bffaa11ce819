"""A pytest plugin for the tests of the Python SDK: each stdio server of its client runs behind `mcpspy run`.

MCPSPY is the path of mcpspy, MCPSPY_DIR the folder of the sessions.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import anyio
import mcp.client.stdio as client


async def _open_process(command: list[str], **options: Any) -> Any:
    run = [os.environ["MCPSPY"], "run", "--dir", os.environ["MCPSPY_DIR"], "--"]
    return await anyio.open_process([*run, *command], **options)


# Only the client's own look-up changes: tests also start processes that are not servers.
_anyio = ModuleType("anyio")
_anyio.__dict__.update(vars(anyio), open_process=_open_process)
client.anyio = _anyio  # type: ignore[attr-defined]
