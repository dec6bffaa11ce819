"""The variables by which one program is led through a forward proxy, and made to trust it.

Owns their names. Each runtime has its own; what each of them heeds is in docs/ca.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PROXY = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")

BYPASS = ("NO_PROXY", "no_proxy")

INSTEAD = {
    "SSL_CERT_FILE": "OpenSSL, Python (ssl, httpx, aiohttp), Go and .NET on Linux, Ruby, Rust (native certificates)",
    "REQUESTS_CA_BUNDLE": "Python (requests)",
    "CURL_CA_BUNDLE": "curl",
    "GIT_SSL_CAINFO": "git",
    "PIP_CERT": "pip",
    "AWS_CA_BUNDLE": "AWS",
    "CARGO_HTTP_CAINFO": "cargo",
}
"""Name a file of all authorities, in place of the system's."""

BESIDES = {"NODE_EXTRA_CA_CERTS": "Node.js, Bun, Electron", "DENO_CERT": "Deno"}
"""Name a file of authorities besides those that are built in."""


def variables(environ: Mapping[str, str], proxy: str, bundle: str) -> dict[str, str]:
    """Return the environment of a program, led through `proxy` and made to trust what is in `bundle` (PEM)."""
    led = {name: value for name, value in environ.items() if name not in BYPASS}
    led |= dict.fromkeys(PROXY, proxy)
    led |= dict.fromkeys((*INSTEAD, *BESIDES), bundle)
    # Node.js 24, and 22 from 22.21 on: fetch() takes no proxy from the environment without it.
    led["NODE_USE_ENV_PROXY"] = "1"
    return led


def named_authorities(environ: Mapping[str, str]) -> bytes:
    """Return the authorities that a program's own environment names; a file that cannot be read names none."""
    pieces: dict[bytes, None] = {}
    for name in (*INSTEAD, *BESIDES):
        try:
            data = Path(environ.get(name, "")).read_bytes()
        except OSError:  # Not set, or a folder, or not there: the program would not get any from it, either.
            continue
        pieces[data.rstrip() + b"\n"] = None
    return b"".join(pieces)
