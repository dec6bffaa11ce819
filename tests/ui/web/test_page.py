"""The live page in Chromium: lists, filters, links, keys, and what other pages cannot do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from shutil import copy

import pytest
import pytest_asyncio
from aiohttp import web

from mcpspy.io.recording.writer import Writer
from mcpspy.ui.web.access import Access
from tests.analysis.export.html.axe import violations
from tests.analysis.export.html.chromium import Page, chromium
from tests.ui.web.recordings import RECORDINGS, failure, line, request, response, write
from tests.ui.web.serving import Served, served, wrong

in_chromium = pytest.mark.asyncio(loop_scope="module")

NASTY = (
    """</script><script>alert(1)</script><img src=x onerror=alert(2)> "'` javascript:alert(3) \u202e\u2028"""
)

MANY = 30_000
"""Exchanges of a long session."""


def hostile() -> list[dict[str, object]]:
    """Return entries with hostile text everywhere."""
    error = {"code": 1, "message": NASTY, "data": {NASTY: NASTY}}
    tool = {"name": NASTY, "title": NASTY, "description": NASTY, "inputSchema": {"type": NASTY}}
    info = {"name": NASTY, "version": NASTY}
    answer = {
        "serverInfo": info,
        "instructions": NASTY,
        "capabilities": {NASTY: {}},
        "protocolVersion": NASTY,
    }
    messages: list[tuple[str, object]] = [
        (
            "client",
            {"id": 0, "method": "initialize", "params": {"clientInfo": info, "protocolVersion": NASTY}},
        ),
        ("server", {"id": 0, "result": answer}),
        ("client", {"id": 1, "method": "tools/list"}),
        ("server", {"id": 1, "result": {"tools": [tool]}}),
        ("client", {"id": 2, "method": "tools/call", "params": {"name": NASTY, "arguments": {NASTY: NASTY}}}),
        ("server", {"id": 2, "error": error}),
        ("server", {"method": NASTY, "params": {NASTY: [NASTY]}}),
        ("server", {"id": NASTY, "result": {}}),
    ]
    entries: list[dict[str, object]] = [
        {"t": float(number), "from": side, "msg": {"jsonrpc": "2.0", **message}}  # type: ignore[dict-item]
        for number, (side, message) in enumerate(messages)
    ]
    return [
        *entries,
        {"t": 8.0, "note": "stderr", "text": NASTY},
        {"t": 9.0, "note": NASTY, "text": NASTY},
        {"t": 9.5, "note": "exit", "code": None, "signal": NASTY},
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("sessions")
    for name in ("everything-sdk-auto", "everything-sdk-legacy", "peer-sdk-modern"):
        copy(RECORDINGS / f"{name}.jsonl", folder)
    write(folder / "hostile.jsonl", hostile(), name=NASTY, command=[NASTY], id=NASTY, cwd=NASTY)
    exchanges = (
        entry
        for number in range(MANY)
        for entry in (
            request(number / 100, number, ("echo", "forecast")[number % 2]),
            failure(number / 100 + 0.001, number)
            if number % 1000 == 7
            else response(number / 100 + 0.001, number),
        )
    )
    write(folder / "long.jsonl", list(exchanges))
    async with served(folder) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(server: Served, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    """A browser that is signed in."""
    async with chromium(tmp_path_factory.mktemp("profile")) as page:
        await page.open(f"{server.origin}/#{server.token}")
        await page.until("document.querySelectorAll('a.listed').length === 5")
        yield page


async def opened(browser: Page, server: Served, path: str, ready: str = "#tall .method") -> None:
    """Open a place, and wait until an element is there."""
    await browser.open("about:blank")
    await browser.open(server.origin + path)
    await browser.until(f"document.querySelector({ready!r}) && !/^mcpspy$/.test(document.title)")


TEXT = "document.getElementById({!r}).textContent"


@in_chromium
async def test_the_token_disappears_from_the_address(browser: Page, server: Served) -> None:
    await browser.open("about:blank")
    await browser.open(f"{server.origin}/#{server.token}")
    await browser.until("document.querySelectorAll('a.listed').length === 5")

    assert await browser.evaluate("location.href") == f"{server.origin}/"
    assert await browser.evaluate("document.cookie") == ""


@in_chromium
async def test_sessions_are_filtered_and_opened_by_keys(browser: Page, server: Served) -> None:
    await browser.open(server.origin)
    await browser.until("document.activeElement.matches('a.listed')")
    await browser.press("/")
    await browser.write("name:everything*auto")
    await browser.until("document.querySelectorAll('a.listed').length === 1")
    await browser.press("Enter")
    await browser.until("document.activeElement.matches('a.listed')")
    await browser.press("Enter")
    await browser.until("document.querySelector('#tall .method')")

    assert await browser.evaluate("location.pathname") == "/s/b5d36025"
    assert "49 rows" in await browser.evaluate(TEXT.format("found"))
    assert wrong(browser) == []


@in_chromium
async def test_a_filter_is_in_the_link_and_the_link_restores_row_and_filter(
    browser: Page, server: Served
) -> None:
    await opened(browser, server, "/s/b5d36025")
    await browser.press("/")
    await browser.write("tool:get-sum")
    await browser.until(f"/^2 of 49 rows/.test({TEXT.format('found')})")
    await browser.press("Enter", "j", "Enter")
    await browser.until("document.querySelector('#detail .body')")
    address = await browser.evaluate("location.href")
    shown = await browser.evaluate("document.querySelector('#detail').textContent")

    await browser.open("about:blank")
    await browser.open(address)
    await browser.until(
        "document.querySelector('#detail .body') && document.querySelector('[aria-selected=true]')"
    )
    assert address == f"{server.origin}/s/b5d36025/72?q=tool%3Aget-sum"
    assert '"two"' in shown
    await browser.until("document.querySelector('[aria-selected=true]')?.dataset.place === '1'")
    assert await browser.evaluate("document.getElementById('query').value") == "tool:get-sum"


@in_chromium
async def test_an_invalid_filter_is_explained_and_changes_nothing(browser: Page, server: Served) -> None:
    await opened(browser, server, "/s/b5d36025")
    await browser.press("/")
    await browser.write("tool:(")
    await browser.until("document.getElementById('query').ariaInvalid === 'true'")

    assert "tool:" in await browser.evaluate(TEXT.format("found"))
    await browser.until("document.querySelectorAll('#tall .method').length > 10")


@in_chromium
async def test_e_goes_to_the_next_error_of_a_long_session_of_which_few_rows_are_kept(
    browser: Page, server: Served
) -> None:
    await opened(browser, server, "/s/long")
    await browser.until(f"/^30,000 rows/.test({TEXT.format('found')})")
    for place in ("7", "1007"):
        await browser.press("e")
        await browser.until(f"document.querySelector('[aria-selected=true]')?.dataset.place === '{place}'")
    await browser.press("G")
    await browser.until("document.querySelector('[aria-selected=true] .subject')?.textContent === 'forecast'")

    await browser.until("document.querySelector('[aria-selected=true]')?.ariaPosInSet === '30000'")
    assert await browser.evaluate("document.querySelectorAll('#tall .row').length") < 80
    assert len(browser.requested()) < 60


@in_chromium
async def test_a_list_that_is_taller_than_an_element_can_be_scrolls_to_its_end(
    browser: Page, server: Served
) -> None:
    await opened(browser, server, "/s/long")
    await browser.until(f"/^30,000 rows/.test({TEXT.format('found')})")
    await browser.evaluate("document.getElementById('rows').style.setProperty('--row', '1000px')")
    await browser.look(1001)  # The list measures its rows.
    await browser.until("document.getElementById('tall').clientHeight === 15_000_000")
    await browser.press("G")
    await browser.until("document.querySelector('[aria-selected=true]')?.ariaPosInSet === '30000'")

    inside = """(() => { const box = document.getElementById('rows').getBoundingClientRect();
        const row = document.querySelector('[aria-selected=true]').getBoundingClientRect();
        return Math.abs(row.bottom - box.bottom); })()"""
    assert await browser.evaluate(inside) < 2


VIEWS = {
    "stats": "requests in flight over time",
    "capabilities": "Tools (",
    "findings": "DATA706",
    "explain": "the arguments do not fit",
    "diff&with=6471b16b": "resources/read",
    "diff&old=23&new=72": "row 72",
}
"""Report → text in it."""


@in_chromium
async def test_the_reports_of_a_session_are_shown_at_every_width(browser: Page, server: Served) -> None:
    for (view, text), width in product(VIEWS.items(), (360, 1400)):
        await browser.look(width)
        await opened(browser, server, f"/s/b5d36025?view={view}", "#report h2, #report details")
        assert text in await browser.evaluate(TEXT.format("report"))
        assert await browser.evaluate("document.documentElement.scrollWidth") == width, view
        assert wrong(browser) == []


@in_chromium
async def test_the_head_names_the_first_cause_of_a_session_that_failed(browser: Page, server: Served) -> None:
    await opened(browser, server, "/s/b5d36025", ".cause dd")
    assert "simulate-research-query" in await browser.evaluate(TEXT.format("facts"))

    await opened(browser, server, "/s/b5d36025?view=explain", "#report details a")
    await browser.evaluate("document.querySelector('#report details a').click()")
    await browser.until("document.querySelector('#detail .body')")
    assert "simulate-research-query" in await browser.evaluate(TEXT.format("detail"))


@in_chromium
async def test_hostile_text_is_shown_and_never_interpreted(browser: Page, server: Served) -> None:
    for width, scheme in ((360, "light"), (1400, "dark")):
        await browser.look(width, scheme=scheme)
        await browser.open(server.origin)
        await browser.until("document.querySelectorAll('a.listed').length === 5")
        assert "alert(1)" in await browser.evaluate(TEXT.format("sessions"))
        for view in (
            "",
            *(
                f"?view={name}"
                for name in ("stats", "capabilities", "findings", "explain", "timeline", "context")
            ),
        ):
            ready = "#report :is(h2, details), #tall .method, .track svg"
            await opened(browser, server, f"/s/hostile{view}", ready)
            if not view:
                for _ in range(9):
                    await browser.press("j", "Enter")
                await browser.until("document.querySelector('#detail .body')")
            assert "\u202e" not in await browser.evaluate("document.body.innerText")
            assert await browser.evaluate("document.documentElement.scrollWidth") == width
            assert wrong(browser) == []
            assert all(each.startswith(server.origin) for each in browser.requested())


ATTACK = """(async () => {
  const target = %r;
  const tried = [];
  const attempt = async (name, work) => tried.push([name, await work().catch((error) => error.name)]);
  for (const mode of ["cors", "no-cors"]) {
    await attempt(mode, async () => (await (await fetch(`${target}/api/sessions`, { mode, credentials: "include" })).text()));
    await attempt(`post ${mode}`, async () => (await (await fetch(`${target}/api/login`, { mode, method: "POST", body: "x", credentials: "include" })).text()));
  }
  const loads = (element, address) => new Promise((done) => {
    element.onload = () => done("loaded");
    element.onerror = () => done("");
    element.src = address;
    document.body.append(element);
  });
  for (const path of ["sessions", "runs", "s/run:last/rows"]) {
    await attempt(`script ${path}`, () => loads(document.createElement("script"), `${target}/api/${path}`));
  }
  await attempt("websocket", () => new Promise((done) => {
    const socket = new WebSocket(`${target.replace("http", "ws")}/api/events`);
    socket.onmessage = (event) => done(event.data);
    socket.onopen = () => done("opened");
    socket.onerror = () => done("");
  }));
  await attempt("events", () => new Promise((done) => {
    const source = new EventSource(`${target}/api/events`, { withCredentials: true });
    source.onmessage = (event) => done(event.data);
    source.onerror = () => done("");
  }));
  const frame = document.createElement("iframe");
  await attempt("frame", async () => {
    await loads(frame, `${target}/`);
    return frame.contentDocument?.body.textContent ?? "";
  });
  return tried;
})()"""


@in_chromium
async def test_a_page_of_another_origin_gets_no_data_from_a_browser_that_is_signed_in(
    browser: Page, server: Served
) -> None:
    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<!DOCTYPE html><title>other</title>", content_type="text/html")

    application = web.Application()
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        for host in ("127.0.0.1", "localhost"):
            await browser.open(f"http://{host}:{port}/")
            tried = await browser.evaluate(ATTACK % server.origin)
            assert [(name, got) for name, got in tried if got not in ("", "TypeError")] == []
    finally:
        await runner.cleanup()
    await browser.open(server.origin)
    await browser.until("document.querySelectorAll('a.listed').length === 5")


@in_chromium
async def test_a_browser_without_the_cookie_asks_for_the_address(
    server: Served, tmp_path: Path, browser: Page
) -> None:
    write(tmp_path / "one.jsonl", [request(0.0, 1), response(0.1, 1)])
    async with served(tmp_path) as other:
        await browser.open(f"{other.origin}/s/one/1")
        await browser.until("document.getElementById('login').open")
        assert await violations(browser) == []
        await browser.evaluate(f"document.getElementById('token').value = '{other.origin}/#{other.token}'")
        await browser.evaluate("document.querySelector('#login button').click()")
        await browser.until("document.querySelector('#detail .body')")
        await browser.until("document.querySelectorAll('#tall .method').length === 1")


@in_chromium
async def test_the_page_reconnects_and_shows_what_it_missed(browser: Page, tmp_path: Path) -> None:
    access = Access()
    path = write(tmp_path / "one.jsonl", [request(0.0, 1), response(0.1, 1)])
    async with served(tmp_path, access=access) as first:
        port = int(first.origin.rpartition(":")[2])
        await browser.open(f"{first.origin}/s/one#{access.token}")
        await browser.until(f"{TEXT.format('found')} === '1 row'")
    await browser.until("!document.getElementById('connection').hidden")
    write(path, [request(0.0, 1), response(0.1, 1), request(0.2, 2)])
    async with served(tmp_path, access=access, port=port):
        await browser.until(f"{TEXT.format('found')} === '2 rows'")

        await browser.until("document.getElementById('connection').hidden")


@in_chromium
async def test_the_focus_stays_in_a_message_that_is_answered_meanwhile(browser: Page, tmp_path: Path) -> None:
    header = {"transport": "stdio", "command": ["server"], "name": "live"}
    writer = Writer(str(tmp_path), None, header, say=print)
    try:
        writer.write([line(request(0.0, 1))])
        async with served(tmp_path) as live:
            await browser.open(f"{live.origin}/s/{Path(writer.path).stem}/1#{live.token}")
            await browser.until(
                "document.querySelector('#detail .body') && document.querySelector('#tall .method')"
            )
            await browser.evaluate("document.querySelector('#detail .body').focus()")
            writer.write([line(response(0.1, 1))])
            await browser.until("document.querySelectorAll('#detail .body').length === 2")

            assert await browser.evaluate("document.activeElement.ariaLabel") == "Request, body"
    finally:
        writer.close()


@in_chromium
async def test_the_filter_line_completes_fields_and_values(browser: Page, server: Served) -> None:
    terms = "[...document.querySelectorAll('#terms li')].map((each) => each.textContent).join(' ')"
    await opened(browser, server, "/s/b5d36025")
    await browser.press("/")
    await browser.write("-too")
    await browser.until(f"{terms} === '-tool:'")
    await browser.press("Tab")
    await browser.until(f"{terms}.startsWith('-tool:') && {terms}.includes('tool:echo')")
    assert await browser.evaluate("document.getElementById('query').value") == "-tool:"
    await browser.write("ec")
    await browser.until(f"{terms} === '-tool:echo'")
    await browser.press("Tab")

    assert await browser.evaluate("document.getElementById('query').value") == "-tool:echo"
    assert await browser.evaluate("document.activeElement.id") == "query"
    assert await browser.evaluate("document.getElementById('terms').hidden") is True


@in_chromium
async def test_the_error_of_a_filter_leaves_the_line_its_width(browser: Page, server: Served) -> None:
    """The error is long, and must not shrink the line to the width of its padding."""
    await opened(browser, server, "/s/b5d36025")
    await browser.press("/")
    await browser.write("nofield:x")
    await browser.until("document.getElementById('query').ariaInvalid === 'true'")

    assert await browser.evaluate("document.getElementById('query').getBoundingClientRect().width") > 150
