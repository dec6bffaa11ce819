"""Trusted certificates, the proxies of the environment, and readable errors, for every HTTP client."""

from __future__ import annotations

import asyncio
import os
import re
import ssl
from collections.abc import Sequence
from functools import lru_cache
from typing import Generic, TypeVar
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from mcpspy.core.compression import Steps
from mcpspy.core.protocol.http_headers import LOOPBACK
from mcpspy.core.redact.display import redacted_text
from mcpspy.errors import CannotStart

IDLE = 4.0
"""Seconds that an idle connection is kept: less than the five after which uvicorn and Node close theirs."""

T = TypeVar("T")


class _End:
    """The end of the steps, which is not a value that they yield."""


_END = _End()

_ERRNO = re.compile(r"\[Errno (\d+)\]")


def reason(error: BaseException) -> str:
    """Return a short reason why a server cannot be reached, or has disconnected; redacted."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error} (trust its CA with --cacert FILE)"
    # The numbers of an SSLError are not errno values, and negative ones come from the resolver.
    number = error.errno if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    if number is None and isinstance(error, OSError) and (several := _ERRNO.search(str(error))) is not None:
        number = int(several[1])  # One address after the other was tried.
    # asyncio's own text repeats the address. Some texts contain a URL: that of a proxy, with its password.
    return os.strerror(number) if number and number > 0 else redacted_text(str(error)) or type(error).__name__


def environment_proxy(url: URL) -> URL | None:
    """Return the proxy for a server from `http_proxy`, `https_proxy` and `no_proxy`; None for loopback."""
    found = getproxies().get(url.scheme)
    host = url.host or ""
    return None if found is None or host in LOOPBACK or proxy_bypass(host) else URL(found)


def trust(cacert: str | None, *, insecure: bool, protocols: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """Return the verification of certificates, against the system's CAs and those of `cacert`.

    `protocols` are the names that are offered by ALPN, the preferred one first (RFC 7301, 6).
    """
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(protocols))
    if insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context
    # Since Python 3.13, the default also requires fields of RFC 5280 that many private CAs leave out. The trusted
    # CAs stay the same; Node and curl do not require these fields either.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if cacert is not None:
        try:
            context.load_verify_locations(cacert)
        except OSError as error:
            raise CannotStart(f"{cacert}: {error.strerror or error}", "--cacert takes a PEM file") from None
    return context


@lru_cache(maxsize=8)
def shared_trust(cacert: str | None, *, insecure: bool) -> ssl.SSLContext:
    """Return a verification that all connections of this process share, and that must not be changed.

    Reading the system's CAs takes tens of milliseconds of CPU, which many short connections cannot afford.
    """
    return trust(cacert, insecure=insecure)


class Turns(Generic[T]):
    """The values of steps; other exchanges run between two of them, and during a long one, which runs in a thread."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self._is_first = True

    def __aiter__(self) -> Turns[T]:
        return self

    async def __anext__(self) -> T:
        found = await self._in_thread() if self._steps.are_long else next(self._steps, _END)
        if isinstance(found, _End):
            raise StopAsyncIteration
        if not (self._is_first or self._steps.are_long):
            await asyncio.sleep(0)
        self._is_first = False
        return found

    async def _in_thread(self) -> T | _End:
        step = asyncio.ensure_future(asyncio.to_thread(next, self._steps, _END))
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            await asyncio.wait([step])  # A thread cannot be cancelled, and the caller uses what it changes.
            raise


async def in_turns(steps: Steps[None]) -> None:
    """Run steps; other exchanges run between two of them."""
    async for _ in Turns(steps):
        pass
