"""Which hosts are looked into: by `--allow` and `--ignore`, and not after one did not want it.

Owns names and globs. A glob has no port, and then means every port, or has one.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase


class Hosts:
    """Hosts, each as its name and port."""

    def __init__(self, allowed: Iterable[str] = (), ignored: Iterable[str] = ()) -> None:
        """`allowed`: only these, if there are any; `ignored`: none of these."""
        self._allowed = [glob.lower() for glob in allowed]
        self._ignored = [glob.lower() for glob in ignored]
        self._closed: set[tuple[str, int]] = set()
        self._doubted: set[tuple[str, int]] = set()

    def is_open(self, name: str, port: int) -> bool:
        """Whether connections to it are looked into."""
        name = name.lower()
        if (name, port) in self._closed or _is_in(self._ignored, name, port):
            return False
        return not self._allowed or _is_in(self._allowed, name, port)

    def close(self, name: str, port: int) -> bool:
        """Look into it no more; False if that was so already."""
        key = (name.lower(), port)
        if key in self._closed:
            return False
        self._closed.add(key)
        return True

    def doubt(self, name: str, port: int) -> bool:
        """Whether a client has hung up on it before, with nobody trusting us since."""
        key = (name.lower(), port)
        if key in self._doubted:
            return True
        self._doubted.add(key)
        return False

    def trust(self, name: str, port: int) -> None:
        """Keep that a client trusts us with it."""
        self._doubted.discard((name.lower(), port))


def _is_in(globs: list[str], name: str, port: int) -> bool:
    return any(fnmatchcase(name, glob) or fnmatchcase(f"{name}:{port}", glob) for glob in globs)
