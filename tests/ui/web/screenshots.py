"""Make the screenshots of docs/web.md.

python tests/ui/web/screenshots.py
"""

from __future__ import annotations

import asyncio
import shlex
import shutil
import sys
import tempfile
from base64 import b64decode
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.analysis.export.html.chromium import chromium  # noqa: E402 - It is in this folder.
from tests.ui.model.replaying import command, echoes, record  # noqa: E402
from tests.ui.tui.screenshots import save_call  # noqa: E402
from tests.ui.web.recordings import write_run  # noqa: E402
from tests.ui.web.serving import served  # noqa: E402

SHOTS = {
    "web": ("light", "/s/b5d36025/31", "#detail .body"),
    "web-stats": ("dark", "/s/b5d36025?view=stats", "#report h2"),
    "web-run": ("light", "/r/last?view=timeline", "figure.track svg"),
}
"""Name → colour scheme, place in the page, and the element that shows that it is ready."""


async def main() -> None:
    folder = ROOT / "docs" / "screenshots"
    with tempfile.TemporaryDirectory() as profile:
        copied = Path(profile) / "sessions"
        shutil.copytree(ROOT / "recordings", copied, ignore=shutil.ignore_patterns("*.py", "*.md"))
        write_run(copied)
        async with served(copied) as server, chromium(Path(profile) / "profile") as browser:
            await browser.open(f"{server.origin}/#{server.token}")
            await browser.until("document.querySelector('a.listed')")
            for name, (scheme, place, ready) in SHOTS.items():
                await browser.look(1280, 720, scheme)
                await browser.open(server.origin + place)
                await browser.until(
                    f"document.querySelector({ready!r}) && /(84|140) messages/.test(document.body.innerText)"
                    " && (document.querySelector('[aria-selected=true]') || location.search)"
                )
                shot = await browser.send("Page.captureScreenshot", format="png")
                (folder / f"{name}.png").write_bytes(b64decode(shot["data"]))
        (Path(profile) / "replayed").mkdir()
        replayed = await _replay(Path(profile) / "replayed", Path(profile) / "profile-2")
        (folder / "web-replay.png").write_bytes(replayed)
        (folder / "web-call.png").write_bytes(
            await _call(Path(profile) / "called", Path(profile) / "profile-3")
        )


async def _replay(sessions: Path, profile: Path) -> bytes:
    """Return the screenshot of a replay with a breaking change."""
    await record(sessions / "echo.jsonl", *echoes("one", "two", "three"))
    async with served(sessions, allows_control=True) as server, chromium(profile) as browser:
        await browser.look(1280, 720, "light")
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("document.querySelector('a.listed')")
        await browser.open(f"{server.origin}/s/echo")
        await browser.until("document.querySelector('#play button') && document.querySelector('.row')")
        await server.post("s/echo/play", {"order": "replay", "server": shlex.join(command("breaking"))})
        await browser.until("/Replay ended/.test(document.body.innerText)")
        await browser.until("document.querySelectorAll('#play td.bad').length")
        await browser.evaluate("document.getElementById('target').textContent = 'node server.js'")
        shot = await browser.send("Page.captureScreenshot", format="png")
        return b64decode(shot["data"])


async def _call(folder: Path, profile: Path) -> bytes:
    """Return the screenshot of the form of a call."""
    sessions = folder / "sessions"
    sessions.mkdir(parents=True)
    save_call(folder)  # It changes the current folder: this is the last picture.
    async with served(sessions, allows_control=True) as server, chromium(profile) as browser:
        await browser.look(1280, 720, "light")
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("!document.getElementById('calls').hidden")
        await browser.press("(")
        await browser.until("/hotel/.test(document.querySelector('#call[open]')?.innerText)")
        await browser.evaluate("document.querySelector('#call .foot button').click()")
        await browser.until("document.querySelector('#call input')")
        shot = await browser.send("Page.captureScreenshot", format="png")
        return b64decode(shot["data"])


if __name__ == "__main__":
    asyncio.run(main())
