"""A session in the browser while a real client of the SDK calls a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from tests.analysis.export.html.chromium import chromium
from tests.ui.web.serving import served

if TYPE_CHECKING:
    from tests.e2e.conftest import Peers

FOUND = "document.getElementById('found').textContent"


async def test_rows_appear_while_a_client_calls(peers: Peers, tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    async with served(folder) as server, chromium(tmp_path / "profile") as browser:
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until(f"{FOUND} === '0 sessions'")
        client = asyncio.create_task(
            peers.play(
                "sdk.py --script everything --mode legacy",
                *("mcpspy", "run", "--dir", str(folder), "--", "mcp-server-everything", "stdio"),
            )
        )
        await browser.until("document.querySelectorAll('a.listed').length === 1")
        await browser.evaluate("document.querySelector('a.listed').click()")
        await browser.until("document.querySelectorAll('#tall .method').length > 3")
        played = await client
        await browser.until("document.getElementById('ending').textContent.startsWith('exit')")

        (session,) = (await server.get("sessions"))["sessions"]
        rows = await server.get(f"s/{session['key']}/rows")
        await browser.until(f"{FOUND} === '{rows['total']} rows'")
        await browser.press("q")
        await browser.until("document.querySelector('a.listed .state')?.textContent === 'ended'")
        assert played.code == 0
        assert rows["total"] > 30
