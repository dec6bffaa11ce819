"""The views that mcpspy contains: images, tables, diffs, Protocol Buffers."""

from __future__ import annotations

import io
import struct
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.views.content import BUILTIN, MAX_LINES, Content, Line, diff, image, protobuf, table


def texts(lines: list[Line] | None) -> list[str] | None:
    return None if lines is None else ["".join(text for text, _ in line) for line in lines]


def png(width: int, height: int) -> bytes:
    """Return an image whose upper half is red and whose lower half is blue."""
    from PIL import Image

    picture = Image.new("RGB", (width, height), "#ff0000")
    picture.paste("#0000ff", (0, height // 2, width, height))
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_an_image_is_two_pixels_in_each_character() -> None:
    lines = image(Content("image/png", png(2, 4)))

    assert lines == [[("▀", "#ff0000 on #ff0000")] * 2, [("▀", "#0000ff on #0000ff")] * 2]


def test_a_large_image_is_made_smaller_and_a_huge_one_is_not_decoded() -> None:
    lines = image(Content("image/png", png(400, 200)))
    huge = image(Content("image/png", png(4000, 3000)))

    assert lines is not None
    assert {len(line) for line in lines} == {40}
    assert len(lines) == 10
    assert texts(huge) == ["4000x3000: too large to be shown"]


def test_a_table_is_aligned_and_numbers_are_on_the_right() -> None:
    content = Content("text/csv", b'city,people\n"Gaia, Vila",302\nPorto,23755\n')

    assert texts(table(content)) == [
        "city        people",
        "Gaia, Vila     302",
        "Porto        23755",
    ]


def test_control_characters_of_a_cell_are_visible() -> None:
    shown = texts(table(Content("text/tab-separated-values", b"a\tb\n\x1b[31mred\t2\n")))

    assert shown == ["a            b", "\\x1b[31mred  2"]


def test_a_diff_is_found_by_its_first_lines_and_coloured() -> None:
    text = b"--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"

    lines = diff(Content("", text))

    assert lines is not None
    assert [line[0][1] for line in lines] == ["title", "title", "key", "bad", "ok"]
    assert diff(Content("", b"--- a\nno diff\n")) is None


def test_fields_of_a_message_are_read_by_wire_type() -> None:
    data = bytes([8, 150, 1, 18, 2]) + b"ok" + bytes([26, 2, 8, 1, 37]) + struct.pack("<f", 1.5)

    assert texts(protobuf(Content("application/x-protobuf", data))) == [
        "1: 150", '2: "ok"', "3: {", "  1: 1", "}", "4: 1069547520 or 1.5",
    ]  # fmt: skip


def test_fields_that_are_neither_text_nor_a_message_are_bytes() -> None:
    short, long = bytes([10, 2, 0xFF, 0xFE]), bytes([18, 40]) + b"\x80" * 40
    assert texts(protobuf(Content("application/protobuf", short + long))) == [
        "1: 2 bytes: ff fe",
        f"2: 40 bytes: {'80 ' * 32}…",
    ]


def test_without_pillow_an_image_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    content = Content("image/png", png(2, 4))
    monkeypatch.setitem(sys.modules, "PIL", None)
    (line,) = texts(image(content)) or []
    assert line.startswith("to see the image: ")
    assert "[images]" in line


def test_bytes_that_are_not_a_message_are_reported() -> None:
    assert texts(protobuf(Content("application/protobuf", b"\x0f\xff"))) == [
        "not a message of Protocol Buffers"
    ]


@given(st.binary(max_size=300))
def test_any_bytes_give_a_bounded_number_of_lines(data: bytes) -> None:
    for kind in ("text/csv", "text/x-diff", "application/protobuf"):
        for view in (table, diff, protobuf):
            lines = view(Content(kind, data))
            assert lines is None or len(lines) <= MAX_LINES


@pytest.mark.parametrize("name", BUILTIN)
def test_a_view_leaves_other_contents_alone(name: str) -> None:
    assert BUILTIN[name](Content("text/plain", b"hello")) is None
