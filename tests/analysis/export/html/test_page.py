"""The page in Chromium: text of a peer is never interpreted."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator
from hashlib import sha256
from html.parser import HTMLParser
from itertools import product
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.json import format as lay_out

from mcpspy.analysis.export import FORMATS, RecordedSession
from mcpspy.analysis.export.html import page as page_module
from mcpspy.analysis.export.html.page import SCRIPTS, export
from tests.analysis.export.html.axe import violations
from tests.analysis.export.html.chromium import Page, chromium
from tests.analysis.export.sessions import (
    EVERY,
    HEADER,
    call,
    client,
    failure,
    note,
    recorded,
    result,
    server,
    session_of,
)

in_chromium = pytest.mark.asyncio(loop_scope="module")

PARTS = Path(page_module.__file__).parent

NASTY = """</script><script>alert(1)</script><!-- <img src=x onerror=alert(2)> "'`&lt; $style ${x} \u202e\u2028\u2029"""


class Reader(HTMLParser):
    """A page as a parser sees it: its elements, and the texts of scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, str]] = []
        self.texts: dict[str, list[str]] = {"script": [], "style": [], "title": []}
        self.policy = ""
        self._inside = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((tag, " ".join(given)))
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag in self.texts:
            self._inside = tag
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag == self._inside else self._inside

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.texts[self._inside][-1] += data

    def handle_comment(self, data: str) -> None:
        self.elements.append(("!--", data))


def made(session: RecordedSession) -> str:
    return "".join(export(session))


def nasty(text: str = NASTY) -> RecordedSession:
    """Return a session with hostile text everywhere."""
    quoted = json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
    header = structs.replace(
        HEADER, name=text, command=[text], cwd=text, started=text, id=text, transport=text, redacted=True
    )
    initialize = b"""{"jsonrpc":"2.0","id":"%b","method":"initialize","params":{"protocolVersion":"%b",
        "clientInfo":{"name":"%b","version":"%b"}}}""" % (quoted, quoted, quoted, quoted)
    return session_of(
        client(0, initialize),
        call(1, 2, name=quoted),
        failure(2, 2, text=quoted),
        client(3, b'{"jsonrpc":"2.0","id":3,"method":"%b"}' % quoted),
        server(4, b'{"jsonrpc":"2.0","method":"%b","params":{"%b":["%b"]}}' % (quoted, quoted, quoted)),
        server(5, text.encode("utf-8", "surrogatepass")),
        note(6, "stderr", text=text),
        note(7, "http", http=1, method=text, path=text, error=text, stream=text),
        note(8, text, **{text: text}),
        note(9, "exit", code=None, signal=text),
        header=header,
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Page]:
    async with chromium(tmp_path_factory.mktemp("profile")) as page:
        yield page


async def opened(browser: Page, folder: Path, session: RecordedSession, anchor: str = "") -> str:
    """Open the page of a session in the browser; return its address."""
    path = folder / "page.html"
    path.write_text(made(session), encoding="utf-8", newline="\n")
    await browser.open("about:blank")  # Else an address that differs only by its hash loads nothing.
    await browser.open(path.as_uri() + anchor)
    await browser.until("/row/.test(document.getElementById('found').textContent)")
    # The page removes what it announced after 2.5 s, which a busy browser may not show in time.
    await browser.evaluate(
        "globalThis.announced = []; new MutationObserver(([change]) => announced.push(change.target.textContent))"
        ".observe(document.getElementById('announcement'), { childList: true })"
    )
    return path.as_uri()


async def rows(browser: Page, count: int, of: int | None = None) -> list[str]:
    """Wait until `count` rows are found (of `of`, with a search or filter); return those in view."""
    words = f"{count:,} of {of:,} row" if of is not None else f"{count:,} row"
    await browser.until(f"document.getElementById('found').textContent.startsWith('{words}')")
    found: list[str] = await browser.evaluate(
        "[...document.querySelectorAll('#tall .row')].map((row) => row.textContent)"
    )
    return found


def test_only_this_style_and_this_script_may_run() -> None:
    read = Reader(made(nasty()))

    def digest(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    (style,), script = read.texts["style"], read.texts["script"][-1]
    assert read.policy.split("; ") == [
        "default-src 'none'",
        f"script-src {digest(script)}",
        f"style-src {digest(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
    ]


def test_the_page_names_no_address() -> None:
    for name in ("page.html", "page.css", *SCRIPTS):
        assert not re.search(r"https?:|//\w+\.|url\(|@import", (PARTS / name).read_text(encoding="utf-8")), (
            name
        )


def test_every_part_is_in_the_page() -> None:
    assert {path.name for path in PARTS.iterdir() if path.suffix in (".js", ".css", ".html")} == {
        "page.html",
        "page.css",
        *SCRIPTS,
    }


TEXTS = st.lists(
    st.sampled_from(["</script>", "<script>", "<!--", "-->", "</title>", "]]>", "&lt;", '"', "'", "\\", "$x"])
    | st.characters(codec=None),
    max_size=12,
).map("".join)


@given(TEXTS)
@example("\ud800")
def test_no_text_of_a_peer_is_markup(text: str) -> None:
    plain, read = Reader(made(nasty("x"))), Reader(made(nasty(text)))

    assert read.elements == plain.elements
    assert json.loads(read.texts["script"][1])["rows"]


def test_every_text_has_enough_contrast_on_every_background() -> None:
    pairs = re.findall(
        r"--([\w-]+): light-dark\(#(\w{6}), #(\w{6})\)", (PARTS / "page.css").read_text(encoding="utf-8")
    )
    colours = {name: shades for name, *shades in pairs}
    grounds = {"ground", "raised"}

    def luminance(shade: str) -> float:
        parts = [int(shade[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def contrast(one: str, other: str) -> float:
        light, dark = sorted((luminance(one), luminance(other)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    for scheme, name, ground in product(
        (0, 1), ("text", "faint", "link", "ok", "bad", "open", "issue"), (*grounds, "cursor")
    ):
        assert contrast(colours[name][scheme], colours[ground][scheme]) >= 4.5, (name, ground, scheme)
    for scheme in (0, 1):
        assert contrast(colours["text"][scheme], colours["found"][scheme]) >= 4.5


def test_it_is_one_of_the_formats() -> None:
    session = session_of(call(0), result(1))

    assert "".join(FORMATS["html"].exporter()([session])) == made(session)


LAYOUT = """(() => {
  const all = (what) => [...document.querySelectorAll(what)];
  return {
    page: document.documentElement.scrollWidth,
    cut: all("#detail, #detail .body").filter((each) => each.scrollWidth > each.clientWidth).length,
    current: all("#tall [aria-selected=true]").length,
    beside: new Set(all(".side").map((side) => side.getBoundingClientRect().top)).size < all(".side").length,
  };
})()"""
"""Width of the page, elements cut off sideways, current rows, and True if request and response are side by side."""


@in_chromium
async def test_the_page_opens_at_every_width_and_in_both_schemes_without_errors(
    browser: Page, tmp_path: Path
) -> None:
    address = (tmp_path / "page.html").as_uri()
    grounds = set()
    for width, scheme in product((360, 1600), ("light", "dark")):
        await browser.look(width, scheme=scheme)
        await opened(browser, tmp_path, nasty())
        for number in range(10):
            await browser.press("j", "Enter")
            assert await browser.evaluate(LAYOUT) == {
                "page": width,
                "cut": 0,
                "current": 1,
                "beside": width == 1600 and number in (0, 1, 2),
            }
        grounds.add((scheme, await browser.evaluate("getComputedStyle(document.body).backgroundColor")))
        assert browser.wrong() == []
        assert set(browser.requested()) == {address}

    assert grounds == {("light", "rgb(251, 251, 248)"), ("dark", "rgb(21, 23, 28)")}
    shown = await browser.evaluate("document.body.innerText")
    assert "alert(1)" in shown
    assert "\u202e" not in shown
    assert "U+202E" in shown


@in_chromium
async def test_axe_finds_nothing_in_any_view_of_the_page(browser: Page, tmp_path: Path) -> None:
    entries = (call(0, 1), result(1, 1), call(2, 2), failure(3, 2), note(4, "stderr", text="hm"), call(5, 3))
    for width, scheme in product((360, 1600), ("light", "dark")):
        await browser.look(width, scheme=scheme)
        await opened(browser, tmp_path, session_of(*entries))
        for keys in ((), ("j", "Enter"), ("?",)):
            await browser.press(*keys)
            assert await violations(browser) == [], (width, scheme, keys)


@in_chromium
async def test_real_sessions_fit_a_phone(browser: Page, tmp_path: Path) -> None:
    await browser.look(360)
    for path in EVERY:
        await opened(browser, tmp_path, recorded(path))
        await browser.press("j", "j", "Enter")
        assert await browser.evaluate("document.documentElement.scrollWidth") == 360, path.stem
        assert await browser.evaluate("document.querySelectorAll('#detail .body').length") > 0
        assert browser.wrong() == []


@in_chromium
async def test_the_theme_is_switched_and_kept(browser: Page, tmp_path: Path) -> None:
    await browser.look(1600, scheme="light")
    await opened(browser, tmp_path, session_of(call(0)))
    await browser.press("t", "t")
    ground = "getComputedStyle(document.body).backgroundColor"

    assert await browser.evaluate(ground) == "rgb(21, 23, 28)"
    await opened(browser, tmp_path, session_of(call(0)))
    assert await browser.evaluate(ground) == "rgb(21, 23, 28)"
    await browser.press("t")
    assert await browser.evaluate(ground) == "rgb(251, 251, 248)"


@in_chromium
async def test_bodies_are_shown_as_they_were_sent(browser: Page, tmp_path: Path) -> None:
    text = rb'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":123456789012345678901234567890,"n":1.0,"n":1E5,"e":"\u00fc\"","o":{},"a":[ ]}}'
    await opened(browser, tmp_path, session_of(client(0, text), server(1, b"{oops\x07}")))
    await browser.press("j", "Enter")

    shown = await browser.evaluate(
        "[...document.querySelectorAll('#detail .json .line')].map((line) => line.textContent).join('')"
    )
    assert re.sub(r"\s", "", shown) == lay_out(text, indent=-1).decode()
    await browser.press("j")
    assert await browser.evaluate("document.querySelector('#detail .text').textContent") == "{oopsU+0007}"
    assert await browser.evaluate("document.querySelector('#detail .flaws').textContent")


@in_chromium
async def test_only_the_visible_part_of_a_large_body_is_laid_out(browser: Page, tmp_path: Path) -> None:
    items = b",".join(b'{"i":%d,"name":"item %d"}' % (i, i) for i in range(20_000))
    inner = json.dumps(json.dumps({"deep": ["\n", 1]})).encode()
    answer = result(1, 1, b'"long":"%b","items":[%b],"text":%b' % (b"x" * 50_000, items, inner))
    await opened(browser, tmp_path, session_of(call(0, 1), answer))
    await browser.press("j", "Enter")
    lines = "document.querySelectorAll('#detail .line').length"

    assert await browser.evaluate(lines) < 30
    await browser.evaluate(
        "[...document.querySelectorAll('#detail .fold')].find((fold) => /20,000/.test(fold.parentElement.textContent)).click()"
    )
    before = await browser.evaluate(lines)
    await browser.evaluate(
        "[...document.querySelectorAll('#detail .more')].find((more) => /9,900 more/.test(more.textContent)).click()"
    )
    assert before < await browser.evaluate(lines) < before + 1000
    await browser.evaluate(
        "[...document.querySelectorAll('#detail .more')].find((more) => more.textContent === 'decoded').click()"
    )
    assert '"deep"' in await browser.evaluate("document.querySelector('#detail .read').textContent")
    await browser.press("/")
    await browser.write("deep")
    await browser.until("CSS.highlights.get('found')?.size === 1")
    await browser.evaluate(
        "[...document.querySelectorAll('#detail .more')].find((more) => more.textContent === 'decoded').click()"
    )
    assert await browser.evaluate("CSS.highlights.get('found').size") == 2
    await browser.press("Escape")
    await browser.write('"item 19876"')
    await browser.until("CSS.highlights.get('found')?.size")
    assert "item 19876" in await browser.evaluate("document.getElementById('detail').textContent")
    assert browser.wrong() == []


@in_chromium
@pytest.mark.parametrize("width", [800, 1280])
async def test_the_page_handles_very_deep_and_very_long_messages(
    browser: Page, tmp_path: Path, width: int
) -> None:
    await browser.look(width)
    deep = b'"deep":' + b"[" * 900 + b"]" * 900
    wide = b'"wide":"' + b"needle " * 300_000 + b'"'
    await opened(
        browser, tmp_path, session_of(call(0, 1), result(1, 1, deep), call(2, 2), result(3, 2, wide))
    )
    await browser.press("j", "Enter")
    depth = "document.querySelectorAll('#detail .side:last-child .line').length"

    assert await browser.evaluate(depth) < 100
    await browser.evaluate("[...document.querySelectorAll('#detail [aria-expanded=false]')].pop().click()")
    assert 70 < await browser.evaluate(depth) < 200
    await browser.press("/")
    await browser.write("text:needle")
    await rows(browser, 1, 2)
    await browser.press("Enter", "n")
    await browser.until("announced.some((text) => text.startsWith('1 of '))")
    assert await browser.evaluate("document.getElementById('detail').textContent.length") < 10_000
    assert browser.wrong() == []


SEARCHED = (
    (call(0, 1, more=b',"arguments":{"city":"Oslo", "day":"M\\u00e4rz"}'), result(1, 1, b'"sky":"snow"')),
    (call(2, 2, name=b"report", more=b',"arguments":{"city":"Bergen"}'), failure(3, 2, text=b"no snow")),
)


BOTH = ["forecast", "report"]

QUERIES = {
    "oslo": [],
    "text:OSLO": ["forecast"],
    "text:snow": BOTH,
    "text:snow -text:oslo": ["report"],
    'text:"no snow"': ["report"],
    "report text:bergen": ["report"],
    "text:märz": ["forecast"],
    "params.arguments.city=Oslo": ["forecast"],
    "tools/call": BOTH,
    "code:-32602": ["report"],
    "/sno./": BOTH,
    "tool:forecast or is:error": BOTH,
    "tool:forecast is:error": [],
}
"""Query → tools whose calls match."""


@in_chromium
async def test_a_filter_finds_rows_by_fields_and_by_the_text_of_their_messages(
    browser: Page, tmp_path: Path
) -> None:
    await opened(browser, tmp_path, session_of(*(entry for pair in SEARCHED for entry in pair)))
    for query, found in QUERIES.items():
        await browser.press("Escape", "Escape", "/")
        await browser.write(query)
        await browser.press("Enter")
        shown = await rows(browser, len(found), 2)
        assert [name for name in BOTH if any(name in row for row in shown)] == found, query


@in_chromium
async def test_an_invalid_filter_is_explained_and_keeps_the_rows(browser: Page, tmp_path: Path) -> None:
    await opened(browser, tmp_path, session_of(*(entry for pair in SEARCHED for entry in pair)))
    await browser.press("/")
    await browser.write("kind:requests")
    await browser.until("document.getElementById('query').ariaInvalid === 'true'")

    found = await browser.evaluate("document.getElementById('found').textContent")
    assert found.startswith('unknown kind "requests": use one of request, notification')
    assert await browser.evaluate("document.querySelectorAll('#tall .method').length") == 2
    await browser.press("Escape")
    await rows(browser, 2)


@in_chromium
async def test_matches_are_highlighted_and_keys_move_between_them(browser: Page, tmp_path: Path) -> None:
    await opened(browser, tmp_path, session_of(*(entry for pair in SEARCHED for entry in pair)))
    await browser.press("/")
    await browser.write("text:snow")
    await rows(browser, 2, 2)
    await browser.press("Enter", "Enter")

    marked = "[...CSS.highlights.get('found')].map(String)"
    assert await browser.evaluate(marked) == ["snow"]
    await browser.press("n")
    assert await browser.evaluate("[...CSS.highlights.get('current')].map(String)") == ["snow"]
    assert "1 of 1" in await browser.evaluate("announced")
    await browser.press("j")
    assert await browser.evaluate(f"{marked}.length") == 2  # In the status, and in the body.
    await browser.press("/", "Escape", "Escape")
    assert await browser.evaluate("CSS.highlights.has('found')") is False


@in_chromium
async def test_everything_is_reached_by_keys(browser: Page, tmp_path: Path) -> None:
    entries = [entry for i in range(1, 30) for entry in (call(i, i), result(i + 0.5, i))]
    await opened(browser, tmp_path, session_of(*entries, call(40, 40), failure(41, 40)))
    current = "document.querySelector('#tall [aria-selected=true]')?.id"

    await browser.press("j", "j", "k")
    assert await browser.evaluate(current) == "row-1"
    assert await browser.evaluate("document.getElementById('detail').hidden") is True
    await browser.press("e")
    assert await browser.evaluate(current) == "row-59"
    await browser.press("Enter")
    assert await browser.evaluate("[location.hash, document.activeElement.id]") == ["#59", "detail"]
    await browser.press("k")
    assert await browser.evaluate("location.hash") == "#57"
    await browser.press("Escape")
    await browser.until("document.getElementById('detail').hidden && !location.hash")
    assert await browser.evaluate("document.activeElement.id") == "rows"
    await browser.press("g")
    assert await browser.evaluate(current) == "row-1"
    await browser.press("?")
    assert await browser.evaluate("document.getElementById('keys').open") is True
    await browser.press("Escape", "G")
    assert await browser.evaluate(current) == "row-59"
    active = (
        "document.getElementById(document.getElementById('rows').getAttribute('aria-activedescendant')).id"
    )
    assert await browser.evaluate(active) == "row-59"


@in_chromium
async def test_a_link_leads_to_a_message(browser: Page, tmp_path: Path) -> None:
    progress = (
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}'
    )
    session = session_of(
        call(0, 1, more=b',"_meta":{"progressToken":7}', http=4), server(1, progress, http=4), result(2, 1, http=4),
        note(2, "http", http=4, method="POST", path="/mcp", status=200),
    )  # fmt: skip
    await opened(browser, tmp_path, session, "#2")
    title = "document.querySelector('#detail h2').textContent.trim()"

    assert await browser.evaluate(title) == "notifications/progress 1"
    await browser.evaluate("document.querySelector('#detail .links a').click()")
    await browser.until(f"{title} === 'tools/call forecast'")
    assert "POST /mcp" in await browser.evaluate("document.querySelector('#detail .http').textContent")
    await browser.evaluate("document.querySelector('#detail .along a').click()")
    await browser.until(f"{title} === 'notifications/progress 1'")


@in_chromium
async def test_chips_time_and_order_choose_the_rows(browser: Page, tmp_path: Path) -> None:
    await browser.look(1600)
    ping = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'
    session = session_of(
        *(call(0, 1), result(4, 1), call(5, 2, name=b"quick"), failure(5.01, 2), server(6, ping)),
        *(note(7, "stderr", text="hm"), note(8, "http", http=9, method="GET", path="/", status=200)),
        call(9, 3, name=b"never"), note(10, "exit", code=0, signal=None),
    )  # fmt: skip
    await opened(browser, tmp_path, session)
    assert len(await rows(browser, 6)) == 6
    chips = await browser.evaluate("[...document.querySelectorAll('.chip')].map((chip) => chip.textContent)")
    assert chips == [
        "errors 1",
        "unanswered 1",
        "slow ≥ 1 s 1",
        "notifications 1",
        "stderr 1",
        "HTTP 1",
    ]

    def chip(name: str) -> str:
        return f"[...document.querySelectorAll('.chip')].find((chip) => chip.textContent.startsWith('{name}')).click()"

    for name, count in {"errors": 1, "unanswered": 2, "stderr": 3, "HTTP": 4}.items():
        await browser.evaluate(chip(name))
        await rows(browser, count, 6)
    for name in ("errors", "unanswered", "stderr", "HTTP"):
        await browser.evaluate(chip(name))
    await rows(browser, 6)
    await browser.evaluate("document.querySelector('#columns .took').click()")
    await browser.until("document.querySelector('#tall .row .took').textContent === '4.00 s'")

    box = await browser.evaluate("document.querySelector('.plots svg').getBoundingClientRect().toJSON()")
    for kind, share in (("mousePressed", 0.48), ("mouseMoved", 0.55), ("mouseReleased", 0.65)):
        await browser.send(
            "Input.dispatchMouseEvent", type=kind, x=box["x"] + box["width"] * share, y=box["y"] + 5,
            button="left", clickCount=1,
        )  # fmt: skip
    assert len(await rows(browser, 2, 6)) == 2
    await browser.evaluate("document.querySelector('#overtime .tools button:last-of-type').click()")
    await rows(browser, 6)
    for kind in ("mousePressed", "mouseReleased"):
        await browser.send(
            "Input.dispatchMouseEvent", type=kind, x=box["x"] + box["width"] * 0.2, y=box["y"] + 5,
            button="left", clickCount=1,
        )  # fmt: skip
    assert await browser.evaluate("location.hash") == "#1"


@in_chromium
async def test_the_view_of_time_and_the_filter_are_in_the_address(browser: Page, tmp_path: Path) -> None:
    await browser.look(1400)
    entries = (entry for pair in SEARCHED for entry in pair)
    address = await opened(browser, tmp_path, session_of(*entries))
    await browser.press("/")
    await browser.write("tool:report")
    await rows(browser, 1, 2)
    await browser.press("Enter", "5")
    await browser.until("document.querySelector('#overtime:not(.compact) .track')")
    assert await browser.evaluate("document.getElementById('panes').hidden") is True
    says = "document.querySelector('#overtime output').textContent"
    assert (await browser.evaluate(says)).startswith("#3 tools/call report, 2.000 s, 1.00 s, error -32602")
    link = await browser.evaluate("location.hash")

    await browser.open("about:blank")
    await browser.open(address + link)
    await browser.until(f"{says} === '0.000 to 3.000 s: 1 request, peak concurrency 1'")
    await browser.evaluate("document.querySelector('.plots').focus()")
    await browser.press("Home", "Enter")
    await browser.until("document.querySelector('#detail h2')?.textContent.trim() === 'tools/call report'")
    assert await browser.evaluate("location.hash") == "#3?q=tool%3Areport"
    assert browser.wrong() == []


POLL = b'{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"t"}}'

TASK = b'"taskId":"t","status":"%b","createdAt":"2026-11-21T08:13:00Z","ttl":null'


@in_chromium
async def test_polls_of_a_task_are_shown_with_its_call(browser: Page, tmp_path: Path) -> None:
    call_task = call(0, 1, more=b',"task":{}')
    created = result(1, 1, b'"task":{%b}' % (TASK % b"working"))
    polls = client(2, POLL % 2), result(3, 2, TASK % b"working"), client(4, POLL % 3)
    await opened(browser, tmp_path, session_of(call_task, created, *polls, result(5, 3, TASK % b"completed")))
    (row,) = await rows(browser, 1)
    assert "tools/call" in row

    await browser.press("j", "Enter")
    along = "[...document.querySelectorAll('#detail .along li')].map((each) => each.textContent)"
    assert await browser.evaluate(along) == ["2.000 s tasks/get t", "4.000 s tasks/get t"]
    await browser.evaluate("document.querySelector('#detail .along a').click()")
    await browser.until("document.querySelector('#detail h2').textContent.trim() === 'tasks/get t'")
    links = "document.querySelector('#detail .links').textContent"
    assert await browser.evaluate(links) == "part of #1 tools/call"


@in_chromium
async def test_a_message_is_copied_as_it_was_sent(browser: Page, tmp_path: Path) -> None:
    text = b'{"jsonrpc": "2.0", "id": 10000000000000000000001, "method":"\xe2\x80\xae"}'
    await opened(browser, tmp_path, session_of(client(0, text)))
    await browser.send(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    await browser.press("j", "Enter", "y")

    await browser.until("announced.includes('copied')")
    assert (await browser.evaluate("navigator.clipboard.readText()")).encode() == text


@in_chromium
async def test_a_large_session_needs_few_elements(browser: Page, tmp_path: Path) -> None:
    pairs = ((call(i, i), result(i + 0.5, i, b'"n":"number %d"' % i)) for i in range(1, 10_001))
    await browser.look(1600)
    await opened(browser, tmp_path, session_of(*(entry for pair in pairs for entry in pair)))

    assert len(await rows(browser, 10_000)) < 100
    await browser.press("G")
    await browser.until("document.getElementById('row-19999')?.ariaSelected === 'true'")
    await browser.press("Enter")
    assert "number 10000" in await browser.evaluate("document.getElementById('detail').textContent")
    await browser.press("/")
    await browser.write('text:"number 7777"')
    (row,) = await rows(browser, 1, 10_000)
    assert row.startswith("7777.000")


@in_chromium
async def test_on_paper_all_rows_are_there(browser: Page, tmp_path: Path) -> None:
    session = session_of(*(entry for i in range(1, 300) for entry in (call(i, i), result(i + 0.5, i))))
    await browser.look(800, scheme="dark")
    await opened(browser, tmp_path, session)
    paper = b64decode((await browser.send("Page.printToPDF"))["data"])

    assert len(re.findall(rb"/Type\s*/Page\b", paper)) > 3
    await browser.until("document.querySelectorAll('#tall .row').length < 100")
    await browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert await browser.evaluate("document.querySelectorAll('#tall .row').length") == 299


@in_chromium
async def test_nothing_is_fetched_even_by_mistake(browser: Page, tmp_path: Path) -> None:
    await opened(browser, tmp_path, session_of(call(0)))
    refused = await browser.evaluate(
        "new Promise((done) => { addEventListener('securitypolicyviolation', (event) => "
        "done(event.effectiveDirective)); new Image().src = 'http://127.0.0.1:9/'; })"
    )
    assert refused == "img-src"
    assert await browser.evaluate("fetch('http://127.0.0.1:9/').catch(() => 'refused')") == "refused"
    markup = await browser.evaluate(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; } catch (error) { return error.name; } })()"
    )
    assert markup == "TypeError"


@in_chromium
async def test_screen_readers_find_the_landmarks(browser: Page, tmp_path: Path) -> None:
    await browser.look(1600)
    await opened(browser, tmp_path, session_of(call(0, 1), result(1, 1), server(2, b"nonsense")))
    await browser.press("j", "Enter")
    await browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    tree = (await browser.send("Accessibility.getFullAXTree"))["nodes"]
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node["ignored"]
    ]

    assert {"banner", "search", "main", "listbox", "slider", "heading"} <= {role for role, _ in named}
    assert [name for role, name in named if role == "option"] == [
        "0.000 from the client tools/call forecast ok 1.00 s",
        "2.000 from the server (not JSON) nonsense",
    ]
    assert not [
        role for role, name in named if role in ("button", "slider", "listbox", "searchbox") and not name
    ]
