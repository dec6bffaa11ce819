"""Columns and views of the user's files in the live page: the JSON API, and Chromium with hostile text."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mcpspy.ui.cli.main import main
from mcpspy.ui.views.extension import Extension
from tests.analysis.export.html.axe import violations
from tests.analysis.export.html.chromium import Page, chromium
from tests.ui.web.recordings import request, response, write, write_run
from tests.ui.web.serving import Served, served, wrong

in_chromium = pytest.mark.asyncio(loop_scope="module")

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e\u200b"

NASTY_SHOWN = r"</script><script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e\u200b"

SCRIPT = f"""
NASTY = {NASTY!r}

def column_size(exchange):
    return len(exchange.response_data or b"")

def column_nasty(exchange):
    return NASTY + exchange.arguments.get("text", "")

def column_bad(exchange):
    return 1 / 0

def view_nasty(content):
    if not content.text.startswith("nasty"):
        return None
    return [[(NASTY + content.text, "key")], [("red", "#ff0000 on #000000"), (" plain", "color:red;background:url(//x)")]]
"""

CSV = "city,degrees\nOslo,-3\nRome,17"


def content(at: float, number: int, *items: dict[str, object]) -> dict[str, object]:
    return {
        "t": at,
        "from": "server",
        "msg": {"jsonrpc": "2.0", "id": number, "result": {"content": list(items)}},
    }


def entries() -> list[dict[str, object]]:
    table: dict[str, object] = {"uri": "file:///weather.csv", "mimeType": "text/csv", "text": CSV}
    image: dict[str, object] = {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" + "A" * 2000}
    return [
        request(0.0, 1),
        content(
            0.1, 1, {"type": "text", "text": f"nasty {NASTY}"}, {"type": "resource", "resource": table}, image
        ),
        request(0.2, 2),
        response(0.3, 2, "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new"),
        {
            "t": 0.4,
            "from": "server",
            "msg": {"jsonrpc": "2.0", "method": "notifications/message", "params": {}},
        },
        request(0.5, 3),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with sessions, and `script/own.py`."""
    folder = tmp_path_factory.mktemp("sessions")
    write(folder / "own.jsonl", entries())
    write_run(folder, ["files", "memory"])
    (folder / "script").mkdir()
    (folder / "script" / "own.py").write_text(SCRIPT, encoding="utf-8")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(folder: Path) -> AsyncIterator[Served]:
    script = folder / "script" / "own.py"
    async with served(folder, extension=Extension([str(script)], shows_images=False)) as running:
        yield running


async def ready(server: Served, path: str, **parameters: str) -> Any:
    """Return an answer when its cells and views are ready."""
    async with asyncio.timeout(30):
        while True:
            found = await server.get(path, **parameters)
            if not found["waits"]:
                return found


@in_chromium
async def test_rows_have_a_cell_for_each_column_and_other_rows_have_none(server: Served) -> None:
    found = await ready(server, "s/own/rows")
    size, nasty, bad = found["cells"][0]

    assert int(size[0]) > 2000
    assert nasty[0].startswith("</script><script>alert(1)")
    assert "\\x1b[31m" in nasty[0]
    assert not set("\x1b\u202e\u200b") & set(nasty[0])
    assert bad == ["ZeroDivisionError: division by zero (line 11)", "issue"]
    kinds = [row["kind"] for row in found["rows"]]
    assert kinds == ["request", "request", "notification", "request"]
    assert [len(cells) for cells in found["cells"]] == [3, 3, 0, 3]
    assert found["cells"][3][0] == ["0", None]


@in_chromium
async def test_the_views_of_a_row_are_those_of_its_request_and_its_response(server: Served) -> None:
    found = await ready(server, "s/own/rows/1/views")

    assert list(found["views"]) == ["0", "1"]
    (nasty, table) = found["views"]["1"]
    assert nasty["pointer"] == "/result/content/0/text"
    assert nasty["lines"][1] == [["red", "#ff0000 on #000000"], [" plain", None]]
    assert not set("\x1b\u202e\u200b") & set(json.dumps(found, ensure_ascii=False))
    assert table["label"] == "file:///weather.csv · text/csv"
    assert [line[0][0] for line in table["lines"]] == ["city  degrees", "Oslo       -3", "Rome       17"]
    assert await server.status("/api/s/own/rows/99/views") == 404


