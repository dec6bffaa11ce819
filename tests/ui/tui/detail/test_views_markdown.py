"""Markdown is styled and otherwise unchanged."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.tui.detail.views import Markdown, styles


@pytest.mark.parametrize(
    ("line", "styled"),
    [
        ("## Heading", [("## Heading", "title")]),
        ("#hashtag", []),
        ("> quote", [("> quote", "quiet")]),
        ("- one `code` two", [("- ", "key"), ("`code`", "string")]),
        ("12. **bold** and __bold__", [("12. ", "key"), ("**bold**", "title"), ("__bold__", "title")]),
        ("- [x] done", [("- [x] ", "key")]),
        ("see [docs](https://x.org) or https://y.org.", [
            ("[docs](https://x.org)", "key"), ("https://y.org.", "key")]),
        ("[red]no markup[/red] 2 * 3 * 4 ** 5", []),
    ],
)  # fmt: skip
def test_a_line_has_styles(line: str, styled: list[tuple[str, str]]) -> None:
    assert [(line[span.start : span.end], span.role) for span in styles(line)] == styled


def test_fenced_text_is_code() -> None:
    text = b"# a\n```py\n# b\n```\n# c\n~~~\n# d"
    markdown = Markdown(text)
    roles = []
    at = 0
    for line in text.split(b"\n"):
        roles.append(markdown(at, line.decode())[0].role)
        at += len(line) + 1

    assert roles == ["title", "quiet", "string", "quiet", "title", "quiet", "string"]


@given(st.text(max_size=80))
def test_styles_do_not_overlap(line: str) -> None:
    spans = styles(line)

    assert all(one.end <= two.start for one, two in pairwise(spans))
    assert all(0 <= span.start < span.end <= len(line) for span in spans)
