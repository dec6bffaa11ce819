"""Chromium, driven over the Chrome DevTools Protocol.

The browser comes with the peers (`@sparticuz/chromium`, x86-64 Linux); on other platforms an installed one is used.
It runs headless, without network, in its own profile.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

PEERS = Path(__file__).resolve().parents[4] / ".peers" / "chromium"

INSTALLED = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)

SECONDS = 30
"""Limit for every response; they normally arrive within milliseconds."""

OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--window-size=1280,800", "--remote-debugging-port=0"),
)

KEYS = {"Enter": (13, "\r"), "Escape": (27, ""), "Tab": (9, "")}


class Page:
    """One page of the browser."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, target: str) -> None:
        self._socket = socket
        self._session = ""
        self._target = target
        self._sent = 0
        self._received: list[dict[str, Any]] = []

    async def attach(self) -> None:
        """Subscribe to all events that may report a problem."""
        attached = await self.send("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            await self.send(f"{domain}.enable")
        await self.send("Page.setLifecycleEventsEnabled", enabled=True)

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; return its result."""
        self._sent += 1
        message: dict[str, Any] = {"id": self._sent, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        await self._socket.send_json(message)
        while (received := await self._next()).get("id") != self._sent:
            self._received.append(received)
        assert "error" not in received, (method, received["error"])
        result: dict[str, Any] = received["result"]
        return result

    async def open(self, url: str) -> None:
        """Load a page, and wait until its script has run; forget the problems of the previous page."""
        self._received.clear()
        loader = (await self.send("Page.navigate", url=url))["loaderId"]
        while not any(
            received.get("method") == "Page.lifecycleEvent"
            and (received["params"]["loaderId"], received["params"]["name"]) == (loader, "load")
            for received in self._received
        ):
            self._received.append(await self._next())

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; wait for a promise, fail on an exception."""
        done = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until an expression is true, frame by frame; return its value."""
        return await asyncio.wait_for(
            self.evaluate(
                "new Promise((done) => { const look = () => { const found = "
                f"{expression}; if (found) done(found); else requestAnimationFrame(look); }}; look(); }})"
            ),
            SECONDS,
        )

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            code, text = KEYS.get(key, (0, key if len(key) == 1 else ""))
            about = {"key": key, "windowsVirtualKeyCode": code, "text": text}
            await self.send("Input.dispatchKeyEvent", type="keyDown", **about)
            await self.send("Input.dispatchKeyEvent", type="keyUp", **about)

    async def write(self, text: str) -> None:
        """Insert text into the focused element."""
        await self.send("Input.insertText", text=text)

    async def look(self, width: int, height: int = 800, scheme: str = "light") -> None:
        """Set the size of the window and the colour scheme of the system."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        await self.send(
            "Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    def wrong(self) -> list[str]:
        """Return problems since the page was opened: exceptions, console messages, blocked or failed requests."""
        bad = ("Runtime.exceptionThrown", "Log.entryAdded", "Network.loadingFailed", "Audits.issueAdded")
        return [
            json.dumps(received)
            for received in self._received
            if received.get("method") in bad
            or (
                received.get("method") == "Runtime.consoleAPICalled" and received["params"]["type"] == "error"
            )
        ]

    def requested(self) -> list[str]:
        """Return every address that was requested since then."""
        return [
            received["params"]["request"]["url"]
            for received in self._received
            if received.get("method") == "Network.requestWillBeSent"
        ]

    async def _next(self) -> dict[str, Any]:
        received: dict[str, Any] = await asyncio.wait_for(self._socket.receive_json(), SECONDS)
        return received


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Page]:
    """Start a browser whose profile is in a folder; yield its page."""
    program, environment = _program()
    process = await asyncio.create_subprocess_exec(
        program,
        *OPTIONS,
        f"--user-data-dir={folder}",
        "about:blank",
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **environment},
    )
    try:
        async with aiohttp.ClientSession() as client:
            address = await asyncio.wait_for(_address(process), SECONDS)
            async with client.ws_connect(address, max_msg_size=0) as socket:
                targets = Page(socket, "")
                made = await targets.send("Target.createTarget", url="about:blank")
                page = Page(socket, made["targetId"])
                await page.attach()
                yield page
    finally:
        process.terminate()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    """Return the address on which it listens, which is in the first lines of its output."""
    assert process.stderr is not None
    output = b""
    while line := await process.stderr.readline():
        if found := re.search(rb"ws://\S+", line):
            return found[0].decode()
        output += line
    pytest.fail(f"Chromium did not start: {output.decode()}", pytrace=False)


def _program() -> tuple[str, dict[str, str]]:
    """Return the browser, and the environment variables that it needs."""
    if sys.platform == "linux" and platform.machine() == "x86_64":
        if not (PEERS / "chromium").exists():
            pytest.fail("the peers are not installed: run make peers", pytrace=False)
        brought = {"LD_LIBRARY_PATH": str(PEERS / "lib"), "FONTCONFIG_FILE": str(PEERS / "fonts.conf")}
        return str(PEERS / "chromium"), brought
    for name in INSTALLED:
        if (found := shutil.which(name)) is not None:
            return found, {}
    pytest.fail("no Chromium or Chrome is installed", pytrace=False)
