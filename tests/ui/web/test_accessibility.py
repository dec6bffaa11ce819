"""Every view of the live page for people who use a screen reader or only the keyboard: axe, focus, narrow and wide."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from shutil import copy

import pytest
import pytest_asyncio

from tests.analysis.export.html.axe import violations
from tests.analysis.export.html.chromium import Page, chromium
from tests.ui.web.recordings import RECORDINGS, request, response, write, write_run
from tests.ui.web.serving import Served, served, wrong

in_chromium = pytest.mark.asyncio(loop_scope="module")

LIST, ROWS, REPORT = "a.listed", "#tall .method", "#report :is(h2, details)"

VIEWS = {
    "/": LIST,
    "/?q=errors%3Ex": "#found.bad",
    "/runs": LIST,
    "/s/b5d36025": ROWS,
    "/s/b5d36025/31?q=tool:*": "#detail .body",
    "/s/b5d36025?q=tool:(": "#found.bad",
    "/s/b5d36025?view=stats": REPORT,
    "/s/b5d36025?view=capabilities": REPORT,
    "/s/b5d36025?view=findings": REPORT,
    "/s/b5d36025?view=explain": REPORT,
    "/s/b5d36025?view=timeline": ".track svg",
    "/s/b5d36025?view=context": REPORT,
    "/s/b5d36025?view=diff&with=6471b16b": REPORT,
    "/r/last": ROWS,
    "/r/last/40": "#detail .body",
    "/r/last?view=stats": REPORT,
    "/r/last?view=timeline": ".track svg",
    "/r/last?view=context": REPORT,
}
"""Address → element that shows that the view is ready."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("sessions")
    for name in ("everything-sdk-auto", "everything-sdk-legacy"):
        copy(RECORDINGS / f"{name}.jsonl", folder)
    write_run(folder, ["files", "memory"])
    write(folder / "other.jsonl", [request(0.0, 1), response(0.1, 1)])
    async with served(folder) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(server: Served, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with chromium(tmp_path_factory.mktemp("profile")) as page:
        await page.open(f"{server.origin}/#{server.token}")
        await page.until(f"document.querySelectorAll({LIST!r}).length === 5")
        yield page


async def opened(browser: Page, server: Served, path: str) -> None:
    await browser.open("about:blank")
    await browser.open(server.origin + path)
    known = (
        "&& /./.test(document.title.replace('mcpspy', ''))"
        if path[1:2] in ("s", "r") and path[2] == "/"
        else ""
    )
    await browser.until(f"document.querySelector({VIEWS[path]!r}) {known}")


@in_chromium
@pytest.mark.parametrize(("width", "scheme"), [*product((360, 1400), ("light", "dark"))])
async def test_axe_finds_nothing_in_any_view(browser: Page, server: Served, width: int, scheme: str) -> None:
    await browser.look(width, scheme=scheme)
    found = {}
    for path in VIEWS:
        await opened(browser, server, path)
        assert await browser.evaluate("document.documentElement.scrollWidth") == width, path
        if problems := await violations(browser):
            found[path] = problems
    await browser.press("?")
    await browser.until("document.getElementById('keys').open")
    if problems := await violations(browser):
        found["keys"] = problems

    lines = [f"{path}: {problem}" for path, problems in found.items() for problem in problems]
    assert not lines, "\n".join(lines)


FOCUS = "(() => { const on = document.activeElement; return [on === document.body ? '(none)' : on.id || on.dataset.key || on.textContent, on.matches(':focus-visible')]; })()"


async def tabbed(browser: Page, count: int) -> list[tuple[str, bool]]:
    """Press Tab `count` times; return what had the focus, and whether that was visible."""
    found = []
    for _ in range(count):
        await browser.press("Tab")
        found.append(tuple(await browser.evaluate(FOCUS)))
    return found


@in_chromium
async def test_a_run_is_opened_and_read_with_the_keyboard_alone(browser: Page, server: Served) -> None:
    await browser.look(1280)
    await browser.open("about:blank")
    await browser.open(server.origin)
    await browser.until("document.activeElement.matches('a.listed')")
    await browser.press("2")
    await browser.until("document.activeElement.matches('#runs a.listed')")
    assert await browser.evaluate("location.pathname") == "/runs"
    await browser.press("Enter")
    await browser.until(f"document.querySelector({ROWS!r}) && document.querySelector('#tall .track')")
    servers = "[...new Set([...document.querySelectorAll('#tall .track')].map((each) => each.textContent))]"
    assert await browser.evaluate(servers) == ["files", "memory"]

    await browser.press("/")
    await browser.write("stream:memory method:tools/call")
    await browser.until(
        f"{servers}.join() === 'memory' && /of/.test(document.getElementById('found').textContent)"
    )
    await browser.press("Enter", "j", "Enter")
    await browser.until("document.activeElement.id === 'detail'")
    address = await browser.evaluate("location.pathname + location.search")
    title = await browser.evaluate("document.querySelector('#detail h2').textContent")

    await browser.open("about:blank")
    await browser.open(server.origin + address)
    await browser.until("document.querySelector('#detail h2')")
    assert address.startswith("/r/")
    assert address.endswith("?q=stream%3Amemory+method%3Atools%2Fcall")
    assert await browser.evaluate("document.querySelector('#detail h2').textContent") == title
    await browser.press("Escape", "Escape")
    await browser.until("location.pathname === '/runs' && document.querySelector('#runs a.listed')")
    assert wrong(browser) == []


@in_chromium
async def test_the_timeline_is_read_zoomed_and_left_with_the_keyboard_alone(
    browser: Page, server: Served
) -> None:
    await browser.look(1280)
    await opened(browser, server, "/r/last?view=timeline")
    await browser.until("document.querySelectorAll('figure.track').length === 2")
    says = "document.querySelector('#overtime output').textContent"
    await browser.evaluate("document.querySelector('.plots').focus()")
    assert "requests" in await browser.evaluate(says)
    await browser.press("ArrowRight", "ArrowRight")
    chosen = await browser.evaluate(says)
    assert chosen.startswith("#")
    await browser.press("+", "+")
    await browser.until("/[?&]t=/.test(location.search)")
    span = "location.search.match(/t=([0-9.e-]+)_([0-9.e-]+)/)?.slice(1).map(Number)"
    begin, end = await browser.evaluate(span)
    whole = (await server.get("s/run:last/timeline", parts=10))["whole"]
    assert begin >= 0
    assert end <= whole
    assert end - begin < whole / 1.9
    await browser.press("0")
    await browser.until("!/[?&]t=/.test(location.search)")
    await browser.until(f"{says}.startsWith('#') || /requests/.test({says})")
    await browser.press("Home", "Enter")
    await browser.until("document.querySelector('#detail .body')")
    assert await browser.evaluate("document.querySelector('#detail h2').textContent.trim()") == "initialize"
    assert wrong(browser) == []


@in_chromium
async def test_a_click_on_the_timeline_opens_a_request_and_a_drag_zooms(
    browser: Page, server: Served
) -> None:
    await browser.look(1280)
    await opened(browser, server, "/s/b5d36025?view=timeline")
    await browser.until("document.querySelector('.track .tone-ok')")
    box = await browser.evaluate("document.querySelector('.track svg').getBoundingClientRect().toJSON()")

    async def mouse(kind: str, share: float, down: float) -> None:
        await browser.send(
            "Input.dispatchMouseEvent", type=kind, x=box["x"] + box["width"] * share, y=box["y"] + down,
            button="left", clickCount=1,
        )  # fmt: skip

    await mouse("mouseMoved", 0.001, 99)
    await browser.until("!document.querySelector('.hint').hidden")
    assert "server/discover" in await browser.evaluate("document.querySelector('.hint').textContent")
    for kind, share in (("mousePressed", 0.5), ("mouseMoved", 0.6), ("mouseReleased", 0.75)):
        await mouse(kind, share, 20)
    await browser.until("/[?&]t=/.test(location.search)")
    await browser.press("0")
    await browser.evaluate("document.querySelector('.tools button:last-of-type').click()")
    await browser.until("!/[?&]t=/.test(location.search)")
    await browser.until("document.querySelector('#overtime output').textContent.startsWith('0.000')")
    for kind in ("mousePressed", "mouseReleased"):
        await mouse(kind, 0.001, 99)
    await browser.until("document.querySelector('#detail .body')")
    assert "server/discover" in await browser.evaluate("document.querySelector('#detail h2').textContent")


@in_chromium
async def test_tab_reaches_every_part_of_the_page_and_shows_where_it_is(
    browser: Page, server: Served
) -> None:
    await browser.look(1280)
    await opened(browser, server, "/s/b5d36025/31?q=tool:*")
    await browser.until("document.querySelector('#detail .body')")
    await browser.evaluate("document.activeElement.blur()")
    found = await tabbed(browser, 40)

    reached = {name for name, _ in found}
    assert reached >= {"skip", "home", "theme", "help", "Timeline", "Context cost", "query", "errors", "rows"}
    assert {"Close", "Copy"} <= reached
    assert [name for name, is_visible in found if not is_visible and name != "(none)"] == []
