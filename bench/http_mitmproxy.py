"""The addon that makes mitmproxy a recorder, for `bench/http.py` to compare: a line for each body and each chunk.

RECORD=FILE mitmdump -q -s bench/http_mitmproxy.py --mode reverse:URL
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

file = open(os.environ["RECORD"], "ab", buffering=0)  # noqa: SIM115 - open as long as mitmproxy runs.


def record(sender: str, body: bytes) -> None:
    """Append a line."""
    line = {"t": time.time(), "from": sender, "msg": body.decode()}
    file.write(json.dumps(line).encode() + b"\n")


def request(flow: Any) -> None:
    """Record what was asked."""
    if flow.request.content:
        record("client", flow.request.content)


def responseheaders(flow: Any) -> None:
    """Let a stream through as it comes; it would be held back to its end otherwise."""
    if flow.response.headers.get("content-type", "").startswith("text/event-stream"):
        flow.response.stream = chunk


def chunk(data: bytes) -> bytes:
    """Record a piece of a stream."""
    record("server", data)
    return data


def response(flow: Any) -> None:
    """Record what was answered."""
    if flow.response.content:
        record("server", flow.response.content)
