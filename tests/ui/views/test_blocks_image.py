"""Images are described from their first bytes."""

from __future__ import annotations

import base64
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.ui.text.numbers import byte_size
from mcpspy.ui.views.blocks import describe_binary, dimensions, head

PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02"
GIF = b"GIF89a" + struct.pack("<HH", 640, 480)
JPEG = (
    b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(10) + b"\xff\xff\xc2\x00\x11\x08" + struct.pack(">HH", 480, 640)
)
WEBP_LOSSY = b"RIFF....WEBPVP8 " + bytes(10) + struct.pack("<HH", 640, 480)
WEBP_LOSSLESS = b"RIFF....WEBPVP8L....\x2f" + struct.pack("<I", 639 | 479 << 14) + bytes(8)
WEBP_LARGE = b"RIFF....WEBPVP8X" + bytes(8) + (639).to_bytes(3, "little") + (479).to_bytes(3, "little")


@pytest.mark.parametrize("data", [PNG, GIF, JPEG, WEBP_LOSSY, WEBP_LOSSLESS, WEBP_LARGE])
def test_an_image_has_a_width_and_a_height(data: bytes) -> None:
    assert dimensions(data) == (640, 480)


@given(st.binary(max_size=60), st.sampled_from([b"", PNG[:8], b"GIF89a", b"\xff\xd8", b"RIFF....WEBPVP8L"]))
def test_no_image_header_raises(data: bytes, start: bytes) -> None:
    dimensions(start + data)


def test_an_image_is_described_by_type_size_and_dimensions() -> None:
    data = base64.b64encode(PNG + bytes(12_274))

    assert describe_binary("image/png", data) == "image/png, 12.3 kB, 640x480"
    assert describe_binary("audio/wav", b"AAAA") == "audio/wav, 3 B"
    assert describe_binary("", b"no base64!") == "unknown type, 7 B"


def test_only_the_start_of_a_large_image_is_decoded() -> None:
    assert len(head(b"A" * 10_000_000)) < 50_000
    assert head(b"\xff\xfe\x00") == b""


def test_sizes_have_units() -> None:
    assert [byte_size(n) for n in (312, 12_345, 5_700_000)] == ["312 B", "12.3 kB", "5.7 MB"]
