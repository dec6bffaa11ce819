"""Bodies in each `Content-Encoding` that a recording decodes."""

from __future__ import annotations

import gzip
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

brotli: Any = import_module("brotlicffi")
zstd: Any = import_module("backports.zstd")

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
    "br": lambda data: bytes(brotli.compress(data, quality=5)),
    "zstd": lambda data: bytes(zstd.compress(data)),
}
