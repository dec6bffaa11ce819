"""Compressed bodies, decoded in bounded steps."""

from __future__ import annotations

import gzip
import random
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpspy.core import compression
from mcpspy.core.compression import STEP, BodyDecoder

if TYPE_CHECKING:
    from collections.abc import Callable

brotli: Any = import_module("brotli")
zstandard: Any = import_module("zstandard")


def zstd(data: bytes) -> bytes:
    packer = zstandard.ZstdCompressor().compressobj()
    return bytes(packer.compress(data) + packer.flush())


PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd,
    "identity": lambda data: data,
}


def decoded(encoding: str | None, data: bytes, cut: int) -> bytes:
    decoder = BodyDecoder(encoding)
    return b"".join(step for at in range(0, len(data), cut) for step in decoder.steps(data[at : at + cut]))


@settings(deadline=None)
@given(st.sampled_from(sorted(PACK)), st.binary(max_size=3000), st.integers(1, 4000))
def test_a_body_is_decoded_however_it_is_cut(encoding: str, data: bytes, cut: int) -> None:
    assert decoded(encoding.upper(), PACK[encoding](data), cut) == data


@pytest.mark.parametrize("encoding", [each for each in PACK if each != "identity"])
def test_no_step_is_larger_than_its_bound_and_the_rest_is_not_decoded_before_it_is_taken(
    encoding: str,
) -> None:
    packed = PACK[encoding](bytes(100 << 20))
    bound = STEP if encoding in ("gzip", "x-gzip", "deflate") else 33 << 20
    sizes = []
    for step in BodyDecoder(encoding).steps(packed):
        sizes.append(len(step))
        if sum(sizes) > 40 << 20:
            break
    assert max(sizes) <= bound


def test_members_of_gzip_that_follow_each_other_are_one_body() -> None:
    assert decoded("gzip", gzip.compress(b"one") + gzip.compress(b"two"), 5) == b"onetwo"


def test_deflate_without_its_header_is_decoded() -> None:
    assert decoded("deflate", zlib.compress(b"body" * 9, wbits=-15), 100) == b"body" * 9


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_a_body_that_is_not_compressed_as_declared_is_unchanged(encoding: str) -> None:
    assert decoded(encoding, b"\xff\xffthis is not compressed", 100) == b"\xff\xffthis is not compressed"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
def test_the_bytes_before_the_damage_are_kept_and_the_rest_is_left_out(encoding: str) -> None:
    body = bytes(range(256)) * 40 + random.Random(0).randbytes(400_000)
    packed = bytearray(PACK[encoding](body))
    packed[-2000:-1000] = bytes(1000)
    found = decoded(encoding, bytes(packed), len(packed))
    assert 100_000 < len(found) < len(body) + 1000
    assert found[:100_000] == body[:100_000]


def test_the_content_before_the_damage_of_one_chunk_is_kept() -> None:
    body = b" ".join(b"%d" % number for number in range(40_000))
    assert len(body) < STEP
    packed = bytearray(brotli.compress(body))
    at = len(packed) * 7 // 10
    packed[at : at + 200] = random.Random(1).randbytes(200)
    found = decoded("br", bytes(packed), len(packed))
    assert found[: len(body) // 2] == body[: len(body) // 2]


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
