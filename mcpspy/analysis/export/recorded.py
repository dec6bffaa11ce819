"""A session on its way into another format: what every exporter is given.

Owns which exchanges of it are wanted, and in which order. An exporter is a
function that yields the text of a file in pieces; `formats` lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from mcpspy.core.protocol.message import Request
from mcpspy.core.recording.decode import Header
from mcpspy.core.session.exchange import Exchange
from mcpspy.core.session.session import Change


class Recorded(NamedTuple):
    """A session, folded as far as there is any of it, and what of it a person wants to see."""

    header: Header
    name: str
    """What a person calls it; a peer's text, not made inert."""
    changes: Iterable[Change]
    """All of them, in the order of the file, as `core.session.session.Session` folded them: each exchange is as it ended."""
    keep: Callable[[Change], bool]
    """Whether a change is wanted. It says the same of a request and of its answer."""

    def wanted(self) -> Iterator[Change]:
        """Yield the changes that are wanted."""
        return filter(self.keep, self.changes)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield the exchanges that are wanted, in the order of their requests."""
        for change in self.changes:
            if isinstance(change.what, Request) and change.exchange is not None and self.keep(change):
                yield change.exchange
