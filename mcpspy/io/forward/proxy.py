"""`mcpspy http --forward`: a proxy for programs whose server addresses cannot be changed.

Starts and stops the parts of a forward proxy in order.
"""

from __future__ import annotations

import asyncio
import copy
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcpspy.core.protocol.http_headers import Upstream
from mcpspy.errors import CannotStart
from mcpspy.io.forward.ca import CertificateAuthority, authority, system_authorities
from mcpspy.io.forward.endpoints import EndpointRegistry
from mcpspy.io.forward.mitmproxy import HostSet, InterceptionAddon, MitmproxyEngine
from mcpspy.io.http import proxy
from mcpspy.io.network.listener import listening, origin, stop_on_signals
from mcpspy.io.recording.recorder import say

ANY_UPSTREAM = Upstream("", "", "", "")
"""Placeholder for the upstream of a proxy for all servers."""


class ForwardOptions(proxy.HttpOptions):
    """The options of `mcpspy http --forward`. Options for one server apply to every server."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(ANY_UPSTREAM, host, port)
        self.allowed: list[str] = []
        """Globs of hosts. If there are any, only these hosts are decrypted."""
        self.ignored: list[str] = []
        self.authorities = b""
        """CAs trusted in addition to the system's and those of `cacert`, as PEM."""
        self.announces = True
        """True if each recording is reported when it starts."""


def run(options: ForwardOptions) -> int:
    """Serve until SIGTERM or SIGINT. Return the exit code. Raises CannotStart."""
    return asyncio.run(_serve(options))


async def _serve(options: ForwardOptions) -> int:
    stop = asyncio.Event()
    stop_on_signals(lambda _: stop.set())
    ca = authority()
    async with forwarding(options, ca) as proxy:
        say(f"{proxy.url} is a forward proxy; clients must trust {ca.certificate} (see mcpspy ca)")
        await stop.wait()
    return 0


class ForwardProxy:
    """A forward proxy that is running or has ended."""

    def __init__(self, url: str, endpoints: EndpointRegistry) -> None:
        self.url = url
        self.endpoints = endpoints

    def recordings(self) -> list[tuple[str, str]]:
        """Return the address of each recorded endpoint, and the file of its recording."""
        return [
            (known.upstream.origin + known.upstream.path, known.recorder.path)
            for known in self.endpoints
            if known.recorder.path is not None
        ]


@asynccontextmanager
async def forwarding(options: ForwardOptions, ca: CertificateAuthority) -> AsyncIterator[ForwardProxy]:
    """Serve while the context is open. Raises CannotStart."""
    with (
        tempfile.TemporaryDirectory(prefix="mcpspy-") as folder,
        listening(options.host, options.port, "use another --listen PORT, or :0 for a free one") as listener,
    ):
        options = copy.copy(options)
        options.cacert = _extra_authorities(options, Path(folder) / "more.pem")
        url = origin(options.host, listener)
        endpoints = EndpointRegistry(options, url, announce=say if options.announces else None)
        addon = InterceptionAddon(HostSet(options.allowed, options.ignored), endpoints)
        trusted = _trusted(options.cacert, Path(folder) / "trusted.pem")
        engine = MitmproxyEngine(addon, ca.store, trusted, insecure=options.insecure)
        async with engine.accepting(listener), endpoints.serving():
            yield ForwardProxy(url, endpoints)


def _extra_authorities(options: ForwardOptions, path: Path) -> str | None:
    """Return a file with the CAs that are trusted in addition to the system's."""
    if not options.authorities:
        return options.cacert
    try:
        named = b"" if options.cacert is None else Path(options.cacert).read_bytes()
    except OSError as error:
        raise CannotStart(f"{options.cacert}: {error.strerror}", "--cacert takes a PEM file") from None
    path.write_bytes(named + b"\n" + options.authorities)
    return os.fspath(path)


def _trusted(more: str | None, path: Path) -> str:
    """Return one file with all trusted CAs, as mitmproxy requires."""
    path.write_bytes(system_authorities() + (b"" if more is None else Path(more).read_bytes()))
    return os.fspath(path)
