"""The preview of apps: it is off, and a hostile page in it reaches nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from mcpspy.core.protocol.extensions.ui import MEDIA_TYPE
from mcpspy.ui.web.preview import OFF, SCRIPTS, STATIC
from tests.analysis.export.html.chromium import chromium
from tests.ui.web.recordings import write
from tests.ui.web.serving import served

URI = "ui://a/b"

HOSTILE = """<!DOCTYPE html><html><head><title>t</title><base href="http://127.0.0.1:%(port)d/">
<link rel="stylesheet" href="http://127.0.0.1:%(port)d/css"><meta http-equiv="refresh" content="1; url=http://127.0.0.1:%(port)d/refresh">
</head><body><p>shown</p><img src="http://127.0.0.1:%(port)d/img"><iframe src="http://127.0.0.1:%(port)d/frame"></iframe>
<form action="http://127.0.0.1:%(port)d/form" method="post"><input name="a" value="b"></form>
<script>
const to = "http://127.0.0.1:%(port)d/";
document.querySelector("p").textContent = "ran in " + origin;
for (const act of [
  () => fetch(to + "fetch", { mode: "no-cors" }),
  () => fetch("/api/sessions"),
  () => navigator.sendBeacon(to + "beacon", "x"),
  () => new WebSocket("ws://127.0.0.1:%(port)d/socket"),
  () => new EventSource(to + "events"),
  () => import(to + "module.js"),
  () => document.forms[0].submit(),
  () => open(to + "open"),
  () => { top.location = to + "top"; },
  () => { parent.document.body.textContent = "taken"; },
  () => { new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:%(port)d" }] }); document.querySelector("p").textContent = "rtc"; },
  () => { document.querySelector("p").append(", cookie " + document.cookie); },
  () => { setTimeout(() => { location = to + "self"; }, 200); },
]) try { Promise.resolve(act()).catch(() => {}); } catch {}
</script></body></html>"""


def recording(folder: Path, html: str, media: str = MEDIA_TYPE) -> None:
    messages = [
        ("client", {"id": 1, "method": "resources/read", "params": {"uri": URI}}),
        ("server", {"id": 1, "result": {"contents": [{"uri": URI, "mimeType": media, "text": html}]}}),
    ]
    write(folder / "app.jsonl", [
        {"t": float(number), "from": side, "msg": {"jsonrpc": "2.0", **message}}
        for number, (side, message) in enumerate(messages)
    ])  # fmt: skip


async def test_without_the_option_no_page_is_served_and_none_may_be_framed(tmp_path: Path) -> None:
    recording(tmp_path, "<p>x</p>")
    async with served(tmp_path) as server:
        assert await server.status("/api/s/app/rows/1/app") == 403
        assert (await server.get("s/app/rows/1"))["row"]["method"] == "resources/read"


async def test_only_the_page_of_an_app_is_served(tmp_path: Path) -> None:
    recording(tmp_path, "<p>x</p>", "text/html")
    async with served(tmp_path, preview=STATIC) as server:
        assert await server.status("/api/s/app/rows/1/app") == 404


async def test_a_page_is_not_served_without_the_cookie(tmp_path: Path) -> None:
    recording(tmp_path, "<p>x</p>")
    async with served(tmp_path, preview=STATIC, is_signed_in=False) as server:
        assert await server.status("/api/s/app/rows/1/app") == 401


@pytest.mark.timeout(120)
@pytest.mark.parametrize("preview", [STATIC, SCRIPTS])
async def test_a_hostile_page_is_shown_and_reaches_neither_the_network_nor_the_page_of_mcpspy(
    tmp_path: Path, preview: str
) -> None:
    assert preview != OFF
    reached: list[bytes] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            reached.append(await reader.read(200))
        writer.close()

    listener = await asyncio.start_server(note, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    (tmp_path / "sessions").mkdir()
    recording(tmp_path / "sessions", HOSTILE % {"port": port})
    async with (
        listener,
        served(tmp_path / "sessions", preview=preview) as server,
        chromium(tmp_path / "profile") as browser,
    ):
        await browser.open(f"{server.origin}/#{server.token}")
        await browser.until("document.querySelector('a.listed')")
        await browser.open(f"{server.origin}/s/app/1")
        await browser.until("document.querySelector('details.preview')")
        await browser.evaluate("document.querySelector('details.preview').open = true")
        await browser.until("document.querySelector('.preview iframe')")
        # The frame has another origin: what it shows is read from the browser, not from the page.
        await browser.evaluate("new Promise((done) => setTimeout(done, 2500))")
        assert await browser.evaluate("document.querySelector('.preview iframe').contentDocument") is None
        assert await browser.evaluate("document.body.innerText.includes('taken')") is False
        assert await browser.evaluate("location.pathname") == "/s/app/1"
        shot = await browser.send("Page.captureScreenshot", format="png")
        (tmp_path / "shot.b64").write_text(shot["data"], encoding="utf-8")
    assert reached == []
