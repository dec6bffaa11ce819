"""Tests of the rows of the capabilities screen: sanitized, in order, and folded at first."""

from __future__ import annotations

from mcpspy.core.session.index import Index
from mcpspy.ui.model.interface import Capabilities, Capability, ListPage, PageContents, SchemaField
from mcpspy.ui.tui.panels.capabilities_screen import Key, lines

TOOL = Capability(
    key="echo",
    name="echo",
    type="",
    line="writes\\nit",
    need="1 required",
    about="writes\nit \x1b[31magain",
    details=[SchemaField("text\x07", "string", True, "what")],
    data=b"{}",
)
PAGE = ListPage(0, 0.5, "tools/list", "", None)


def offer(*contents: PageContents) -> Capabilities:
    found = Capabilities()
    for page in contents:
        found.take(PAGE, page)
    return found


def text(found: Capabilities, opened: set[Key] | None = None, width: int = 80) -> list[str]:
    rows = lines(Index(), found, opened or set(), width, {})
    return [" ".join(part for part in (row.name, row.type, row.need, row.about) if part) for row in rows]


def test_a_tool_is_one_line_until_it_is_opened() -> None:
    folded = text(offer(PageContents([TOOL], None)))
    assert "  ▸ echo 1 required writes\\nit" in folded
    assert not any("string required" in line for line in folded)

    opened = text(offer(PageContents([TOOL], None)), {("tools/list", 0)})
    place = opened.index("  ▾ echo")
    assert opened[place + 1 : place + 4] == [
        "      writes",
        "      it \\x1b[31magain",
        "      text\\x07 string required what",
    ]


def test_a_folded_list_hides_its_items() -> None:
    assert not any("echo" in line for line in text(offer(PageContents([TOOL], None)), {("tools/list", -1)}))


def test_a_missing_list_is_reported() -> None:
    assert "Prompts: not listed" in text(Capabilities())


def test_a_list_shows_its_time_and_missing_pages() -> None:
    assert "▾ Tools (1, listed at 0.500 s, further pages not requested)" in text(
        offer(PageContents([TOOL], "2"))
    )
    assert "  too large" in text(offer(PageContents([], None, "too large")))
    later = Capabilities()
    later.take(PAGE._replace(cursor="2"), PageContents([TOOL], None))
    assert "▾ Tools (1, listed at 0.500 s, first page not recorded)" in text(later)


def test_a_change_is_one_wrapped_sentence() -> None:
    other = TOOL._replace(key="new", name="new")
    found = offer(PageContents([TOOL], None), PageContents([other], None))
    said = text(found)
    assert said[-2:] == ["Changes between listings", "  Tools at 0.500 s: added new; removed echo"]
    assert all(len(line) <= 30 for line in text(found, width=30)[-3:])


def test_equal_listings_are_reported_as_unchanged() -> None:
    assert (
        text(offer(PageContents([TOOL], None), PageContents([TOOL], None)))[-1]
        == "No changes between listings"
    )
    assert "No changes between listings" not in text(offer(PageContents([TOOL], None)))


def test_several_http_sessions_are_shown() -> None:
    found = Capabilities()
    for stream in ("s1", "s2"):
        found.take(PAGE._replace(stream=stream), PageContents([TOOL], None))
    assert any("last requested by HTTP session s2" in line for line in text(found))


def test_a_changed_item_is_named_with_its_changed_members() -> None:
    changed = TOOL._replace(data=b'{"description":"other"}')
    found = offer(PageContents([TOOL], None), PageContents([changed], None))
    assert text(found)[-1] == "  Tools at 0.500 s: changed echo (description)"
