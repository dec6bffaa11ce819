"""Connections of the test process to anything but its mock are refused, if the test asks for that.

CPython announces what its sockets do to audit hooks, whichever library uses them. An attribute of the class
`socket.socket` that is replaced, as other plugins do it, is not seen by code that uses `_socket`, or that has a
reference to the old one. Child processes and libraries that open sockets in C (uvloop, pycurl, grpc) are not seen.

An audit hook cannot be removed, so the first test that needs it adds the only one, which does nothing afterwards.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv6Address, ip_address
from socket import AF_INET, AF_INET6
from typing import Any, TypeAlias

from mcpspy.core.sanitize import sanitize
from mcpspy.errors import UsageError
from mcpspy.ui.cli.arguments import listen_address

LOCALHOST = "localhost"

SEES_ASYNCIO = os.name != "nt"
"""False on Windows: asyncio connects there by overlapped calls, which no audit hook sees."""

CONNECTING = ("socket.connect", "socket.sendto", "socket.sendmsg")
"""Events with a socket and an address. `connect_ex` is a `socket.connect`, too."""

LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname")
"""Events with a name, which are refused as well: else the result would depend on whether this machine is online."""

Address: TypeAlias = tuple[str, int]


class NetworkAccess:
    """The addresses that a test may reach as well as one of its mocks, and those that were refused."""

    def __init__(
        self,
        *,
        is_blocked: bool,
        is_open: bool,
        allowed: Sequence[Address],
        is_own: Callable[[Address], bool],
    ) -> None:
        """`is_open` allows everything, because the real server is recorded. `is_own` knows the mock."""
        self.is_blocked = is_blocked
        self.is_open = is_open
        self._allowed = allowed
        self._is_own = is_own
        self.refused: dict[str, None] = {}
        """The refused addresses and names, in order."""

    def allows(self, address: Address) -> bool:
        return address in self._allowed or self._is_own(address)

    def report(self) -> str:
        """Return a line about the refused addresses since the last report; empty without any."""
        refused, self.refused = self.refused, {}
        if not refused:
            return ""
        return (
            f"mcpspy: block_network: the test tried to reach {', '.join(map(sanitize, refused))}, which is not its "
            "mock (use mcp_recording.url, or allowed_hosts)"
        )


_active: list[NetworkAccess] = []
"""Those of the test that runs."""

_hooked: list[bool] = []


@contextmanager
def blocking(accesses: Sequence[NetworkAccess]) -> Iterator[None]:
    """Block the network as the recordings of a test say; those of several fixtures of a test add up."""
    if any(access.is_blocked for access in accesses) and not _hooked:
        _hooked.append(True)
        sys.addaudithook(_audit)
    _active.extend(accesses)
    try:
        yield
    finally:
        for access in accesses:
            _active.remove(access)


def read_allowed(text: str) -> Address:
    """Return an address of `allowed_hosts`, `HOST:PORT`; raise UsageError."""
    host, port = listen_address("allowed_hosts", text)
    normal = _normal(host)
    if normal != LOCALHOST and not _is_literal(normal):
        # A connection has the address, and not the name that was looked up for it.
        raise UsageError(f"allowed_hosts {text}: {host} is not an IP address", "use 192.0.2.1:80")
    return normal, port


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    __tracebackhide__ = True  # The line of the code under test that connects is the one to show.
    if not _active or not event.startswith("socket."):
        return
    if event in CONNECTING:
        sock, address = arguments
        if getattr(sock, "family", None) in (AF_INET, AF_INET6) and isinstance(address, tuple):
            host, port = _normal(_text(address[0])), int(address[1])
            shown = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            _check((host, port), shown)
    elif event in LOOKUPS and arguments[0]:
        name = _normal(_text(arguments[0]))
        if name != LOCALHOST and not _is_literal(name):
            _check((name, 0), name)


def _check(address: Address, shown: str) -> None:
    __tracebackhide__ = True
    blocked = [access for access in _active if access.is_blocked]
    if not blocked or any(access.is_open or access.allows(address) for access in _active):
        return
    blocked[0].refused[shown] = None
    # An OSError, as that of a network that is down: the code under test handles it, and the test fails for the report.
    raise PermissionError(errno.EACCES, f"mcpspy: block_network: {shown} is not the mock of this test")


def _normal(host: str) -> str:
    """Return one name for all loopback addresses: clients may try ::1 before 127.0.0.1."""
    if host in ("", LOCALHOST):  # A socket that connects to an empty host connects to this machine.
        return LOCALHOST
    try:
        found = ip_address(host)
    except ValueError:
        return host.lower()
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return LOCALHOST if found.is_loopback else str(found)


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _text(host: str | bytes | bytearray) -> str:
    return host if isinstance(host, str) else bytes(host).decode("ascii", "backslashreplace")
