"""Splitting into lines of bounded length loses no byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.core.sanitize import sanitize_bytes
from mcpspy.ui.text.width import steady
from mcpspy.ui.tui.detail import layout
from mcpspy.ui.tui.detail.layout import LineSplit

DATA = st.binary(max_size=200) | st.text(max_size=80).map(lambda text: text.encode("utf-8", "replace"))


@given(DATA, st.integers(1, 40))
def test_no_byte_is_left_out(data: bytes, bound: int) -> None:
    lines = LineSplit(data, bound=bound)
    texts = [data[lines.start(line) : lines.end(line)] for line in range(len(lines))]

    assert b"".join(texts) == data.replace(b"\n", b"")
    assert all(len(text) <= bound for text in texts)
    assert [lines[line] for line in range(len(lines))] == [sanitize_bytes(text) for text in texts]
    assert all(lines.line_at(lines.start(line)) == line for line in range(len(lines)))


@given(st.text(max_size=60), st.integers(4, 30))
def test_characters_stay_whole(text: str, bound: int) -> None:
    data = text.encode("utf-8", "replace")
    lines = LineSplit(data, bound=bound)

    for line in range(len(lines)):
        data[lines.start(line) : lines.end(line)].decode()


@given(DATA, st.integers(1, 60))
def test_every_line_that_may_be_too_wide_is_returned(data: bytes, width: int) -> None:
    lines = LineSplit(data)
    wide = set(lines.wider_than(width))

    assert all(cell_len(steady(lines[n])) <= width for n in range(len(lines)) if n not in wide)


def test_a_final_newline_adds_no_empty_line() -> None:
    lines = LineSplit(b"a\n\nb\n")

    assert [lines[line] for line in range(len(lines))] == ["a", "", "b"]
    assert len(LineSplit(b"")) == 0


@pytest.mark.parametrize(
    ("data", "bound"), [(b"x" * 500, 50), (b"\xff" * 500, 50), (b"short\n" * 90, layout.LONG)]
)
def test_a_large_text_is_cut_to_the_width_at_once(
    monkeypatch: pytest.MonkeyPatch, data: bytes, bound: int
) -> None:
    monkeypatch.setattr(layout, "LARGE", 100)
    fitted = LineSplit(data).fitted(50, 100)

    assert max(fitted.end(line) - fitted.start(line) for line in range(len(fitted))) <= bound


def test_text_with_too_many_wide_lines_is_cut_to_fit_unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "LARGE", 100)
    fitted = LineSplit(b"\xff" * 5000).fitted(50, 10)

    assert all(cell_len(fitted[line]) <= 50 for line in range(len(fitted)))
    assert fitted.wider_than(50) == []
