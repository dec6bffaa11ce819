"""The page of a load test: complete, without scripts, and without markup of a server."""

from __future__ import annotations

from html.parser import HTMLParser

from mcpspy.analysis.load import LoadResult, gate
from mcpspy.ui.report.load import page
from tests.analysis.test_load import result, sent


class Read(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: dict[str, str | None] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= attrs


def test_the_page_has_two_charts_and_loads_nothing() -> None:
    text = page(result(sent(0.1, 1.5, None)), "x", gate("p95>1s")).decode()
    read = Read(text)

    assert read.tags.count("svg") == read.tags.count("table") == 2
    assert not {"script", "link", "img", "iframe"} & set(read.tags)
    assert not {"src", "href", "onload"} & read.attributes.keys()
    assert "default-src 'none'" in text
    assert "Failed: p95&gt;1s (1.50 s)" in text


def test_texts_of_a_server_are_not_markup() -> None:
    text = page(result(sent(None, why="<script>x</script>\x1b")), "<b>", gate("errors<1")).decode()

    assert "<script" not in text
    assert "<b>" not in text
    assert "\x1b" not in text
    assert "Passed: errors&lt;1 (1)" in text


def test_a_load_test_without_a_response_has_a_page() -> None:
    assert b"0 of 0 runs" in page(LoadResult(), "x", None)