@in_chromium
async def test_a_run_has_the_columns_too(server: Served) -> None:
    found = await ready(server, "s/run:last/rows", q="tool:*")

    assert len(found["cells"]) == len(found["rows"]) > 3
    assert all(int(cells[0][0]) > 0 for cells in found["cells"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(server: Served, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with chromium(tmp_path_factory.mktemp("profile")) as page:
        await page.open(f"{server.origin}/#{server.token}")
        await page.until("document.querySelector('a.listed')")
        yield page


VIEW = "document.querySelectorAll('#detail .view')"
OWN = "[...document.querySelectorAll('#tall .row .own')].map((each) => each.textContent)"


async def opened(browser: Page, server: Served, path: str) -> None:
    await browser.open("about:blank")
    await browser.open(server.origin + path)
    await browser.until(f"{VIEW}.length === 2 && {OWN}.length === 12 && !{OWN}.includes('…')")


@in_chromium
async def test_hostile_text_of_a_script_or_a_peer_is_shown_as_text(browser: Page, server: Served) -> None:
    await browser.look(1400)
    await opened(browser, server, "/s/own/1")

    texts = await browser.evaluate(f"[...{VIEW}].map((each) => each.textContent)")
    assert texts[0].count("<script>alert(1)</script>") == 2
    assert (
        await browser.evaluate("document.querySelectorAll('main :is(script, img, svg, iframe)').length") == 0
    )
    assert any("<img src=x" in cell for cell in await browser.evaluate(OWN))
    styled = f"getComputedStyle({VIEW}[0].children[1].children[0])"
    assert await browser.evaluate(f"[{styled}.color, {styled}.backgroundColor]") == [
        "rgb(255, 0, 0)",
        "rgb(0, 0, 0)",
    ]
    assert await browser.evaluate(f"{VIEW}[0].children[1].children[1].getAttribute('style')") is None
    assert wrong(browser) == []


@in_chromium
async def test_the_columns_have_headings_and_the_open_message_has_the_cells(
    browser: Page, server: Served
) -> None:
    await browser.look(1400)
    await opened(browser, server, "/s/own/1")

    headings = "[...document.querySelectorAll('#columns .own')].map((each) => each.textContent)"
    assert await browser.evaluate(headings) == ["size", "nasty", "bad"]
    assert "ZeroDivisionError" in await browser.evaluate(
        "document.querySelector('#detail .cells').textContent"
    )
    edges = "[...document.querySelectorAll(SELECTOR)].map((each) => Math.round(each.getBoundingClientRect().left))"
    heads = await browser.evaluate(edges.replace("SELECTOR", "'#columns .own'"))
    assert await browser.evaluate(edges.replace("SELECTOR", "'#tall .row:first-child .own'")) == heads
    await browser.press("j")
    await browser.until(f"{VIEW}.length === 1 && {VIEW}[0].textContent.includes('+new')")


HOLD_VIEWS = """(() => {
  const fetched = window.fetch;
  const released = new Promise((release) => { window.release = release; });
  window.held = 0;
  window.fetch = async (path, ...rest) => {
    if (!path.includes("/views")) return fetched(path, ...rest);
    window.held++;
    await released;
    const response = await fetched(path, ...rest);
    const found = await response.json();
    response.json = async () => {
      setTimeout(() => window.held--); // After all that awaits the answer.
      return found;
    };
    return response;
  };
})()"""


@in_chromium
async def test_views_that_arrive_after_their_message_was_closed_are_dropped(
    browser: Page, server: Served
) -> None:
    await opened(browser, server, "/s/own/1")
    await browser.evaluate(HOLD_VIEWS)
    await browser.press("j")
    await browser.until("window.held > 0")
    await browser.press("Escape")
    await browser.until("document.getElementById('detail').hidden")
    await browser.evaluate("window.release()")
    await browser.until("window.held === 0")
    await browser.press("k", "Enter")

    await browser.until(f"{VIEW}.length === 2")
    assert wrong(browser) == []


@in_chromium
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1400, "dark")])
async def test_axe_finds_nothing_in_columns_and_views(
    browser: Page, server: Served, width: int, scheme: str
) -> None:
    await browser.look(width, scheme=scheme)
    await opened(browser, server, "/s/own/1")

    assert await browser.evaluate("document.documentElement.scrollWidth") == width
    assert await violations(browser) == []
    assert (
        await browser.evaluate("document.querySelector('#detail .cells').getBoundingClientRect().height") > 10
    )


@in_chromium
async def test_a_view_is_reached_with_the_keyboard(browser: Page, server: Served) -> None:
    await browser.look(1400)
    await opened(browser, server, "/s/own/1")
    await browser.evaluate("document.querySelector('#detail .view').focus()")

    assert await browser.evaluate("document.activeElement.ariaLabel") == "View of /result/content/0/text"


@in_chromium
async def test_an_exported_page_has_the_columns_and_views_of_its_time(browser: Page, folder: Path) -> None:
    page = folder / "page.html"
    script = str(folder / "script" / "own.py")
    assert main(["export", str(folder / "own.jsonl"), "-o", str(page), "--script", script]) == 0
    await browser.look(1400)
    await browser.open("about:blank")
    await browser.open(f"{page.as_uri()}#1")
    await browser.until(f"{VIEW}.length === 2 && {OWN}.length === 12")

    texts = await browser.evaluate(f"[...{VIEW}].map((each) => each.textContent)")
    assert texts[0].count("<script>alert(1)</script>") == 2
    assert (
        await browser.evaluate(
            "document.querySelectorAll('main :is(script, img, iframe), #panes svg').length"
        )
        == 0
    )
    assert "ZeroDivisionError" in await browser.evaluate(
        "document.querySelector('#detail .cells').textContent"
    )
    assert await browser.evaluate(f"{OWN}.slice(-2)") == [
        NASTY_SHOWN + "hello 3",
        "ZeroDivisionError: division by zero (line 11)",
    ]
    assert await violations(browser) == []
    assert wrong(browser) == []


async def test_only_a_page_can_be_exported_with_a_script(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = str(folder / "script" / "own.py")

    assert main(["export", str(folder / "own.jsonl"), "--format", "csv", "--script", script]) == 2
    assert "--script: csv has no columns and views (use --format html)" in capsys.readouterr().err
