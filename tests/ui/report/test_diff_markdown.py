"""A diff as Markdown for a pull request."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mcpspy.analysis.diff import ChangeKind, ChangeSeverity, ComparedCase, DiffChange, SessionDiff
from mcpspy.analysis.diff.model import IgnoreSuggestion
from mcpspy.ui.report.diff import MAX_REPORT, SHOWN_CHANGES, fence, markdown, span

GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
"""Rendered as on GitHub, except GitHub's own links."""


def blocks(text: str) -> list[str]:
    return [token.type for token in GITHUB.parse(text) if token.nesting >= 0]


def change(**fields: object) -> DiffChange:
    return DiffChange(**{"kind": ChangeKind.RESULT, "severity": ChangeSeverity.NOTE, **fields})  # type: ignore[arg-type]


def test_a_report_has_a_verdict_a_table_and_the_gravest_first(difference: SessionDiff) -> None:
    report = markdown(difference, ("old.jsonl", "new.jsonl"))

    assert report.startswith("### mcpspy diff: changed: 1 breaking, 4 different, 2 notes; 3 of 7 unchanged\n")
    assert "`old.jsonl` → `new.jsonl`" in report
    assert "| error | 1 |  |  |" in report
    order = re.findall(r"^\*\*(\w+)\*\*", report, re.MULTILINE)
    assert order == ["breaking", "different", "different", "note"]
    assert "```diff\n@@ removed  only in the old session @@\n```" in report
    assert "- b\n+ B\n" in report


def test_a_report_ends_with_the_options_that_would_ignore_its_changes(difference: SessionDiff) -> None:
    ways = IgnoreSuggestion(["ping /result/it's", *(f"a /result/{number}" for number in range(20))], 2, 7)

    report = markdown(difference, ("a", "b"), ways=ways)

    *_, heading, block = report.rstrip("\n").rsplit("\n\n", 2)
    lines = block.splitlines()
    assert heading == "To ignore these changes:"
    assert (lines[0], lines[-1]) == ("```sh", "```")
    assert lines[1:3] == ["--volatile  # 2 of 7", """--ignore-path 'ping /result/it'"'"'s'"""]
    assert lines[-2] == "… 1 more"
    assert "ignore" not in markdown(difference, ("a", "b"), ways=IgnoreSuggestion([], 0, 1))


def test_a_long_report_still_ends_with_these_options() -> None:
    changes = tuple(change(pointer=f"/result/{number}", old="x" * 100, new="y" * 100) for number in range(20))
    cases = tuple(ComparedCase(method="ping", changes=changes) for _ in range(100))

    report = markdown(SessionDiff(cases), ("a", "b"), ways=IgnoreSuggestion(["ping"], 0, 1))

    assert len(report) < MAX_REPORT + 200
    assert report.endswith(
        "run `mcpspy diff` to see all.\n\nTo ignore these changes:\n\n```sh\n--ignore-path ping\n```\n"
    )


def test_no_text_of_a_peer_is_markup(difference: SessionDiff, hostile: str) -> None:
    """All text of peers is in code spans and fences."""
    report = markdown(difference, (hostile, "b"))
    tokens = GITHUB.parse(report)

    assert [token.type for token in tokens if token.nesting >= 0 and token.level == 0] == [
        "heading_open",
        "paragraph_open",
        "paragraph_open",
        "table_open",
        *["paragraph_open", "fence"] * 4,
    ]
    assert "html_block" not in blocks(report)
    for inline in (child for token in tokens for child in token.children or []):
        if inline.type != "code_inline":
            assert inline.type in ("text", "strong_open", "strong_close", "softbreak")
            assert not re.search(r"everyone|<b>|\x1b", inline.content)
    assert "\x1b" not in report
    assert "\x00" not in report


@given(st.text(alphabet="`a \\|<", min_size=1))
def test_a_code_span_holds_its_text_and_no_text_ends_it(text: str) -> None:
    (paragraph,) = [token for token in GITHUB.parse(f"x {span(text)} y") if token.type == "inline"]
    codes = [child.content for child in paragraph.children or [] if child.type == "code_inline"]

    assert len(codes) == 1
    assert codes[0].strip() == text.strip()


@example(["```", "   ````  "])
@given(st.lists(st.text(alphabet="`~a \\-+", max_size=8)))
def test_a_fence_holds_its_lines_and_no_line_ends_it(lines: list[str]) -> None:
    tokens = GITHUB.parse(fence(["@@", *lines]) + "\n\nafter")

    assert [token.type for token in tokens if token.level == 0] == [
        "fence",
        "paragraph_open",
        "paragraph_close",
    ]
    assert tokens[0].content.split("\n")[1:-1] == lines


def test_a_report_fits_into_a_comment() -> None:
    cases = tuple(
        ComparedCase(method="tools/call", subject=f"t{n}", changes=(change(old="x" * 500, new="y"),))
        for n in range(1000)
    )

    report = markdown(SessionDiff(cases), ("a", "b"))

    assert len(report) < MAX_REPORT + 200
    left = re.search(r"… (\d+) more; run `mcpspy diff`", report)
    assert left is not None
    assert report.count("```diff") == 1000 - int(left[1])


def test_many_changes_of_one_request_are_cut() -> None:
    case = ComparedCase(
        method="a", changes=tuple(change(pointer=f"/result/{n}", new=n) for n in range(SHOWN_CHANGES + 7))
    )

    report = markdown(SessionDiff((case,)), ("a", "b"))

    assert report.count("@@ result") == SHOWN_CHANGES
    assert "… 7 more changes" in report


def test_nothing_changed_is_a_verdict() -> None:
    report = markdown(SessionDiff((ComparedCase(method="a"),)), ("a", "b"))

    assert blocks(report) == ["heading_open", "inline", "paragraph_open", "inline"]
