"""Compressed bodies, decoded in bounded steps."""

from __future__ import annotations

import gzip
import random
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core import compression
from mcpspy.core.compression import PIECE, STEP, BodyDecoder
from tests.compressed import COMPRESS, zstd

PACK = COMPRESS | {"x-gzip": gzip.compress, "identity": bytes}


def decoded(encoding: str | None, data: bytes, cut: int) -> bytes:
    decoder = BodyDecoder(encoding)
    return b"".join(step for at in range(0, len(data), cut) for step in decoder.steps(data[at : at + cut]))


@settings(deadline=None)
@given(st.sampled_from(sorted(PACK)), st.binary(max_size=3000), st.integers(1, 4000))
def test_a_body_is_decoded_however_it_is_cut(encoding: str, data: bytes, cut: int) -> None:
    assert decoded(encoding.upper(), PACK[encoding](data), cut) == data


COMPRESSED = [each for each in PACK if each != "identity"]


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_no_step_is_larger_than_its_bound_and_the_rest_is_not_decoded_before_it_is_taken(
    encoding: str,
) -> None:
    packed = PACK[encoding](bytes(20 << 20))
    sizes = []
    for step in BodyDecoder(encoding).steps(packed):
        sizes.append(len(step))
        if sum(sizes) > 8 << 20:
            break
    assert max(sizes) <= STEP


@pytest.mark.parametrize("encoding", COMPRESSED)
def test_no_step_takes_more_than_a_piece_of_the_input(encoding: str) -> None:
    packed = PACK[encoding](random.Random(2).randbytes(10 * PIECE))
    assert sum(1 for _ in BodyDecoder(encoding).steps(packed)) >= 10


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_empty_members_are_taken_in_steps(encoding: str) -> None:
    packed = PACK[encoding](b"") * 5000
    assert sum(1 for _ in BodyDecoder(encoding).steps(packed)) >= len(packed) // PIECE
    assert decoded(encoding, packed + PACK[encoding](b"end"), 9999) == b"end"


def test_a_window_of_zstd_above_8_mb_is_not_decoded() -> None:
    options = {zstd.CompressionParameter.window_log: 24, zstd.CompressionParameter.content_size_flag: 0}
    compressor = zstd.ZstdCompressor(options=options)
    packed = compressor.compress(b"body") + compressor.flush()
    assert decoded("zstd", packed, 100) == packed


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", [1, 5, 100])
def test_members_that_follow_each_other_are_one_body(encoding: str, cut: int) -> None:
    assert decoded(encoding, PACK[encoding](b"one") + PACK[encoding](b"two"), cut) == b"onetwo"


def test_deflate_without_its_header_is_decoded() -> None:
    assert decoded("deflate", zlib.compress(b"body" * 9, wbits=-15), 100) == b"body" * 9


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_a_body_that_is_not_compressed_as_declared_is_unchanged(encoding: str) -> None:
    assert decoded(encoding, b"\xff\xffthis is not compressed", 100) == b"\xff\xffthis is not compressed"


@pytest.mark.parametrize("cut", [1000, 1 << 20])
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_the_bytes_before_the_damage_are_kept_and_the_rest_is_left_out(encoding: str, cut: int) -> None:
    body = bytes(range(256)) * 40 + random.Random(0).randbytes(400_000)
    packed = bytearray(PACK[encoding](body))
    packed[-2000:-1000] = bytes(1000)
    found = decoded(encoding, bytes(packed), cut)
    assert 100_000 < len(found) < len(body) + 1000
    assert found[:100_000] == body[:100_000]


def test_bytes_after_the_end_of_deflate_are_left_out() -> None:
    assert decoded("deflate", zlib.compress(b"body") + b"more", 100) == b"body"


def test_nothing_is_left_in_the_decoder_when_a_chunk_fills_its_last_step() -> None:
    body = bytes(3 * STEP)
    packed = zlib.compress(body)
    decoder = BodyDecoder("deflate")
    assert b"".join(decoder.steps(packed[:-4])) == body  # Without the checksum, this is not the end.
    body = bytes(STEP + 100)  # The last match crosses the bound of a step.
    assert b"".join(BodyDecoder("deflate").steps(zlib.compress(body)[:-4])) == body


@pytest.mark.parametrize("encoding", [None, "", "identity", "compress", "gzip, br"])
def test_a_body_in_no_known_encoding_is_unchanged(encoding: str | None) -> None:
    assert not BodyDecoder(encoding).is_decoding
    assert decoded(encoding, b"body", 2) == b"body"


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_a_body_is_unchanged_if_the_library_for_it_is_not_installed(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(compression, "import_module", missing)
    assert decoded(encoding, PACK[encoding](b"body"), 100) == PACK[encoding](b"body")
