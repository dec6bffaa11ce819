"""A mitmproxy addon that records, as a comparison in `bench/http.py`: a line for each body and each chunk.

RECORD=FILE mitmdump -q -s bench/http_mitmproxy.py --mode reverse:URL
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

file = open(os.environ["RECORD"], "ab", buffering=0)  # noqa: SIM115 - open while mitmproxy runs.


def record(sender: str, body: bytes) -> None:
    """Append a line."""
    line = {"t": time.time(), "from": sender, "msg": body.decode()}
    file.write(json.dumps(line).encode() + b"\n")


def request(flow: Any) -> None:
    """Record a request."""
    if flow.request.content:
        record("client", flow.request.content)


def responseheaders(flow: Any) -> None:
    """Forward a stream chunk by chunk; otherwise mitmproxy would buffer it until its end."""
    if flow.response.headers.get("content-type", "").startswith("text/event-stream"):
        flow.response.stream = chunk


def chunk(data: bytes) -> bytes:
    """Record a chunk of a stream."""
    record("server", data)
    return data


def response(flow: Any) -> None:
    """Record a response."""
    if flow.response.content:
        record("server", flow.response.content)
