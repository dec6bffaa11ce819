"""Sends spans to an OpenTelemetry collector: OTLP over HTTP, in JSON (opentelemetry-proto, OTLP/HTTP).

A refusal is final. The same recording always yields the same spans, so they can be sent again later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

import aiohttp
import orjson
from yarl import URL

from mcpspy import __version__
from mcpspy.core.redact.display import redacted_url
from mcpspy.core.sanitize import sanitize
from mcpspy.errors import CannotStart, UsageError
from mcpspy.io.client.aiohttp_session import client, reason
from mcpspy.io.client.base import ServerAddress
from mcpspy.io.client.http_exchange import excerpt

PATH = "/v1/traces"

PATIENCE = 10.0
"""Seconds to wait for a response (the default of OTLP)."""


class OtlpResult(NamedTuple):
    spans: int
    rejected: int
    why: str


def traces_url(endpoint: str) -> str:
    """Return the URL for traces. An endpoint without a path gets the standard path."""
    try:
        url = URL(endpoint)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(
            sanitize(f"--endpoint {redacted_url(endpoint)}: not a URL"), "an example: http://localhost:4318"
        )
    return str(url.with_path(PATH) if url.path in ("", "/") else url)


def send(address: ServerAddress, batches: Iterable[tuple[int, bytes]]) -> OtlpResult:
    """Send requests, each with its number of spans. Raise CannotStart if one is refused."""
    return asyncio.run(_send(address, batches))


async def _send(address: ServerAddress, batches: Iterable[tuple[int, bytes]]) -> OtlpResult:
    spans = rejected = 0
    why = ""
    async with client(address) as session:
        for count, body in batches:
            try:
                async with asyncio.timeout(PATIENCE):
                    more, message = _taken(address.shown, *await _post(session, address, body))
            except (aiohttp.ClientError, OSError) as error:
                what = (
                    f"no response in {PATIENCE:.0f} s" if isinstance(error, TimeoutError) else reason(error)
                )
                raise CannotStart(
                    sanitize(f"cannot send to {address.shown}: {what}"), _after(spans)
                ) from None
            except CannotStart as refused:
                raise CannotStart(refused.args[0], _after(spans)) from None
            spans += count
            rejected += more
            why = why or message
    return OtlpResult(spans - rejected, rejected, why)


async def _post(session: aiohttp.ClientSession, address: ServerAddress, body: bytes) -> tuple[int, bytes]:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"mcpspy/{__version__}",
        **dict(address.headers),
    }
    # A redirected POST would arrive as a GET.
    async with session.post(address.url, data=body, headers=headers, allow_redirects=False) as response:
        return response.status, await response.read()


def _taken(url: str, status: int, body: bytes) -> tuple[int, str]:
    """Return the number of rejected spans and the reason. Raise CannotStart if all are rejected."""
    if status // 100 != 2:
        text = excerpt(body)
        raise CannotStart(sanitize(f"{url} refused the spans: HTTP {status}{f': {text}' if text else ''}"))
    try:
        answer = orjson.loads(body) if body else None
        partial = answer.get("partialSuccess") or {} if isinstance(answer, dict) else {}
        return int(partial.get("rejectedSpans") or 0), str(partial.get("errorMessage") or "")
    except (ValueError, TypeError, AttributeError):  # Only 2xx matters; some collectors send plain text.
        return 0, ""


def _after(spans: int) -> str:
    return f"{spans} spans had been sent" if spans else "is it a collector that accepts OTLP over HTTP?"
